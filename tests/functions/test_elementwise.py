"""The functions that rows make, and the files that are written from the rows."""

import inspect

import pytest

import tapegrad as tg
from tapegrad.functions import axis, elementwise
from tests import public_names

pytestmark = pytest.mark.tapegrad_only("about this project")


def test_what_is_written_from_the_rows_is_current():
    for path, text in public_names.files().items():
        told = f"{path.name}: run `python -m tests.public_names`"
        assert path.read_text(encoding="utf-8") == text, told


@pytest.mark.parametrize("op", public_names.rows(), ids=lambda op: op.name)
def test_a_row_says_all_of_its_function(op):
    home = getattr(tg, op.namespace) if op.namespace else tg
    for name in op.names:
        function = getattr(home, name)
        assert function is getattr(axis if op.axis else elementwise, name)
        assert op.doc in inspect.getdoc(function)
        assert hasattr(tg.Tensor, name) is (not op.namespace)
        assert hasattr(tg.Tensor, f"{name}_") is (op.inplace and not op.namespace)

"""Ten programs: Newton's method, n bodies, an LSTM, Cholesky's method in place, a stencil, ..."""

import pytest

from bench.njit import programs
from tests.njit.checking import check

pytestmark = pytest.mark.tapegrad_only("no other library has this")
CASES = programs.arguments()


@pytest.mark.parametrize("f", CASES, ids=lambda f: f.py_func.__name__)
def test_gradient_is_that_of_forward_mode_and_of_differences(f):
    check(f, CASES[f])

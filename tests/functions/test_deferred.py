"""Families of operations that are loaded when one of their names is first asked for."""

import subprocess
import sys

import pytest

import tapegrad as tg
from tapegrad.functions import deferred
from tapegrad.functions.method_decorators import methods_of


@pytest.mark.parametrize("module", deferred.METHODS)
def test_the_table_names_the_methods_of_the_module(module: str) -> None:
    assert sorted(methods_of(deferred.load(module))) == sorted(deferred.METHODS[module].split())


@pytest.mark.parametrize("name", deferred.deferred_functions())
def test_a_deferred_function_is_at_top_level(name: str) -> None:
    module = deferred.load(deferred.deferred_functions()[name])
    assert getattr(tg, name) is getattr(module, name)


def test_a_method_loads_its_module_once() -> None:
    program = """if True:
        import sys
        import tapegrad as tg
        t = tg.tensor([1.0, 3.0, 2.0])
        assert "tapegrad.functions.order_statistics" not in sys.modules
        assert t.median().item() == 2
        assert "tapegrad.functions.order_statistics" in sys.modules
        assert all(callable(vars(tg.Tensor)[name]) for name in ("median", "topk"))
        assert tg.median is sys.modules["tapegrad.functions.order_statistics"].median
    """
    subprocess.run([sys.executable, "-c", program], check=True)

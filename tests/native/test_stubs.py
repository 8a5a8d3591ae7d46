"""Native operations as CPython calls them: functions, methods, and rows that come later."""

import inspect
import subprocess
import sys

import pytest

import tapegrad
from tapegrad.tensor import Tensor

pytestmark = [
    pytest.mark.tapegrad_only("about functions of C in the place of Python's"),
    pytest.mark.usefixtures("native"),
]


def test_it_reads_like_a_function():
    assert str(inspect.signature(Tensor.exp)) == "(self, /)"
    assert str(inspect.signature(Tensor.__mul__)) == "(self, other, /)"
    assert Tensor.exp.__name__ == "exp"
    assert "The exponential" in Tensor.exp.__doc__
    x = tapegrad.tensor([1.0])
    assert x.mul(other=x).tolist() == [1.0]
    with pytest.raises(TypeError):
        x.exp(1)
    with pytest.raises(TypeError):
        Tensor.exp(1.0)


def test_operations_that_come_later_are_taken():
    code = """
import tapegrad as tg
x = tg.ones(3, requires_grad=True)
x.sum().backward()
import tapegrad.nn.functional
from tapegrad.ops.families import table
print(*[type(table[name].entry_point).__name__ for name in ("exp", "silu", "elu")])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["builtin_function_or_method"] * 3

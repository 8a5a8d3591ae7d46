"""Ten programs: Newton's method, n bodies, an LSTM, Cholesky's method in place, a stencil, ..."""

import numba
import pytest

from bench.njit import programs
from tapegrad.njit.derivative_program import DerivativeProgram, Request
from tests.njit.checking import check

pytestmark = pytest.mark.tapegrad_only("no other library has this")
CASES = programs.arguments()


@pytest.mark.parametrize("f", CASES, ids=lambda f: f.py_func.__name__)
def test_gradient_is_that_of_forward_mode_and_of_differences(f):
    check(f, CASES[f])


@pytest.mark.parametrize("name", ["nbody", "lstm", "chol", "stencil"])
def test_a_program_has_one_text(name):
    """By its text it is found on the disk: no order of a set may depend on addresses."""
    f, arguments = next((f, x) for f, x in CASES.items() if name == f.py_func.__name__)
    kinds = tuple(map(numba.typeof, arguments))
    first, second = (DerivativeProgram(f, Request(kinds, (0,))).text for _ in range(2))
    assert first == second

"""Programs that Numba compiles in parts, and functions of the same parts that Numba calls."""

import ctypes

import numba
import numpy as np
import pytest

from tapegrad.kernels import build
from tapegrad.kernels.flags import PLAIN, entry_point, helper
from tapegrad.kernels.whole_program import Part, together

pytestmark = pytest.mark.tapegrad_only("how kernels are compiled")


def address_of(function, arity):
    with together():
        name, text = entry_point(function, arity)
    engine = build.assembled(text.replace(name, build.SYMBOL))
    return engine, engine[0].get_function_address(build.SYMBOL)


def test_a_program_holds_what_its_parts_call():
    with together():

        @helper
        def tripled(a):
            return 3 * a

        @helper
        def either(a, b):
            return tripled(a) if a > b else tripled(b)

        def kernel(a, b):
            return either(a, b) + tripled(a)

        name, text = entry_point(kernel, 2)
    assert "declare" not in "".join(line for line in text.split("\n") if "tripled" in line)
    engine, address = address_of(kernel, 2)
    assert engine
    assert ctypes.CFUNCTYPE(*[ctypes.c_int64] * 3)(address)(2, 5) == 21
    assert name != build.SYMBOL


def test_numba_calls_parts_later():
    """What was left as it was is finished for the first who asks, with all below it."""
    with together():

        @helper
        def inner(a):
            return a + 1

        @helper
        def outer(a):
            return 2 * inner(a)

        entry_point(lambda a: outer(a), 1)
        assert all(isinstance(f.overloads[f.signatures[0]].library, Part) for f in (inner, outer))
    assert numba.njit(lambda a: outer(a) + inner(a))(4) == 15


def test_functions_for_python_are_compiled_meanwhile():
    with together():
        shown = numba.njit(lambda x: np.sum(np.abs(x)))
        assert shown(np.array([-1.0, 2.0])) == 3.0

        @helper
        def summed(n):
            return shown(np.ones(n))

        entry_point(lambda n: int(summed(n)), 1)
    assert numba.njit(lambda n: summed(n))(3) == 3.0
    assert shown(np.array([-3.0])) == 3.0


def test_others_compile_as_before():
    before = numba.config.OPT
    with pytest.raises(ZeroDivisionError), together():
        1 / 0  # noqa: B018
    assert before is numba.config.OPT
    plain = numba.njit(**PLAIN)(lambda a: a + 1)
    assert numba.njit(lambda a: plain(a))(1) == 2
    assert not isinstance(plain.overloads[plain.signatures[0]].library, Part)

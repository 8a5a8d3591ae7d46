"""Exceptions that functions handle: gradients of what is computed then, and of what is not."""

import numpy as np
import pytest
from numba import njit
from numba.typed import Dict

import tapegrad as tg
from tests.njit.cases import collected_in, name_of
from tests.njit.checking import check

pytestmark = pytest.mark.tapegrad_only("no other library has this")
CASES = []
case = collected_in(CASES)


@njit
def root(a):
    if a < 0:
        raise ValueError
    return np.sqrt(a)


@njit
def doubled_root(a):
    try:
        return 2 * root(a)
    except Exception:
        return a**3


@case(1.5)
@case(3.5)
def handled_in_a_loop(a):
    s = 1.0
    for i in range(3):
        try:
            x = root(a - i)
            s += x
        except Exception:
            x = 0.5
        s += x * a
    return s


@case(1.5, 2.0)
@case(1.5, -0.0, differences=False)
def quotient(a, b):
    try:
        y = a / b
        y += 1.0
    except Exception:
        y = a * a
    return y * a


@case(0.5)
@case(1.5)
def raises_itself(x):
    s = x
    try:
        s *= x
        if x > 1.0:
            raise ValueError("large")
        s *= 2
    except Exception:
        s += 3 * x
    else:
        s *= 1.5
    return s


@case(np.array([1.0, -2.0, 3.0]))
def what_was_written_stays(x):
    y = np.zeros(3)
    for i in range(3):
        try:
            y[i] = 2 * x[i]
            y[i] = root(x[i]) + y[i] ** 2
        except Exception:
            y[i] -= x[i] ** 2
    return np.sum(y * y)


@case(np.array([[2.0, 1.0], [0.5, 3.0]]), np.array([1.0, 0.3]))
@case(np.zeros((2, 2)), np.array([1.0, 0.3]), differences=False)
def of_the_library(a, b):
    try:
        x = np.linalg.solve(a, b)
    except Exception:
        x = 2 * b
    return np.sum(x * x)


@case(2.0)
@case(-0.5)
@case(-2.0)
def one_in_another(x):
    s = 0.0
    try:
        try:
            s = root(x)
        except Exception:
            s = x * x
        s += doubled_root(-x) + root(x + 1.0)
    except Exception:
        s = 3 * x
    return s


@case(3.4)
def leaves_a_loop(x):
    s = 0.0
    for i in range(10):
        try:
            s += root(x - i)
        except Exception:
            break
        s *= x
    return s


@pytest.mark.parametrize(("f", "args", "options"), CASES, ids=name_of)
def test_handled(f, args, options):
    check(f, args, **options)


def test_second_derivatives():
    @njit
    def cubed(x):
        s = 0.0
        for i in range(2):
            try:
                s += root(x - i) ** 3
            except Exception:
                s += x**3
        return s

    x = 0.7
    assert tg.hessian(cubed)(x) == pytest.approx(0.75 / np.sqrt(x) + 6 * x, rel=1e-12)


def test_at_last():
    @njit
    def at_last(x):
        s = 0.0
        try:
            s = root(x)
        finally:
            s += x * x
        return s

    assert tg.grad(at_last)(4.0) == 8.25
    with pytest.raises(AssertionError, match="RERAISE"):  # as in Numba
        tg.grad(at_last)(-4.0)


def test_what_numba_compiles_by_itself_is_not_handled():
    @njit
    def looked_up(x, table):
        try:
            y = table["b"]
        except Exception:
            y = 0.0
        return x * y

    table = Dict()
    table["a"] = 1.0
    with pytest.raises(NotImplementedError, match="`try`: let exceptions be raised"):
        tg.grad(looked_up)(2.0, table)

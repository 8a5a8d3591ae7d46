"""Gradients of random programs that write arrays in place against JAX, which runs their text."""

import functools
import math
import operator
import types

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="compares with JAX: `make peers` installs it")

import jax.numpy as jnp  # noqa: E402

from tapegrad.kernels import build  # noqa: E402
from tapegrad.njit.evaluation import Evaluator  # noqa: E402
from tests.njit.checking import copied, floats  # noqa: E402
from tests.njit.random_programs import RandomProgram, helper, nested, program  # noqa: E402

pytestmark = [
    pytest.mark.peer,
    pytest.mark.usefixtures("double_precision_of_jax"),
    pytest.mark.tapegrad_only("runs both libraries itself"),
]


class Buffer:
    """The elements of an array of JAX, exchanged for others when one is written."""

    def __init__(self, flat):
        self.flat = flat


class Cells:
    """An array that is written in place, or a view: where its elements stand in a buffer."""

    __array_ufunc__ = None

    def __init__(self, buffer, places):
        self.buffer, self.places = buffer, places
        self.shape = places.shape

    @classmethod
    def of(cls, x):
        return cls(Buffer(jnp.ravel(x)), np.arange(np.size(x)).reshape(np.shape(x)))

    @property
    def value(self):
        return self.buffer.flat[self.places]

    def __getitem__(self, key):
        places = self.places[key]
        if np.ndim(places) and not isinstance(key, np.ndarray):
            return Cells(self.buffer, places)
        x = self.buffer.flat[places]
        return Cells.of(x) if np.ndim(places) else x

    def __setitem__(self, key, x):
        self.buffer.flat = self.buffer.flat.at[self.places[key]].set(value_of(x))

    def __len__(self):
        return self.shape[0]

    def __iter__(self):
        return (self[k] for k in range(len(self)))

    @property
    def T(self):
        return Cells(self.buffer, self.places.T)

    def copy(self):
        return Cells.of(self.value)


def value_of(x):
    return x.value if isinstance(x, Cells) else x


def on_arrays(f):
    """The function of cells, whose result is cells where it is an array."""

    def called(*args, **kwargs):
        y = f(*map(value_of, args), **kwargs)
        return Cells.of(y) if jnp.ndim(y) else y

    return called


def in_place(f):
    """An operator that writes into what stands on its left."""
    found = on_arrays(f)

    def called(x, y):
        x[:] = found(x, y)
        return x

    return called


for name in ("add", "sub", "mul", "truediv", "pow"):
    f = getattr(operator, name)
    setattr(Cells, f"__{name}__", on_arrays(f))
    setattr(Cells, f"__r{name}__", on_arrays(lambda x, y, f=f: f(y, x)))
    setattr(Cells, f"__i{name}__", in_place(f))
for name in ("sum", "mean"):
    setattr(Cells, name, on_arrays(getattr(jnp, name)))

ARRAYS = "sin", "tanh", "sum", "mean", "max", "min", "dot", "zeros", "ones"
NUMBERS = "sin", "cos", "tanh", "exp", "sqrt"
SPACE = {
    "np": types.SimpleNamespace(**{name: on_arrays(getattr(jnp, name)) for name in ARRAYS}),
    "math": types.SimpleNamespace(**{name: getattr(jnp, name) for name in NUMBERS}),
    "float": lambda x: x,
}
for f in (helper, nested):
    SPACE[f.__name__] = types.FunctionType(f.py_func.__code__, SPACE)


@pytest.fixture
def unoptimised(monkeypatch):
    """What is compiled runs once."""
    monkeypatch.setenv("TAPEGRAD_CACHE", "0")
    monkeypatch.setattr(build, "assembled", functools.partial(build.assembled, level=0))


# The others are of float32, too, or of complex numbers.
SEEDS = [k for k in range(19) if k % 6 and not RandomProgram(k).is_complex]


@pytest.mark.parametrize("seed", SEEDS)
def test_gradients(seed, unoptimised):
    f, args = program(seed)
    chosen = floats(args)
    traced = types.FunctionType(f.py_func.__code__, SPACE)

    def function(*numbers):
        given = copied(args)
        for k, x in zip(chosen, numbers, strict=True):
            given[k] = Cells.of(x) if np.ndim(x) else x
        return traced(*given)

    slopes = jax.value_and_grad(function, tuple(range(len(chosen))))
    value, gradients = slopes(*(args[k] for k in chosen))
    found = Evaluator(f, "grad").run(args, chosen)
    assert math.isclose(found.value, value, rel_tol=1e-10)
    size = max(float(np.max(np.abs(g))) for g in gradients)
    for a, b in zip(found.gradients, gradients, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10 * size)

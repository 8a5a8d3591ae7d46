"""Random programs: a list of small integers says what to compute, of arrays and of each other.

A program is written over a namespace (`numpy`, which Tensors answer to, or `jax.numpy`), so that
one text runs eagerly, compiled and on the peer.  Every value stays of moderate size.
"""

import math
import random
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import pytest

from tapegrad.compiler.lower import lower

MOST = 400  # elements of one value
SHAPES = (
    (), (1,), (3,), (4,), (2, 3), (3, 1), (1, 4), (3, 3), (2, 1, 3), (0,), (2, 0), (17,), (5, 33),
)  # fmt: skip


class Step(NamedTuple):
    """One step: which operation, on which values, in which form."""

    what: int
    first: int
    second: int
    form: int


UNARY = (
    lambda xp, x: xp.sin(x),
    lambda xp, x: xp.tanh(x),
    lambda xp, x: xp.exp(xp.sin(x)),
    lambda xp, x: xp.sqrt(1.0 + x * x),
    lambda xp, x: xp.abs(x) - 1.0,
    lambda xp, x: xp.square(xp.cos(x)),
    lambda xp, x: -x,
    lambda xp, x: xp.log1p(x * x),
    lambda xp, x: xp.maximum(x, 0.0),
    lambda xp, x: 1.0 / (1.5 + xp.cos(x)),
    lambda xp, x: xp.arctan(x) * 2,
    lambda xp, x: (1.0 + x * x) ** 0.3 - 1,
    lambda xp, x: xp.tanh(x) ** 3,
    lambda xp, x: xp.floor(x) * 0.1 + x,
    lambda xp, x: xp.where(x > 0.25, xp.sqrt(xp.abs(x)), x),
    lambda xp, x: xp.where(x > 0.0, xp.log(x), 0.5 * x),
    lambda xp, x: xp.clip(x, -0.5, 0.75),
    lambda xp, x: xp.arcsinh(x),
    lambda xp, x: x * 1.0 + 0.0,
    lambda xp, x: x - x,
    lambda xp, x: xp.sign(x) * x,
    lambda xp, x: xp.hypot(x, 0.5),
)  # fmt: skip

BINARY = (
    lambda xp, x, y: x + y,
    lambda xp, x, y: x - y,
    lambda xp, x, y: xp.tanh(x) * y,
    lambda xp, x, y: x / (1.0 + y * y),
    lambda xp, x, y: xp.maximum(x, y),
    lambda xp, x, y: xp.minimum(x, y),
    lambda xp, x, y: xp.where(x > y, xp.sin(x), y),
    lambda xp, x, y: (1.0 + xp.abs(x)) ** xp.tanh(y),
    lambda xp, x, y: xp.arctan2(x, 1.0 + y * y),
    lambda xp, x, y: xp.hypot(x, 1.0 + xp.abs(y)),
    lambda xp, x, y: xp.logaddexp(x, y),
    lambda xp, x, y: xp.tanh(x * y) - y * 0.25,
    lambda xp, x, y: (x < y) * x + (x >= y) * y,
)


def size(x):
    """The number of elements; `x.size` is a method of Tensors."""
    return math.prod(x.shape)


def _axis(x, form):
    """An axis, a tuple of all, or None."""
    axes = (None, *range(-x.ndim, x.ndim))
    return axes[form % len(axes)]


def _bounded(xp, x):
    return xp.tanh(x) * 2.0


REDUCE = (
    lambda xp, x, axis, keep: xp.mean(x, axis=axis, keepdims=keep),
    lambda xp, x, axis, keep: _bounded(xp, xp.sum(x, axis=axis, keepdims=keep)),
    lambda xp, x, axis, keep: xp.max(x, axis=axis, keepdims=keep),
    lambda xp, x, axis, keep: xp.min(x, axis=axis, keepdims=keep),
    lambda xp, x, axis, keep: xp.prod(xp.cos(x), axis=axis, keepdims=keep),
    lambda xp, x, axis, keep: xp.sqrt(0.1 + xp.sum(x * x, axis=axis, keepdims=keep)) * 0.5,
    lambda xp, x, axis, keep: xp.var(x, axis=axis, keepdims=keep),
)


def _reduce(xp, x, step):
    if size(x) == 0:
        return xp.sum(x)
    kinds = len(REDUCE)
    axis = _axis(x, step.form // kinds)
    return REDUCE[step.form % kinds](xp, x, axis, bool(step.second % 2))


def _slice(n, form):
    """A slice, a place, or an index array along a dimension of size n."""
    if n == 0:
        return slice(None)
    a, b = sorted((form % (n + 1), form // 7 % (n + 1)))
    choices = (
        slice(a, b), slice(None, None, 2), slice(1, None), slice(None, -1), form % n,
        -1 - form % n, slice(a, None, 3), np.array([form % n, 0, form // 3 % n]),
        np.array([[-1, form % n]]),
    )  # fmt: skip
    return choices[form // 5 % len(choices)]


def index_of(x, form):
    """An index into an array."""
    if x.ndim == 0:
        return ((None, ..., None)[form % 3],)
    first = _slice(x.shape[0], form)
    if x.ndim == 1 or form % 3 == 0:
        return (first,)
    last = _slice(x.shape[-1], form // 11)
    if isinstance(first, np.ndarray) and isinstance(last, np.ndarray):
        last = slice(None)
    if form % 3 == 1:
        return (..., last)
    return (first, None, ..., last) if form % 2 else (first, ..., last)


def _moved(xp, x, step):
    form = step.form
    what = form % 9
    if what == 0:
        return xp.transpose(x)
    if what == 1:
        return xp.reshape(x, (-1,))
    if what == 2:
        return xp.expand_dims(x, form // 9 % (x.ndim + 1))
    if what == 3 and x.ndim:
        return xp.flip(x, form // 9 % x.ndim)
    if what == 4 and x.ndim:
        return xp.roll(x, form // 9 % 5, form // 50 % x.ndim)
    if what == 5 and size(x) * 2 <= MOST:
        return xp.broadcast_to(x, (2, *x.shape))
    if what == 6 and x.ndim >= 2:
        return xp.swapaxes(x, 0, -1)
    if what == 7 and x.ndim and size(x) * 2 <= MOST:
        return xp.concatenate([x, xp.sin(x)], axis=form // 9 % x.ndim)
    if what == 8 and x.ndim == 2:
        return xp.tril(x) if form % 2 else xp.diagonal(x)
    return x[index_of(x, form)]


def _fits(shape, other):
    try:
        full = np.broadcast_shapes(shape, other)
    except ValueError:
        return False
    return math.prod(full) <= MOST


def _second(pool, x, step):
    fitting = [y for y in pool if _fits(x.shape, y.shape)]
    return fitting[step.second % len(fitting)]


def _product(xp, pool, x, step):
    fitting = [
        y for y in pool
        if x.ndim and y.ndim in (1, 2) and x.ndim <= 2 and x.shape[-1] == y.shape[0]
    ]  # fmt: skip
    if not fitting:
        return xp.sum(x) * 0.01 if x.ndim else x * 2.0
    return _bounded(xp, xp.matmul(x, fitting[step.second % len(fitting)]))


def _scanned(xp, x, step):
    if not x.ndim or not size(x):
        return x + 1.0
    axis = step.form % x.ndim
    if step.form // 3 % 2:
        return _bounded(xp, xp.cumsum(x, axis=axis))
    e = xp.exp(_bounded(xp, x))
    return e / xp.sum(e, axis=axis, keepdims=True)


def _branched(xp, pool, x, step):
    """Python's `if` on a value: a guard."""
    if not size(x):
        return x
    total = xp.sum(x)
    if step.form % 2:
        return x if total > 0.1 else xp.sin(x)
    return x * 0.5 if total > -0.3 else xp.cos(x)


class Writing:
    """Changes in place; a namespace of functions that return copies has other ones."""

    @staticmethod
    def put(xp, x, index, value):
        y = x + 0.0
        y[index] = value
        return y

    @staticmethod
    def add(xp, x, index, value):
        y = x * 1.0
        y[index] += value
        return y

    @staticmethod
    def through_view(xp, x, index, value):
        """Write through a view, then into the base, and read the view."""
        y = xp.sin(x)
        view = y[index]
        view += value
        y *= 2.0
        return y if x.ndim else view + y

    @staticmethod
    def read_after(xp, x, index, value):
        """What was computed from a value before it is changed keeps what it was."""
        y = xp.cos(x)
        before = xp.tanh(y)[index]
        view = y[index]
        y += 1.0
        return before + view + value


class Pure:
    """The same on arrays that cannot be changed, with `.at`."""

    @staticmethod
    def put(xp, x, index, value):
        return x.at[index].set(value)

    @staticmethod
    def add(xp, x, index, value):
        return x.at[index].add(value)

    @staticmethod
    def through_view(xp, x, index, value):
        y = xp.sin(x)
        view = y[index] + value
        y = y.at[index].set(view) * 2.0
        return y if x.ndim else view * 2.0 + y

    @staticmethod
    def read_after(xp, x, index, value):
        y = xp.cos(x)
        return xp.tanh(y)[index] + (y[index] + 1.0) + value


def basic(index):
    """An index that gives a view, and names no place twice."""
    return tuple(slice(0, 2) if isinstance(i, np.ndarray) else i for i in index)


def _written(xp, writing, x, step):
    index = index_of(x, step.form)
    kinds = (writing.put, writing.add, writing.through_view, writing.read_after)
    kind = step.second % 4
    index = basic(index)
    if x.ndim == 0:
        index = (...,)
    part = x[index]
    if not part.ndim:  # to NumPy no view but a number, to PyTorch a view
        kind %= 2
    value = xp.sum(x) * 0.1 if step.form % 2 else xp.cos(part) * 0.5
    if not size(part):
        value = 0.5
    return kinds[kind](xp, x, index, value)


def computed(steps, arrays, xp=np, writing=Writing):
    """All values of a program: the arguments, and one for each step."""
    pool = list(arrays)
    for step in steps:
        x = pool[-1 - step.first % min(len(pool), 12)]
        kind = step.what % 16
        if kind < 5:
            made = UNARY[step.form % len(UNARY)](xp, x)
        elif kind < 9:
            y = _second(pool, x, step)
            made = BINARY[step.form % len(BINARY)](xp, x, y)
        elif kind == 9:
            made = _reduce(xp, x, step)
        elif kind == 10:
            made = _moved(xp, x, step)
        elif kind == 11:
            made = x[index_of(x, step.form)]
        elif kind == 12:
            made = _product(xp, pool, x, step)
        elif kind == 13:
            made = _scanned(xp, x, step)
        elif kind == 14:
            made = _written(xp, writing, x, step)
        else:
            made = _branched(xp, pool, x, step)
        if size(made) > MOST:
            made = xp.sum(made) * 0.01
        pool.append(made)
    return pool


def total(pool, xp=np):
    """One number that all values of a program go into, each in its own measure."""
    found = xp.sum(xp.sin(pool[0])) * 1.0
    for k, x in enumerate(pool[1:]):
        found = found + (0.3 + 0.1 * (k % 7)) * xp.sum(xp.tanh(x))
    return found


@contextmanager
def tier(name):
    """Inside, programs are compiled at once, or what can be is interpreted."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TAPEGRAD_TIERED", str(int(name == "interpreted")))
        patch.setattr(lower, "LONG", 1)
        patch.setattr(lower, "LONG_TO_COMPILE", 0.0)
        yield


TIERS = "compiled", "interpreted"


def random_chain(count, seed=0):
    """A function of one array: so many operations on values before, then the sum of the last."""
    rng = random.Random(seed)
    steps = [(rng.randrange(4), rng.randrange(20), rng.randrange(20)) for _ in range(count)]

    def function(x):
        values = [x]
        for kind, first, second in steps:
            a, b = values[-1 - first % len(values)], values[-1 - second % len(values)]
            values.append((a * b * 0.5, (a + b) * 0.5, np.sin(a), np.exp(-a * a))[kind])
        return np.sum(sum(values[-20:]))

    return function

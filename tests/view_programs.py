"""Random programs of views, changes of shape in place, and writes through any of the Tensors.

One text runs on every library that has PyTorch's methods.  A step chooses, by numbers between 0 and
1, among what can be done with the Tensor that it chooses; values stay of moderate size.
"""

import random
from typing import NamedTuple

import numpy as np

KINDS = ("view", "view", "turn", "turn", "turn", "write", "write", "new")
SHAPES = ((2, 3), (3, 1), (1, 3), (2, 2), (2, 1, 3), (3, 3))


class Step(NamedTuple):
    """What is done, with which Tensor, in which way, and two numbers for that."""

    kind: str
    at: float
    way: float
    first: float
    second: float


class Program(NamedTuple):
    """The steps, the input, and whether PyTorch's storage is named, as by `as_strided`."""

    steps: tuple[Step, ...]
    data: np.ndarray
    strided: bool


def program(seed, *, strided=False):
    """The program of a number."""
    rng = random.Random(seed)
    draw = np.random.default_rng(seed)
    steps = [
        Step(rng.choice(KINDS), rng.random(), rng.random(), rng.random(), rng.random())
        for _ in range(3 + seed % 12)
    ]
    return Program(tuple(steps), draw.uniform(0.5, 1.5, rng.choice(SHAPES)), strided)


def drawn(make, shape, number):
    """A constant that follows from a number."""
    return make(np.random.default_rng(int(number * 1e9)).uniform(0.5, 1.5, tuple(shape)))


def run(program, make, x):
    """All Tensors of a program that begins with a Tensor and its first row."""
    found = [x, x[0]]
    for step in program.steps:
        for t in found:
            _ = t.grad_fn  # PyTorch forgets that a view has a history until it is asked for it
        t = _chosen(found, step.at)
        if step.kind == "view":
            found.append(_chosen(list(_views(t, step, program.strided)), step.way)())
        elif step.kind == "turn":
            _chosen(list(_turns(t, step, program.strided)), step.way)()
        elif step.kind == "write":
            _chosen(list(_writes(t, step, make, _chosen(found, step.first))), step.way)()
        else:
            found.append((t * drawn(make, t.shape, step.second)).contiguous())
    return found


def total(program, make, x):
    """A number that depends on all of them."""
    parts = [
        (t * drawn(make, t.shape, 0.01 * k)).sum() for k, t in enumerate(run(program, make, x))
    ]
    return sum(parts[1:], parts[0])


def _chosen(things, number):
    return things[int(number * len(things))]


def _views(t, step, strided):
    n = t.ndim
    d = int(step.first * max(n, 1))
    yield lambda: t[...]
    yield lambda: t.unsqueeze(int(step.first * (n + 1)))
    yield lambda: t.squeeze()
    if n:
        size = t.shape[d]
        k = int(step.second * size)
        yield lambda: t.select(d, k)
        yield lambda: t.narrow(d, k, size - k)
        yield lambda: t[::2]
        yield lambda: t.transpose(0, d)
    if n == 2 and t.shape[0] == t.shape[1]:
        yield lambda: t.diagonal()
    if t.is_contiguous():
        yield lambda: t.view(-1)
    if strided:
        yield lambda: t.as_strided((1 + int(step.first * (t.numel() - 1)),), (1,), 0)


def _turns(t, step, strided):
    n = t.ndim
    if n > 4:
        yield lambda: t.squeeze_()
        return
    d, e = int(step.first * max(n, 1)), int(step.second * max(n, 1))
    yield lambda: t.unsqueeze_(int(step.first * (n + 1)))
    yield lambda: t.squeeze_()
    yield lambda: t.squeeze_(d)
    yield lambda: t.squeeze_((0, n - 1) if n > 1 else ())
    yield lambda: t.transpose_(d, e)
    yield lambda: t.swapaxes_(d, e)
    if n <= 2:
        yield lambda: t.t_()
        yield lambda: t.t_()
    if strided and t._base is not None:
        yield lambda: t.as_strided_(tuple(t.shape)[::-1], tuple(t.stride())[::-1])
        yield lambda: t.as_strided_((1 + int(step.first * (t.numel() - 1)),), (1,), 0)


def _writes(t, step, make, other):
    yield lambda: t.mul_(drawn(make, t.shape, step.second))
    yield lambda: t.mul_(other.mean())
    yield lambda: t.add_(other.sum() * 0.1)
    if t.ndim:
        yield lambda: t.__setitem__(0, drawn(make, t.shape[1:], step.second))

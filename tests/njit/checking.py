"""Compare a reverse sweep with forward mode, and that with differences."""

import numpy as np
from numba import config

from tapegrad.njit import marshalling
from tapegrad.njit.evaluation import Evaluator

# With NUMBA_BOUNDSCHECK=1 the checks of a trip stay in it, and no table is made of what it reads.
BOUNDS_CHECKED = bool(config.BOUNDSCHECK)


def copied(args):
    return [x.copy() if isinstance(x, np.ndarray) else x for x in args]


def floats(args):
    """The numbers of the arguments whose leaves are floats, or complex numbers."""
    return tuple(
        k for k, x in enumerate(args) if all(_is_float(leaf) for leaf in marshalling.leaves(x))
    )


def _is_float(x):
    kinds = "fc"
    return isinstance(x, float | complex) or (isinstance(x, np.ndarray) and x.dtype.kind in kinds)


def directions(args, rng):
    """Tangents of the leaves of all arguments; None for what is no float."""
    found = []
    for x in args:
        for leaf in marshalling.leaves(x):
            known = _is_float(leaf)
            d = rng.normal(size=np.shape(leaf))[()] if known else None
            if np.iscomplexobj(leaf):
                d = d + 1j * rng.normal(size=np.shape(leaf))
            found.append(d)
    return found


def moved(args, along, step):
    """The arguments, moved a step along tangents."""
    rest = iter(along)

    def part(x):
        if isinstance(x, tuple):
            return tuple([part(y) for y in x])
        d = next(rest)
        if d is None:
            return x.copy() if isinstance(x, np.ndarray) else x
        return x + step * d

    return [part(x) for x in args]


def difference(f, args, along, step=1e-6):
    """The derivative along tangents by differences of the fourth order."""
    near = f(*moved(args, along, step)) - f(*moved(args, along, -step))
    far = f(*moved(args, along, 2 * step)) - f(*moved(args, along, -2 * step))
    return (8 * near - far) / (12 * step)


def check(f, args, *, differences=True, compiled=False, tolerance=1e-9):
    """Hold the gradient of a function that returns a number against forward mode.

    `compiled`: the function computes something else in Python.
    """
    primal = f if compiled else f.py_func
    along = directions(args, np.random.default_rng(7))
    evaluator, chosen = Evaluator(f, "grad"), floats(args)
    before = copied(args)
    found = evaluator.run(args, chosen)
    forward = evaluator.run(args, (), directions=along)
    np.testing.assert_equal(args, before)
    expected = primal(*copied(args))
    scale = 1e-3 * tolerance * (1 + abs(expected))
    assert abs(found.value - expected) <= scale
    assert abs(forward.value - expected) <= scale
    of_chosen = [d for d in along if d is not None]
    dot = sum(np.sum(np.conj(g) * d).real for g, d in zip(found.gradients, of_chosen, strict=True))
    sizes = [np.max(np.abs(g), initial=0.0) for g in found.gradients]
    size = max([1e-12, abs(forward.tangent), *sizes])
    assert abs(dot - forward.tangent) <= tolerance * size
    if differences:
        slope = difference(primal, copied(args), along)
        assert abs(slope - forward.tangent) <= 2e-5 * size

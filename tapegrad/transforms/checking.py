"""`check_grads`: derivatives of a function against differences, to any order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.tensor import Tensor
from tapegrad.transforms.call_arguments import name_of
from tapegrad.transforms.forward import jvp
from tapegrad.transforms.pytree import flatten, unflatten
from tapegrad.transforms.reverse import vjp


def _array(x: Any) -> np.ndarray:
    found = np.asarray(x._a if isinstance(x, Tensor) else x)
    return found if found.dtype.kind == "c" else found.astype(float)


def _inner(a: Any, b: Any) -> float:
    """The inner product; of complex numbers that of their real and imaginary parts."""
    pairs = zip(flatten(a)[0], flatten(b)[0], strict=True)
    return float(sum(np.sum((np.conj(_array(x)) * _array(y)).real) for x, y in pairs))


def _shifted(args: Any, direction: Any, step: float) -> Any:
    leaves, tree = flatten(args)
    steps = flatten(direction)[0]
    return unflatten(tree, [
        float(x + step * d) if isinstance(x, float) else x + step * d
        for x, d in zip(leaves, steps, strict=True)
    ])  # fmt: skip


def _like(x: Any, rng: np.random.Generator) -> Any:
    leaves, tree = flatten(x)
    drawn = [_drawn(_array(leaf), rng) for leaf in leaves]
    return unflatten(tree, [d if d.ndim else d.item() for d in drawn])


def _drawn(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    real = np.asarray(rng.standard_normal(x.shape))
    if x.dtype.kind != "c":
        return real
    return np.asarray(real + 1j * rng.standard_normal(x.shape))


def check_grads(
    f: Callable[..., Any], args: Sequence[Any], order: int = 2,
    modes: Sequence[str] = ("fwd", "rev"), eps: float = 1e-5, atol: float = 1e-6,
    rtol: float = 1e-5,
) -> None:  # fmt: skip
    """Compare the derivatives of `f` at `args` with central differences; raise where they differ.

    Parameters
    ----------
    order : how often `f` is differentiated.
    modes : "fwd", "rev" or both; higher orders mix them.
    eps, atol, rtol : the step of the differences, and how far from them is still right.

    >>> import numpy as np, tapegrad as tg
    >>> tg.check_grads(lambda x: np.sin(x) * x, (np.array([0.5, 1.0]),), order=2)
    """
    args = tuple(args)
    unknown = set(modes) - {"fwd", "rev"}
    if unknown or not modes:
        raise ValueError(f"`check_grads`: modes are 'fwd' and 'rev', got {tuple(modes)!r}")
    rng = np.random.default_rng(0)
    direction = _like(args, rng)
    ahead, behind = f(*_shifted(args, direction, eps)), f(*_shifted(args, direction, -eps))
    value = f(*args)
    weights = _like(value, rng)
    expected = (_inner(ahead, weights) - _inner(behind, weights)) / (2 * eps)
    for mode in modes:
        if mode == "fwd":
            found = _inner(jvp(f, args, direction)[1], weights)
        else:
            found = _inner(vjp(f, *args)[1](weights), direction)
        if not np.isclose(found, expected, rtol=rtol, atol=atol):
            raise AssertionError(
                f"`check_grads`: in mode {mode!r} the derivative of {name_of(f)} along a random "
                f"direction is {found:.10g}, by differences it is {expected:.10g}"
            )
    if order > 1:
        for mode in modes:
            if mode == "fwd":
                slope: Callable[..., Any] = lambda *xs: jvp(f, xs, direction)[1]
            else:
                slope = lambda *xs: vjp(f, *xs)[1](weights)
            slope.__name__ = f"d{name_of(f)}"
            check_grads(slope, args, order - 1, modes, eps, atol, rtol)

"""Checking derivatives against central differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.autograd.engine import grad
from tapegrad.tensor import Tensor, wrap


class GradcheckError(RuntimeError):
    """A derivative that differs from the differences, or cannot be checked."""


def _tuple(x: Any) -> tuple[Any, ...]:
    return (x,) if isinstance(x, Tensor) else tuple(x)


def _differentiable(found: Any) -> list[Tensor]:
    return [o for o in _tuple(found) if isinstance(o, Tensor) and o._a.dtype.kind == "f"]


def _numerical(func: Any, inputs: tuple[Any, ...], k: int, eps: float) -> list[np.ndarray]:
    """For each output, the matrix of its derivatives in input k, by central differences."""
    x = inputs[k]._a
    columns: list[list[np.ndarray]] = []
    for place in np.ndindex(x.shape):
        before = x[place]
        sides = []
        for step in (eps, -eps):
            x[place] = before + step
            sides.append(
                [o._a.astype(np.float64).ravel().copy() for o in _differentiable(func(*inputs))]
            )
        x[place] = before
        columns.append([(a - b) / (2 * eps) for a, b in zip(*sides, strict=True)])
    outputs = len(columns[0]) if columns else len(_differentiable(func(*inputs)))
    return [np.array([column[j] for column in columns]) for j in range(outputs)]


def _analytical(out: Tensor, x: Tensor) -> np.ndarray:
    rows = []
    for i in range(out._a.size):
        seed = np.zeros(out._a.size, out._a.dtype)
        seed[i] = 1
        if not out.requires_grad:
            rows.append(np.zeros(x._a.size))
            continue
        weights = wrap(seed.reshape(out._a.shape))
        (g,) = grad(out, x, weights, retain_graph=True, allow_unused=True)
        rows.append(np.zeros(x._a.size) if g is None else g._a.astype(np.float64).ravel())
    return np.array(rows).reshape(out._a.size, x._a.size).T


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    fast_mode: bool = False,
    **ignored: Any,
) -> bool:
    """Whether the gradients of `func` agree with central differences.

    The inputs that require grad should be float64; they are changed and restored.

    >>> import tapegrad as tg
    >>> x = tg.tensor([0.5, 1.0], requires_grad=True)
    >>> tg.autograd.gradcheck(lambda x: x.sin() * x, (x,))
    True
    """
    inputs = _tuple(inputs)
    try:
        _check(func, inputs, eps, atol, rtol, nondet_tol)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _check(
    func: Any, inputs: tuple[Any, ...], eps: float, atol: float, rtol: float, nondet: float
) -> None:
    chosen = [k for k, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]
    if not chosen:
        raise ValueError("`gradcheck` needs at least one input that requires grad")
    for k in chosen:
        a = inputs[k]._a
        if 0 in a.strides and a.size > 1:
            raise GradcheckError(
                f"input {k} of `gradcheck` has overlapping memory (it is expanded): clone it first"
            )
    outputs = _differentiable(func(*inputs))
    if not outputs:
        return
    for k in chosen:
        numerical = _numerical(func, inputs, k, eps)
        for j, out in enumerate(outputs):
            analytical = _analytical(out, inputs[k])
            if nondet < float("inf") and out.requires_grad:
                again = _analytical(out, inputs[k])
                if not np.allclose(analytical, again, rtol=0, atol=nondet, equal_nan=True):
                    raise GradcheckError(
                        f"the gradient of output {j} in input {k} is nondeterministic: two "
                        "sweeps differ"
                    )
            expected = numerical[j].reshape(analytical.shape)
            if not np.allclose(analytical, expected, rtol, atol, equal_nan=True):
                raise GradcheckError(
                    f"Jacobian mismatch for output {j} with respect to input {k}:\n"
                    f"numerical:\n{expected}\nanalytical:\n{analytical}"
                )


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    **ignored: Any,
) -> bool:
    """Whether second derivatives agree with central differences of the first ones.

    >>> import tapegrad as tg
    >>> x = tg.tensor([0.5, 1.0], requires_grad=True)
    >>> tg.autograd.gradgradcheck(lambda x: x.sin() * x, (x,))
    True
    """
    inputs = _tuple(inputs)
    outputs = _differentiable(func(*inputs))
    if grad_outputs is None:
        rng = np.random.default_rng(0)
        weights = [wrap(np.asarray(rng.standard_normal(o._a.shape), o._a.dtype)) for o in outputs]
        for w in weights:
            w.requires_grad_()
    else:
        weights = list(_tuple(grad_outputs))
    count = len(inputs)

    def first(*args: Any) -> tuple[Tensor, ...]:
        xs, ws = args[:count], args[count:]
        outs = _differentiable(func(*xs))
        live = [(o, w) for o, w in zip(outs, ws, strict=True) if o.requires_grad]
        wanted = [x for x in xs if isinstance(x, Tensor) and x.requires_grad]
        found = grad(
            [o for o, _ in live], wanted, [w for _, w in live], create_graph=True, allow_unused=True
        )
        return tuple(g for g in found if g is not None)

    return gradcheck(
        first, (*inputs, *weights), eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception,
        nondet_tol=nondet_tol,
    )  # fmt: skip

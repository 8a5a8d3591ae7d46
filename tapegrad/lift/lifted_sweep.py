"""`autograd.grad` and `backward` on Tensors under a transform, and with batches of weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.autograd.engine import gradients
from tapegrad.lift.batch import Map, all_of, batched
from tapegrad.lift.dual import Dual
from tapegrad.lift.gradient_targets import depends, plain
from tapegrad.lift.levels import level
from tapegrad.lift.lifted_tensor import Lifted, highest, pull
from tapegrad.tensor import Tensor, wrap


def lifted_grad(
    roots: list[Tensor], given: Any, inputs: list[Tensor], *, recorded: bool, retain: bool,
    batches: bool,
) -> list[Tensor | None]:  # fmt: skip
    """`grad` where a Tensor is lifted, or the weights are batches; None for what was not used."""
    for what, group in (("a root", roots), ("one of the `inputs`", inputs)):
        if not all(t.requires_grad for t in group):
            raise RuntimeError(
                f"{what} of `grad` does not require grad and does not have a grad_fn: inside a "
                "transform (`vmap`, `jvp`) call `tapegrad.grad` or `tapegrad.func.grad` on a "
                "function instead"
            )
    weights = [None] * len(roots) if given is None else given
    weights = [weights] if isinstance(weights, Tensor) else list(weights)
    if len(weights) != len(roots):
        raise RuntimeError(
            f"`grad` got {len(roots)} roots and {len(weights)} `grad_outputs`: give one for each"
        )
    if batches:
        return _by_batches(roots, weights, inputs, recorded, retain)
    return _swept(
        roots,
        [_weight(root, w) for root, w in zip(roots, weights, strict=True)],
        inputs, recorded, retain,
    )  # fmt: skip


def _weight(root: Tensor, w: Tensor | None) -> Tensor:
    if w is None:
        if root._a.size != 1:
            raise RuntimeError(
                "grad can be implicitly created only for scalar outputs, this root of `grad` has "
                f"the shape {root._a.shape}: reduce it (`.sum()`), or pass `grad_outputs`"
            )
        return wrap(np.ones(root._a.shape, root._a.dtype))
    _check(root, w, 0)
    return w.to(root.dtype)


def _check(root: Tensor, w: Any, batches: int) -> None:
    """Refuse a weight whose shape, after batch dimensions, is not that of its root."""
    if not isinstance(w, Tensor):
        raise TypeError(f"`grad_outputs` takes Tensors or None, got {type(w).__name__}")
    if w._a.shape[batches:] != root._a.shape:
        behind = " behind its first dimension" if batches else ""
        raise RuntimeError(
            f"Mismatch in shape: `grad_outputs` of `grad` has the shape {w._a.shape[batches:]}"
            f"{behind}, its root has {root._a.shape}"
        )


def _by_batches(
    roots: list[Tensor], weights: list[Any], inputs: list[Tensor], recorded: bool, retain: bool
) -> list[Tensor | None]:
    """One product for each entry along the first dimension of the weights."""
    for root, w in zip(roots, weights, strict=True):
        if w is None or (isinstance(w, Tensor) and not w._a.ndim):
            raise ValueError(
                "`grad` with `is_grads_batched=True`: every one of `grad_outputs` needs a "
                "dimension in front of those of its root"
            )
        _check(root, w, 1)
    sizes = {w._a.shape[0] for w in weights}
    if len(sizes) > 1:
        raise ValueError(
            "`grad` with `is_grads_batched=True`: the first dimensions of `grad_outputs` differ: "
            f"{sorted(sizes)}"
        )
    with level(Map(sizes.pop())) as at:
        seeds = [batched(w.to(root.dtype), at) for root, w in zip(roots, weights, strict=True)]
        found = _swept(roots, seeds, inputs, recorded, retain)
        return [None if g is None else all_of(g, at) for g in found]


def _swept(
    roots: list[Tensor], weights: list[Any], inputs: list[Tensor], recorded: bool, retain: bool
) -> list[Tensor | None]:
    if highest((*roots, *inputs)) is None:
        return gradients(roots, weights, inputs, recorded=recorded, retain=retain)
    bases = [part for root in roots for part in _all_parts(root)]
    used = [any(depends(base, plain(x)) for base in bases) for x in inputs]
    found = pull(roots, weights, inputs, recorded=recorded, retain=retain)
    return [g if u else None for g, u in zip(found, used, strict=True)]


def _all_parts(t: Tensor) -> list[Tensor]:
    if not isinstance(t, Lifted) or t._lift.at.traces:
        return [t]
    return [x for part in t.parts() for x in _all_parts(part)]


def lifted_backward(
    roots: list[Tensor], given: Any, inputs: list[Tensor] | None
) -> tuple[list[Tensor], Any, list[Tensor] | None]:
    """Replace duals at a level that the user entered by their values, for `backward` to sweep."""
    if any(isinstance(t, Lifted) for t in inputs or ()):
        raise RuntimeError("`backward`: `inputs` must be leaves, not Tensors under a transform")
    weights = [given] if isinstance(given, Tensor) else given
    if weights is not None:
        weights = [w if w is None else _value(w) for w in weights]
    return [_value(r) for r in roots], weights, inputs


def _value(t: Tensor) -> Tensor:
    while isinstance(t, Lifted):
        if not isinstance(t, Dual) or t._lift.at.members is None:
            raise RuntimeError(
                f"`backward` was called on a Tensor under {t._what}: a transform gives gradients "
                "as results; call `tapegrad.grad` or `tapegrad.func.vjp` on a function instead"
            )
        t = t._lift.primal
    return t

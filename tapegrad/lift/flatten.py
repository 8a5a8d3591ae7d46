"""Flatten a lifted Tensor to the Tensors that no open transform has lifted.

A loop or a branch of a compiled program carries these *bare* parts.  A `Layer` is the structure of
a Tensor over them; it is None for one that is bare itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from tapegrad.lift.batch import Batched, all_of, batched
from tapegrad.lift.dual import Dual, dual, split
from tapegrad.lift.levels import Level
from tapegrad.lift.lifted_tensor import Lifted, zeros_like
from tapegrad.tensor import Tensor


class Layer(NamedTuple):
    """The level at which a Tensor is lifted, and what its parts are in turn."""

    at: Level
    kind: type[Lifted]
    parts: tuple[Layer | None, ...]


def layer_of(t: Any) -> Layer | None:
    """The layers of a Tensor."""
    if not isinstance(t, Lifted) or t._lift.at.traces:
        return None
    return Layer(t._lift.at, type(t), tuple([layer_of(part) for part in t.parts()]))


def joined(a: Layer | None, b: Layer | None) -> Layer | None:
    """The join of two layers: the least that Tensors of both fit."""
    if a is None or b is None:
        return a or b
    if a.at.number < b.at.number:
        a, b = b, a
    if a.at is not b.at:  # a value without a tangent, or the same for all examples
        return a._replace(parts=(joined(a.parts[0], b), *a.parts[1:]))
    parts = [joined(p, q) for p, q in zip(a.parts, b.parts, strict=True)]
    return a._replace(parts=tuple(parts))


def parts_of(t: Tensor, layer: Layer | None) -> list[Tensor]:
    """The bare parts of a Tensor, as many as a layer not less than its own has."""
    if layer is None:
        return [t]
    if layer.kind is Batched:
        return parts_of(all_of(t, layer.at), layer.parts[0])
    value, slope = split(t, layer.at)
    slope = zeros_like(value) if slope is None else slope
    return [*parts_of(value, layer.parts[0]), *parts_of(slope, layer.parts[1])]


def together(parts: Iterator[Tensor], layer: Layer | None) -> Tensor:
    """The Tensor of some bare parts."""
    if layer is None:
        return next(parts)
    if layer.kind is Batched:
        return batched(together(parts, layer.parts[0]), layer.at)
    value = together(parts, layer.parts[0])
    return dual(value, together(parts, layer.parts[1]), layer.at)


def heights(layer: Layer | None, above: int = 0) -> list[int]:
    """The number of leading batch dimensions of each bare part."""
    if layer is None:
        return [above]
    above += layer.kind is Batched
    return [n for part in layer.parts for n in heights(part, above)]


def differs(t: Any) -> bool:
    """Whether a value may differ between the examples of a map."""
    while isinstance(t, Dual):
        t = t._lift.primal
    return isinstance(t, Batched)

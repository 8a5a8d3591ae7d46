"""Schedule scans as nests that read what they wrote one element before."""

from __future__ import annotations

from typing import Any

from tapegrad.compiler.ir.buffers import Place
from tapegrad.compiler.ir.graph import Node
from tapegrad.compiler.ir.loop_nest import SET, Nest, Store, Term
from tapegrad.ops.core import Op
from tapegrad.ops.scan import decay


def _steps(op: Op) -> list[tuple[str, tuple[int, ...]]]:
    """The terms that combine the element before (the first load) with those of the operands."""
    if op is decay:
        return [("strong", (~0, ~1)), (op.scans, (~2, 0))]
    return [(op.scans, (~0, ~1))]


def _slice(place: Place, dim: int, start: int, count: int) -> Place:
    """A slice of a window along one dimension."""
    shape = (*place.shape[:dim], count, *place.shape[dim + 1 :])
    return place._replace(offset=place.offset + start * place.strides[dim], shape=shape)


def _turned(place: Place, dim: int) -> Place:
    """A window with a dimension reversed."""
    step = place.strides[dim]
    strides = (*place.strides[:dim], -step, *place.strides[dim + 1 :])
    return place._replace(offset=place.offset + (place.shape[dim] - 1) * step, strides=strides)


def scan(node: Node, operands: list[Place], out: Place) -> tuple[Place, Place, Nest | None]:
    """The first element, where it goes, and the nest that makes the others."""
    assert node.op is not None
    params: dict[str, Any] = node.params
    dim = params["dim"]
    if not out.shape:
        return operands[-1], out, None
    back = params.get("reverse", node.name == "rcumsum")
    if back:
        operands = [_turned(x, dim) for x in operands]
        out = _turned(out, dim)
    first = _slice(operands[-1], dim, 0, 1), _slice(out, dim, 0, 1)
    more = out.shape[dim] - 1
    if not more:
        return *first, None
    # Backwards a factor is at the index of the element that it multiplies.
    starts = [0 if back else 1, 1] if node.op is decay else [1]
    loads = [_slice(x, dim, k, more) for x, k in zip(operands, starts, strict=True)]
    domain = loads[-1].shape
    dtype = out.buffer.dtype
    # Constants in a rule may have changed an operand's precision.
    casts = [Term("to", (~(k + 1),), dtype) for k in range(len(loads))]
    count = len(casts)
    steps = [
        Term(name, tuple([a + count if a >= 0 else ~a - 1 if a < ~0 else a for a in args]), dtype)
        for name, args in _steps(node.op)
    ]
    store = Store(count + len(steps) - 1, _slice(out, dim, 1, more), SET)
    loads = [_slice(out, dim, 0, more), *loads]
    return *first, Nest(domain, tuple(loads), (*casts, *steps), (store,))

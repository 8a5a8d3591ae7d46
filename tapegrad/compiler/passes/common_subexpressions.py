"""Eliminate common subexpressions, fold constants, apply identities of IEEE arithmetic.

One pass does all three, since each makes work for the others.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from tapegrad.compiler.ir.buffers import WINDOWS
from tapegrad.compiler.ir.graph import Builder, Graph, Node
from tapegrad.ops.core import ELEMENTWISE, Op
from tapegrad.ops.elementwise import div, exact, mul, neg, strong, where
from tapegrad.ops.shape import PASSES

FOLDED = 1 << 14  # elements up to which a result is folded to a constant
SHORT = 64  # elements up to which a constant is its own key


def simplified(graph: Graph) -> Graph:
    """Compute every value once, and none that is constant."""
    builder = Builder(graph)
    places, made = builder.where, builder.nodes
    known: dict[Any, int] = {}
    constants: set[int] = set()
    found: int | None
    for position, old in enumerate(graph.nodes):
        node, op, args = old, old.op, old.args
        if op is not None and args:
            args = (places[args[0]],) if len(args) == 1 else tuple([places[a] for a in args])
            if args != node.args:
                node = node.on(args)
            plain = op.kind is ELEMENTWISE and op is not neg and not node.params
            if plain and constants.isdisjoint(args):  # nothing to fold, no identity
                found = known.setdefault((op, args), len(made))
                if found == len(made):
                    made.append(node)
                places[position] = found
                continue
        found = _same_as(builder, node)
        if found is None:
            node = _folded(builder, node)
            key = key_of(node)
            found = None if key is None else known.get(key)
            if found is None:
                found = builder.add(node)
                if node.value is not None:
                    constants.add(found)
                if key is not None:
                    known[key] = found
        places[position] = found
    return builder.done()


def key_of(node: Node) -> Any:
    """The value-numbering key of a record; None where equal records may differ."""
    if node.value is not None:
        value = node.value
        if node.uniform:
            return (value.dtype.str, value.shape, value.flat[0].tobytes(), "uniform")
        content = value.tobytes() if value.size <= SHORT else _digest(value)
        return (value.dtype.str, value.shape, content)
    if node.op is None or not isinstance(node.op, Op):
        return None
    if not node.params:
        return (node.op, node.args)
    try:
        key = (node.op, node.args, tuple(node.params.items()))
        hash(key)
    except TypeError:
        return (node.op, node.args, repr(node.params))
    return key


def _digest(value: np.ndarray) -> bytes:
    """What tells a constant from all others."""
    return hashlib.blake2b(np.ascontiguousarray(value).data, digest_size=32).digest()


def _folded(builder: Builder, node: Node) -> Node:
    """Fold a record whose operands are constants."""
    if node.value is not None:
        return _constant(node, node.value)
    if not node.args or not isinstance(node.op, Op):
        return node
    nodes = builder.nodes
    if any(nodes[a].value is None for a in node.args):
        return node
    operands = [nodes[a] for a in node.args]
    values = [x.value for x in operands if x.value is not None]
    if node.size and all(x.uniform for x in operands):
        first = [v[(0,) * v.ndim] for v in values]
        if node.moves in WINDOWS and node.moves != "chain":  # which may show more than its operand
            return _constant(node, np.broadcast_to(first[0], node.shape))
        if node.op.kind is ELEMENTWISE:
            with np.errstate(all="ignore"):
                one = np.asarray(node.op.forward(*map(np.asarray, first), **node.params))
            return _constant(node, np.broadcast_to(one.astype(node.dtype), node.shape))
    if node.size > FOLDED:
        return node
    with np.errstate(all="ignore"):
        value = np.asarray(node.op.forward(*values, **node.params))
    return node if value.shape != node.shape else _constant(node, value)


def _constant(node: Node, value: np.ndarray) -> Node:
    """A constant; one of equal elements is stored once and broadcast."""
    found = Node(None, (), {}, node.shape, node.dtype, value)
    if value.dtype == node.dtype and found.uniform:
        return found
    value = np.ascontiguousarray(value, node.dtype).reshape(node.shape)
    if value.size > 1 and value.dtype.kind in "biuf":
        bits = value.reshape(-1).view(f"u{value.itemsize}")
        if (bits == bits[0]).all():
            value = np.broadcast_to(value[(0,) * value.ndim], node.shape)
    return Node(None, (), {}, node.shape, node.dtype, value)


def _number(node: Node) -> float | None:
    """The number that all elements of a constant equal."""
    if not node.uniform or node.dtype.kind not in "biuf":
        return None
    assert node.value is not None
    return float(node.value.flat[0])


def _forward(part: Any) -> bool:
    """Whether a part of an index is a slice that does not reverse, or stands for such slices."""
    return part is ... or (isinstance(part, slice) and (part.step is None or part.step > 0))


def _same_as(builder: Builder, node: Node) -> int | None:
    """An operand equal to the result, bit for bit but for the sign of a zero or a NaN."""
    op, args = node.op, node.args
    if op is None or not args:
        return None
    name, first = op.name, builder.nodes[args[0]]
    if op.kind is ELEMENTWISE:
        if name == "neg":
            return first.args[0] if first.op is op else None
        if op is where:
            known = _number(first)
            chosen = None if known is None else args[1 if known else 2]
            same = chosen is not None and builder.nodes[chosen].spec == node.spec
            return chosen if same else None
        return _times_one(builder, node, op) if op in (mul, strong, exact, div) else None
    if (first.shape, first.dtype) != (node.shape, node.dtype):
        return None
    if (
        name in ("to", "sum_to")
        or node.moves in PASSES
        or (name == "permute" and node.params["dims"] == tuple(range(len(node.shape))))
        or (name == "getitem" and all(map(_forward, node.params["index"])))
        or (name == "sum" and not node.params["dim"])
    ):
        return args[0]
    return None


def _times_one(builder: Builder, node: Node, op: Op) -> int | None:
    """The operand that is multiplied with ones, or divided by them."""
    a, b = node.args
    first, second = builder.nodes[a], builder.nodes[b]
    if first.value is None and second.value is None:
        return None
    if op is not div and _number(first) == 1.0 and second.spec == node.spec:
        return b
    return a if _number(second) == 1.0 and first.spec == node.spec else None

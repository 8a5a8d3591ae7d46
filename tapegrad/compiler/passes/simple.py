"""Common subexpressions, known constants, and identities that hold in IEEE arithmetic.

One walk does all three, since each makes work for the others.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.compiler.graph import Builder, Graph, Node
from tapegrad.ops.core import ELEMENTWISE, Op

FOLDED = 1 << 14  # elements up to which a constant result is kept in place of its computation
# Operations that change nothing but who may write into the memory.
COPIES = frozenset(("clone", "contiguous", "alias"))


def simplified(graph: Graph) -> Graph:
    """The graph with every value computed once, and none that is known."""
    builder = Builder(graph)
    known: dict[Any, int] = {}
    for position, old in enumerate(graph.nodes):
        node = builder.moved(old)
        found = _same_as(builder, node)
        if found is None:
            node = _folded(builder, node)
            key = _key(node)
            found = None if key is None else known.get(key)
            if found is None:
                found = builder.add(node)
                if key is not None:
                    known[key] = found
        builder.where[position] = found
    return builder.done()


def _key(node: Node) -> Any:
    """What two records that compute the same have in common; None for those that never do."""
    if node.value is not None:
        value = node.value
        return (value.dtype.str, value.shape, value.tobytes()) if value.size <= 64 else None
    if node.op is None or not isinstance(node.op, Op):
        return None
    try:
        key = (node.op, node.args, tuple(node.params.items()))
        hash(key)
    except TypeError:
        return (node.op, node.args, repr(node.params))
    return key


def _folded(builder: Builder, node: Node) -> Node:
    """A record of constants as a constant."""
    if not node.args or not isinstance(node.op, Op) or node.size > FOLDED:
        return node
    values = [builder.nodes[a].value for a in node.args]
    if any(v is None for v in values):
        return node
    with np.errstate(all="ignore"):
        value = np.asarray(node.op.forward(*values, **node.params))
    if value.shape != node.shape:
        return node
    value = np.ascontiguousarray(value, node.dtype)
    return Node(None, (), {}, node.shape, node.dtype, value.reshape(node.shape))


def _number(node: Node) -> float | None:
    """The one number that all elements of a constant are."""
    value = node.value
    if value is None or not value.size or value.dtype.kind not in "biuf":
        return None
    first = value.flat[0]
    if value.size > 1 and not (value == first).all():
        return None
    return float(first)


def _same_as(builder: Builder, node: Node) -> int | None:
    """An operand that the result is equal to, bit for bit but for the sign of a zero or a NaN."""
    if node.op is None or not node.args:
        return None
    name, args = node.name, node.args
    first = builder.nodes[args[0]]
    alike = first.shape == node.shape and first.dtype == node.dtype
    if alike and (name in COPIES or name in ("to", "expand", "reshape", "sum_to", "squeeze")):
        return args[0]
    if alike and name == "permute" and node.params["dims"] == tuple(range(len(node.shape))):
        return args[0]
    if alike and name == "sum" and not node.params["dim"]:
        return args[0]
    if name == "neg" and first.name == "neg":
        return first.args[0]
    if node.op.kind is not ELEMENTWISE or len(args) != 2:
        return None
    second = builder.nodes[args[1]]
    if name in ("mul", "strong", "exact"):
        if _number(first) == 1.0 and (second.shape, second.dtype) == (node.shape, node.dtype):
            return args[1]
        if alike and _number(second) == 1.0:
            return args[0]
    if alike and name == "div" and _number(second) == 1.0:
        return args[0]
    return None

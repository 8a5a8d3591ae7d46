"""Sparsity patterns of tangents and adjoints that come in batches, a row for each direction.

`jacfwd` and `jacrev` begin with unit vectors, constants of the program.  What linear operations
make of them has zeros by construction where a value does not depend on a direction.  A pattern says
of each element which directions it depends on: their numbers, from 1 on, in an array of as many
rows as an element has at most, filled up by 0.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import numpy as np

from tapegrad.compiler.ir.graph import Graph, Node
from tapegrad.ops import elementwise as e
from tapegrad.ops.core import ELEMENTWISE, Op
from tapegrad.ops.linalg import product
from tapegrad.ops.shape import to

LEAST, MOST = 8, 1 << 12  # directions of a batch that is looked at
ELEMENTS = 1 << 22  # up to which a value is
SHARED = 64  # most directions that an element may depend on
FEWER = 2  # and it may depend on one of so many
# Multiplications up to which a record is run to see what becomes of zeros; beyond that only if an
# operand is a constant of which one element of so many differs from zero.
WORK, SPARSE = 1 << 26, 4
UNKNOWN = ("parts", "storage", "chain")  # of `Op.moves`: what depends on types, or on memory


class Patterns(NamedTuple):
    """The patterns of some records, and in which of their operands these are linear.

    Records that are `fixed` consist of elements of constants.
    """

    of: dict[int, np.ndarray]
    linear_in: dict[int, tuple[bool, ...]]
    fixed: set[int]


def patterns_of(graph: Graph) -> Patterns:
    """The patterns of the values that are linear in a batch of directions, where these are few."""
    found = Patterns({}, {}, set())
    for position, node in enumerate(graph.nodes):
        if node.value is not None or (node.moves and found.fixed.issuperset(node.args)):
            found.fixed.add(position)
        if node.shape and LEAST <= node.shape[0] <= MOST and 0 < node.size <= ELEMENTS:
            known = _known(graph, node, found)
            pattern = None if node.dtype.kind not in "fc" else _found(graph, node, known, found)
            if pattern is not None:
                found.of[position] = pattern
                found.linear_in[position] = tuple([own is not None for own in known])
    return found


def moves_alone(node: Node) -> bool:
    """Whether a record only moves elements, and puts zeros around them, whatever these are."""
    op = node.op
    known = isinstance(op, Op) and op.jointly_linear and "chain" not in node.params
    return known and bool(node.moves) and node.moves not in UNKNOWN and "add" not in node.moves


def of_rows(node: Node, count: int) -> Node:
    """A record on another number of rows."""
    shape = (count, *node.shape[1:])
    params = {**node.params, "shape": shape} if "shape" in node.params else node.params
    return Node(node.op, node.args, params, shape, node.dtype)


def dense(pattern: np.ndarray, count: int) -> np.ndarray:
    """Which elements of so many rows depend on the direction of the row."""
    found = np.zeros((count + 1, *pattern.shape[1:]), bool)
    np.put_along_axis(found, pattern, True, 0)
    return found[1:]


def _pattern(differs: np.ndarray) -> np.ndarray | None:
    """The pattern of rows that differ from zero in some elements; None if these are many."""
    flat = differs.reshape(len(differs), -1)
    counts = np.count_nonzero(flat, 0)
    most = int(counts.max(initial=0))
    if most > SHARED or most * FEWER > len(flat):
        return None
    elements, directions = np.nonzero(flat.T)
    ranks = np.arange(len(elements)) - np.repeat(np.cumsum(counts) - counts, counts)
    found = np.zeros((most, flat.shape[1]), np.int64)
    found[ranks, elements] = directions + 1
    return found.reshape(most, *differs.shape[1:])


def _of_constant(node: Node) -> np.ndarray | None:
    value = node.value
    assert value is not None
    first = value.reshape(len(value), -1)[:, :1]
    if np.count_nonzero(first) * FEWER > len(value):
        return None
    pattern = _pattern(value != 0)
    return pattern if pattern is not None and np.isfinite(value).all() else None


def _known(graph: Graph, node: Node, found: Patterns) -> list[np.ndarray | None]:
    """The patterns of operands; of a product of two that have one, that of what is no constant."""
    operands = [graph.nodes[a] for a in node.args]
    known = [
        found.of.get(a) if x.shape[:1] == node.shape[:1] else None
        for a, x in zip(node.args, operands, strict=True)
    ]
    if node.op is product and len(known) == sum(p is not None for p in known):
        return [None if a in found.fixed else p for a, p in zip(node.args, known, strict=True)]
    return known


def _as_constant(graph: Graph, position: int, found: Patterns) -> Node:
    """A record, or the constant that it is."""
    node = graph.nodes[position]
    if node.value is not None or position not in found.fixed:
        return node
    assert node.op is not None
    values = [_as_constant(graph, a, found).value for a in node.args]
    value = np.asarray(node.op.forward(*values, **node.params))
    return Node(None, (), {}, node.shape, node.dtype, value)


def _found(
    graph: Graph, node: Node, known: list[np.ndarray | None], found: Patterns
) -> np.ndarray | None:
    """The pattern of a record, if it has one."""
    if node.value is not None:
        return _of_constant(node)
    operands = [graph.nodes[a] for a in node.args]
    given = [pattern for pattern in known if pattern is not None]
    others = [x for x, pattern in zip(operands, known, strict=True) if pattern is None]
    if not given or not isinstance(node.op, Op) or not _keeps_zeros(node.op, operands, known):
        return None
    if node.op.kind is not ELEMENTWISE and not moves_alone(node):
        pairs = zip(node.args, operands, known, strict=True)
        arrays = [x if p is not None else _as_constant(graph, a, found) for a, x, p in pairs]
        return _computed(node, arrays, known)
    if any(len(x.shape) == len(node.shape) and x.shape[0] > 1 for x in others):
        return None  # each row may meet another one
    if node.op.kind is not ELEMENTWISE:
        return _moved(node, operands, known)
    finite = node.op is e.exact or (node.op is e.strong and node.args[0] in found.fixed)
    if finite and any(map(_is_zero, others)):
        given = [np.zeros((0, *node.shape[1:]), np.int64)]
    return _united(given, node.shape[1:])


def _is_zero(node: Node) -> bool:
    return node.value is not None and not node.value.any()


def _keeps_zeros(op: Op, operands: list[Node], known: list[np.ndarray | None]) -> bool:
    """Whether a result is linear in what has a pattern, and zero where that is, in any case."""
    given = [pattern is not None for pattern in known]
    if op is e.strong:
        return given == [True, False]
    if op in (e.exact, product):
        return sum(given) == 1
    if op in (e.mul, e.div):
        value = operands[given.index(False)].value if not all(given) else None
        finite = value is not None and bool(np.isfinite(value).all())
        return finite and (op is e.mul or (given[0] and bool(np.all(value))))
    if op in (e.neg, e.add, e.sub, to) or op.jointly_linear:
        moving = [op.moving[min(k, len(op.moving) - 1)] for k in range(len(operands))]
        return all(
            has or not moves or _is_zero(x)
            for x, has, moves in zip(operands, given, moving, strict=True)
        )
    return False


def _is_sparse(node: Node) -> bool:
    value = node.value
    return value is not None and bool(np.count_nonzero(value) * SPARSE < value.size)


def _united(patterns: list[np.ndarray], shape: tuple[int, ...]) -> np.ndarray | None:
    """The pattern of what depends on all that several depend on; None if that is much."""
    first = patterns[0]
    if any(pattern.ndim != len(shape) + 1 for pattern in patterns):
        return None
    if all(pattern is first for pattern in patterns):
        return first if first.shape[1:] == shape else np.broadcast_to(first, (len(first), *shape))
    found = np.concatenate([np.broadcast_to(p, (len(p), *shape)) for p in patterns])
    found.sort(0)
    found[1:][found[1:] == found[:-1]] = 0
    found.sort(0)
    found = found[found.any(tuple(range(1, found.ndim)))]
    return found if len(found) <= SHARED else None


def _moved(node: Node, operands: list[Node], known: list[np.ndarray | None]) -> np.ndarray | None:
    """The pattern of moved elements; None unless they are moved within each row, and alike in all.

    To find that out, the numbers of columns are moved, then those of rows.
    """
    count = node.shape[0]
    given = [pattern for pattern in known if pattern is not None]
    columns, rows = [], []
    for pattern in given:
        shape = (count, *pattern.shape[1:])
        numbers = np.arange(1, prod(shape[1:]) + 1).reshape(shape[1:])
        columns.append(np.broadcast_to(numbers, shape))
        rows.append(np.broadcast_to(_upright(count, len(shape)), shape))
    column = _run(node, operands, known, columns, count)
    row = _run(node, operands, known, rows, count)
    if column is None or row is None or (column != column[:1]).any():
        return None
    if (row != np.where(column[:1] != 0, _upright(count, row.ndim), 0)).any():
        return None
    most = max(1, *map(len, given))
    none = [np.zeros((most - len(pattern), *pattern.shape[1:]), np.int64) for pattern in given]
    full = [np.concatenate(pair) for pair in zip(given, none, strict=True)]
    return _run(node, operands, known, full, most)


def _upright(count: int, ndim: int) -> np.ndarray:
    """The numbers of rows, from 1 on."""
    return np.arange(1, count + 1).reshape(-1, *(1,) * (ndim - 1))


def _run(
    node: Node, operands: list[Node], known: list[np.ndarray | None], given: list[np.ndarray],
    count: int,
) -> np.ndarray | None:  # fmt: skip
    """Move these in place of what has a pattern; None where that cannot be done to so many rows."""
    rest = iter(given)
    args: list[np.ndarray] = []
    for x, pattern in zip(operands, known, strict=True):
        if pattern is not None:
            args.append(next(rest))
        elif x.dtype.kind in "fc":
            args.append(np.zeros(x.shape, np.int64))
        elif x.value is not None:
            args.append(x.value)
        else:
            return None
    return _applied(node, args, count)


def _applied(node: Node, args: list[np.ndarray], count: int) -> np.ndarray | None:
    """The operation on so many rows; None if it cannot be done to these, or has other results."""
    assert isinstance(node.op, Op)
    try:
        found = np.asarray(node.op.forward(*args, **of_rows(node, count).params))
    except (IndexError, ValueError):
        return None
    return found if found.shape == (count, *node.shape[1:]) else None


def _computed(
    node: Node, operands: list[Node], known: list[np.ndarray | None]
) -> np.ndarray | None:
    """The pattern of a linear function of each row: where that of random numbers is not zero.

    It is one if rows in reverse order give results in reverse order, and some rows alone theirs.
    """
    work = node.size * (operands[0].shape[-1] if node.op is product else 1)
    if work > WORK and not any(map(_is_sparse, operands)):
        return None
    count, random = node.shape[0], np.random.default_rng(0)
    given: list[np.ndarray] = []
    for x, pattern in zip(operands, known, strict=True):
        if x.value is None and x.dtype.kind not in "fc":
            return None
        value = random.uniform(1.0, 2.0, x.shape) if x.value is None else x.value
        given.append(value if pattern is None else value * dense(pattern, count))
    found = _applied(node, given, count)
    turned = [x if p is None else x[::-1] for x, p in zip(given, known, strict=True)]
    other = None if found is None else _applied(node, turned, count)
    if found is None or other is None or not np.allclose(other[::-1], found):
        return None
    (rows,) = np.nonzero(found.reshape(count, -1).any(1))
    for d in rows[[0, len(rows) // 2, -1]] if len(rows) else ():
        one = [x if p is None else x[d : d + 1] for x, p in zip(given, known, strict=True)]
        alone = _applied(node, one, 1)
        if alone is None or not np.allclose(alone[0], found[d]):
            return None
    return _pattern(found != 0)

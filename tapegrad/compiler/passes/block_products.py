"""Multiply the blocks of a matrix of which most is zero, rather than all of it.

Where directions were taken apart (`jacobian_compression`), it is known at compile time which
elements of a matrix are zero.  Rows whose other elements lie in the same columns are multiplied
together by these columns alone; rows of zeros are not multiplied at all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tapegrad.compiler.ir.graph import Builder, Graph, Node, adds_to_zeros
from tapegrad.compiler.ir.sparsity import moves_alone
from tapegrad.ops import shape as s
from tapegrad.ops.core import Op
from tapegrad.ops.linalg import product

GAIN = 1.5  # so many times fewer multiplications pay
CALL = 1 << 15  # multiplications that cost as much as a call of BLAS


class Block(NamedTuple):
    """Some rows, and the columns of their elements that may differ from zero."""

    rows: tuple[int, int]
    columns: tuple[int, int]


def with_block_products(graph: Graph) -> Graph:
    """Leave zero blocks of the first factor out of products of matrices."""
    if not any(adds_to_zeros(node) for node in graph.nodes):
        return graph
    known: dict[int, np.ndarray | None] = {}
    found = {}
    for position, node in enumerate(graph.nodes):
        if node.op is product and len(node.shape) == 2:
            blocks = _blocks(graph, node, known)
            if blocks is not None:
                found[position] = blocks
    if not found:
        return graph
    builder = Builder(graph)
    for position, node in enumerate(graph.nodes):
        if position in found:
            builder.where[position] = _multiplied(builder, node, found[position])
        else:
            builder.copy(position)
    return builder.done()


def _blocks(graph: Graph, node: Node, known: dict[int, np.ndarray | None]) -> list[Block] | None:
    """The blocks of the first factor, if few enough elements lie in them."""
    pattern = _pattern(graph, node.args[0], known)
    if pattern is None or pattern.ndim != 2 or len(graph.nodes[node.args[1]].shape) != 2:
        return None
    columns = node.shape[1]
    blocks, cost = _cheapest(pattern, columns)
    return blocks if cost * GAIN < pattern.size * columns else None


def _cheapest(pattern: np.ndarray, columns: int) -> tuple[list[Block], float]:
    """The blocks of adjacent rows that cost least to multiply by so many columns; and that cost."""
    count, width = pattern.shape
    low = np.where(pattern.any(1), pattern.argmax(1), width)
    high = np.where(pattern.any(1), width - pattern[:, ::-1].argmax(1), 0)
    costs, starts = np.zeros(count + 1), np.zeros(count + 1, np.int64)
    for end in range(1, count + 1):  # blocks that end there begin at any row before
        first = np.minimum.accumulate(low[end - 1 :: -1])[::-1]
        last = np.maximum.accumulate(high[end - 1 :: -1])[::-1]
        size = np.arange(end, 0, -1) * np.maximum(last - first, 0)
        found = costs[:end] + size * columns + CALL * (size > 0)
        starts[end] = found.argmin()
        costs[end] = found[starts[end]]
    blocks: list[Block] = []
    end = count
    while end:
        start = int(starts[end])
        span = int(low[start:end].min()), int(high[start:end].max())
        blocks.insert(0, Block((start, end), span))
        end = start
    return blocks, float(costs[count])


def _pattern(graph: Graph, position: int, known: dict[int, np.ndarray | None]) -> np.ndarray | None:
    """Which elements of a value may differ from zero, if it was scattered."""
    if position in known:
        return known[position]
    node, found = graph.nodes[position], None
    if isinstance(node.op, Op) and len(node.args) == 1 and moves_alone(node):
        inner = _pattern(graph, node.args[0], known)
        found = None if inner is None else np.asarray(node.op.forward(inner, **node.params))
    elif isinstance(node.op, Op) and adds_to_zeros(node):
        source, *places = [graph.nodes[a] for a in node.args]
        values = [x.value for x in places if x.value is not None]
        if values and len(values) == len(places):
            found = node.op.forward(np.ones(source.shape), *values, **node.params) != 0
    known[position] = found
    return found


def _multiplied(builder: Builder, node: Node, blocks: list[Block]) -> int:
    """The product as one of each block, below each other."""
    a, b = [builder.where[x] for x in node.args]
    parts = []
    for block in blocks:
        shape = (block.rows[1] - block.rows[0], node.shape[1])
        if block.columns[1]:
            own = (slice(*block.rows), slice(*block.columns)), (slice(*block.columns),)
            factors = [_part(builder, x, index) for x, index in zip((a, b), own, strict=True)]
            part = Node(product, tuple(factors), {}, shape, node.dtype)
        else:
            zeros = np.broadcast_to(np.zeros((), node.dtype), shape)
            part = Node(None, (), {}, shape, node.dtype, zeros)
        parts.append(builder.add(part))
    return builder.add(Node(s.cat, tuple(parts), {"dim": 0}, node.shape, node.dtype))


def _part(builder: Builder, position: int, index: tuple[slice, ...]) -> int:
    node = builder.nodes[position]
    shape = (*[x.stop - x.start for x in index], *node.shape[len(index) :])
    return builder.add(Node(s.getitem, (position,), {"index": index}, shape, node.dtype))

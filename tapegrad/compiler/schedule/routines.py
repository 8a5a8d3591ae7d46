"""Schedule operations that have a routine and no loops.

Fourier transforms, convolutions, pooling, products with sparse matrices, sorting.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from tapegrad.compiler.codegen import kernel_calls, sorting, sparse_products, stockham
from tapegrad.compiler.ir.graph import Node
from tapegrad.compiler.llvm.function_builder import Routine
from tapegrad.kernels.large import direct_convolution
from tapegrad.kernels.large.volume_windows import form_of
from tapegrad.kernels.sweep.sweep_abi import KIND_CONVOLUTION
from tapegrad.ops.convolution import convolution
from tapegrad.ops.core import Op
from tapegrad.ops.fourier_forms import fft_planes
from tapegrad.ops.sparse import Pattern, sampled_product, sparse_product
from tapegrad.ops.windows import ROWS

LONG = 16  # elements of a line of a sparse matrix, in the mean


class Recipe(NamedTuple):
    """A routine over operands in C order, tables, scratch memory (if any) and the result."""

    routine: Routine
    tables: Sequence[np.ndarray]
    room: int  # elements
    keeps: Sequence[np.ndarray] = ()  # arrays that tables name by their addresses


def recipe(node: Node, operands: list[Node]) -> Recipe | None:
    """How a routine computes a record, if one does."""
    if node.op is fft_planes:
        return _transform(node)
    if isinstance(node.op, Op) and node.op.sweep == KIND_CONVOLUTION:
        return _convolution(node, operands)
    if node.op is sparse_product or node.op is sampled_product:
        return _sparse(node, operands)
    if node.op in ROWS and operands[0].dtype.kind == "f":
        return _pooling(node, operands[0])
    if write := sorting.writer(node.name):
        return _sorting(write, node, operands[0])
    return None


def _sorting(write: Callable[..., Routine], node: Node, operand: Node) -> Recipe:
    """A sort along a dimension, or a search for the extremes so far."""
    params, shape = dict(node.params), operand.shape
    dim = params.pop("dim")
    lines = sorting.Lines(prod(shape[:dim]), shape[dim], prod(shape[dim + 1 :]))
    return Recipe(
        write(lines, operand.dtype, **params), (), sorting.scratch(lines.n, operand.dtype)
    )


def _transform(node: Node) -> Recipe | None:
    """A Fourier transform of planes that lie one behind the other."""
    plane, dim = node.params["dims"]
    if plane:
        return None
    _, *shape = node.shape
    before, n, after = prod(shape[: dim - 1]), shape[dim - 1], prod(shape[dim:])
    routine = stockham.routine(before, n, after, node.dtype)
    return Recipe(routine, [stockham.twiddles(n, node.dtype)], stockham.scratch(n, after))


def _convolution(node: Node, operands: list[Node]) -> Recipe | None:
    """A convolution, its transpose or the gradient of its filters."""
    kind = node.dtype
    if kind.char not in "df" or any(x.dtype != kind for x in operands):
        return None
    a, b = operands
    size, at = node.params["size"], node.params["geometry"]
    plan = direct_convolution.plan_of(node.op, a.shape, b.shape, size, at, kind.char, 1)
    if plan is None:
        return None
    checking = node.params["exact"] or node.op is not convolution
    routine = kernel_calls.convolution(plan, checking=checking)
    # Unsigned, the words are no constant that the text of a program contains: they are addresses.
    return Recipe(routine, [plan.words.view(np.uint64)], plan.room, plan.keeps)


def _pooling(node: Node, operand: Node) -> Recipe:
    """A loop over windows, or the adjoint of one."""
    form = form_of(node.op, node.params["windows"], operand.dtype.itemsize)
    keeps = [a for part in form.kept for a in (part if isinstance(part, tuple) else (part,))]
    # The loop's address stands in front of its table.
    table = np.concatenate([[form.loop.address], form.words]).astype(np.uint64)
    volumes = prod(operand.shape[: -len(form.size)])
    return Recipe(kernel_calls.pooling(volumes), [table], form.size[-1], keeps)


def _sparse(node: Node, operands: list[Node]) -> Recipe | None:
    """A product with a sparse matrix, or elements of an outer product."""
    kind = node.dtype
    if kind.char not in "df" or any(x.dtype != kind for x in operands):
        return None
    pattern: Pattern = node.params["pattern"]
    tables = [np.ascontiguousarray(x) for x in (pattern.indptr, pattern.indices)]
    index = np.result_type(*tables, np.int32)
    tables = [x.astype(index, copy=False) for x in tables]
    lines, columns = len(tables[0]) - 1, prod(operands[1].shape[1:])
    if node.op is sampled_product:
        routine = sparse_products.sampled(lines, columns, pattern.by_column, kind, index)
    elif pattern.by_column:
        routine = sparse_products.transposed_product(lines, node.shape[0], columns, kind, index)
    else:
        long = len(tables[1]) >= LONG * lines
        routine = sparse_products.product(lines, columns, long, kind, index)
    return Recipe(routine, tables, 0)

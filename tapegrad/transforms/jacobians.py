"""Whole matrices of derivatives, and products with them."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.autograd.grad_mode import recording
from tapegrad.dispatch.dispatch import run
from tapegrad.functions import complex_parts
from tapegrad.functions.joining import cat, stack
from tapegrad.lift.batch import Map, all_of, batched
from tapegrad.lift.dual import dual, split
from tapegrad.lift.gradient_targets import plain
from tapegrad.lift.levels import Level, level
from tapegrad.lift.lifted_tensor import constant, pull, zeros_like
from tapegrad.ops.elementwise import is_complex
from tapegrad.ops.shape import permute, reshape
from tapegrad.tape.record_format import GENERAL, WORD
from tapegrad.tape.tape import current
from tapegrad.tensor import Tensor
from tapegrad.transforms.call_arguments import (
    Argnums,
    any_tensor,
    as_tensor,
    checked_argnums,
    chosen_leaves,
    constant_result,
    forgetting,
    given_back,
    name_of,
    paired,
    require_function,
    transforming,
    value_back,
    values,
    with_leaves,
)
from tapegrad.transforms.hessian_products import OnTape
from tapegrad.transforms.numba_functions import numba_derivatives
from tapegrad.transforms.pickling import repeatable
from tapegrad.transforms.pytree import Tree, flatten, unflatten
from tapegrad.transforms.reverse import Inputs, aux_back, differentiated, refuse_unused, settled

# The cost model of one sweep per row against one batched sweep, in µs: of a compiled sweep, per
# record, per record that it leaves to Python, and per record of a batched sweep.
SWEEP, RECORD, PYTHON_RECORD, BATCHED_RECORD = 15.0, 0.2, 18.0, 40.0


def basis(tensors: list[Tensor]) -> list[np.ndarray]:
    """For each Tensor its part of the standard basis, batched in the first dimension."""
    total = sum(t._a.size for t in tensors)
    out, start = [], 0
    for t in tensors:
        block = np.zeros((total, t._a.size), t._a.dtype)
        block[start : start + t._a.size] = np.eye(t._a.size, dtype=t._a.dtype)
        out.append(block.reshape(total, *t._a.shape))
        start += t._a.size
    return out


def _check_room(name: str, f: Any, rows: int, columns: int) -> None:
    """Refuse a Jacobian that does not fit in memory.

    Beside it there is, for one side of it, a unit vector in each row or column.
    """
    if not hasattr(os, "sysconf"):  # nor does Windows say how much there is
        return
    needed = 16 * rows * columns
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > there:
        raise MemoryError(
            f"`{name}` of {name_of(f)}: {rows} × {columns} derivatives take {needed >> 30} GB "
            f"while they are computed, and this machine has {there >> 30}: ask for products with "
            "the matrix instead (`jvp`, `vjp`, `linearize`; of a Hessian `hvp`), and if most of "
            "its elements are zero for a few of these that show all others (see Large Jacobians in "
            "the documentation)"
        )


def _sweep(start: int) -> tuple[int, float]:
    """The number of records since a position, and the cost of one sweep over them."""
    tape = current.tape
    length = tape.next - start
    words = tape.words()[max(len(tape) - length, 0) :, WORD]
    return length, SWEEP + RECORD * length + PYTHON_RECORD * np.count_nonzero(words & GENERAL)


def _rows(inputs: Inputs, roots: list[Tensor], recorded: bool, chunk: int | None) -> list[Tensor]:
    """For each variable the derivatives of all results, one row after the other."""
    weights = basis(roots)
    count = len(weights[0]) if weights else 0
    variables = inputs.variables
    length, sweep = _sweep(inputs.start)
    one_by_one = not recorded and count * sweep < BATCHED_RECORD * length
    if count and (one_by_one or count == 1):
        rows = [
            pull(
                roots,
                [constant(w[i, ...], r) for w, r in zip(weights, roots, strict=True)],
                variables,
                recorded=recorded,
                retain=True,
                since=inputs.since,
            )
            for i in range(count)
        ]
        return [stack(list(column)) for column in zip(*rows, strict=True)]
    parts = []
    step = chunk or max(count, 1)
    for start in range(0, max(count, 1), step):
        some = [w[start : start + step] for w in weights]
        with level(Map(min(step, count - start))) as at:
            seeds = [batched(constant(w, r), at) for w, r in zip(some, roots, strict=True)]
            found = pull(
                roots, seeds, variables, recorded=recorded, retain=True, since=inputs.since
            )
            parts.append([all_of(g, at) for g in found])
    return parts[0] if len(parts) == 1 else [cat(list(p)) for p in zip(*parts, strict=True)]


def _cut(matrix: Tensor, roots: list[Tensor], x: Tensor) -> list[Tensor]:
    """The rows of a matrix of derivatives, result by result, each in the shape of both."""
    out, start = [], 0
    for root in roots:
        stop = start + root._a.size
        block = matrix[start:stop] if (start, stop) != (0, matrix._a.shape[0]) else matrix
        out.append(run(reshape, (block,), {"shape": (*root._a.shape, *x._a.shape)}))
        start = stop
    return out


def _real_parts(roots: list[Tensor]) -> list[Tensor]:
    """The results, complex ones as two: a sweep from a complex root knows one of its parts."""
    both = complex_parts.real, complex_parts.imag
    return [part for r in roots for part in ([of(r) for of in both] if is_complex(r) else [r])]


def _joined(blocks: list[Tensor], roots: list[Tensor]) -> list[Tensor]:
    """A block for each result from those of its parts."""
    rest = iter(blocks)
    join = complex_parts.complex
    return [join(next(rest), next(rest)) if is_complex(r) else next(rest) for r in roots]


def _block_back(block: Tensor, leaf: Any, tensors: bool) -> Any:
    """A block in the form of the argument: a 0-d array for a 0-d array."""
    if tensors or type(leaf) is not np.ndarray:
        return value_back(block, tensors)
    return given_back(block, leaf)


def _assembled(blocks: list[list[Any]], tree: Tree, inputs_trees: list[Tree], single: bool) -> Any:
    """The pytree of results of pytrees of arguments; blocks[j][i]: result j, leaf i."""
    per_root = []
    for row in blocks:
        rest = iter(row)
        arguments = [unflatten(t, rest) for t in inputs_trees]
        per_root.append(arguments[0] if single else tuple(arguments))
    return unflatten(tree, per_root)


def jacrev(
    f: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *, strict: bool = False
) -> Callable[..., Any]:
    """The Jacobian of `f` by reverse mode, row by row or all rows at once, whichever is faster.

    Its shape is that of the result followed by that of the argument.
    With `strict` an argument that the result does not depend on is an error, not a block of zeros.

    >>> import numpy as np, tapegrad as tg
    >>> tg.jacrev(lambda x: np.sin(x) * x[0])(np.array([0.0, 1.0]))
    array([[0.        , 0.        ],
           [0.84147098, 0.        ]])
    """
    if (numba := numba_derivatives(f)) is not None:
        return numba.jacobian(f, argnums, has_aux, strict, "jacrev")  # type: ignore[no-any-return]
    return reverse_rows(f, argnums, has_aux, "jacrev", strict=strict)


@repeatable
def reverse_rows(
    f: Callable[..., Any], argnums: Argnums, has_aux: bool, name: str, chunk: int | None = None,
    *, strict: bool = False,
) -> Callable[..., Any]:  # fmt: skip
    """`jacrev`, by at most so many rows at once; `jacobian`, which may take columns instead."""
    require_function(f, name)
    single = isinstance(argnums, (int, np.integer))

    @functools.wraps(f, updated=())
    @forgetting(name)
    def jacobian_of(*args: Any, **kwargs: Any) -> Any:
        chosen = checked_argnums(argnums, len(args), name, f)
        with transforming():
            with recording(current.tape, True):
                inputs = Inputs(args, chosen, name)
                y, aux = paired(inputs.call(f, kwargs), name, f, has_aux)
                roots, tree = values(y, name, f)
                parts = _real_parts(roots)
            if strict:
                refuse_unused(roots, inputs, name, f)
            rows = sum(r._a.size for r in parts)
            columns = sum(x._a.size for x in inputs.tensors)
            if name == "jacobian" and _forward_pays(inputs, rows, columns):
                inputs.end()
                return _columns(f, args, kwargs, chosen, single, has_aux, name)
            _check_room(name, f, rows, max(columns, rows if chunk is None else 0))
            matrices = _rows(inputs, parts, inputs.matters_outside(), chunk)
            inputs.end()
            tensors = any_tensor(inputs.leaves)
            found = []
            for m, x, leaf in zip(matrices, inputs.tensors, inputs.leaves, strict=True):
                below = _joined(_cut(m, parts, x), roots)
                found.append([_block_back(settled(b, inputs.own), leaf, tensors) for b in below])
        blocks = [[column[j] for column in found] for j in range(len(roots))]
        whole = _assembled(blocks, tree, inputs.trees, single)
        return (whole, aux_back(aux, inputs.own, tensors)) if has_aux else whole

    return jacobian_of


def _forward_pays(inputs: Inputs, rows: int, columns: int) -> bool:
    """Whether there are so many more results than arguments that columns are cheaper than rows."""
    tape = current.tape
    at = next((at for at in reversed(tape.levels) if at.traces), None)
    if at is not None:  # a program pays for elements alone
        return columns < rows and not at.backward_only(list(map(plain, inputs.variables)))
    kept = tape.keep[max(tape.index(inputs.start), 0) : tape.used]
    if any(getattr(entry, "backward_only", False) for entry in kept):
        return False
    length, sweep = _sweep(inputs.start)
    by_rows = min(rows * sweep, BATCHED_RECORD * length)
    work = rows * 1e-3 * length
    return by_rows + rows * work > 2 * BATCHED_RECORD * length + columns * work


def jacfwd(
    f: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *, strict: bool = False
) -> Callable[..., Any]:
    """The Jacobian of `f` by forward mode, all columns at once.

    With `strict` a result that does not depend on any argument is an error, not a block of zeros.

    >>> import numpy as np, tapegrad as tg
    >>> tg.jacfwd(lambda x: np.array([1.0, 2.0]) * x)(3.0)
    array([1., 2.])
    """
    if (numba := numba_derivatives(f)) is not None:
        return numba.jacobian(f, argnums, has_aux, strict, "jacfwd")  # type: ignore[no-any-return]
    return forward_columns(f, argnums, has_aux, "jacfwd", "same", strict=strict)


@repeatable
def forward_columns(
    f: Callable[..., Any], argnums: Argnums, has_aux: bool, name: str, randomness: str, *,
    strict: bool = False,
) -> Callable[..., Any]:  # fmt: skip
    """`jacfwd`, with random numbers that may differ from column to column."""
    require_function(f, name)
    single = isinstance(argnums, (int, np.integer))

    @functools.wraps(f, updated=())
    @forgetting(name)
    def jacobian_of(*args: Any, **kwargs: Any) -> Any:
        chosen = checked_argnums(argnums, len(args), name, f)
        with transforming():
            return _columns(
                f, args, kwargs, chosen, single, has_aux, name, randomness, strict=strict
            )

    return jacobian_of


def _columns(
    f: Callable[..., Any], args: Any, kwargs: Any, chosen: tuple[int, ...], single: bool,
    has_aux: bool, name: str, randomness: str = "same", *, strict: bool = False,
) -> Any:  # fmt: skip
    leaves, trees = chosen_leaves(args, chosen)
    primals = [as_tensor(x, name) for x in leaves]
    columns = sum(x._a.size for x in primals)
    _check_room(name, f, columns, columns)
    directions = basis(primals)
    tensors = any_tensor(leaves)
    count = len(directions[0]) if directions else 0
    with level(Map(count, randomness, name)) as many, level(Level(name=name)) as at:
        duals = [
            dual(x, batched(constant(d, x), many), at)
            for x, d in zip(primals, directions, strict=True)
        ]
        given = with_leaves(args, chosen, trees, duals)
        y, aux = paired(f(*given, **kwargs), name, f, has_aux)
        roots, shape = values(y, name, f)
        _check_room(name, f, sum(r._a.size for r in roots), columns)
        blocks = []
        for root in roots:
            _, slope = split(root, at)
            if strict and slope is None:
                raise constant_result(root, name, f)
            slope = zeros_like(root) if slope is None else slope
            full = all_of(slope, many)
            ndim = full._a.ndim
            turned = run(permute, (full,), {"dims": (*range(1, ndim), 0)})
            row, start = [], 0
            for x, leaf in zip(primals, leaves, strict=True):
                part = turned[..., start : start + x._a.size]
                start += x._a.size
                block = run(reshape, (part,), {"shape": (*root._a.shape, *x._a.shape)})
                row.append(_block_back(settled(block, set()), leaf, tensors))
            blocks.append(row)
        if has_aux:
            below, tree = flatten(aux)
            aux = unflatten(tree, [value_back(split(x, at)[0], tensors) for x in below])
    found = _assembled(blocks, shape, trees, single)
    return (found, aux) if has_aux else found


def jacobian(
    f: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *, strict: bool = False
) -> Callable[..., Any]:
    """The Jacobian of `f`, by forward or reverse mode, whichever fits its shape.

    Forward mode takes a column for each element of the arguments, reverse mode a row for each of
    the results: what is fewer is taken, under `jit` as well, and where `f` is small what is
    quicker. A function with a rule for reverse mode alone (`custom_vjp`, `Function`) is left to
    that. A matrix that does not fit into memory is a MemoryError; see `linearize` and `hvp`.
    With `strict` an argument that the result does not depend on is an error, not a block of zeros.

    >>> import numpy as np, tapegrad as tg
    >>> tg.jacobian(lambda x: x**2)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """
    if (numba := numba_derivatives(f)) is not None:
        return numba.jacobian(f, argnums, has_aux, strict, "jacobian")  # type: ignore[no-any-return]
    return reverse_rows(f, argnums, has_aux, "jacobian", strict=strict)


@repeatable
def hessian(
    f: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *, strict: bool = False
) -> Callable[..., Any]:
    """The matrix of second derivatives of a scalar function.

    With `strict` an argument that the gradient does not depend on is an error, not a block of
    zeros.

    >>> import numpy as np, tapegrad as tg
    >>> tg.hessian(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 2.0]))
    array([[4., 2.],
           [2., 0.]])
    """
    if (numba := numba_derivatives(f)) is not None:
        return numba.hessian(f, argnums, has_aux, strict)  # type: ignore[no-any-return]
    gradient = differentiated(f, argnums, has_aux, strict=strict, name="hessian")
    general = reverse_rows(gradient, argnums, has_aux, "hessian", strict=strict)
    if has_aux or strict or type(argnums) is not int:
        return general
    on_tape = OnTape(f, "hessian")

    @functools.wraps(f, updated=())
    def matrix(*args: Any, **kwargs: Any) -> Any:
        found = on_tape.matrix(args, kwargs, argnums)
        return general(*args, **kwargs) if found is None else found

    return matrix

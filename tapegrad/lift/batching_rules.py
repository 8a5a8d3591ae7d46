"""Batching rules: an operation on one example as one on a batch, in the first dimension.

Most parameters mean a dimension, several dimensions, a shape or an index: the new dimension in
front shifts or extends them, and `_by_parameters` does the rest.  A rule returns NotImplemented
where it does not apply.
"""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.base.dtypes import result_type
from tapegrad.dispatch.dispatch import run
from tapegrad.lift.batched_index import in_order, places, rank
from tapegrad.ops import families as ops
from tapegrad.ops import index as ix
from tapegrad.ops import reduce as r
from tapegrad.ops import shape as s
from tapegrad.ops.core import Op
from tapegrad.ops.elementwise import squared_difference, where
from tapegrad.tensor import Tensor, wrap

Rule = Callable[[Op, list[Any], list[bool], dict[str, Any], int], Any]
table: dict[Op, Rule] = {}


def batching_rule(*rows: Op) -> Callable[[Rule], Rule]:
    """Enter a function as the rule of some rows."""

    def keep(rule: Rule) -> Rule:
        table.update(dict.fromkeys(rows, rule))
        return rule

    return keep


def aligned(given: Any, many: Any) -> tuple[Any, ...]:
    """Align batched operands for broadcasting, by dimensions inserted after the first."""
    ranks = list(map(operator.sub, map(rank, given), many))
    most = max(ranks)
    for k, m in enumerate(many):
        missing = most - ranks[k]
        if m and missing:
            dims = {"dims": tuple(range(1, 1 + missing))}
            given = [*given[:k], run(s.unsqueeze, (given[k],), dims), *given[k + 1 :]]
    return tuple(given)


def typed(op: Op, args: Any, given: list[Any]) -> list[Any]:
    """Cast 0-d examples to the dtype that a single one (of `args`) is promoted to.

    A number beside an array counts less for the type of a result, and all examples are an array.
    """
    first = 1 if op is where else 0
    arrays = [x._a if isinstance(x, Tensor) else x for x in args[first:]]
    kinds = {x.dtype for x in arrays if isinstance(x, np.ndarray)}
    if len(kinds) < 2:
        return given
    params = {"dtype": result_type(arrays)}
    return given[:first] + [
        x if x is alone or alone._a.ndim else run(s.to, (x,), params)
        for x, alone in zip(given[first:], args[first:], strict=True)
    ]


def examples_like(x: Any, ndim: int) -> Any:
    """Give examples leading dimensions of size 1, as broadcasting to `ndim` needs."""
    return aligned([x, np.empty((1,) * ndim)], [True, False])[0]


def spread_out(given: Any, many: Any, size: int) -> list[Any]:
    """All operands as batches; one that is the same for all is expanded."""
    out = []
    for x, m in zip(given, many, strict=True):
        t = x if isinstance(x, Tensor) else wrap(np.asarray(x))
        out.append(t if m else run(s.expand, (t,), {"shape": (size, *t._a.shape)}))
    return out


def rule_of(op: Op) -> Rule | None:
    """The rule of an operation: its own, or that of its kind."""
    if op in table:
        return table[op]
    if op.axis == "keep" or op.scans:
        return _with_unit_dim
    return _by_parameters if op.axis or op.reduces or op.lapack or op.moves in SHIFTED else None


@batching_rule(ops.pure_callback.pure_callback)
def _called(op: Op, given: list[Any], many: list[bool], params: Any, size: int) -> Tensor:
    none = np.zeros((0, *params["shape"]), params["dtype"])
    found: Tensor = one_by_one(op, given, many, params, size) if size else wrap(none)
    return found


@batching_rule(ops.sparse.sampled_product)
def one_by_one(op: Op, given: list[Any], many: list[bool], params: Any, size: int) -> Tensor:
    """Run an operation on each example."""
    results = []
    for i in range(size):
        args = [
            run(s.getitem, (x,), {"index": (i,)}) if m else x
            for x, m in zip(given, many, strict=True)
        ]
        results.append(run(op, tuple(args), params))
    found: Tensor = run(s.stack, tuple(results), {"dim": 0})
    return found


# -- by the meaning of the parameters ----------------------------------------------------------

SHIFTED = (*s.PASSES, *s.STRIDED, "reverse", "concat", "pad")  # of `Op.moves`
_SHIFTS: dict[str, Callable[[Any, int], Any]] = {
    "dim": lambda d, n: tuple(k + 1 for k in d) if isinstance(d, tuple) else d + 1,
    "dims": lambda d, n: tuple(k + 1 for k in d),
    "dim1": lambda d, n: d + 1,
    "dim2": lambda d, n: d + 1,
    "shape": lambda s, n: (n, *s),
    "index": lambda i, n: (slice(None), *i),
    "reps": lambda r, n: (1, *r),
    "widths": lambda w, n: ((0, 0), *w),
}


def _shifted(params: dict[str, Any], size: int) -> dict[str, Any]:
    return {k: _SHIFTS[k](v, size) if k in _SHIFTS else v for k, v in params.items()}


@batching_rule(
    s.to, s.fold, s.tril, s.triu, r.mean, r.standardize, r.others_prod, r.pair_prod,
    ops.tiling.repeat, ops.tiling.roll, ops.order.all, ops.order.any, ops.order.count_nonzero,
    ops.order.median, ops.factorizations.part,
    ops.factorizations.eigh, ops.factorizations.qr, ops.factorizations.svd, ops.solve.pinv,
    ops.solve.matrix_exp, ops.determinant.cofactor_slope, ops.factorizations.completed,
    ops.fourier.fft_c2c, ops.fourier.fft_r2c, ops.fourier.fft_c2r, ops.fourier.sines,
    ops.fourier_forms.fft_planes, ops.factorizations.any_basis, ops.factorizations.eig,
    ops.factorizations.same_phase, ops.factorizations.geqrf, ops.lu.lu,
    ops.lu.ldl, ops.unchecked.inv_ex, ops.unchecked.cholesky_ex, ops.unchecked.cholesky_code,
    ops.unchecked.pivot_code, ops.unchecked.block_code, ops.scatter_reduce.beside_zero,
    ops.scatter_reduce.scatter_prod, ops.scatter_reduce.scatter_amax,
    ops.scatter_reduce.scatter_amin, ops.borders.border, ops.borders.fold_border,
)  # fmt: skip
def _by_parameters(op: Op, given: Any, many: Any, params: dict[str, Any], size: int) -> Any:
    return run(op, tuple(spread_out(given, many, size)), _shifted(params, size))


@batching_rule(
    ops.order.argmax, ops.order.argmin, ops.order.argsort, ops.order.argkth, ops.order.argtopk,
    ops.order.argmedian, ops.order.argmode, ops.order.argcummax,
)  # fmt: skip
def _with_unit_dim(op: Op, given: Any, many: Any, params: dict[str, Any], size: int) -> Any:
    """Operations along one dimension, which a 0-d example only seems to have."""
    if rank(given[0]) > many[0]:
        return _by_parameters(op, given, many, params, size)
    xs = [run(s.unsqueeze, (x,), {"dims": (int(m),)}) for x, m in zip(given, many, strict=True)]
    return run(s.squeeze, (_by_parameters(op, xs, many, params, size),), {"dims": (1,)})


@batching_rule(
    *ops.logic.ROWS, s.view_as_real, s.view_as_complex, ops.complex_parts.conj,
    ops.complex_parts.sgn, ops.complex_parts.complex_, ops.exponents.ldexp,
)  # fmt: skip
def _of_elements(op: Op, given: Any, many: Any, params: dict[str, Any], size: int) -> Any:
    return run(op, aligned(given, many), params)


@batching_rule(s.permute)
def _permute(op: Op, given: Any, many: Any, params: dict[str, Any], size: int) -> Any:
    return run(op, tuple(given), {"dims": (0, *[d + 1 for d in params["dims"]])})


@batching_rule(s.expand)
def _expand(op: Op, given: Any, many: Any, params: dict[str, Any], size: int) -> Any:
    shape = params["shape"]
    return run(op, (examples_like(given[0], len(shape)),), {"shape": (size, *shape)})


@batching_rule(s.sum_to)
def _sum_to(op: Op, given: Any, many: Any, params: dict[str, Any], size: int) -> Any:
    x, shape = given[0], params["shape"]
    ones = (1,) * (rank(x) - 1 - len(shape))
    out = run(op, (x,), {"shape": (size, *ones, *shape)})
    return run(s.reshape, (out,), {"shape": (size, *shape)}) if ones else out


@batching_rule(
    ops.strided.replay, ops.strided.only_view, ops.strided.write_view, ops.strided.zero_view
)
def _viewed(op: Op, given: Any, many: Any, params: dict[str, Any], size: int) -> Any:
    """Batch the records that rewrite a base's history, through a chain of views."""
    chain = params["chain"]
    if not all(step.view and step.moves != "storage" for step, _ in chain):
        return NotImplemented
    parts = spread_out(given, many, size)
    shape = params.get("shape", parts[0]._a.shape[1:])
    return run(op, tuple(parts), _shifted(params, size) | {"chain": _chain(chain, shape, size)})


def _chain(chain: Any, shape: Any, size: int) -> Any:
    """Batch a chain of view operations on an example of a shape."""
    out = []
    parts = [op for op, _ in chain if op.moves == "parts"]
    seen = np.broadcast_to(np.empty((), "c16" if s.view_as_real in parts[:1] else "f8"), shape)
    for op, params in chain:
        shifted = _shifted(params, size)
        if op is s.permute:
            shifted = {"dims": (0, *[d + 1 for d in params["dims"]])}
        elif op is s.expand and len(params["shape"]) > seen.ndim:  # behind the examples
            missing = len(params["shape"]) - seen.ndim
            out.append((s.unsqueeze, {"dims": tuple(range(1, 1 + missing))}))
        out.append((op, shifted))
        seen = op.forward(seen, **params)
    return tuple(out)


@batching_rule(r.mse_loss)
def _mse_loss(op: Op, given: Any, many: Any, params: dict[str, Any], size: int) -> Any:
    squares = run(squared_difference, aligned(given, many), {})
    over = {"dim": tuple(range(1, rank(squares))), "keepdim": False}
    return run(r.mean if params["mean"] else r.sum, (squares,), over)


# -- masks -------------------------------------------------------------------------------------


@batching_rule(ix.masked_select, ix.masked_embed)
def _masked(op: Op, given: Any, many: Any, params: dict[str, Any], size: int) -> Any:
    """A mask that is the same for all examples, as flat indices."""
    mask = given[1]
    if many[1]:
        raise RuntimeError(
            f"under `vmap` the mask of `{op.name}` can select another number of elements in each "
            "example: use `tapegrad.where`"
        )
    mask = mask._a if isinstance(mask, Tensor) else np.asarray(mask)
    own = params["shape"] if params else given[0]._a.shape[1:]
    full = np.broadcast_shapes(own, mask.shape)
    found = np.flatnonzero(np.broadcast_to(mask, full))
    plan = {"plan": (slice(None), ix.HOLE)}
    if op is ix.masked_select:
        x = _expand(s.expand, given[:1], [True], {"shape": full}, size)
        return run(
            ix.index, (run(s.reshape, (x,), {"shape": (size, math.prod(full))}), found), plan
        )
    out = run(ix.unindex, (given[0], found), {"shape": (size, math.prod(full)), **plan})
    out = run(s.reshape, (out,), {"shape": (size, *full)})
    return _sum_to(s.sum_to, [out], [True], {"shape": own}, size)


@batching_rule(ix.masked_fill)
def _masked_fill(op: Op, given: Any, many: Any, params: dict[str, Any], size: int) -> Any:
    if not many[2]:
        return run(op, (*aligned(given[:2], many[:2]), given[2]), params)
    x, mask, value = given
    kind = x._a.dtype if isinstance(x, Tensor) else np.asarray(x).dtype
    value = run(s.to, (value,), {"dtype": kind})
    return run(where, aligned([mask, value, x], [many[1], True, many[0]]), {})


# -- indexing ----------------------------------------------------------------------------------


@batching_rule(ix.assign)
def _assign(op: Op, given: Any, many: Any, params: dict[str, Any], size: int) -> Any:
    (x,) = spread_out(given[:1], many[:1], size)
    value, index = given[1], params["index"]
    if many[1]:
        place = np.broadcast_to(np.empty((), np.bool_), x._a.shape[1:])[index]
        value = examples_like(value, place.ndim)
    return run(op, (x, value), {"index": (slice(None), *index)})


@batching_rule(ix.gather, ix.ungather, ix.scatter, ix.scattered, ix.scatter_add)
def _gathered(op: Op, given: Any, many: Any, params: dict[str, Any], size: int) -> Any:
    """Batch `gather` and its kin; a 0-d example counts as one of a single element."""
    parts = spread_out(given, many, size)
    index = parts[1]
    if len(parts) > 2 and rank(parts[2]) == 1 < rank(index):  # one number for all places
        each = run(s.unsqueeze, (parts[2],), {"dims": tuple(range(1, rank(index)))})
        parts[2] = run(s.expand, (each,), {"shape": index._a.shape})
    single = not params["shape"] if op is ix.ungather else rank(parts[0]) == 1
    if not single:
        return _by_parameters(op, parts, [True] * len(parts), params, size)
    gone = rank(index) == 1 if op is ix.gather else True
    parts = [run(s.unsqueeze, (x,), {"dims": (1,)}) if rank(x) == 1 else x for x in parts]
    if op is ix.ungather:
        params = params | {"shape": (1,)}
    out = _by_parameters(op, parts, [True] * len(parts), params, size)
    return run(s.squeeze, (out,), {"dims": (1,)}) if gone else out


@batching_rule(ops.order.searchsorted)
def _searched(op: Op, given: Any, many: Any, params: dict[str, Any], size: int) -> Any:
    """Values that differ are as many values; a sequence of each example is a row of its own."""
    if not many[0] and given[0]._a.ndim == 1:
        return run(op, tuple(given), params)
    sequences, values = spread_out(given, many, size)
    shape = values._a.shape
    if rank(sequences) == 2:
        values = run(s.reshape, (values,), {"shape": (size, math.prod(shape[1:]))})
    found = run(op, (sequences, values), params)
    return run(s.reshape, (found,), {"shape": shape})


@batching_rule(ops.strided.as_strided)
def _as_strided(op: Op, given: Any, many: Any, params: dict[str, Any], size: int) -> Any:
    raise RuntimeError(
        "`as_strided` under `vmap`: an example has no memory of its own that it could be a view "
        "of; use indexing, `unfold`, `diagonal` or `expand`"
    )


_GATHER_FORMS = {ix.select_rows: ix.gather, ix.unselect: ix.ungather, ix.index_add: ix.scatter_add}


@batching_rule(ix.select_rows, ix.unselect, ix.index_add)
def _by_gather(op: Op, given: Any, many: Any, params: dict[str, Any], size: int) -> Any:
    """One vector of indices for all examples, or one for each, which no place counts from the end.

    `gather` and its kin are as strict, and take an index for every element.
    """
    if not many[1]:
        x, *rest = spread_out([given[0], *given[2:]], [many[0], *many[2:]], size)
        return run(op, (x, given[1], *rest), _shifted(params, size))
    parts = spread_out(given, many, size)
    dim, index = params["dim"] + 1, parts[1]
    shape = list(parts[-1 if op is ix.index_add else 0]._a.shape)
    shape[dim] = index._a.shape[1]
    dims = (*range(1, dim), *range(dim + 1, len(shape)))
    parts[1] = run(s.expand, (run(s.unsqueeze, (index,), {"dims": dims}),), {"shape": tuple(shape)})
    return run(_GATHER_FORMS[op], tuple(parts), _shifted(params, size))


@batching_rule(ix.index, ix.unindex, ix.index_put, ix.cleared)
def _indexed(op: Op, given: Any, many: Any, params: dict[str, Any], size: int) -> Any:
    """Batch indexing: with the same index arrays for all examples, or some for each."""
    values = 2 if op is ix.index_put else 1
    plan, others = params["plan"], given[values:]
    parts = spread_out(given[:values], many[:values], size)
    if in_order(plan) and not any(many[values:]):
        if op is ix.index_put:
            arrays = [x._a if isinstance(x, Tensor) else np.asarray(x) for x in others]
            chosen = len(np.broadcast_shapes(*[a.shape for a in arrays]))
            kept = rank(parts[0]) - 1 - builtins.sum(part is ix.HOLE for part in plan)
            parts[1] = examples_like(parts[1], chosen + kept + plan.count(None))
        return run(op, (*parts, *others), _shifted(params, size) | {"plan": (slice(None), *plan)})
    return _by_places(op, parts, others, many[values:], params, size)


def _by_places(
    op: Op, parts: list[Any], others: Any, many: Any, params: dict[str, Any], size: int
) -> Any:
    """Batch indexing by flat indices into flattened examples."""
    shape = params["shape"] if op is ix.unindex else parts[0]._a.shape[1:]
    found = places(params["plan"], shape, others, many)
    flat = (size, math.prod(shape))
    index: tuple[Any, ...] = (found,)
    how: dict[str, Any] = {"plan": (slice(None), ix.HOLE)}
    ndim = rank(found)
    if any(many):
        ndim -= 1
        index = np.arange(size).reshape((size,) + (1,) * ndim), found
        how = {"plan": (ix.HOLE, ix.HOLE)}
    if op is ix.unindex:
        out = run(op, (parts[0], *index), how | {"shape": flat})
    else:
        x = run(s.reshape, (parts[0],), {"shape": flat})
        if op is ix.index:
            return run(op, (x, *index), how)
        if op is ix.index_put:
            index = (examples_like(parts[1], ndim), *index)
            how["accumulate"] = params["accumulate"]
        out = run(op, (x, *index), how)
    return run(s.reshape, (out,), {"shape": (size, *shape)})


# -- linear algebra ----------------------------------------------------------------------------


@batching_rule(ops.linalg.matmul, ops.linalg.product)
def _matmul(op: Op, given: Any, many: Any, params: dict[str, Any], size: int) -> Any:
    a, b = given
    ra, rb = rank(a) - many[0], rank(b) - many[1]
    if not many[1] and rb <= 2:
        return run(op, (a, b), {})  # vectors are rows of one matrix
    a = run(s.unsqueeze, (a,), {"dims": (int(many[0]),)}) if ra == 1 else a
    b = run(s.unsqueeze, (b,), {"dims": (many[1] + 1,)}) if rb == 1 else b
    a, b = aligned([a, b], many)
    out = run(op, (a, b), {})
    gone = ([rank(out) - 2] if ra == 1 else []) + ([rank(out) - 1] if rb == 1 else [])
    return run(s.squeeze, (out,), {"dims": tuple(gone)}) if gone else out


@batching_rule(ops.sparse.sparse_product, ops.sparse.sparse_solve)
def _sparse(op: Op, given: Any, many: Any, params: dict[str, Any], size: int) -> Any:
    """The vectors, or the columns, of all examples side by side, if there is one matrix."""
    values, x = given
    if many[0]:
        return one_by_one(op, given, many, params, size)
    order = (1, 0, *range(2, rank(x)))
    x = run(s.permute, (x,), {"dims": order})
    rows, *left = x._a.shape
    x = run(s.reshape, (x,), {"shape": (rows, math.prod(left))})
    found = run(op, (values, x), params)
    found = run(s.reshape, (found,), {"shape": (found._a.shape[0], *left)})
    return run(s.permute, (found,), {"dims": order})


@batching_rule(ops.einsum.einsum, ops.einsum.contraction)
def _einsum(op: Op, given: Any, many: Any, params: dict[str, Any], size: int) -> Any:
    """Batch `einsum`, by one more letter."""
    used = {*"".join(params["terms"]), *params["out"]}
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    letter = next(c for c in letters if c not in used)
    terms = tuple(letter + t if m else t for t, m in zip(params["terms"], many, strict=True))
    return run(op, tuple(given), {"terms": terms, "out": letter + params["out"]})


@batching_rule(
    ops.solve.solve, ops.solve.solve_triangular, ops.unchecked.solve_ex, ops.least_squares.lstsq,
    ops.banded.banded_solve, ops.sylvester.sylvester,
)  # fmt: skip
def _solve(op: Op, given: Any, many: Any, params: dict[str, Any], size: int) -> Any:
    """Batch `solve`, with leading dimensions broadcast."""
    return run(op, aligned(spread_out(given, many, size), [True] * len(given)), params)


@batching_rule(ops.lu.swap_rows, ops.lu.ldl_solve)
def _by_pivots(op: Op, given: Any, many: Any, params: dict[str, Any], size: int) -> Any:
    """Operands are matrices, but for the last: a vector of pivots."""
    *xs, pivots = spread_out(given, many, size)
    column = run(s.unsqueeze, (pivots,), {"dims": (rank(pivots),)})
    *xs, column = aligned([*xs, column], [True] * len(given))
    return run(op, (*xs, run(s.squeeze, (column,), {"dims": (rank(column) - 1,)})), params)


# -- convolutions ------------------------------------------------------------------------------


def _in_channels(x: Any) -> Any:
    """A batch of arrays (n, c, ...) as one (n, examples * c, ...)."""
    shape = x._a.shape
    moved = run(s.permute, (x,), {"dims": (1, 0, *range(2, len(shape)))})
    return run(s.reshape, (moved,), {"shape": (shape[1], shape[0] * shape[2], *shape[3:])})


def _out_of_channels(x: Any, size: int) -> Any:
    n, channels, *rest = x._a.shape
    parts = run(s.reshape, (x,), {"shape": (n, size, channels // size, *rest)})
    return run(s.permute, (parts,), {"dims": (1, 0, *range(2, len(rest) + 3))})


def _in_rows(x: Any) -> Any:
    shape = x._a.shape
    return run(s.reshape, (x,), {"shape": (shape[0] * shape[1], *shape[2:])})


def _out_of_rows(x: Any, size: int) -> Any:
    n, *rest = x._a.shape
    return run(s.reshape, (x,), {"shape": (size, n // size, *rest)})


@batching_rule(ops.alignments.ctc, ops.alignments.ctc_slope)
def _alignments(op: Op, given: Any, many: Any, params: dict[str, Any], size: int) -> Any:
    """The sequences of all examples together."""
    x, *rest = spread_out(given, many, size)
    found = run(op, (_in_channels(x), *[_in_rows(part) for part in rest]), params)
    return (_out_of_rows if found._a.ndim == 1 else _out_of_channels)(found, size)


@batching_rule(ops.convolution.convolution, ops.convolution.convolution_input)
def _convolution(op: Op, given: Any, many: Any, params: dict[str, Any], size: int) -> Any:
    """The images of all examples together; filters of their own make each example a group."""
    if not many[1]:
        (x,) = spread_out(given[:1], many[:1], size)
        return _out_of_rows(run(op, (_in_rows(x), given[1]), params), size)
    x, w = spread_out(given, many, size)
    grouped = _grouped(params, size)
    return _out_of_channels(run(op, (_in_channels(x), _in_rows(w)), grouped), size)


@batching_rule(ops.convolution.convolution_weight)
def _convolution_weight(op: Op, given: Any, many: Any, params: dict[str, Any], size: int) -> Any:
    v, x = spread_out(given, many, size)
    return _out_of_rows(run(op, (_in_channels(v), _in_channels(x)), _grouped(params, size)), size)


def _grouped(params: dict[str, Any], size: int) -> dict[str, Any]:
    at = params["geometry"]
    return params | {"geometry": at._replace(groups=at.groups * size)}


@batching_rule(*ops.windows.ROWS, *ops.interpolation.ROWS)
def _windows(op: Op, given: Any, many: Any, params: dict[str, Any], size: int) -> Any:
    """The last dimensions are those of a volume; any may stand before them."""
    return run(op, tuple(spread_out(given, many, size)), params)


@batching_rule(ops.convolution.im2col, ops.convolution.col2im)
def _patches(op: Op, given: Any, many: Any, params: dict[str, Any], size: int) -> Any:
    return _out_of_rows(run(op, (_in_rows(given[0]),), params), size)

"""Plan calls that read or write at chosen places of small Tensors: see `call_plans`.

Indexing by Tensors, gathering and scattering, filling by masks, assignment, in place or not; and
copies in C order.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tapegrad.dispatch import call_plans
from tapegrad.dispatch.call_plans import Key, add_plan, call_plan, count_call, join_plan, plans
from tapegrad.dispatch.dispatch import run
from tapegrad.dispatch.native_calls import native_calls
from tapegrad.dispatch.record_layout import layout_of
from tapegrad.kernels.sweep.sweep_abi import (
    KIND_ASSIGN,
    KIND_JOIN,
    KIND_PICK,
    KIND_SELECT,
    KIND_VIEW,
    PLACE_BITS,
)
from tapegrad.native.abi import READ, WRITE, CallPlan
from tapegrad.ops.core import Formula, Op
from tapegrad.ops.index import HOLE, at, gather, only_dimension
from tapegrad.ops.index import index as op_index
from tapegrad.ops.index_layout import INT64
from tapegrad.tape.shape_table import strides
from tapegrad.tensor import Tensor, wrap

_numbers = frozenset((int, float))
_static = frozenset((int, tuple, type(None)))
READS = frozenset((KIND_PICK, KIND_SELECT, KIND_VIEW, KIND_JOIN))
NUMBER = "number"  # in the place of the number of a shape
_EDGES = frozenset((int, type(None)))


def run_planned(
    op: Op, x: Any, index: Any, value: Any, how: Any = None, changes: bool = False
) -> Tensor | None:
    """Run a call by its plan in compiled code; None if there is no plan, or it refuses.

    `how` are the parameters: ints, None, or tuples of these.
    """
    compiled = native_calls.planned
    if compiled is None:
        return None
    plan = plans.get(_key(op, x, index, value, how, changes))  # type: ignore[arg-type]
    if plan is None:
        return None
    made = compiled(plan, x, index, value)
    if made is None and index is not None:
        copy = in_c_order(index)
        made = None if copy is index else compiled(plan, x, copy, value)
    return made


def in_c_order(index: Tensor) -> Tensor:
    """An index as compiled code reads it: a copy, if it lies elsewise and names no whole rows."""
    array = index._a
    if type(array) is not np.ndarray or array.flags.c_contiguous:
        return index
    from tapegrad.kernels.large.indexed_loops import names_rows

    return index if names_rows(array) else wrap(np.ascontiguousarray(array))


def _key(op: Op, x: Any, index: Any, value: Any, how: Any, changes: bool) -> Key | None:
    if x.__class__ is not Tensor or x._s == -1 or how.__class__ not in _static:
        return None
    shape: tuple[int, ...] | None = None
    s: int | str | None = None
    if index is not None:
        if index.__class__ is not Tensor:
            return None
        shape = index._a.shape
    kind = value.__class__
    if kind is Tensor:
        s = value._s
        if s == -1:
            return None
    elif kind in _numbers:
        s = NUMBER
    elif value is not None:
        return None
    return op, x._s, shape, s, how, changes


def run_and_plan(
    op: Op, args: tuple[Any, ...], params: dict[str, Any], *, index: Any = None, value: Any = None,
    how: Any = None,
) -> Tensor:  # fmt: skip
    """Run an operation, and count the call towards a plan for `run_planned`."""
    y = run(op, args, params)
    remember(op, args, params, y, index, value, how, changes=False)
    return y


def gathered(x: Tensor, dim: int, index: Tensor) -> Tensor:
    """For each place of an index that is known to name places, the element that it names."""
    found = run_planned(gather, x, index, None, dim)
    if found is not None:
        return found
    return run_and_plan(gather, (x, index), {"dim": dim}, index=index, how=dim)


def simple_index(key: Any) -> tuple[tuple[Any, ...], Any] | None:
    """The plan of an index of ints, slices between ints, None and `...` that is not the whole.

    And what says the same and can be a key of a dict, as slices cannot.
    """
    if type(key) is int:
        return (key, ...), key
    whole = True
    rest: tuple[Any, ...] = (...,)
    parts = key if type(key) is tuple else (key,)
    said: list[Any] = []
    for part in parts:
        kind = type(part)
        if kind is slice:
            start, stop, step = part.start, part.stop, part.step
            if type(start) not in _EDGES or type(stop) not in _EDGES or type(step) not in _EDGES:
                return None
            if step == 0:
                return None
            if start is not None or stop is not None or step is not None:
                whole = False
            said.append((start, stop, step))
            continue
        if part is ...:
            rest = ()
        elif kind is int or part is None:
            whole = False
        else:
            return None
        said.append(part)
    return None if whole else ((*parts, *rest), tuple(said))


def one_index(key: Any, ndim: int) -> tuple[Tensor, int] | None:
    """The index array of an index that takes all dimensions but one whole, and which that is."""
    *before, index = key if type(key) is tuple and key else (key,)
    if type(index) is not Tensor or index._a.dtype is not INT64:
        return None
    if type(key) is tuple and not index._a.ndim:
        return None  # a number, which selects
    d = only_dimension((*before, HOLE), ndim)
    return None if d is None or not 0 <= d < ndim else (index, d)


def flat_index(key: Any, x: Tensor) -> tuple[tuple[int, ...], Tensor] | None:
    """For several index arrays, or a mask of several dimensions, of a small Tensor: a shape in
    which one index of the first dimension says the same, and that index.
    """
    a = x._a
    if type(x) is not Tensor or x._s == -1 or type(a) is not np.ndarray:
        return None
    if not a.flags.c_contiguous:
        return None
    if type(key) is Tensor:
        mask = key._a
        if mask.ndim < 2 or mask.dtype.char != "?" or mask.shape != a.shape[: mask.ndim]:
            return None
        return (mask.size, *a.shape[mask.ndim :]), wrap(mask.ravel().nonzero()[0])
    if type(key) is not tuple or len(key) < 2 or len(key) > a.ndim or not a.size:
        return None
    arrays = [part._a if type(part) is Tensor else part for part in key]
    if not all(type(k) is int or (type(k) is np.ndarray and k.dtype is INT64) for k in arrays):
        return None
    if not any(k.ndim for k in arrays if type(k) is np.ndarray):
        return None
    try:
        flat = np.ravel_multi_index(arrays, a.shape[: len(arrays)])
    except ValueError:  # some count from the end, or name no place
        return None
    return (prod(a.shape[: len(arrays)]), *a.shape[len(arrays) :]), wrap(flat)


def chosen(x: Tensor, index: Tensor, dim: int) -> Tensor:
    """What an index array names along a dimension; for the first one no plan was found before."""
    how = dim or None
    found = None if how is None else run_planned(op_index, x, index, None, how)
    if found is not None:
        return found
    index = in_c_order(index)
    return run_and_plan(op_index, (x, index), {"plan": at(dim, HOLE)}, index=index, how=how)


def remember(
    op: Op, args: tuple[Any, ...], params: dict[str, Any], y: Tensor, index: Any, value: Any,
    how: Any, *, changes: bool,
) -> None:  # fmt: skip
    """Count a call, and make a plan when it has come often enough."""
    key = None if native_calls.planned is None else _key(op, args[0], index, value, how, changes)
    if key is None or (value.__class__ is Tensor and not any(a is value for a in args)):
        return
    if index is not None and not any(a is index for a in args):
        return
    if count_call(key) != call_plans.TIMES or y._s == -1:
        return
    arrays = [a._a if isinstance(a, Tensor) else a for a in args]
    layout = layout_of(op, arrays, y._a, params)
    if layout is not None:
        add_plan(key, _plan(op, arrays, y._a, params, layout, changes))


def _plan(
    op: Op, arrays: list[Any], y: np.ndarray, params: dict[str, Any], layout: tuple[int, int],
    changes: bool,
) -> CallPlan:  # fmt: skip
    if op.moves == "identity":
        return join_plan(op, arrays, y, layout, params)
    kind, (index_at, value_at) = op.sweep, _operands(op)
    named = "others" if op.variadic else op.inputs[index_at]
    bit = 1 << index_at if index_at > 0 else 0
    reads = [0, 0, 0]
    for k in {0, max(value_at, 0)}:
        formula = op.formulas[k]
        if isinstance(formula, Formula) and named in formula.reads:
            reads[k] = bit
    row: list[int] = []
    if kind in (KIND_ASSIGN, KIND_VIEW, KIND_JOIN):
        start = layout[1] & ((1 << PLACE_BITS) - 1)
        if kind == KIND_JOIN:  # of one part
            start = int(strides.table[start])
        row = strides.table[start : start + 3 + 2 * int(strides.table[start + 2])].tolist()
    specs = tuple((a.shape, a.dtype) if type(a) is np.ndarray else None for a in arrays)
    return call_plan(
        op, y, layout, (params, specs), reads, row, operands=len(arrays), index=max(index_at, 0),
        value=max(value_at, 0), in_place=changes, loops=READ if kind in READS else WRITE, loop=kind,
        rows=None, counts_back=op.variadic,
    )  # fmt: skip


def _operands(op: Op) -> tuple[int, int]:
    """The operand numbers of the index and of the value written; -1: there is none."""
    names = op.inputs
    value = next((k for k, name in enumerate(names) if name in ("value", "src", "source")), -1)
    index = next((k for k, name in enumerate(names) if name in ("others", "index", "mask")), -1)
    return index, value

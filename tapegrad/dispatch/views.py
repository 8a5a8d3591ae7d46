"""The fast path of views: a Tensor that shares another's memory, with its record.

A function that makes a view is written as a view function: it parses its arguments into a
`ViewRequest` (or `MultiViewRequest`, for the views of one call, as of `unbind`).  `view_of` makes
it a function that returns the Tensor.  The native path caches the request by the arguments and the
operand's layout (`tapegrad.native.view_cache`), and does not call the view function again.

`make_view` writes what `dispatch.run` would write, without checks that a view passes anyway: it has
one operand of the same dtype, computes nothing and saves no value.  The caller has made the array,
which must share the operand's memory.  The lines that append a record are those of `Tape.append`.

What a view writes follows from the operation, its parameters and the operand's shape: it is planned
once, and records of the same view share the plan (`ViewPlan`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from itertools import repeat
from typing import Any, NamedTuple, ParamSpec, overload

import numpy as np

from tapegrad.dispatch.dispatch import resolve, run
from tapegrad.dispatch.native_calls import native_calls
from tapegrad.dispatch.numpy_semantics import numpys
from tapegrad.dispatch.operand_layout import classes, view_place
from tapegrad.dispatch.record_layout import layout_of
from tapegrad.kernels.sweep.sweep_abi import KIND_VIEW, SMALL
from tapegrad.native.abi import ViewPlan
from tapegrad.ops.core import Op, table
from tapegrad.ops.shape import PASSES, STRIDED, clone, expand, getitem
from tapegrad.ops.strided import as_strided
from tapegrad.tape.copy_on_use import SHARED
from tapegrad.tape.record_format import DTYPE_BITS, FIELDS, GENERAL, IN0, SHARES, STRIDE, pack_into
from tapegrad.tape.shape_table import Shape, shapes
from tapegrad.tape.tape import MODE_FAST, Tape, current
from tapegrad.tensor import F4, F8, INFERENCE, NO_GRAD, Chain, Tensor, View, number

Params = dict[str, Any]
_new = Tensor.__new__
_new_view = View.__new__
_strided = frozenset(
    op for op in table.values() if op.view and (op.moves in STRIDED or op.sweep == KIND_VIEW)
)


P = ParamSpec("P")


class ViewRequest(NamedTuple):
    """The view that a view function requests: the arguments of `make_view`."""

    op: Op
    x: Tensor
    params: Params
    r: np.ndarray
    key: Hashable = None
    element: bool = False


class MultiViewRequest(NamedTuple):
    """The views that a view function requests: the arguments of `make_views`."""

    x: Tensor
    key: Hashable
    indices: Callable[[], list[Any]]
    arrays: Callable[[np.ndarray], list[np.ndarray]] | None = None
    together: bool = True


ViewFn = Callable[..., Tensor | ViewRequest | MultiViewRequest]


def as_tensors(made: Tensor | ViewRequest | MultiViewRequest) -> Any:
    """Make Tensors of the views that a view function requested."""
    if made.__class__ is ViewRequest:
        t = make_view(*made)
        return t if made.x._a.ndim or made.element else _of_number(made.x, t)
    return make_views(*made) if made.__class__ is MultiViewRequest else made


def _of_number(x: Tensor, view: Tensor) -> Tensor:
    """A view of a 0-d Tensor: a copy where NumPy would return a scalar.

    A constant is an array; so is a view, as `x[0, ...]` and what is reshaped to no dimensions are.
    """
    home = x._home
    array = (type(x) is Tensor and not x._pos) or (type(home) is View and home.base is not None)
    if array or not numpys():
        return view
    copy: Tensor = run(clone, (view,), {})
    return copy


def viewed(view_fn: ViewFn, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Call a view function and make Tensors of the views it requests."""
    return as_tensors(view_fn(*args, **named))


# What users are told that a function returns.
_SHOWN = {
    "ViewRequest": "Tensor",
    "Tensor | ViewRequest": "Tensor",
    "MultiViewRequest": "tuple[Tensor, ...]",
}


@overload
def view_of(view_fn: Callable[P, Tensor | ViewRequest]) -> Callable[P, Tensor]: ...
@overload
def view_of(view_fn: Callable[P, MultiViewRequest]) -> Callable[P, tuple[Tensor, ...]]: ...
def view_of(view_fn: Callable[P, Any]) -> Callable[P, Any]:
    """Make a view function a function that returns Tensors."""
    said = view_fn.__annotations__
    said["return"] = _SHOWN.get(said["return"], said["return"])

    @wraps(view_fn)
    def function(*args: P.args, **named: P.kwargs) -> Any:
        return native_calls.view(view_fn, args, named)

    return function


# By operation, shape and type of the operand, and the caller's key of the parameters.
_plans: dict[Any, ViewPlan] = {}
KNOWN = 4096


def view_plan(op: Op, a: np.ndarray, params: Params, r: np.ndarray, key: Hashable) -> ViewPlan:
    """The plan of a view's record, from the cache if a key is given."""
    plan = None if key is None else _plans.get((op, a.shape, a.dtype.char, key))
    if plan is None or plan.dtype is not a.dtype or (plan.ordered and not a.flags.c_contiguous):
        return _new_plan(op, a, params, r, key)
    return plan


def _new_plan(op: Op, a: np.ndarray, params: Params, r: np.ndarray, key: Hashable) -> ViewPlan:
    dtype = a.dtype
    word = op.code | DTYPE_BITS.get(r.dtype, 0) | SHARES
    bits = aux = 0
    ordered = op is as_strided
    if dtype.kind == "c" or r.dtype.kind == "c":
        bits, aux = layout_of(op, [a], r, params) or (GENERAL, 0)
    elif op is expand:
        bits, aux = classes((a.shape,), r.shape) or (GENERAL, 0)
    elif op in _strided and (dtype is F8 or dtype is F4):
        place = view_place(op, a, r, params)
        bits, aux = (GENERAL, 0) if place < 0 else (0, place)
    elif op.moves not in PASSES:
        bits = GENERAL
    word |= bits
    entry = (None, None, (params, ((a.shape, dtype),)))
    shape = shapes.number(r.shape)
    plan = ViewPlan(
        step=((op, params),), dtype=dtype, short=number(r), word=word, shape=shape, aux=aux,
        ordered=ordered, entry=entry,
    )  # fmt: skip
    lies = not (ordered and word & GENERAL) or a.size > SMALL  # as it will in every such operand
    if key is not None and lies and (dtype.kind == "c" or dtype is F8 or dtype is F4):
        if len(_plans) >= KNOWN:
            _plans.clear()
        _plans[op, a.shape, dtype.char, key] = plan
    return plan


def make_view(
    op: Op, x: Tensor, params: Params, r: np.ndarray, key: Hashable = None, element: bool = False
) -> Tensor:
    """The view `r` of a Tensor's array as a Tensor, recorded if it must be.

    The parameters follow from `key`, if it is given, and from the array's shape.  What NumPy reads
    as an element is a number of its own where NumPy's rules hold, and a view anywhere else.
    """
    element = element and numpys()
    tape = current.tape
    home = x._home
    if home is not None and home is not tape:
        if home is SHARED:  # `r` lies in memory that x will not have any more
            t = run(op, (x,), params)
            return separate(t, tape) if element else t
        resolve(x, tape)
    if tape.leaf_debt > tape.debt_limit:
        tape.reclaim()  # before the position is read, which that moves
    token = tape.next
    p = x._pos
    if type(x) is not Tensor or (tape.mode != MODE_FAST and (tape.inference or (p and tape.mode))):
        t = run(op, (x,), params)
        return separate(t, tape) if element else t
    recorded = p and tape.mode
    if recorded or key is not None:
        step, _, short, word, shape, aux, _, entry = view_plan(op, x._a, params, r, key)
    else:
        step, short = ((op, params),), number(r)
    t = _new(Tensor)
    t._a = r
    t._s = short
    if element:
        separate(t, tape)
    else:
        t._home = view = _new_view(View)
        view.tape = tape
        view.several = False
        if type(home) is not View:
            view.base = x
            view.chain = step
            view.stamp = p
            view.frozen = NO_GRAD if p and not tape.enabled else ""
        else:
            _above(view, home, step, p, tape)
    if not recorded:
        t._pos = 0
        return t
    if p < 0:
        p = tape.slots.get(p) or tape.slot(x)
    used = tape.used
    pack_into(tape.buffer, used * STRIDE, word, p, 0, 0, shape, aux)
    if tape.next is not token or used == tape.capacity:
        tape.make_room()
        return make_view(op, x, params, r, key)
    tape.tokens[used] = token
    tape.keep[used] = entry
    tape.used = used + 1
    tape.next = token + 1
    t._pos = token
    return t


def separate(t: Tensor, tape: Tape) -> Tensor:
    """Make a new view of an element a scalar with memory of its own."""
    if tape.element is None:
        tape.element = View(None, (), tape)
    if type(t) is not Tensor:
        t = t._separated(tape)
    else:
        t._a = t._a.copy()
    t._home = View(None, (), tape, frozen=INFERENCE) if tape.inference else tape.element
    return t


def _above(view: View, above: View, step: Chain, p: int, tape: Tape) -> None:
    """Complete the `View` of a view of a view."""
    base = above.base
    view.several = above.several
    if base is None:
        view.base, view.chain, view.stamp, view.frozen = None, (), 0, above.frozen
        return
    view.base = base
    view.chain = above.chain + step
    view.stamp = base._pos
    view.frozen = NO_GRAD if p and not tape.enabled else above.frozen


class MultiViewPlan(NamedTuple):
    """The plan of a call that makes several views, by the operand's shape and dtype."""

    indices: list[Any]
    plans: list[ViewPlan]
    words: np.ndarray
    entries: list[Any]


_multi_plans: dict[tuple[Shape, str, Hashable], MultiViewPlan] = {}
_pieces = 0  # of all cuts that are known


def multi_view_plan(
    a: np.ndarray, key: Hashable, indices: Callable[[], list[Any]]
) -> MultiViewPlan:
    """The plan of the records of one call's views, from the cache or new."""
    multi = _multi_plans.get((a.shape, a.dtype.char, key))
    if multi is None:
        return _new_multi_plan(a, key, indices())
    first = multi.plans[0]
    known = first.dtype is a.dtype and (a.flags.c_contiguous or not first.ordered)
    return multi if known else _new_multi_plan(a, key, indices())


def _new_multi_plan(x: np.ndarray, key: Hashable, indices: list[Any]) -> MultiViewPlan:
    global _pieces
    plans = [_new_plan(getitem, x, {"index": index}, x[index], None) for index in indices]
    words = np.array([(w.word, 0, 0, 0, w.shape, w.aux) for w in plans], np.int64)
    multi = MultiViewPlan(indices, plans, words, [w.entry for w in plans])
    if plans and x.dtype.kind in "fc" and len(plans) < KNOWN:
        if _pieces > 4 * KNOWN:
            _multi_plans.clear()
            _pieces = 0
        _multi_plans[x.shape, x.dtype.char, key] = multi
        _pieces += len(plans)
    return multi


def make_views(
    x: Tensor,
    key: Hashable,
    indices: Callable[[], list[Any]],
    arrays: Callable[[np.ndarray], list[np.ndarray]] | None = None,
    together: bool = True,
) -> tuple[Tensor, ...]:
    """The views of one call; of those that stay `together` none may be changed in place alone.

    The indices follow from `key` and the array's shape; `arrays` makes the same arrays faster.
    """
    tape = current.tape
    home = x._home
    if home is not None and home is not tape:
        resolve(x, tape)
    p = x._pos
    a = x._a
    if type(home) is View or tape.mode != MODE_FAST or type(x) is not Tensor:
        found = [make_view(getitem, x, {"index": index}, a[index]) for index in indices()]
        for t in found:
            if type(t._home) is View:
                t._home.several |= together
        return tuple(found)
    multi = multi_view_plan(a, key, indices)
    views = [a[index] for index in multi.indices] if arrays is None else arrays(a)
    places = _append_all(tape, multi.words, x, multi.entries) if p and views else repeat(0)
    found = []
    for r, plan, place in zip(views, multi.plans, places, strict=False):
        t = _new(Tensor)
        t._a = r
        t._s = plan.short
        t._pos = place
        t._home = view = _new_view(View)
        view.base = x
        view.chain = plan.step
        view.tape = tape
        view.stamp = p
        view.several = together
        view.frozen = ""
        found.append(t)
    return tuple(found)


def _append_all(tape: Tape, words: np.ndarray, leaf: Tensor, entries: list[Any]) -> list[int]:
    """Append records that read a single Tensor, and return their positions.

    `words` are the records as they stand in the buffer, but for that input.
    """
    count = len(words)
    while True:
        first = tape.next
        start = tape.make_room(count)
        block = np.frombuffer(tape.buffer, np.int64, count * FIELDS, start * STRIDE)
        rows = words.copy()
        rows[:, IN0] = leaf._pos if leaf._pos > 0 else tape.slot(leaf)
        rows = rows.ravel()
        end = first + count
        tokens, places = list(range(first, end)), slice(start, start + count)
        if tape.next is first:  # and so it stays to the end
            block[...] = rows
            tape.tokens[places] = tokens
            tape.keep[places] = entries
            tape.used = start + count
            tape.next = end
            return tokens

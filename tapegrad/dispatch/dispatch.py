"""Run an operation on Tensors of any kind and record it: the general path.

`run` takes any operation and any operands.  Native code writes the same records, and so does
`inplace`, for operations that write into their first operand.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import count, zip_longest
from typing import Any

import numpy as np

from tapegrad.base.abstract_array import AbstractArray
from tapegrad.base.dtypes import get_default_dtype, result_type
from tapegrad.dispatch.layout_history import chain_to, unchanged
from tapegrad.dispatch.operand_errors import mismatch, undefined, unfit
from tapegrad.dispatch.record_layout import layout_of
from tapegrad.kernels.sweep.sweep_abi import SMALL
from tapegrad.ops import elementwise as e
from tapegrad.ops.core import ELEMENTWISE, Formula, Op
from tapegrad.ops.strided import replay
from tapegrad.parallel import large_elementwise
from tapegrad.tape import versions
from tapegrad.tape.copy_on_use import SHARED, own
from tapegrad.tape.debts import DROP_FLOOR
from tapegrad.tape.record_format import DTYPE_BITS, GENERAL, PACKED, SAVES, SHARES
from tapegrad.tape.shape_table import LARGE
from tapegrad.tape.tape import Ended, Tape, current
from tapegrad.tensor import (
    F4,
    F8,
    INFERENCE,
    NO_GRAD,
    NOWHERE,
    Tensor,
    View,
    fresh,
    noted,
    place,
    placed,
    wrap,
)

MANY_CALLS = 2048  # without a record; so many make native code as welcome as a tape that is full
count_call = count(1).__next__  # of calls that leave no record


def run(op: Op, args: tuple[Any, ...], params: dict[str, Any]) -> Tensor:
    """Run an operation on Tensors, arrays and numbers, and record it if it must be."""
    tape = current.tape
    given = []
    history = False
    for arg in args:
        if isinstance(arg, Tensor):
            if type(arg) is not Tensor:
                return arg._run(op, args, params)
            home = arg._home
            if home is not None and home is not tape and not resolve(arg, tape):
                return arg._run(op, args, params)
            if arg._pos:
                history = True
                if tape.escaped:
                    check_open(arg, tape)
            given.append(arg._a)
        elif type(arg) is AbstractArray:
            return run(op, tuple(a.owner if type(a) is AbstractArray else a for a in args), params)
        else:
            given.append(arg)
    if tape.debt > DROP_FLOOR:
        tape.drop_tail()
    if op.kind is ELEMENTWISE:
        arrays = promoted(op, given)
        try:
            result = large_elementwise.forward(op, arrays)
        except ValueError:
            raise mismatch(op, arrays) from None
        except TypeError:
            raise undefined(op, arrays) from None
        if arrays[-1].dtype.char == "e" and result.dtype.kind == "f":  # SciPy's begin at float32
            result = result.astype(arrays[-1].dtype, copy=False)
    else:
        arrays = given
        try:
            result = op.forward(*given, **params)
        except (ValueError, TypeError) as problem:
            raise unfit(op, arrays, problem) from None
    if type(result) is not np.ndarray:
        result = np.asarray(result)
    recorded = history and tape.mode and result.dtype.kind in "fc"
    codes = input_codes(op, args) if recorded else ()
    if any(codes):
        if result.dtype not in DTYPE_BITS:
            raise NotImplementedError(
                f"`{op.name}`: there are no gradients through {result.dtype}: compute in float32 "
                "or float64, or under `no_grad`"
            )
        if not op.complex:
            _check_real(op, arrays, result)
        if result.size > LARGE and not op.view:
            tape.add_debt(result.nbytes)
        token = write(tape, op, args, codes, given, arrays, result, params)
        t = placed(result, tape, token)
        if tape.anomaly is not None:
            note_line(tape, token)
    else:
        t = fresh(result)
        if Tape.on_full is not None:
            note_call()
    if op.view and isinstance(args[0], Tensor) and versions.root(result) is versions.root(given[0]):
        _attach_view(t, args[0], op, params, tape)
    return t


def note_call() -> None:
    """Count a call that leaves no record, while native operations are not there yet."""
    if count_call() % MANY_CALLS == 0:
        note_many_calls()


def note_many_calls() -> None:
    """Have native operations opened, if they can be: many calls have left no record."""
    if Tape.on_full is not None:
        Tape.on_full()


def _check_real(op: Op, arrays: list[Any], result: np.ndarray) -> None:
    """Refuse complex numbers, for whose gradients the operation has no formula."""
    for x in (*arrays, result):
        if type(x) is np.ndarray and x.dtype.kind == "c":
            raise NotImplementedError(
                f"`{op.name}`: there is no gradient in complex numbers ({x.dtype}); differentiate "
                "real and imaginary parts (`t.real`, `t.imag`), or use `no_grad`"
            )


def resolve(t: Tensor, tape: Tape) -> bool:
    """Regenerate an outdated view; copy shared memory; refuse a Tensor of another thread's tape.

    False: it is lifted now, as its base was by a write since the view was made.
    """
    home = t._home
    if home is SHARED:
        own(t)
        return True
    if type(home) is Ended:
        raise ended(t)
    if type(home) is View and (home.tape is tape or t._pos <= 0):
        base = home.base
        if base is None or base._pos == home.stamp or (home.frozen and not tape.mode):
            return True
        if home.frozen:
            regenerate(t, home)
    position = place(t)
    home = t._home
    owner = home.tape if isinstance(home, View) else home
    if position > 0 and owner is not tape and owner is not None:  # None: it is lifted
        raise RuntimeError(
            f"this Tensor of shape {t._a.shape} was recorded by another thread: finish its graph "
            "there (call `backward` in that thread), or pass `t.detach()` across"
        )
    return type(t) is Tensor


def check_open(t: Tensor, tape: Tape) -> None:
    """Refuse a value that escaped its transform, where records are made."""
    position = t._pos
    if tape.mode and position > 0:
        gone = tape.index(position) < 0
        if gone or (position in tape.escaped and not tape.sweeping):
            raise ended(t)


def ended(t: Tensor) -> RuntimeError:
    """The error for a value that escaped its transform."""
    name = t._home.name if isinstance(t._home, Ended) else current.tape.escaped.get(t._pos)
    inside = f"`tapegrad.{name}`" if name else "`tapegrad.grad` or another transform"
    return RuntimeError(
        f"this Tensor of shape {t._a.shape} was made inside {inside} and is used after that has "
        "ended: return it from the function (with `has_aux=True` beside the value), or keep "
        "`tapegrad.stop_gradient(t)` if it shall be a constant"
    )


def run_constant(op: Op, x: Tensor, params: dict[str, Any]) -> Tensor:
    """`run` for an operation whose result, places, has no derivative: nothing is recorded."""
    tape = current.tape
    if type(x) is not Tensor or tape.levels or tape.depth or type(x._a) is not np.ndarray:
        return run(op, (x,), params)
    if x._home is not None and x._home is not tape and not resolve(x, tape):
        return run(op, (x,), params)
    return fresh(op.forward(x._a, **params))


def input_codes(op: Op, args: tuple[Any, ...]) -> list[int]:
    """The places of operands that the operation is differentiable in; 0 for the others."""
    moves = op.moving
    if len(args) == 1:
        return [args[0]._pos if moves[0] and isinstance(args[0], Tensor) else 0]
    if op.variadic:
        moves += moves[-1:] * (len(args) - len(moves))
    return [
        arg._pos if moving and isinstance(arg, Tensor) else 0
        for arg, moving in zip(args, moves, strict=False)
    ]


def promoted(op: Op, operands: list[Any]) -> list[Any]:
    """Operands in PyTorch's result type; a condition keeps its own."""
    if len(operands) == 1 and type(operands[0]) is np.ndarray and operands[0].dtype.kind == "f":
        return operands
    first = 1 if op is e.where else 0
    kind = None
    for x in operands[first:]:
        if type(x) is not np.ndarray or (kind is not None and x.dtype is not kind):
            break
        kind = x.dtype
    else:
        letter = "" if kind is None else kind.kind
        if letter == "c" and op.ordered:
            raise undefined(op, operands)
        if letter not in ("b", "i", "u"):
            return operands
    target = result_type(operands[first:])
    if target.kind == "c" and op.ordered:
        raise undefined(op, operands)
    if target.kind not in "biu":
        return operands[:first] + [np.asarray(x, target) for x in operands[first:]]
    if op.to_float:
        target = get_default_dtype().numpy
    elif op is e.square and target.kind == "b":
        target = np.dtype(np.int64)
    else:
        _check_integers(op, operands, target)
    # `astype` lets a number that does not fit wrap around, as PyTorch does.
    return operands[:first] + [np.asarray(x).astype(target, copy=False) for x in operands[first:]]


def _check_integers(op: Op, operands: list[Any], kind: np.dtype[Any]) -> None:
    """Refuse what NumPy would answer with a TypeError of its own, or with a warning."""
    if kind.kind == "b" and op in (e.sub, e.neg):
        raise RuntimeError("`-` is not defined for booleans: use `^` or `logical_not`")
    if op in (e.floor_divide, e.remainder, e.fmod) and not np.all(operands[1]):
        raise RuntimeError(f"`{op.name}`: integers cannot be divided by zero (ZeroDivisionError)")
    if op is e.pow and np.any(np.less(operands[1], 0)):
        raise RuntimeError("integers to negative integer powers are not allowed: use floats")


def write(
    tape: Tape,
    op: Op,
    args: tuple[Any, ...],
    codes: Sequence[int],
    given: list[Any],
    arrays: list[Any],
    result: np.ndarray,
    params: dict[str, Any],
) -> int:
    """Append the record of an operation; `arrays` are the operands after promotion."""
    dtype = result.dtype
    native, mixed = dtype is F8 or dtype is F4, _mixed(given, result)
    if native and op.kind is ELEMENTWISE and not mixed:
        native = _native(op, given, arrays, codes, result)
    if mixed:  # real operands stay as they are
        arrays = [g if isinstance(g, np.ndarray) else a for g, a in zip(given, arrays, strict=True)]
    layout = layout_of(op, arrays, result, params) if native or mixed else None
    known = (native and not mixed) or layout is not None
    values = kept_values(op, codes, arrays if known else given, result)
    word = op.code | DTYPE_BITS[dtype] | (SHARES if op.view else 0)
    entry: Any = values
    if layout is None:
        word |= GENERAL
        aux = 0
    else:
        bits, aux = layout
        word |= bits
    plain = layout is not None and op.kind is ELEMENTWISE and not mixed
    if not plain:
        specs = [(x.shape, x.dtype) if type(x) is np.ndarray else None for x in given]
        entry = (*values, (params, tuple(specs)))
    for value in values:
        if value is not None:
            word |= SAVES
            break
    else:
        if plain:
            entry = None
    if tape.saved_hooks and word & SAVES:
        entry, word = pack(tape, entry, args), word | PACKED | GENERAL
    if len(codes) == 4 and op.kind is ELEMENTWISE and not codes[3]:
        codes = codes[:3]  # a number: three inputs fit a record
    return tape.append(word, codes, result.shape, aux, entry, args)


def _mixed(given: list[Any], result: np.ndarray) -> bool:
    """Whether an operation is about complex numbers; of a real result the first operand tells."""
    first = given[0]
    return result.dtype.kind == "c" or (type(first) is np.ndarray and first.dtype.kind == "c")


def _native(
    op: Op, given: list[Any], arrays: list[Any], codes: Sequence[int], result: np.ndarray
) -> bool:
    """Whether no array operand was cast to the result's dtype, but for small constants."""
    kind, first = result.dtype, 0
    if op.inputs[0] == "condition":
        if type(given[0]) is not np.ndarray or given[0].dtype.char != "?":
            return False
        first = 1
    for g, a, code in zip(given[first:], arrays[first:], codes[first:], strict=True):
        cast = a is not g and isinstance(g, np.ndarray)
        if a.dtype is not kind or (cast and (code or a.size > SMALL)):
            return False
    return True


_kept: dict[tuple[Op, tuple[bool, ...]], list[bool]] = {}  # by which operands are tracked


def kept_values(op: Op, codes: Any, arrays: list[Any], result: np.ndarray) -> tuple[Any, ...]:
    """The saved values: those that formulas of tracked inputs read, as (inputs..., result)."""
    if op.variadic:
        return _kept_variadic(op, codes, arrays, result)
    if not op.keeps:
        return (None,) * (len(codes) + 1)
    if len(codes) == 1 and codes[0]:
        reads_x, reads_y = op.saves[0]
        return arrays[0] if reads_x else None, result if reads_y else None
    tracked = tuple(map(bool, codes))
    keep = _kept.get((op, tracked))
    if keep is None:
        rows = [row for row, code in zip(op.saves, codes, strict=True) if code]
        none = (False,) * (len(codes) + 1)
        keep = _kept[op, tracked] = [any(read) for read in zip(none, *rows, strict=True)]
    return tuple([v if k else None for v, k in zip((*arrays, result), keep, strict=True)])


def _kept_variadic(op: Op, codes: Any, arrays: list[Any], result: np.ndarray) -> tuple[Any, ...]:
    last = len(op.formulas) - 1
    reads: set[str] = set()
    for k, code in enumerate(codes):
        formula = op.formulas[min(k, last)]
        if code and isinstance(formula, Formula):
            reads |= set(formula.reads)
    values = [a if i >= last and "others" in reads else None for i, a in enumerate(arrays)]
    return (*values, result if "y" in reads else None)


def pack(tape: Tape, entry: Any, args: tuple[Any, ...] = ()) -> Any:
    """Pack saved values by the innermost saved_tensors_hooks, except operands like `3.0`.

    The entry begins with the values of the operands `args`.
    """
    numbers = [isinstance(v, np.ndarray) and not v.ndim and not isinstance(arg, Tensor)
               for v, arg in zip(entry, args, strict=False)]  # fmt: skip
    send, receive = tape.saved_hooks[-1]
    before = tape.enabled, tape.saved_hooks, tape.careful, tape.mode
    try:
        tape.enabled, tape.saved_hooks = False, []
        tape.set_mode()
        packed = [
            Packed(receive, v, send) if isinstance(v, np.ndarray) and not number else v
            for v, number in zip_longest(entry, numbers)
        ]
    finally:
        tape.enabled, tape.saved_hooks, tape.careful, tape.mode = before
    return tuple(packed)


class Packed:
    """A saved value that went through a pack hook."""

    __slots__ = ("content", "receive")

    def __init__(self, receive: Any, array: np.ndarray, send: Any) -> None:
        self.receive = receive
        before = versions.moment()
        self.content = send(wrap(array))
        if versions.moment() != before and versions.changed(versions.root(array)) > before:
            raise RuntimeError(
                "a pack hook of `saved_tensors_hooks` changed its Tensor in-place: work on a clone"
            )

    def unpacked(self) -> np.ndarray:
        """The value that the unpack hook gives back."""
        found = self.receive(self.content)
        if not isinstance(found, Tensor):
            raise TypeError(
                "the unpack hook of `saved_tensors_hooks` must return a Tensor, "
                f"got {type(found).__name__}"
            )
        return found._a


class Trace(str):
    """A line of the user's program; `outer` is that of the record being differentiated there.

    That of the record that a sweep is at stands in `Tape.traces` at 0, which is no position.
    """

    name = ""
    outer: Trace | None = None


def note_line(tape: Tape, position: int) -> None:
    """Note the user's line that made a record, for anomaly detection."""
    import traceback

    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").startswith("tapegrad"):
        frame = frame.f_back
    line = "".join(traceback.format_stack(frame)) if frame is not None else ""
    # A new int object: the references of the one on the tape tell whether the record is in use.
    trace = tape.traces[position - 1 + 1] = Trace(line)
    trace.outer = tape.traces.get(0) or None  # type: ignore[assignment]


# -- views ---------------------------------------------------------------------------------


def _attach_view(t: Tensor, parent: Tensor, op: Op, params: dict[str, Any], tape: Tape) -> None:
    above = parent._home
    step = ((op, params),)
    frozen = NO_GRAD if not tape.enabled and place(parent) else ""
    if not isinstance(above, View):
        t._home = View(parent, step, tape, frozen=frozen)
    elif above.frozen == INFERENCE or above.base is None:
        t._home = View(None, (), tape, frozen=above.frozen)
    else:
        t._home = View(above.base, above.chain + step, tape, frozen=frozen or above.frozen)
        t._home.several = above.several


def regenerate(t: Tensor, home: View) -> None:
    """Give a view a new record, replayed from its base's new one."""
    base = home.base
    assert base is not None
    if home.frozen:
        if home.stamp != base._pos > 0:
            raise RuntimeError(
                f"this Tensor of shape {t._a.shape} is a view that was made under `no_grad`, and "
                "an in-place operation that is recorded has changed its base since: make the view "
                "where it is used, or `clone()` it"
            )
        return
    if type(base) is not Tensor:
        base._lift_view(t, home)
        return
    if unchanged(base, home.stamp):
        home.stamp = base._pos
        return
    if home.opaque:
        raise RuntimeError(
            f"this Tensor of shape {t._a.shape} is an argument that a Function returned, or a view "
            "of it, and an in-place operation has changed the argument since, which the Function's "
            "rule does not know of: return `x.clone()` in `forward`, or change a clone"
        )
    home.stamp = base._pos
    if base._pos == 0:  # it was detached: its former history is still this view's
        t._pos = t._pos if 0 < t._pos < NOWHERE else 0
        return
    tape = base._home if isinstance(base._home, Tape) else current.tape
    home.tape = tape
    t._pos = write_step(tape, replay, (base,), t._a, {"chain": chain_to(t, home)})
    retain_anew(t)


def retain_anew(t: Tensor) -> None:
    """Move `retain_grad` to the Tensor's new value; hooks stay with the old one."""
    follow = noted(t, "retain_anew")
    if follow is not None:
        follow(t)


def write_step(
    tape: Tape, op: Op, args: tuple[Tensor, ...], result: np.ndarray, params: dict[str, Any]
) -> int:
    """Append the record of an operation whose result is already in place."""
    arrays = [arg._a for arg in args]
    return write(tape, op, args, input_codes(op, args), arrays, arrays, result, params)


def called(op: Op, args: tuple[Any, ...], params: dict[str, Any]) -> Tensor:
    """Run an operation that was called on Tensors, by its entry if it has one."""
    return run(op, args, params) if params or op.entry_point is None else op.entry_point(*args)

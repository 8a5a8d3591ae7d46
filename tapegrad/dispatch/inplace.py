"""Run operations that write into their first operand, and rewrite its history."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.base.dtypes import category
from tapegrad.dispatch.dispatch import (
    check_open,
    input_codes,
    note_call,
    note_line,
    promoted,
    regenerate,
    resolve,
    retain_anew,
    write,
    write_step,
)
from tapegrad.dispatch.index_plans import remember, run_planned
from tapegrad.dispatch.inplace_parts import Part, changed_part
from tapegrad.dispatch.layout_history import chain_to, check_chain
from tapegrad.dispatch.native_calls import native_calls
from tapegrad.dispatch.op_functions import as_operand
from tapegrad.dispatch.operand_errors import mismatch, undefined, unfit
from tapegrad.ops.core import ELEMENTWISE, Op
from tapegrad.ops.index import assign
from tapegrad.ops.strided import write_view
from tapegrad.parallel import large_elementwise
from tapegrad.tape import versions
from tapegrad.tape.record_format import SPENT
from tapegrad.tape.shape_table import LARGE
from tapegrad.tape.tape import MODE_CAREFUL, Tape, current
from tapegrad.tensor import COPY, INFERENCE, NO_GRAD, Tensor, View, place, placed

FITS = 1e38  # numbers below fit into float32


def run_inplace(
    op: Op, args: tuple[Any, ...], params: dict[str, Any], target: Tensor, name: str = ""
) -> Tensor:
    """Run an operation and write the result into `target`, rewriting its history.

    A refusal speaks of `name`, which is the operation's with an underscore if it is not given.
    """
    compiled = native_calls.change
    if compiled is not None and op.kind is ELEMENTWISE and args[0] is target:
        second, third = (*args[1:], None, None)[:2]
        made = compiled(target, second, third, op.code)
        if made is not None:
            return made
        if type(target._home) is View and (part := changed_part(op, args, target)) is not None:
            return _write_part(part, target, name or op.name + "_")
    tape = current.tape
    arrays = []
    for arg in (*args, target):
        if isinstance(arg, Tensor):
            if type(arg) is not Tensor:
                return arg._run_inplace(op, args, params, target)
            if arg._home is not None and arg._home is not tape and not resolve(arg, tape):
                return arg._run_inplace(op, args, params, target)
            if tape.escaped:
                check_open(arg, tape)
            arrays.append(arg._a)
        else:
            arrays.append(arg)
    arrays.pop()
    codes = input_codes(op, args)
    listening = bool(tape.mode) and (target._pos != 0 or any(codes))
    check_inplace(name or op.name + "_", target, tape, listening)
    old = target._a
    operands = promoted(op, arrays) if op.kind is ELEMENTWISE else arrays
    if listening:  # the record tells operands that were cast from the others by their identity
        given = _unaliased(op, arrays, old)
        cast = zip(arrays, operands, given, strict=True)
        kept = [g if x is a else x for a, x, g in cast]
    direct = old.size >= LARGE and operands[0] is old and _is_direct(op, operands, old)
    if not direct:
        result = _computed(op, operands, params)
        _check_result(op, old, result)
    root = versions.root(old)
    before = versions.count(root) if direct else None
    versions.bump(root)
    if listening:
        token = write(tape, op, args, codes, given, kept, old, params)
        if tape.anomaly is not None:
            note_line(tape, token)
        owner, place = new_position(target, tape, token)
    try:
        if not direct:
            old[...] = result  # nothing comes in between this and the new place
        elif op.writes is not None:
            op.writes(old, *operands[1:], **params)
        elif not large_elementwise.forward_into(op, operands, old):
            old[...] = _computed(op, operands, params)
        if listening:
            owner._pos = place
    except (ValueError, TypeError, IndexError, RuntimeError):  # before anything was written
        if before is not None:
            versions.restore(root, before)
        raise
    except BaseException:  # an interruption: what was written is unknown
        if listening:
            owner._pos = place
            tape.flag(token, SPENT)
        raise
    if listening:
        update_views(target, owner)
    elif Tape.on_full is not None:
        note_call()
    return target


def overwrite(target: Tensor, value: Any) -> bool:
    """Write a Tensor of the same type, or a float, over all of a Tensor that has no history.

    False, with nothing done: the general path has to see to it.
    """
    tape, a = current.tape, target._a
    if not _is_plain(target, tape) or a.dtype.kind != "f" or not a.flags.carray:
        return False
    array = value
    if value.__class__ is Tensor:
        array = value._a
        if array.dtype is not a.dtype or not _is_plain(value, tape):
            return False
        pairs = zip(reversed(array.shape), reversed(a.shape), strict=False)
        if array.ndim > a.ndim or any(n != 1 and n != m for n, m in pairs):
            return False
    elif a.itemsize < 8 and not abs(value) < FITS:
        return False
    versions.bump(versions.root(a))
    np.copyto(a, array)
    if Tape.on_full is not None:
        note_call()
    return True


def _is_plain(x: Tensor, tape: Tape) -> bool:
    """Whether a Tensor has no history, nor has what it is a view of, and nothing is said of it."""
    home = x._home
    if type(x) is not Tensor or x._pos or tape.mode == MODE_CAREFUL or tape.inference:
        return False
    if home is None or home is tape:
        return True
    return type(home) is View and home.base is not None and not (
        home.base._pos or home.frozen or home.element or home.opaque
    )  # fmt: skip


def _write_part(part: Part, target: Tensor, name: str) -> Tensor:
    """Write the new value of a part of a Tensor, `target`, where it stands.

    The part's place on the tape is made anew before it is used.
    """
    base, value, index, how = part
    if run_planned(assign, base, None, value, how, True) is None:
        args = base, value
        put_and_plan(assign, args, {"index": index}, base, value=value, how=how, name=name)
    target._pos = value._pos  # for the case that the base is detached before
    return target


def put_and_plan(
    op: Op, args: tuple[Any, ...], params: dict[str, Any], target: Tensor, *, index: Any = None,
    value: Any = None, how: Any = None, name: str = "",
) -> Tensor:  # fmt: skip
    """Run an operation in place, and count the call towards a plan for `run_planned`."""
    y = run_inplace(op, args, params, target, name)
    remember(op, args, params, y, index, value, how, changes=True)
    return y


def _computed(op: Op, operands: list[Any], params: dict[str, Any]) -> np.ndarray:
    """The result of an operation that is written into its first operand."""
    if op.kind is ELEMENTWISE:
        try:
            return np.asarray(large_elementwise.forward(op, operands))
        except ValueError:
            raise mismatch(op, operands) from None
        except TypeError:
            raise undefined(op, operands) from None
    try:
        return np.asarray(op.forward(*operands, **params))
    except (ValueError, TypeError) as problem:
        raise unfit(op, operands, problem) from None


def written(
    op: Op, anew: Callable[[Tensor, Any], Tensor | None] | None = None
) -> Callable[[Tensor, Any], Tensor]:
    """The function `target.op_(other)`.

    A target without dimensions, or one that is lifted, is offered to `anew` first, which may give
    another Tensor instead.
    """
    code = op.code

    def function(target: Tensor, other: Any) -> Tensor:
        if anew is not None and (type(target) is not Tensor or not target._a.ndim):
            found = anew(target, other)
            if found is not None:
                return found
        compiled = native_calls.change
        if compiled is not None:
            made = compiled(target, other, None, code)
            if made is not None:
                return made
        return run_inplace(op, (target, as_operand(other)), {}, target)

    return function


def check_inplace(name: str, target: Tensor, tape: Tape, listening: bool) -> None:
    """Refuse in-place changes that would make a gradient wrong."""
    if not isinstance(target, Tensor):
        raise TypeError(f"`{name}` changes a Tensor, got {type(target).__name__}")
    if not target._a.flags.writeable:
        raise RuntimeError(
            f"`{name}`: the memory of this Tensor is read-only, as that of arguments inside of a "
            "transform is (it is the caller's): write `x = x + y` for `x += y`, or change a copy "
            "(`x.clone()`)"
        )
    check_view(name, target, tape, listening)
    check_history(name, target, tape)
    if listening and target._a.dtype.kind not in "fc":
        raise RuntimeError(
            f"`{name}`: a Tensor of {target.dtype} cannot hold a result that requires grad"
        )
    if overlaps(target._a):
        raise RuntimeError(
            f"`{name}`: several elements of this Tensor (shape {target._a.shape}) share a single "
            "memory location, as after `expand` or `unfold`; use `clone()` before changing it"
        )


def overlaps(a: np.ndarray) -> bool:
    """Whether elements of an array overlap in memory, as after `expand`, or in `unfold`."""
    if a.flags.forc or not a.size:
        return False
    steps = sorted((abs(s), n) for s, n in zip(a.strides, a.shape, strict=True) if n > 1)
    reach = a.itemsize
    for step, n in steps:
        if step < reach:  # interleaved, or several times the same
            return step == 0 or _repeats(steps, a.size)
        reach += step * (n - 1)
    return False


def _repeats(steps: list[tuple[int, int]], size: int) -> bool:
    """Whether two of so many elements begin at the same place, by their steps and numbers."""
    places = np.zeros(1, np.int64)
    for step, n in steps:
        places = np.unique(np.add.outer(places, step * np.arange(n)))
    return places.size < size


def check_history(name: str, target: Tensor, tape: Tape) -> None:
    """Refuse in-place changes of leaves: a sweep needs their old values."""
    if target._pos < 0 and tape.enabled:
        raise RuntimeError(
            f"`{name}`: a leaf that requires grad (shape {target._a.shape}) cannot be changed by "
            "an in-place operation; use `no_grad()`, or an operation that returns a new Tensor"
        )


def check_view(name: str, target: Tensor, tape: Tape, listening: bool) -> None:
    """Refuse in-place changes of views that cannot be replayed on their bases."""
    home = target._home
    if not isinstance(home, View):
        return
    base = home.base
    if home.frozen == INFERENCE and not tape.inference:
        raise RuntimeError(
            f"`{name}`: this Tensor was made in inference mode and may only be changed there; "
            "use `clone()` outside"
        )
    check_element(name, home)
    if base is None or not tape.enabled:
        return
    if home.opaque and (listening or place(base)):
        raise RuntimeError(barred(name, target))
    if home.several and (listening or place(base)):
        raise RuntimeError(
            f"`{name}`: this Tensor is a view made together with others (by `split`, `unbind` "
            "and the like) and cannot be changed in place; make each by itself, or `clone()` it"
        )
    if home.frozen == NO_GRAD and place(base):
        raise RuntimeError(
            f"`{name}`: this view was made under `no_grad` and is changed where gradients are "
            "recorded; make the view where it is used, or `clone()` it"
        )
    if base._pos < 0 or (base._pos == 0 and target._pos > 0):  # of a view that was made a leaf
        raise RuntimeError(
            f"`{name}`: a view of a leaf that requires grad (shape {base._a.shape}) cannot be "
            "changed by an in-place operation; use `no_grad()`, or work on a `clone()`"
        )
    if listening:
        check_chain(name, target, home)


def check_element(name: str, home: Any) -> None:
    """Refuse in-place changes of NumPy scalars, and of copies that NumPy has as views."""
    if isinstance(home, View) and home.frozen == COPY:
        raise RuntimeError(
            f"`{name}`: a part `x[i]` at an index that is known later (under `jit`, or of one "
            "example among others) is a copy, and a change would not reach `x`: write `x[i] += y`, "
            "`x[i] = value` or `x[i, j] = value`, or change a copy of your own (`x[i].copy()`)"
        )
    if isinstance(home, View) and home.element:
        raise RuntimeError(
            f"`{name}`: an element `x[i]` that is read inside a transform of a NumPy function is a "
            "number, as it is for NumPy, and cannot be changed in place: assign to the element "
            "(`x[i] = value`), or change a copy (`x[i].clone()`)"
        )


def barred(name: str, target: Tensor) -> str:
    """Why a Function's output that is a view of its input cannot be changed in place."""
    return (
        f"`{name}`: this Tensor of shape {target._a.shape} is a view that was created inside a "
        "Function (or an argument that its `forward` returned), and the Function's rule does not "
        "know of an in-place change: return `x.clone()` in `forward`, or change a clone"
    )


def _is_direct(op: Op, operands: list[Any], old: np.ndarray) -> bool:
    """Whether the result can overwrite a large operand while it is computed."""
    arrays = [a for a in operands if isinstance(a, np.ndarray)]
    if op.kind is ELEMENTWISE:
        if any(a.dtype is not old.dtype for a in arrays) or len(arrays) != len(operands):
            return False
        return all((a.shape == old.shape or a.size == 1) and a.ndim <= old.ndim for a in arrays)
    memory = versions.memory(old)
    return op.writes is not None and all(versions.memory(a) is not memory for a in arrays[1:])


def _check_result(op: Op, old: np.ndarray, result: np.ndarray) -> None:
    if result.shape != old.shape:
        raise RuntimeError(
            f"`{op.name}_`: the result has the shape {result.shape}, it cannot be written into "
            f"a Tensor of shape {old.shape}"
        )
    if category(result.dtype) > category(old.dtype):
        raise RuntimeError(
            f"`{op.name}_`: the result type {result.dtype} can't be cast to the type {old.dtype} "
            "of the Tensor that it is written into"
        )


def _unaliased(op: Op, arrays: list[Any], old: np.ndarray) -> list[Any]:
    """Copy the operands that a formula will read and that are about to be overwritten."""
    memory = versions.memory(old)
    read = [any(saves[k] for saves in op.saves) for k in range(len(op.inputs))]
    read += [True] * (len(arrays) - len(read))
    return [
        a.copy() if isinstance(a, np.ndarray) and needed and versions.memory(a) is memory else a
        for a, needed in zip(arrays, read, strict=True)
    ]


def changed(target: Tensor) -> None:
    """Count an in-place change of a Tensor's memory."""
    versions.bump(versions.root(target._a))


def new_position(target: Tensor, tape: Tape, token: int) -> tuple[Tensor, int]:
    """The owner (of a view its base) and the position it gets when a Tensor changes in place."""
    home = target._home
    owner, place = target, token
    if isinstance(home, View) and home.base is not None:
        owner = home.base
        seen = placed(target._a, tape, token)
        chain = chain_to(target, home)
        place = write_step(tape, write_view, (owner, seen), owner._a, {"chain": chain})
    if owner._home is None:
        owner._home = tape
    return owner, place


def update_views(target: Tensor, owner: Tensor) -> None:
    """Update hooks and views after a new position; other views are regenerated lazily."""
    retain_anew(owner)
    home = target._home
    if owner is not target and isinstance(home, View):
        regenerate(target, home)


def move(target: Tensor, tape: Tape, token: int) -> None:
    """Give a Tensor that was changed in place its new position, and a view's base too."""
    owner, place = new_position(target, tape, token)
    owner._pos = place
    update_views(target, owner)

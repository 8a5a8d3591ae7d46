"""Append what a call like this one has appended: NumPy's functions in a loop of Python.

Between `np.linalg.solve` and its record lie checks and conversions, which take ten times as long as
it takes to append one.  On Tensors that are alike the same call gives the same records, on other
operands: what the second one appends becomes a template, and the others append copies.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tapegrad.compiler.trace.repeated_sweeps import append_again, can_append_again, watched
from tapegrad.compiler.trace.trace import Trace
from tapegrad.compiler.trace.traced_storage import TracedStorage
from tapegrad.lift.lifted_tensor import Lifted
from tapegrad.numpy_face import array_function
from tapegrad.tape.tape import current
from tapegrad.tensor import place

MOST = 16  # operands of a call that is copied
STATIC = {int, bool, str, type(None)}  # types of arguments that tell by their value


class Call(NamedTuple):
    """What a call has appended: the positions of its operands, of its records, and of its result.

    Of one that cannot be copied there are no records.
    """

    operands: list[int]
    appended: range
    found: int


ONCE = Call([], range(0), -1)  # a call that came once


def called_like(
    trace: Trace, t: Any, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """What a function of NumPy's gives; copied, if an earlier call has appended the same."""
    tape = current.tape
    parts: list[Any] = [func, tape.torchs, len(args)]
    operands: dict[int, int] = {}
    if (
        trace.inside is not None or trace.redirect is not None or trace.moved or not tape.enabled
        or not _add_to_key(parts, trace, args, operands)
        or (kwargs and not _add_to_key(parts, trace, kwargs.items(), operands))
    ):  # fmt: skip
        return array_function(t, func, types, args, kwargs)
    key = tuple(parts)
    before = trace.calls.get(key)
    if before is ONCE:  # the second call is noted: most programs have none
        return _noted(trace, key, operands, lambda: array_function(t, func, types, args, kwargs))
    if before is None:
        trace.calls[key] = ONCE
    if before is None or not before.appended:
        return array_function(t, func, types, args, kwargs)
    where = dict(zip(before.operands, operands, strict=True))
    append_again(trace, before.appended, where)
    return trace.tensor(where[before.found])


def _add_to_key(parts: list[Any], trace: Trace, given: Any, operands: dict[int, int]) -> bool:
    """Add to a key what decides on the records of a call, and number its operands.

    False: something else decides too, or they are many.
    """
    for x in given:
        kind = type(x)
        if kind in STATIC:
            parts += kind, x
        elif (kind is tuple or kind is list) and len(x) <= MOST:
            parts += kind, len(x)
            if not _add_to_key(parts, trace, x, operands):
                return False
        elif isinstance(x, Lifted):
            if x._home is not None:
                place(x)  # a view, whose base may have been lifted higher
            lift = x._lift
            if lift.at is not trace or lift.version != lift.cell.version:
                return False
            position = lift.position
            node = trace.nodes[position]
            if node.dtype.kind not in "fc" or node.value is not None:  # whose values may decide
                return False
            number = operands.setdefault(position, len(operands))
            parts += node.shape, node.dtype, trace.strided.get(position), number
        else:
            return False
    return len(operands) <= MOST


def _noted(
    trace: Trace, key: tuple[Any, ...], operands: dict[int, int], run: Callable[[], Any]
) -> Any:
    """Run a function and note what it appends."""
    first, guards = len(trace.nodes), len(trace.guards)
    with watched(trace, set()) as equal:
        result = run()
    if any(found.others for found in equal):
        return result  # the next call is noted
    appended = range(first, len(trace.nodes))
    lift = getattr(result, "_lift", None)
    if (
        type(lift) is not TracedStorage
        or lift.at is not trace
        or lift.version
        or result._home is not None
        or lift.position not in appended
        or len(trace.guards) > guards
        or not can_append_again(trace, appended, {*operands, *appended})
        or any(trace.arrays[p] is not None and p not in trace.blank for p in appended)
    ):
        appended = range(0)
    trace.calls[key] = Call([*operands], appended, -1 if lift is None else lift.position)
    return result

"""Anomaly detection: remember where records were made, and look for NaN in gradients.

A strong zero hides a non-finite derivative behind an adjoint that is zero, where a plain product
would give NaN.  The strict mode finds that, too.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np

from tapegrad.autograd.pullback import contributions, spec_at
from tapegrad.dispatch.dispatch import Trace
from tapegrad.ops.graph_nodes import grad_name
from tapegrad.tape.tape import MODE_CAREFUL, MODE_OFF, Tape, current
from tapegrad.tensor import Tensor

STRICT: Literal["strict"] = "strict"
CheckNan = bool | Literal["strict"]


def _checked(check_nan: CheckNan) -> CheckNan:
    if not isinstance(check_nan, (bool, np.bool_)) and check_nan != STRICT:
        raise ValueError(f"`check_nan` is True, False or 'strict', got {check_nan!r}")
    return check_nan


class set_detect_anomaly:
    """Switch anomaly detection on or off at once; as a context, until its end.

    Parameters
    ----------
    check_nan : whether gradients are looked at; "strict": also derivatives that are not finite
        where the adjoint is zero, see `detect_anomaly`.

    >>> import tapegrad as tg
    >>> with tg.autograd.set_detect_anomaly(True):
    ...     x = tg.tensor(4.0, requires_grad=True)
    ...     x.sqrt().backward()
    """

    def __init__(self, mode: bool, check_nan: CheckNan = True) -> None:
        tape, found = current.tape, _checked(check_nan)
        self.before = tape.anomaly
        tape.anomaly = found if mode else None
        tape.set_mode()

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exception: object) -> None:
        tape = current.tape
        tape.anomaly = self.before
        tape.set_mode()


class detect_anomaly(set_detect_anomaly):
    """Inside, a gradient that becomes NaN is an error that names the operation and the line.

    Of any other error that a record raises in a sweep, a warning says in which line it was made.

    An adjoint that is zero contributes zero, even where the derivative is infinite or NaN. With
    ``check_nan="strict"`` such a derivative is an error as well, though the gradient is finite.

    >>> import tapegrad as tg
    >>> x = tg.tensor(0.0, requires_grad=True)
    >>> with tg.autograd.detect_anomaly():
    ...     y = (x * 0.0).sqrt()
    >>> with tg.autograd.detect_anomaly(check_nan="strict"):
    ...     tg.where(x > 0, x.sqrt(), 0.0).backward()
    Traceback (most recent call last):
        ...
    RuntimeError: SqrtBackward0 has a derivative that is not finite where its adjoint is zero ...
    """

    def __init__(self, check_nan: CheckNan = True) -> None:
        warnings.warn(
            "Anomaly Detection has been enabled: every sweep is slow inside; use it to find errors",
            stacklevel=2,
        )
        self.check_nan = _checked(check_nan)

    def __enter__(self) -> None:
        tape = current.tape
        self.before, tape.anomaly = tape.anomaly, self.check_nan  # nothing is called after this
        tape.careful = MODE_CAREFUL
        tape.mode = MODE_CAREFUL if tape.enabled else MODE_OFF


def is_anomaly_enabled() -> bool:
    """Whether anomaly detection is on in this thread.

    >>> import tapegrad as tg
    >>> tg.autograd.is_anomaly_enabled()
    False
    """
    return current.tape.anomaly is not None


def look_for_nan(tape: Tape, index: int, found: Any) -> None:
    """Raise if the adjoints that a record computes contain NaN."""
    if any(np.isnan(array).any() for array in _arrays(found)):
        raise _anomaly(tape, index, "returned NaN in its backward (position {})")


def look_behind_zeros(tape: Tape, index: int, g: Any, wanted: Callable[[int], bool]) -> None:
    """Raise if a record's derivative is not finite where its adjoint is zero.

    The derivative of an operation is linear in the adjoint: one that is 1 where this one is 0, and
    0 elsewhere, tells what a plain product would have multiplied by these zeros.
    """
    shape, dtype = spec_at(tape, index)
    zeros = np.zeros(shape, bool)
    for array in _arrays(g) if zeros.size else ():  # the examples of a map stand in front
        zeros |= (array == 0).reshape(-1, *shape).any(0)
    if not zeros.any():
        return
    with np.errstate(all="ignore"):
        found = contributions(tape, index, zeros.astype(dtype), wanted, False, {})
        finite = all(np.isfinite(part).all() for _, part in found)
    if not finite:
        raise _anomaly(
            tape, index, "has a derivative that is not finite where its adjoint is zero (position "
            "{}): a zero adjoint contributes zero, so the gradient itself does not show it, but a "
            "plain product would be NaN",
        )  # fmt: skip


def trace_of(tape: Tape, index: int) -> Trace:
    """Where a record was made, and by which record's derivative."""
    position = tape.tokens[index]
    trace = tape.traces.get(position)
    found = Trace(
        "No forward pass information: it was recorded outside of anomaly detection"
        if trace is None
        else f"It was recorded here:\n{trace}"
    )
    found.name, found.outer = grad_name(tape, position), getattr(trace, "outer", None)
    return found


def point_out(tape: Tape, index: int) -> None:
    """Warn that a record raised, and say where it was made; the error itself goes on.

    One that the derivative of another has made is followed by that.
    """
    trace: Any = trace_of(tape, index)
    text = f"Error detected in {trace.name}. {trace}"
    while trace:
        try:
            warnings.warn(text, stacklevel=2)
        except Warning as warning:  # which would hide the error
            print(warning, file=sys.stderr)
        trace = trace.outer
        text = f"That was in the derivative of {getattr(trace, 'name', '')}. {trace}"


def _arrays(adjoint: Any) -> Iterator[np.ndarray]:
    """The arrays of an adjoint."""
    if type(adjoint) is Tensor:
        yield adjoint._a
    elif isinstance(adjoint, Tensor):  # under a transform
        lifted: Any = adjoint
        for part in lifted.parts():
            yield from _arrays(part)
    else:
        yield adjoint


def _anomaly(tape: Tape, index: int, what: str) -> RuntimeError:
    position = tape.tokens[index]
    trace = tape.traces.get(position, "  (recorded outside anomaly detection)\n")
    return RuntimeError(
        f"{grad_name(tape, position)} {what.format(position)}. It was recorded here:\n{trace}"
    )

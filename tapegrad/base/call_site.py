"""The user's line: which it is, and what it means where Python or NumPy asks for a number."""

from __future__ import annotations

import sys
from opcode import opmap
from types import CodeType, FrameType
from typing import Any

_STORES = {opmap.get("STORE_SUBSCR"), opmap.get("STORE_SLICE")}
_LOADS = {opmap.get("BINARY_SUBSCR"), opmap.get("BINARY_SLICE")}
_LOAD_3_14 = bytes([opmap["BINARY_OP"], 26])  # `NB_SUBSCR`, in place of `BINARY_SUBSCR`
_STORED = (
    "`array[...] = t` cannot put a Tensor into an array of NumPy's, which holds nothing but "
    "numbers, so what is computed from it would be lost: make the array with "
    "`tapegrad.zeros(...)`, or with `np.zeros_like(x)` of an argument `x`, and write into that; "
    "or write `t.detach()`, where no derivative is wanted"
)
_INDEXED = (
    "`a[i]` cannot index a NumPy array or a list by a Tensor whose value is not known here: write "
    "`tapegrad.tensor(a)[i]`, and `tapegrad.tensor(a)[i + np.arange(n)]` for `a[i:i + n]`"
)
_PLACED = (
    "`array[i] = t` cannot write into a NumPy array or a list, neither a Tensor nor to a place "
    "that one says, whose value is not known here: make the array with `tapegrad.zeros(...)`, and "
    "write into that"
)

SLICED = (
    "`x[i:j]` by a Tensor whose value is not known here would have as many elements as nobody "
    "knows: write `x[i + np.arange(n)]` for `x[i:i + n]`, also to write into it, and "
    "`np.where(np.arange(len(x)) < i, x, 0.0)` for what `x[:i]` is added up to"
)


def explain(why: RuntimeError, frame: FrameType, kind: str) -> None:
    """Let a refusal to read a Tensor say what to write, if the line in a frame shows what is meant.

    `kind` is that of the Tensor's dtype: integers are indices, other numbers are written.
    """
    instruction = frame.f_code.co_code[frame.f_lasti : frame.f_lasti + 2]
    at = instruction[0]
    integer = kind in "iub"
    if at in _STORES:
        why.args = (_PLACED if integer else _STORED,)
    elif integer and (at in _LOADS or instruction == _LOAD_3_14):
        why.args = (_INDEXED,)


def raise_cause(error: ValueError) -> None:
    """Raise why a Tensor was not written into an array, which NumPy keeps as a cause only."""
    why = error.__cause__
    if isinstance(why, RuntimeError) and str(error).startswith("setting an array element"):
        raise why.with_traceback(error.__traceback__) from None


# The library's code, and that of its users.  By its `id`, since a code object hashes all that it
# holds; each is kept, so that no other one gets its `id`.
_ours: dict[int, CodeType] = {}
users: dict[int, CodeType] = {}


Place = tuple[CodeType, int] | None  # an instruction of the user's program; None: unknown


def line_of(place: Place) -> tuple[str, int]:
    """The file and the line of an instruction."""
    if place is None:
        return "unknown", 0
    code, at = place
    lines = [line for start, end, line in code.co_lines() if start <= at < end]
    return code.co_filename, (lines and lines[0]) or code.co_firstlineno


def user_line() -> tuple[str, int]:
    """The line of the user's program that is being run."""
    return line_of(user_place())


def user_place(above: int = 0) -> Place:
    """The instruction of the user's program that is run; that many callers are the library's."""
    frame: Any = sys._getframe(2 + above)
    while frame is not None:
        code = frame.f_code
        if id(code) in users:
            return code, frame.f_lasti
        if id(code) not in _ours:
            name = frame.f_globals.get("__name__", "")
            if name.partition(".")[0] != "tapegrad":
                users[id(code)] = code
                continue
            _ours[id(code)] = code
        frame = frame.f_back
    return None

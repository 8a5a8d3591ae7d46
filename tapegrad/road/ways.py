"""The ways into the compiled road: for each way to call an operation a few instructions."""

from __future__ import annotations

import ctypes

from tapegrad.kernels.road import frame as at
from tapegrad.ops.core import Op
from tapegrad.road.table import kind_of

# CPython's flags of a method, and what it is called with: `self` and nothing, `self` and an object,
# or `self` and an array of objects with their number.
_NOARGS, _O, _FASTCALL = 0x04, 0x08, 0x80
WAYS = {
    # of a way: the flags, and the first and the second operand of a call with (%a, %b, %c)
    "method1": (_NOARGS, "%a", "0"),
    "method2": (_O, "%a", "%b"),
    "flipped2": (_O, "%b", "%a"),
    "builtin1": (_O, "%b", "0"),
    "builtin2": (_FASTCALL, "%x", "%y"),
    "view": (_FASTCALL, "%b", "0"),
}
_ENTRY = """
define i64 @{name}(i64 %a, i64 %b, i64 %c) {{
  {before}%frame = load i64, ptr @frame
  %call = load ptr, ptr @call
  %found = tail call i64 %call(i64 %frame, i64 {kind}, i64 {code}, i64 {first}, i64 {second})
  ret i64 %found
}}
"""
_READ = """%at = inttoptr i64 %b to ptr
  %next = getelementptr i64, ptr %at, i64 1
  %x = load i64, ptr %at
  %y = load i64, ptr %next
  """


def text(ops: list[Op]) -> str:
    """LLVM text of the ways in to all operations."""
    lines = ["@frame = global i64 0\n@call = global i64 0\n"]
    for op in ops:
        for way, (_, first, second) in WAYS.items():
            if way.endswith(str(len(op.inputs))):
                before = _READ if "%x" in first else ""
                lines.append(
                    _ENTRY.format(
                        name=f"{way}_{op.code}", before=before, kind=kind_of(op), code=op.code,
                        first=first, second=second,
                    )
                )  # fmt: skip
    _, first, second = WAYS["view"]
    lines.append(
        _ENTRY.format(name="view", before="", kind=at.VIEWED, code=0, first=first, second=second)
    )
    return "".join(lines)


class Method(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )

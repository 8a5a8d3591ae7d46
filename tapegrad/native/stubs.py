"""Stubs by which CPython calls native operations: a few instructions for each form of call."""

from __future__ import annotations

from tapegrad.base.cpython import FASTCALL, NOARGS, ONE_ARGUMENT
from tapegrad.native.abi import CHANGE, PLANNED, VIEW
from tapegrad.native.bindings import kind_of
from tapegrad.ops.core import Op

# A method is called with `self` and nothing, with `self` and an object, or with `self` and an array
# of objects with their number.
CALL_FORMS = {
    # of each: the flags, and the first and the second operand of a call with (%a, %b, %c)
    "method1": (NOARGS, "%a", "0"),
    "method2": (ONE_ARGUMENT, "%a", "%b"),
    "flipped2": (ONE_ARGUMENT, "%b", "%a"),
    "builtin1": (ONE_ARGUMENT, "%b", "0"),
    "builtin2": (FASTCALL, "%x", "%y"),
    "builtin3": (FASTCALL, "%b", "0"),
    "view": (FASTCALL, "%b", "0"),
    "planned": (FASTCALL, "%b", "0"),
    "change": (FASTCALL, "%b", "0"),
    "custom": (FASTCALL, "%b", "0"),
    "sweep": (FASTCALL, "%b", "0"),
}
_ENTRY = """
define i64 @{name}(i64 %a, i64 %b, i64 %c) {{
  {before}%frame = load i64, ptr @frame
  %call = load ptr, ptr @{target}
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
    names = "frame", "call", "custom_call", "sweep_call"
    lines = [f"@{name} = global i64 0\n" for name in names]
    for op in ops:
        for form, (_, first, second) in CALL_FORMS.items():
            if form.endswith(str(len(op.inputs))):
                before = _READ if "%x" in first else ""
                lines.append(
                    _ENTRY.format(
                        name=f"{form}_{op.code}", before=before, target="call",
                        kind=kind_of(op), code=op.code, first=first, second=second,
                    )
                )  # fmt: skip
    targets = {
        "view": ("call", VIEW), "planned": ("call", PLANNED), "change": ("call", CHANGE),
        "custom": ("custom_call", 0), "sweep": ("sweep_call", 0),
    }  # fmt: skip
    for form, (target, kind) in targets.items():
        _, first, second = CALL_FORMS[form]
        lines.append(
            _ENTRY.format(
                name=form, before="", target=target, kind=kind, code=0, first=first, second=second
            )
        )
    return "".join(lines)

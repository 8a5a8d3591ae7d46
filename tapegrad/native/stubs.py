"""Stubs by which CPython calls native operations: a few instructions for each form of call."""

from __future__ import annotations

from tapegrad.base.cpython import FASTCALL, NOARGS, ONE_ARGUMENT
from tapegrad.kernels.sweep.sweep_abi import FIELDS
from tapegrad.native.abi import CHANGE, PLANNED, VIEW

# A method is called with `self` and nothing, with `self` and an object, or with `self` and an array
# of objects with their number.  What is no method of the Tensor's has as `self` the `token` of an
# operation, or None.
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
KIND_BITS = 3
_SELF = f"""%self = inttoptr i64 %a to ptr
  %digit = getelementptr i8, ptr %self, i64 {FIELDS["int_digit"][0]}
  %short = load i32, ptr %digit
  %token = zext i32 %short to i64
  %kind = and i64 %token, {(1 << KIND_BITS) - 1}
  %code = lshr i64 %token, {KIND_BITS}
  """
_READ = """%at = inttoptr i64 %b to ptr
  %next = getelementptr i64, ptr %at, i64 1
  %x = load i64, ptr %at
  %y = load i64, ptr %next
  """


def token(kind: int, code: int) -> int:
    """What stands for an operation: a number that an int holds in one digit."""
    return code << KIND_BITS | kind


def text(methods: list[tuple[str, int, int]]) -> str:
    """LLVM text of the ways in to all operations; of methods there are form, kind and code."""
    names = "frame", "call", "custom_call", "sweep_call"
    lines = [f"@{name} = global i64 0\n" for name in names]
    for form, kind, code in dict.fromkeys(methods):
        _, first, second = CALL_FORMS[form]
        lines.append(
            _ENTRY.format(
                name=f"{form}_{code}", before="", target="call", kind=kind, code=code, first=first,
                second=second,
            )
        )  # fmt: skip
    for form in ("builtin1", "builtin2", "builtin3"):
        _, first, second = CALL_FORMS[form]
        lines.append(
            _ENTRY.format(
                name=form, before=_SELF + _READ * ("%x" in first), target="call", kind="%kind",
                code="%code", first=first, second=second,
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

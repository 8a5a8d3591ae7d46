"""Widen the LLVM text of one element to vectors of several.

Code on scalars without branches says what happens to an element; with vectors in the place of its
types it does the same to all of them, bit for bit.
"""

from __future__ import annotations

import re
from functools import cache

from tapegrad.compiler.llvm import elementary

_TOKEN = re.compile(
    r'"[^"]*"|[%@][\w.]+|0x[0-9A-F]+|-?\b\d+\b|\b(?:double|float|i1|i8|i32|i64|true|false)\b'
)
_TYPES = frozenset(("double", "float", "i1", "i8", "i32", "i64"))


def widened(line: str, width: int) -> str:
    """A line of straight code on scalars, for vectors of so many.

    >>> from tapegrad.compiler.llvm.widen import widened
    >>> widened("%v1 = call double @llvm.fma.f64(double %v0, double %x, double 0x3FE0)", 4)
    '%v1 = call <4 x double> @llvm.fma.v4f64(<4 x double> %v0, <4 x double> %x, <4 x double> \
splat (double 0x3FE0))'
    """
    kind = ""

    def replaced(found: re.Match[str]) -> str:
        nonlocal kind
        token = found[0]
        if token in _TYPES:
            kind = token
            return f"<{width} x {token}>"
        if token[0] == "@":
            return "@" + vector_name(token[1:], width)
        if token[0] in '%"':
            return token
        return f"splat ({kind} {token})"

    return _TOKEN.sub(replaced, line)


def vector_name(name: str, width: int) -> str:
    """What a function over vectors is called.

    >>> from tapegrad.compiler.llvm.widen import vector_name
    >>> vector_name("llvm.fma.f64", 8), vector_name("vmath.exp.f64", 8)
    ('llvm.fma.v8f64', 'vmath.exp.f64.x8')
    """
    if name.startswith("llvm."):
        base, _, kind = name.rpartition(".")
        return f"{base}.v{width}{kind}"
    return f"{name}.x{width}"


@cache
def has_vector_form(name: str) -> bool:
    """Whether a function that `Code` calls can be called on vectors.

    >>> from tapegrad.compiler.llvm.widen import has_vector_form
    >>> [has_vector_form(f) for f in ("vmath.exp.f64", "vmath.sin_any.f64", "cos")]
    [True, False, False]
    """
    if name.startswith("llvm."):
        return True
    if not name.startswith(elementary.PREFIX):
        return False
    return not elementary.branches(name) and all(map(has_vector_form, elementary.calls(name)))


@cache
def vector_definitions(used: frozenset[str], width: int) -> str:
    """Definitions and declarations of functions over vectors.

    >>> from tapegrad.compiler.llvm.widen import vector_definitions
    >>> print(vector_definitions(frozenset(["llvm.sqrt.f64"]), 2))
    declare <2 x double> @llvm.sqrt.v2f64(<2 x double>)
    """
    lines = elementary.definitions(set(used)).split("\n")
    return "\n".join([widened(line, width) for line in lines])

"""Loops over elementary functions, compiled once, that all programs call.

Every element is computed by the fast form of a function, where there is one, which notes whether an
argument was outside its domain; if so, all are recomputed by the next form, up to the one that
serves all.
"""

from __future__ import annotations

import re
from functools import cache

from tapegrad.compiler.llvm import elementary
from tapegrad.compiler.llvm.scalar_ops import Code
from tapegrad.compiler.llvm.scalar_ops import form as scalar
from tapegrad.kernels import build
from tapegrad.kernels.codegen.rule_codegen import chain
from tapegrad.ops.families import table

PREFIX = "block."
# Operations that are one elementary function of many instructions.
_WHOLE = re.compile(r"vmath\.(\w+)\(\{0\}(, \{1\})?\)")
NAMES = {n for n, op in table.items() if _WHOLE.fullmatch(op.scalar) and op.vmath != "few"}
# Vectors that are computed side by side. A division leaves room for little beside it.
SIDE_BY_SIDE, DIVIDING = 4, 2
LOOP = """\
br label %{0}
{0}:
%{0}.i = phi i64 [ 0, %{1} ], [ %{0}.j, %{0} ]
{2}
%{0}.to = getelementptr inbounds double, ptr %out, i64 %{0}.i
store double {3}, ptr %{0}.to
%{0}.j = add nuw nsw i64 %{0}.i, 1
%{0}.more = icmp ult i64 %{0}.j, %n
br i1 %{0}.more, label %{0}, label %{0}.end{4}
{0}.end:"""
TAIL = """
attributes #0 = { nounwind "prefer-vector-width"="512" }
!0 = distinct !{!0, !1}
!1 = !{!"llvm.loop.interleave.count", i32 {vectors}}
"""


def symbol(name: str) -> str:
    """The symbol of the loop of an operation."""
    return PREFIX + name


def arity(name: str) -> int:
    """The number of arrays that it reads."""
    found = _WHOLE.fullmatch(table[name].scalar)
    assert found is not None
    return 2 if found[2] else 1


def declaration(symbol: str) -> str:
    """The declaration of a loop.

    >>> from tapegrad.compiler.codegen.math_runtime import declaration
    >>> declaration("block.exp")
    'declare void @block.exp(i64, ptr, ptr) nounwind willreturn memory(argmem: readwrite)'
    """
    arrays = ", ".join(["ptr"] * (1 + arity(symbol.removeprefix(PREFIX))))
    return f"declare void @{symbol}(i64, {arrays}) nounwind willreturn memory(argmem: readwrite)"


@cache
def address(symbol: str) -> int:
    """The address of a loop, which is compiled on first use.

    >>> from tapegrad.compiler.codegen.math_runtime import address
    >>> address("block.exp") == address("block.exp") > 0
    True
    """
    return build.assemble(text(symbol.removeprefix(PREFIX)))


def text(name: str) -> str:
    """The module of an operation's loop: parameters are a count, the result, the operands."""
    arrays = "".join(f", ptr noalias readonly %x{k}" for k in range(arity(name)))
    head = f"define void @{build.SYMBOL}(i64 %n, ptr noalias %out{arrays}) #0 {{"
    lines = [head, "start:", "%some = icmp ne i64 %n, 0", "br i1 %some, label %go, label %leave"]
    used: set[str] = set()
    vectors = SIDE_BY_SIDE
    block = "go"
    for label, (form, test) in zip("abc", chain(name), strict=False):
        loop, functions = _loop(name, label, block, form, test)
        if label == "a" and " fdiv " in elementary.definitions(functions):
            vectors = DIVIDING
        used |= functions
        lines += [f"{block}:", loop]
        block = f"{label}.rare"
        lines += [f"br i1 %{label}.bad, label %{block}, label %leave"] if test else []
    lines += ["br label %leave", "leave:", "ret void", "}"]
    lines += [elementary.definitions(used), TAIL.replace("{vectors}", str(vectors))]
    return "\n".join(lines)


def _loop(name: str, label: str, before: str, plain: str, test: str) -> tuple[str, set[str]]:
    """A loop over all elements, which sets `bad` where the domain test fails."""
    code = Code(f"{label}.v")
    operands = []
    lines = [f"%{label}.before = phi i1 [ false, %{before} ], [ %{label}.bad, %{label} ]"]
    for k in range(arity(name)):
        address = f"getelementptr inbounds double, ptr %x{k}, i64 %{label}.i"
        found = code.emit("double", f"load double, ptr {code.emit('ptr', address).name}")
        operands.append(found)
    value = scalar(plain, code, operands)
    if test:
        bad = scalar(test, code, operands)
        code.lines.append(f"%{label}.bad = or i1 %{label}.before, {bad.name}")
    body = "\n".join([*(lines if test else []), *code.lines])
    hint = ", !llvm.loop !0" if label == "a" else ""
    return LOOP.format(label, before, body, value.name, hint), code.used

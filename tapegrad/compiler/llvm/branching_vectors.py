"""Vectors of functions that branch: all lanes by the form without branches, or one by one.

`sin_any` is one: it branches to libm where an argument is huge, and LLVM keeps a loop scalar that
calls it.  A vector of it is the form that serves ordinary arguments, and a test whether some lane
has another; LLVM is told of that function, and calls it in the loops that it vectorises.
"""

from __future__ import annotations

import re
from functools import cache

from tapegrad.compiler.llvm import elementary
from tapegrad.compiler.llvm.scalar_ops import form
from tapegrad.compiler.llvm.ssa import FLOATS, Block, Value
from tapegrad.compiler.llvm.widen import vector_definitions, vector_name, widened
from tapegrad.kernels import simd_tables
from tapegrad.kernels.codegen.rule_codegen import Link, chain
from tapegrad.ops.families import table

_VARIANT = "vector-function-abi-variant"
_CALL = re.compile(r"vmath\.(\w+)\(\{0\}(?:, (\{1\}))?\)")
_VECTOR = """\
define {result} @{name}({parameters}) {attributes} noinline "prefer-vector-width"="512" {{
{lines}
%rare = call i1 @llvm.vector.reduce.or.v{width}i1({bad})
br i1 %rare, label %each, label %done, !prof !{{!"branch_weights", i32 1, i32 2000}}
each:
{each}
br label %done
done:
%found = phi {result} [ {quick}, %0 ], [ {slow}, %each ]
ret {result} %found
}}
"""


@cache
def branching() -> dict[str, Link]:
    """For each such function of two forms the other one, and the test for what that does not serve.

    >>> from tapegrad.compiler.llvm.branching_vectors import branching
    >>> branching()["vmath.sin_any.f64"]
    ('vmath.sin({0})', 'vmath.angle_is_large({0})')
    """
    found = {}
    for name in table:
        links = chain(name, "none")
        called = _CALL.fullmatch(links[-1][0])
        if called and len(links) == 2:
            for type in FLOATS:
                function = elementary.of_type(called[1], type)
                found[elementary.symbol(function, type)] = links[0]
    return found


def variant_width() -> int:
    """How many numbers the vectors of functions have that LLVM is told of: doubles of a register.

    Loops over floats have doubles, too, in which adjoints are added up.
    """
    return 8 if simd_tables.in_registers() else 4


def with_variants(text: str, names: set[str]) -> str:
    """Definitions of functions of one number, which say what their vectors are called."""
    width = variant_width()
    for name in names:
        head = re.search(rf"@{re.escape(name)}\(([^)]*)\) [^{{\n]*", text)
        assert head is not None
        letters = "v" * (head[1].count(",") + 1)
        variant = f"_ZGV_LLVM_N{width}{letters}_{name}({vector_name(name, width)})"
        attribute = f'"{_VARIANT}"="{variant}" '
        text = text.replace(head[0], head[0] + attribute)
    return text


def definitions(names: set[str], width: int) -> str:
    """Definitions of vectors of functions, whether they branch or not.

    What branches is not internal: it has to be there still when loops are vectorised.
    """
    plain = {name for name in names if name not in branching()}
    texts = []
    for name in sorted(names - plain):
        text, used = _definition(name, width)
        texts.append(text)
        plain |= used
    if texts:
        texts.append(f"declare i1 @llvm.vector.reduce.or.v{width}i1(<{width} x i1>)")
    return "\n".join([vector_definitions(frozenset(plain), width), *texts])


@cache
def _definition(name: str, width: int) -> tuple[str, frozenset[str]]:
    """A function on vectors, and what it calls on vectors."""
    type = next(long for long, short in FLOATS.items() if name.endswith(short))
    quick_form, test = branching()[name]
    count = 2 if "{1}" in quick_form else 1
    arguments = [Value(f"%x{k}", type) for k in range(count)]
    code = Block()
    quick, bad = form(quick_form, code, arguments), form(test, code, arguments)
    kind, each, slow = f"<{width} x {type}>", [], "poison"
    for k in range(width):
        for x in arguments:
            each.append(f"{x.name}.{k} = extractelement {kind} {x.name}, i64 {k}")
        given = ", ".join(f"{type} {x.name}.{k}" for x in arguments)
        # Without a variant, or LLVM would make this very vector of the calls.
        each.append(f'%y{k} = call {type} @{name}({given}) "{_VARIANT}"=""')
        each.append(f"%s{k} = insertelement {kind} {slow}, {type} %y{k}, i64 {k}")
        slow = f"%s{k}"
    text = _VECTOR.format(
        result=kind, name=vector_name(name, width), attributes=elementary.ATTRIBUTES, width=width,
        parameters=", ".join(f"{kind} {x.name}" for x in arguments),
        lines="\n".join([widened(line, width) for line in code.lines]),
        bad=f"<{width} x i1> {bad.name}", each="\n".join(each), quick=quick.name, slow=slow,
    )  # fmt: skip
    return text, frozenset(code.used)

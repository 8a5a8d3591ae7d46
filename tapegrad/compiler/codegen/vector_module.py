"""The module of a program's vectorised nests, which LLVM need not optimise."""

from __future__ import annotations

from typing import NamedTuple

from tapegrad.compiler.codegen.loop_order import LoopOrder, loop_order_of
from tapegrad.compiler.codegen.vector_nest import Lanes
from tapegrad.compiler.ir.loop_nest import Nest, collapsed
from tapegrad.compiler.llvm.elementary import PREFIX, branches, declarations, definitions, standing
from tapegrad.compiler.llvm.widen import has_wide, wide_definitions

ATTRIBUTES = """\
attributes #0 = { nounwind "prefer-vector-width"="512" }
attributes #1 = { nounwind noinline cold "prefer-vector-width"="512" }
attributes #2 = { nounwind noinline "prefer-vector-width"="512" }
attributes #3 = { nounwind noinline optnone "prefer-vector-width"="512" }
attributes #4 = { nounwind noinline cold optsize "prefer-vector-width"="512" }
"""


class VectorText(NamedTuple):
    """A nest as text; `{name}` stands for the function's name."""

    text: str
    declaration: str
    functions: frozenset[tuple[int, str]]  # that are called, with the width of their vectors
    declared: frozenset[str]


def vectorised(nest: Nest, part: bool) -> VectorText | None:
    """The function of a nest like `scalar_nest.written`'s, if vectors can be written for it."""
    nest = collapsed(nest)
    way = loop_order_of(nest, part)
    if way is None:
        return None
    params = [f"ptr noalias readonly %l{k}" for k in range(len(nest.loads))]
    params += [f"ptr noalias %s{k}" for k in range(len(nest.stores))]
    params += ["i64 %from", "i64 %to"] if part else []
    head = f"void @{{name}}({', '.join(params)}) #0"
    heading = f"define hidden {head} {{"
    first = Lanes(nest, way, True, part)
    first.write()
    lanes = [first]
    body = first.lines
    if any("%unsafe" in line for line in body):
        plain = LoopOrder(tuple(range(len(nest.domain))), -1, 1)
        second = Lanes(nest, plain, False, part)
        second.write()
        lanes.append(second)
        names = ", ".join([f"{p.split()[0]} {p.split()[-1]}" for p in params])
        first.allocas += ["%unsafe = alloca i1", "store i1 false, ptr %unsafe"]
        body = [
            *body, "%again = load i1, ptr %unsafe", "br i1 %again, label %repeat, label %done",
            "repeat:", f"call void @{{name}}.any({names})", "br label %done", "done:", "ret void",
            "}", heading.replace("{name}", "{name}.any").replace("#0", "#1"), *second.allocas,
            *second.lines,
        ]  # fmt: skip
    functions = {(w, f) for one in lanes for w, used in one.used.items() for f in used}
    if any(w > 1 and not has_wide(f) for w, f in functions):
        return None
    declared = {line for one in lanes for line in one.declared}
    text = "\n".join([heading, *first.allocas, *body, "ret void", "}"])
    return VectorText(text, f"declare hidden {head}", frozenset(functions), frozenset(declared))


class VectorModule:
    """Such a module in the making."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.functions: dict[int, set[str]] = {}  # by the width of their vectors
        self.declared: set[str] = set()
        self.apart: set[str] = set()

    def add(self, name: str, found: VectorText, text: str) -> str:
        """Add a nest; its declaration for the other module."""
        self.declared |= found.declared
        for width, function in found.functions:
            if width == 1 and function.startswith(PREFIX) and branches(function):
                text = text.replace(f"@{function}(", f"@{standing(function)}(")
                self.apart.add(function)
            else:
                self.functions.setdefault(width, set()).add(function)
        self.texts.append(text.replace("{name}", name))
        return found.declaration.replace("{name}", name)

    def module(self) -> str:
        """All of it."""
        if not self.texts:
            return ""
        called = [
            wide_definitions(frozenset(names), width) if width > 1 else definitions(names)
            for width, names in sorted(self.functions.items())
        ]
        declared = sorted(self.declared)
        return "\n".join([ATTRIBUTES, *declared, *self.texts, *called, declarations(self.apart)])

"""The LLVM module of a program's vectorised nests, compiled without optimisation passes."""

from __future__ import annotations

from typing import NamedTuple

from tapegrad.compiler.codegen.loop_order import LoopOrder, loop_order_of
from tapegrad.compiler.codegen.vector_nest import VectorWriter
from tapegrad.compiler.ir.loop_nest import Nest, collapsed
from tapegrad.compiler.llvm import elementary
from tapegrad.compiler.llvm.elementary import PREFIX, branches, declarations, definitions
from tapegrad.compiler.llvm.widen import has_vector_form, vector_definitions

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
    """The vectorised function of a nest; None if `scalar_nest.written` must do it."""
    nest = collapsed(nest)
    loops = loop_order_of(nest, part)
    if loops is None:
        return None
    params = [f"ptr noalias readonly %l{k}" for k in range(len(nest.loads))]
    params += [f"ptr noalias %s{k}" for k in range(len(nest.stores))]
    params += ["i64 %from", "i64 %to"] if part else []
    head = f"void @{{name}}({', '.join(params)}) #0"
    heading = f"define hidden {head} {{"
    first = VectorWriter(nest, loops, True, part)
    first.write()
    writers = [first]
    body = first.lines
    if any("%unsafe" in line for line in body):
        plain = LoopOrder(tuple(range(len(nest.domain))), -1, 1)
        second = VectorWriter(nest, plain, False, part)
        second.write()
        writers.append(second)
        names = ", ".join([f"{p.split()[0]} {p.split()[-1]}" for p in params])
        first.allocas += ["%unsafe = alloca i1", "store i1 false, ptr %unsafe"]
        body = [
            *body, "%again = load i1, ptr %unsafe", "br i1 %again, label %repeat, label %done",
            "repeat:", f"call void @{{name}}.any({names})", "br label %done", "done:", "ret void",
            "}", heading.replace("{name}", "{name}.any").replace("#0", "#1"), *second.allocas,
            *second.lines,
        ]  # fmt: skip
    functions = {(w, f) for one in writers for w, used in one.used.items() for f in used}
    if any(w > 1 and not has_vector_form(f) for w, f in functions):
        return None
    declared = {line for one in writers for line in one.declared}
    text = "\n".join([heading, *first.allocas, *body, "ret void", "}"])
    return VectorText(text, f"declare hidden {head}", frozenset(functions), frozenset(declared))


class VectorModule:
    """Collects the nests of the module."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.functions: dict[int, set[str]] = {}  # by the width of their vectors
        self.declared: set[str] = set()
        self.outlined: set[str] = set()

    def add(self, name: str, found: VectorText, text: str) -> str:
        """Add a nest; returns its declaration for the main module."""
        self.declared |= found.declared
        for width, function in found.functions:
            if width == 1 and function.startswith(PREFIX) and branches(function):
                text = text.replace(f"@{function}(", f"@{elementary.outlined_name(function)}(")
                self.outlined.add(function)
            else:
                self.functions.setdefault(width, set()).add(function)
        self.texts.append(text.replace("{name}", name))
        return found.declaration.replace("{name}", name)

    def module(self) -> str:
        """The module's text."""
        if not self.texts:
            return ""
        called = [
            vector_definitions(frozenset(names), width) if width > 1 else definitions(names)
            for width, names in sorted(self.functions.items())
        ]
        declared = sorted(self.declared)
        return "\n".join([ATTRIBUTES, *declared, *self.texts, *called, declarations(self.outlined)])

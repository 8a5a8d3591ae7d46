"""The LLVM module of a program's vectorised nests, compiled without optimisation passes."""

from __future__ import annotations

from tapegrad.compiler.codegen.nest_function import Written
from tapegrad.compiler.llvm import elementary
from tapegrad.compiler.llvm.elementary import PREFIX, branches, declarations, definitions
from tapegrad.compiler.llvm.widen import vector_definitions

ATTRIBUTES = """\
attributes #0 = { nounwind "prefer-vector-width"="512" }
attributes #1 = { nounwind noinline cold "prefer-vector-width"="512" }
attributes #2 = { nounwind noinline "prefer-vector-width"="512" }
attributes #3 = { nounwind noinline optnone "prefer-vector-width"="512" }
attributes #4 = { nounwind noinline cold optsize "prefer-vector-width"="512" }
"""


class VectorModule:
    """Collects the nests of the module."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.functions: dict[int, set[str]] = {}  # by the width of their vectors
        self.declared: set[str] = set()
        self.outlined: set[str] = set()

    def add(self, name: str, found: Written, text: str) -> str:
        """Add a nest; returns its declaration for the main module."""
        self.declared |= found.declared
        for width, function in found.functions:
            if width == 1 and function.startswith(PREFIX) and branches(function):
                text = text.replace(f"@{function}(", f"@{elementary.outlined_name(function)}(")
                self.outlined.add(function)
            else:
                self.functions.setdefault(width, set()).add(function)
        text = text.replace("{name}", name)
        self.texts.append(text)
        return text.partition(" {")[0].replace("define", "declare", 1)

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

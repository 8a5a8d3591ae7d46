"""Compile a function and all that it calls to one LLVM module.

Left to itself Numba finishes each function on its own: it links in what that calls, optimises, and
makes machine code, for a caller from Python.  A kernel has no such caller; its functions are parts
of one program, which is linked once, optimised once and made machine code of once, by `build`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import numba
from numba.core import typed_passes, untyped_passes
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target

# What kernels are not written with: closures, `with`, array expressions, tests of literals, and
# calls of functions that are inlined before types are known.
NEEDLESS = {
    untyped_passes.DeadBranchPrune,
    untyped_passes.FindLiterallyCalls,
    untyped_passes.InlineClosureLikes,
    untyped_passes.InlineInlinables,
    untyped_passes.LiteralPropagationSubPipelinePass,
    untyped_passes.LiteralUnroll,
    untyped_passes.MakeFunctionToJitFunction,
    untyped_passes.RewriteDynamicRaises,
    untyped_passes.RewriteSemanticConstants,
    untyped_passes.WithLifting,
    typed_passes.InlineOverloads,
    typed_passes.NoPythonSupportedFeatureValidation,
    typed_passes.NopythonRewrites,
}


class ShortPipeline(CompilerBase):
    """The passes of Numba that kernels need."""

    def define_pipelines(self) -> list[Any]:
        """Numba's own, without those."""
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.passes = [row for row in passes.passes if row[0] not in NEEDLESS]
        return [passes]


class Part(JITCodeLibrary):
    """The code of a function that is finished on its own only if somebody else than us asks."""

    waiting = False  # whether all parts wait for the whole
    environments: ClassVar[dict[str, Any]] = {}  # of functions in Python, by their names

    def _ensure_finalized(self) -> None:
        if not Part.waiting:
            super()._ensure_finalized()

    def get_pointer_to_function(self, name: str) -> int:
        """The address of a function; 0: it has no form for callers from Python."""
        if all(function.name != name for function in self._final_module.functions):
            return 0
        before, Part.waiting = Part.waiting, False
        try:
            self._ensure_finalized()
        finally:
            Part.waiting = before
        return int(super().get_pointer_to_function(name))

    def _finalize_specific(self) -> None:
        super()._finalize_specific()
        codegen: Any = self._codegen
        for name in [g.name for g in self._final_module.global_variables]:
            if name in Part.environments:
                codegen.set_env(name, Part.environments.pop(name))


@contextmanager
def together() -> Iterator[None]:
    """Inside, Numba compiles functions to parts of a program and leaves them as they are."""
    with global_compiler_lock:  # nobody else's functions
        if Part.waiting:
            yield
            return
        codegen: Any = cpu_target.target_context.codegen()
        settings: Any = numba.config
        before = settings.OPT
        settings.OPT = type(before)(0)
        set_env = codegen.set_env

        def keep(name: str, environment: Any) -> None:
            there = codegen._engine.is_symbol_defined(name)
            (set_env if there else Part.environments.__setitem__)(name, environment)

        codegen._library_class, codegen.set_env = Part, keep
        Part.waiting = True
        try:
            yield
        finally:
            Part.waiting = False
            del codegen._library_class, codegen.set_env
            settings.OPT = before


def linked(library: Any) -> str:
    """The LLVM IR of a function together with all that it calls; inside `together`."""
    for part in _below(library, {library}):
        whole = isinstance(part, Part) and not part._finalized
        module = part._final_module if whole else part._get_module_for_linking()
        library._final_module.link_in(module, preserve=True)
    library._optimize_final_module()  # which inlines what has to be
    return str(library._final_module)


def _below(library: Any, seen: set[Any]) -> Iterator[Any]:
    """What a part calls, and what that calls, each once."""
    for part in library._linking_libraries:
        if part not in seen:
            seen.add(part)
            yield part
            if isinstance(part, Part) and not part._finalized:
                yield from _below(part, seen)

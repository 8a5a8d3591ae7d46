"""The typed intermediate representation that Numba makes of a function."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NoReturn

from numba.core import bytecode, compiler, config, errors, registry
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import PassManager
from numba.core.dispatcher import Dispatcher
from numba.core.targetconfig import ConfigStack
from numba.core.typed_passes import AnnotateTypes
from numba.core.untyped_passes import ExtractByteCode

from tapegrad.njit.numba_front.objects import Kinds, NumbaIR, NumbaType
from tapegrad.njit.three_address_code import Unsupported

# What is refused, and what to write instead.
A_LIST = "a list: write into an array (`np.empty(n)`) instead"
TRY = "`try`: let exceptions be raised, or test for what causes them"


class TypedFunction:
    """A function's blocks and the types of its variables, for arguments of given types.

    `divides_as_numpy`: a division by zero gives infinity; else it raises.  `checks_bounds`: so
    does an index that is out of range.
    """

    def __init__(self, f: Callable[..., Any], kinds: Kinds) -> None:
        self.kinds = kinds
        options: dict[str, Any] = {"error_model": "numpy"}  # as Numba compiles array expressions
        function = f
        if isinstance(f, Dispatcher):
            function, options = f.py_func, f.targetoptions
        self.name = function.__name__
        try:
            annotation = _annotation(f, function, kinds)
        except errors.NumbaRuntimeError as error:
            raise Unsupported(f"`{self.name}`: a function that calls itself") from error
        self.blocks: dict[int, NumbaIR] = annotation.blocks
        self.types: dict[str, NumbaType] = annotation.typemap
        self.calls: dict[Any, Any] = annotation.calltypes
        self.divides_as_numpy = options.get("error_model") == "numpy"
        everywhere = getattr(config, "BOUNDSCHECK")  # noqa: B009  # set when Numba is imported
        bounds = options.get("boundscheck") if everywhere is None else everywhere
        self.checks_bounds = bool(bounds)


def _annotation(f: Any, function: Callable[..., Any], kinds: Kinds) -> Any:
    """The annotation that Numba kept when it compiled the function, or its front end's."""
    if isinstance(f, Dispatcher) and kinds in f.overloads:
        compiled: Any = f.overloads[kinds]
        found = compiled.type_annotation
        # It may have been loaded from Numba's cache, or have loops that were made parallel.
        if not isinstance(found, str) and not any(map(_parallel, found.blocks.values())):
            return found
    return _front_end(function, kinds)


def _parallel(block: NumbaIR) -> bool:
    return any(type(s).__name__ == "Parfor" for s in block.body)


class _FrontEnd(compiler.CompilerBase):
    """Numba's pipeline up to types; nothing is lowered."""

    def define_pipelines(self) -> list[PassManager]:
        passes = PassManager("front end")
        builder = compiler.DefaultPassBuilder
        for part in (builder.define_untyped_pipeline, builder.define_typed_pipeline):
            passes.passes.extend(part(self.state).passes)
        passes.add_pass(AnnotateTypes, "annotate types")
        passes.finalize()
        return [passes]

    def _compile_core(self) -> NoReturn:
        """Refused: a block that Python shall run is compiled as a function of its own."""
        raise Unsupported("a block `with objmode`, which Python runs")


@lru_cache(maxsize=256)
def _front_end(function: Callable[..., Any], kinds: Kinds) -> Any:
    """Byte code, Numba's own SSA, types."""
    target = registry.cpu_target
    flags: Any = compiler.Flags()
    flags.nrt = True
    with global_compiler_lock:
        pipeline = _FrontEnd(
            target.typing_context, target.target_context, None, kinds, None, flags, {}
        )
        state = pipeline.state
        state.func_id = bytecode.FunctionIdentity.from_function(function)
        ExtractByteCode().run_pass(state)
        state.lifted, state.lifted_from = (), None
        with ConfigStack().enter(flags.copy()):
            for passes in pipeline.define_pipelines():
                passes.run(state)
    return state.type_annotation

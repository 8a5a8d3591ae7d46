"""The typed intermediate representation that Numba makes of a function."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numba
from numba.core import bytecode, compiler, config, errors, registry
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import PassManager
from numba.core.dispatcher import Dispatcher
from numba.core.targetconfig import ConfigStack
from numba.core.typed_passes import AnnotateTypes
from numba.core.typing import templates
from numba.core.unsafe import eh
from numba.core.untyped_passes import ExtractByteCode, FixupArgs
from numba.stencils.stencil import StencilFunc

from tapegrad.njit.numba_front.objects import Kinds, NumbaIR, NumbaType, ir, types
from tapegrad.njit.three_address_code import Unsupported

# What is refused, and what to write instead.
A_LIST = "a list: write into an array (`np.empty(n)`) instead"
GENERATOR = "a generator: run one `for` loop over the call of it, or fill an array"
RECURSION = "a function that calls itself: write a loop, with a list of what is left to do"
TRYING = "numba.core.unsafe.eh"  # the module of what Numba calls in a `try`
_RAISED_AGAIN = "op code RERAISE executed"  # Numba's message where no handler of the user's is
TRY = "`try`: let exceptions be raised, or test for what causes them"

ARRAY_LIBRARY = "<array library>"  # where the functions of `array_library` seem to stand
GENERATED = "<string>"  # where what Numba writes of a stencil seems to stand
_HERE, _NUMBA = str(Path(__file__).parent), str(Path(numba.__file__).parent)


class Stencil(NamedTuple):
    """A stencil of a user, which may be told `into` which array it is to write, behind the others.

    Its source is the IR that Numba makes of it: loops with the kernel in them.
    """

    function: StencilFunc
    into: bool

    @property
    def kernel(self) -> Callable[..., Any]:
        """The function that is called at each place."""
        kernel: Callable[..., Any] = self.function.kernel_ir.func_id.func
        return kernel


class TypedFunction:
    """A function's blocks and the types of its variables, for arguments of given types.

    `divides_as_numpy`: a division by zero gives infinity; else it raises.  `checks_bounds`: so
    does an index that is out of range.  `is_library`: its lines are not the user's.
    """

    def __init__(
        self, f: Callable[..., Any] | Stencil, kinds: Kinds, options: dict[str, Any] | None = None
    ) -> None:
        self.kinds = kinds
        if options is None:
            options = {"error_model": "numpy"}  # as Numba compiles array expressions
        function = f.kernel if isinstance(f, Stencil) else f
        if isinstance(f, Dispatcher):
            function, options = f.py_func, f.targetoptions
        self.name = function.__name__
        try:
            annotation = _annotation(f, function, kinds)
        except errors.NumbaRuntimeError as error:
            raise Unsupported(f"`{self.name}`: {RECURSION}") from error
        except errors.TypingError as error:
            if not is_library(function.__code__.co_filename):
                raise
            raise Unsupported(f"`{self.name}` of {', '.join(map(str, kinds))}") from error
        self.is_stencil = isinstance(f, Stencil)
        self.blocks = _without_handlers(annotation.blocks)
        self.is_library = is_library(function.__code__.co_filename)
        self.options = options
        self.types: dict[str, NumbaType] = annotation.typemap
        self.calls: dict[Any, Any] = annotation.calltypes
        self.divides_as_numpy = options.get("error_model") == "numpy"
        everywhere = getattr(config, "BOUNDSCHECK")  # noqa: B009  # set when Numba is imported
        bounds = options.get("boundscheck") if everywhere is None else everywhere
        self.checks_bounds = bool(bounds)


def is_library(file: str) -> bool:
    """Whether a file's functions are the libraries' of this folder, or Numba's own."""
    return file.startswith((ARRAY_LIBRARY, _HERE, _NUMBA))


@cache
def _source_of(overload: Callable[..., Any], args: Kinds, keywords: tuple[Any, ...]) -> Any:
    """The function that an overload has for arguments of given types, if it has one."""
    try:
        found = overload(*args, **dict(keywords))
    except (errors.NumbaError, TypeError):
        return None  # another one may have it
    return found[1] if isinstance(found, tuple) else found


def overload_of(
    f: NumbaType, args: Sequence[NumbaType], keywords: dict[str, NumbaType]
) -> Callable[..., Any] | None:
    """The source of a function in Numba's language, if that is what it is."""
    templates = [f.template] if isinstance(f, types.BoundFunction) else f.templates
    for template in templates:
        overload = getattr(template, "_overload_func", None)
        if overload is not None:
            source = _source_of(overload, tuple(args), tuple(keywords.items()))
            if source is not None:
                return source
    return None


def _annotation(f: Any, function: Callable[..., Any], kinds: Kinds) -> Any:
    """The annotation that Numba kept when it compiled the function, or its front end's."""
    if isinstance(f, Dispatcher) and kinds in f.overloads:
        compiled: Any = f.overloads[kinds]
        found = compiled.type_annotation
        # It may have been loaded from Numba's cache, or have loops that were made parallel.
        if not isinstance(found, str) and not any(map(_parallel, found.blocks.values())):
            return found
    if isinstance(f, Stencil):
        return _front_end_of_stencil(f, kinds)
    return _front_end(function, kinds, _declared(f))[0]


def _declared(f: Any) -> tuple[tuple[str, NumbaType], ...]:
    """The types that the user has declared for variables (`locals=`)."""
    return tuple(f.locals.items()) if isinstance(f, Dispatcher) else ()


def _parallel(block: NumbaIR) -> bool:
    return any(type(s).__name__ == "Parfor" for s in block.body)


def _without_handlers(blocks: dict[int, NumbaIR]) -> dict[int, NumbaIR]:
    """The blocks as without `try`, if each handler of exceptions does nothing but raise them again.

    So does that of a comprehension with a condition, as Numba reads the byte code of Python 3.13
    and 3.14.
    """
    statements = [s for block in blocks.values() for s in block.body]
    names = {
        s.target.name: s.value.value
        for s in statements
        if isinstance(s, ir.Assign) and isinstance(s.value, ir.Global)
        and getattr(s.value.value, "__module__", None) == TRYING
    }  # fmt: skip
    if not names:
        return blocks

    def called(s: NumbaIR) -> Any:
        is_call = isinstance(s, ir.Assign) and getattr(s.value, "op", None) == "call"
        return names.get(s.value.func.name) if is_call else None

    def serves(s: NumbaIR) -> bool:
        return called(s) is not None or (isinstance(s, ir.Assign) and s.target.name in names)

    checks = {s.target.name for s in statements if called(s) is eh.exception_check}

    def is_checked(s: NumbaIR) -> bool:
        return isinstance(s, ir.Branch) and s.cond.name in checks

    defined = {s.target.name: s.value for s in statements if isinstance(s, ir.Assign)}

    def one_iterator(s: NumbaIR) -> NumbaIR:
        """An iterator's iterator, which Python 3.13 takes, is that iterator."""
        if not isinstance(s, ir.Assign) or getattr(s.value, "op", None) != "getiter":
            return s
        source = s.value.value
        while isinstance(source, ir.Var):
            source = defined.get(source.name)
        is_iterator = getattr(source, "op", None) == "getiter"
        return ir.Assign(s.value.value, s.target, s.loc) if is_iterator else s

    handlers, pending = set[int](), [s.truebr for s in statements if is_checked(s)]
    while pending:
        label = pending.pop()
        if label not in handlers:
            body = blocks[label].body
            if not all(serves(s) or is_checked(s) or _is_idle(s) for s in body):
                return blocks
            handlers.add(label)
            pending += body[-1].get_targets()
    found = {}
    for label in (label for label in blocks if label not in handlers):
        found[label] = block = ir.Block(blocks[label].scope, blocks[label].loc)
        block.body = [one_iterator(s) for s in blocks[label].body if not serves(s)]
        if is_checked(last := block.body[-1]):
            block.body[-1] = ir.Jump(last.falsebr, last.loc)
    return found


def _is_idle(s: NumbaIR) -> bool:
    """Whether a statement does nothing but copy, jump, or raise again what is raised."""
    if isinstance(s, ir.StaticRaise):
        return _RAISED_AGAIN in str(s.exc_args)
    if isinstance(s, ir.Assign):
        return isinstance(s.value, (ir.Var, ir.Const)) or getattr(s.value, "op", None) == "undef"
    if isinstance(s, ir.StaticTryRaise):
        return s.exc_class is None
    return isinstance(s, (ir.Jump, ir.Del))


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


@contextmanager
def _replaced(target: Any, **attributes: Any) -> Iterator[None]:
    """Have attributes of an object, or a class, for a time."""
    before = {name: vars(target)[name] for name in attributes if name in vars(target)}
    for name, value in attributes.items():
        setattr(target, name, value)
    try:
        yield
    finally:
        for name in attributes:
            if name in before:
                setattr(target, name, before[name])
            else:
                delattr(target, name)


_COMPILED: dict[str, Any] = {
    name: getattr(Dispatcher, name) for name in ("get_call_template", "get_overload")
}


def _typed_template(self: Any, args: Any, keywords: Any) -> Any:
    """What `get_call_template` of a function gives, which is not compiled for that.

    One that calls itself with other types is: Numba looks at the code of that.
    """
    own = self._compiler.pipeline_class is not compiler.Compiler
    if not self._can_compile or self.is_compiling or own:
        return _COMPILED["get_call_template"](self, args, keywords)
    signature, args = self._compiler.fold_argument_types(args, keywords)
    known = self.nopython_signatures
    if tuple(args) not in self.overloads:
        with self._compiling_counter:
            result = _front_end(self.py_func, tuple(args), _declared(self))[1]
        known.append(templates.signature(result, *args))
    name = self.py_func.__name__
    return templates.make_concrete_template(name, name, known), signature, args, {}


def _entry_point(self: Any, args: Any) -> Any:
    """What `get_overload` of a function gives: nothing, where it is not compiled."""
    compiled = self.overloads.get(tuple(args))
    return None if compiled is None else compiled.entry_point


@contextmanager
def _callees_typed_alone(context: Any) -> Iterator[None]:
    """Have Numba find the types of what calls give without compiling the functions.

    It compiles them to machine code for that, NumPy's that are written in its own language, too;
    the front end is enough.  Where it compiles in between, it does so as always.  Operators have a
    hundred signatures and overloads, which it tries in order at each call: here that is done once
    for the types of their arguments.
    """
    known: dict[Any, Any] = {}
    resolve, core = context.resolve_function_type, compiler.CompilerBase._compile_core

    def resolved(function: Any, args: Any, keywords: Any) -> Any:
        if not isinstance(function, types.Function):
            return resolve(function, args, keywords)
        key = function, tuple(args), tuple(dict(keywords).items())
        if key not in known:
            compiled = dict(function._impl_keys)
            known[key] = resolve(function, args, keywords)
            # What is not compiled is not to be found where Numba generates code.
            function._impl_keys.clear()
            function._impl_keys.update(compiled)
        return known[key]

    def compiled_core(pipeline: Any) -> Any:
        always = functools.partial(type(context).resolve_function_type, context)
        with _replaced(context, resolve_function_type=always), _replaced(Dispatcher, **_COMPILED):
            return core(pipeline)

    typed = {"get_call_template": _typed_template, "get_overload": _entry_point}
    with (
        _replaced(context, resolve_function_type=resolved),
        _replaced(Dispatcher, **typed),
        _replaced(compiler.CompilerBase, _compile_core=compiled_core),
    ):
        yield


@lru_cache(maxsize=1024)
def _front_end(
    function: Callable[..., Any], kinds: Kinds, declared: tuple[tuple[str, NumbaType], ...]
) -> tuple[Any, NumbaType]:
    """Byte code, Numba's own SSA, types; and that of the result."""
    with global_compiler_lock:
        pipeline = _new_pipeline(kinds, dict(declared))
        state = pipeline.state
        state.func_id = bytecode.FunctionIdentity.from_function(function)
        ExtractByteCode().run_pass(state)
        return _passed_through(pipeline)


@lru_cache(maxsize=1024)
def _front_end_of_stencil(f: Stencil, kinds: Kinds) -> Any:
    """The annotation of the loops of a stencil."""
    context, stencil = registry.cpu_target.typing_context, f.function
    given = kinds[: stencil.kernel_ir.arg_count]
    with global_compiler_lock:
        with _callees_typed_alone(context):
            result, known, calls = stencil.get_return_type(given)
        with _replaced(compiler, compile_ir=lambda typing, target, made, *rest: made):
            into = kinds[len(given)] if f.into else None
            loops = stencil._stencil_wrapper(into, None, result, known, calls, *kinds)
        pipeline = _new_pipeline(kinds, {})
        state = pipeline.state
        state.func_ir, state.func_id, state.nargs = loops, loops.func_id, loops.arg_count
        FixupArgs().run_pass(state)
        return _passed_through(pipeline)[0]


def _new_pipeline(kinds: Kinds, declared: dict[str, NumbaType]) -> _FrontEnd:
    target = registry.cpu_target
    flags: Any = compiler.Flags()
    flags.nrt = True
    return _FrontEnd(
        target.typing_context, target.target_context, None, kinds, None, flags, declared
    )


def _passed_through(pipeline: _FrontEnd) -> tuple[Any, NumbaType]:
    """What a pipeline makes of byte code or of IR, and the type of the result."""
    state = pipeline.state
    state.lifted, state.lifted_from = (), None
    context = registry.cpu_target.typing_context
    with _callees_typed_alone(context), ConfigStack().enter(state.flags.copy()):
        for passes in pipeline.define_pipelines():
            passes.run(state)
    return state.type_annotation, state.return_type

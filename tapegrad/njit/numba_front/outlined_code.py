"""Statements that Numba itself compiles: each as a function of its own, called by its address.

The function is ``int64_t symbol(int64_t *in, int64_t *out)``: words of arguments, and of the result
as `components` has them; it returns zero unless the statement raises.  What has no components that
are followed, a dictionary or a text, is in memory as Numba has it, and its word is the address.  A
result that holds references lies behind its words, until ``symbol_drop(int64_t *out)`` gives them
back.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from types import NoneType
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir as llvm
from numba.core import bytecode, callconv, cgutils, compiler, errors, funcdesc, postproc, registry
from numba.core.compiler_lock import global_compiler_lock
from numba.core.imputils import fix_returning_optional
from numba.core.lowering import Lower
from numba.core.targetconfig import ConfigStack
from numba.core.typing import templates
from numba.cpython import listobj
from numba.np import arrayobj

from tapegrad.kernels import build
from tapegrad.njit.numba_front.components import COMPLEX, components, is_opaque, scalar
from tapegrad.njit.numba_front.objects import Kinds, NumbaIR, NumbaType, ir, types
from tapegrad.njit.three_address_code import Unsupported

WORD = llvm.IntType(64)


class Outlined(NamedTuple):
    """The machine code of a statement.

    Its result has so many words; behind them it takes so many `bytes`, which is zero if it is
    one word that holds no reference.
    """

    symbol: str
    words: int
    bytes: int
    drops: bool


class Statement(NamedTuple):
    """A statement of Numba's typed IR, and what it is about.

    `given` are the variables that it reads; `types` and `calls` are what Numba knows of it.
    """

    body: tuple[NumbaIR, ...]
    given: tuple[NumbaIR, ...]
    result: NumbaIR | None
    types: dict[str, NumbaType]
    calls: dict[Any, Any]
    divides_as_numpy: bool = False
    checks_bounds: bool = False


_made: dict[str, tuple[Outlined, Any]] = {}  # with what has to live as long


def outlined(statement: Statement) -> Outlined:
    """The machine code of a statement; equal ones share it."""
    key = _key(statement)
    if key not in _made:
        _made[key] = _Compilation(statement, f"tapegrad_numba_{key}").run()
    return _made[key][0]


def _key(s: Statement) -> str:
    """A name that tells statements apart, in every process the same."""
    order: dict[str, int] = {}
    parts = [_form(one, order) for one in (*s.body, s.given, s.result)]
    parts += [_kind(s.types[name]) for name in order]
    parts += [f"{s.divides_as_numpy} {s.checks_bounds}"]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:24]


def _form(x: Any, order: dict[str, int]) -> str:
    """Numba's IR as text in which variables have numbers."""
    if isinstance(x, ir.Var):
        return f"<{order.setdefault(x.name, len(order))}>"
    if isinstance(x, ir.Expr):
        return f"{x.op}({_form(sorted(x._kws.items()), order)})"
    if isinstance(x, list | tuple):
        return f"[{', '.join([_form(part, order) for part in x])}]"
    if isinstance(x, ir.Stmt):
        parts = [(name, v) for name, v in sorted(vars(x).items()) if name not in ("loc", "block")]
        return f"{type(x).__name__}({_form(parts, order)})"
    return _value(x.value) if isinstance(x, ir.Const | ir.Global | ir.FreeVar) else repr(x)


def _kind(t: NumbaType) -> str:
    """A type as text; of functions of this module's kin by their names."""
    if isinstance(t, types.Dispatcher) and t.dispatcher.py_func.__module__.startswith(__package__):
        return str(t.dispatcher.py_func.__qualname__)
    return repr(t)


def _value(x: Any) -> str:
    """A constant as text: by what it holds, or else by the object, which is kept."""
    if isinstance(x, np.ndarray):
        return f"{x.dtype} {x.shape} {hashlib.sha256(x.tobytes()).hexdigest()}"
    plain = isinstance(x, str | bytes | int | float | complex | NoneType)
    return repr(x) if plain else f"{x!r} {id(x)}"


class _Compilation:
    """One statement on its way to machine code."""

    def __init__(self, statement: Statement, symbol: str) -> None:
        self.statement, self.symbol = statement, symbol
        self.kinds: Kinds = tuple([statement.types[v.name] for v in statement.given])
        result = statement.result
        self.result = types.none if result is None else statement.types[result.name]
        target: Any = registry.cpu_target.target_context
        model = "numpy" if statement.divides_as_numpy else "python"
        self.context: Any = target.subtarget(
            enable_nrt=True, enable_boundscheck=statement.checks_bounds,
            error_model=callconv.create_error_model(model, target),
        )  # fmt: skip

    def run(self) -> tuple[Outlined, Any]:
        """Lower the statement and what calls it, and offer the symbols."""
        flags: Any = compiler.Flags()
        flags.nrt = True
        with global_compiler_lock, ConfigStack().enter(flags):
            library = self.context.codegen().create_library(self.symbol)
            try:
                env, callee = self._lower(library)
            except (errors.NumbaError, NotImplementedError) as error:
                raise Unsupported(str(error)) from error
            found = self._wrap(library, callee)
            library.finalize()
            self.context.codegen().set_env(callee.env_name, env)
            for name in (self.symbol, f"{self.symbol}_drop"):
                build.binding().add_symbol(name, library.get_pointer_to_function(name))
        return found, (library, env, self.statement)

    def _compile_called(self) -> dict[Any, Any]:
        """The signatures of calls, whose functions are compiled, and not only typed, by this."""
        s, found = self.statement, dict(self.statement.calls)
        for e in (getattr(one, "value", None) for one in s.body):
            if isinstance(e, ir.Expr) and e.op == "call" and e in found:
                args = [s.types[a.name] for a in e.args]
                args += [] if e.vararg is None else s.types[e.vararg.name]
                keywords = {name: s.types[v.name] for name, v in e.kws}
                f = s.types[e.func.name]
                f = f.instance_type if isinstance(f, types.TypeRef) else f
                one = self.context.typing_context.resolve_function_type(f, tuple(args), keywords)
                if one is not None and one.args != found[e].args:
                    found[e] = one
        return found

    def _lower(self, library: Any) -> tuple[Any, Any]:
        """The statement as a function in Numba's calling convention."""
        s, loc = self.statement, self.statement.body[0].loc
        scope = ir.Scope(None, loc)
        block = ir.Block(scope, loc)
        known = dict(s.types)
        for k, (v, t) in enumerate(zip(s.given, self.kinds)):
            known[f"arg.{v.name}"] = t
            block.append(ir.Assign(ir.Arg(v.name, k, loc), v, loc))
        for one in s.body:
            block.append(one)
        back = ir.Var(scope, "$back", loc)
        known[back.name] = self.result
        value = ir.Const(None, loc) if s.result is None else ir.Expr.cast(s.result, loc)
        block.append(ir.Assign(value, back, loc))
        block.append(ir.Return(back, loc))
        identity = bytecode.FunctionIdentity.from_function(_named(self.symbol))
        function = ir.FunctionIR(
            {0: block}, False, identity, loc, {}, len(s.given), [v.name for v in s.given]
        )
        postproc.PostProcessor(function).run(emit_dels=True)
        described = funcdesc.PythonFunctionDescriptor.from_specialized_function(
            function, known, self.result, self._compile_called(), mangler=self.context.mangler,
            inline=False, noalias=False, abi_tags=[],
        )  # fmt: skip
        with self.context.push_code_library(library):
            lower = Lower(self.context, library, described, function, metadata={})
            lower.lower()
        return lower.env, described

    # -- what calls it -----------------------------------------------------------------------

    def _wrap(self, library: Any, callee: Any) -> Outlined:
        module = library.create_ir_module(f"{self.symbol}_module")
        pointer = WORD.as_pointer()
        f = llvm.Function(module, llvm.FunctionType(WORD, [pointer, pointer]), self.symbol)
        builder = llvm.IRBuilder(f.append_basic_block())
        words = _words_at(builder, f.args[0])
        args = [self._given(builder, t, words) for t in self.kinds]
        signature = templates.signature(self.result, *self.kinds)
        status, value = self.context.call_internal_no_propagate(builder, callee, signature, args)
        with builder.if_then(status.is_error, likely=False):
            builder.ret(WORD(1))
        value = fix_returning_optional(self.context, builder, signature, status, value)
        t, count = self.result, len(components(self.result))
        model = self.context.data_model_manager[t]
        drops = bool(count) and model.contains_nrt_meminfo()
        direct = scalar(t) is not None or isinstance(t, types.Record)
        size = 0 if direct or not count else self.context.get_abi_sizeof(model.get_value_type())
        place = None
        if size:
            place = self._place(builder, f.args[1], count)
            builder.store(value, place)
        for k, word in enumerate(self._taken(builder, t, value, place) if count else ()):
            builder.store(word, builder.gep(f.args[1], [WORD(k)]))
        builder.ret(WORD(0))
        self._write_drop(module, count, drops)
        library.add_ir_module(module)
        return Outlined(self.symbol, count, size, drops)

    def _place(self, builder: Any, out: Any, count: int) -> Any:
        """Where the result lies as Numba has it."""
        at = builder.gep(out, [WORD(count)])
        return builder.bitcast(at, self.context.get_value_type(self.result).as_pointer())

    def _write_drop(self, module: Any, count: int, drops: bool) -> None:
        """The function that gives back the references of a result."""
        kind = llvm.FunctionType(llvm.VoidType(), [WORD.as_pointer()])
        f = llvm.Function(module, kind, f"{self.symbol}_drop")
        builder = llvm.IRBuilder(f.append_basic_block())
        if drops:
            value = builder.load(self._place(builder, f.args[0], count))
            self.context.nrt.decref(builder, self.result, value)
        builder.ret_void()

    def _given(self, builder: Any, t: NumbaType, words: Iterator[Any]) -> Any:
        """An argument as Numba has it, of words."""
        if isinstance(t, types.BoundFunction):
            return self._given(builder, t.this, words)
        if components(t) and not isinstance(t, types.BaseTuple):  # there text may have no word
            t = types.unliteral(t)
        kind = self.context.get_value_type(t)
        if not components(t) and not isinstance(t, types.BaseTuple):
            return llvm.Constant(kind, None)
        if isinstance(t, types.Record):
            return builder.inttoptr(next(words), kind)
        if is_opaque(t):
            return builder.load(builder.inttoptr(next(words), kind.as_pointer()))
        if isinstance(t, types.BaseTuple):
            return self.context.make_tuple(
                builder, t, [self._given(builder, part, words) for part in t]
            )
        if isinstance(t, types.Optional):
            some = builder.trunc(next(words), llvm.IntType(1))
            value = self.context.make_optional_value(
                builder, t.type, self._given(builder, t.type, words)
            )
            return builder.select(some, value, self.context.make_optional_none(builder, t.type))
        if isinstance(t, types.Array):
            return self._array(builder, t, words)
        if t in COMPLEX:
            value = self.context.make_complex(builder, t)
            value.real, value.imag = (self._given(builder, COMPLEX[t], words) for _ in range(2))
            return value._getvalue()
        if scalar(t) is None:
            raise Unsupported(f"{t} as an argument of what Numba compiles")
        word = next(words)
        if isinstance(t, types.Float):
            if t == types.float32:
                word = builder.trunc(word, llvm.IntType(32))
            return builder.bitcast(word, kind)
        return word if kind == WORD else builder.trunc(word, kind)

    def _array(self, builder: Any, t: NumbaType, words: Iterator[Any]) -> Any:
        """An array whose memory belongs to somebody else."""
        size = self.context.get_abi_sizeof(self.context.get_data_type(t.dtype))
        array = self.context.make_array(t)(self.context, builder)
        data = builder.inttoptr(next(words), array.data.type)
        shape = [next(words) for _ in range(t.ndim)]
        if t.layout == "C":
            strides, step = list[Any](), WORD(size)
            for n in reversed(shape):
                strides.insert(0, step)
                step = builder.mul(step, n)
        else:
            strides = [builder.mul(next(words), WORD(size)) for _ in range(t.ndim)]
        arrayobj.populate_array(array, data, shape, strides, WORD(size), None)
        return array._getvalue()

    def _taken(self, builder: Any, t: NumbaType, value: Any, place: Any) -> Iterator[Any]:
        """The words of a result."""
        if isinstance(t, types.Record):
            yield builder.ptrtoint(value, WORD)
        elif is_opaque(t):
            yield builder.ptrtoint(place, WORD)
        elif isinstance(t, types.BaseTuple):
            for k, part in enumerate(t):
                if components(part):
                    at = builder.gep(place, [llvm.IntType(32)(0), llvm.IntType(32)(k)])
                    yield from self._taken(builder, part, builder.extract_value(value, k), at)
        elif isinstance(t, types.Optional):
            optional = self.context.make_helper(builder, t, value)
            some = cgutils.as_bool_bit(builder, optional.valid)
            none = llvm.Constant(optional.data.type, None)
            yield builder.zext(some, WORD)
            yield from self._taken(
                builder, t.type, builder.select(some, optional.data, none), place
            )
        elif isinstance(t, types.Array):
            array = self.context.make_array(t)(self.context, builder, value)
            size = self.context.get_abi_sizeof(self.context.get_data_type(t.dtype))
            yield builder.ptrtoint(array.data, WORD)
            yield from (builder.extract_value(array.shape, d) for d in range(t.ndim))
            for d in range(t.ndim) if t.layout != "C" else ():
                stride = builder.extract_value(array.strides, d)
                rest = builder.srem(stride, WORD(size))
                with builder.if_then(builder.icmp_signed("!=", rest, WORD(0)), likely=False):
                    builder.ret(WORD(1))  # strides are counted in elements here
                yield builder.sdiv(stride, WORD(size))
        elif isinstance(t, types.List):
            items = listobj.ListInstance(self.context, builder, t, value)
            yield from (builder.ptrtoint(items.data, WORD), items.size)
        elif t in COMPLEX:
            parts = self.context.make_complex(builder, t, value)
            for part in (parts.real, parts.imag):
                yield from self._taken(builder, COMPLEX[t], part, place)
        elif isinstance(t, types.Float):
            bits = builder.bitcast(value, llvm.IntType(t.bitwidth))
            yield bits if bits.type == WORD else builder.zext(bits, WORD)
        elif scalar(t) is None:
            raise Unsupported(f"{t} from what Numba compiles")
        else:
            signed = isinstance(t, types.Integer) and t.signed
            extend = builder.sext if signed else builder.zext
            yield value if value.type == WORD else extend(value, WORD)


def _words_at(builder: Any, pointer: Any) -> Iterator[Any]:
    k = 0
    while True:
        yield builder.load(builder.gep(pointer, [WORD(k)]))
        k += 1


def _named(name: str) -> Callable[..., None]:
    def statement() -> None:
        pass

    statement.__name__ = statement.__qualname__ = name
    return statement

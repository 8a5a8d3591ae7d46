"""Float64 building blocks that LLVM widens to any vector length: fma, select, bits, Horner.

Each is an intrinsic that becomes one or a few LLVM instructions, never a branch or a call, so a
loop over functions made of them vectorises. All work on float64 except `widen` and `narrow`,
which let one float64 body serve float32 arguments too, and the last ones, `_f4`, of float32.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.errors import TypingError
from numba.extending import intrinsic

from tapegrad.kernels import simd_tables
from tapegrad.kernels.polynomial import polynomial

F64, F32, I64, I32 = types.float64, types.float32, types.int64, types.int32
BOOL = types.boolean


def lane(f: Callable[..., Any]) -> Any:
    """`intrinsic`, whose own type would have callers pass the typing context as well."""
    return intrinsic(f)


def _call(name: str, result: Any, args: tuple[Any, ...]) -> Any:
    """The (signature, code generator) of the LLVM intrinsic `name` on floats of one type."""

    def codegen(context: Any, builder: Any, signature: Any, values: Sequence[Any]) -> Any:
        del context, signature
        kind = values[0].type
        shape = ir.FunctionType(kind, [kind] * len(args))
        function = builder.module.declare_intrinsic(name, [kind], shape)
        return builder.call(function, values)

    return result(*args), codegen


def _cast(source: Any, target: Any, kind: Any) -> Any:
    """That of the same bits as a value of another type, LLVM's `kind`."""

    def codegen(context: Any, builder: Any, signature: Any, values: Sequence[Any]) -> Any:
        return builder.bitcast(values[0], kind)

    return target(source), codegen


def _horner(kind: Any, coefficients: Any) -> Any:
    if not isinstance(coefficients, types.UniTuple):
        raise TypingError(f"`horner` takes a tuple of floats, got {coefficients}.")
    count = coefficients.count

    def codegen(context: Any, builder: Any, signature: Any, values: Sequence[Any]) -> Any:
        x, c = values
        return polynomial(builder, x, [builder.extract_value(c, k) for k in range(count)])

    return kind(kind, types.UniTuple(kind, count)), codegen


def _fma(kind: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, values: Sequence[Any]) -> Any:
        return builder.fma(*values)

    return kind(kind, kind, kind), codegen


@lane
def fma(typingctx: Any, a: Any, b: Any, c: Any) -> Any:
    """The fused a * b + c, rounded once."""
    return _fma(F64)


@lane
def select(typingctx: Any, condition: Any, a: Any, b: Any) -> Any:
    """`a if condition else b` with both sides computed: a blend, never a jump."""

    def codegen(context: Any, builder: Any, signature: Any, values: Sequence[Any]) -> Any:
        return builder.select(*values)

    return F64(BOOL, F64, F64), codegen


@lane
def bits(typingctx: Any, x: Any) -> Any:
    """The bit pattern of a double as an int64."""
    return _cast(F64, I64, ir.IntType(64))


@lane
def from_bits(typingctx: Any, b: Any) -> Any:
    """The double with bit pattern `b`."""
    return _cast(I64, F64, ir.DoubleType())


@lane
def magnitude(typingctx: Any, x: Any) -> Any:
    """|x|, by clearing the sign bit."""
    return _call("llvm.fabs", F64, (F64,))


@lane
def copysign(typingctx: Any, x: Any, sign: Any) -> Any:
    """|x| with the sign bit of `sign`."""
    return _call("llvm.copysign", F64, (F64, F64))


@lane
def nearest(typingctx: Any, x: Any) -> Any:
    """The integer nearest to x, ties to even, for any x."""
    return _call("llvm.rint", F64, (F64,))


@lane
def truncated_remainder(typingctx: Any, a: Any, b: Any) -> Any:
    """What the truncated division leaves, with the sign of a, exactly: libm's fmod."""

    def codegen(context: Any, builder: Any, signature: Any, values: Sequence[Any]) -> Any:
        return builder.frem(*values)

    return F64(F64, F64), codegen


@lane
def horner(typingctx: Any, x: Any, coefficients: Any) -> Any:
    """c[0] + x*(c[1] + x*(c[2] + ...)) for a constant tuple, one fma per coefficient."""
    return _horner(F64, coefficients)


@lane
def widen(typingctx: Any, x: Any) -> Any:
    """Any real number as a float64."""
    if not isinstance(x, (types.Float, types.Integer, types.Boolean, types.IntegerLiteral)):
        raise TypingError(f"a function of `vmath` takes real numbers, got {x}.")

    def codegen(context: Any, builder: Any, signature: Any, values: Sequence[Any]) -> Any:
        return values[0]  # Numba has cast the argument to the signature's float64

    return F64(F64), codegen


@lane
def narrow(typingctx: Any, y: Any, like: Any) -> Any:
    """The float64 `y` rounded to float32 if `like` is a float32, else unchanged."""
    result = like if like == types.float32 else F64

    def codegen(context: Any, builder: Any, signature: Any, values: Sequence[Any]) -> Any:
        return context.cast(builder, values[0], F64, result)

    return result(F64, like), codegen


@lane
def horner_select(typingctx: Any, condition: Any, x: Any, a: Any, b: Any) -> Any:
    """`horner(x, a if condition else b)` for tuples of one length: the coefficients are blended."""
    count = a.count

    def codegen(context: Any, builder: Any, signature: Any, values: Sequence[Any]) -> Any:
        condition, x, a, b = values

        pairs = [(builder.extract_value(a, k), builder.extract_value(b, k)) for k in range(count)]
        return polynomial(builder, x, [builder.select(condition, *pair) for pair in pairs])

    return F64(BOOL, F64, types.UniTuple(F64, count), types.UniTuple(F64, count)), codegen


@lane
def inverse_root(typingctx: Any, x: Any, rough: Any) -> Any:
    """x**(-1/2) to 2**-14 where vectors of it can be had at once (`simd_tables`), else `rough`."""

    def codegen(context: Any, builder: Any, signature: Any, values: Sequence[Any]) -> Any:
        if not simd_tables.in_registers():
            return values[1]
        function = builder.module.globals.get(simd_tables.ROOT)
        if function is None:
            double = ir.DoubleType()
            kind = ir.FunctionType(double, [double, double])
            function = ir.Function(builder.module, kind, simd_tables.ROOT)
            function.linkage = "linkonce_odr"
            function.attributes.add("noinline")
            ir.IRBuilder(function.append_basic_block()).ret(function.args[1])
        return builder.call(function, values)

    return F64(F64, F64), codegen


def table(values: Sequence[float]) -> Any:
    """A function that looks a number up by the low four bits of an int64 (see `simd_tables`)."""

    @lane
    def look(typingctx: Any, index: Any) -> Any:
        """The number at a place."""

        def codegen(context: Any, builder: Any, signature: Any, given: Sequence[Any]) -> Any:
            return builder.call(_look_up(builder.module, values), given)

        return F64(I64), codegen

    return look


def tables(powers: Sequence[Sequence[float]]) -> Any:
    """A polynomial whose coefficients are looked up, lowest power first."""

    @lane
    def look(typingctx: Any, x: Any, index: Any) -> Any:
        """The polynomial of x at a place."""

        def codegen(context: Any, builder: Any, signature: Any, given: Sequence[Any]) -> Any:
            looks = [_look_up(builder.module, values) for values in powers]
            return polynomial(builder, given[0], [builder.call(f, given[1:]) for f in looks])

        return F64(F64, I64), codegen

    return look


def _look_up(module: Any, values: Sequence[float]) -> Any:
    """The function of a table, in a module."""
    name = simd_tables.name_of(values)
    known = module.globals.get(name)
    if known is not None:
        return known
    double, word = ir.DoubleType(), ir.IntType(64)
    kind = ir.ArrayType(double, len(values))
    numbers = ir.GlobalVariable(module, kind, f"{name}.values")
    # Not internal: LLVM would change how it is called.
    numbers.linkage, numbers.global_constant, numbers.align = "linkonce_odr", True, 64
    numbers.initializer = ir.Constant(kind, [ir.Constant(double, v) for v in values])
    function = ir.Function(module, ir.FunctionType(double, [word]), name)
    function.linkage = "linkonce_odr"
    function.attributes.add("noinline")
    builder = ir.IRBuilder(function.append_basic_block())
    place = builder.and_(function.args[0], ir.Constant(word, simd_tables.SIZE - 1))
    at = builder.gep(numbers, [ir.Constant(word, 0), place], inbounds=True)
    builder.ret(builder.load(at))
    return function


@lane
def fma_f4(typingctx: Any, a: Any, b: Any, c: Any) -> Any:
    """The fused a * b + c of float32, rounded once."""
    return _fma(F32)


@lane
def bits_f4(typingctx: Any, x: Any) -> Any:
    """The bit pattern of a float32 as an int32."""
    return _cast(F32, I32, ir.IntType(32))


@lane
def from_bits_f4(typingctx: Any, b: Any) -> Any:
    """The float32 with bit pattern `b`."""
    return _cast(I32, F32, ir.FloatType())


@lane
def magnitude_f4(typingctx: Any, x: Any) -> Any:
    """|x| of float32."""
    return _call("llvm.fabs", F32, (F32,))


@lane
def copysign_f4(typingctx: Any, x: Any, sign: Any) -> Any:
    """|x| with the sign bit of `sign`, of float32."""
    return _call("llvm.copysign", F32, (F32, F32))


@lane
def root_f4(typingctx: Any, x: Any) -> Any:
    """The square root of float32."""
    return _call("llvm.sqrt", F32, (F32,))


@lane
def horner_f4(typingctx: Any, x: Any, coefficients: Any) -> Any:
    """`horner` of float32."""
    return _horner(F32, coefficients)


def singles(*numbers: float) -> tuple[Any, ...]:
    """Coefficients for `horner_f4`."""
    return tuple(map(np.float32, numbers))


@lane
def times_power_f4(typingctx: Any, p: Any, t: Any) -> Any:
    """p * 2**n, where n + 254 stands in the low bits of t; in two factors, as `vmath`'s."""
    word = ir.IntType(32)

    def codegen(context: Any, builder: Any, signature: Any, values: Sequence[Any]) -> Any:
        p, t = values
        both = builder.bitcast(t, word)
        half = builder.and_(builder.shl(both, ir.Constant(word, 22)), ir.Constant(word, 0xFF << 23))
        rest = builder.sub(builder.shl(both, ir.Constant(word, 23)), half)
        for factor in half, rest:
            p = builder.fmul(p, builder.bitcast(factor, ir.FloatType()))
        return p

    return F32(F32, F32), codegen

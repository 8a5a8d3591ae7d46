"""Raw memory for kernels: typed pointers from addresses, calls through addresses, atomic words."""

from __future__ import annotations

import platform
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from tapegrad.kernels.simd import lane


def _pointer(numba_type: Any, llvm_type: Any) -> Any:
    @intrinsic
    def cast(typingctx: Any, address: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], llvm_type.as_pointer())

        return types.CPointer(numba_type)(types.int64), codegen

    return cast


f8 = _pointer(types.float64, ir.DoubleType())
f4 = _pointer(types.float32, ir.FloatType())
i8 = _pointer(types.int64, ir.IntType(64))
i4 = _pointer(types.int32, ir.IntType(32))
u1 = _pointer(types.uint8, ir.IntType(8))


def _calling(arity: int) -> Any:
    """The type and the code of a call through an address, with so many int64 arguments."""
    word = ir.IntType(64)
    kind = ir.FunctionType(word, [word] * arity)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.call(builder.inttoptr(args[0], kind.as_pointer()), args[1:])

    return types.int64(*[types.int64] * (arity + 1)), codegen


@lane
def call0(typingctx: Any, address: Any) -> Any:
    """Call the function at an address."""
    return _calling(0)


@lane
def call1(typingctx: Any, address: Any, a: Any) -> Any:
    """Call the function at an address with one int64 argument."""
    return _calling(1)


@lane
def call2(typingctx: Any, address: Any, a: Any, b: Any) -> Any:
    """Call the function at an address with two int64 arguments."""
    return _calling(2)


@lane
def call3(typingctx: Any, address: Any, a: Any, b: Any, c: Any) -> Any:
    """Call the function at an address with three int64 arguments."""
    return _calling(3)


@lane
def call4(typingctx: Any, address: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """Call the function at an address with four int64 arguments."""
    return _calling(4)


@lane
def call8(
    typingctx: Any, address: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any
) -> Any:
    """Call the kernel at an address with eight int64 arguments."""
    return _calling(8)


@lane
def address(typingctx: Any, pointer: Any) -> Any:
    """The address of what a pointer points to."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ptrtoint(args[0], ir.IntType(64))

    return types.int64(pointer), codegen


def _room(numba_type: Any, llvm_type: Any, zeroed: bool) -> Any:
    @intrinsic(prefer_literal=True)
    def room(typingctx: Any, count: Any) -> Any:
        """Memory of the running function for so many elements, a number that is written out.

        Words are zero at first; floats, of which there may be many, are what was there.
        """

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            kind = ir.ArrayType(llvm_type, count.literal_value)
            with builder.goto_entry_block():
                whole = builder.alloca(kind)
                whole.align = 64  # the length of the longest vectors
                if zeroed:
                    builder.store(kind(None), whole)
            return builder.bitcast(whole, llvm_type.as_pointer())

        return types.CPointer(numba_type)(count), codegen

    return room


room_f8 = _room(types.float64, ir.DoubleType(), zeroed=False)
room_f4 = _room(types.float32, ir.FloatType(), zeroed=False)
room_i8 = _room(types.int64, ir.IntType(64), zeroed=True)


def _select(numba_type: Any) -> Any:
    @intrinsic
    def choose(typingctx: Any, condition: Any, a: Any, b: Any) -> Any:
        """`a if condition else b` with both sides computed: a blend, never a jump."""

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.select(*args)

        return numba_type(types.boolean, numba_type, numba_type), codegen

    return choose


select_f8 = _select(types.float64)
select_f4 = _select(types.float32)
select_i8 = _select(types.int64)


def _reassociating(numba_type: Any, operation: str) -> Any:
    @intrinsic
    def combine(typingctx: Any, a: Any, b: Any) -> Any:
        """A sum (or product) whose order LLVM may choose, so that a loop over it vectorises."""

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return getattr(builder, operation)(*args, flags=("reassoc",))

        return numba_type(numba_type, numba_type), codegen

    return combine


plus_f8 = _reassociating(types.float64, "fadd")
plus_f4 = _reassociating(types.float32, "fadd")
times_f8 = _reassociating(types.float64, "fmul")
times_f4 = _reassociating(types.float32, "fmul")


def _extreme(numba_type: Any, llvm_type: Any, name: str) -> Any:
    @intrinsic
    def extreme(typingctx: Any, a: Any, b: Any) -> Any:
        """The larger or smaller of two, NaN if one is, either zero: LLVM takes it in vectors."""

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            kind = ir.FunctionType(llvm_type, [llvm_type] * 2)
            function = builder.module.declare_intrinsic(name, [llvm_type], kind)
            return builder.call(function, args, fastmath=("nsz",))

        return numba_type(numba_type, numba_type), codegen

    return extreme


larger_f8 = _extreme(types.float64, ir.DoubleType(), "llvm.maximum")
larger_f4 = _extreme(types.float32, ir.FloatType(), "llvm.maximum")
smaller_f8 = _extreme(types.float64, ir.DoubleType(), "llvm.minimum")
smaller_f4 = _extreme(types.float32, ir.FloatType(), "llvm.minimum")


def _floor(numba_type: Any, llvm_type: Any) -> Any:
    @intrinsic
    def down(typingctx: Any, x: Any) -> Any:
        """The largest whole number below, as a float (Numba's `math.floor` gives an int64)."""

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            kind = ir.FunctionType(llvm_type, [llvm_type])
            function = builder.module.declare_intrinsic("llvm.floor", [llvm_type], kind)
            return builder.call(function, args)

        return numba_type(numba_type), codegen

    return down


floor_f8 = _floor(types.float64, ir.DoubleType())
floor_f4 = _floor(types.float32, ir.FloatType())


@lane
def call_gemm(typingctx: Any, address: Any, block: Any) -> Any:
    """Call BLAS's dgemm; its 13 arguments are pointers, the words of a block of memory."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = ir.IntType(64)
        kind = ir.FunctionType(ir.VoidType(), [word] * 13)
        words = builder.inttoptr(args[1], word.as_pointer())
        values = [builder.load(builder.gep(words, [ir.Constant(word, i)])) for i in range(13)]
        builder.call(builder.inttoptr(args[0], kind.as_pointer()), values)
        return ir.Constant(word, 0)

    return types.int64(types.int64, types.int64), codegen


# -- words that several threads read and write -----------------------------------------------------

_ORDER = "seq_cst"
_WORD = ir.IntType(64)


@lane
def load(typingctx: Any, address: Any) -> Any:
    """The word at an address, as another thread has left it."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(builder.inttoptr(args[0], _WORD.as_pointer()), _ORDER, 8)

    return types.int64(types.int64), codegen


@lane
def exchange(typingctx: Any, address: Any, word: Any) -> Any:
    """Write a word; returns the one before."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        at = builder.inttoptr(args[0], _WORD.as_pointer())
        return builder.atomic_rmw("xchg", at, args[1], _ORDER)

    return types.int64(types.int64, types.int64), codegen


@lane
def exchange_if(typingctx: Any, address: Any, expected: Any, word: Any) -> Any:
    """Write a word where another one stands; returns the one before."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        at = builder.inttoptr(args[0], _WORD.as_pointer())
        found = builder.cmpxchg(at, args[1], args[2], _ORDER, _ORDER)
        return builder.extract_value(found, 0)

    return types.int64(types.int64, types.int64, types.int64), codegen


# What tells a processor that a loop only waits.
_PAUSES: dict[str, tuple[str, list[int]]] = {
    "x86_64": ("llvm.x86.sse2.pause", []),
    "amd64": ("llvm.x86.sse2.pause", []),
    "aarch64": ("llvm.aarch64.hint", [1]),
    "arm64": ("llvm.aarch64.hint", [1]),
}


@lane
def pause(typingctx: Any) -> Any:
    """Wait a moment, some ten to a hundred cycles."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        known = _PAUSES.get(platform.machine().lower())
        if known is not None:
            name, numbers = known
            i32 = ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [i32] * len(numbers))
            function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
            builder.call(function, [ir.Constant(i32, n) for n in numbers])
        return context.get_dummy_value()

    return types.none(), codegen

"""Fill the frame of native operations with addresses of CPython's, NumPy's and the tape's."""

from __future__ import annotations

import contextlib
import ctypes
import platform
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tapegrad.base.compile_stages import NotCompiled
from tapegrad.base.cpython import address_of, numpy_function, slot_offset, ufunc_loop
from tapegrad.base.size import Size
from tapegrad.dispatch import call_plans, op_functions, views
from tapegrad.dispatch.complex_layout import complex_matrices
from tapegrad.dispatch.operand_layout import broadcast, classes, matrix_layout
from tapegrad.kernels.codegen import kernel_table as kernels
from tapegrad.kernels.codegen import rule_codegen
from tapegrad.kernels.sweep.sweep_abi import CAPACITY, SMALL
from tapegrad.native.abi import (
    ALONE,
    BINARY,
    BY_PYTHON,
    BY_UFUNC,
    C16_TYPE,
    IN_PLACE,
    KEY_BITS,
    MATMUL,
    NO_OPERAND,
    NULL,
    NUMBER,
    OF_F4,
    OF_F8,
    OPERAND_A,
    OPERAND_B,
    READS_RESULT,
    REDUCTION,
    RESULT,
    SHAPE_LINES,
    TERNARY,
    UNARY,
    Frame,
    LargeRow,
    OpRow,
    ShapeLine,
    UfuncLoop,
)
from tapegrad.native.view_cache import ViewCache
from tapegrad.ops.core import ELEMENTWISE, Formula, Op, by_code
from tapegrad.ops.elementwise import Composed, Lazy
from tapegrad.parallel import large_elementwise
from tapegrad.tape import versions
from tapegrad.tape.record_format import DTYPE_BITS, DTYPES, F4_SHAPE, GENERAL, SAVES
from tapegrad.tape.shape_table import shapes, strides
from tapegrad.tape.tape import Tape, current
from tapegrad.tensor import F4, F8, NO_GRAD, SHORT, Tensor, View, former, wrap

_NUMPY = {"PyArray_NewFromDescr": 94, "PyArray_SetBaseObject": 282}  # places in its table
# By the beginning of a field's name: whose slot it is, and the beginning of the slot's.
_SLOTS = {"t_": (Tensor, "_"), "v_": (View, ""), "tape_": (Tape, "")}
# The floating-point exceptions of which NumPy warns, as the C library counts them.
_X86, _ARM = {"divide": 4, "over": 8, "invalid": 1}, {"divide": 2, "over": 4, "invalid": 1}
FP_FLAGS = {"x86_64": _X86, "AMD64": _X86, "aarch64": _ARM, "arm64": _ARM}
_OPERANDS = {"a": OPERAND_A, "b": OPERAND_B, "y": RESULT, "0": NULL}
_TAPE, _PULL = sys.intern("tape"), sys.intern("pull")


def _loop(ufunc: Any, letter: str = "d", result: str = "") -> tuple[int, int] | None:
    """The address of a ufunc's loop over a type, and of the data that goes with it."""
    return ufunc_loop(ufunc, letter * ufunc.nin + "->" + (result or letter))


def _compares(op: Op) -> bool:
    """Whether the result of an operation on doubles is of booleans."""
    return isinstance(op.forward, np.ufunc) and "d" * op.forward.nin + "->?" in op.forward.types


LETTERS = {"f8": "d", "f4": "f"}  # of NumPy's types


def loops_of(op: Op, letter: str = "d", result: str = "") -> list[int]:
    """The loops that compute an operation, as they stand in its row; [] where there are none."""
    forward = getattr(op.forward, "__wrapped__", op.forward)
    if isinstance(forward, Lazy):
        forward = forward.ufunc
    if isinstance(forward, np.ufunc) and forward.nin < 3:
        forward = Composed((forward, "ab"[: forward.nin]))
    if not isinstance(forward, Composed):
        return []
    row: list[int] = []
    for ufunc, names in forward.steps:
        loop = _loop(ufunc, letter, "?" if _compares(op) else result)
        if loop is None:
            return []
        operands = [_OPERANDS[name] for name in names]
        first, second = (*operands, NO_OPERAND)[:2]
        row += UfuncLoop.words(function=loop[0], data=loop[1], first=first, second=second)
    return row


def slots() -> Iterator[tuple[str, type, str]]:
    """The fields of the frame that say where slots stand, with these."""
    for field in Frame.fields:
        for prefix, (kind, underscore) in _SLOTS.items():
            if field.startswith(prefix):
                yield field, kind, underscore + field.removeprefix(prefix)


def as_expected(frame: np.ndarray) -> bool:
    """Whether slots stand where the frame says."""
    word = ctypes.c_int64.from_address
    t = wrap(np.zeros(2))
    t._grad, t._extra = t, {}
    samples = {Tensor: t, View: View(None, (), None), Tape: current.tape}
    good = all(
        word(id(samples[kind]) + 8 * int(frame[getattr(Frame, field)])).value
        == id(getattr(samples[kind], name))
        for field, kind, name in slots()
    )
    t._grad = None
    return good


def kind_of(op: Op) -> int:
    """What a call of an operation is."""
    if op in op_functions.reductions:
        return REDUCTION
    return (UNARY, BINARY, TERNARY)[len(op.inputs) - 1] if op.kind is ELEMENTWISE else MATMUL


def is_native(op: Op) -> bool:
    """Whether an operation may go by the native path."""
    return op.entry_point is not None and (
        op.kind is not ELEMENTWISE
        or (isinstance(op.forward, Lazy) and len(op.inputs) < 3)
        or bool(loops_of(op))
        or rule_codegen.computable(rule_codegen.result(op))
    )


def by_kernel(op: Op) -> bool:
    """Whether the library's own loop computes an operation on small arrays, too, once it is there.

    Where NumPy and SciPy have none, or, of some dozens of elements, one that is slower.
    """
    if (
        op.kind is not ELEMENTWISE
        or op.entry_point is None
        or not rule_codegen.computable(rule_codegen.result(op))
    ):
        return False
    known = bool(loops_of(op)) or isinstance(op.forward, Lazy)
    return "scalar" in op.loop or not known


def by_what(op: Op, scalars: int, dtype: str = "f8") -> int:
    """What `parallel` has one thread do with large arrays; see `LargeRow`."""
    if scalars & IN_PLACE:
        return by_what_in_place(op, scalars & ~IN_PLACE, dtype)
    spread = scalars & 1 and len(op.inputs) > 1 and "broadcast" in op.loop
    if op.kind is ELEMENTWISE and (spread or dtype in op.loop):
        kernel = kernels.forward(op, dtype, scalars)
        if kernel is not None:
            return kernel.address
    if op in op_functions.reductions:
        return kernels.loop("add_up", dtype).address
    by_ufunc = kind_of(op) in (UNARY, BINARY) and not isinstance(op.forward, Lazy)
    return BY_UFUNC if by_ufunc and loops_of(op, LETTERS[dtype]) else BY_PYTHON


def by_what_in_place(op: Op, scalars: int, dtype: str) -> int:
    """The same of `large_elementwise.forward_into`."""
    if not all(isinstance(formula, Formula) for formula in op.formulas):
        return BY_PYTHON
    if dtype in op.loop:
        kernel = kernels.forward(op, dtype, scalars | large_elementwise.INTO_FIRST)
        return BY_PYTHON if kernel is None else kernel.address
    loops = isinstance(op.forward, np.ufunc) and loops_of(op, LETTERS[dtype])
    known = loops and not _compares(op)
    return BY_UFUNC if known and op.forward in _EXCEPTIONAL else BY_PYTHON


# What makes a ufunc say that it divided by zero, overflowed, or found no meaning in its operands.
_MOST = np.finfo(np.float64).max
_EXCEPTIONAL: dict[np.ufunc, dict[str, tuple[float, ...]]] = {
    np.add: {"over": (_MOST, _MOST), "invalid": (np.inf, -np.inf)},
    np.subtract: {"over": (_MOST, -_MOST), "invalid": (np.inf, np.inf)},
    np.multiply: {"over": (_MOST, _MOST), "invalid": (np.inf, 0.0)},
    np.divide: {"divide": (1.0, 0.0), "over": (_MOST, 0.5), "invalid": (0.0, 0.0)},
    np.square: {"over": (_MOST,)},
    np.negative: {},
    np.absolute: {},
    np.floor: {},
    np.ceil: {},
    np.trunc: {},
}


def warn_fp_flags(code: int, flags: int) -> None:
    """Have NumPy speak of exceptions of arithmetic that came about in its loop."""
    ufunc: Any = by_code[code].forward
    for name, operands in _EXCEPTIONAL[ufunc].items():
        if flags & FP_FLAGS[platform.machine()][name]:
            ufunc(*operands)


def compute(code: int, a: np.ndarray, b: np.ndarray | None) -> np.ndarray:
    """An elementwise operation of one array or two, by NumPy, who speaks of exceptions."""
    forward: Any = by_code[code].forward
    return np.asarray(forward(a) if b is None else forward(a, b))


NEVER = -(1 << 62)  # in place of the calls until Python looks for a kernel that there cannot be


class Bindings:
    """The frame and its tables, and whatever must live as long."""

    def __init__(self) -> None:
        self.words: np.ndarray = np.zeros(Frame.SIZE, np.int64)
        self.op_rows: np.ndarray = np.zeros((CAPACITY, OpRow.SIZE), np.int64)
        self.broadcasts: np.ndarray = np.zeros((SHAPE_LINES, ShapeLine.SIZE), np.int64)
        self.matmuls: np.ndarray = np.zeros((SHAPE_LINES, ShapeLine.SIZE), np.int64)
        self.reductions: np.ndarray = np.zeros((SHAPE_LINES, ShapeLine.SIZE), np.int64)
        self.large_rows: np.ndarray = np.zeros((CAPACITY, LargeRow.SIZE), np.int64)
        self.view_cache = ViewCache()
        self.held: list[Any] = []
        self.sought: set[tuple[int, int]] = set()  # kernels that were looked for
        self.kept: dict[tuple[int, int, int], Any] = {}
        self.lengths: dict[int, np.ndarray] = {}  # of shapes, behind how many there are
        self.kept_specs: dict[tuple[int, int, int], Any] = {}  # of shapes and a type
        self._functions()
        self._objects()

    def put(self, **words: int) -> None:
        """Set fields by their names."""
        for name, word in words.items():
            self.words[getattr(Frame, name)] = word

    def _functions(self) -> None:
        process = ctypes.CDLL(None)
        self.put(**{field: numpy_function(place) for field, place in _NUMPY.items()})
        for field in Frame.fields:
            if field.startswith("Py") and field not in _NUMPY:
                self.put(**{field: address_of(getattr(ctypes.pythonapi, field))})
        for field in ("memcpy", "fetestexcept", "feclearexcept"):
            self.put(**{field: address_of(getattr(process, field))})
        self.put(fp_flags=sum(FP_FLAGS[platform.machine()].values()))

    def _objects(self) -> None:
        for field, kind, name in slots():
            self.put(**{field: slot_offset(kind.__dict__[name]) // 8})
        objects = {
            "none": None, "true": True, "false": False, "zero": 0, "zero_f4": F4_SHAPE,
            "minus_one": -1, "ellipsis": ..., "empty_str": "", "empty_tuple": (),
            "tensor_type": Tensor, "view_type": View, "float_type": float, "int_type": int,
            "bool_type": bool,
            "complex_type": complex, "complex128": np.dtype(np.complex128),
            "int64_type": np.int64, "float64_type": np.float64, "tuple_type": tuple,
            "size_type": Size, "list_type": list,
            "slice_type": slice, "memoryview_type": memoryview,
            "array_type": np.ndarray, "float64": F8, "float32": F4,
            "int64": np.dtype(np.int64), "bool_dtype": np.dtype(bool), "no_grad": NO_GRAD,
            "current": current, "attr_tape": _TAPE, "attr_pull": _PULL,
            "constants": op_functions.constants, "constants_f4": op_functions.constants_f4,
            "constants_c16": {}, "constants_i8": {},
            "shape_numbers": shapes.ids, "shape_list": shapes.shapes,
            "former": former, "by_code": by_code,
            "bump_version": versions.bump, "as_tensors": views.as_tensors,
            "learn_broadcast": self.learn_broadcast, "learn_matmul": self.learn_matmul,
            "learn_complex": self.learn_complex,
            "learn_reduction": self.learn_reduction, "learn_view": self.view_cache.learn,
            "learn_shape": self.learn_shape, "list_inputs": Tape.list_inputs, "compute": compute,
            "learn_large": self.learn_large, "learn_kernel": self.learn_kernel,
            "warn_fp_flags": warn_fp_flags,
        }  # fmt: skip
        self.held += objects.values()
        self.put(**{field: id(thing) for field, thing in zip(objects, self.held, strict=True)})
        for letter, suffix, bits in (("d", "", np.int64), ("f", "_f4", np.int32)):
            adding, multiplying = _loop(np.add, letter), _loop(np.matmul, letter)
            if adding is None or multiplying is None:
                raise RuntimeError("NumPy's loops over floats are not where they were")
            start = np.add.reduce(np.array([-0.0], letter)).view(bits)  # of NumPy's sums: 0 or -0
            words = dict(zip(("sum_loop", "sum_data", "sum_start"), (*adding, start), strict=True))
            words |= zip(("matmul_loop", "matmul_data"), multiplying, strict=True)
            self.put(**{name + suffix: int(word) for name, word in words.items()})
        loop, data = _loop(np.matmul, "D") or (0, 0)
        self.put(matmul_loop_c16=loop, matmul_data_c16=data)
        self.put(
            op_rows=self.op_rows.ctypes.data, broadcasts=self.broadcasts.ctypes.data,
            matmuls=self.matmuls.ctypes.data, reductions=self.reductions.ctypes.data,
            view_cache=self.view_cache.lines.ctypes.data, large_rows=self.large_rows.ctypes.data,
            threads=ctypes.addressof(large_elementwise.in_memory),
            sizes_at=shapes.in_memory.ctypes.data, strides_at=strides.in_memory.ctypes.data,
            known_at=kernels.known.ctypes.data,
        )  # fmt: skip
        self.forget_tape()

    def forget_tape(self) -> None:
        """Ask anew, at the next call, which tape is the thread's."""
        self.words[Frame.thread] = -1

    def learn(self, op: Op, fallback: Callable[..., Any]) -> None:
        """Fill in the row of an operation, whose function in Python takes what remains."""
        row = self.op_rows[op.code]
        last = len(op.inputs)  # of what is saved: the result
        bits = [*[1 << k for k in range(last)], READS_RESULT]
        reads = [sum(bit for bit, read in zip(bits, saves) if read) for saves in op.saves]
        row[OpRow.word] = op.code | DTYPE_BITS[F8] | (SAVES if any(reads) else 0)
        row[OpRow.reads : OpRow.reads + len(reads)] = reads
        row[OpRow.is_boolean], row[OpRow.is_mean] = _compares(op), op.name == "mean"
        # Loops are for operations whose operands all have derivatives, or none.
        partly = any(op.moving) and not all(op.moving) and loops_of(op)
        if op.kind is ELEMENTWISE and not partly:
            places = {"d": OpRow.loops, "f": OpRow.loops_f4}
            if op.complex and not op.ordered:
                places["D"] = OpRow.loops_c16
            if "i" in op.kinds:
                places["q"] = OpRow.loops_i8
            for letter, place in places.items():
                loops = loops_of(op, letter)
                if letter == "D" and not loops:
                    loops = loops_of(op, "D", "d")
                    row[OpRow.is_real] = bool(loops)
                row[place : place + len(loops)] = loops
            if isinstance(op.forward, Lazy) and not loops_of(op):
                fallback = self._once_loaded(op, fallback)
            elif not loops_of(op):
                fixed = [k for k in range(last) if not op.moving[k]]
                row[OpRow.has_condition] = "condition" in op.inputs
                row[OpRow.numbers] = sum(1 << k for k in fixed if op.inputs[k] != "condition")
            row[OpRow.kernels : OpRow.kernels + 16] = -call_plans.TIMES if by_kernel(op) else NEVER
            if "scalar" in op.loop:
                row[OpRow.scalar_loops] = OF_F8 * ("f8" in op.loop) + OF_F4 * ("f4" in op.loop)
        self.held.append(fallback)
        row[OpRow.fallback] = id(fallback)

    def _once_loaded(self, op: Op, fallback: Callable[..., Any]) -> Callable[..., Any]:
        """The first call of an operation of SciPy, which is imported then, and has loops."""

        def function(*args: Any) -> Any:
            found = fallback(*args)
            if loops_of(op):
                self.learn(op, fallback)
            return found

        return function

    def learn_broadcast(self, one: int, two: int, dtype: int) -> None:
        """Fill in the line of a pair of shapes, by their numbers, that are broadcast together."""
        a, b = shapes.shapes[one], shapes.shapes[two]
        found, bits, aux = -1, 0, 0
        with contextlib.suppress(ValueError):
            result = np.broadcast_shapes(a, b)
            number = shapes.number(result)
            if shapes.sizes[number] < SHORT or dtype < C16_TYPE:
                found, (bits, aux) = number, broadcast((a, b), result) or (GENERAL, 0)
        extra, specs = int(found == two), 0
        if found >= 0 and found not in (one, two):  # as of a column and a row
            shape = shapes.shapes[found]
            lengths = self.lengths.setdefault(found, np.array([len(shape), *shape], np.int64))
            extra = lengths.ctypes.data
        if dtype >= C16_TYPE and found >= 0 and shapes.sizes[found] > SMALL >> 1:
            bits, aux = GENERAL, 0  # too many bytes for the compiled sweep
        if bits & GENERAL or dtype >= C16_TYPE:
            specs = self._specs(one, two, dtype)
        self._line(self.broadcasts, one, two, dtype, found, bits, aux, extra, specs)

    def _specs(self, one: int, two: int, dtype: int) -> int:
        """Where there stands what records save of the shapes and the type of operands."""
        both = (one,) if two == ALONE else (one, two)
        kinds = [DTYPES[dtype & 3]] * 2
        if mixed := dtype >> 2:  # which of them are complex, as bits
            kinds = [DTYPES[C16_TYPE if mixed >> k & 1 else 0] for k in range(2)]
        specs = tuple([
            None if number == NUMBER else (shapes.shapes[number], kind)
            for number, kind in zip(both, kinds, strict=False)
        ])  # fmt: skip
        return id(self.kept_specs.setdefault((one, two, dtype), ({}, specs)))

    def learn_shape(self, array: np.ndarray) -> None:
        """Give the shape of an array a number."""
        shapes.number(array.shape)

    def learn_complex(self, one: int, two: int, dtype: int) -> None:
        """Fill in the line of the shapes of one complex operand, or two."""
        specs = self._specs(one, two, dtype)
        self._line(self.broadcasts, one, two, dtype, one, 0, 0, 0, specs)

    def learn_matmul(self, one: int, two: int, dtype: int) -> None:
        """Fill in the line of the shapes of matrices or vectors that are multiplied."""
        a, b = shapes.shapes[one], shapes.shapes[two]
        found, bits, aux = -1, 0, 0
        alike = not a[:-2] or not b[:-2] or a[:-2] == b[:-2]  # or one is a matrix or a vector
        if a and b and alike and a[-1] == b[-2:][0]:
            number = shapes.number((*(a[:-2] or b[:-2]), *a[-2:-1], *b[-1:][: len(b) - 1]))
            both = DTYPES[dtype].kind == "c"
            layout = complex_matrices(a, b) if both else matrix_layout(a, b)
            if shapes.counts[number] < SHORT:  # of more other threads need not wait for it
                found, (bits, aux) = number, layout or (GENERAL, 0)
        extra = self._specs(one, two, dtype)
        self._line(self.matmuls, one, two, dtype, found, bits, aux, extra)

    def learn_reduction(self, code: int, one: int, is_f4: int) -> None:
        """Fill in the line of the sum or the mean of everything of a shape."""
        shape, kind = shapes.shapes[one], F4 if is_f4 else F8
        layout = classes(((1,) * len(shape),), shape)
        bits, aux = (GENERAL, 0) if layout is None else (layout[0], int(shapes.sizes[one]))
        params = {"dim": tuple(range(len(shape))), "keepdim": False}
        extra = (None, None, (params, ((shape, kind),)))
        word = code | DTYPE_BITS[kind] | bits
        self.kept[code, one, is_f4] = extra
        self._line(self.reductions, code, one, is_f4, 0, word, aux, id(extra))

    def learn_kernel(self, code: int, scalars: int, is_f4: int) -> None:
        """Look for the kernel of an operation on small arrays; not there, have it compiled."""
        op, dtype = by_code[code], "f4" if is_f4 else "f8"
        place = (OpRow.kernels_f4 if is_f4 else OpRow.kernels) + scalars
        asking = (code, place) in self.sought
        self.sought.add((code, place))
        there = kernels.is_compiled(op, dtype, scalars, asking=asking)
        loop = None
        with contextlib.suppress(NotCompiled):
            loop = kernels.forward(op, dtype, scalars) if there else None
        self.op_rows[code, place] = -call_plans.MANY if loop is None else loop.address

    def learn_large(self, code: int, scalars: int, is_f4: int) -> None:
        """Fill in by what an operation on large arrays is computed, unless that is compiled yet."""
        known, place = self.op_rows[code, OpRow.fallback] != 0, LargeRow.kernels
        if is_f4:
            place = LargeRow.kernels_f4
        with contextlib.suppress(NotCompiled):
            self.large_rows[code, place + scalars] = (
                by_what(by_code[code], scalars, "f4" if is_f4 else "f8") if known else BY_PYTHON
            )

    @staticmethod
    def _line(
        lines: np.ndarray,
        s: int,
        sb: int,
        dtype: int,
        shape: int,
        bits: int,
        aux: int,
        extra: int,
        specs: int = 0,
    ) -> None:
        sb |= dtype << KEY_BITS
        lines[(31 * s + sb) % SHAPE_LINES] = ShapeLine.words(
            key=(s << 32 | sb) + 1, shape=shape, bits=bits, aux=aux, extra=extra, specs=specs
        )

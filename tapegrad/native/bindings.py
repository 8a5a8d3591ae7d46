"""Fill the frame of native operations with addresses of CPython's, NumPy's and the tape's."""

from __future__ import annotations

import ctypes
import platform
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tapegrad.base.cpython import address_of, numpy_function, slot_offset
from tapegrad.base.size import Size
from tapegrad.dispatch import axis_plans, fast_path, views
from tapegrad.kernels import build
from tapegrad.kernels.codegen import kernel_table as kernels
from tapegrad.native import abi as at
from tapegrad.native.view_cache import ViewCache
from tapegrad.ops.core import ELEMENTWISE, Formula, Op, by_code
from tapegrad.ops.elementwise import Composed, Lazy
from tapegrad.parallel import large_elementwise
from tapegrad.tape import versions
from tapegrad.tape.shape_table import shapes
from tapegrad.tape.tape import DTYPE_BITS, NARROW, SAVES, Tape, current
from tapegrad.tensor import F4, F8, NO_GRAD, SHORT, Tensor, View, wrap

_C = {
    "GET_STATE": "PyThreadState_Get", "GET_ID": "PyThreadState_GetID",
    "GET_ATTR": "PyObject_GetAttr", "INCREF": "Py_IncRef", "DECREF": "Py_DecRef",
    "AS_LONG": "PyLong_AsLongLong", "FROM_LONG": "PyLong_FromLongLong", "APPEND": "PyList_Append",
    "NEW_TUPLE": "PyTuple_New", "NEW_OBJECT": "PyType_GenericAlloc", "CALL": "PyObject_Call",
    "AS_LONG_IF": "PyLong_AsLongLongAndOverflow", "NEXT_ITEM": "PyDict_Next",
    "JOINED": "PySequence_Concat",
    "GET_ITEM": "PyDict_GetItem", "SET_ITEM": "PyDict_SetItem", "LIST_SIZE": "PyList_Size",
    "DICT_SIZE": "PyDict_Size", "FORGET_ERROR": "PyErr_Clear",
    "UNLOCK": "PyEval_SaveThread", "LOCK": "PyEval_RestoreThread",
    "CLEAR_DICT": "PyDict_Clear",
}  # fmt: skip
_NUMPY = {"NEW_ARRAY": 94, "SET_BASE": 282}  # PyArray_NewFromDescr, PyArray_SetBaseObject
_SLOTS = {
    Tensor: {
        "T_ARRAY": "_a",
        "T_POS": "_pos",
        "T_SHAPE": "_s",
        "T_HOME": "_home",
        "T_GRAD": "_grad",
        "T_EXTRA": "_extra",
    },
    View: {
        "V_BASE": "base",
        "V_CHAIN": "chain",
        "V_STAMP": "stamp",
        "V_TAPE": "tape",
        "V_FROZEN": "frozen",
        "V_SEVERAL": "several",
    },
    Tape: {
        name.upper(): name
        for name in (
            "mode inference used capacity next address tokens keep slots leaves debt debt_limit "
            "sweeping tail depth levels torchs element shift old old_at hooks"
        ).split()
    },
}
# Division by zero, overflow and an invalid operation, as the C library counts them.
SERIOUS = {"x86_64": 0x0D, "AMD64": 0x0D, "aarch64": 0x07, "arm64": 0x07}
_OPERANDS = {"a": at.FIRST, "b": at.SECOND, "y": at.RESULT, "0": at.NULL}
_TAPE, _PULL = sys.intern("tape"), sys.intern("pull")
# Calls on large arrays until the native path for them is compiled, and between looks whether it is
# there: that takes some four seconds, once per machine, and saves some ten microseconds of each
# call.
WANTED = 1000


class _Ufunc(ctypes.Structure):
    """The beginning of NumPy's PyUFuncObject."""

    _fields_ = (
        ("head", ctypes.c_int64 * 2),
        ("nin", ctypes.c_int),
        ("nout", ctypes.c_int),
        ("nargs", ctypes.c_int),
        ("identity", ctypes.c_int),
        ("loops", ctypes.c_void_p),
        ("data", ctypes.c_void_p),
        ("ntypes", ctypes.c_int),
    )


def _loop(ufunc: Any, letter: str = "d", result: str = "") -> tuple[int, int] | None:
    """The address of a ufunc's loop over a type, and of the data that goes with it."""
    head = _Ufunc.from_address(id(ufunc))
    wanted = letter * ufunc.nin + "->" + (result or letter)
    same = (head.nin, head.nargs, head.ntypes) == (ufunc.nin, ufunc.nargs, ufunc.ntypes)
    if not same or wanted not in ufunc.types or not head.loops:
        return None
    place = ufunc.types.index(wanted)
    words = ctypes.c_int64 * head.ntypes
    data = words.from_address(head.data)[place] if head.data else 0
    return words.from_address(head.loops)[place], data


def _compares(op: Op) -> bool:
    """Whether the result of an operation on doubles is of booleans."""
    return isinstance(op.forward, np.ufunc) and "d" * op.forward.nin + "->?" in op.forward.types


def steps_of(op: Op, letter: str = "d") -> list[int]:
    """The loops that compute an operation, as they stand in its row; [] where there are none."""
    forward = op.forward
    if isinstance(forward, Lazy):
        forward = forward.ufunc
    if isinstance(forward, np.ufunc):
        forward = Composed((forward, "ab"[: forward.nin]))
    if not isinstance(forward, Composed):
        return []
    row: list[int] = []
    for ufunc, names in forward.steps:
        loop = _loop(ufunc, letter, "?" if _compares(op) else "")
        if loop is None:
            return []
        operands = [_OPERANDS[name] for name in names]
        row += (*loop, *operands, *[at.NOTHING] * (2 - len(operands)))
    return row


def as_expected(frame: np.ndarray) -> bool:
    """Whether slots stand where the frame says."""
    word = ctypes.c_int64.from_address
    t = wrap(np.zeros(2))
    t._grad, t._extra = t, {}
    samples = {Tensor: t, View: View(None, (), None), Tape: current.tape}
    good = all(
        word(id(samples[kind]) + 8 * int(frame[getattr(at, field)])).value
        == id(getattr(samples[kind], name))
        for kind, names in _SLOTS.items()
        for field, name in names.items()
    )
    t._grad = None
    return good


def kind_of(op: Op) -> int:
    """What a call of an operation is."""
    if op in fast_path.wholes:
        return at.TOTAL
    return (at.ONE, at.TWO, at.THREE)[len(op.inputs) - 1] if op.kind is ELEMENTWISE else at.MATMUL


def native_ops() -> list[Op]:
    """The operations that may go by the native path."""
    return [
        op
        for op in by_code
        if op.short is not None
        and (kind_of(op) not in (at.ONE, at.TWO) or isinstance(op.forward, Lazy) or steps_of(op))
    ]


def shape_number(short: int) -> int:
    """The number of the shape of a Tensor that says `short` in `_s`."""
    return short if short >= 0 else NARROW - short


def by_what(op: Op, scalars: int) -> int:
    """What `parallel` has one thread do with large arrays; see `LARGE`."""
    if scalars & at.IN_PLACE:
        return by_what_in_place(op, scalars & ~at.IN_PLACE)
    spread = scalars & 1 and len(op.inputs) > 1 and "broadcast" in op.loop
    if op.kind is ELEMENTWISE and (spread or "f8" in op.loop):
        kernel = kernels.forward(op, "f8", scalars)
        if kernel is not None:
            return kernel.address
    if op in fast_path.wholes:
        return kernels.loop("add_up").address
    by_steps = kind_of(op) in (at.ONE, at.TWO) and not isinstance(op.forward, Lazy)
    return at.BY_STEPS if by_steps and steps_of(op) else at.BY_PYTHON


def by_what_in_place(op: Op, scalars: int) -> int:
    """The same of `parallel.forward_into`."""
    if not all(isinstance(formula, Formula) for formula in op.formulas):
        return at.BY_PYTHON
    if "f8" in op.loop:
        kernel = kernels.forward(op, "f8", scalars | large_elementwise.INTO_FIRST)
        return at.BY_PYTHON if kernel is None else kernel.address
    known = isinstance(op.forward, np.ufunc) and steps_of(op) and not _compares(op)
    return at.BY_STEPS if known and op.forward in _EXCEPTIONAL else at.BY_PYTHON


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
_FLAGS = {  # of the C library
    "x86_64": {"divide": 4, "over": 8, "invalid": 1},
    "aarch64": {"divide": 2, "over": 4, "invalid": 1},
}
_FLAGS |= {"AMD64": _FLAGS["x86_64"], "arm64": _FLAGS["aarch64"]}


def say_exceptions(code: int, flags: int) -> None:
    """Have NumPy speak of exceptions of arithmetic that came about in its loop."""
    ufunc: Any = by_code[code].forward
    for name, operands in _EXCEPTIONAL[ufunc].items():
        if flags & _FLAGS[platform.machine()][name]:
            ufunc(*operands)


def _numbers(args: tuple[Any, ...], result: np.ndarray) -> int:
    """Which operands are one number where the result is more, as bits."""
    if result.size == 1:
        return 0
    return sum((np.ndim(getattr(x, "_a", x)) == 0) << k for k, x in enumerate(args))


def large_entry(*, compiling: bool = False, asking: bool = False) -> int:
    """The address of the native path of large arrays; 0: it is not compiled yet.

    With `compiling` it is compiled at once, with `asking` in the background.
    """
    source = (Path(__file__).parent / "entry_large.py").read_text()
    if compiling or build.is_compiled("wide", source, 8, asking=asking):
        return build.load("wide", source, 8)
    return 0


class Frame:
    """The frame and its tables, and whatever must live as long."""

    def __init__(self) -> None:
        self.words: np.ndarray = np.zeros(at.FRAME_SIZE, np.int64)
        self.rows: np.ndarray = np.zeros((kernels.CAPACITY, at.ROW), np.int64)
        self.pairs: np.ndarray = np.zeros((at.LINES, at.LINE), np.int64)
        self.products: np.ndarray = np.zeros((at.LINES, at.LINE), np.int64)
        self.totals: np.ndarray = np.zeros((at.LINES, at.LINE), np.int64)
        self.large: np.ndarray = np.zeros((kernels.CAPACITY, at.LARGE_ROW), np.int64)
        self.wanted = 0  # calls on large arrays before their path was compiled
        self.view_cache = ViewCache()
        self.held: list[Any] = []
        self.kept: dict[tuple[int, int], Any] = {}
        self.narrow: dict[tuple[int, int], Any] = {}  # of products in float32
        self._functions()
        self._objects()
        for op in native_ops():
            self.learn(op, op.short)

    def put(self, **words: int) -> None:
        """Set fields by their names."""
        for name, word in words.items():
            self.words[getattr(at, name)] = word

    def _functions(self) -> None:
        process = ctypes.CDLL(None)
        self.put(**{field: address_of(getattr(ctypes.pythonapi, c)) for field, c in _C.items()})
        self.put(EXCEPTIONS=address_of(process.fetestexcept), SERIOUS=SERIOUS[platform.machine()])
        self.put(CLEAR_EXCEPTIONS=address_of(process.feclearexcept))
        self.put(COPY=address_of(process.memcpy))
        self.put(**{field: numpy_function(place) for field, place in _NUMPY.items()})

    def _objects(self) -> None:
        for kind, names in _SLOTS.items():
            self.put(
                **{field: slot_offset(kind.__dict__[name]) // 8 for field, name in names.items()}
            )
        objects = {
            "TENSOR": Tensor, "VIEW": View, "FLOAT": float, "INT": int, "NONE": None,
            "FALSE": False, "NO_TEXT": "", "ZERO": 0, "NARROW_ZERO": NARROW,
            "CURRENT": current, "TAPE_NAME": _TAPE,
            "TRUE": True, "NO_GRAD": NO_GRAD, "NO_STEPS": (), "TUPLE": tuple, "SIZE": Size,
            "LIST": list, "SLICE": slice, "DOTS": ..., "SHOWN": views.shown,
            "WIDE_INT": np.int64,
            "LEARN_VIEW": self.view_cache.learn, "I8": np.dtype(np.int64),
            "CONSTANTS": fast_path.constants, "NARROW_CONSTANTS": fast_path.narrow_constants,
            "F8": F8, "F4": F4,
            "BOOL": np.dtype(bool), "ARRAY": np.ndarray,
            "NO_NUMBER": -1, "CHANGED": versions.bump,
            "LEARN_PAIR": self.learn_pair, "LEARN_PRODUCT": self.learn_product,
            "LEARN_TOTAL": self.learn_total, "LEARN_LARGE": self.learn_large,
            "SHAPE_NUMBERS": shapes.ids,
            "SAY_EXCEPTIONS": say_exceptions, "OPEN_LARGE": self.open_large, "PULL": _PULL,
            "SHAPE_LIST": shapes.shapes,
        }  # fmt: skip
        self.held += objects.values()
        self.put(**{field: id(thing) for field, thing in zip(objects, self.held, strict=True)})
        for letter, narrow, bits in (("d", "", np.int64), ("f", "NARROW_", np.int32)):
            adding, multiplying = _loop(np.add, letter), _loop(np.matmul, letter)
            if adding is None or multiplying is None:
                raise RuntimeError("NumPy's loops over floats are not where they were")
            start = np.add.reduce(np.array([-0.0], letter)).view(bits)  # of NumPy's sums: 0 or -0
            words = dict(zip(("SUM_LOOP", "SUM_DATA", "SUM_START"), (*adding, start), strict=True))
            words |= zip(("PRODUCT_LOOP", "PRODUCT_DATA"), multiplying, strict=True)
            self.put(**{narrow + name: int(word) for name, word in words.items()})
        self.put(
            ROWS=self.rows.ctypes.data, PAIRS=self.pairs.ctypes.data,
            PRODUCTS=self.products.ctypes.data, TOTALS=self.totals.ctypes.data,
            VIEW_CACHE=self.view_cache.lines.ctypes.data, LARGE=self.large.ctypes.data,
            THREADS=ctypes.addressof(large_elementwise.in_memory),
            SIZES_AT=shapes.in_memory.ctypes.data,
        )  # fmt: skip
        self.forget_tape()

    def forget_tape(self) -> None:
        """Ask anew, at the next call, which tape is the thread's."""
        self.words[at.OWNER] = -1

    def learn(self, op: Op, otherwise: Callable[..., Any]) -> None:
        """Fill in the row of an operation, whose function in Python takes what remains."""
        row = self.rows[op.code]
        reads = [sum(read << k for k, read in enumerate(saves)) for saves in op.saves]
        keeps = any(reads)
        if len(op.inputs) == 1:  # (x, y) of one operand stand where (a, b, y) of two do
            reads = [(reads[0] & 1) | (reads[0] & 2) << 1, 0]
        row[at.WORD] = op.code | DTYPE_BITS[F8] | (SAVES if keeps else 0)
        row[at.READS : at.READS + len(reads)] = reads
        row[at.ENTRY] = len(op.inputs) + 1 if keeps else 0
        if kind_of(op) == at.THREE:
            row[at.CHOOSES] = op.inputs[0] == "condition"
            otherwise = self._once_met(op, otherwise)
            self.held.append(otherwise)
            row[at.OTHERWISE] = id(otherwise)
            return
        row[at.TRUTH] = _compares(op)
        steps = steps_of(op) if op.kind is ELEMENTWISE else [op.name == "mean"]
        row[at.STEPS : at.STEPS + len(steps)] = steps
        narrow = steps_of(op, "f") if op.kind is ELEMENTWISE else []
        row[at.NARROW_STEPS : at.NARROW_STEPS + len(narrow)] = narrow
        if not steps and isinstance(op.forward, Lazy):
            otherwise = self._once_loaded(op, otherwise)
        self.held.append(otherwise)
        row[at.OTHERWISE] = id(otherwise)

    def _once_loaded(self, op: Op, otherwise: Callable[..., Any]) -> Callable[..., Any]:
        """The first call of an operation of SciPy, which is imported then, and has loops."""

        def function(*args: Any) -> Any:
            found = otherwise(*args)
            if steps_of(op):
                self.learn(op, otherwise)
            return found

        return function

    def _once_met(self, op: Op, otherwise: Callable[..., Any]) -> Callable[..., Any]:
        """What calls an operation of three operands, and looks for its loops when they pay."""
        met: dict[tuple[int, str], int] = {}

        def function(*args: Any) -> Any:
            found = otherwise(*args)
            if type(found) is Tensor and found._s != -1:
                scalars, dtype = _numbers(args, found._a), "f8" if found._s >= 0 else "f4"
                times = met[scalars, dtype] = met.get((scalars, dtype), 0) + 1
                looking = times == axis_plans.TIMES or times % axis_plans.MANY == 0
                if looking and kernels.is_compiled(
                    op, dtype, scalars, asking=times >= axis_plans.MANY
                ):
                    loop = kernels.forward(op, dtype, scalars)
                    if loop is not None:
                        first = at.STEPS if dtype == "f8" else at.NARROW_STEPS
                        self.rows[op.code][first + scalars] = loop.address
            return found

        return function

    # The numbers of shapes are those that Tensors have, below -1 for float32.

    def learn_pair(self, s: int, sb: int) -> None:
        """Fill in the line of a pair of shapes that are broadcast together."""
        one, two = shape_number(s), shape_number(sb)
        found, bits, aux = fast_path.pairs.get((one, two)) or fast_path.pair(one, two)
        if found not in (one, two):  # neither operand has the result's shape
            found = -1
        self._line(self.pairs, one, two, s < 0, found, bits, aux, found == two)

    def learn_product(self, s: int, sb: int) -> None:
        """Fill in the line of the shapes of two matrices or vectors that are multiplied."""
        one, two = shape_number(s), shape_number(sb)
        found, bits, aux, extra = (
            fast_path.product(one, two, F4)
            if s < 0
            else fast_path.products.get((one, two)) or fast_path.product(one, two)
        )
        if found >= 0 and shapes.counts[found] >= SHORT:
            found = -1  # which takes its time, and other threads need not wait for it
        if s < 0:
            extra = self.narrow.setdefault((one, two), extra)
        self._line(self.products, one, two, s < 0, found, bits, aux, id(extra))

    def learn_total(self, code: int, s: int) -> None:
        """Fill in the line of the sum or the mean of everything of a shape."""
        one = shape_number(s)
        word, aux, extra = fast_path.wholes[by_code[code]](one, s >= 0)
        self.kept[code, s] = extra
        self._line(self.totals, code, one, s < 0, 0, word, aux, id(extra))

    def open_large(self) -> None:
        """Open the path of large arrays if it is compiled; ask for it if that was wanted often."""
        self.wanted += 1
        if self.wanted == 1 or self.wanted % WANTED == 0:
            self.put(WIDE_CALL=large_entry(asking=self.wanted > 1))

    def learn_large(self, code: int, scalars: int) -> None:
        """Fill in by what an operation on large arrays is computed."""
        known = self.rows[code, at.OTHERWISE] != 0
        self.large[code, scalars] = by_what(by_code[code], scalars) if known else at.BY_PYTHON

    @staticmethod
    def _line(
        lines: np.ndarray,
        s: int,
        sb: int,
        narrow: bool,
        shape: int,
        bits: int,
        aux: int,
        more: int,
    ) -> None:
        sb |= at.NARROW_LINE if narrow else 0
        lines[(31 * s + sb) % at.LINES] = (s << 32 | sb) + 1, shape, bits, aux, more

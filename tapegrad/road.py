"""The compiled road: operators, methods and functions that CPython calls as machine code.

`open_road` puts `kernels.road` in the place of the functions in Python that `tapegrad.fast` makes:
behind `Op.short`, and as methods of the Tensor.  For each way to call an operation there are a few
instructions that name it and go on to the one function behind all.

The code is compiled once per machine.  Where that was done the road is open from the first
compiled sweep on; where it was not, it is done when some ten thousands of records have been made.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import platform
import sys
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tapegrad import fast
from tapegrad.kernels import build, layout
from tapegrad.kernels import road_frame as at
from tapegrad.ops.core import ELEMENTWISE, Op, by_code
from tapegrad.ops.elementwise import Composed, Lazy
from tapegrad.tape import DTYPE_BITS, SAVES, Tape, current
from tapegrad.tensor import F8, Tensor, View, wrap

HOT = (
    8  # times that a tape was full, of some thousands of records each, before it is worth compiling
)

_C = {
    "GET_STATE": "PyThreadState_Get", "GET_ID": "PyThreadState_GetID",
    "GET_ATTR": "PyObject_GetAttr", "INCREF": "Py_IncRef", "DECREF": "Py_DecRef",
    "AS_LONG": "PyLong_AsLongLong", "FROM_LONG": "PyLong_FromLongLong", "APPEND": "PyList_Append",
    "NEW_TUPLE": "PyTuple_New", "NEW_OBJECT": "PyType_GenericAlloc", "CALL": "PyObject_Call",
    "GET_ITEM": "PyDict_GetItem", "DICT_SIZE": "PyDict_Size",
}  # fmt: skip
_NUMPY = {"NEW_ARRAY": 94, "PRODUCT": 280}  # PyArray_NewFromDescr, PyArray_MatrixProduct2
_SLOTS = {
    Tensor: {
        "T_ARRAY": "_a",
        "T_POS": "_pos",
        "T_SHAPE": "_s",
        "T_HOME": "_home",
        "T_GRAD": "_grad",
        "T_EXTRA": "_extra",
    },
    View: {"V_BASE": "base", "V_STAMP": "stamp", "V_TAPE": "tape", "V_FROZEN": "frozen"},
    Tape: {
        name.upper(): name
        for name in (
            "mode inference offset end next address tokens keep slots debt debt_limit".split()
        )
    },
}
# Division by zero, overflow and an invalid operation, as the C library counts them.
_SERIOUS = {"x86_64": 0x0D, "AMD64": 0x0D, "aarch64": 0x07, "arm64": 0x07}
_OPERANDS = {"a": at.FIRST, "b": at.SECOND, "y": at.RESULT, "0": at.NULL}
_TAPE = sys.intern("tape")


# -- the frame -----------------------------------------------------------------------------------


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


def _loop(ufunc: Any, result: str = "d") -> tuple[int, int] | None:
    """The address of a ufunc's loop over doubles, and of the data that goes with it."""
    head = _Ufunc.from_address(id(ufunc))
    wanted = "d" * ufunc.nin + "->" + result
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


def _steps(op: Op) -> list[int]:
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
        loop = _loop(ufunc, "?" if _compares(op) else "d")
        if loop is None:
            return []
        operands = [_OPERANDS[name] for name in names]
        row += (*loop, *operands, *[at.NOTHING] * (2 - len(operands)))
    return row


def _offset(kind: type, name: str) -> int:
    """Where a slot stands in its objects, in words: CPython's PyMemberDescrObject tells."""
    member = ctypes.c_int64.from_address(id(kind.__dict__[name]) + 40).value
    return ctypes.c_int64.from_address(member + 16).value // 8


def _as_expected(frame: np.ndarray) -> bool:
    """Whether slots stand where the frame says."""
    word = ctypes.c_int64.from_address
    t = wrap(np.zeros(2))
    t._grad, t._extra = t, {}
    specimens = {Tensor: t, View: View(None, (), None), Tape: current.tape}
    good = all(
        word(id(specimens[kind]) + 8 * int(frame[getattr(at, field)])).value
        == id(getattr(specimens[kind], name))
        for kind, names in _SLOTS.items()
        for field, name in names.items()
    )
    t._grad = None
    return good


def _kind(op: Op) -> int:
    if op in fast.wholes:
        return at.TOTAL
    return len(op.inputs) - 1 if op.kind is ELEMENTWISE else at.MATMUL


def travelling() -> list[Op]:
    """The operations that may go by the compiled road."""
    return [
        op
        for op in by_code
        if op.short is not None
        and (_kind(op) not in (at.ONE, at.TWO) or isinstance(op.forward, Lazy) or _steps(op))
    ]


class Frame:
    """The frame and its tables, and whatever must live as long."""

    def __init__(self) -> None:
        self.words: np.ndarray = np.zeros(at.FRAME_SIZE, np.int64)
        self.rows: np.ndarray = np.zeros((len(by_code), at.ROW), np.int64)
        self.pairs: np.ndarray = np.zeros((at.LINES, at.LINE), np.int64)
        self.products: np.ndarray = np.zeros((at.LINES, at.LINE), np.int64)
        self.totals: np.ndarray = np.zeros((at.LINES, at.LINE), np.int64)
        self.held: list[Any] = []
        self.kept: dict[tuple[int, int], Any] = {}
        self._functions()
        self._objects()
        for op in travelling():
            self.learn(op, op.short)

    def put(self, **words: int) -> None:
        """Set fields by their names."""
        for name, word in words.items():
            self.words[getattr(at, name)] = word

    def _functions(self) -> None:
        process = ctypes.CDLL(None)
        self.put(**{field: _address(getattr(ctypes.pythonapi, c)) for field, c in _C.items()})
        self.put(EXCEPTIONS=_address(process.fetestexcept), SERIOUS=_SERIOUS[platform.machine()])
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
        api = importlib.import_module("numpy._core._multiarray_umath")._ARRAY_API
        words = ctypes.c_int64.from_address
        self.put(**{field: words(pointer(api, None) + 8 * k).value for field, k in _NUMPY.items()})

    def _objects(self) -> None:
        for kind, names in _SLOTS.items():
            self.put(**{field: _offset(kind, name) for field, name in names.items()})
        objects = {
            "TENSOR": Tensor, "VIEW": View, "FLOAT": float, "INT": int, "NONE": None,
            "FALSE": False, "NO_TEXT": "", "ZERO": 0, "CURRENT": current, "TAPE_NAME": _TAPE,
            "CONSTANTS": fast.constants, "F8": F8, "BOOL": np.dtype(bool), "ARRAY": np.ndarray,
            "NO_NUMBER": -1, "LEARN_PAIR": self.learn_pair, "LEARN_PRODUCT": self.learn_product,
            "LEARN_TOTAL": self.learn_total,
        }  # fmt: skip
        self.held += objects.values()
        self.put(**{field: id(thing) for field, thing in zip(objects, self.held, strict=True)})
        loop = _loop(np.add)
        if loop is None:
            raise RuntimeError("NumPy's sum of doubles is not where it was")
        start = np.add.reduce(np.array([-0.0])).view(np.int64)  # of NumPy's sums: 0 or -0
        self.put(SUM_LOOP=loop[0], SUM_DATA=loop[1], SUM_START=int(start))
        self.put(
            ROWS=self.rows.ctypes.data, PAIRS=self.pairs.ctypes.data,
            PRODUCTS=self.products.ctypes.data, TOTALS=self.totals.ctypes.data,
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
        row[at.READS], row[at.READS_SECOND] = reads
        row[at.ENTRY] = len(op.inputs) + 1 if keeps else 0
        row[at.TRUTH] = _compares(op)
        steps = _steps(op) if op.kind is ELEMENTWISE else [op.name == "mean"]
        row[at.STEPS : at.STEPS + len(steps)] = steps
        if not steps and isinstance(op.forward, Lazy):
            otherwise = self._once_loaded(op, otherwise)
        self.held.append(otherwise)
        row[at.OTHERWISE] = id(otherwise)

    def _once_loaded(self, op: Op, otherwise: Callable[..., Any]) -> Callable[..., Any]:
        """The first call of an operation of SciPy, which is imported then, and has loops."""

        def function(*args: Any) -> Any:
            found = otherwise(*args)
            if _steps(op):
                self.learn(op, otherwise)
            return found

        return function

    def learn_pair(self, s: int, sb: int) -> None:
        """Fill in the line of a pair of shapes that are broadcast together."""
        found, bits, aux = fast.pairs.get((s, sb)) or fast.pair(s, sb)
        if found not in (s, sb):  # neither operand has the result's shape
            found = -1
        self._line(self.pairs, s, sb, found, bits, aux, found == sb)

    def learn_product(self, s: int, sb: int) -> None:
        """Fill in the line of the shapes of two matrices or vectors that are multiplied."""
        found, bits, aux, extra = fast.products.get((s, sb)) or fast.product(s, sb)
        self._line(self.products, s, sb, found, bits, aux, id(extra))

    def learn_total(self, code: int, s: int) -> None:
        """Fill in the line of the sum or the mean of everything of a shape."""
        word, aux, extra = fast.wholes[by_code[code]](s)
        self.kept[code, s] = extra
        self._line(self.totals, code, s, 0, word, aux, id(extra))

    @staticmethod
    def _line(
        lines: np.ndarray, s: int, sb: int, shape: int, bits: int, aux: int, more: int
    ) -> None:
        lines[(31 * s + sb) % at.LINES] = (s << 32 | sb) + 1, shape, bits, aux, more


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


# -- the ways in ---------------------------------------------------------------------------------

# CPython's flags of a method, and what it is called with: `self` and nothing, `self` and an object,
# or `self` and an array of objects with their number.
_NOARGS, _O, _FASTCALL = 0x04, 0x08, 0x80
_WAYS = {
    # of a way: the flags, and the first and the second operand of a call with (%a, %b, %c)
    "method1": (_NOARGS, "%a", "0"),
    "method2": (_O, "%a", "%b"),
    "flipped2": (_O, "%b", "%a"),
    "builtin1": (_O, "%b", "0"),
    "builtin2": (_FASTCALL, "%x", "%y"),
}
_ENTRY = """
define i64 @{name}(i64 %a, i64 %b, i64 %c) {{
  {before}%frame = load i64, ptr @frame
  %call = load ptr, ptr @call
  %found = tail call i64 %call(i64 %frame, i64 {kind}, i64 {code}, i64 {first}, i64 {second})
  ret i64 %found
}}
"""
_READ = """%at = inttoptr i64 %b to ptr
  %next = getelementptr i64, ptr %at, i64 1
  %x = load i64, ptr %at
  %y = load i64, ptr %next
  """


def _text(ops: list[Op]) -> str:
    """LLVM text of the ways in to all operations."""
    lines = ["@frame = global i64 0\n@call = global i64 0\n"]
    for op in ops:
        for way, (flags, first, second) in _WAYS.items():
            if way.endswith(str(len(op.inputs))):
                lines.append(
                    _ENTRY.format(
                        name=f"{way}_{op.code}", before=_READ if flags == _FASTCALL else "",
                        kind=_kind(op), code=op.code,
                        first=first, second=second,
                    )
                )  # fmt: skip
    return "".join(lines)


class _Method(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class Road:
    """The compiled road, ready to be opened and closed.

    `deliver` is `kernels.delivery.deliver` but for its first argument, which it knows.
    """

    def __init__(self) -> None:
        address = build.load("call", _source("road"), _ARITY)
        self.frame = Frame()
        self.ops = travelling()
        self.python = {op: op.short for op in self.ops}
        self.engine = build.assembled(_text(self.ops), 1)
        for name, value in (("frame", self.frame.words.ctypes.data), ("call", address)):
            place = self.engine[0].get_global_value_address(name)
            ctypes.c_int64.from_address(place).value = value
        self.definitions: list[Any] = []
        words = (ctypes.c_int64,) * _ARITY
        deliver = build.load("deliver", _source("delivery"), _ARITY)
        delivering = ctypes.PYFUNCTYPE(ctypes.py_object, *words)(deliver)
        self.deliver = functools.partial(delivering, self.frame.words.ctypes.data)
        self.short = {op: self._builtin(op) for op in self.ops}
        self.methods = {
            name: (function, self._method(name, function))
            for name, function in vars(Tensor).items()
            if self._takes(name, function)
        }

    def _takes(self, name: str, function: Any) -> bool:
        """Whether an attribute of the Tensor is a function that the road takes the place of.

        Not methods of two operands with names: these are called with keywords, too.
        """
        if not isinstance(function, _FUNCTION) or function not in fast.public:
            return False
        op = fast.public[function][0]
        return op in self.short and (name.startswith("__") or len(op.inputs) == 1)

    def _definition(self, way: str, op: Op, name: str, doc: str | None) -> int:
        """The address of a method's definition, which lives as long as the road."""
        function = self.engine[0].get_function_address(f"{way}_{op.code}")
        text = doc.encode() if doc else None
        self.definitions.append(_Method(name.encode(), function, _WAYS[way][0], text))
        return ctypes.addressof(self.definitions[-1])

    def _builtin(self, op: Op) -> Any:
        make = ctypes.pythonapi.PyCFunction_NewEx
        make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p,) * 3
        return make(self._definition(f"builtin{len(op.inputs)}", op, op.name, None), None, None)

    def _method(self, name: str, function: Any) -> Any:
        make = ctypes.pythonapi.PyDescr_NewMethod
        make.restype, make.argtypes = ctypes.py_object, (ctypes.py_object, ctypes.c_void_p)
        op, exchanged = fast.public[function]
        count = len(op.inputs)
        way = f"{'flipped' if exchanged else 'method'}{count}"
        signature = "($self, /)" if count == 1 else "($self, other, /)"
        doc = f"{name}{signature}\n--\n\n{function.__doc__ or op.name}"
        return make(Tensor, self._definition(way, op, name, doc))

    def open(self) -> None:
        """Have operations go by compiled code."""
        for op in self.ops:
            op.short = self.short[op]
        for name, (_, method) in self.methods.items():
            setattr(Tensor, name, method)

    def close(self) -> None:
        """Have operations go by functions in Python again."""
        for op in self.ops:
            op.short = self.python[op]
        for name, (function, _) in self.methods.items():
            setattr(Tensor, name, function)


_FUNCTION = type(_address)
_opening = threading.Lock()
_full = 0
road: Road | None = None


_ARITY = 5  # of both compiled functions


@cache
def _source(name: str) -> str:
    return (Path(build.__file__).parent / f"{name}.py").read_text()


def possible() -> bool:
    """Whether CPython, NumPy and the machine are such as the road is made for."""
    return layout.as_listed() and platform.machine() in _SERIOUS and sys.platform != "win32"


def _compiled() -> bool:
    return all(
        build.is_compiled(name, _source(source), _ARITY)
        for name, source in (("call", "road"), ("deliver", "delivery"))
    )


def open_road(*, compiling: bool = True) -> bool:
    """Open the compiled road, and say whether it is open now.

    With `compiling=False` only where this machine has compiled it before.
    """
    global road
    with _opening:
        if road is None:
            if not possible() or not (compiling or _compiled()):
                return False
            made = Road()
            if not _as_expected(made.frame.words):
                return False
            road = made
            Tape.moved = staticmethod(made.frame.forget_tape)
        road.open()
        Tape.full = None
        return True


def _when_full() -> None:
    """Told when a tape is full: where many records are made the road is worth its while."""
    global _full
    _full += 1
    if _full >= HOT:
        Tape.full = None
        open_road()


Tape.full = staticmethod(_when_full)

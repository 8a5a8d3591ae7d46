"""Call a compiled program from Python by a builtin function over NumPy arrays.

CPython calls the function of `tapegrad.compiler.front.fastcall_stub` directly, with an array of the
arguments. It checks them by address, number and flag, makes the results, runs the program and
returns, in a few tenths of a microsecond.  Other calls fall back to a slower function.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from tapegrad.base.cpython import (
    FASTCALL,
    KEYWORDS,
    Method,
    address_of,
    c_text,
    new_function,
    numpy_function,
)
from tapegrad.compiler.front import fastcall_stub
from tapegrad.compiler.front.captured_reads import MISSING, Read, Slots
from tapegrad.compiler.runtime.program import Program
from tapegrad.kernels.sweep import sweep_abi
from tapegrad.ops.core import Spec

Kind: TypeAlias = Literal["array", "float"]


@dataclass(frozen=True, slots=True)
class Float:
    """In a `Result`: this output as a Python float."""

    output: int


# What a fast call returns: an output as an array, an output as a Python float, None, a tuple of
# such.
Result: TypeAlias = "int | Float | tuple[Result, ...] | None"

# Elements (or scratch of their size) from which on the GIL is released while the program runs:
# that may cost microseconds.
_LARGE = 100_000
_OWN_SCRATCH = 1 << 16  # bytes of scratch from which on a fast call keeps it from call to call


class Place(NamedTuple):
    """An input or output: a float, an int or a bool by its type, or an array of a layout.

    Without a `shape` it has that of the argument `like`, which is an array of `ndim` dimensions.
    """

    type: type
    dtype: np.dtype[Any] | None = None
    ndim: int = 0
    shape: ctypes.Array[ctypes.c_int64] | None = None
    like: int = 0


class CompiledProgram(NamedTuple):
    """The `self` of a fast call: the frame for machine code, and references that keep it alive.

    A tuple, since the garbage collector empties no tuple that a function still needs.
    """

    frame: np.ndarray[Any, Any]
    otherwise: Callable[..., Any]
    failed: Callable[[], None]
    memory: tuple[Any, ...]


def fastcall(
    program: Program,
    kinds: tuple[Kind, ...],
    result: Result,
    otherwise: Callable[..., Any],
    failed: Callable[[], None],
    name: str = "compiled",
    doc: str | None = None,
    reads: tuple[Read, ...] = (),
) -> Callable[..., Any]:
    r"""A builtin function that runs the program on its arguments with minimal overhead.

    Parameters
    ----------
    program : Program
        What to run.
    kinds : tuple of "array" or "float"
        How input k arrives as positional argument k: as a ``numpy.ndarray`` of exactly the shape
        and dtype of the input, aligned and in C order, or as a Python float.
    result : int, Float, None or tuple of such
        What is returned: an int k is output k as a new array.
    otherwise : callable
        Called with all arguments, for its result, if they are not of these kinds or if a guard of
        the program does not hold.
    failed : callable
        Called if a call from the program back into Python raised; it raises that exception.
    name : str
        The function's ``__name__``.
    doc : str, optional
        Its ``__doc__``; a beginning like ``"name(x, y=1)\n--\n\n"`` becomes the signature that
        `inspect.signature` shows.
    reads : tuple of `Read`
        What else has to be as it was, or the call goes to `otherwise`: items of dictionaries and
        contents of cells.
    """
    _check(program, kinds, result)
    make = _builtin if sweep_abi.as_listed() else _plain
    return make(program, kinds, result, otherwise, failed, name, doc, reads)


def _check(program: Program, kinds: tuple[Kind, ...], result: Result) -> None:
    scalar = Spec((), np.dtype(np.float64))
    assert len(kinds) == len(program.inputs)
    for kind, spec in zip(kinds, program.inputs):
        assert kind == "array" or spec == scalar, spec
    floats = _floats(result)
    assert all(program.outputs[k] == scalar for k in floats)
    arrays = {leaf for leaf in _leaves(result) if isinstance(leaf, int)}
    assert all(0 <= k < len(program.outputs) for k in arrays)
    assert not floats & arrays, "one output cannot be an array and a float"


def _leaves(result: Result) -> Iterator[int | Float]:
    if isinstance(result, tuple):
        for part in result:
            yield from _leaves(part)
    elif result is not None:
        yield result


def _floats(result: Result) -> set[int]:
    """The outputs that are returned as Python floats."""
    return {leaf.output for leaf in _leaves(result) if isinstance(leaf, Float)}


def _codes(result: Result) -> Iterator[int]:
    """The stack code by which `fastcall_stub` builds the result."""
    match result:
        case None:
            yield fastcall_stub.NONE
        case Float(output):
            yield output
        case tuple():
            for part in result:
                yield from _codes(part)
            yield fastcall_stub.EMPTY - len(result)
        case _:
            yield result


def _builtin(
    program: Program, kinds: tuple[Kind, ...], result: Result, otherwise: Callable[..., Any],
    failed: Callable[[], None], name: str, doc: str | None, reads: tuple[Read, ...],
) -> Callable[..., Any]:  # fmt: skip
    floats = _floats(result)
    scratch = _aligned(program.scratch) if program.scratch > _OWN_SCRATCH else None
    elements = program.scratch // 8 + sum(
        math.prod(spec.shape) for spec in (*program.inputs, *program.outputs)
    )
    return builtin(
        program.address,
        [_place(spec, kind == "float") for spec, kind in zip(program.inputs, kinds)],
        [_place(spec, k in floats) for k, spec in enumerate(program.outputs)],
        result, otherwise, failed, name, doc, reads,
        release=elements >= _LARGE,
        scratch=None if scratch is None else scratch.ctypes.data,
        kept=(program, scratch),
    )  # fmt: skip


def builtin(
    address: int, inputs: Sequence[Place], outputs: Sequence[Place], result: Result,
    otherwise: Callable[..., Any], failed: Callable[[], None], name: str, doc: str | None = None,
    reads: tuple[Read, ...] = (), *, release: bool, scratch: int | None = None,
    context: int | None = None, kept: tuple[Any, ...] = (),
) -> Callable[..., Any]:  # fmt: skip
    """A builtin function that runs machine code on arguments like these: see `fastcall`.

    `kept` lives as long as the function.
    """
    steps = list(_codes(result))
    codes = (ctypes.c_int64 * len(steps))(*steps)
    input_slots, output_slots = (
        (fastcall_stub.Slot * len(part))(*[_slot(place) for place in part])
        for part in (inputs, outputs)
    )
    looked = (fastcall_stub.Read * len(reads))(*[_read(read) for read in reads])
    frame = fastcall_stub.Frame(
        program=address,
        input_count=len(inputs), inputs=ctypes.addressof(input_slots),
        output_count=len(outputs), outputs=ctypes.addressof(output_slots),
        code_count=len(codes), codes=ctypes.addressof(codes),
        context=context, scratch=scratch, release=release,
        read_count=len(looked), reads=ctypes.addressof(looked),
        otherwise=id(otherwise), failed=id(failed), none=id(None), **_interpreter(),
    )  # fmt: skip
    method = Method(
        c_text(name),
        fastcall_stub.address(),
        FASTCALL | KEYWORDS,
        None if doc is None else c_text(doc),
    )
    return new_function()(
        ctypes.addressof(method),
        CompiledProgram(
            np.frombuffer(memoryview(frame), np.uint8), otherwise, failed,
            (frame, method, input_slots, output_slots, codes, inputs, outputs, looked, reads, kept),
        ),
        None,
    )  # fmt: skip


def _place(spec: Spec, is_float: bool) -> Place:
    """The place of an input or an output of a program."""
    if is_float:
        return Place(float)
    shape = (ctypes.c_int64 * len(spec.shape))(*spec.shape)
    return Place(np.ndarray, spec.dtype, len(spec.shape), shape)


def _slot(place: Place) -> fastcall_stub.Slot:
    if place.dtype is None:
        number = 0 if place.type is float else fastcall_stub.INTEGER
        return fastcall_stub.Slot(type=id(place.type), number=number)
    return fastcall_stub.Slot(
        type=id(np.ndarray), dtype=id(place.dtype), number=place.dtype.num,
        byteorder=ord(place.dtype.byteorder), ndim=place.ndim, like=place.like,
        shape=None if place.shape is None else ctypes.addressof(place.shape),
    )  # fmt: skip


def _read(read: Read) -> fastcall_stub.Read:
    """Where to look, and the address of what has to be there; none for nothing."""
    value = None if read.value is MISSING else id(read.value)
    if type(read.place) is Slots:
        return fastcall_stub.Read(place=read.place.address(read.key), value=value, is_word=1)
    key = None if read.key is None else id(read.key)
    return fastcall_stub.Read(place=id(read.place), key=key, value=value)


def _aligned(size: int) -> np.ndarray[Any, Any]:
    """That many bytes at a multiple of 64."""
    room = np.empty(size + 64, np.uint8)
    return room[-room.ctypes.data % 64 :][:size]


@cache
def _interpreter() -> dict[str, int | None]:
    """The addresses of CPython's and NumPy's functions in the frame."""
    api = ctypes.pythonapi
    functions = {
        "vectorcall": api.PyObject_Vectorcall,
        "as_integer": api.PyLong_AsLongLongAndOverflow,
        "new_float": api.PyFloat_FromDouble,
        "new_tuple": api.PyTuple_New,
        "get_item": api.PyDict_GetItem,
        "get_content": api.PyCell_Get,
        "incref": api.Py_IncRef,
        "decref": api.Py_DecRef,
        "save_thread": api.PyEval_SaveThread,
        "restore_thread": api.PyEval_RestoreThread,
    }
    found = {name: address_of(function) for name, function in functions.items()}
    return {**found, "new_array": numpy_function(_ARRAY_NEW)}


_ARRAY_NEW = 93  # the place of PyArray_New in NumPy's table, the same in all versions


def _plain(
    program: Program, kinds: tuple[Kind, ...], result: Result, otherwise: Callable[..., Any],
    failed: Callable[[], None], name: str, doc: str | None, reads: tuple[Read, ...],
) -> Callable[..., Any]:  # fmt: skip
    """What `fastcall` makes, in Python: for interpreters with other layouts, and for the tests."""
    pointer = ctypes.c_void_p
    run = ctypes.CFUNCTYPE(ctypes.c_int64, pointer, pointer, pointer)(program.address)

    def function(*args: Any, **kwargs: Any) -> Any:
        if kwargs or len(args) != len(kinds) or not all(map(_fits, args, kinds, program.inputs)):
            return otherwise(*args, **kwargs)
        if not all(read.now() is read.value for read in reads):
            return otherwise(*args)
        inputs = [np.asarray(arg) for arg in args]
        outputs = [np.empty(spec.shape, spec.dtype) for spec in program.outputs]
        status = run(_addresses(inputs), _addresses(outputs), None)
        if status > 0:
            return otherwise(*args)
        if status < 0:
            failed()
            raise SystemError(f"{name} failed without setting an exception")
        return _built(result, outputs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def _fits(arg: Any, kind: Kind, spec: Spec) -> bool:
    if kind == "float":
        return type(arg) is float
    return (
        type(arg) is np.ndarray
        and arg.shape == spec.shape
        and (arg.dtype.num, arg.dtype.byteorder) == (spec.dtype.num, spec.dtype.byteorder)
        and arg.flags.c_contiguous
        and arg.flags.aligned
    )


def _addresses(arrays: list[np.ndarray[Any, Any]]) -> ctypes.Array[ctypes.c_void_p]:
    return (ctypes.c_void_p * len(arrays))(*[array.ctypes.data for array in arrays])


def _built(result: Result, outputs: list[np.ndarray[Any, Any]]) -> Any:
    match result:
        case None:
            return None
        case Float(output):
            return float(outputs[output])
        case tuple():
            return tuple(_built(part, outputs) for part in result)
        case _:
            return outputs[result]

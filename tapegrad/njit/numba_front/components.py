"""Numba's types in components: an array is a pointer, lengths and strides, a tuple its parts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np

from tapegrad.njit.numba_front.objects import NumbaType, types
from tapegrad.njit.three_address_code import IMAGINARY, REAL, Constant, Operand, Table, Unsupported

Components: TypeAlias = Sequence[tuple[str, str]]  # a suffix and a type each

ELEMENT_OF = {
    types.float64: "f64", types.float32: "f32", types.int64: "i64", types.int32: "i32",
    types.int16: "i16", types.int8: "i8", types.uint64: "i64", types.uint32: "u32",
    types.uint16: "u16", types.uint8: "u8", types.boolean: "u8",
}  # fmt: skip
COMPLEX = {types.complex128: types.float64, types.complex64: types.float32}  # of two such parts
# What takes no part in the computation: functions, modules, None, text that is a constant.
NOTHING = (
    types.NoneType, types.Module, types.Callable, types.SliceType, types.Opaque, types.DType,
    types.StringLiteral, types.NumberClass, types.Omitted, types.Phantom,
    types.ClassType, types.TypeRef, types.EphemeralPointer, types.Generator,
)  # fmt: skip

_FOLLOWED = (
    *NOTHING, types.BaseTuple, types.RangeType, types.Pair, types.BoundFunction, types.IteratorType,
)  # fmt: skip

LARGEST = 1 << 20  # bytes of an array from outside, which becomes part of the machine code


class ListOfRows(types.List):  # type: ignore[misc]
    """Of a list of tuples of numbers, which lie one after the other in memory, as floats.

    So that what a tuple holds has one type there, integers and conditions are floats, too.
    """

    def __init__(self, dtype: NumbaType) -> None:
        super().__init__(dtype)
        self.name = f"rows({dtype})"


def element_of(t: NumbaType) -> str:
    """The element type of an array in memory; of complex numbers, that of their parts."""
    found = ELEMENT_OF.get(COMPLEX.get(t.dtype, t.dtype))
    if found is None:
        raise Unsupported(
            f"an array of {t.dtype}: floats, complex numbers, booleans and integers are followed"
        )
    return found


def parts_in(t: NumbaType) -> int:
    """How many numbers an element of an array has in memory."""
    return 2 if t.dtype in COMPLEX else 1


@lru_cache(maxsize=4096)
def scalar(t: NumbaType) -> str | None:
    """The type of a number, or None."""
    if isinstance(t, types.Boolean):
        return "i1"
    if isinstance(t, types.Integer):
        return "i64"
    if isinstance(t, types.Float) and t in ELEMENT_OF:
        return ELEMENT_OF[t]
    return None


def is_number(t: NumbaType) -> bool:
    """Whether a value is a real or a complex number."""
    return t in COMPLEX or scalar(t) is not None


@lru_cache(maxsize=4096)
def components(t: NumbaType) -> Components:
    """The components of a value of some type."""
    number = scalar(t)
    if number is not None:
        return [("", number)]
    if t in COMPLEX:
        kind = ELEMENT_OF[COMPLEX[t]]
        return [(REAL, kind), (IMAGINARY, kind)]
    if is_opaque(t):
        return [("", "ptr")]
    if isinstance(t, types.Array):
        parts = [(".p", "ptr"), *((f".n{i}", "i64") for i in range(t.ndim))]
        return parts if t.layout == "C" else parts + [(f".s{i}", "i64") for i in range(t.ndim)]
    if isinstance(t, types.BaseTuple):
        return [(f".{i}{s}", x) for i, part in enumerate(t) for s, x in components(part)]
    if isinstance(t, types.Optional):  # whether there is a value, and that
        return [(".some", "i1"), *components(t.type)]
    if isinstance(t, types.List):
        return components(array_of(t))
    if isinstance(t, types.RangeType):
        return [(".start", "i64"), (".step", "i64"), (".count", "i64")]
    if isinstance(t, types.Pair):
        first = [(".a" + s, x) for s, x in components(t.first_type)]
        return [*first, (".b", "i1")]
    if isinstance(t, types.BoundFunction):
        return [(".self" + s, x) for s, x in components(t.this)]
    if isinstance(t, types.SimpleIteratorType | types.NumpyFlatType | types.NumpyNdIterType):
        return [*sequence(t), (".count", "i64"), (".k", "i64")]
    if isinstance(t, NOTHING):
        return []
    raise Unsupported(f"a value of type {t}")


@lru_cache(maxsize=4096)
def is_opaque(t: NumbaType) -> bool:
    """Whether Numba alone knows what is in a value: a dictionary, text, a record."""
    if isinstance(t, types.Array):
        return t.dtype not in ELEMENT_OF and t.dtype not in COMPLEX
    if isinstance(t, types.List):
        return not is_number(t.dtype) and not isinstance(t, ListOfRows)
    if isinstance(t, types.Optional):
        return not _is_numbers(t.type)
    return not is_number(t) and not isinstance(t, _FOLLOWED)


def _is_numbers(t: NumbaType) -> bool:
    """Whether a value is a number, an array of numbers, or a tuple of these."""
    if isinstance(t, types.BaseTuple):
        return all(map(_is_numbers, t))
    return is_number(t) or (isinstance(t, types.Array) and not is_opaque(t))


def in_words(t: NumbaType) -> str:
    """A type as a refusal names it, and what to write in its place."""
    if isinstance(t, types.ClassInstanceType | types.ClassType):
        name = getattr(t, "classname", None) or t.class_name
        return f"`{name}`, a `jitclass`: hold what is differentiated in arrays, or in a named tuple"
    if isinstance(t, types.DictType):
        return f"DictType[{t.key_type},{t.value_type}]: use arrays"
    if isinstance(t, types.ListType):
        return f"{t}: write into an array, or append to a list that the function alone knows"
    if isinstance(t, types.Record) or isinstance(getattr(t, "dtype", None), types.Record):
        return f"{t}: hold what is differentiated in arrays"
    return str(t)


def array_of(t: NumbaType) -> NumbaType:
    """The type of an array of what a list holds, or of all that is in the tuples there."""
    if isinstance(t, ListOfRows):
        kinds = {kind for _, kind in components(t.dtype)}
        return types.Array(types.float32 if kinds == {"f32"} else types.float64, 1, "C")
    if not is_number(t.dtype):
        raise Unsupported(f"a list of {t.dtype}: hold these in arrays, or in a tuple")
    return types.Array(t.dtype, 1, "C")


def sequence(t: NumbaType) -> Components:
    """Of an iterator that which it iterates over, beside the count and the place."""
    if isinstance(t, types.RangeIteratorType):
        return [(".start", "i64"), (".step", "i64")]
    if isinstance(t, types.ArrayIterator):
        return components(t.array_type)
    if isinstance(t, types.UniTupleIter | types.ListIter):
        return components(t.container)
    if isinstance(t, types.NumpyFlatType | types.NumpyNdEnumerateType):
        return components(t.array_type)
    if isinstance(t, types.NumpyNdIterType) and len(t.arrays) == 1:
        return components(t.arrays[0])
    if isinstance(t, types.NumpyNdIndexType):
        return [(f".n{d}", "i64") for d in range(t.ndim)]
    if isinstance(t, types.EnumerateType):
        return [(".first", "i64"), *sequence(t.source_type)]
    if isinstance(t, types.ZipType):
        return [(f".{i}{s}", x) for i, p in enumerate(t.source_types) for s, x in sequence(p)]
    return [("", "ptr")]  # see `Outlining.items_of`


def tuple_like(t: NumbaType, parts: list[NumbaType]) -> NumbaType:
    """The type of a tuple of given parts that has the names of another, if that has names."""
    if isinstance(t, types.BaseNamedTuple):
        cls = t.instance_class
        if len(set(parts)) == 1 and parts:
            return types.NamedUniTuple(parts[0], len(parts), cls)
        return types.NamedTuple(parts, cls)
    return types.BaseTuple.from_types(parts)


def lengths(ops: list[Operand], t: NumbaType) -> list[Operand]:
    """The lengths of an array's dimensions."""
    element_of(t)
    return ops[1 : 1 + t.ndim]


def signed(value: Any, kind: str = "i64") -> Any:
    """An integer of 64 bits as the signed one that has the same bits; all else as it is."""
    return (int(value) + (1 << 63)) % (1 << 64) - (1 << 63) if kind == "i64" else value


def nothing(t: NumbaType) -> list[Operand]:
    """Components in the place of a value of some type where there is none."""
    if isinstance(t, types.BaseTuple):
        return [x for part in t for x in nothing(part)]
    if isinstance(t, types.Array):
        table = Constant(Table(element_of(t), b""), "ptr")
        return [table, *(Constant(0, kind) for _, kind in components(t)[1:])]
    zero = {"i64": 0, "i1": False}
    return [Constant(zero.get(kind, 0.0), kind) for _, kind in components(t)]


def constants(value: Any, t: NumbaType) -> list[Operand]:
    """The components of what is known when the code is written."""
    if is_opaque(t):
        raise Unsupported(f"a constant of type {t}")
    if isinstance(t, types.Optional):
        value_of = nothing(t.type) if value is None else constants(value, t.type)
        return [Constant(value is not None, "i1"), *value_of]
    if isinstance(t, types.BaseTuple):
        return [x for item, part in zip(value, t) for x in constants(item, part)]
    if t in COMPLEX:
        return [x for part in (value.real, value.imag) for x in constants(part, COMPLEX[t])]
    if not isinstance(t, types.Array):
        return [Constant(signed(value, kind), kind) for _, kind in components(t)]
    if value.nbytes > LARGEST:
        size = f"{value.nbytes / (1 << 20):.1f} MB"
        raise Unsupported(f"an array of {size} from outside: pass it as an argument")
    order: Literal["C", "F"] = "F" if t.layout == "F" else "C"
    found: list[Operand] = [Constant(Table(element_of(t), value.tobytes(order)), "ptr")]
    known = value.shape
    if t.layout != "C":
        laid_out = np.empty(known, np.int8, order)
        known += laid_out.strides
    return found + [Constant(int(n), "i64") for n in known]

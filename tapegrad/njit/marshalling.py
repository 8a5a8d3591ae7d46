"""Marshalling: arguments of a call as words for machine code, results as Python objects."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from types import NoneType
from typing import Any

import numpy as np
from numba import typeof
from numba.np.numpy_support import as_dtype
from numba.typed import Dict, List

from tapegrad.njit.numba_front.components import (
    COMPLEX,
    components,
    is_opaque,
    scalar,
    signed,
    tuple_like,
)
from tapegrad.njit.numba_front.handles import Handle
from tapegrad.njit.numba_front.objects import Kinds, NumbaType, types
from tapegrad.njit.three_address_code import FLOATS, Unsupported

LARGEST = 1 << 63
NUMBERS = (float, int, complex, np.generic, np.ndarray)
_QUICK = frozenset({float, bool, complex, np.float64, np.float32, np.int64, NoneType})
Array = np.ndarray[Any, Any]


def contiguous(x: Any) -> Any:
    """An argument whose arrays are in C order and in the machine's form."""
    if isinstance(x, np.ndarray):
        return np.require(x, x.dtype.newbyteorder("="), ["C", "A"])
    if isinstance(x, tuple):
        parts = [contiguous(part) for part in x]
        return x._make(parts) if hasattr(x, "_make") else tuple(parts)
    return x


def overlaps_itself(x: Array) -> bool:
    """Whether elements of an array lie in the same memory."""
    low, high = np.lib.array_utils.byte_bounds(x)
    return bool(high - low < x.size * x.itemsize)


def copied(x: Any, written: bool = False) -> Any:
    """An argument whose arrays, records and containers are copies, as deep as they go.

    Objects of `jitclass` have no copy; one that is `written` into is refused.
    """
    if isinstance(x, np.ndarray | np.void):
        return x.copy()
    if isinstance(x, tuple):
        parts = [copied(part, written) for part in x]
        return x._make(parts) if hasattr(x, "_make") else tuple(parts)
    if isinstance(x, list):
        if written:
            raise Unsupported("a function that writes into its argument, a list: pass an array")
        return x.copy()
    if isinstance(x, Dict | List):
        made: Any = x.copy()
        if not isinstance(_held_by(x), types.Number | types.Boolean | types.UnicodeType):
            for key, value in x.items() if isinstance(x, Dict) else enumerate(x):
                made[key] = copied(value, written)
        return made
    if written and isinstance(getattr(x, "_numba_type_", None), types.ClassInstanceType):
        name = type(x).__name__
        raise Unsupported(
            f"a function that writes into its argument, a `{name}`, which has no copy"
        )
    return x


def _held_by(x: Any) -> NumbaType:
    """The type of what a dictionary or a list holds."""
    return x._dict_type.value_type if isinstance(x, Dict) else x._list_type.item_type


def arrays_in(x: Any) -> list[Array]:
    """All arrays of an argument, those in containers too."""
    if isinstance(x, Dict | List) and isinstance(_held_by(x), types.Array | types.BaseTuple):
        return [a for part in (x.values() if isinstance(x, Dict) else x) for a in arrays_in(part)]
    if isinstance(x, tuple):
        return [a for part in x for a in arrays_in(part)]
    return [x] if isinstance(x, np.ndarray) else []


def kind_of(x: Any) -> NumbaType:
    """Numba's type of an argument; arrays are taken to be writable."""
    if isinstance(x, np.ndarray):
        if x.dtype.kind not in "fciub" and x.dtype.names is None:
            other = ": pass a tuple" if x.dtype.kind == "U" else ""
            raise Unsupported(f"an array of {x.dtype}{other}")
        return types.Array(typeof(x).dtype, x.ndim, "C")
    if isinstance(x, list) and len({type(v) for v in x}) != 1:  # else Numba reads the first
        raise Unsupported("a list as an argument that is not of one type: pass an array")
    try:
        t = typeof(x)
    except ValueError as error:
        other = ": pass a `numba.typed.Dict`" if isinstance(x, dict) else ""
        raise Unsupported(f"an argument of type {type(x).__name__}{other}") from error
    if isinstance(x, tuple):
        return tuple_like(t, [kind_of(part) for part in x])
    if isinstance(x, list):
        if is_opaque(t):
            other = "a tuple" if t.dtype == types.unicode_type else "an array or a tuple"
            raise Unsupported(f"a list of {t.dtype} as an argument: pass {other}")
        return types.List(t.dtype)
    return types.unliteral(t)


def type_fingerprint(args: Sequence[Any]) -> Any:
    """What decides the types of arguments: arrays, small numbers and tuples of them; else None."""
    found: list[Any] = []
    for x in args:
        kind = type(x)
        if kind is np.ndarray:
            found += (x.dtype, x.ndim)
        elif kind in _QUICK or (kind is int and -LARGEST <= x < LARGEST):
            found.append(kind)
        elif isinstance(x, tuple) and (inside := type_fingerprint(x)) is not None:
            found += (kind, inside)
        else:
            return None
    return tuple(found)


def kinds_of(args: Sequence[Any]) -> Kinds:
    """Numba's types of arguments."""
    return tuple([kind_of(x) for x in args])


def leaves(x: Any) -> list[Any]:
    """The numbers and arrays of an argument, in order."""
    return [leaf for part in x for leaf in leaves(part)] if isinstance(x, tuple) else [x]


def followed(t: NumbaType) -> list[bool]:
    """Which leaves of an argument have components: functions and None have not."""
    if isinstance(t, types.BaseTuple):
        return [known for part in t for known in followed(part)]
    return [bool(components(t))]


def has_components(x: Any) -> bool:
    """Whether a leaf is more than a constant, as functions and None are."""
    return isinstance(x, NUMBERS) or bool(components(kind_of(x)))


def flat(t: NumbaType, x: Any, kept: list[Any]) -> list[Any]:
    """The components of an argument: addresses, lengths, numbers; `kept` gets what they lead to."""
    if is_opaque(t):
        kept.append(handle := Handle(x, t))
        return [handle.word]
    if isinstance(t, types.List):
        kept.append(x := np.array(x, as_dtype(t.dtype)))
        return [address_of(x), x.size]
    if isinstance(t, types.Array):
        return [address_of(x), *x.shape]
    if isinstance(t, types.BaseTuple):
        return [c for part, y in zip(t, x) for c in flat(part, y, kept)]
    if t in COMPLEX:
        return [x.real, x.imag]
    return [signed(x) if t == types.uint64 else x] if components(t) else []


# How `struct` packs a word of each type, and reads it back.
FORMAT = {"f64": "d", "f32": "f4x", "i64": "q", "i1": "?7x", "ptr": "Q"}


def result_of(
    t: NumbaType, found: Sequence[Any], moved: Sequence[Any] | None = None, at: int = 0
) -> Any:
    """The result of a function of what was found, or its tangent; arrays are copied."""
    values = found if moved is None else moved
    if isinstance(t, types.Array):
        return array_at(values[at], tuple(found[at + 1 : at + 1 + t.ndim]), as_dtype(t.dtype))
    if isinstance(t, types.BaseTuple):
        parts = []
        for part in t:
            parts.append(result_of(part, found, moved, at))
            at += len(components(part))
        make: Callable[..., Any] = getattr(t, "instance_class", None) or (lambda *p: p)
        return make(*parts)
    if t in COMPLEX:
        return complex(*values[at : at + 2])
    kind = scalar(t)
    if kind is None:
        return None
    if t == types.uint64 and moved is None:
        return values[at] % (1 << 64)
    return values[at] if moved is None or kind in FLOATS else 0.0


def address_of(x: Array) -> int:
    """Where an array's elements begin."""
    return int(x.__array_interface__["data"][0])


def array_at(address: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """A copy of an array in memory."""
    if 0 in shape or not address:
        return np.zeros(shape, dtype)
    size = dtype.itemsize * int(np.prod(shape))
    memory: Any = (ctypes.c_char * size).from_address(address)
    return np.frombuffer(memory, dtype).reshape(shape).copy()

"""CPython's and NumPy's own functions, for code that CPython shall call without Python between.

Each has a prototype of its own: `ctypes.pythonapi` is shared with everybody in the process.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

NOARGS, ONE_ARGUMENT, KEYWORDS, FASTCALL = 0x04, 0x08, 0x02, 0x80  # what a method is called with


class Method(ctypes.Structure):
    """CPython's PyMethodDef; a function that is made of it keeps only its address."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def c_text(text: str) -> bytes:
    """Any text as C can hold it."""
    return text.encode("utf-8", "replace").replace(b"\0", b"?")


def address_of(function: Any) -> int:
    """Where a function of C stands."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def numpy_function(place: int) -> int:
    """Where a function of NumPy's table for C extensions stands; the places are for good."""
    module: Any = import_module("numpy._core._multiarray_umath")  # where C extensions look for it
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    table = pointer(("PyCapsule_GetPointer", ctypes.pythonapi))(module._ARRAY_API, None)
    return int((ctypes.c_int64 * (place + 1)).from_address(table)[place])


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


def ufunc_loop(ufunc: Any, types: str) -> tuple[int, int] | None:
    """Where a loop over types, one of `ufunc.types`, stands, and the data that goes with it."""
    head = _Ufunc.from_address(id(ufunc))
    same = (head.nin, head.nargs, head.ntypes) == (ufunc.nin, ufunc.nargs, ufunc.ntypes)
    if not same or types not in ufunc.types or not head.loops:
        return None
    place = ufunc.types.index(types)
    words = ctypes.c_int64 * head.ntypes
    data = words.from_address(head.data)[place] if head.data else 0
    return words.from_address(head.loops)[place], data


def slot_offset(member: Any) -> int:
    """Where a slot stands in its objects, in bytes: CPython's PyMemberDescrObject tells."""
    found = ctypes.c_int64.from_address(id(member) + 40).value
    return ctypes.c_int64.from_address(found + 16).value


@cache
def new_function() -> Callable[[int, Any, Any], Callable[..., Any]]:
    """PyCFunction_NewEx: over the address of a `Method`, the `self`, and the module's name."""
    prototype = ctypes.PYFUNCTYPE(
        ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.py_object
    )
    return prototype(("PyCFunction_NewEx", ctypes.pythonapi))


@cache
def new_method() -> Callable[[type, int], Any]:
    """PyDescr_NewMethod: over a class and the address of a `Method`."""
    prototype = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.c_void_p)
    return prototype(("PyDescr_NewMethod", ctypes.pythonapi))

"""An allocator for NumPy in whose arrays nothing can be read or written beyond the ends.

Every array lies in pages of its own, right before a page that cannot be accessed, or (each third)
right behind one.  Memory that is not cleared, and what is freed, is filled with a pattern.
"""

from __future__ import annotations

import ctypes
import mmap

import numba
from numba import types

from tapegrad.base.cpython import numpy_function

PAGE = mmap.PAGESIZE
NONE, BOTH, PRIVATE = 0, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
PATTERN = 0xA5
SET_HANDLER = 304  # the place of PyDataMem_SetHandler in NumPy's table

_libc = ctypes.CDLL(None)
_size = ctypes.c_size_t


def _function(name, result, *arguments):
    found = getattr(_libc, name)
    found.restype, found.argtypes = result, arguments
    return found


_map = _function("mmap", _size, _size, _size, ctypes.c_int, ctypes.c_int, ctypes.c_int, _size)
_unmap = _function("munmap", ctypes.c_int, _size, _size)
_protect = _function("mprotect", ctypes.c_int, _size, _size, ctypes.c_int)
_fill = _function("memset", _size, _size, ctypes.c_int, _size)
_copy = _function("memcpy", _size, _size, _size, _size)


# How many arrays there were, and then for each number of pages how many regions of memory are free,
# and which: a new region costs system calls.
KINDS, MOST = 64, 63
_state = (ctypes.c_int64 * (1 + KINDS * (MOST + 1)))()
_STATE_AT, _STATE_LENGTH = ctypes.addressof(_state), len(_state)


@numba.extending.intrinsic
def _pointer(context, address):
    def build(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    return types.CPointer(types.int64)(address), build


@numba.njit
def _region(room):
    """A page that says how much there is and is closed, the room, and a page that is closed."""
    state, kind = numba.carray(_pointer(_STATE_AT), _STATE_LENGTH), room // PAGE
    if kind < KINDS:
        here = 1 + kind * (MOST + 1)
        if state[here]:
            state[here] -= 1
            return state[here + 1 + state[here]]
    start = _map(0, room + 2 * PAGE, BOTH, PRIVATE, -1, 0)
    numba.carray(_pointer(start), 1)[0] = room
    _protect(start, PAGE, NONE)
    _protect(start + PAGE + room, PAGE, NONE)
    return start


@numba.njit
def _new(size, filling):
    room = max((size + PAGE - 1) // PAGE, 1) * PAGE
    state = numba.carray(_pointer(_STATE_AT), _STATE_LENGTH)
    state[0] += 1
    found = _region(room) + PAGE
    if state[0] % 3:
        found += room - (size + 7) // 8 * 8
    _fill(found, filling, size)
    return found


@numba.njit
def _give_back(address, room):
    _fill(address // PAGE * PAGE, PATTERN, room)  # who reads it still finds that
    state, kind = numba.carray(_pointer(_STATE_AT), _STATE_LENGTH), room // PAGE
    start = address // PAGE * PAGE - PAGE
    if kind < KINDS:
        here = 1 + kind * (MOST + 1)
        if state[here] < MOST:
            state[here + 1 + state[here]] = start
            state[here] += 1
            return
    _unmap(start, room + 2 * PAGE)


@numba.cfunc("int64(int64, int64)")
def _malloc(_, size):
    return _new(size, PATTERN)


@numba.cfunc("int64(int64, int64, int64)")
def _calloc(_, count, size):
    return _new(count * size, 0)


@numba.cfunc("void(int64, int64, int64)")
def _free(_, address, size):
    if address:
        _give_back(address, max((size + PAGE - 1) // PAGE, 1) * PAGE)


@numba.cfunc("int64(int64, int64, int64)")
def _realloc(_, address, size):
    found = _new(size, PATTERN)
    if address:
        start = address // PAGE * PAGE - PAGE
        _protect(start, PAGE, BOTH)
        room = numba.carray(_pointer(start), 1)[0]
        _protect(start, PAGE, NONE)
        _copy(found, address, min(size, start + PAGE + room - address))
        _give_back(address, room)
    return found


class _Handler(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char * 127), ("version", ctypes.c_uint8), ("context", ctypes.c_void_p),
        ("malloc", ctypes.c_void_p), ("calloc", ctypes.c_void_p), ("realloc", ctypes.c_void_p),
        ("free", ctypes.c_void_p),
    )  # fmt: skip


_handler = _Handler(
    b"guarded", 1, None, _malloc.address, _calloc.address, _realloc.address, _free.address
)


def install() -> None:
    """Allocate all arrays of this process in this way from now on."""
    new = ctypes.pythonapi.PyCapsule_New
    new.restype = ctypes.py_object
    new.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    set_handler = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(numpy_function(SET_HANDLER))
    set_handler(new(ctypes.addressof(_handler), b"mem_handler", None))

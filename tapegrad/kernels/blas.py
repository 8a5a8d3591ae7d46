"""The addresses of BLAS's routines, from SciPy's documented capsules."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any


@cache
def routine(name: str) -> int:
    """The Fortran interface of a routine: everything by pointer."""
    from scipy.linalg import cython_blas

    capsule: Any = vars(cython_blas)["__pyx_capi__"][name]
    api = ctypes.pythonapi
    title = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", api))
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", api)
    )
    return int(pointer(capsule, title(capsule)))

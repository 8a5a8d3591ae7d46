"""The address of BLAS's matrix product, from SciPy's documented capsules."""

from __future__ import annotations

import ctypes
from functools import cache


@cache
def dgemm() -> int:
    """The Fortran interface: thirteen pointers."""
    from scipy.linalg import cython_blas

    capsule = cython_blas.__pyx_capi__["dgemm"]
    api = ctypes.pythonapi
    name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", api))
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", api)
    )
    return int(pointer(capsule, name(capsule)))

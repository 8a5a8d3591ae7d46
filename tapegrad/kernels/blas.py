"""The addresses of compiled routines, from the capsules that SciPy's Cython modules document."""

from __future__ import annotations

import ctypes
from functools import cache
from importlib import import_module
from typing import Any


@cache
def capsules(module: str) -> dict[str, tuple[bytes, int]]:
    """For each function that a Cython module exports its C signature and its address."""
    api = ctypes.pythonapi
    title = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", api))
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", api)
    )
    exported: dict[str, Any] = vars(import_module(module))["__pyx_capi__"]
    signatures = {key: title(capsule) for key, capsule in exported.items()}
    return {key: (s, int(pointer(exported[key], s))) for key, s in signatures.items()}


def routine(name: str) -> int:
    """The Fortran interface of one of BLAS's or LAPACK's routines: everything by pointer."""
    of_blas = capsules("scipy.linalg.cython_blas")
    found = of_blas[name] if name in of_blas else capsules("scipy.linalg.cython_lapack")[name]
    return found[1]

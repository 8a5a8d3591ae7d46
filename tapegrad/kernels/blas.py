"""The addresses of compiled routines, from the capsules that SciPy's Cython modules document."""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from tapegrad.base.locks import lock

_loading = lock()


def capsules(module: str) -> dict[str, tuple[bytes, int]]:
    """For each function that a Cython module exports its C signature and its address."""
    with _loading:  # twice they cannot be loaded
        return _capsules(module)


@cache
def _capsules(module: str) -> dict[str, tuple[bytes, int]]:
    api = ctypes.pythonapi
    title = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", api))
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", api)
    )
    exported: dict[str, Any] = vars(_module(module))["__pyx_capi__"]
    signatures = {key: title(capsule) for key, capsule in exported.items()}
    return {key: (s, int(pointer(exported[key], s))) for key, s in signatures.items()}


def _module(name: str) -> ModuleType:
    """A Cython module of SciPy, without the package around it, whose import takes 0.2 s."""
    package, *inner, _ = name.split(".")
    root = find_spec(package)
    if name in sys.modules or root is None or root.submodule_search_locations is None:
        return import_module(name)
    folders = [str(Path(place, *inner)) for place in root.submodule_search_locations]
    spec = PathFinder.find_spec(name, folders)
    if spec is None or spec.loader is None:
        return import_module(name)
    found = module_from_spec(spec)
    spec.loader.exec_module(found)
    sys.modules.pop(name, None)  # or an import would not bind it in its package
    return found


def routine(name: str) -> int:
    """The Fortran interface of one of BLAS's or LAPACK's routines: everything by pointer."""
    of_blas = capsules("scipy.linalg.cython_blas")
    found = of_blas[name] if name in of_blas else capsules("scipy.linalg.cython_lapack")[name]
    return found[1]

"""SciPy's functions for Tensors, under its names, with its arguments: `tg.scipy.linalg.expm`.

SciPy's own functions make arrays of what they are given, and so refuse a Tensor that requires grad.
These take Tensors, record, and are differentiated any number of times; given arrays alone they are
SciPy's.  A name that is not here is SciPy's function itself, as its ufuncs, which take Tensors.

>>> import numpy as np, scipy.sparse, tapegrad as tg
>>> x = tg.tensor([1.0, 2.0], requires_grad=True)
>>> tg.scipy.signal.convolve(x, np.array([1.0, 1.0]))
tensor([1., 3., 2.], grad_fn=<MmBackward0>)
>>> matrix = scipy.sparse.csr_array([[2.0, 0.0], [1.0, 4.0]])
>>> tg.scipy.sparse.linalg.spsolve(matrix, x).sum().backward(); x.grad
tensor([0.3750, 0.2500])
"""

import importlib as _importlib
import typing as _typing

from tapegrad.base.missing_names import missing as _missing
from tapegrad.base.public_names import dir_of as _dir_of

if _typing.TYPE_CHECKING:
    from tapegrad.scipy import (
        fft,
        integrate,
        interpolate,
        linalg,
        ndimage,
        optimize,
        signal,
        sparse,
        spatial,
        special,
        stats,
    )

__all__ = [
    "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse",
    "spatial", "special", "stats",
]  # fmt: skip
__dir__ = _dir_of(globals())


def __getattr__(name: str) -> _typing.Any:
    if name not in __all__:
        raise _missing("module 'tapegrad.scipy'", name, __all__)
    return _importlib.import_module(f"tapegrad.scipy.{name}")

"""The parts of complex numbers."""

from __future__ import annotations

import numpy as np

from tapegrad.tensor import Tensor, wrap


def real(input: Tensor) -> Tensor:
    """The real part: of a complex Tensor a view that cannot be written into, else itself."""
    return _part(input, input._a.real) if input._a.dtype.kind == "c" else input


def imag(input: Tensor) -> Tensor:
    """The imaginary part, a view that cannot be written into; a real Tensor has none."""
    if input._a.dtype.kind != "c":
        raise RuntimeError("`imag` is not defined for a Tensor with real elements")
    return _part(input, input._a.imag)


def _part(t: Tensor, part: np.ndarray) -> Tensor:
    if type(t) is not Tensor:
        raise NotImplementedError(
            f"the real and the imaginary part of a Tensor of {t.dtype} cannot be taken inside of a "
            "transform: take them outside"
        )
    # Were a part changed by what requires grad, no record could say what became of the whole.
    part.flags.writeable = False
    return wrap(part)

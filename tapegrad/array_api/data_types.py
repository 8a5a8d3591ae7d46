"""What the standard asks of types.

>>> from tapegrad import array_api as xp
>>> xp.isdtype(xp.float32, "real floating"), xp.result_type(xp.float32, xp.asarray(1.0))
(True, tapegrad.float64)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tapegrad.base import dtypes
from tapegrad.base.devices import check_device
from tapegrad.base.dtypes import dtype as DType
from tapegrad.base.dtypes import of_numpy, promote_types, to_numpy
from tapegrad.functions.shapes import clone, to
from tapegrad.tensor import Tensor

KINDS = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}
TYPES = {
    name: dtypes.NAMES[name]
    for name in "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 "
    "complex128".split()
}


def astype(x: Tensor, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """The elements in another type; gradients flow back to `x`.

    >>> from tapegrad import array_api as xp
    >>> xp.astype(xp.ones(1), xp.int64)
    tensor([1])
    """
    check_device(device)
    if x._a.dtype.kind == "c" and to_numpy(dtype).kind != "c":
        raise TypeError(f"`astype` from {x.dtype} to {dtype} loses the imaginary part: use `real`")
    found = to(x, dtype)
    return clone(found) if copy and found is x else found


def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether a type, or that of a Tensor, promotes to another.

    >>> from tapegrad import array_api as xp
    >>> xp.can_cast(xp.int32, xp.float64), xp.can_cast(xp.float64, xp.float32)
    (True, False)
    """
    source = from_.dtype if isinstance(from_, Tensor) else of_numpy(to_numpy(from_))
    target = of_numpy(to_numpy(to))
    return promote_types(source, target) == target


class Limits(NamedTuple):
    """The limits of a floating-point type, as Python's numbers."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


def finfo(type: Any, /) -> Limits:
    """The limits of a floating-point type, or of that of a Tensor.

    >>> from tapegrad import array_api as xp
    >>> xp.finfo(xp.float64).eps == 2.0**-52
    True
    """
    found = dtypes.finfo(type.dtype if isinstance(type, Tensor) else type)
    eps, most, least = float(found.eps), float(found.max), float(found.min)
    return Limits(found.bits, eps, most, least, float(found.smallest_normal), of_numpy(found.dtype))


def iinfo(type: Any, /) -> np.iinfo[Any]:
    """The limits of an integer type, or of that of a Tensor.

    >>> from tapegrad import array_api as xp
    >>> xp.iinfo(xp.int8).max
    127
    """
    return dtypes.iinfo(type.dtype if isinstance(type, Tensor) else type)


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a type is of a kind, which is a type, one of the standard's names, or several.

    >>> from tapegrad import array_api as xp
    >>> xp.isdtype(xp.int8, ("bool", "signed integer"))
    True
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, one) for one in kind)
    if isinstance(kind, str) and kind in KINDS:
        return to_numpy(dtype).kind in KINDS[kind]
    if not isinstance(kind, DType):
        raise TypeError(f"`isdtype`: a kind is a type or one of {', '.join(KINDS)}, got {kind!r}")
    return of_numpy(to_numpy(dtype)) is kind


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The type that operands are promoted to; Python's numbers take that of the Tensors beside.

    >>> from tapegrad import array_api as xp
    >>> xp.result_type(xp.int32, xp.int8, 1)
    tapegrad.int32
    """
    numbers = [x for x in arrays_and_dtypes if isinstance(x, (bool, int, float, complex))]
    kinds = [
        x.dtype if isinstance(x, Tensor) else of_numpy(to_numpy(x))
        for x in arrays_and_dtypes
        if not isinstance(x, (bool, int, float, complex))
    ]
    if not kinds:
        raise ValueError("`result_type` needs a Tensor or a type")
    found = kinds[0]
    for kind in kinds[1:]:
        found = promote_types(found, kind)
    return of_numpy(dtypes.result_type([np.empty(1, found.numpy), *numbers]))

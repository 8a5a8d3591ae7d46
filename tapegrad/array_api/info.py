"""What the library has, as the standard asks for it.

>>> from tapegrad import array_api as xp
>>> xp.__array_namespace_info__().default_device()
device(type='cpu')
"""

from __future__ import annotations

from typing import Any

from tapegrad.array_api.data_types import TYPES, isdtype
from tapegrad.base.devices import CPU, check_device
from tapegrad.base.devices import device as Device
from tapegrad.base.dtypes import complex64, complex128, float64, get_default_dtype, int64
from tapegrad.base.dtypes import dtype as DType


class Info:
    """The answers of `__array_namespace_info__`."""

    __slots__ = ()

    def capabilities(self) -> dict[str, Any]:
        """Whether indexing by masks and shapes that depend on data are there; the most dimensions.

        >>> from tapegrad import array_api as xp
        >>> xp.__array_namespace_info__().capabilities()["max dimensions"]
        64
        """
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Device:
        """The device of new Tensors."""
        return CPU

    def default_dtypes(self, *, device: Any = None) -> dict[str, DType]:
        """The types of new Tensors made from Python's numbers."""
        check_device(device)
        real = get_default_dtype()
        whole = {"integral": int64, "indexing": int64}
        pair = complex128 if real is float64 else complex64
        return {"real floating": real, "complex floating": pair, **whole}

    def devices(self) -> list[Device]:
        """All devices: one."""
        return [CPU]

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, DType]:
        """The types of a kind by their names, without one all.

        >>> from tapegrad import array_api as xp
        >>> list(xp.__array_namespace_info__().dtypes(kind="real floating"))
        ['float32', 'float64']
        """
        check_device(device)
        return {name: t for name, t in TYPES.items() if kind is None or isdtype(t, kind)}


def __array_namespace_info__() -> Info:
    """What the library has: types, devices, what depends on data."""
    return Info()

"""NumPy's own `numpy.fft`."""

from typing import Any as _Any

from numpy import fft as _module


def __getattr__(name: str) -> _Any:
    return getattr(_module, name)


def __dir__() -> list[str]:
    return dir(_module)


__all__ = [name for name in dir(_module) if not name.startswith("_")]

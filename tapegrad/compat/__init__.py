"""Other libraries' names and meanings over tapegrad: `tapegrad.compat.autograd`."""

from typing import Any


def __getattr__(name: str) -> Any:
    if name != "autograd":
        raise AttributeError(f"module 'tapegrad.compat' has no attribute {name!r}")
    import tapegrad.compat.autograd

    return tapegrad.compat.autograd


__all__ = ["autograd"]

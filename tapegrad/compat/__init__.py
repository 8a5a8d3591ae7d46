"""Other libraries' names and meanings over tapegrad: `tapegrad.compat.autograd`."""

from typing import Any

from tapegrad.base.public_names import dir_of


def __getattr__(name: str) -> Any:
    if name != "autograd":
        raise AttributeError(f"module 'tapegrad.compat' has no attribute {name!r}")
    import tapegrad.compat.autograd

    return tapegrad.compat.autograd


__all__ = ["autograd"]
__dir__ = dir_of(globals())

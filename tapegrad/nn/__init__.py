"""What neural networks are made of; `functional`, and `utils` for parameters."""

from typing import Any

from tapegrad.base.missing_names import missing
from tapegrad.base.public_names import dir_of
from tapegrad.nn import functional, utils

__all__ = ["functional", "utils"]
__dir__ = dir_of(globals())


def __getattr__(name: str) -> Any:
    if name in functional.__all__:
        raise AttributeError(
            f"module 'tapegrad.nn' has no attribute {name!r}: it is in `tapegrad.nn.functional`"
        )
    raise missing("module 'tapegrad.nn'", name, __all__)

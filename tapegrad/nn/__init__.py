"""What neural networks are made of; only `functional` so far."""

from typing import Any

from tapegrad.base.missing_names import missing
from tapegrad.nn import functional

__all__ = ["functional"]


def __getattr__(name: str) -> Any:
    raise missing("module 'tapegrad.nn'", name, __all__)

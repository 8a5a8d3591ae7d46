"""Whether NumPy's semantics hold where NumPy and PyTorch differ.

They do inside a transform of a function of arrays, so that it behaves as it does without; inside
those of `tapegrad.func`, and for a user's own Tensors, PyTorch's do.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from tapegrad.tape.tape import current

P = ParamSpec("P")
R = TypeVar("R")


def torchs_rule(function: Callable[P, R]) -> Callable[P, R]:
    """Have a function follow PyTorch's rules within a transform, too."""

    @functools.wraps(function, updated=())
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        tape = current.tape
        before = tape.torchs
        try:
            tape.torchs = True
            return function(*args, **kwargs)
        finally:
            tape.torchs = before

    return call


def numpys() -> bool:
    """Whether NumPy's rules hold."""
    tape = current.tape
    if not (tape.depth or tape.levels) or tape.torchs:
        return False
    return tape.depth > 0 or any(at.traces for at in tape.levels)

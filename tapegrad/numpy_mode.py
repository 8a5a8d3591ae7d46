"""Whether Tensors stand for arrays now: where NumPy and PyTorch differ, NumPy's meaning holds.

It does inside of a transform of a function of arrays, as the function would be without it; inside
of those of `tapegrad.func`, and for a user's own Tensors, PyTorch's does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tapegrad.tape import current


@contextmanager
def torchs_rule() -> Iterator[None]:
    """PyTorch's rule, within a transform too."""
    tape = current.tape
    before, tape.torchs = tape.torchs, True
    try:
        yield
    finally:
        tape.torchs = before


def numpys() -> bool:
    """Whether NumPy's rules hold."""
    tape = current.tape
    inside = tape.depth or any(at.traces for at in tape.levels)
    return bool(inside) and not tape.torchs

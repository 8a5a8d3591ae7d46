"""Whether Tensors stand for arrays now: where NumPy and PyTorch differ, NumPy's meaning holds.

It does inside of a transform of a function of arrays, as the function would be without it; inside
of those of `tapegrad.func`, and for a user's own Tensors, PyTorch's does.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tapegrad.tape import current


class _State(threading.local):
    def __init__(self) -> None:
        self.torchs = False


_state = _State()


@contextmanager
def torchs_rule() -> Iterator[None]:
    """PyTorch's rule, within a transform too."""
    before, _state.torchs = _state.torchs, True
    try:
        yield
    finally:
        _state.torchs = before


def numpys() -> bool:
    """Whether NumPy's rules hold."""
    tape = current.tape
    inside = tape.depth or any(at.traces for at in tape.levels)
    return bool(inside) and not _state.torchs

"""The progress line, and what the user's callback sees."""

from __future__ import annotations

import inspect
import sys
import time
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

EVERY = 0.1  # seconds between two writings


class Progress:
    """A line about the state, written over itself on a terminal.

    Elsewhere nothing is written; with `shown="always"` the last state alone.
    """

    def __init__(self, title: str, shown: bool | Literal["always"]) -> None:
        if shown not in (False, True, "always"):
            raise ValueError(f"{title}: `progress` is True, False or 'always', got {shown!r}")
        self.title, self.shown = title, shown
        self.iterations = self.evaluations = 0
        self.value = self.slope = np.nan
        self.written = 0.0
        self.width = 0

    def evaluated(self, value: float, gradient: np.ndarray | None = None) -> None:
        """Take note of an evaluation."""
        self.evaluations += 1
        if not value >= self.value:
            self.value = value
            self.slope = np.nan if gradient is None else float(np.abs(gradient).max())

    def iterated(self) -> None:
        """Take note of an iteration."""
        self.iterations += 1
        now = time.monotonic()
        if self.shown and _on_terminal() and now - self.written > EVERY:
            self.written = now
            self._write("\r", "")

    def finished(self, iterations: int | None = None) -> None:
        """Write the last state."""
        self.iterations = self.iterations if iterations is None else iterations
        terminal = _on_terminal()
        if self.shown == "always" or (self.shown and terminal):
            self._write("\r" if terminal else "", "\n")

    def _write(self, before: str, after: str) -> None:
        slope = "" if np.isnan(self.slope) else f", max |gradient| {self.slope:.1e}"
        line = (
            f"{self.title}: iteration {self.iterations}, {self.evaluations} evaluations, "
            f"value {self.value:.6g}{slope}"
        )
        sys.stderr.write(before + line.ljust(self.width) + after)
        sys.stderr.flush()
        self.width = len(line)


def _on_terminal() -> bool:
    stream: Any = sys.stderr  # None in a program without a console
    return stream is not None and bool(stream.isatty())


def observer(
    callback: Callable[..., Any] | None, progress: Progress, result: Callable[[Any], Any],
    fields: Callable[[Any], Any],
) -> Callable[..., Any]:  # fmt: skip
    """The callback that SciPy gets: it counts, and calls the user's with pytrees.

    SciPy looks at the names of a callback's arguments to find out what to call it with, and some
    methods do not look but give the point alone.
    """
    whole = callback is not None and set(inspect.signature(callback).parameters) == {
        "intermediate_result"
    }

    def called(intermediate_result: Any) -> Any:
        progress.iterated()
        if callback is None:
            return None
        if whole:
            return callback(intermediate_result=fields(intermediate_result))
        x = getattr(intermediate_result, "x", intermediate_result)
        return callback(result(x))

    return called

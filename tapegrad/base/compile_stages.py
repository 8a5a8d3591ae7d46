"""Stages of compiling, timed for who listens; and that something is not compiled yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter_ns

Listener = Callable[[str, int, int], None]  # of a stage, its beginning and its end in nanoseconds

listener: Listener | None = None  # `show.profiler`, while it is active


def listen(to: Listener | None) -> None:
    """Tell this function of each stage that ends; None: nobody."""
    global listener
    listener = to


class NotCompiled(Exception):
    """Another process compiles what was asked for: do without for now."""


@contextmanager
def stage(name: str) -> Iterator[None]:
    """A stage of compiling, which takes a millisecond at least."""
    start = perf_counter_ns()
    try:
        yield
    finally:
        if listener is not None:
            listener(name, start, perf_counter_ns())

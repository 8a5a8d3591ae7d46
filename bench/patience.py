"""How long to wait for compilers, so that a run ends in good time and says what it left out."""

from __future__ import annotations

import math
import os
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any

from bench.problem import TooLong

MOST_OVER = 2


class _Over(BaseException):
    """The time is over; no library takes this for an error of its own."""


class Clock:
    """The seconds that a table may take, and those that one library may take for one program.

    A library that ran over twice is not waited for again.  A call that stays in machine code is
    not interrupted, but what it took counts.
    """

    def __init__(self, table: float = math.inf, program: float = math.inf) -> None:
        self.table, self.program = table, program
        self.start = perf_counter()
        self.over: Counter[str] = Counter()
        self.known: dict[tuple[str, str], list[float] | TooLong] = {}

    def left(self) -> float:
        """Return the seconds that a program may take now; `TooLong` if there are none."""
        left = self.start + self.table - perf_counter()
        if left <= 0:
            raise TooLong(f"no time left of {self.table:g} s")
        return min(left, self.program)

    def timed(self, name: str, call: Callable[[], Any]) -> tuple[Any, float]:
        """Return the result of a library's call and its seconds; `TooLong` if they are too many."""
        if self.over[name] >= MOST_OVER:
            raise TooLong(f"ran over {MOST_OVER} times before")
        left, start = self.left(), perf_counter()
        try:
            with _interrupted(left):
                result = call()
            seconds = perf_counter() - start
            if seconds > left:
                raise _Over
        except _Over:
            self.over[name] += 1
            raise TooLong(f"not there after {left:.0f} s") from None
        return result, seconds

    def allow(self, seconds: float) -> None:
        """Raise `TooLong` if a program is expected to take more than there is."""
        if seconds > self.left():
            raise TooLong(f"would take some {seconds:,.0f} s to compile")


@contextmanager
def _interrupted(seconds: float) -> Iterator[None]:
    """Leave the block by `_Over` after so many seconds, once Python is at work there.

    The alarm rings again and again: what a callback of the garbage collector raises is lost.
    """
    if not math.isfinite(seconds):
        yield
        return

    def over(*_: Any) -> None:
        raise _Over

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def environment(**changes: str) -> Iterator[None]:
    """Set variables of this process's environment for a block."""
    before = dict(os.environ)
    os.environ |= changes
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def machine_code() -> Iterator[str]:
    """A cache that holds what tapegrad has compiled for this machine so far, and is thrown away.

    So no program is found that an earlier run has compiled.
    """
    from tapegrad.kernels import disk_cache

    # Another process may still be compiling into it when it goes.
    temporary = tempfile.TemporaryDirectory(prefix="tapegrad-bench-", ignore_cleanup_errors=True)
    with temporary as folder:
        known = disk_cache.folder()
        if known is not None and known.exists():
            shutil.copytree(known, folder, dirs_exist_ok=True)
        yield folder


def note(left_out: dict[str, str]) -> str:
    """Return which libraries were not run, and why."""
    reasons: dict[str, list[str]] = {}
    for name, why in left_out.items():
        reasons.setdefault(why, []).append(name)
    said = "; ".join(f"{', '.join(names)} ({why})" for why, names in reasons.items())
    return f"not run: {said}" if said else ""


def expected(sizes: Sequence[float], seconds: Sequence[float], size: float) -> float:
    """Return how long a program of some size takes, by two smaller ones: a straight line."""
    (a, b), (s, t) = sizes, seconds
    return t + max(t - s, 0.0) / (b - a) * (size - b)

"""Compile in a process of its own what would interrupt the work of this one.

The compiled sweep and the native path take some fifteen seconds, during which Numba holds the
interpreter's lock: a thread would not help.  Processes of low priority compile what was asked for
into the disk cache, two at a time, and this one loads it from there when it looks the next time;
until then NumPy and Python do the work.  Of programs that want the same, one has it compiled.
``TAPEGRAD_BACKGROUND=0`` turns it off.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tapegrad.base.locks import lock
from tapegrad.kernels import disk_cache

Request = tuple[str, str, int]  # the arguments of `build.load`
Module = tuple[str, int, str]  # and of `build.assembled`
_lock = lock()
_waiting: dict[Request, None] = {}  # what no process has been given yet
_given: dict[Request, Any] = {}  # and what one has been given, with that process
_processes: list[Any] = [None] * min(2, os.cpu_count() or 1)


def ask(*request: Any) -> bool:
    """Have a function compiled, at most once by this process; without waiting for it.

    False: nobody is compiling it, nor will be.
    """
    with _lock:
        if request not in _given:
            _waiting[request] = None
        idle = [n for n, process in enumerate(_processes) if not _at_work(process)]
        if _waiting and idle and possible():
            requests = list(_waiting)
            _waiting.clear()
            process = _processes[idle[0]] = _start(requests, number=idle[0])
            _given.update(dict.fromkeys(requests, process))
        if request in _given:
            return _at_work(_given[request])
        return any(map(_at_work, _processes))


def _at_work(process: Any) -> bool:
    return process is not None and process.poll() is None


def compile_module(text: str, level: int, ready: str) -> bool:
    """Have another process do what `build.assembled` does, and wait; False if it did not."""
    process = _start([], [(text, level, ready)]) if possible() else None
    return process is not None and process.wait() == 0


def possible() -> bool:
    """Whether another process can compile for this one."""
    where = disk_cache.folder()
    if where is None or os.environ.get("TAPEGRAD_BACKGROUND") == "0":
        return False
    # A program that embeds Python, or was packed with it, is not called by the name of Python.
    python = os.path.basename(sys.executable or "").lower().startswith("python")
    if not python or getattr(sys, "frozen", False):
        return False
    above = next((path for path in (where, *where.parents) if path.exists()), where)
    return os.access(above, os.W_OK | os.X_OK)


def _start(requests: list[Request], modules: Sequence[Module] = (), number: int = 0) -> Any:
    """A process that compiles; it may outlive this one. None: it cannot be started.

    Of those with the same number, in all programs, one works at a time.
    """
    import subprocess

    paths = [path for path in sys.path if path]
    root = str(Path(__file__).parents[2])
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(paths if root in paths else [root, *paths]),
        "TAPEGRAD_BACKGROUND": "0",
        # Numba writes a message, in colours, for each form of an operation that does not fit.
        "NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING": "1",
    }
    with tempfile.TemporaryFile("w+") as given:  # not a pipe, which may be too short for them
        json.dump([requests, modules, number], given)
        given.seek(0)
        try:
            process = subprocess.Popen(
                [sys.executable, "-P", "-W", "ignore", "-m", "tapegrad", "compile", "--asked"],
                env=environment, stdin=given, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        except OSError:
            return None
    atexit.register(_forget, process)
    return process


def _forget(process: Any) -> None:
    """At the end: say that the process is known to go on, of which Python would warn."""
    if process.poll() is None:
        process.returncode = 0


@atexit.register
def _hand_over() -> None:
    """At the end: have compiled what waits for a process to finish."""
    if _waiting and possible():
        _start(list(_waiting))
        _waiting.clear()


def read_requests() -> tuple[list[Request], list[Module], int]:
    """What the process that compiles was asked for, and its number."""
    requests, modules, number = json.load(sys.stdin)
    return [(name, source, arity) for name, source, arity in requests], modules, number


@contextmanager
def alone(number: int) -> Iterator[None]:
    """Inside, no other process of this number compiles into the same folder."""
    if hasattr(os, "nice"):
        os.nice(5)
    where = disk_cache.folder()
    try:
        import fcntl
    except ImportError:  # on Windows: they compile side by side
        where = None
    if where is None:
        yield
        return
    where.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = os.open(where / f"compiling-{number}.lock", os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)

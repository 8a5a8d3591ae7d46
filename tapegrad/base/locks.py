"""Locks that a fork leaves free: it waits until no other thread holds one of them.

A child process has a copy of each lock, and of its parent's threads only the one that forked: what
another thread held then, nobody would release.  So a fork takes all locks first, with those of
Numba's compiler and of LLVM, and releases them on both sides.
"""

import os
import sys
import time
from _thread import RLock  # `threading` takes a millisecond to import
from contextlib import ExitStack
from typing import Any
from weakref import WeakSet

PATIENCE = 60.0  # seconds: whoever holds a lock may be waiting for what the fork is to do

_registry = RLock()
_locks: WeakSet[Any] = WeakSet()
_taken = ExitStack()


def lock() -> Any:
    """A reentrant lock."""
    made = RLock()
    with _registry:
        _locks.add(made)
    return made


def _take_all() -> Any:
    """Take all locks; or none, and give back one that another thread holds."""
    numba, llvm = map(sys.modules.get, ("numba.core.compiler_lock", "llvmlite.binding.ffi"))
    if numba is not None:
        _taken.enter_context(numba.global_compiler_lock)
    if llvm is not None:
        _taken.enter_context(llvm.lib._lock)
    _taken.enter_context(_registry)
    for each in _locks:
        if not each.acquire(blocking=False):
            _taken.close()  # the thread that holds it may want one of the others
            return each
        _taken.callback(each.release)
    return None


def _before_fork() -> None:
    end = time.monotonic() + PATIENCE
    while (busy := _take_all()) is not None and (left := end - time.monotonic()) > 0:
        if busy.acquire(timeout=left):
            busy.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_taken.close, after_in_child=_taken.close
    )

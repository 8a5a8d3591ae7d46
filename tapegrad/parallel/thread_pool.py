"""The thread pool for large arrays: it calls kernels, or Python functions, over parts.

A thread watches its mailbox in compiled code without the GIL (`kernels/row_launcher.py`), and calls
a kernel that is posted there at once.  When nothing came for about a millisecond it sleeps, and is
woken by the next task.  Threads share the calls of kernels: who comes late finds that others have
done its part.  There is one pool: whoever finds it busy does all of the work alone.
"""

from __future__ import annotations

import ctypes
import os
import time
from _thread import allocate_lock
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tapegrad.base.compile_stages import NotCompiled
from tapegrad.kernels.launch_abi import CALLBACK, IDLE, PARKED, POSTED, Launch, Mailbox

if TYPE_CHECKING:
    from queue import SimpleQueue

Work = Callable[[int, int], Any]

MOST = 256  # helpers

PATIENCE = 20_000  # pauses of 40 to 140 cycles each: about a millisecond


class Helper:
    """A thread with its mailbox."""

    __slots__ = ("at", "problem", "task", "wake")

    def __init__(self, at: int) -> None:
        self.at = at
        from queue import SimpleQueue  # which only threads need

        self.wake: SimpleQueue[None] = SimpleQueue()
        self.task: tuple[Work, int, int] | None = None
        self.problem: BaseException | None = None


_helpers: list[Helper] = []
_busy = allocate_lock()
_mail = np.zeros((MOST, Mailbox.SIZE), np.int64)
_mail_at = _mail.ctypes.data
# A helper may still look at its mailbox while the interpreter clears its modules away.
ctypes.pythonapi.Py_IncRef(ctypes.py_object(_mail))


def processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _hire(count: int) -> bool:
    """Have so many helpers; False: what they run, and `_together` calls, is not compiled yet."""
    import threading

    from tapegrad.kernels.codegen import kernel_table

    try:
        serve, post = kernel_table.drive("serve", 2), kernel_table.drive("post", 2)
        kernel_table.drive("finish", 5)
    except NotCompiled:
        return False
    while len(_helpers) < count:
        number = len(_helpers)
        helper = Helper(_mail_at + number * Mailbox.SIZE * 8)
        # Watching would take time from the very threads that are waited for.
        patience = PATIENCE if processors() > number + 1 else 0
        name, args = f"tapegrad-{number}", (helper, serve, post, patience)
        threading.Thread(target=_serve, args=args, name=name, daemon=True).start()
        _helpers.append(helper)
    return True


def _serve(helper: Helper, serve: Any, post: Any, patience: int) -> None:
    while True:
        if serve(helper.at, patience) == PARKED:
            helper.wake.get()
            continue
        assert helper.task is not None
        work, start, stop = helper.task
        try:
            work(start, stop)
        except BaseException as problem:  # handed to the thread that waits
            helper.problem = problem
        helper.task = None
        del work
        post(helper.at, IDLE)


def _together(count: int, state: int, launches: np.ndarray | None, work: Any = None) -> None:
    """Post a task to helpers, launch kernels or call a function, and wait for the helpers.

    Nobody writes once this has returned, and all is done even if an interruption comes: it is
    raised in the end.
    """
    from tapegrad.kernels.codegen import kernel_table

    post, finish = kernel_table.drive("post", 2), kernel_table.drive("finish", 5)
    at, many = (0, 0) if launches is None else (launches.ctypes.data, len(launches))
    waiting, posted = _helpers[:count], []
    interrupted: BaseException | None = None
    while True:
        try:
            while waiting:
                helper = waiting[-1]
                posted += [waiting[-1]]
                del waiting[-1]  # before it is done: a task must not be posted twice
                if post(helper.at, state) == PARKED:
                    helper.wake.put(None)
            if work is not None:
                own, work = work, None
                own()
            while finish(at, many, _mail_at, count, PATIENCE):
                time.sleep(1e-5)  # something else has the processor that a helper needs
            break
        except BaseException as problem:
            interrupted = problem
            for helper in posted:  # one that was about to be woken; the others look in vain
                helper.wake.put(None)
    if interrupted is not None:
        raise interrupted


_Launch = ctypes.c_int64 * Launch.SIZE
_rows: Callable[[int], int] | None = None


def call_here(launch: Sequence[int]) -> None:
    """Launch on this thread: see `launch_abi.Launch`."""
    global _rows
    if _rows is None:
        from tapegrad.kernels.codegen import kernel_table

        _rows = kernel_table.drive("rows", 1)
    words = _Launch(*launch)
    _rows(ctypes.addressof(words))


def call(launches: Sequence[Sequence[int]], threads: int = MOST) -> None:
    """Launch kernels on so many threads, at most one for each, which share all calls of them."""
    count = min(len(launches), threads) - 1
    if not 0 < count <= MOST or not _busy.acquire(blocking=False):
        for launch in launches:
            call_here(launch)
        return
    try:
        words = np.array(launches, np.int64)
        if not _hire(count):
            for launch in launches:
                call_here(launch)
            return
        _mail[:count, Mailbox.launches] = words.ctypes.data
        _mail[:count, Mailbox.count] = len(words)
        _mail[:count, Mailbox.own] = range(1, count + 1)
        _together(count, POSTED, words)
    finally:
        _busy.release()


def share(work: Work, edges: Sequence[int]) -> None:
    """Run a function of Python between neighbouring edges, each time on a thread of its own."""
    count = len(edges) - 2
    if not 0 < count <= MOST or not _busy.acquire(blocking=False):
        work(edges[0], edges[-1])
        return
    try:
        if not _hire(count):
            work(edges[0], edges[-1])
            return
        for k, helper in enumerate(_helpers[:count], 1):
            helper.task, helper.problem = (work, edges[k], edges[k + 1]), None
        _together(count, CALLBACK, None, lambda: work(edges[0], edges[1]))
        for problem in [helper.problem for helper in _helpers[:count]]:
            if problem is not None:
                raise problem
    finally:
        _busy.release()


def _after_fork() -> None:
    """A child process has none of its parent's threads."""
    global _busy
    _helpers.clear()
    _busy = allocate_lock()
    _mail[:] = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)

"""Locks that a fork leaves free."""

import os
import subprocess
import sys
import threading
import time

import pytest

from tapegrad.base import locks

pytestmark = pytest.mark.tapegrad_only("how tapegrad guards what its threads share")
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


def run(program):
    words = [sys.executable, "-W", "ignore", "-c", program]
    return subprocess.run(words, capture_output=True, text=True, timeout=60)


CHILD = """
import os, signal, threading, time
from tapegrad.base import locks

one, other = locks.lock(), locks.lock()
held = threading.Event()

def beside():
    with one:
        held.set()
        time.sleep(0.2)
        with other:
            time.sleep(0.2)

def free():
    return all(lock.acquire(timeout=5) for lock in (one, other))
"""


@forks
def test_a_fork_waits_for_what_other_threads_hold():
    program = """
thread = threading.Thread(target=beside)
thread.start()
held.wait()
child = os.fork()
if not child:
    os._exit(0 if free() else 1)
assert os.waitpid(child, 0)[1] == 0
assert free()
"""
    done = run(CHILD + program)
    assert done.returncode == 0, done.stderr


@forks
def test_a_fork_by_the_thread_that_holds_a_lock():
    done = run(CHILD + "one.acquire()\nif os.fork():\n    assert os.wait()[1] == 0\nassert free()")
    assert done.returncode == 0, done.stderr


@forks
def test_a_fork_that_is_waited_for_goes_ahead():
    """A thread that holds a lock until the fork is over would wait for ever."""
    program = """
locks.PATIENCE = 0.2
over = threading.Event()

def until_over():
    with one:
        held.set()
        over.wait()

thread = threading.Thread(target=until_over)
thread.start()
held.wait()
child = os.fork()
if not child:
    os._exit(0 if other.acquire(timeout=5) else 1)
assert os.waitpid(child, 0)[1] == 0
over.set()
thread.join()
assert free()
"""
    done = run(CHILD + program)
    assert done.returncode == 0, done.stderr


def test_a_lock_is_reentrant_and_keeps_others_out():
    lock = locks.lock()
    order = []

    def beside():
        with lock:
            order.append("beside")

    with lock, lock:
        thread = threading.Thread(target=beside)
        thread.start()
        time.sleep(0.05)
        order.append("here")
    thread.join()
    assert order == ["here", "beside"]

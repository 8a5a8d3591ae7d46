"""Where CPython may run something else in the middle of the library, one point after the other.

CPython looks for signals, other threads and (from 3.12 on) the collector when a function of Python
begins, after a function of C was called, and when a loop goes on.  `each_point` runs a program
again and again, and does something at one of these points in every run: the first in the first run,
and so on.
"""

import dis
import os
import sys
from itertools import pairwise

import numpy as np

import tapegrad
from tapegrad.tape.record_format import STRIDE

PACKAGE = os.path.dirname(tapegrad.__file__)
WATCHED = (PACKAGE, os.path.dirname(np.__file__), os.path.dirname(os.__file__) + "/contextlib.py")
LOOKS = frozenset(
    dis.opmap[name]
    for name in (
        "RESUME", "CALL", "CALL_FUNCTION_EX", "CALL_KW", "CALL_INTRINSIC_1", "JUMP_BACKWARD",
        "POP_JUMP_BACKWARD_IF_FALSE", "POP_JUMP_BACKWARD_IF_TRUE",
        "POP_JUMP_BACKWARD_IF_NONE", "POP_JUMP_BACKWARD_IF_NOT_NONE",
    )
    if name in dis.opmap
)  # fmt: skip
CALLS = frozenset(dis.opmap[n] for n in ("CALL", "CALL_FUNCTION_EX", "CALL_KW") if n in dis.opmap)


# Of the user's contexts: docs/limits.md says what an interruption as these begin leaves behind.
LIMITS = ("_Mode.__exit__", "saved_tensors_hooks.__exit__", "set_detect_anomaly.__exit__")


class Stop(KeyboardInterrupt):
    """What a signal handler raises."""


class Points:
    """Counts the points of a run, and acts at one of them."""

    def __init__(self, at, act):
        self.at = at
        self.act = act
        self.count = 0
        self.where = None
        self._code = {}
        self._before = {}
        self._python = {}

    def __enter__(self):
        sys.setprofile(self._profile)
        sys.settrace(self._called)
        return self

    def __exit__(self, *exception):
        sys.settrace(None)
        sys.setprofile(None)

    def _profile(self, frame, event, function):
        if event == "c_call":  # whatever Python code it runs, a point follows it
            self._python[frame] = None

    def _called(self, frame, event, _):
        caller = frame.f_back
        if caller in self._before and self._python.get(caller, False) is not None:
            self._python[caller] = True
        if not frame.f_code.co_filename.startswith(WATCHED):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        self._before[frame] = -1
        if frame.f_code.co_qualname not in LIMITS:
            self._point(frame)
        return self._step

    def _step(self, frame, event, _):
        if event == "return":
            self._before.pop(frame, None)
            self._python.pop(frame, None)
        if event != "opcode":
            return self._step
        code = frame.f_code
        codes = self._code.get(code)
        if codes is None:
            codes = self._code[code] = code.co_code
        before = self._before[frame]
        self._before[frame] = now = codes[frame.f_lasti]
        called = self._python.pop(frame, None)
        looks = before in LOOKS and before != dis.opmap["RESUME"]
        if looks and not (called and before in CALLS):
            self._point(frame)
        if now in CALLS:
            self._python[frame] = False
        return self._step

    def _point(self, frame):
        if self.count == self.at:
            self.where = f"{frame.f_code.co_filename}:{frame.f_lineno}"
            self.count += 1
            act, self.act = self.act, None
            self._before.clear()
            self._python.clear()
            sys.settrace(None)
            sys.setprofile(None)
            act()
        self.count += 1


def stop():
    raise Stop


def points_of(program):
    """How many points a run of a program has."""
    for _ in range(2):  # Python 3.13 tells of every instruction from the second call of a function
        with Points(-1, None) as points:
            program()
    return points.count


def state_of(tape):
    """What has to be as it was when nothing is under way."""
    return {
        "mode": (tape.mode == (tape.careful if tape.enabled else 0), tape.enabled, tape.inference),
        "sweeping": tape.sweeping,
        "depth": tape.depth,
        "levels": list(tape.levels),
        "hooks": list(tape.saved_hooks),
        "anomaly": tape.anomaly,
    }


def check_tape(tape):
    """Whether the lists beside the buffer say what it says."""
    count = tape.used
    assert count <= tape.capacity == len(tape.keep) == len(tape.tokens)
    assert len(tape.buffer) == (tape.capacity + 1) * STRIDE
    assert all(x is None for x in (*tape.keep[count:], *tape.tokens[count:]))
    tokens = tape.tokens[:count]
    assert all(a < b for a, b in pairwise(tokens))
    assert not count or tokens[-1] < tape.next
    assert [tape.index(position) for position in tokens] == list(range(count))
    words = tape.words()
    for index in range(count):
        for code in tape.inputs(index):
            assert code < tape.tokens[index]
            assert -code <= len(tape.leaves)
    assert all(tape.leaves[-code - 1]._pos == key for key, code in tape.slots.items())
    assert len(words) == count


def close(a, b):
    return all(np.allclose(x, y, rtol=1e-12, atol=0) for x, y in zip(a, b, strict=True))

"""Reachability passes in Python, where the compiled ones are not available."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from tapegrad.base.compile_stages import NotCompiled
from tapegrad.kernels.sweep import sweep_abi
from tapegrad.kernels.sweep.sweep_abi import BELOW, DONE, LEAF_REACHED, NEED_INSIDE, SPENT_RECORD
from tapegrad.tape.record_format import SPENT, WORD
from tapegrad.tape.tape import Tape

MANY = 512  # records from which on Python takes longer than to make room for compiled code


def mark(
    tape: Tape,
    reach: np.ndarray,
    need: np.ndarray | None,
    leaf_need: np.ndarray | None,
    low: int,
    top: int,
) -> tuple[int, int]:
    """Mark downwards what the roots reach; returns a status and the record concerned."""
    words = tape.words()
    for index in range(top, low - 1, -1):
        at = index - low
        if not reach[at]:
            continue
        if need is not None:
            if not need[at]:
                reach[at] = 0
                continue
            if not need[at] & NEED_INSIDE:
                continue
        if words[index, WORD] & SPENT:
            return SPENT_RECORD, index
        for code in tape.inputs(index):
            if code < 0 and leaf_need is not None:
                leaf_need[-code - 1] |= LEAF_REACHED
            if code > 0:
                below = tape.index(code)
                if below < low:
                    return (BELOW if low > 0 else SPENT_RECORD), index
                reach[below - low] = 1
    return DONE, 0


def needs(tape: Tape, need: np.ndarray, leaf_need: np.ndarray, low: int, top: int) -> None:
    """Mark upwards what leads to a target."""
    for index in range(low, top + 1):
        for code in tape.inputs(index):
            if (code < 0 and leaf_need[-code - 1] & 1) or (
                code > 0 and tape.index(code) >= low and need[tape.index(code) - low]
            ):
                need[index - low] |= NEED_INSIDE
                break


def propagate(tape: Tape, marks: np.ndarray, count: int) -> None:
    """Mark what marked records read, downwards; many by compiled code, if it is there already."""
    if count > MANY and sweep_abi.find() is not None:
        from tapegrad.autograd import workspace

        with suppress(NotCompiled):
            return workspace.propagate(tape, marks, count)
    words = tape.words()
    for index in range(count - 1, -1, -1):
        if marks[index] and not words[index, WORD] & SPENT:
            for code in tape.inputs(index):
                if code > 0:
                    below = tape.index(code)
                    if below >= 0:
                        marks[below] = 1
    return None

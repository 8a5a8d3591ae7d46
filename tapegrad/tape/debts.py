"""How much memory records and leaves owe: what a tape has to free before it takes much more.

A tape frees what nobody needs when it is full, and when what was recorded since takes much memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.tape.record_format import COMPLEX_SHIFT, SHAPE, SHARES, WORD
from tapegrad.tape.shape_table import shapes

DROP_FLOOR = 1 << 20  # bytes of recorded results from which on `drop_tail` runs
DEBT_FLOOR = 1 << 24  # bytes of recorded results before records are reclaimed
EACH = 1 << 12  # bytes more for each record in use, through all of which a reclamation goes
BORROWED = 1 << 17  # bytes of shared memory from which on a leaf owes nothing before its gradient
OWED = 1 << 13  # bytes of a leaf that the tape keeps as long as somebody else does


def owed(words: np.ndarray) -> int:
    """About how many bytes the results of records take that do not lie in other results."""
    sizes = shapes.sizes[words[:, SHAPE]] << (words[:, WORD] >> COMPLEX_SHIFT & 1)
    return 8 * int(sizes[(words[:, WORD] & SHARES) == 0].sum())


def owed_by(leaf: np.ndarray) -> int:
    """What a new leaf owes: its memory, if that is its own, and as much for its gradient; that of
    large shared memory is owed when it is there.
    """
    if leaf.base is None:
        return 2 * leaf.nbytes
    return leaf.nbytes if leaf.nbytes <= BORROWED else 0


def held(words: np.ndarray) -> int:
    """About how many bytes records hold with all that belongs to them."""
    return 1024 * len(words) + owed(words)


def limit(words: np.ndarray, leaves: list[Any]) -> int:
    """The debt from which on to reclaim, given the words of the survivors and what they read."""
    of_leaves = int(sum(leaf._a.nbytes for leaf in leaves))
    return max(DEBT_FLOOR, owed(words) + 2 * of_leaves) + EACH * len(words)

"""Lay broadcast operands out as rows, for loops over rows."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from tapegrad.tape.shape_table import Shape


class Grid(NamedTuple):
    """A result as `rows` rows of `n` elements, and how each operand is repeated over it."""

    rows: int
    n: int
    same_rows: tuple[bool, ...]  # every row reads the same elements
    same_element: tuple[bool, ...]  # every element of a row is the same number

    def fixed(self, k: int) -> bool:
        """Whether operand k is a single number for all of the result."""
        return self.same_element[k] and (self.rows == 1 or self.same_rows[k])

    def whole(self, k: int) -> bool:
        """Whether operand k is not broadcast at all."""
        return not self.same_element[k] and (self.rows == 1 or not self.same_rows[k])


@lru_cache(maxsize=4096)
def grid(shapes: tuple[Shape, ...], target: Shape) -> Grid | None:
    """The rows and columns of a result over which operands are broadcast, if two suffice."""
    found: list[tuple[int, tuple[bool, ...]]] = []
    rank = len(target)
    for d, length in enumerate(target):
        if length == 1:
            continue
        pattern = tuple(d < rank - len(s) or s[d - rank + len(s)] == 1 for s in shapes)
        if found and found[-1][1] == pattern:
            found[-1] = (found[-1][0] * length, pattern)
        else:
            found.append((length, pattern))
    none = (False,) * len(shapes)
    if not found:
        return Grid(1, 1, none, none)
    if len(found) == 1:
        return Grid(1, found[0][0], none, found[0][1])
    if len(found) == 2:
        return Grid(found[0][0], found[1][0], found[0][1], found[1][1])
    return None


def core(array: np.ndarray) -> np.ndarray:
    """An array without the repetitions of broadcasting; such a dimension gets the length 1."""
    if array.flags.c_contiguous or 0 not in array.strides:
        return array
    return array[tuple([slice(0, 1) if s == 0 else slice(None) for s in array.strides])]

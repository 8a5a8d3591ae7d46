"""Lists as heaps: the functions of `heapq`, which Numba has of lists of numbers and of tuples."""

from __future__ import annotations

import heapq
from typing import Any

from tapegrad.njit.numba_front.array_library import Function, defined
from tapegrad.njit.numba_front.components import is_opaque
from tapegrad.njit.numba_front.growing_lists import GROWING_HEAPS, HEAP_FUNCTIONS
from tapegrad.njit.numba_front.lists import Lists, width_of
from tapegrad.njit.numba_front.objects import NumbaIR, NumbaType, types
from tapegrad.njit.numba_front.order_library import by_rows, with_order
from tapegrad.njit.numba_front.writer import ZERO, Found
from tapegrad.njit.three_address_code import Unsupported

# The row `v` goes up from `pos`, no further than to `top`.  Where rows are equal, here and below
# the same ones move as in `heapq`, so that what they were computed from is the same.
_UP = """\
while pos > top:
 parent = (pos - 1) >> 1
 if not LESS(v, a[parent]):
  break
 a[pos] = a[parent]
 pos = parent
a[pos] = v"""
# It goes down from `top` to the last of `n` rows, and up again.
_DOWN = f"""\
pos, child = top, 2 * top + 1
while child < n:
 if child + 1 < n and not LESS(a[child], a[child + 1]):
  child += 1
 a[pos] = a[child]
 pos, child = child, 2 * child + 1
{_UP}"""
_BODIES = {
    "heappush": ("top, pos = 0, a.shape[0] - 1", "v = a[pos].copy()", _UP),
    "heapreplace": ("top, n = 0, a.shape[0]", "v = a[0].copy()", _DOWN),
    # The first one is put behind the rest, where it is taken off the list.
    "heappop": ("top, n = 0, a.shape[0] - 1", "v = a[n].copy()", "a[n] = a[0]", _DOWN),
    "heapify": (
        "n = a.shape[0]\nfor top in range(n // 2 - 1, -1, -1):",
        *(" " + line for line in ("v = a[top].copy()", *_DOWN.split("\n"))),
    ),
}


def _ordered(name: str, width: int) -> Function:
    """What moves the rows of a matrix, of which all but one are a heap."""
    return defined(name, "a", with_order("\n".join(_BODIES[name]), by_rows(width)))


class Heaps(Lists):
    """Writes the code of calls of `heapq`."""

    def builtin(self, key: Any, e: NumbaIR, t: NumbaType, target: NumbaIR) -> Found | None:
        """A call of a function that Numba knows; those of `heapq`."""
        heap = e.args[0] if key in HEAP_FUNCTIONS and not e.kws else None
        if heap is None or not isinstance(self.type(heap), types.List):
            return super().builtin(key, e, t, target)
        kind, name = self.type(heap), key.__name__
        if is_opaque(kind):
            raise Unsupported(f"`{name}` of {kind}: hold these in arrays, or in a tuple")
        pointer, count = self.names(heap)
        if key in GROWING_HEAPS:
            self.require_growth(heap, name)
        if key is heapq.heappush:
            self.append(heap, kind, (self.get(e.args[1], kind.dtype), kind.dtype))
        elif key is not heapq.heapify:
            self.require(self.emit("gt", [count, ZERO], "i1"))
        if key is heapq.heapreplace:
            first = self.load_item([pointer], kind, ZERO)
            self.store_item([pointer], kind, ZERO, (self.get(e.args[1], kind.dtype), kind.dtype))
        self.inline(_ordered(name, width_of(kind)), [self.rows_of([pointer, count], kind)])
        if key is heapq.heappop:
            return self.pop(heap, kind, None)
        return first if key is heapq.heapreplace else ([], t)

"""What the compiled road knows of views: what makers said, and would say again."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.kernels.road.frame import HELD, SIGHT, SIGHTS_KNOWN
from tapegrad.record import address
from tapegrad.storage import root
from tapegrad.views import Maker, Sight, Sights, Way, cut_of, shown, way_of

MANY = 4 * SIGHTS_KNOWN  # things that may be held for all calls


class Known:
    """The calls that compiled code answers alone; see `kernels.road.frame` for the lines."""

    def __init__(self) -> None:
        self.lines: np.ndarray = np.zeros((SIGHTS_KNOWN, SIGHT), np.int64)
        self.held: dict[int, tuple[Any, ...]] = {}
        self.things = 0

    def learn(
        self, maker: Maker, args: tuple[Any, ...], named: dict[str, Any], told: np.ndarray
    ) -> Any:
        """What a maker makes, as Tensors; where it raises nothing is learnt.

        `told` are the number of the line and the words of the call.  The first argument is a
        Tensor.
        """
        made = maker(*args, **named)
        found = shown(made)
        a = args[0]._a
        views: list[tuple[Way, np.ndarray]] = []
        if isinstance(made, Sight) and made.x is args[0] and root(made.r) is root(a):
            views = [(way_of(made.op, a, made.params, made.r, made.key), made.r)]
        elif isinstance(made, Sights) and len(found) <= SIGHTS_KNOWN:
            ways = cut_of(a, made.key, made.indices).ways
            views = [(way, t._a) for way, t in zip(ways, found, strict=True)]
        line, *words = told.tolist()
        row = [len(words), *words, isinstance(made, Sights), len(views)]
        for way, r in views:
            start = address(r) - address(a) if r.size else 0
            row += [way.word, way.shape, way.aux, start, r.ndim, *r.shape, *r.strides]
        self._know(line, np.array(row, np.int64), ((maker, *named), *[way for way, _ in views]))
        return found

    def _know(self, line: int, block: np.ndarray, others: tuple[Any, ...]) -> None:
        """Have a line say what stands in a block, and hold that and what it names."""
        if self.things > MANY:
            for k in range(SIGHTS_KNOWN):
                self._put(k, 0, 0)
            self.things = 0
        self.things += len(others)
        held = (block, *others)
        self.held[id(held)] = held
        self._put(line, address(block), id(held))

    def _put(self, line: int, block_at: int, held_at: int) -> None:
        """Let go of what was held only where a line has named it: another thread may be here."""
        before = int(self.lines[line, HELD])
        self.lines[line] = block_at, held_at
        self.held.pop(before, None)

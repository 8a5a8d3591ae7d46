"""What the compiled road knows of views: what makers said, and would say again."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.kernels.road.frame import HELD, SIGHT, SIGHTS_KNOWN
from tapegrad.record import address
from tapegrad.views import Maker, Sight, Sights, Way, cut_of, see, see_all, way_of

MANY = 4 * SIGHTS_KNOWN  # views of all calls that are known


class Known:
    """The calls that compiled code answers alone; see `kernels.road.frame` for the lines."""

    def __init__(self) -> None:
        self.lines: np.ndarray = np.zeros((SIGHTS_KNOWN, SIGHT), np.int64)
        self.held: dict[int, tuple[Any, ...]] = {}
        self.views = 0

    def learn(
        self, maker: Maker, args: tuple[Any, ...], named: dict[str, Any], told: np.ndarray
    ) -> Any:
        """What a maker makes, as Tensors; where it raises nothing is learnt.

        `told` are the number of the line and the words of the call.  The first argument is a
        Tensor.
        """
        made = maker(*args, **named)
        a = args[0]._a
        if isinstance(made, Sight):
            way = way_of(made.op, a, made.params, made.r, made.key)
            self._know(told, (maker, *named), a, [(way, made.r)], several=False)
            return see(*made)
        if isinstance(made, Sights):
            found = see_all(*made)
            if len(found) <= SIGHTS_KNOWN:
                ways = cut_of(a, made.key, made.indices).ways
                views = [(way, t._a) for way, t in zip(ways, found, strict=True)]
                self._know(told, (maker, *named), a, views, several=True)
            return found
        self._know(told, (maker, *named), a, [], several=False)
        return made

    def _know(
        self,
        told: np.ndarray,
        kept: tuple[Any, ...],
        a: np.ndarray,
        views: list[tuple[Way, np.ndarray]],
        *,
        several: bool,
    ) -> None:
        line, *words = told.tolist()
        row = [len(words), *words, several, len(views)]
        for way, r in views:
            start = address(r) - address(a) if r.size else 0
            row += [way.word, way.shape, way.aux, start, r.ndim, *r.shape, *r.strides]
        block = np.array(row, np.int64)
        if self.views > MANY:
            for k in range(SIGHTS_KNOWN):
                self._put(k, 0, 0)
            self.views = 0
        self.views += len(views)
        held = (block, kept, *[way for way, _ in views])
        self.held[id(held)] = held
        self._put(line, address(block), id(held))

    def _put(self, line: int, block_at: int, held_at: int) -> None:
        """Let go of what was held only where a line has named it: another thread may be here."""
        before = int(self.lines[line, HELD])
        self.lines[line] = block_at, held_at
        self.held.pop(before, None)

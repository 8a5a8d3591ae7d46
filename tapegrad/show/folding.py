"""Long sequences of records as a few runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

LIMIT = 60  # boxes up to which each record has its own
PERIOD = 40  # records of the longest loop body that is looked for
ENDS = 10  # runs at each end that stay as they are


class Run(NamedTuple):
    """Consecutive records: from `start` up to `end`, the same `period` of them again and again."""

    start: int
    end: int
    period: int = 0  # 0: they do not repeat

    def title(self, ops: Sequence[str]) -> str:
        """The operations of the run, the most frequent first where they do not repeat."""
        if self.period:
            names = [*ops[self.start : self.start + self.period]]
        else:
            names = [name for name, _ in Counter(ops[self.start : self.end]).most_common()]
        return ", ".join(names[:3]) + (f", {len(names) - 3} more" if len(names) > 3 else "")

    @property
    def detail(self) -> str:
        """How many records there are, and how often they repeat."""
        count = self.end - self.start
        times = f"{count // self.period} times, " if self.period else ""
        return f"{times}{count} records"


def runs(
    ops: Sequence[str], alone: AbstractSet[int] = frozenset(), limit: int = LIMIT
) -> list[Run]:
    """The records as runs: one each while they are few, else what repeats, then neighbours.

    Those whose indices are in `alone` stay alone.

    >>> ops = ["getitem", *["mul", "sin"] * 50, "sum"]
    >>> for run in runs(ops):
    ...     print(run.title(ops), run.end - run.start)
    getitem 1
    mul, sin 100
    sum 1
    """
    if len(ops) <= limit:
        return [Run(k, k + 1) for k in range(len(ops))]
    found, start = list[Run](), 0
    while start < len(ops):
        period, end = (0, start + 1) if start in alone else _repeated(ops, start, alone)
        found.append(Run(start, end, period))
        start = end
    return found if len(found) <= limit else _joined(found, alone, limit)


def _repeated(ops: Sequence[str], start: int, alone: AbstractSet[int]) -> tuple[int, int]:
    """The period at which most records from a start repeat, three times or more, and their end."""
    best, farthest = 0, start + 1
    for period in range(1, min(PERIOD, (len(ops) - start) // 3) + 1):
        end = start + period
        while end < len(ops) and ops[end] == ops[end - period] and end not in alone:
            end += 1
        end = start + (end - start) // period * period
        repeats = end - start >= 3 * period and alone.isdisjoint(range(start, start + period))
        if repeats and end > farthest:
            best, farthest = period, end
    return best, farthest


def _joined(found: list[Run], alone: AbstractSet[int], limit: int) -> list[Run]:
    """Neighbours among the runs as one, but at the two ends."""
    middle = found[ENDS:-ENDS]
    size = -(-len(middle) // max(limit - 2 * ENDS, 1))
    joined: list[Run] = []
    parts = 0
    for run in middle:
        if joined and parts < size and not {joined[-1].start, run.start} & alone:
            joined[-1] = Run(joined[-1].start, run.end)
            parts += 1
        else:
            joined.append(run)
            parts = 1
    return [*found[:ENDS], *joined, *found[-ENDS:]]

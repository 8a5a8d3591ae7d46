"""Update parameters and their state in one loop, which is made of the rule of the update."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import Any

import numpy as np

from tapegrad.base.compile_stages import NotCompiled
from tapegrad.kernels import build
from tapegrad.kernels.codegen import kernel_table, rule_codegen
from tapegrad.ops.large import COMPILED
from tapegrad.parallel.large_elementwise import SPLIT, address, edges, launch

BLOCK = 1 << 16  # elements that all operations of an update take while they are in the cache
# Elements that NumPy updates until it is looked again whether there is a loop, and what a parameter
# counts for, however small.
PATIENCE, CALL = 1 << 20, 1 << 12
_TYPES = {"d": "f8", "f": "f4"}
Rule = Callable[..., tuple[Any, ...]]
Form = tuple[Any, ...]  # what decides which operations an update consists of
Kind = tuple[str, int]  # the type of arrays, and how many belong to a parameter
Work = tuple[Any, list[np.ndarray]]  # numbers; the parameter, its gradient and its state


class FusedUpdate:
    """An update by a rule, which is written once, over operations.

    `rule` takes a tuple that decides its form, one of numbers, and the elements of the parameter,
    of its gradient and of its state.  It gives the new elements of the parameter and of the state.
    Run on symbols it makes a loop, which is compiled in the background where the machine has none
    yet; until then, and for other layouts, it runs on arrays.  Both round alike.
    """

    def __init__(self, rule: Rule, numbers: type[Any]) -> None:
        self.rule = rule
        self.numbers = numbers  # the NamedTuple of them
        self._loops: dict[tuple[Form, Kind], kernel_table.Kernel] = {}
        self._patience: dict[tuple[Form, Kind], int] = {}

    def __call__(self, form: Form, work: Sequence[Work]) -> None:
        """Update parameters and their state: by one call of a loop those that follow each other."""
        for kind, run in groupby(work, _kind):
            alike = list(run)
            loop = None if kind is None else self._loop(form, kind, alike)
            if kind is not None and loop is not None:
                _launch(loop, kind, alike)
                continue
            for numbers, arrays in alike:
                for block in cache_blocks(arrays):
                    values = self.rule(form, numbers, *block)
                    for target, value in zip((block[0], *block[2:]), values, strict=True):
                        if value is not target:
                            target[...] = value

    def _loop(self, form: Form, kind: Kind, work: list[Work]) -> kernel_table.Kernel | None:
        """The loop of a form, if there is one; looked for if NumPy has done much since."""
        found = self._loops.get((form, kind))
        if found is not None:
            return found
        key, size = (form, kind), sum(arrays[0].size for _, arrays in work)
        left = self._patience.get(key, 0)
        if left > 0:
            self._patience[key] = left - size - CALL * len(work)
            return None
        asking = key in self._patience or size >= COMPILED
        self._patience[key] = PATIENCE
        source = self.source(form, kind)
        if not build.is_compiled("kernel", source, kernel_table.ARGUMENTS, asking=asking):
            return None
        try:
            loop = self._loops[key] = kernel_table.from_source(source)
        except NotCompiled:
            return None
        return loop

    def source(self, form: Form, kind: Kind) -> str:
        """The source of a loop."""
        char, count = kind
        arrays = ["p", "g", *[f"s{k}" for k in range(count - 2)]]
        names = self.numbers._fields
        numbers = self.numbers(*map(rule_codegen.Symbol, names))
        values = self.rule(form, numbers, *map(rule_codegen.Symbol, arrays))
        written = dict(zip(["p", *arrays[2:]], values, strict=True))
        return rule_codegen.update_source(written, arrays, names, _TYPES[char])


def _kind(work: Work) -> Kind | None:
    """The type and the number of arrays, if a loop may take them."""
    arrays = work[1]
    dtype = arrays[0].dtype
    for a in arrays:
        if a.dtype is not dtype or not a.flags.c_contiguous:
            return None
    return (dtype.char, len(arrays)) if dtype.char in _TYPES else None


def _launch(loop: kernel_table.Kernel, kind: Kind, work: list[Work]) -> None:
    """Call a loop for parameters; large ones are shared among threads."""
    char, count = kind
    rows: list[int] = []
    held, at, last = [], 0, None
    for numbers, arrays in work:
        if numbers is not last:
            last = numbers
            held.append(array(char, numbers))
            at = held[-1].buffer_info()[0]
        size = arrays[0].size
        if size < 2 * SPLIT:
            rows += (size, at, *map(address, arrays))
            continue
        for start, stop in pairwise(edges(size)):
            rows += (stop - start, at, *[address(a) + start * a.itemsize for a in arrays])
    table, width = array("q", rows), 2 + count
    calls = len(rows) // width
    weight = sum(rows[::width]) // calls
    launch(loop, 1, calls, table.buffer_info()[:1], (), (8 * width,), weight)


def cache_blocks(arrays: Sequence[np.ndarray]) -> Iterator[Sequence[np.ndarray]]:
    """Arrays of one shape in blocks of real numbers, which an update writes to.

    Several operations on a block find it in the cache, where those on whole arrays would each wait
    for memory.
    """
    first = arrays[0]
    if first.dtype.kind == "c":
        yield from cache_blocks([a.real for a in arrays])
        yield from cache_blocks([a.imag for a in arrays])
    elif first.size <= BLOCK:
        yield arrays
    else:
        rows = max(1, BLOCK * len(first) // first.size)
        for start in range(0, len(first), rows):
            yield [a[start : start + rows] for a in arrays]

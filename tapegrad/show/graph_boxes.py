"""The boxes that a tape's slice is drawn as: of runs of records, of leaves, of constants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tapegrad.autograd.pullback import spec_at
from tapegrad.base.dtypes import get_default_dtype, of_numpy
from tapegrad.ops.graph_nodes import grad_name
from tapegrad.show.folding import Run, runs
from tapegrad.show.graph_svg import CONSTANT, LEAF, RELEASED, VALUE, Box
from tapegrad.show.named_slice import NamedSlice, Operand, value_text

TOGETHER = 4  # leaves, or constants, up to which those with the same readers have a box each
PLURALS = {LEAF: "leaves", CONSTANT: "constants"}
Edge = tuple[int, int]


class Swept(NamedTuple):
    """What a sweep found of a leaf or a record: its value if that is known, and its adjoint."""

    value: np.ndarray | None
    adjoint: np.ndarray


class Source(NamedTuple):
    """A leaf or a constant: `key` tells it from others, `name` is the caller's."""

    kind: str
    key: Any
    name: str


class Boxes:
    """The boxes of a slice, and the edges between them.

    Of a sweep, `swept` has what it found, by codes. Then records show their positions and values.
    """

    def __init__(self, part: NamedSlice, swept: Mapping[int, Swept] | None = None) -> None:
        self.part, self.swept = part, swept
        indices, tokens = part.indices, part.tape.tokens
        self.ops = [part.tape.record(index).op for index in indices]
        alone = {k for k, i in enumerate(indices) if tokens[i] in part.names or i == part.top}
        self.runs = runs(self.ops, alone)
        self.run_of = {
            tokens[indices[i]]: k
            for k, run in enumerate(self.runs)
            for i in range(run.start, run.end)
        }
        self.sources: dict[Source, Box] = {}
        self.reads: list[tuple[Source | int, int]] = []  # a source or a run, and who reads it

    def drawn(self) -> tuple[list[Box], list[Edge]]:
        """Boxes, sources first, and edges by their numbers."""
        for k, run in enumerate(self.runs):
            self._read(k, run)
        boxes, place = self._stacked()
        first = len(boxes)
        boxes += [self._of_run(run) for run in self.runs]
        edges: dict[tuple[int, ...], Edge] = {}
        for n, (source, k) in enumerate(self.reads):
            a, b = source + first if isinstance(source, int) else place[source], k + first
            merged = boxes[a].stacked or boxes[b].stacked
            edges[(a, b) if merged else (a, b, n)] = (a, b)
        return boxes, [*edges.values()]

    def _read(self, k: int, run: Run) -> None:
        """Note what the records of a run read."""
        alone = run.end - run.start == 1
        for i in range(run.start, run.end):
            for n, operand in enumerate(self.part.operands(self.part.indices[i])):
                if operand.code > 0:
                    below = self.run_of.get(operand.code, k)
                    self.reads += [(below, k)] if below != k else []
                    continue
                source = self._source(operand, (i, n))
                if alone or source.name or source.kind == LEAF:
                    self.reads.append((source, k))
                    if source not in self.sources:
                        self.sources[source] = self._of_source(source, operand)

    def _source(self, operand: Operand, where: tuple[int, int]) -> Source:
        code, array = operand.code, operand.constant
        if code < 0:
            return Source(LEAF, code, self.part.names.get(code, ""))
        name = "" if array is None else self.part.constant_name(array)
        return Source(CONSTANT, name or (where if array is None else id(array)), name)

    def _stacked(self) -> tuple[list[Box], dict[Source, int]]:
        """The boxes of sources, and which each has: many that the same runs read share one."""
        readers: dict[Source, dict[int, None]] = {}
        for source, k in self.reads:
            if isinstance(source, Source):
                readers.setdefault(source, {})[k] = None
        alike: dict[tuple[Any, ...], list[Source]] = {}
        for source, found in readers.items():
            key = (source.kind, *found, source.name and source)
            alike.setdefault(key, []).append(source)
        boxes: list[Box] = []
        place: dict[Source, int] = {}
        for sources in alike.values():
            if len(sources) > TOGETHER:
                place |= dict.fromkeys(sources, len(boxes))
                kind = sources[0].kind
                title = f"{len(sources)} {PLURALS[kind]}"
                boxes.append(Box(kind, title, "read together", title, stacked=True))
            else:
                place |= {source: len(boxes) + n for n, source in enumerate(sources)}
                boxes += [self.sources[source] for source in sources]
        return boxes, place

    # -- single boxes ----------------------------------------------------------------------

    def _of_source(self, source: Source, operand: Operand) -> Box:
        array = operand.constant
        if source.kind == LEAF:
            array = self.part.tape.leaves[-operand.code - 1]._a
            title = self.part.label(operand.code)
            detail = _size_text(array)
        else:
            known = array is not None and array.size == 1
            title = source.name or (value_text(array) if known else "constant")
            detail = "constant" if known and not source.name else _size_text(array)
        size = "" if array is None else f" of shape {array.shape}, {of_numpy(array.dtype).name}"
        tip = f"{title}: {source.kind}{size}"
        return self._with_adjoint(Box(source.kind, title, detail, tip), operand.code)

    def _of_run(self, run: Run) -> Box:
        part, tape = self.part, self.part.tape
        indices = part.indices[run.start : run.end]
        positions = tuple([tape.tokens[index] for index in indices])
        released = sum(map(part.released, indices))
        kind = RELEASED if released == len(indices) else VALUE
        root = indices[-1] == part.top
        if len(indices) > 1:
            title, detail = run.title(self.ops), run.detail
            tip = f"{title}: {detail}, positions {positions[0]} to {positions[-1]}"
            tip += f", {released} released" if released else ""
            return Box(kind, title, detail, tip, positions, stacked=True, root=root)
        position, op, _, shape, state = tape.record(indices[0])
        dtype = of_numpy(spec_at(tape, indices[0]).dtype)
        name = part.names.get(position, "" if self.swept is None else str(position))
        found = None if self.swept is None else self.swept.get(position)
        if found is None or found.value is None:
            detail = " ".join(filter(None, [name, str(shape), _unusual(dtype)]))
        else:
            detail = f"{name} = {value_text(found.value)}"
        tip = (
            f"{op} at {position}: shape {shape}, {dtype.name}, {grad_name(tape, position)}, {state}"
        )
        return self._with_adjoint(Box(kind, op, detail, tip, positions, root=root), position)

    def _with_adjoint(self, box: Box, code: int) -> Box:
        """A box of a leaf or a record, with what a sweep has found."""
        found = None if self.swept is None else self.swept.get(code)
        if found is None:
            return box
        text = f"adjoint {value_text(found.adjoint)}"
        return box._replace(adjoint=text, label=self.part.label(code))


def _size_text(array: np.ndarray | None) -> str:
    """A number as it is, of an array the shape; the dtype unless it is the default one."""
    if array is None:
        return "not kept"
    text = value_text(array) if array.ndim == 0 else str(array.shape)
    return " ".join(filter(None, [text, _unusual(of_numpy(array.dtype))]))


def _unusual(dtype: Any) -> str:
    return "" if dtype is get_default_dtype() else str(dtype.name)

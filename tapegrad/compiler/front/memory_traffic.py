"""The steps of a compiled program as text: loop nests and calls, with the bytes that each moves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import NamedTuple

from tapegrad.base.text_tables import byte_count
from tapegrad.compiler.ir.buffers import SCRATCH, Place, c_strides
from tapegrad.compiler.ir.loop_nest import ADD, SET, Gathers, Nest
from tapegrad.compiler.schedule.step_ir import (
    BoundsCheck,
    Call,
    ControlStep,
    Copy,
    Gemm,
    GemmCheck,
    RoutineCall,
    ScheduleState,
    SmallMatmul,
    Step,
)
from tapegrad.tape.shape_table import Shape


class ProgramStep(NamedTuple):
    """A step of a compiled program: what it is, the bytes that it moves, and its lines as text.

    `depth` counts the loops and branches that it stands in; what it moves is of one trip.

    >>> import tapegrad as tg, numpy as np
    >>> (step,) = tg.jit(lambda x: x * x).lower(np.ones(1000)).steps
    >>> step.kind, step.read, step.written
    ('loop nest', 8000, 8000)
    """

    kind: str
    domain: Shape
    read: int
    written: int
    lines: tuple[str, ...]
    depth: int

    def __str__(self) -> str:
        over = f" over {_shape(self.domain)}" if self.domain else ""
        moved = f"reads {byte_count(self.read)}, writes {byte_count(self.written)}"
        text = [f"{self.kind}{over}: {moved}", *(f"    {line}" for line in self.lines)]
        return "\n".join("    " * self.depth + line for line in text)


def program_steps(schedule: ScheduleState, depth: int = 0) -> Iterator[ProgramStep]:
    """The steps of a schedule, those of its loops and branches after each of these."""
    for step, nest in zip(schedule.steps, schedule.nests, strict=True):
        if nest is not None:
            yield _of_nest(step, nest, depth)
        else:
            yield _of_call(step, depth)
        if isinstance(step, ControlStep):
            for graph in step.graphs:
                yield from program_steps(graph, depth + 1)


def _of_nest(step: Step, nest: Nest, depth: int) -> ProgramStep:
    gathers = nest.gathers or ((),) * (len(nest.loads) + len(nest.stores))
    of_loads, of_stores = gathers[: len(nest.loads)], gathers[len(nest.loads) :]
    reads = {
        (id(place.buffer), place.offset, place.strides, found): _moved(place, nest.domain, found)
        for place, found in zip(nest.loads, of_loads, strict=True)
    }
    read, written = sum(reads.values()), 0
    for store, found in zip(nest.stores, of_stores, strict=True):
        moved = _moved(store.place, nest.domain, found)
        written += moved
        read += moved if store.mode == ADD else 0
    kind = {Copy: "copy", BoundsCheck: "bounds check", GemmCheck: "check for NaN"}
    name = kind.get(type(step), "loop nest")
    return ProgramStep(name, nest.domain, read, written, tuple(_lines(nest, gathers)), depth)


def _of_call(step: Step, depth: int) -> ProgramStep:
    if isinstance(step, Gemm):
        kind, given, outs = "matrix product by BLAS", [step.a, step.b], [step.out]
    elif isinstance(step, SmallMatmul):
        kind, given, outs = "small matrix product", step.given[:2], step.given[2:]
    elif isinstance(step, Call):
        kind, given, outs = f"`{step.node.name}` in Python", step.args, [step.out]
    elif isinstance(step, RoutineCall):
        kind, given, outs = f"`{step.node.name}` by a routine", step.args, [step.out]
    else:
        assert isinstance(step, ControlStep)
        trips = "" if step.trips in (1, None) else f", {step.trips} iterations"
        kind, given, outs = f"`{step.node.name}`{trips}", step.args, [*step.outs.values()]
    line = f"{', '.join(map(_named, outs))} = f({', '.join(map(_named, given))})"
    read, written = (sum(_moved(p, p.shape, ()) for p in places) for places in (given, outs))
    return ProgramStep(kind, (), read, written, (line,), depth)


def _moved(place: Place, domain: Shape, gathers: Gathers) -> int:
    """The bytes of the elements that a window touches; at most, where indices choose them."""
    strides = place.strides
    steps = zip(domain, strides, strict=True)
    count = prod(domain) if gathers else prod([n for n, s in steps if s])
    return int(count) * place.buffer.dtype.itemsize if 0 not in domain else 0


def _lines(nest: Nest, gathers: Sequence[Gathers]) -> Iterator[str]:
    """The loads, the operations and the stores of a nest."""

    def window(k: int, place: Place) -> str:
        added = "".join(f" + x{at}*{stride}" for at, stride, _ in gathers[k])
        plain = not place.offset and place.strides == c_strides(nest.domain) and not added
        steps = f"[{place.offset}{added} : {' '.join(map(str, place.strides))}]"
        return _named(place) + ("" if plain else steps)

    def operand(at: int) -> str:
        return f"x{~at}" if at < 0 else f"t{at}"

    for k, place in enumerate(nest.loads):
        yield f"x{k} = {window(k, place)}"
    for k, term in enumerate(nest.terms):
        args = [operand(at) for at in term.args]
        args += [] if term.constant is None else [str(term.constant)]
        yield f"t{k} = {term.name}({', '.join(args)})"
    for k, store in enumerate(nest.stores, len(nest.loads)):
        source, target = operand(store.source), window(k, store.place)
        if store.mode in (SET, ADD):
            yield f"{target} {'=' if store.mode == SET else '+='} {source}"
        else:
            yield f"{target} = {store.mode}.reduce({source})"


def _named(place: Place) -> str:
    buffer = place.buffer
    number = f"+{buffer.offset}" if buffer.kind == SCRATCH else str(buffer.number)
    return f"{buffer.kind}{number}"


def _shape(shape: Shape) -> str:
    return " x ".join(map(str, shape))

"""The steps of a program (loop nests, copies, calls), and the state of scheduling a graph."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from tapegrad.compiler.ir.buffers import CONSTANT, SCRATCH, Buffer, Place, whole
from tapegrad.compiler.ir.control_ops import BRANCH, Repeat
from tapegrad.compiler.ir.graph import Graph, Node
from tapegrad.compiler.ir.loop_nest import MAX, MIN, SET, SUM, Nest, Store, Term, nest_of, supported
from tapegrad.compiler.ir.piecewise import Section, VirtualConcats
from tapegrad.compiler.llvm.function_builder import Routine
from tapegrad.compiler.schedule.speculative_products import ExactNest
from tapegrad.ops.core import Spec
from tapegrad.tape.shape_table import Shape

COPIED = 256  # bytes of a carry up to which it is copied after each trip
# How a record is scheduled.
MAP, REDUCE, WINDOW, LEAF, MATRIX, PIECES, JOINED, GATHER, SCATTER, SCAN, NATIVE = (
    "map", "reduce", "window", "leaf", "matrix", "pieces", "joined", "gather", "scatter", "scan",
    "native",
)  # fmt: skip
ROUTINE, COLLECT, CALL, NESTED = "routine", "collect", "call", "nested"


class Loop:
    """A loop being fused; `exact` is run where its last store holds True."""

    __slots__ = ("again", "domain", "exact", "joined", "members", "nodes", "stores", "thinned")

    def __init__(self, domain: Shape) -> None:
        self.domain = domain
        self.nodes: list[int] = []
        self.members: set[int] = set()
        self.again: set[int] = set()  # recomputed: another loop has computed it before
        self.joined: set[int] = set()  # virtual joins that it reads
        self.thinned = False  # whether another loop recomputes some of it instead
        self.stores: list[tuple[int, Place, str]] = []
        self.exact: ExactNest | None = None


class Gemm:
    """Products of two matrices by BLAS, `count` of them: windows over (count, rows, columns)."""

    __slots__ = ("a", "b", "out")

    def __init__(self, a: Place, b: Place, out: Place) -> None:
        self.a, self.b, self.out = a, b, out


class GemmCheck:
    """Recompute results, by a nest, where their sum is NaN."""

    __slots__ = ("nest", "redo", "result")

    def __init__(self, out: Place, result: Place, redo: Nest) -> None:
        self.result, self.redo = result, redo
        total = result._replace(shape=out.shape, strides=(0,) * len(out.shape))
        self.nest = Nest(out.shape, (out,), (), (Store(~0, total, SUM),))


class Call:
    """An operation that Python computes."""

    __slots__ = ("args", "node", "out")

    def __init__(self, node: Node, args: list[Place], out: Place) -> None:
        self.node, self.args, self.out = node, args, out


class RoutineCall:
    """An operation that a routine computes from the windows `given`.

    Where the routine fails, Python computes the operation.
    """

    __slots__ = ("args", "given", "node", "out", "routine")

    def __init__(
        self, node: Node, args: list[Place], out: Place, given: list[Place], routine: Routine
    ) -> None:
        self.node, self.args, self.out = node, args, out
        self.given, self.routine = given, routine


class SmallMatmul:
    """A product of small matrices.

    A strong one has a nest, of the same windows, which the routine calls by the name `{redo}` where
    the result has what is no number.
    """

    __slots__ = ("given", "redo", "routine")

    def __init__(self, given: list[Place], routine: Routine, redo: Nest | None) -> None:
        self.given, self.routine, self.redo = given, routine, redo

    @property
    def size(self) -> int:
        """The number of multiplications."""
        a, _, out = self.given
        return prod(out.shape) * a.shape[-1]


class Copy:
    """A copy of a source (a place or a number) over a target."""

    __slots__ = ("mode", "source", "target")

    def __init__(self, source: Place | float, target: Place, mode: str = SET) -> None:
        self.source, self.target, self.mode = source, target, mode


class FixedNest:
    """A nest that nothing is fused into."""

    __slots__ = ("nest",)

    def __init__(self, nest: Nest) -> None:
        self.nest = nest


class BoundsCheck:
    """A bounds check of an index array."""

    __slots__ = ("allowed", "index", "nest", "result")

    def __init__(self, index: Place, allowed: range, result: Place) -> None:
        self.allowed, self.index, self.result = allowed, index, result
        low, high = [
            Store(~0, Place(result.buffer, k, index.shape, (0,) * len(index.shape)), mode)
            for k, mode in enumerate((MIN, MAX))
        ]
        self.nest = Nest(index.shape, (index,), (), (low, high))


class ControlStep:
    """A loop or a branch: operands in C order, results by number, and its graphs' schedules.

    `work` is what it needs of scratch memory.
    """

    __slots__ = ("args", "graphs", "node", "outs", "work")

    def __init__(self, node: Node, args: list[Place], graphs: list[ScheduleState]) -> None:
        self.node, self.args, self.graphs = node, args, graphs
        self.outs: dict[int, Place] = {}
        self.work = Buffer(SCRATCH, 0, np.dtype(np.uint8), _work(node, graphs))

    @property
    def trips(self) -> int | None:
        """The trip count of the same code; None if it is known only at run time."""
        return 1 if self.node.op is BRANCH else self.node.params["form"].trips

    def places(self) -> list[Place]:
        """The places read and written, in the order of its function's parameters."""
        return [*self.args, *self.outs.values(), whole(self.work, ())]


def nbytes(spec: Spec) -> int:
    """The bytes of a value."""
    return int(np.prod(spec.shape, dtype=np.int64)) * spec.dtype.itemsize


def _work(node: Node, graphs: list[ScheduleState]) -> int:
    """Scratch memory of a loop or a branch: of one graph at a time, and for large carries."""
    size = graphs_work(graphs)
    if node.op is not BRANCH:
        form: Repeat = node.params["form"]
        size += sum(2 * carry_room(n) for n in map(nbytes, form.body.specs()[: form.carries]))
    return size


def graphs_work(graphs: list[ScheduleState]) -> int:
    """The scratch memory of the graphs that a step owns, of which one runs at a time."""
    return max([(g.scratch + 63) // 64 * 64 for g in graphs])


def carry_room(n: int) -> int:
    """The bytes in scratch memory of each of the two places of a carry."""
    return 0 if n <= COPIED else (n + 63) // 64 * 64


Step = (
    Loop
    | FixedNest
    | Gemm
    | SmallMatmul
    | GemmCheck
    | Call
    | RoutineCall
    | Copy
    | BoundsCheck
    | ControlStep
)


@dataclass(eq=False)
class ScheduleState:
    """Steps in order, buffers, and the step after which each guard can be checked."""

    graph: Graph
    constants: list[np.ndarray]
    outermost: bool  # not what a loop or a branch runs
    steps: list[Step] = field(default_factory=list)
    nests: list[Nest | None] = field(default_factory=list)  # of the steps that are nests
    buffers: list[Buffer] = field(default_factory=list)
    grown: list[Buffer] = field(default_factory=list)  # pointers to memory sized at run time
    scratch: int = 0  # bytes
    results: list[Place] = field(default_factory=list)
    guards: list[tuple[int, int, Place]] = field(default_factory=list)
    places: dict[int, Place] = field(default_factory=dict)
    packed: dict[int, tuple[Place, int]] = field(default_factory=dict)  # and when, see `plain`
    home: list[int] = field(default_factory=list)  # the step that makes a value available, or -1
    kinds: list[str] = field(default_factory=list)
    latest: dict[Shape, int] = field(default_factory=dict)
    looked: dict[Any, int] = field(default_factory=dict)  # index arrays with a bounds check
    sections: dict[int, list[Section]] = field(default_factory=dict)  # of virtual joins
    unwritten: VirtualConcats = field(init=False)

    def place(self, position: int) -> Place:
        """The place of a value; one that was in registers only is stored from now on."""
        raise NotImplementedError

    def ensure_operand(self, a: int, loop: Loop, at: int) -> None:
        """Make an operand available in a loop: computed there, loaded, or recomputed."""
        raise NotImplementedError

    def window(self, position: int, node: Node) -> None:
        """Place a view."""
        raise NotImplementedError

    def inner(self, graph: Graph) -> ScheduleState:
        """The schedule of a graph that a loop or a branch owns."""
        raise NotImplementedError

    def _buffer(self, kind: str, number: int, node: Node) -> Buffer:
        buffer = Buffer(kind, number, node.dtype, node.size)
        self.buffers.append(buffer)
        return buffer

    def literal(self, position: int) -> bool:
        """Whether all elements of a constant are one number."""
        node = self.graph.nodes[position]
        return node.value is not None and node.uniform and supported(node.dtype)

    def fresh(self, node: Node) -> Place:
        """Scratch memory for the result of a record."""
        return whole(self._buffer(SCRATCH, 0, node), node.shape)

    def begin(self, domain: Shape) -> Loop:
        """A new loop."""
        loop = Loop(domain)
        self.latest[domain] = len(self.steps)
        self.steps.append(loop)
        return loop

    def room(self, dtype: np.dtype[Any], size: int) -> Buffer:
        """Scratch memory for some elements."""
        buffer = Buffer(SCRATCH, 0, dtype, size)
        self.buffers.append(buffer)
        return buffer

    def constant(self, value: np.ndarray) -> Place:
        """A table that steps of a kind share."""
        known = [k for k, found in enumerate(self.constants) if found is value]
        if not known:
            self.constants.append(value)
        number = known[0] if known else len(self.constants) - 1
        buffer = Buffer(CONSTANT, number, value.dtype, value.size)
        self.buffers.append(buffer)
        return whole(buffer, value.shape)

    def loop(self, at: int) -> Loop:
        """A step that is a loop."""
        loop = self.steps[at]
        assert isinstance(loop, Loop)
        return loop

    def plain(self, position: int, *, ordered: bool = False) -> Place:
        """The place of a value without gathers, or contiguous: copied if need be."""
        place = self.place(position)
        if not place.gathers and (not ordered or place.is_contiguous()):
            return place
        if position not in self.packed:  # earlier steps go on reading through the gathers
            self.packed[position] = self.fresh(self.graph.nodes[position]), len(self.steps)
            self.steps.append(Copy(place, self.packed[position][0]))
        return self.packed[position][0]

    def ready(self, position: int) -> int:
        """The step after which a value is computed, and without gathers if it has a place."""
        if position in self.places:
            self.plain(position)
        return self.plain_after(position)

    def plain_after(self, position: int) -> int:
        """The step after which the place that `plain` gives is filled."""
        return self.packed[position][1] if position in self.packed else self.home[position]

    def call(self, position: int, node: Node) -> None:
        """Leave a record to Python."""
        # A function that Numba compiles comes with code that calls it.
        compiled = getattr(node.params.get("function"), "routine", None)
        routine: Routine | None = compiled() if compiled is not None else None
        args = [self.plain(a, ordered=routine is not None) for a in node.args]
        out = self.fresh(node)
        if routine is None:
            self.steps.append(Call(node, args, out))
        else:
            self.steps.append(RoutineCall(node, args, out, [*args, out], routine))
        self.places[position] = out
        self.home[position] = len(self.steps) - 1


def touched(step: Step, nest: Nest | None) -> list[Place]:
    """The windows that a step reads and writes."""
    if isinstance(step, Gemm):
        return [step.a, step.b, step.out]
    if isinstance(step, Call):
        return [*step.args, step.out]
    if isinstance(step, RoutineCall):
        return [*step.args, *step.given, step.out]
    if isinstance(step, SmallMatmul):
        return step.given
    if isinstance(step, ControlStep):
        return step.places()
    assert nest is not None
    if isinstance(step, GemmCheck):
        redo = [*step.redo.loads, *[s.place for s in step.redo.stores]]
        return [*nest.loads, step.result, *redo]
    return [*nest.loads, *[s.place for s in nest.stores]]


def copy_nest(step: Copy) -> Nest:
    """The nest of a copy."""
    target = step.target
    dtype = target.buffer.dtype
    if not isinstance(step.source, Place):
        term = Term("constant", (), dtype, step.source)
        return nest_of(target.shape, [], (term,), (Store(0, target, step.mode),))
    if step.source.buffer.dtype == dtype:
        return nest_of(target.shape, [step.source], (), (Store(~0, target, step.mode),))
    term = Term("to", (~0,), dtype)
    return nest_of(target.shape, [step.source], (term,), (Store(0, target, step.mode),))

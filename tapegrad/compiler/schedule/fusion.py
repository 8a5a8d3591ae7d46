"""Schedule a graph: fuse operations into loop nests, and place every value.

Elementwise operations over one domain are fused into one nest as long as each reads the others
element by element; a reduction joins the nest of its operand.  Views cost nothing.  A value that
another step reads is stored; all others stay in registers.
"""

from __future__ import annotations

from collections.abc import Container
from math import prod

import numpy as np

from tapegrad.compiler.ir.buffers import (
    CONSTANT,
    INPUT,
    OUTPUT,
    SCRATCH,
    WINDOWS,
    Buffer,
    Place,
    whole,
    window,
)
from tapegrad.compiler.ir.control_ops import REGION
from tapegrad.compiler.ir.copy_plans import PLANS
from tapegrad.compiler.ir.graph import Graph, Node, adds_to_zeros
from tapegrad.compiler.ir.loop_nest import ADD, SET, Nest, Store, Term, computes, nest_of, supported
from tapegrad.compiler.llvm.scalar_ops import cheap
from tapegrad.compiler.schedule import (
    concat_in_place,
    control_steps,
    domain_split,
    gather_scatter,
    lapack,
    scan_nests,
    virtual_concat,
)
from tapegrad.compiler.schedule.buffer_liveness import arranged
from tapegrad.compiler.schedule.matmul import multiplied
from tapegrad.compiler.schedule.routines import Recipe, recipe
from tapegrad.compiler.schedule.speculative_products import ExactNest, speculated
from tapegrad.compiler.schedule.step_ir import (
    CALL,
    COLLECT,
    GATHER,
    JOINED,
    LEAF,
    MAP,
    MATRIX,
    NATIVE,
    NESTED,
    PIECES,
    REDUCE,
    ROUTINE,
    SCAN,
    SCATTER,
    WINDOW,
    BoundsCheck,
    Copy,
    FixedNest,
    GemmCheck,
    Loop,
    RoutineCall,
    ScheduleState,
    Step,
    copy_nest,
    touched,
)
from tapegrad.compiler.schedule.virtual_concat import DEPTH
from tapegrad.kernels.codegen.rule_codegen import scalar_form
from tapegrad.ops.core import ELEMENTWISE
from tapegrad.ops.index import HOLE
from tapegrad.tape.shape_table import Shape

STRAIGHT = 200  # operations of straight-line code in one function: LLVM is slower than linear
FUSED = 48  # operations in one nest
# From so many elements on a nest is bound by memory: one long nest reads and writes less than many.
STREAMED, LONG = 1024, 512


class Schedule(ScheduleState):
    """The steps of a graph, and the place of every value."""

    def __init__(self, graph: Graph, constants: list[np.ndarray] | None = None) -> None:
        super().__init__(graph, [] if constants is None else constants, constants is None)
        self.recipes: dict[int, Recipe | None] = {}  # by the identity of records
        self.unwritten = virtual_concat.unwritten(graph, self._kind)
        self.passing = _read_by_loops(graph, self.unwritten.sections)
        for position, node in enumerate(graph.nodes):
            self._place_node(position, node)
        self.results = [self._result(k, position) for k, position in enumerate(graph.outputs)]
        self.guards = sorted(
            (self.home[g.position], k, self.place(g.position)) for k, g in enumerate(graph.guards)
        )
        self._live()

    # -- one record ------------------------------------------------------------------------

    def _place_node(self, position: int, node: Node) -> None:
        kind = JOINED if position in self.unwritten.sections else self._kind(node)
        self.kinds.append(kind)
        self.home.append(-1)
        if kind == LEAF:
            if node.value is None:
                self.places[position] = whole(
                    self._buffer(INPUT, node.params["k"], node), node.shape
                )
        elif kind == JOINED:
            virtual_concat.place_joined(self, position)
        elif position in self.unwritten.written:
            self.kinds[position] = MAP
            virtual_concat.place_written(self, position, node)
        elif kind == WINDOW:
            self.window(position, node)
        elif kind == MAP:
            self._join(position, node, node.shape)
        elif kind == REDUCE:
            self._reduce(position, node)
        elif kind == MATRIX:
            self._matrix(position, node)
        elif kind == PIECES:
            concat_in_place.place_pieces(self, position, node)
        elif kind == NESTED:
            control_steps.place_control(self, position, node)
        elif kind == GATHER:
            self._gather(position, node)
        elif kind == SCATTER:
            self._scatter(position, node)
        elif kind == SCAN:
            self._scan(position, node)
        elif kind == NATIVE:
            self._native(position, node)
        elif kind == COLLECT:
            self._collect(position, node)
        elif kind == ROUTINE:
            self._routine(position, node)
        else:
            self.call(position, node)

    def _kind(self, node: Node) -> str:
        if node.op is None:
            return LEAF
        if node.op.kind is REGION:
            return NESTED
        graph = self.graph
        operands = [graph.nodes[a] for a in node.args]
        if node.op.kind is ELEMENTWISE:
            return MAP if computes(node, operands) else CALL
        if node.op in PLANS and all(supported(x.dtype) for x in (node, *operands)):
            return PIECES
        if "gather" in node.moves or "scatter" in node.moves:
            known = all(supported(x.dtype) for x in (node, *operands))
            if not known or not gather_scatter.indexable(graph, node):
                return CALL
            return GATHER if "gather" in node.moves else SCATTER
        if node.moves in WINDOWS and window(whole(_unplaced, operands[0].shape), node) is not None:
            return WINDOW  # perhaps; `window` looks at the operand's strides
        fits = supported(node.dtype) and all(supported(x.dtype) for x in operands)
        if computes(node, operands):
            return MAP
        if scalar_form(node.name):
            return CALL
        adds = fits and node.op.reduces and operands[0].dtype == node.dtype
        if adds and (node.name == "sum" or node.dtype.kind in "fi"):
            return REDUCE
        if fits and node.op.scatters and node.dtype.kind in "fi":
            return COLLECT
        same = all(x.dtype == node.dtype for x in operands)
        if fits and node.op.scans and (node.dtype.kind == "f" or (node.dtype.kind == "i" and same)):
            return SCAN
        if fits and node.op.lapack and lapack.serves(node, operands):
            return NATIVE
        if fits and self._recipe(node) is not None:
            return ROUTINE
        if node.name in ("matmul", "product") and node.dtype.kind == "f" and fits:
            return MATRIX
        return CALL

    def inner(self, graph: Graph) -> Schedule:
        """The schedule of a graph that a loop or a branch owns."""
        return Schedule(graph, self.constants)

    def place(self, position: int) -> Place:
        """The place of a value; one that was in registers only is stored from now on."""
        found = self.places.get(position)
        if found is not None:
            return found
        node = self.graph.nodes[position]
        if self.kinds[position] == JOINED:
            virtual_concat.write(self, position)
            return self.places[position]
        if node.op is None:
            value = node.value
            assert value is not None
            self.constants.append(np.ascontiguousarray(value))
            place = whole(self._buffer(CONSTANT, len(self.constants) - 1, node), node.shape)
        else:
            place = self.fresh(node)
            self.loop(self.home[position]).stores.append((position, place, SET))
        self.places[position] = place
        return place

    def window(self, position: int, node: Node) -> None:
        """Place a view."""
        (source,) = node.args
        operand = self.graph.nodes[source]
        inner = self.kinds[source] == MAP
        if inner and node.shape == operand.shape and node.moves == "identity":
            self.kinds[position] = MAP
            self._join(position, node, node.shape)
            return
        place = self.place(source)
        found = window(place, node)
        self.home[position] = self.home[source]
        if found is None:  # a reshape of strided memory
            packed = whole(self._buffer(SCRATCH, 0, operand), operand.shape)
            self.steps.append(Copy(place, packed))
            self.home[position] = len(self.steps) - 1
            found = window(packed, node)
            assert found is not None
        self.places[position] = found

    # -- loops -----------------------------------------------------------------------------

    def _after(self, args: tuple[int, ...], domain: Shape) -> int:
        """The first step at which operands are available, or computed element by element."""
        first = 0
        for a in args:
            together = self.kinds[a] == MAP and self.graph.nodes[a].shape == domain
            first = max(first, self.home[a] + (not together))
        return first

    def _join(self, position: int, node: Node, domain: Shape) -> Loop:
        virtual_concat.limit_joins(self, node)
        first = self._after(node.args, domain)
        at = self.latest.get(domain, -1)
        loop: Loop | None = None
        if at >= first:
            found = self.steps[at]
            assert isinstance(found, Loop)
            large = prod(domain) >= STREAMED
            limit = LONG if large else FUSED if domain else STRAIGHT
            related = not domain or large or any(a in found.members for a in node.args)
            if (
                len(found.nodes) < limit
                and related
                and virtual_concat.accepts(self, found, node.args)
            ):
                loop = found
        if loop is None:
            loop = self.begin(domain)
            at = self.latest[domain]
        for a in node.args:
            self.ensure_operand(a, loop, at)
        loop.nodes.append(position)
        loop.members.add(position)
        self.home[position] = at
        return loop

    def ensure_operand(self, a: int, loop: Loop, at: int) -> None:
        """Make an operand available in a loop: computed there, loaded, or recomputed."""
        if a in loop.again:
            return
        node = self.graph.nodes[a]
        beside = self.home[a] == at and self.kinds[a] == MAP and a in loop.members
        if self.kinds[a] == JOINED:
            virtual_concat.ensure_join(self, a, loop)
        elif not beside and not self.literal(a):
            if self._cheap(a, loop):
                self._repeat(a, loop)
            else:
                self.place(a)
        if node.op is not None or node.size > 1:
            loop.members.add(a)

    def _repeat(self, a: int, loop: Loop) -> None:
        """Recompute in a loop a value that another loop has computed."""
        for b in self.graph.nodes[a].args:
            operand = self.graph.nodes[b]
            if self.kinds[b] == JOINED:
                virtual_concat.ensure_join(self, b, loop)
            elif b not in loop.members and b not in self.places and not self.literal(b):
                self._repeat(b, loop)
            if operand.op is not None or operand.size > 1:
                loop.members.add(b)
        loop.again.add(a)
        loop.nodes.append(a)

    def _cheap(self, a: int, loop: Loop) -> bool:
        """Whether a large loop should recompute a value instead of loading it.

        It should where that takes a few instructions, and loads one array instead of the value.
        """
        if self.graph.nodes[a].size < STREAMED or a not in self.passing:
            return False
        more: set[int] = set()
        return self._known(a, loop, more, DEPTH) and len(more) < 2

    def _known(self, a: int, loop: Loop, more: set[int], depth: int) -> bool:
        """Whether a loop could compute a value cheaply; `more` collects what it would load."""
        node = self.graph.nodes[a]
        inner = self.kinds[a] == MAP and a not in self.places and cheap(node.name)
        if not inner or node.shape != loop.domain or not depth:
            return False
        for b in node.args:
            if b in loop.members or self.literal(b):
                continue
            if b in self.places or virtual_concat.readable(self, b, loop):
                more.add(b)
            elif not self._known(b, loop, more, depth - 1):
                return False
        return True

    def _reduce(self, position: int, node: Node) -> None:
        (source,) = node.args
        operand = self.graph.nodes[source]
        loop = self._join(position, node, operand.shape)
        place = self.fresh(node)
        loop.stores.append((position, _spread(place, node, operand.shape), node.reduces))
        self.places[position] = place

    # -- other steps -----------------------------------------------------------------------

    def _matrix(self, position: int, node: Node) -> None:
        a, b = [self.plain(k) for k in node.args]
        out = self.fresh(node)
        self.steps += multiplied(a, b, out, node.name == "product", self.room)
        self.places[position] = out
        self.home[position] = len(self.steps) - 1

    def _native(self, position: int, node: Node) -> None:
        steps, out = lapack.steps(node, [self.plain(a) for a in node.args], self.room)
        self.steps += steps
        self.places[position] = out
        self.home[position] = len(self.steps) - 1

    def _recipe(self, node: Node) -> Recipe | None:
        """How a routine computes a record, made once."""
        if id(node) not in self.recipes:
            operands = [self.graph.nodes[a] for a in node.args]
            self.recipes[id(node)] = recipe(node, operands)
        return self.recipes[id(node)]

    def _routine(self, position: int, node: Node) -> None:
        """An operation by a routine of its own."""
        found = self._recipe(node)
        assert found is not None
        args = [self.plain(a, ordered=True) for a in node.args]
        given = [*args, *map(self.constant, found.tables)]
        if found.room:
            given.append(whole(self.room(node.dtype, found.room), (found.room,)))
        self.constants += found.keeps
        out = self.fresh(node)
        self.steps.append(RoutineCall(node, args, out, [*given, out], found.routine))
        self.places[position] = out
        self.home[position] = len(self.steps) - 1

    def _indices(self, args: tuple[int, ...], ranges: list[range]) -> tuple[list[Place], int]:
        """The places of index arrays, and the last step that checks their bounds."""
        found = []
        last = -1
        for a, allowed in zip(args, ranges, strict=True):
            place = self.plain(a)
            found.append(place)
            key = (id(place.buffer), place.offset, place.strides, allowed)
            if self.graph.nodes[a].value is None and place.shape.count(0) == 0:
                if key not in self.looked:
                    self.looked[key] = len(self.steps)
                    found_at = whole(self.room(place.buffer.dtype, 2), (2,))
                    self.steps.append(BoundsCheck(place, allowed, found_at))
                last = max(last, self.looked[key])
            last = max(last, self.plain_after(a))
        return found, last

    def _ranges(self, node: Node, shape: Shape, count: int) -> list[range]:
        """The bounds of index arrays: with a `dim`, indices do not count from the end."""
        if "plan" not in node.params:
            return [range(shape[node.params["dim"]] if shape else 1)]
        plan = gather_scatter.plan_of(node, len(shape))
        return [range(-n, n) for n, part in zip(shape, plan, strict=True) if part is HOLE][:count]

    def _gather(self, position: int, node: Node) -> None:
        source, *others = node.args
        place = self.plain(source)
        ranges = self._ranges(node, place.shape, len(others))
        indices, last = self._indices(tuple(others), ranges)
        self.places[position] = gather_scatter.gathered(place, node, indices)
        self.home[position] = max(last, self.plain_after(source))

    def _scatter(self, position: int, node: Node) -> None:
        adds = "add" in node.moves or node.params.get("accumulate", False)
        args, others = node.args, gather_scatter.indices_of(node)
        indices, _ = self._indices(others, self._ranges(node, node.shape, len(others)))
        out = self.fresh(node)
        source = gather_scatter.value_of(node)
        value: Place | float = 0.0 if source is None else self.plain(source)
        self.steps.append(Copy(0.0 if adds_to_zeros(node) else self.place(args[0]), out))
        target = gather_scatter.gathered(out, node, indices)
        if isinstance(value, Place):
            value = gather_scatter.written(value, target, node)
        self.steps.append(Copy(value, target, ADD if adds else SET))
        self.places[position] = out
        self.home[position] = len(self.steps) - 1

    def _collect(self, position: int, node: Node) -> None:
        """A scatter that computes: each element with what stands at its place so far."""
        assert node.op is not None
        x, index, src = node.args
        self._indices((index,), self._ranges(node, node.shape, 1))
        out, given = self.fresh(node), self.place(x)
        # Of an index that is repeated nothing may be read before the loop that writes it.
        at = gather_scatter.along(out, node.params["dim"], self.plain(index, ordered=True))
        value = self.plain(src)._replace(shape=at.shape)
        term = Term(node.op.scatters, (~0, ~1), node.dtype)
        nest = nest_of(at.shape, [at, value], (term,), (Store(0, at, SET),))
        self.steps += [Copy(given, out), FixedNest(nest)]
        self.places[position] = out
        self.home[position] = len(self.steps) - 1

    def _scan(self, position: int, node: Node) -> None:
        operands = [self.plain(a).broadcast(node.shape) for a in node.args]
        out = self.fresh(node)
        source, target, nest = scan_nests.scan(node, operands, out)
        self.steps.append(Copy(source, target))
        if nest is not None:
            self.steps.append(FixedNest(nest))
        self.places[position] = out
        self.home[position] = len(self.steps) - 1

    # -- results and memory ----------------------------------------------------------------

    def _result(self, k: int, position: int) -> Place:
        place = self.place(position)
        node = self.graph.nodes[position]
        buffer = place.buffer
        if buffer.kind == SCRATCH and buffer.size == node.size and place.is_contiguous():
            buffer.kind, buffer.number = OUTPUT, k
            return place
        target = whole(self._buffer(OUTPUT, k, node), node.shape)
        self.steps.append(Copy(place, target))
        return target

    def _nests(self, step: Step) -> list[tuple[Step, Nest | None]]:
        """Lower a step to steps, with the nests of those that are loops."""
        if isinstance(step, (FixedNest, BoundsCheck, GemmCheck)):
            return [(step, step.nest)]
        if isinstance(step, Copy):
            return [(step, copy_nest(step))]
        if not isinstance(step, Loop):
            return [(step, None)]
        found = domain_split.nests(self, step)
        if len(found) != 1:
            return [(FixedNest(nest), nest) for nest in found]
        plain = speculated(found[0], self.room) if self.outermost else None
        if plain is None:
            return [(step, found[0])]
        step.exact = ExactNest(found[0], self.constants)
        return [(step, plain)]

    def _live(self) -> None:
        """Find the live range of each scratch buffer, in steps, and give it memory."""
        steps, self.steps = self.steps, []
        last = []  # of each lowered step
        for step in steps:
            for made, nest in self._nests(step):
                self.steps.append(made)
                self.nests.append(nest)
            last.append(len(self.steps) - 1)
        self.guards = [(last[at] if at >= 0 else -1, k, place) for at, k, place in self.guards]
        for at, (step, nest) in enumerate(zip(self.steps, self.nests, strict=True)):
            for place in touched(step, nest):
                buffer = place.buffer
                if buffer.first < 0:
                    buffer.first = at
                buffer.last = max(buffer.last, at)
        for at, _, place in self.guards:
            place.buffer.last = max(place.buffer.last, at)
        for buffer in self.grown:  # null before the first step, freed after the last one
            buffer.first, buffer.last = 0, len(self.steps)
        self.scratch = arranged([b for b in self.buffers if b.kind == SCRATCH and b.first >= 0])


_unplaced = Buffer(SCRATCH, 0, np.dtype(np.float64), 0)


def _read_by_loops(graph: Graph, joins: Container[int]) -> set[int]:
    """The records read only by elementwise operations and reductions, perhaps through joins."""
    found = set(range(len(graph.nodes))) - set(graph.roots())
    for position, node in enumerate(graph.nodes):
        loops = node.op is None or node.op.kind is ELEMENTWISE or node.name == "to"
        if not loops and position not in joins and not node.reduces:
            found -= set(node.args)
    return found


def _spread(place: Place, node: Node, domain: Shape) -> Place:
    """The result of a reduction as a window over the operand's domain."""
    if node.name == "sum_to":
        return place.broadcast(domain)
    dims = node.params["dim"]
    steps = iter(place.strides)
    strides = []
    for d in range(len(domain)):
        if d not in dims:
            strides.append(next(steps))
            continue
        if node.params["keepdim"]:
            next(steps)
        strides.append(0)
    return place._replace(shape=domain, strides=tuple(strides))

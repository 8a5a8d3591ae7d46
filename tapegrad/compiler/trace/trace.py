"""Build the graph of a function that runs once on Traced Tensors, which `traced` makes of records.

A Traced Tensor stands for a record of the graph.  Its operations append records, whose values in
the call that is traced are computed where they are needed: where an operation reads off them what
its result is like, and where Python code asks for them.  Whatever Python is told (the truth of a
condition, a number) becomes a guard.

A gradient that is asked for while tracing is the reverse sweep over the records so far, by the one
rule of each operation, and appends records too: derivatives of every order are traced code.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeGuard

import numpy as np

from tapegrad.base.call_site import Place, user_line
from tapegrad.base.native_arrays import native_array
from tapegrad.compiler.ir.control_ops import (
    BRANCH,
    EMPTY,
    GLANCED,
    LOOP,
    REGION,
    TAKE,
    Glance,
    graphs_of,
    result,
    run_region,
)
from tapegrad.compiler.ir.graph import Graph, Guard, Node
from tapegrad.compiler.ir.repeats import static
from tapegrad.compiler.trace.escape_check import HELD, EscapeCheck
from tapegrad.compiler.trace.likeness import Known, likeness
from tapegrad.dispatch.dispatch import called as go
from tapegrad.lift.levels import Level
from tapegrad.lift.lifted_tensor import Lifted
from tapegrad.ops.core import ELEMENTWISE, NO_PARAMS, Op
from tapegrad.ops.shape import alias
from tapegrad.tape import versions
from tapegrad.tape.shape_table import Shape
from tapegrad.tape.tape import Tape, current
from tapegrad.tensor import Tensor, place, wrap


class Untraceable(Exception):
    """The function captures what a compiled program cannot track: it runs eagerly."""


_said: set[tuple[str, int]] = set()


def announce_long() -> None:
    """Warn, once per line of the user's program, that a trace gets long, and advise a loop."""
    where = user_line()
    if where not in _said and sys.stderr is not None:
        _said.add(where)
        print(
            f"tapegrad: `jit` has met {Trace.long} operations, now at {':'.join(map(str, where))}, "
            "and goes on: tracing unrolls a loop of Python, and if its iterations are not alike it "
            "is compiled unrolled, which may take a while; `tapegrad.scan` and "
            "`tapegrad.fori_loop` trace one iteration",
            file=sys.stderr,
            flush=True,
        )


# Of an elementwise operation on one floating-point type: that of its result, if it is such, the
# records by their operands, and the constants of numbers.
Plan = tuple[np.dtype[Any] | None, dict[tuple[int, ...], int], dict[float, int]]
Parts = dict[int, dict[int, Tensor]]  # of the main records: the adjoints of their outputs
Wanted = Callable[[int], bool]


class Pull(Protocol):
    """The rule of a record that a `Function` made."""

    @property
    def operands(self) -> tuple[int, ...]: ...
    def remapped(self, where: dict[int, int]) -> Pull: ...
    def run(
        self, position: int, parts: Parts, g: Tensor | None, wanted: Wanted
    ) -> Iterator[tuple[int, Tensor]]: ...


class Owner:
    """A loop or a branch whose functions are being traced, each in a trace of its own.

    Records of the trace that it stands in become operands of it when one of its functions reads
    them: `brought`, behind the `fixed` operands that it has anyway.  What is computed from such
    records alone is computed once, before a loop; in an arm of a branch (`lazy`) it stays there.
    """

    __slots__ = ("brought", "fixed", "lazy", "marks", "name", "trace")

    def __init__(self, trace: Trace, name: str, fixed: int, *, lazy: bool = False) -> None:
        self.trace = trace
        self.name = name
        self.fixed = fixed
        self.lazy = lazy
        self.marks: dict[Trace, int] = {}  # how many records the traces had before the call
        self.brought: list[int] = []

    def capture(self, inner: Trace, position: int) -> int:
        """The record of an inner trace for one of the outer trace."""
        node = self.trace.nodes[position]
        if node.value is not None:
            return inner.constant(node.value)
        if position not in self.brought:
            self.brought.append(position)
        return inner.entrance(self.fixed + self.brought.index(position), self.trace.value(position))


class Trace(Level):
    """A trace in progress: its records, their values in this call as far as known, and the guards.

    A finished one can be redirected to another, see `trace_redirect`: Tensors that were made in
    it are then Tensors of the other.
    """

    __slots__ = (
        "applies", "arrays", "blank", "blocked", "captured", "constants", "ended", "floor",
        "followed", "glance", "guards", "in_backward", "inside", "known", "line", "moved", "nodes",
        "notes", "numbers", "origins", "outsiders", "owner", "pending", "plans", "pulls",
        "redirect", "regions", "shared", "specs", "strided", "tape", "tensors", "where",
    )  # fmt: skip
    traces = True
    long = 10_000  # records from which on a warning is given

    def __init__(self, owner: Owner | None = None, glance: Glance | None = None) -> None:
        super().__init__(None)
        self.tape: Tape = current.tape  # among whose levels it is
        self.owner = owner  # the loop or branch that owns this graph
        if glance is None:
            glance = Glance(GLANCED) if owner is None else owner.trace.glance
        self.glance: Glance = glance
        self.applies = False  # any `Function`, here or within a loop or branch
        self.pending: set[int] = set()  # values that depend on a loop that was cut short
        self.inside: Trace | None = None  # the trace of such a graph in progress
        self.regions: dict[int, list[Any]] = {}  # results of loops and branches
        self.in_backward = False  # a user's `backward` runs: Python can, where it asks for values
        self.line: Place = None  # of the user's program, where it is known
        self.nodes: list[Node] = []
        self.ended = False  # finished: it will not stand for another one
        self.floor = 0  # memory of records before this one must not change now
        # Their values; None for one that nobody has asked for, which has memory of its own, in C
        # order.  Of those that are `blank` there is the memory alone.
        self.arrays: list[np.ndarray | None] = []
        self.blank: set[int] = set()
        # Of records that do not lie in C order, or have gaps.
        self.strided: dict[int, Shape] = {}
        self.tensors: dict[int, Tensor] = {}  # see `wrapped`
        self.guards: list[Guard] = []
        self.numbers: dict[int, tuple[str, int]] = {}  # what Python has made numbers of, and where
        self.blocked: set[int] = set()  # records that stop gradients
        self.followed: set[int] = set()  # variables of a gradient in progress
        # Captured Tensors, which became constants.
        self.captured: dict[int, Tensor] = {} if owner is None else owner.trace.captured
        self.outsiders: EscapeCheck = EscapeCheck() if owner is None else owner.trace.outsiders
        self.constants: dict[Any, int] = {}
        self.shared: dict[Any, dict[str, Any]] = {}  # parameters of views, by what tells them
        # Of results, by what decides on them.  Keys may name parameters by `id`, which this keeps.
        self.specs: dict[Any, Known] = {}
        self.known: dict[Op, dict[tuple[int, ...], int]] = {}  # by operands, see `computed`
        self.plans: dict[tuple[Op, np.dtype[Any]], Plan] = {}
        self.pulls: dict[int, Pull] = {}  # of the records that a `Function` made
        self.moved: dict[int, int] = {}  # records that were re-rolled, and what they are now
        self.notes: list[str] = []  # see `Graph.notes`
        # The traces inlined into this one, and where.
        self.origins: dict[Trace, dict[int, int]] = {}
        self.redirect: Trace | None = None  # the trace that this one stands for now
        self.where: dict[int, int] = {}  # the positions of its records there

    def note_created(self, t: Tensor) -> None:
        """Note a Tensor that was made here from data."""
        self.outsiders.note_created(t)

    def append(self, node: Node, value: np.ndarray | None) -> int:
        """Append a record, with its value if that is known; returns its position."""
        nodes, values = [node], [value]
        self.nodes += nodes  # nothing comes in between, as it might at a call
        self.arrays += values
        position = len(self.nodes) - 1
        if position == self.long:
            announce_long()
        if value is not None:
            self._note_strides(position, value)
            if self.pending and not self.pending.isdisjoint(node.args):
                self.pending.add(position)
        return position

    def _note_strides(self, position: int, value: np.ndarray) -> None:
        if not value.flags.c_contiguous:
            self.strided[position] = value.strides

    def input(self, array: np.ndarray) -> Tensor:
        """A Traced Tensor for an argument of the function."""
        # As the program finds it: in C order, in memory of which nothing else is known.
        if not array.flags.c_contiguous or versions.root(array) is not array:
            array = array.copy(order="C")
        k = sum(node.name == "input" for node in self.nodes)
        node = Node(None, (), {"k": k}, array.shape, array.dtype)
        return self.tensor(self.append(node, array), frozen=True)

    def entrance(self, k: int, array: np.ndarray) -> int:
        """The position of input k, by `Owner`'s numbers; each has one record."""
        found = self.constants.get(k)
        if found is None:
            node = Node(None, (), {"k": k}, array.shape, array.dtype)
            found = self.constants[k] = self.append(node, array)
        return found

    def tensor(self, position: int, *, frozen: bool = False) -> Tensor:
        """A Traced Tensor of a record; the memory of one that is `frozen` is an argument's."""
        raise NotImplementedError

    def constant(self, array: np.ndarray) -> int:
        """The position of a constant; equal small constants are one record."""
        key = (array.dtype.str, array.shape, array.tobytes()) if array.size <= 16 else None
        found = None if key is None else self.constants.get(key)
        if found is None:
            array = array.copy()  # its owner may change it
            found = self.append(Node(None, (), {}, array.shape, array.dtype, array), array)
            if key is not None:
                self.constants[key] = found
        return found

    def memory(self, position: int) -> np.ndarray:
        """An array that lies in memory as the value of a record does, whatever stands there."""
        todo = [position]
        while (found := self.arrays[todo[-1]]) is None and self._views(todo[-1]):
            todo.append(self.nodes[todo[-1]].args[0])
        for at in reversed(todo):
            if self.arrays[at] is None:
                node = self.nodes[at]
                if self._views(at):
                    assert node.op is not None
                    found = np.asarray(node.op.forward(found, **node.params))
                else:
                    found = self._laid(at, node)
                self.arrays[at] = found
                self.blank.add(at)
        assert found is not None
        return found

    def _views(self, position: int) -> bool:
        return getattr(self.nodes[position].op, "view", False)

    def _laid(self, position: int, node: Node) -> np.ndarray:
        """Memory for a result."""
        strides = self.strided.get(position)
        made = np.empty(node.shape, node.dtype)
        return (
            made if strides is None else np.ndarray(node.shape, node.dtype, made.data, 0, strides)
        )

    def value(self, position: int) -> np.ndarray:
        """The value of a record; a guess if a loop was cut short for it, see `finish_loops`."""
        if not self._is_missing(position):
            return self.arrays[position]  # type: ignore[return-value]
        todo, missing = [position], set()
        while todo:
            at = todo.pop()
            if self._is_missing(at) and at not in missing:
                missing.add(at)
                todo += self.nodes[at].args
        for at in sorted(missing):
            self._compute(at, self.glance)
        found = self.arrays[position]
        assert found is not None
        return found

    def _is_missing(self, position: int) -> bool:
        return self.arrays[position] is None or position in self.blank

    def _compute(self, position: int, glance: Glance) -> None:
        """Compute the value of a record from those of its operands."""
        node, cuts, arrays = self.nodes[position], glance.cuts, self.arrays
        assert node.op is not None
        memory = arrays[position]
        if memory is not None and node.op.kind is not REGION and self._shows(memory, node):
            value = memory  # a view of what was computed
        elif node.op is TAKE:
            value = result(self.regions[node.args[0]], node.params["k"])
        elif node.op.kind is REGION:
            args: list[Any] = [arrays[a] for a in node.args]
            self.regions[position] = run_region(node.op, node.params, args, glance)
            value = EMPTY
        else:
            value = go(node.op, tuple([self._tensor(a) for a in node.args]), node.params)._a
        if memory is None:
            arrays[position] = value
            self._note_strides(position, value)
        elif value is not memory:
            memory[...] = value
        self.blank.discard(position)
        if glance.cuts > cuts or not self.pending.isdisjoint(node.args):
            self.pending.add(position)

    def _shows(self, memory: np.ndarray, node: Node) -> bool:
        """Whether memory is that of the operand, as a view's."""
        source = self.arrays[node.args[0]]
        return source is not None and versions.memory(memory) is versions.memory(source)

    def wrapped(self, position: int) -> Tensor:
        """The value of a record as a Tensor without history."""
        self.value(position)
        return self._tensor(position)

    def _tensor(self, position: int) -> Tensor:
        found, value = self.tensors.get(position), self.arrays[position]
        assert value is not None
        if found is None or found._a is not value:
            found = self.tensors[position] = wrap(value)
        return found

    def record(self, op: Op, args: tuple[int, ...], params: dict[str, Any]) -> int:
        """Append an operation on records; returns its position."""
        if op.view and self._is_missing(args[0]):
            position = self._view(op, args, params)
        elif not op.view and (known := self._spec(op, args, params)) is not None:
            shape, dtype, strides, _ = known
            position = self.append(Node(op, args, params, shape, dtype), None)
            if strides is not None:
                self.strided[position] = strides
        else:
            found = go(op, tuple([self.wrapped(a) for a in args]), params)
            value = found._a
            position = self.append(Node(op, args, params, value.shape, value.dtype), value)
            if type(found) is Tensor and found._home is None:
                self.tensors[position] = found
        if not current.tape.enabled:
            self.blocked.add(position)
        return position

    def spec_key(self, op: Op, args: tuple[int, ...], params: dict[str, Any]) -> Any:
        """What decides on the spec of a result, unless values do."""
        nodes = self.nodes
        key: tuple[Any, ...] = (op,)
        for a in args:
            node = nodes[a]
            key += node.shape, node.dtype
        if self.strided and not self.strided.keys().isdisjoint(args):
            key += tuple(map(self.strided.get, args))
        if params:
            key += tuple(params.items())
            try:
                hash(key)
            except TypeError:  # slices, lists
                return static(key)
        return key

    def _spec(self, op: Op, args: tuple[int, ...], params: dict[str, Any]) -> Known | None:
        """What a result is like; None: it must be computed."""
        operands = [self.nodes[a] for a in args]
        decide = any(x.dtype.kind == "i" for x in operands)  # the values
        key = None if decide else self.spec_key(op, args, params)
        found = None if decide else self.specs.get(key)
        if found is None:
            if decide and op.kind is not ELEMENTWISE:
                for a, operand in zip(args, operands, strict=True):
                    if operand.dtype.kind == "i" and self._is_missing(a):
                        self.value(a)
            lying = [self.memory(a) if a in self.strided else self.arrays[a] for a in args]
            like = likeness(op, operands, lying, params)
            if like is None:
                return None
            strides = None if like.dims is None else like.memory().strides
            found = *like.spec, strides, params
            if not decide:
                self.specs[key] = found
        return found

    def _view(self, op: Op, args: tuple[int, ...], params: dict[str, Any]) -> int:
        """Append a view of a value that was not computed: of its memory, or a copy of it."""
        memory = self.memory(args[0])
        try:
            seen = np.asarray(op.forward(memory, **params))  # an element is a number
        except (TypeError, ValueError):
            seen = go(op, (wrap(memory),), params)._a  # which says what is wrong
        position = self.append(Node(op, args, params, seen.shape, seen.dtype), seen)
        self.blank.add(position)
        return position

    def computed(self, op: Op, args: tuple[int, ...], params: dict[str, Any]) -> int:
        """The record of an operation: an equal one if there is one already.

        So common subexpressions are swept once.  A later pass would merge them, but not their
        gradient: a sum of adjoints, one for each copy.
        """
        if params or op.kind is not ELEMENTWISE or not current.tape.enabled:
            return self.record(op, args, params)
        known = self.known.setdefault(op, {})
        found = known.get(args)
        if found is None:
            found = known[args] = self.record(op, args, params)
        return found

    def position(self, x: Any) -> int:
        """The record that an operand stands for: its own, or a constant."""
        if isinstance(x, Tensor):
            if x._home is not None:
                place(x)  # a view sees what was written into its base
            if _traced(x) and x.its_trace is self:
                return int(x.position)
            if isinstance(x, Lifted) and self.owner is not None:
                return self.owner.capture(self, self.owner.trace.position(x))
            if isinstance(x, Lifted) or x._pos:
                check_open(x)
                raise Untraceable
            self.captured[id(x)] = x
            return self.constant(x._a)
        return self.constant(native_array(x, "jit"))

    def watched(self) -> list[Tensor]:
        """The captured Tensors that can still change: they are referenced outside this trace."""
        found = list(self.captured.values())
        self.captured.clear()
        return [
            t for t in found
            if not _traced(t)  # what was written into it since is a variable: it is a result
            and (
                sys.getrefcount(t) > HELD
                or ((base := t._base) is not None and sys.getrefcount(base) > HELD)
            )
        ]  # fmt: skip

    def follow(self, t: Tensor) -> Tensor:
        """Make a variable: a record of the same value to differentiate in."""
        at = self.redirect or self
        start = at.position(t)
        node, value = at.nodes[start], at.arrays[start]
        position = at.append(Node(alias, (start,), NO_PARAMS, node.shape, node.dtype), value)
        if start in at.blank:
            at.blank.add(position)
        if start in at.strided:
            at.strided[position] = at.strided[start]
        at.followed.add(position)
        return at.tensor(position, frozen=True)

    def fixed(self, array: np.ndarray) -> Tensor:
        """A constant as a Traced Tensor."""
        at = self.redirect or self
        return at.tensor(at.constant(array))

    def arm(self) -> Trace | None:
        """The innermost trace in progress, if it is within an arm of a branch of this one."""
        if self.inside is not None and (found := self.inside.arm()) is not None:
            return found
        return self if self.owner is not None and self.owner.lazy else None

    def root(self) -> Trace:
        """The trace of the jitted function."""
        return self if self.owner is None else self.owner.trace.root()

    def sources(self) -> set[int]:
        """The variables; and captured values that may depend on one."""
        if self.owner is None or not self.owner.trace.sources():
            return self.followed
        return self.followed | {i for i, node in enumerate(self.nodes) if node.name == "input"}

    def forget(self, t: Any) -> None:
        """End a variable."""
        t.its_trace.followed.discard(t.position)

    def depends(self, root: Tensor, x: Tensor) -> bool:
        """Whether a Tensor depends on a variable, through records that gradients pass."""
        at = self.redirect or self
        return at.descends(at.position(root), {at.position(x)})

    def backward_only(self, since: Sequence[Tensor] = ()) -> bool:
        """Whether a `Function`, whose rule may be reverse-mode only, was traced after these."""
        at = self.redirect or self
        start = max([at.position(v) for v in since], default=0)
        regions = [node for node in at.nodes[start:] if node.op in (LOOP, BRANCH)]
        return any(position >= start for position in at.pulls) or any(
            sub.pulled for node in regions for sub in graphs_of(node)
        )

    def feeding(self, position: int) -> tuple[int, ...]:
        """The records that a gradient passes to from a record."""
        if position in self.blocked:
            return ()
        pull = self.pulls.get(position)
        return self.nodes[position].args if pull is None else pull.operands

    def descends(self, position: int, sources: set[int]) -> bool:
        """Whether a record depends on one of some others, through records that gradients pass."""
        seen, todo = {position}, [position]
        while todo:
            at = todo.pop()
            if at in sources:
                return True
            for a in self.feeding(at):
                if a not in seen:
                    seen.add(a)
                    todo.append(a)
        return False

    def concretize(self, t: Any) -> np.ndarray:
        """Give a value to Python code, and guard it: every call must find the same."""
        position: int = t.position
        if self not in current.tape.levels:
            raise RuntimeError(
                f"the value of a Tensor that was made inside {t._what}{t.origin()} was asked for "
                "after that has ended: return it from the function instead of keeping it outside"
            )
        if self.nodes[position].value is None:
            if self.owner is not None:
                if self.in_backward:
                    raise Untraceable
                raise RuntimeError(
                    f"under `tapegrad.jit`, inside a function given to `{self.owner.name}`, Python "
                    "code asked for a value that only the program knows when it runs (a condition, "
                    "`float()`, an index): use `tapegrad.where`, `cond` or `while_loop` instead, "
                    "and `np.sin(t)` for `math.sin(t)`"
                    f"{t.origin()}"
                )
            value = self.value(position)
            if position in self.pending:
                self.finish_loops()
                value = self.value(position)
            self.guards.append(Guard(position, value.item(), user_line()))
        return self.value(position)

    def python_number(self, t: Any) -> Any:
        """Give Python a number, and note it: no derivative passes."""
        value = self.concretize(t).item()
        if t._a.dtype.kind in "fc":
            self.numbers.setdefault(t.position, user_line())
        return value

    def peek(self, t: Tensor) -> np.ndarray | None:
        """The value in this call: there is none in a loop's or a branch's graph."""
        position = self.position(t)
        if self.owner is not None:
            return None
        value = self.value(position)
        return None if position in self.pending else value

    def finish_loops(self) -> None:
        """Run loops that were cut short to their ends, and recompute what depends on them."""
        again, self.pending = sorted(self.pending), set()
        for position in again:
            self.arrays[position] = None
            self._compute(position, Glance(None))

    def graph(self, outputs: tuple[int, ...]) -> Graph:
        """The records as a graph."""
        inputs = [i for i, x in enumerate(self.nodes) if x.op is None and x.value is None]
        return Graph(self.nodes, tuple(inputs), outputs, tuple(self.guards), tuple(self.notes))

    def truncate(self, to_nodes: int, to_guards: int) -> None:
        """Forget the records and guards from some position on."""
        del self.nodes[to_nodes:], self.arrays[to_nodes:], self.guards[to_guards:]
        self.numbers = {p: line for p, line in self.numbers.items() if p < to_nodes}
        self.blank = {p for p in self.blank if p < to_nodes}
        self.strided = {p: strides for p, strides in self.strided.items() if p < to_nodes}
        self.regions = {p: found for p, found in self.regions.items() if p < to_nodes}
        self.pending = {p for p in self.pending if p < to_nodes}
        self.constants = {k: p for k, p in self.constants.items() if p < to_nodes}
        self.tensors = {p: t for p, t in self.tensors.items() if p < to_nodes}
        self.known = {
            op: {args: p for args, p in known.items() if p < to_nodes}
            for op, known in self.known.items()
        }
        self.plans.clear()
        self.pulls = {p: pull for p, pull in self.pulls.items() if p < to_nodes}
        self.blocked = {p for p in self.blocked if p < to_nodes}
        self.followed = {p for p in self.followed if p < to_nodes}
        self.moved = {p: q for p, q in self.moved.items() if q < to_nodes}


def _traced(t: Tensor) -> TypeGuard[Any]:
    return isinstance(t, Lifted) and t._lift.at.traces


def check_open(t: Any) -> None:
    """Refuse a Tensor that has escaped its trace."""
    if _traced(t) and t.its_trace.root().ended:
        raise RuntimeError(
            f"`jit`: a Tensor that was made inside {t._what}{t.origin()} is used after that "
            "has ended: return it from the function instead of keeping it outside"
        )

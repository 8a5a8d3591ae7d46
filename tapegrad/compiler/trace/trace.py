"""Trace a function: run it once on Traced Tensors, and record what it does on a graph.

A Traced Tensor stands for a record of the graph.  Its operations append records; they also run, on
the values of the call that is traced, which tells shapes and dtypes and what Python code gets to
see.  Whatever Python is told (the truth of a condition, a number) becomes a guard.

A gradient that is asked for while tracing is the reverse sweep over the records so far, by the one
rule of each operation, and appends records too: derivatives of every order are traced code.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from tapegrad.autograd.grad_mode import recording
from tapegrad.base.abstract_array import AbstractArray, filler
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
from tapegrad.compiler.trace.custom_functions import Pull, applied
from tapegrad.compiler.trace.escape_check import EscapeCheck
from tapegrad.compiler.trace.traced_storage import (
    LONG,
    Owner,
    Parts,
    TracedStorage,
    announce_long,
    line,
    outside,
)
from tapegrad.dispatch.dispatch import called as go
from tapegrad.dispatch.dispatch import promoted
from tapegrad.lift.levels import Level, below
from tapegrad.lift.lifted_tensor import Lifted, become
from tapegrad.ops.core import ELEMENTWISE, Op
from tapegrad.ops.shape import alias, clone, to, write_view
from tapegrad.tape import versions
from tapegrad.tape.tape import current
from tapegrad.tensor import Tensor, wrap


class Untraceable(Exception):
    """The function uses from outside what a compiled program cannot follow: it runs eagerly."""


class Trace(Level):
    """A trace under way: its records, their values in this call, and the guards.

    One that has ended can *stand* for another, see `compiler.standing`: Tensors that were made in
    it are then Tensors of the other.
    """

    __slots__ = (
        "applies", "blocked", "captured", "constants", "ended", "floor", "followed", "glance",
        "guards", "guessed", "inside", "known", "line", "nodes", "origins", "outsiders", "owner",
        "pulls", "regions", "ruled", "stands", "values", "where",
    )  # fmt: skip
    traces = True

    def __init__(self, owner: Owner | None = None, glance: Glance | None = None) -> None:
        super().__init__(None)
        self.owner = owner  # the loop or branch whose graph this is
        if glance is None:
            glance = Glance(GLANCED) if owner is None else owner.trace.glance
        self.glance: Glance = glance
        self.applies = False  # any `Function`, here or within a loop or branch
        self.guessed: set[int] = set()  # what was computed from a loop that was left early
        self.inside: Trace | None = None  # the trace of such a graph that is under way
        self.regions: dict[int, list[Any]] = {}  # results of loops and branches
        self.ruled = False  # a user's `backward` runs: Python can, where it asks for values
        self.line: tuple[str, int] | None = None  # of the user's program, where it is known
        self.nodes: list[Node] = []
        self.ended = False  # for good: it will not stand for another one
        self.floor = 0  # memory that lay in records before this one is not changed now
        self.values: list[np.ndarray] = []
        self.guards: list[Guard] = []
        self.blocked: set[int] = set()  # records that gradients do not pass
        self.followed: set[int] = set()  # variables of a gradient that is being computed
        # Tensors from outside, which became constants.
        self.captured: dict[int, Tensor] = {} if owner is None else owner.trace.captured
        self.outsiders: EscapeCheck = EscapeCheck() if owner is None else owner.trace.outsiders
        self.constants: dict[Any, int] = {}
        self.known: dict[tuple[Op, tuple[int, ...]], int] = {}  # see `computed`
        self.pulls: dict[int, Pull] = {}  # of the records that a `Function` stands behind
        # The traces whose records were put into this one, and where.
        self.origins: dict[Trace, dict[int, int]] = {}
        self.stands: Trace | None = None  # for which other trace this one stands now
        self.where: dict[int, int] = {}  # where its records lie there

    def born(self, t: Tensor) -> None:
        """Hear of a Tensor that was made here from data."""
        self.outsiders.born(t)

    def append(self, node: Node, value: np.ndarray) -> int:
        """Append a record with its value; returns its position."""
        nodes, values = [node], [value]
        self.nodes += nodes  # nothing comes in between, as it might at a call
        self.values += values
        position = len(self.nodes) - 1
        if position == LONG:
            announce_long()
        if self.guessed and not self.guessed.isdisjoint(node.args):
            self.guessed.add(position)
        return position

    def input(self, array: np.ndarray) -> Traced:
        """A Traced Tensor for an argument of the function."""
        # As the program finds it: in C order, in memory of which nothing else is known.
        if not array.flags.c_contiguous or versions.root(array) is not array:
            array = array.copy(order="C")
        k = sum(node.name == "input" for node in self.nodes)
        node = Node(None, (), {"k": k}, array.shape, array.dtype)
        return traced(self, self.append(node, array), frozen=True)

    def entrance(self, k: int, array: np.ndarray) -> int:
        """The position of input k, counted by `Owner`; there is one record for each."""
        found = self.constants.get(k)
        if found is None:
            node = Node(None, (), {"k": k}, array.shape, array.dtype)
            found = self.constants[k] = self.append(node, array)
        return found

    def tensor(self, position: int) -> Traced:
        """A Traced Tensor of a record."""
        return traced(self, position)

    def constant(self, array: np.ndarray) -> int:
        """The position of a constant; equal small constants are one record."""
        key = (array.dtype.str, array.shape, array.tobytes()) if array.size <= 16 else None
        found = None if key is None else self.constants.get(key)
        if found is None:
            array = array.copy()  # whoever owns it may change it
            found = self.append(Node(None, (), {}, array.shape, array.dtype, array), array)
            if key is not None:
                self.constants[key] = found
        return found

    def record(self, op: Op, args: tuple[int, ...], params: dict[str, Any]) -> int:
        """Run an operation on the values of records and append it; returns its position."""
        value = go(op, tuple([wrap(self.values[a]) for a in args]), params)._a
        position = self.append(Node(op, args, params, value.shape, value.dtype), value)
        if not current.tape.enabled:
            self.blocked.add(position)
        return position

    def computed(self, op: Op, args: tuple[int, ...], params: dict[str, Any]) -> int:
        """The record of an operation: where the same was computed before, that one.

        So what is the same is swept once.  A later pass would find the copies, but not what they
        became in a gradient: a sum of adjoints, each of one copy.
        """
        if params or op.kind is not ELEMENTWISE or not current.tape.enabled:
            return self.record(op, args, params)
        found = self.known.get((op, args))
        if found is None:
            found = self.known[op, args] = self.record(op, args, params)
        return found

    def position(self, x: Any) -> int:
        """The record that an operand stands for: its own, or a constant."""
        if isinstance(x, Tensor):
            if isinstance(x, Traced) and x.its_trace is self:
                return x.position
            if isinstance(x, Lifted) and self.owner is not None:
                return self.owner.bring(self, self.owner.trace.position(x))
            if isinstance(x, Lifted) or x._pos:
                check_open(x)
                raise Untraceable
            self.captured[id(x)] = x
            return self.constant(x._a)
        return self.constant(native_array(x, "jit"))

    def watched(self) -> list[Tensor]:
        """The Tensors from outside that can still change: others than this trace know of them."""
        found = list(self.captured.values())
        self.captured.clear()
        ours = 3  # the list (of a base: the view), the variable below, the argument of the call
        return [
            t for t in found
            if sys.getrefcount(t) > ours
            or ((base := t._base) is not None and sys.getrefcount(base) > ours)
        ]  # fmt: skip

    def follow(self, t: Tensor) -> Traced:
        """A variable: a record of the same value that a gradient can be asked for."""
        at = self.stands or self
        start = at.position(t)
        value = at.values[start]
        position = at.append(Node(alias, (start,), {}, value.shape, value.dtype), value)
        at.followed.add(position)
        return traced(at, position, frozen=True)

    def fixed(self, array: np.ndarray) -> Traced:
        """A constant as a Traced Tensor."""
        at = self.stands or self
        return traced(at, at.constant(array))

    def arm(self) -> Trace | None:
        """The innermost trace under way, if that is within an arm of a branch of this one."""
        if self.inside is not None and (found := self.inside.arm()) is not None:
            return found
        return self if self.owner is not None and self.owner.lazy else None

    def root(self) -> Trace:
        """The trace of the jitted function."""
        return self if self.owner is None else self.owner.trace.root()

    def sources(self) -> set[int]:
        """The variables; and what comes in from outside, where it may be computed from one."""
        if self.owner is None or not self.owner.trace.sources():
            return self.followed
        return self.followed | {i for i, node in enumerate(self.nodes) if node.name == "input"}

    def forget(self, t: Tensor) -> None:
        """End a variable."""
        assert isinstance(t, Traced)
        t.its_trace.followed.discard(t.position)

    def depends(self, root: Tensor, x: Tensor) -> bool:
        """Whether a Tensor was computed from a variable, along what gradients pass."""
        at = self.stands or self
        return at.descends(at.position(root), {at.position(x)})

    def backward_only(self, since: Sequence[Tensor] = ()) -> bool:
        """Whether a `Function`, whose rule may serve backwards alone, was traced after these."""
        at = self.stands or self
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
        """Whether a record was computed from one of some others, along what gradients pass."""
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

    def tell(self, t: Traced) -> np.ndarray:
        """The value that Python code asks for, which every call must then find the same."""
        position = t.position
        if self not in current.tape.levels:
            raise RuntimeError(
                f"the value of a Tensor that was made inside {t._what}{t.origin()} was asked for "
                "after that has ended: return it from the function instead of keeping it outside"
            )
        if self.nodes[position].value is None:
            if self.owner is not None:
                if self.ruled:
                    raise Untraceable
                raise RuntimeError(
                    f"under `tapegrad.jit`, inside a function given to `{self.owner.name}`, Python "
                    "code asked for a value that only the program knows when it runs (a condition, "
                    "`float()`, an index): use `tapegrad.where`, `cond` or `while_loop` instead, "
                    "and `np.sin(t)` for `math.sin(t)`"
                    f"{t.origin()}"
                )
            if position in self.guessed:
                self.settle()
            self.guards.append(Guard(position, self.values[position].item(), line()))
        return self.values[position]

    def glimpse(self, t: Tensor) -> np.ndarray | None:
        """The value that was computed while tracing: none is in a loop's or a branch's graph."""
        position = self.position(t)
        return None if self.owner is not None or position in self.guessed else self.values[position]

    def settle(self) -> None:
        """Run the loops that were left early to their ends, and what was computed from them."""
        for position in sorted(self.guessed):
            node, value = self.nodes[position], EMPTY
            args = [self.values[a] for a in node.args]
            if node.op is TAKE:
                value = result(self.regions[node.args[0]], node.params["k"])
            elif node.op is not None and node.op.kind is REGION:
                self.regions[position] = run_region(node.op, node.params, args, Glance(None))
            elif node.op is not None:
                value = go(node.op, tuple([wrap(a) for a in args]), node.params)._a
            self.values[position] = value
        self.guessed.clear()

    def graph(self, outputs: tuple[int, ...]) -> Graph:
        """The records as a graph."""
        inputs = [i for i, node in enumerate(self.nodes) if node.name == "input"]
        return Graph(self.nodes, tuple(inputs), outputs, tuple(self.guards))

    def truncate(self, to_nodes: int, to_guards: int) -> None:
        """Forget the records and guards from some position on."""
        del self.nodes[to_nodes:], self.values[to_nodes:], self.guards[to_guards:]
        self.constants = {k: p for k, p in self.constants.items() if p < to_nodes}
        self.known = {key: p for key, p in self.known.items() if p < to_nodes}
        self.pulls = {p: pull for p, pull in self.pulls.items() if p < to_nodes}
        self.blocked = {p for p in self.blocked if p < to_nodes}
        self.followed = {p for p in self.followed if p < to_nodes}


class Traced(Lifted):
    """A Tensor whose value is known when the compiled program runs."""

    __slots__ = ()
    _kind = "`tapegrad.jit`"
    swept: Callable[..., list[Tensor]]  # set by `compiler.backward`, which stands on this module
    _lift: Parts

    @property
    def position(self) -> int:
        """The record that this Tensor stands for now."""
        lift = self._lift
        stands = lift.at.stands is not None
        if lift.version != lift.cell.version:
            if stands:
                raise Untraceable
            position = lift.cell.content
            for op, params in lift.chain:
                position = lift.at.record(op, (position,), params)
            lift.position, lift.version = position, lift.cell.version
        return lift.at.where[lift.position] if stands else lift.position

    @property
    def its_trace(self) -> Trace:
        """The trace of that record."""
        at = self._lift.at
        return at.stands or at

    def parts(self) -> tuple[Tensor, ...]:
        """The value in the call that is traced."""
        return (wrap(self.its_trace.values[self.position]),)

    def rebuilt(self, *parts: Tensor) -> Lifted:
        """The same: only the records matter."""
        return self

    @classmethod
    def together(
        cls, function: Callable[[Tensor, Tensor], Tensor], a: Tensor, b: Tensor, at: Level
    ) -> NoReturn:
        """Not needed: a trace is the lowest of all levels."""
        raise Untraceable

    @property
    def requires_grad(self) -> bool:
        """Whether a gradient that is being computed may pass here."""
        trace = self.its_trace
        sources = trace.sources()
        if not sources or self._a.dtype.kind not in "fc":
            return False
        return trace.descends(self.position, sources)

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    @property
    def is_leaf(self) -> bool:
        """Whether no gradient passes here."""
        return not self.requires_grad

    @property
    def grad_fn(self) -> None:
        """None: the records of a trace are not those of a tape."""
        return None

    def detach(self) -> Tensor:
        """The same value, which gradients do not pass."""
        trace = self.its_trace
        position = trace.record(alias, (self.position,), {})
        trace.blocked.add(position)
        return traced(trace, position)

    @classmethod
    def apply(cls, op: Op, args: Any, params: dict[str, Any], at: Level) -> Any:
        """Append a record."""
        assert isinstance(at, Trace)
        at = at.stands or at
        # Dual values keep copies of tangents for who views them later: not in an arm.
        if at.inside is not None and not op.view and op is not clone:
            at = at.inside.arm() or at
        positions = _operands(at, op, args)
        return view_of(at, op, args, params, at.computed(op, positions, params), positions)

    @classmethod
    def apply_function(cls, function: Any, args: Any, at: Level) -> Any:
        """Run a `Function` whose `backward` the sweeps over these records call."""
        with below(at, and_itself=True):
            assert isinstance(at, Trace)
            way = [at.stands or at]  # its rule may read what was made in the innermost trace
            way[0].root().applies = True
            while way[-1].inside is not None:
                way.append(way[-1].inside)
            current.tape.levels += way[1:]
            return applied(way[-1], function, args)

    @classmethod
    def pull(
        cls, roots: list[Tensor], weights: list[Any], inputs: list[Tensor], at: Level, *,
        recorded: bool, retain: bool, since: int,
    ) -> list[Tensor]:  # fmt: skip
        """The reverse sweep over the records."""
        assert isinstance(at, Trace)
        at = at.stands or at
        tape = current.tape
        # The sweep is traced like everything else; weights may be lifted at higher levels.
        tape.levels = sorted([*tape.levels, at], key=lambda level: level.number)
        with recording(tape, True):
            return cls.swept(at, roots, weights, inputs)

    @classmethod
    def promote(cls, target: Tensor, at: Level) -> None:
        """Make a Tensor that was made inside the function one that changes are traced of."""
        assert isinstance(at, Trace)
        at = at.stands or at
        if isinstance(target, Traced) and at.owner is not None:
            lift = target._lift
            if not lift.fresh():
                raise outside(at.owner.name)
            lift.cell.move(at)  # made within the function, from what lies outside
            return
        if isinstance(target, Lifted) or target._pos or target._is_view():
            raise Untraceable
        at.outsiders.take(target)
        position = at.constant(target._a)
        abstract = filler(target._a.shape, target._a.dtype).view(AbstractArray)
        become(target, Traced, abstract, _whole(at, position))
        abstract.stand_for(target)

    def write(self, result: Tensor) -> None:
        """Take over a result; every view of this memory sees it."""
        lift = self._lift
        self._check_inside()
        if lift.cell.frozen:
            raise RuntimeError(
                "`jit`: the memory of an argument is the caller's, a compiled program cannot write "
                "into it: change a copy (`x = x.clone()`), or write `x = x + y` for `x += y`"
            )
        if isinstance(result, Traced) and result.its_trace.number > lift.at.number:
            lift.cell.move(result.its_trace)  # an arm's
        trace, position = lift.at, lift.at.position(result)
        if trace.values[position].dtype != self._a.dtype:
            position = trace.record(to, (position,), {"dtype": self._a.dtype})
        cell = lift.cell
        if lift.chain:
            base = (cell.content, position)
            cell.content = trace.record(write_view, base, {"chain": lift.chain})
        else:
            cell.content = position
        cell.version += 1
        lift.position, lift.version = position, cell.version

    def check_turn(self, name: str) -> None:
        """Refuse to reshape in place what is the caller's, or lies outside of a loop or branch."""
        self._check_inside()
        if self._lift.cell.frozen and not self._lift.chain:
            raise RuntimeError(
                f"`{name}` under `tapegrad.jit`: an argument (shape {self._a.shape}) is the "
                "caller's, a compiled program cannot reshape it: write `x = x.t()` for `x.t_()`"
            )

    def _check_inside(self) -> None:
        """Refuse changes of what was not made in the function that is traced now."""
        lift = self._lift
        if lift.at.stands is not None:  # kept for the derivative
            raise Untraceable
        if lift.at.inside is not None and not lift.fresh():
            assert lift.at.inside.owner is not None
            raise outside(lift.at.inside.owner.name)
        if lift.cell.made < lift.at.floor:
            raise outside("cond")

    def __bool__(self) -> bool:
        return bool(self.its_trace.tell(self._single("a condition")))

    def item(self) -> Any:
        """The one element as a Python number; another number will need another trace."""
        if self.requires_grad:
            raise RuntimeError(
                "`item()`, or a conversion to a Python number, of a value that a gradient passes "
                "would lose that gradient: compute with the Tensor itself (`np.sin(t)` instead of "
                "`math.sin(t)`), or use `tapegrad.stop_gradient(t).item()`"
            )
        return self.its_trace.tell(self._single("`item()`")).item()

    def _single(self, what: str) -> Traced:
        if self._a.size != 1:
            raise RuntimeError(
                f"{what} needs exactly one element, this Tensor has the shape {self._a.shape}; "
                "use `.any()` or `.all()`, or index it first"
            )
        return self

    def numpy(self, *, force: bool = False) -> NoReturn:
        """Refused: the values are known when the program runs."""
        if self.its_trace.owner is not None and self.its_trace.ruled:
            raise Untraceable
        raise RuntimeError(
            "a Tensor inside `tapegrad.jit` cannot be turned into an array, its values are known "
            "when the compiled program runs: use operations of tapegrad or NumPy's functions on "
            f"the Tensor itself{self.origin()}"
        )

    def origin(self) -> str:
        """At which line of the user's program this Tensor was made."""
        return f" (it was made at {':'.join(map(str, self._lift.where))})"


def check_open(t: Tensor) -> None:
    """Refuse a Tensor of a trace that has ended, of which nobody can make anything."""
    if isinstance(t, Traced) and t.its_trace.root().ended:
        raise RuntimeError(
            f"`jit`: a Tensor that was made inside {t._what}{t.origin()} is used after that "
            "has ended: return it from the function instead of keeping it outside"
        )


def traced(trace: Trace, position: int, *, frozen: bool = False) -> Traced:
    """The Traced Tensor of a record, with memory of its own, or that of an argument."""
    return _around(trace, _whole(trace, position, frozen=frozen))


def _whole(trace: Trace, position: int, *, frozen: bool = False) -> Parts:
    return Parts(TracedStorage(trace, position, frozen), (), position)


def _around(trace: Trace, lift: Parts) -> Traced:
    node = trace.nodes[lift.position]
    abstract = filler(node.shape, node.dtype).view(AbstractArray)
    t = Traced.around(abstract, lift)
    abstract.stand_for(t)
    return t


def view_of(
    trace: Trace, op: Op, args: Any, params: dict[str, Any], position: int, given: Any
) -> Traced:
    """The result of an operation: a view of its operand's memory if it is one in this call."""
    if op.view and isinstance(args[0], Traced) and args[0]._lift.at is trace:
        value, whole = trace.values[position], trace.values[given[0]]
        if versions.memory(value) is versions.memory(whole):
            lift = args[0]._lift
            return _around(trace, Parts(lift.cell, (*lift.chain, (op, params)), position))
    return traced(trace, position)


def _operands(trace: Trace, op: Op, args: Any) -> tuple[int, ...]:
    """The records of the operands, brought to one dtype where the operation is elementwise."""
    if op.kind is not ELEMENTWISE:
        return tuple([trace.position(x) for x in (_typed(args) if op.scalar else args)])
    given = []
    for x in args:
        if isinstance(x, Tensor):
            given.append(trace.values[trace.position(x)])
        else:
            given.append(x)
    found = []
    for x, array in zip(args, promoted(op, list(given)), strict=True):
        if isinstance(x, Tensor):
            position = trace.position(x)
            if array.dtype != trace.values[position].dtype:
                position = trace.record(to, (position,), {"dtype": array.dtype})
        else:
            position = trace.constant(np.asarray(array))
        found.append(position)
    return tuple(found)


def _typed(args: Any) -> Any:
    """Python's numbers in the type that NumPy gives them beside the other operands."""
    kind = np.result_type(*[x._a.dtype if isinstance(x, Tensor) else x for x in args])
    return [np.asarray(x, kind) if type(x) is int else x for x in args]

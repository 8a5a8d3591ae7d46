"""Traced Tensors: each stands for a record of a trace, and its operations append records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from tapegrad.autograd.grad_mode import recording
from tapegrad.base.abstract_array import AbstractArray, filler
from tapegrad.compiler.trace import control_flow
from tapegrad.compiler.trace.backward import swept
from tapegrad.compiler.trace.custom_functions import applied
from tapegrad.compiler.trace.trace import Trace, Untraceable
from tapegrad.compiler.trace.traced_storage import Parts, TracedStorage, outside
from tapegrad.dispatch.dispatch import promoted
from tapegrad.lift.levels import Level, below
from tapegrad.lift.lifted_tensor import Lifted, become
from tapegrad.ops.core import ELEMENTWISE, Op
from tapegrad.ops.shape import alias, clone, to
from tapegrad.ops.strided import write_view
from tapegrad.tape import versions
from tapegrad.tape.tape import current
from tapegrad.tensor import Tensor, wrap

OWN = 3  # callers of `view_of` that are the library's, beside itself


class TensorTrace(Trace):
    """A trace that wraps its records in Traced Tensors."""

    __slots__ = ()

    def tensor(self, position: int, *, frozen: bool = False) -> Traced:
        """A Traced Tensor of a record; the memory of one that is `frozen` is an argument's."""
        return traced(self, position, frozen=frozen)

    branch, both, loop = control_flow.branch, control_flow.both, control_flow.loop


class Traced(Lifted):
    """A Tensor whose value is known when the compiled program runs."""

    __slots__ = ()
    _kind = "`tapegrad.jit`"
    _lift: Parts

    @property
    def position(self) -> int:
        """The record that this Tensor stands for now."""
        lift = self._lift
        at = lift.at
        if lift.version != lift.cell.version:
            if at.redirect is not None:
                raise Untraceable
            position = lift.cell.content
            for op, params in lift.chain:
                position = at.record(op, (position,), params)
            lift.position, lift.version = position, lift.cell.version
        if at.redirect is not None:
            position = at.where[lift.position]
            return at.redirect.moved.get(position, position)
        return at.moved.get(lift.position, lift.position) if at.moved else lift.position

    @property
    def its_trace(self) -> Trace:
        """The trace of that record."""
        at = self._lift.at
        return at.redirect or at

    def parts(self) -> tuple[Tensor, ...]:
        """What lies in memory as the value in the call that is traced."""
        return (wrap(self.its_trace.memory(self.position)),)

    def computed(self) -> Tensor:
        """That value."""
        return wrap(self.its_trace.value(self.position))

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
        """Whether a gradient in progress may pass here."""
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
        """The same value, which stops gradients."""
        trace = self.its_trace
        position = trace.record(alias, (self.position,), {})
        trace.blocked.add(position)
        return traced(trace, position)

    @classmethod
    def apply(cls, op: Op, args: Any, params: dict[str, Any], at: Level) -> Any:
        """Append a record."""
        assert isinstance(at, Trace)
        at = at.redirect or at
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
            chain = [at.redirect or at]  # its rule may read what was made in the innermost trace
            chain[0].root().applies = True
            while chain[-1].inside is not None:
                chain.append(chain[-1].inside)
            current.tape.levels += chain[1:]
            return applied(chain[-1], function, args)

    @classmethod
    def pull(
        cls, roots: list[Tensor], weights: list[Any], inputs: list[Tensor], at: Level, *,
        recorded: bool, retain: bool, since: int,
    ) -> list[Tensor]:  # fmt: skip
        """The reverse sweep over the records."""
        assert isinstance(at, Trace)
        at = at.redirect or at
        tape = current.tape
        # The sweep is traced like everything else; weights may be lifted at higher levels.
        tape.levels = sorted([*tape.levels, at], key=lambda level: level.number)
        with recording(tape, True):
            return swept(at, roots, weights, inputs)

    @classmethod
    def promote(cls, target: Tensor, at: Level) -> None:
        """Make an untraced Tensor, created inside the function, a Traced one."""
        assert isinstance(at, Trace)
        at = at.redirect or at
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
        if trace.nodes[position].dtype != self._a.dtype:
            position = trace.record(to, (position,), {"dtype": self._a.dtype})
        cell = lift.cell
        if lift.chain:
            base = (cell.content, position)
            cell.content = trace.record(write_view, base, {"chain": lift.chain})
        else:
            cell.content = position
        cell.version += 1
        lift.position, lift.version = position, cell.version

    def check_inplace_view(self, name: str) -> None:
        """Refuse to reshape in place what belongs to the caller, or outside a loop or branch."""
        self._check_inside()
        if self._lift.cell.frozen and not self._lift.chain:
            raise RuntimeError(
                f"`{name}` under `tapegrad.jit`: an argument (shape {self._a.shape}) is the "
                "caller's, a compiled program cannot reshape it: write `x = x.t()` for `x.t_()`"
            )

    def _check_inside(self) -> None:
        """Refuse changes of what was not made in the function being traced."""
        lift = self._lift
        if lift.at.redirect is not None:  # kept for the derivative
            raise Untraceable
        if lift.at.inside is not None and not lift.fresh():
            assert lift.at.inside.owner is not None
            raise outside(lift.at.inside.owner.name)
        if lift.cell.made < lift.at.floor:
            raise outside("cond")

    def __bool__(self) -> bool:
        return bool(self.its_trace.concretize(self._single("a condition")))

    def item(self) -> Any:
        """The one element as a Python number; another number will need another trace."""
        if self.requires_grad:
            raise RuntimeError(
                "`item()`, or a conversion to a Python number, of a value that a gradient passes "
                "would lose that gradient: compute with the Tensor itself (`np.sin(t)` instead of "
                "`math.sin(t)`), or use `tapegrad.stop_gradient(t).item()`"
            )
        return self.its_trace.concretize(self._single("`item()`")).item()

    def _single(self, what: str) -> Traced:
        if self._a.size != 1:
            raise RuntimeError(
                f"{what} needs exactly one element, this Tensor has the shape {self._a.shape}; "
                "use `.any()` or `.all()`, or index it first"
            )
        return self

    def numpy(self, *, force: bool = False) -> NoReturn:
        """Refused: the values are known when the program runs."""
        if self.its_trace.owner is not None and self.its_trace.in_backward:
            raise Untraceable
        raise RuntimeError(
            "a Tensor inside `tapegrad.jit` cannot be turned into an array, its values are known "
            "when the compiled program runs: use operations of tapegrad or NumPy's functions on "
            f"the Tensor itself{self.origin()}"
        )

    def origin(self) -> str:
        """The line of the user's program that made this Tensor."""
        return f" (it was made at {':'.join(map(str, self._lift.where))})"


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
        value, whole = trace.memory(position), trace.memory(given[0])
        if versions.memory(value) is versions.memory(whole):
            lift = args[0]._lift
            return _around(trace, Parts(lift.cell, (*lift.chain, (op, params)), position, OWN))
    return _around(trace, Parts(TracedStorage(trace, position, False), (), position, OWN))


def _operands(trace: Trace, op: Op, args: Any) -> tuple[int, ...]:
    """The records of the operands, promoted to one dtype if the operation is elementwise."""
    if op.kind is not ELEMENTWISE:
        return tuple([trace.position(x) for x in (_typed(args) if op.scalar else args)])
    if (quick := _alike(trace, op, args)) is not None:
        return quick
    given = []
    for x in args:
        if isinstance(x, Tensor):
            given.append(_shown(trace, trace.position(x)))
        else:
            given.append(x)
    found = []
    for x, array in zip(args, promoted(op, list(given)), strict=True):
        if isinstance(x, Tensor):
            position = trace.position(x)
            if array.dtype != trace.nodes[position].dtype:
                position = trace.record(to, (position,), {"dtype": array.dtype})
        else:
            position = trace.constant(np.asarray(array))
        found.append(position)
    return tuple(found)


def _alike(trace: Trace, op: Op, args: Any) -> tuple[int, ...] | None:
    """The records of operands that need no promotion, if this is seen at once: as is usual.

    Those are Tensors of one floating-point type, and numbers that this trace has seen with it.
    """
    kind = None
    found: list[Any] = []
    nodes = trace.nodes
    for x in args:
        if type(x) is Traced:
            lift = x._lift
            cell = lift.cell
            if cell.at is not trace or lift.version != cell.version or trace.moved:
                return None
            dtype = nodes[lift.position].dtype
            if dtype is not kind:
                if kind is not None or dtype.kind != "f":
                    return None
                kind = dtype
            found.append(lift.position)
        elif type(x) is float or type(x) is int:
            found.append(None)
        else:
            return None
    if None not in found:
        return tuple(found)
    known = trace.constants
    for k, x in enumerate(args):
        if found[k] is None:
            # Zeros of both signs are equal.
            position: int | None = known.get((x, kind)) if x else None
            if position is None:
                array = promoted(op, [trace.memory(p) if p is not None else y
                                      for p, y in zip(found, args, strict=True)])[k]  # fmt: skip
                position = trace.constant(np.asarray(array))
                if x and array.dtype == kind:
                    known[x, kind] = position
            found[k] = position
    return tuple(found)


def _shown(trace: Trace, position: int) -> np.ndarray:
    """What `promoted` reads of a record: the values if they are integers, which may be refused."""
    integers = trace.nodes[position].dtype.kind in "iu"
    return trace.value(position) if integers else trace.memory(position)


def _typed(args: Any) -> Any:
    """Python numbers in the dtype that NumPy promotes them to beside the other operands."""
    kind = np.result_type(*[x._a.dtype if isinstance(x, Tensor) else x for x in args])
    return [np.asarray(x, kind) if type(x) is int else x for x in args]

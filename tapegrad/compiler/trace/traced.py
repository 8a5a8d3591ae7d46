"""Traced Tensors: each stands for a record of a trace, and its operations append records."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from tapegrad.autograd.grad_mode import recording
from tapegrad.base.abstract_array import AbstractArray, filler
from tapegrad.base.call_site import line_of, user_place, users
from tapegrad.base.nearest import no_number
from tapegrad.base.reference_counts import expected_count
from tapegrad.base.size import Size
from tapegrad.compiler.ir.graph import Node, same_record
from tapegrad.compiler.trace import control_flow
from tapegrad.compiler.trace.backward import swept
from tapegrad.compiler.trace.custom_functions import applied
from tapegrad.compiler.trace.likeness import broadcast, float_on_ones, like_view
from tapegrad.compiler.trace.trace import Plan, Trace, Untraceable, announce_long
from tapegrad.compiler.trace.traced_storage import TracedStorage, TracedView, outside
from tapegrad.dispatch.dispatch import called, promoted
from tapegrad.dispatch.index_plans import simple_index
from tapegrad.dispatch.layout_history import reshaped_in_place
from tapegrad.dispatch.op_functions import public, traced
from tapegrad.lift.levels import Level, below
from tapegrad.lift.lifted_tensor import Lifted, attach_view, become
from tapegrad.numpy_face.common import CALLS
from tapegrad.numpy_face.methods import missing
from tapegrad.ops.core import ELEMENTWISE, NO_PARAMS, Op
from tapegrad.ops.elementwise import add, div, mul, sub, where
from tapegrad.ops.linalg import matmul
from tapegrad.ops.shape import alias, clone, getitem, to
from tapegrad.ops.strided import write_view
from tapegrad.tape import versions
from tapegrad.tape.tape import current
from tapegrad.tensor import Tensor, place, wrap

_new, _new_node, _new_storage = Tensor.__new__, Node.__new__, TracedStorage.__new__
_frame: Any = sys._getframe
NO_NUMBERS: dict[float, int] = {}
_SHOWN_ONCE = expected_count(variables=1, holders=1)  # of a base that one view alone holds
EXACT = 1 << 53  # up to which a float is a whole number


class TensorTrace(Trace):
    """A trace that wraps its records in Traced Tensors."""

    __slots__ = ()

    def tensor(self, position: int, *, frozen: bool = False) -> Traced:
        """A Traced Tensor of a record; the memory of one that is `frozen` is an argument's."""
        return tensor_of(TracedStorage(self, position, frozen))

    branch, both, loop = control_flow.branch, control_flow.both, control_flow.loop

    def quick(
        self, op: Op, args: tuple[Any, ...], params: dict[str, Any], above: int
    ) -> Traced | None:
        """Append an operation if all about it is seen at once, as is usual.

        It is elementwise, on Tensors of this trace of one floating-point type and numbers that the
        trace has seen with it; or one like it was on Tensors like these before.  One function
        without calls, since programs are long.
        """
        if self.inside is not None or self.redirect is not None:
            return None
        if op.view:
            return self._quick_view(op, args[0], self._shared(op, params), 4)
        nodes, moved, numbers, missing = self.nodes, self.moved, NO_NUMBERS, False
        elementwise = op.kind is ELEMENTWISE and not params
        positions: tuple[int, ...] = ()
        first: Node | None = None
        shape: Any
        dtype: Any
        for x in args:
            if type(x) is Traced:
                if x._home is not None:
                    place(x)  # a view, whose base may have been lifted higher
                lift = x._lift
                if lift.at is not self or (lift.chain and lift.version != lift.cell.version):
                    return None
                at = lift.position
                if moved:
                    at = moved.get(at, at)
            elif type(x) is float or type(x) is int:
                positions += (numbers.get(x, -1),)
                missing = missing or positions[-1] < 0
                continue
            elif type(x) is np.ndarray and x.dtype.kind == "f":
                at = self.position(x)
            else:
                return None
            positions += (at,)
            node = nodes[at]
            if first is None:
                first, shape = node, node.shape
                if elementwise:
                    plan = self.plans.get((op, node.dtype)) or self._plan(op, node.dtype)
                    dtype, known, numbers = plan
            elif elementwise:
                if node.dtype is not first.dtype:
                    return None
                if node.shape is not shape and node.shape != shape and node.shape:
                    joint = broadcast(shape, node.shape)
                    if joint is None:
                        return None
                    shape = joint
        if first is None or (dtype is None if elementwise else missing):
            return None
        if missing:
            if positions[0] < 0 and args[0] in numbers:  # before the first Tensor
                positions = numbers[args[0]], *positions[1:]
            if -1 in positions:
                positions = self._with_numbers(op, args, positions, numbers)
        enabled = self.tape.enabled
        remembered = elementwise and enabled
        position: Any = known.get(positions) if remembered else None
        if position is None:
            strides = None
            if not elementwise or (self.strided and not self.strided.keys().isdisjoint(positions)):
                seen = self.specs.get(self.spec_key(op, positions, params))
                if seen is None:
                    return None
                shape, dtype, strides, _ = seen
            node = _new_node(Node)
            node.op, node.args, node.params, node.value = op, positions, params, None
            node.shape, node.dtype = shape, dtype
            nodes += (node,)  # nothing comes in between, as it might at a call
            self.arrays += (None,)
            position = len(nodes) - 1
            if strides is not None:
                self.strided[position] = strides
            if remembered:
                known[positions] = position
            elif not enabled:
                self.blocked.add(position)
            if position == self.long:
                announce_long()
        lift = _new_storage(TracedStorage)
        lift.at, lift.frozen, lift.version, lift.node = self, False, 0, nodes[position]
        lift.position = lift.made = position
        frame = _frame(above + 1)
        if self.line is None and id(frame.f_code) in users:
            lift.where = frame.f_code, frame.f_lasti
        else:
            lift.where = self.line or user_place(above)
        t = _new(Traced)
        t._pos, t._home, t._s, t._lift = 0, None, -1, lift
        return t

    def _plan(self, op: Op, dtype: np.dtype[Any]) -> Plan:
        """What `quick` knows of an elementwise operation on Tensors of one dtype."""
        found: Plan = float_on_ones[op, dtype], self.known.setdefault(op, {}), {}
        self.plans[op, dtype] = found
        return found

    def _shared(self, op: Op, params: dict[str, Any]) -> dict[str, Any]:
        """The first parameters like these: `Records` tells views apart by them."""
        try:
            return self.shared.setdefault((op, *params.items()), params)
        except TypeError:  # slices have no hash
            return params

    def quick_item(self, x: Traced, key: Any) -> Traced | None:
        """Append a view at an index, which is no element nor of one, if all is seen at once."""
        index = simple_index(key)
        if index is None or self.inside is not None or self.redirect is not None:
            return None
        parts, shape = index[0][:-1], x._lift.node.shape  # without dots
        if not shape or (len(parts) == len(shape) and {int}.issuperset(map(type, parts))):
            return None
        params = self.shared.get(index[1])
        again = params is not None
        if params is None:
            params = self.shared[index[1]] = {"index": index[0]}
        return self._quick_view(getitem, x, params, 3, again)

    def _quick_view(
        self, op: Op, x: Any, params: dict[str, Any], above: int, again: bool = True
    ) -> Traced | None:
        """Append a view of a Tensor of this trace, for callers so far above.

        What it is like is remembered if these parameters come `again`: rows are read once each.
        """
        if type(x) is not Traced or self.moved:
            return None
        if x._home is not None:
            place(x)
        lift = x._lift
        if lift.at is not self or (lift.chain and lift.version != lift.cell.version):
            return None
        before, nodes = lift.position, self.nodes
        node = nodes[before]
        found = key = None
        if again:
            key = op, id(params), node.shape, node.dtype, self.strided.get(before)
            found = self.specs.get(key)
        if found is None:
            found = like_view(op, self.memory(before), params)
            if found is None:
                return None
            if key is not None and op.moves != "storage":  # of which what lies around it decides
                self.specs[key] = found
        shape, dtype, strides, _ = found
        node = Node(op, (before,), params, shape, dtype)
        nodes += (node,)  # nothing comes in between, as it might at a call
        self.arrays += (None,)
        position = len(nodes) - 1
        if strides is not None:
            self.strided[position] = strides
        if position == self.long:
            announce_long()
        if not self.tape.enabled:
            self.blocked.add(position)
        chain = (*lift.chain, (op, params))
        t = tensor_of(TracedView(lift.cell, chain, position, above))
        attach_view(t, x, op, params)
        return t

    def _with_numbers(
        self, op: Op, args: tuple[Any, ...], positions: tuple[int, ...], known: dict[float, int]
    ) -> tuple[int, ...]:
        """The records of operands of one dtype, of which some are numbers: they have none yet."""
        kind = next(self.nodes[p].dtype for p in positions if p >= 0)
        given = [*positions]
        for k, x in enumerate(args):
            if given[k] >= 0:
                continue
            if op is not where and -EXACT <= x <= EXACT:
                array = np.asarray(x, kind)  # as `promoted` does
            else:
                shown = [y if p < 0 else self.memory(p) for p, y in zip(given, args, strict=True)]
                array = np.asarray(promoted(op, shown)[k])
            given[k] = self.constant(array)
            if x and array.dtype == kind:  # zeros of both signs are equal
                known[x] = given[k]
        return tuple(given)


def _operator(name: str, op: Op, flipped: bool) -> Callable[[Any, Any], Any]:
    """An operator that asks the trace first."""

    def method(self: Any, other: Any) -> Any:
        levels = current.tape.levels
        if levels and levels[-1].traces:
            given = (other, self) if flipped else (self, other)
            found = levels[-1].quick(op, given, NO_PARAMS, 1)
            if found is not None:
                return found
        return getattr(Tensor, name)(self, other)

    return method


class Traced(Lifted):
    """A Tensor whose value is known when the compiled program runs."""

    __slots__ = ()
    _kind = "`tapegrad.jit`"
    _lift: TracedStorage | TracedView

    __add__, __radd__ = _operator("__add__", add, False), _operator("__radd__", add, True)
    __sub__, __rsub__ = _operator("__sub__", sub, False), _operator("__rsub__", sub, True)
    __mul__, __rmul__ = _operator("__mul__", mul, False), _operator("__rmul__", mul, True)
    __truediv__ = _operator("__truediv__", div, False)
    __rtruediv__ = _operator("__rtruediv__", div, True)
    __matmul__ = _operator("__matmul__", matmul, False)
    __rmatmul__ = _operator("__rmatmul__", matmul, True)

    def __getitem__(self, key: Any) -> Any:
        levels = current.tape.levels
        if levels and levels[-1].traces:
            found = levels[-1].quick_item(self, key)
            if found is not None:
                return found
        return Tensor.__getitem__(self, key)

    def __getattr__(self, name: str) -> Any:
        """What has its shape and dtype, `_a`, which is made when that is first asked for."""
        if name != "_a":
            return missing(self, name)
        node = self._lift.node
        made = filler(node.shape, node.dtype).view(AbstractArray)
        made.stand_for(self)
        self._a = made
        return made

    # What has that shape need not be made for these.

    @property
    def shape(self) -> Size:
        """The shape, a tuple."""
        return Size(self._lift.node.shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._lift.node.shape)

    @staticmethod
    def _tapegrad_run(op: Op, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        found = traced(op, args, params)
        return called(op, args, params) if found is None else found

    @staticmethod
    def _run(op: Op, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        found = traced(op, args, params)
        return Lifted._run(op, args, params) if found is None else found

    @property
    def position(self) -> int:
        """The record that this Tensor stands for now."""
        lift = self._lift
        at = lift.at
        if lift.version != lift.cell.version:
            if at.redirect is not None:
                raise Untraceable
            position = lift.cell.position
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

    def __array_ufunc__(self, ufunc: np.ufunc, method: Any, *inputs: Any, **kwargs: Any) -> object:
        function = CALLS.get(ufunc) if method == "__call__" and not kwargs else None
        if function in public:
            found = traced(public[function][0], inputs, NO_PARAMS)
            if found is not None:
                return found
        return super().__array_ufunc__(ufunc, method, *inputs, **kwargs)

    def parts(self) -> tuple[Tensor, ...]:
        """What lies in memory as the value in the call that is traced."""
        return (wrap(self.its_trace.memory(self.position)),)

    def same_values(self, other: Tensor) -> bool:
        """Whether another Tensor is made by the same operations on the same records."""
        if type(other) is not Traced or other.its_trace is not self.its_trace:
            return False
        return same_record(self.its_trace.nodes, self.position, other.position)

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
        """The same memory, which stops gradients."""
        trace, lift = self.its_trace, self._lift
        position = trace.record(alias, (self.position,), {})
        trace.blocked.add(position)
        if lift.at is not trace:
            return trace.tensor(position)
        return tensor_of(lift.cell.detached(lift.chain, position))

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
        """Make an untraced Tensor, created inside the function, and its base, a Traced one."""
        assert isinstance(at, Trace)
        at = at.redirect or at
        if isinstance(target, Traced) and at.owner is not None:
            lift = target._lift
            if not lift.cell.fresh():
                raise outside(at.owner.name)
            lift.cell.move(at)  # made within the function, from what lies outside
            return
        if isinstance(target, Lifted) or target._pos:
            raise Untraceable
        base = target._base
        if base is not None:
            if reshaped_in_place(base):
                raise Untraceable
            if type(base) is Tensor and (
                sys.getrefcount(base) <= _SHOWN_ONCE or at.outsiders.is_ours(target)
            ):
                at.outsiders.take_view(target)
                cls.promote(base, at)
            place(target)  # a Traced one, if its base is
            if type(target) is not Traced:
                raise Untraceable
            return
        at.outsiders.take(target)
        position = at.constant(target._a)
        abstract = filler(target._a.shape, target._a.dtype).view(AbstractArray)
        become(target, Traced, abstract, TracedStorage(at, position, False))
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
            base = (cell.position, position)
            cell.position = trace.record(write_view, base, {"chain": lift.chain})
        else:
            cell.position = position
        cell.note_write()
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
        if lift.at.inside is not None and not lift.cell.fresh():
            assert lift.at.inside.owner is not None
            raise outside(lift.at.inside.owner.name)
        if lift.cell.made < lift.at.floor:
            raise outside("cond")

    def __bool__(self) -> bool:
        return bool(self.its_trace.concretize(self._single("a condition")))

    def item(self) -> Any:
        """The one element as a Python number; another number will need another trace."""
        if self.requires_grad:
            raise no_number("item")
        return self.its_trace.python_number(self._single("`item()`"))

    def __int__(self) -> int:
        whole = self.trunc() if self._a.dtype.kind == "f" else self  # what is cut off may vary
        return int(whole._number())

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
            "the Tensor itself (`np.stack([a, b])` instead of `np.array([a, b])`)"
            f"{self.origin()}"
        )

    def origin(self) -> str:
        """The line of the user's program that made this Tensor."""
        return f" (it was made at {':'.join(map(str, line_of(self._lift.where)))})"


def tensor_of(lift: TracedStorage | TracedView) -> Traced:
    """The Traced Tensor of a piece of memory, or of a view of it."""
    t = _new(Traced)
    t._pos, t._home, t._s, t._lift = 0, None, -1, lift
    return t


def view_of(
    trace: Trace, op: Op, args: Any, params: dict[str, Any], position: int, given: Any
) -> Traced:
    """The result of an operation: a view of its operand's memory if it is one in this call."""
    if op.view and isinstance(args[0], Traced) and args[0]._lift.at is trace:
        value, whole = trace.memory(position), trace.memory(given[0])
        if versions.memory(value) is versions.memory(whole):
            lift = args[0]._lift
            return tensor_of(TracedView(lift.cell, (*lift.chain, (op, params)), position))
    return tensor_of(TracedStorage(trace, position, False))


def _operands(trace: Trace, op: Op, args: Any) -> tuple[int, ...]:
    """The records of the operands, promoted to one dtype if the operation is elementwise."""
    if op.kind is not ELEMENTWISE:
        return tuple([trace.position(x) for x in (_typed(args) if op.scalar else args)])
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


def _shown(trace: Trace, position: int) -> np.ndarray:
    """What `promoted` reads of a record: the values if they are integers, which may be refused."""
    integers = trace.nodes[position].dtype.kind in "iu"
    return trace.value(position) if integers else trace.memory(position)


def _typed(args: Any) -> Any:
    """Python numbers in the dtype that NumPy promotes them to beside the other operands."""
    kind = np.result_type(*[x._a.dtype if isinstance(x, Tensor) else x for x in args])
    return [np.asarray(x, kind) if type(x) is int else x for x in args]

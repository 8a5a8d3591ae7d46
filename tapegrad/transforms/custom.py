"""Functions with user-defined derivatives (`custom_vjp`, `custom_jvp`), and `stop_gradient`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from tapegrad.autograd.function import Context, Function, places_and_specs, record
from tapegrad.autograd.grad_mode import enable_grad, is_grad_enabled
from tapegrad.functions.joining import stack
from tapegrad.lift.batch import Batched, batched
from tapegrad.lift.dual import Dual, dual, split
from tapegrad.lift.gradient_targets import maps_up_to, variables
from tapegrad.lift.levels import Level, below
from tapegrad.lift.lifted_tensor import highest, pull, zeros_like
from tapegrad.tape.tape import current, leaf_keys
from tapegrad.tensor import Tensor, tensor_of, wrap
from tapegrad.transforms.call_arguments import name_of, outputs, require_function
from tapegrad.transforms.pickling import findable, global_name
from tapegrad.transforms.plain_call import PlainCall, alone, check_alone, gradient, plain_call
from tapegrad.transforms.pytree import LEAF, PLAIN, Tree, flatten, is_flat, matching, unflatten
from tapegrad.transforms.pytree import tree_map as mapped
from tapegrad.transforms.transposing import transposed


def stop_gradient(x: Any) -> Any:
    """The same values as constants: no derivative passes.

    >>> import tapegrad as tg
    >>> tg.grad(lambda x: x * tg.stop_gradient(x))(3.0)
    3.0
    """
    leaves, tree = flatten(x)
    return unflatten(tree, [_stopped(t) if isinstance(t, Tensor) else t for t in leaves])


def _stopped(t: Tensor) -> Tensor:
    if isinstance(t, Dual):
        return _stopped(t._lift.primal)
    return t.varied(_stopped) if isinstance(t, Batched) else t.detach()


class _Custom:
    """A function with a user-defined derivative."""

    of_arrays = False  # whether the user's functions see arrays
    plain = False  # whether a call may be a plain one, as far as it does not depend on arguments
    backward: set[int] | None = None  # the arguments with a rule; None: all

    def __init__(self, f: Callable[..., Any], nondiff_argnums: tuple[int, ...] = ()) -> None:
        require_function(f, self._name())
        self.f = f
        self.nondiff = tuple(nondiff_argnums)
        functools.update_wrapper(self, f, updated=())

    def __reduce__(self) -> Any:
        state = {name: findable(value) for name, value in vars(self).items() if name != "recorded"}
        return global_name(self) or (object.__new__, (type(self),), state)

    @classmethod
    def _name(cls) -> str:
        return "custom_vjp"

    def _ready(self) -> bool:
        raise NotImplementedError

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if kwargs:
            args = self._by_place(args, kwargs)
        found = plain_call(self, current.tape, args, {})
        if found is not None:
            return found
        call = self.call(args, {})
        if not _matters(call.tensors):
            return self.f(*args)
        if not self._ready():
            raise RuntimeError(
                f"the derivative of {name_of(self.f)} is not defined: call "
                f"`.def{self._name()[7:]}(...)` on what `{self._name()}` returned"
            )
        return call.run()

    def _by_place(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments by their places, as rules take them; those left out have their defaults."""
        given = inspect.signature(self.f).bind(*args, **kwargs)
        given.apply_defaults()
        if given.kwargs:
            raise TypeError(
                f"`{self._name()}`: {name_of(self.f)} takes {', '.join(given.kwargs)} by keyword "
                "alone, and rules get arguments by their places: let them be given by place too"
            )
        return given.args

    def call(self, args: Any, kwargs: dict[str, Any]) -> _Call:
        """A call with some arguments."""
        return _Call(self, tuple(args), kwargs)

    def rederived(
        self, args: Any, kwargs: dict[str, Any], g: Tensor, wanted: list[int]
    ) -> list[Any]:
        """The rule of a call with one result, to be differentiated in turn, or batched."""
        call = self.call(args, kwargs)
        call.wanted = wanted  # where only `g` is batched nothing follows the arguments
        inputs = call.taken()
        call.shape = LEAF
        found: list[Any] = [None] * len(args)
        state = self.forward(call, inputs)[1]
        for k, value in zip(call.numbers, self.gradients(call, state, [g])):
            found[k] = value
        return found

    @functools.cached_property
    def recorded(self) -> type[Function]:
        """The Function that records a call, under the name of the user's function."""
        return type(name_of(self.f), (_Recorded,), {})

    def whole(self, static: list[Any], moving: tuple[Any, ...]) -> tuple[Any, ...]:
        """All arguments, in order."""
        rest, fixed = iter(moving), iter(static)
        count = len(static) + len(moving)
        return tuple(next(fixed) if k in self.nondiff else next(rest) for k in range(count))

    def gradients(self, call: _Call, state: Any, weights: list[Tensor]) -> list[Tensor | None]:
        """The gradients in the inputs of a call, of its weighted results."""
        raise NotImplementedError

    def constants(self, inputs: list[Tensor]) -> list[Any]:
        """The inputs of `forward` as constants."""
        return [x.detach() for x in inputs]

    def value(self, args: Any, kwargs: dict[str, Any]) -> tuple[Any, Any]:
        """The value, and what the derivative needs to keep, of plain arguments."""
        raise NotImplementedError

    def pulled(self, entry: PlainCall, codes: Sequence[int], g: np.ndarray) -> Sequence[Any]:
        """The gradients in the arguments of a plain call; a code is 0 where none is wanted."""
        raise NotImplementedError

    def forward(self, call: _Call, inputs: list[Tensor]) -> tuple[Any, Any]:
        """The value, and what the derivative needs to keep."""
        return self.value(call.arguments(inputs), call.kwargs)

    def tangents(
        self, call: _Call, inputs: list[Tensor], slopes: list[Tensor]
    ) -> tuple[list[Tensor], list[Tensor], Tree]:
        """The values and their tangents."""
        raise NotImplementedError


def _matters(tensors: list[Tensor]) -> bool:
    """Whether a call may be differentiated, so that its custom derivative matters."""
    lifted = None if _plain(tensors) else highest(tensors)
    if lifted is None or lifted[1].traces:  # under `no_grad` it may be running by its own rule
        return current.tape.enabled and (lifted is not None or any(t._pos for t in tensors))
    return True


def _plain(tensors: Iterable[Tensor]) -> bool:
    """Whether no Tensor is lifted."""
    return {Tensor}.issuperset(map(type, tensors))


def _floating(x: Any) -> bool:
    if isinstance(x, Tensor):
        return x._a.dtype.kind in "fc"
    if isinstance(x, np.ndarray):
        return x.dtype.kind in "fc"
    return isinstance(x, float | complex)


_GRADIENTS = {*PLAIN, type(None)}


def _as_tensor(x: Any) -> Tensor:
    return tensor_of(x, "custom_vjp")


class _Call:
    """One call of a custom function, and how to rebuild its arguments from its inputs."""

    __slots__ = ("kept", "kwargs", "numbers", "owner", "shape", "shapes", "static",
                 "tensors", "tree", "wanted")  # fmt: skip

    def __init__(self, owner: _Custom, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.owner, self.kwargs = owner, kwargs
        self.static: list[Any] = []
        if owner.nondiff:
            self.static = [args[k] for k in owner.nondiff]
            args = tuple([a for k, a in enumerate(args) if k not in owner.nondiff])
        # Constants stay; the inputs are passed anew, since a record must not hold them.
        self.kept, self.tree = flatten(args)
        self.tensors = [x for x in self.kept if isinstance(x, Tensor)]
        self.numbers = [k for k, x in enumerate(self.kept) if _floating(x)]
        self.shape: Tree | None = None  # the structure of the result
        self.wanted: list[int] = []  # the arguments that a primitive is differentiated in

    def rebuilt(self, values: Any) -> Any:
        """The arguments with other values for the inputs."""
        if len(values) != len(self.kept):
            new = list(self.kept)
            for k, value in zip(self.numbers, values, strict=True):
                new[k] = value
            values = new
        return unflatten(self.tree, list(values))

    def arguments(self, inputs: Any) -> tuple[Any, ...]:
        """All arguments of the function."""
        given: tuple[Any, ...] = self.rebuilt(inputs)
        return self.owner.whole(self.static, given) if self.static else given

    def results(self, y: Any) -> list[Tensor]:
        """The leaves of a result."""
        if type(y) is Tensor:
            self.shape = LEAF
            return [y]
        found, self.shape = outputs(y, self.owner._name(), self.owner.f)
        return found

    def taken(self) -> list[Tensor]:
        """The inputs, taken out of the arguments."""
        inputs = [_as_tensor(self.kept[k]) for k in self.numbers]
        self.shapes = [x._a.shape for x in inputs]
        self.tensors = []
        for k in self.numbers:
            self.kept[k] = None
        return inputs

    def run(self, done: Any = None) -> Any:
        """The result, by the innermost transform; `done` is the result of `forward`."""
        inputs = self.taken()
        found = self.leaves(inputs) if done is None else self._recorded(inputs, done)
        assert self.shape is not None
        return unflatten(self.shape, found)

    def leaves(self, inputs: list[Tensor]) -> list[Tensor]:
        """The leaves of the result."""
        if not current.tape.levels and _plain(inputs):
            return self._recorded(inputs)
        lifted = highest(inputs)
        if lifted is None or lifted[1].traces:
            return list(self.owner.recorded.apply(self, *inputs))
        kind, at = lifted
        with below(at):
            return self._mapped(inputs, at) if kind is Batched else self._dual(inputs, at)

    def _recorded(self, inputs: list[Tensor], done: Any = None) -> list[Tensor]:
        """`recorded.apply` where there is no transform that lifts."""
        tape = current.tape
        args = (self, *inputs)
        places, specs = places_and_specs(args, tape)
        context = Context()
        found = _values(context, self, self.owner.constants(inputs), done)
        found = [wrap(t._a.copy()) for t in found]  # the others are the user's
        context._to_save = tuple(inputs)
        recording = tape.enabled and any(places)
        return record(self.owner.recorded, context, args, places, specs, found, tape, recording)

    def _dual(self, inputs: list[Tensor], at: Level) -> list[Tensor]:
        pairs = [split(x, at) for x in inputs]
        slopes = [zeros_like(x) if t is None else t for x, t in pairs]
        values_in = [x for x, _ in pairs]
        values, tangents, self.shape = self.owner.tangents(self, values_in, slopes)
        return [dual(y, t, at) for y, t in zip(values, tangents, strict=True)]

    def _mapped(self, inputs: list[Tensor], at: Level) -> list[Tensor]:
        assert at.size is not None
        rows = []
        for i in range(at.size):
            many = [type(x) is Batched and x._lift.at is at for x in inputs]
            each = [x._lift.full[i] if m else x for x, m in zip(inputs, many, strict=True)]
            rows.append(self.leaves(each))
        return [batched(stack(list(column)), at) for column in zip(*rows, strict=True)]

    def fitted(self, given: Any, name: str) -> list[Tensor | None]:
        """Check the gradients that the user's rule returned, one for each input."""
        found = each(given, len(self.tree.children), self.owner.f)
        leaves: list[Any] = list(found)
        if not (is_flat(self.tree) and _GRADIENTS.issuperset(map(type, found))):
            leaves = []
            for part, tree in zip(found, self.tree.children, strict=True):
                size = len(flatten(unflatten(tree, [0.0] * _size(tree)))[0])
                leaves += [None] * size if part is None else matching(part, tree, name)
        return [
            None if leaves[k] is None else gradient(self.owner.f, leaves[k], shape)
            for k, shape in zip(self.numbers, self.shapes)
        ]


def each(given: Any, count: int, f: Any) -> tuple[Any, ...]:
    """What a rule returned: one gradient for each of so many arguments."""
    found = given if isinstance(given, tuple) else (given,)
    if len(found) != count:
        raise ValueError(
            f"the rule of {name_of(f)} returned {len(found)} gradients for {count} arguments"
        )
    return found


class _Recorded(Function):
    """A call as one record; its first argument is the `_Call`."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        call, *values = args
        ctx.save_for_backward(*values)
        return tuple([t.clone() for t in _values(ctx, call, [v.detach() for v in values])])

    @staticmethod
    def backward(ctx: Any, *weights: Any) -> Any:
        call, state = ctx.call, ctx.state
        if is_grad_enabled():  # what was kept is a function of the inputs too
            state = call.owner.forward(call, list(ctx.saved_tensors))[1]
            return (None, *call.owner.gradients(call, state, list(weights)))
        owner = call.owner
        return (None, *alone(owner, weights, owner.gradients, call, state, list(weights)))


def _values(ctx: Any, call: _Call, given: list[Any], done: Any = None) -> list[Tensor]:
    """The results of a call of constants; the context keeps what the derivative needs."""

    def values() -> list[Tensor]:
        y, ctx.state = call.owner.forward(call, given) if done is None else done
        return call.results(y)

    ctx.call = call
    found: list[Tensor] = alone(call.owner, given, values)
    return found


def _size(tree: Tree) -> int:
    return 1 if tree.kind is None else sum(map(_size, tree.children))


class custom_vjp(_Custom):
    """A function with a vector-Jacobian product of the user's own.

    `defvjp(fwd, bwd)`: ``fwd(*args)`` returns the value and what `bwd` needs; ``bwd(kept, g)``
    returns a tuple with one gradient (or None) for each argument.

    >>> import tapegrad as tg
    >>> @tg.custom_vjp
    ... def clipped(x):
    ...     return x
    >>> clipped.defvjp(lambda x: (x, None), lambda _, g: (tg.clamp(g, -1.0, 1.0),))
    >>> tg.grad(lambda x: 10.0 * clipped(x))(2.0)
    1.0
    """

    fwd: Callable[..., Any] | None = None
    bwd: Callable[..., Any] | None = None

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any]) -> None:
        """Say how the value is computed for the derivative, and the derivative itself."""
        self.fwd, self.bwd = fwd, bwd
        self.plain = self._ready() and not self.nondiff

    def _ready(self) -> bool:
        return self.bwd is not None

    def value(self, args: Any, kwargs: dict[str, Any]) -> tuple[Any, Any]:
        """The value, and what `bwd` needs."""
        assert self.fwd is not None
        found = self.fwd(*args)
        if not isinstance(found, tuple) or len(found) != 2:
            raise TypeError(
                f"the `fwd` of {name_of(self.f)} must return a pair (value, what bwd needs), got "
                f"{type(found).__name__}"
            )
        return found

    def pulled(self, entry: PlainCall, codes: Sequence[int], g: np.ndarray) -> Sequence[Any]:
        """What `bwd` returns."""
        assert self.bwd is not None
        return each(self.bwd(entry.state, wrap(g)), len(entry.values), self.f)

    def gradients(self, call: _Call, state: Any, weights: list[Tensor]) -> list[Tensor | None]:
        """What `bwd` returns."""
        assert self.bwd is not None
        assert call.shape is not None
        found = self.bwd(*call.static, state, unflatten(call.shape, weights))
        return call.fitted(found, name_of(self.f))

    def tangents(
        self, call: _Call, inputs: list[Tensor], slopes: list[Tensor]
    ) -> tuple[list[Tensor], list[Tensor], Tree]:
        """The tangents by transposition: `bwd` is linear in the weights."""
        values = call.leaves(inputs)
        assert call.shape is not None
        with enable_grad():
            _, state = self.forward(call, inputs)
        found = transposed(
            lambda weights: self.gradients(call, state, weights), values, slopes, name_of(self.f)
        )
        return values, found, call.shape


class custom_jvp(_Custom):
    """A function with a Jacobian-vector product of the user's own.

    `defjvp(rule)`: ``rule(primals, tangents)`` returns the value and its tangent.

    >>> import tapegrad as tg
    >>> @tg.custom_jvp
    ... def double(x):
    ...     return 2.0 * x
    >>> @double.defjvp
    ... def rule(primals, tangents):
    ...     return double(*primals), 20.0 * tangents[0]
    >>> tg.grad(double)(1.0), tg.jvp(double, (1.0,), (1.0,))
    (20.0, (2.0, 20.0))
    """

    rule: Callable[..., Any] | None = None

    @classmethod
    def _name(cls) -> str:
        return "custom_jvp"

    def defjvp(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Say how values and tangents are computed."""
        self.rule = rule
        return rule

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Say the tangent by each argument apart: `jvp(t, y, *args)`, y being the value; or None.

        >>> import tapegrad as tg
        >>> scaled = tg.custom_jvp(lambda x, n: n * x)
        >>> scaled.defjvps(lambda t, y, x, n: n * t, None)
        >>> tg.grad(scaled)(3.0, 2.0)
        2.0
        """

        def rule(*given: Any) -> tuple[Any, Any]:
            *static, primals, tangents = given
            if len(jvps) != len(primals):
                raise TypeError(
                    f"`custom_jvp`: `defjvps` of {name_of(self.f)} was given {len(jvps)} functions "
                    f"for {len(primals)} arguments: one for each, or None"
                )
            y = self(*self.whole(static, primals))
            pairs = [(jvp, t) for jvp, t in zip(jvps, tangents, strict=True) if jvp is not None]
            slopes = [jvp(*static, t, y, *primals) for jvp, t in pairs]
            if not slopes:
                return y, mapped(np.zeros_like, y)
            return y, mapped(lambda *parts: sum(parts[1:], start=parts[0]), *slopes)

        self.rule = rule

    def _ready(self) -> bool:
        return self.rule is not None

    def forward(self, call: _Call, inputs: list[Tensor]) -> tuple[Any, Any]:
        """The value; the inputs are what is kept."""
        return self.f(*call.arguments(inputs)), inputs

    def tangents(
        self, call: _Call, inputs: list[Tensor], slopes: list[Tensor]
    ) -> tuple[list[Tensor], list[Tensor], Tree]:
        """What the rule returns."""
        assert self.rule is not None
        y, slope = self.rule(*call.static, call.rebuilt(inputs), call.rebuilt(slopes))
        values = call.results(y)
        assert call.shape is not None
        given = matching(slope, call.shape, name_of(self.f))
        return values, [_as_tensor(t) for t in given], call.shape

    def gradients(self, call: _Call, state: Any, weights: list[Tensor]) -> list[Tensor | None]:
        """The gradients by transposition: tangents are linear in those of the inputs."""
        lifted = not _plain((*weights, *state))
        recorded = is_grad_enabled() and (lifted or any(t._pos for t in (*weights, *state)))
        newest = leaf_keys()
        with enable_grad():
            above = highest((*weights, *state))
            maps = [] if above is None else maps_up_to(above[1])
            with variables(map(zeros_like, state), maps) as slopes:
                _, found, _ = self.tangents(call, state, slopes)
                for t in found if not recorded else ():
                    check_alone(self, t, newest)  # the gradients will not tell
                return [*pull(found, list(weights), slopes, recorded=recorded)]

"""Functions with derivatives of the user's own, and functions that derivatives treat specially."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tapegrad.autograd.function import Function
from tapegrad.autograd.grad_mode import enable_grad, is_grad_enabled
from tapegrad.functions.joining import stack
from tapegrad.lift.batch import Batched, batched
from tapegrad.lift.core import Level, below, highest, on_tape, pull, zeros_like
from tapegrad.lift.dual import Dual, dual, split
from tapegrad.lift.variable import followed_leaves, maps_up_to, variables
from tapegrad.tape import current, leaf_keys
from tapegrad.tensor import Tensor, wrap
from tapegrad.transforms.arguments import name_of, outputs, require_function
from tapegrad.transforms.pytree import Tree, flatten, matching, unflatten
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
    """A function of which somebody says how it is differentiated."""

    def __init__(self, f: Callable[..., Any], nondiff_argnums: tuple[int, ...] = ()) -> None:
        require_function(f, self._name())
        self.f = f
        self.nondiff = tuple(nondiff_argnums)
        functools.update_wrapper(self, f, updated=())

    @classmethod
    def _name(cls) -> str:
        return "custom_vjp"

    def _ready(self) -> bool:
        raise NotImplementedError

    def __call__(self, *args: Any) -> Any:
        static = [args[k] for k in self.nondiff]
        moving = tuple(a for k, a in enumerate(args) if k not in self.nondiff)
        leaves, tree = flatten(moving)
        tensors = [x for x in leaves if isinstance(x, Tensor)]
        if not _matters(tensors):
            return self.f(*args)
        if not self._ready():
            raise RuntimeError(
                f"the derivative of {name_of(self.f)} is not defined: call "
                f"`.def{self._name()[7:]}(...)` on what `{self._name()}` returned"
            )
        numbers = [k for k, x in enumerate(leaves) if _floating(x)]
        inputs = [_as_tensor(leaves[k]) for k in numbers]

        def rebuilt(values: Any) -> tuple[Any, ...]:
            """The arguments with other values for what is differentiated."""
            new = list(leaves)
            for k, value in zip(numbers, values, strict=True):
                new[k] = value
            return unflatten(tree, new)  # type: ignore[no-any-return]

        call = _Call(self, static, rebuilt, tree, numbers, list(map(_shape, leaves)))
        return call.run(inputs)

    @functools.cached_property
    def recorded(self) -> type[Function]:
        """What puts a call on the tape, under the name of the user's function."""
        return type(name_of(self.f), (_Recorded,), {})

    def whole(self, static: list[Any], moving: tuple[Any, ...]) -> tuple[Any, ...]:
        """All arguments, in order."""
        rest, fixed = iter(moving), iter(static)
        count = len(static) + len(moving)
        return tuple(next(fixed) if k in self.nondiff else next(rest) for k in range(count))

    def gradients(self, call: _Call, state: Any, weights: list[Tensor]) -> list[Tensor | None]:
        """The gradients in the inputs of a call, of its weighted results."""
        raise NotImplementedError

    def forward(self, call: _Call, inputs: list[Tensor]) -> tuple[Any, Any]:
        """The value, and what the derivative needs to keep."""
        raise NotImplementedError

    def tangents(
        self, call: _Call, inputs: list[Tensor], slopes: list[Tensor]
    ) -> tuple[list[Tensor], list[Tensor], Tree]:
        """The values and their tangents."""
        raise NotImplementedError


def _matters(tensors: list[Tensor]) -> bool:
    """Whether it makes a difference to anybody that a function has a derivative of its own."""
    lifted = highest(tensors)
    if lifted is None or lifted[1].traces:  # under `no_grad` it may be running by its own rule
        return current.tape.enabled and (lifted is not None or any(map(on_tape, tensors)))
    return True


def _floating(x: Any) -> bool:
    if isinstance(x, Tensor):
        return x._a.dtype.kind == "f"
    return isinstance(x, float) or (isinstance(x, np.ndarray) and x.dtype.kind == "f")


def _shape(x: Any) -> tuple[int, ...]:
    return x._a.shape if isinstance(x, Tensor) else getattr(x, "shape", ())


def _as_tensor(x: Any) -> Tensor:
    return x if isinstance(x, Tensor) else wrap(np.asarray(x))


class _Call:
    """One call of a custom function: how its inputs make up the arguments."""

    def __init__(
        self, owner: _Custom, static: list[Any], rebuilt: Callable[[Any], tuple[Any, ...]],
        tree: Tree, numbers: list[int], shapes: list[tuple[int, ...]],
    ) -> None:  # fmt: skip
        self.owner, self.static, self.rebuilt = owner, static, rebuilt
        self.tree, self.numbers, self.shapes = tree, numbers, shapes
        self.shape: Tree | None = None  # the structure of the result

    def arguments(self, inputs: Any) -> tuple[Any, ...]:
        """All arguments of the function."""
        return self.owner.whole(self.static, self.rebuilt(inputs))

    def results(self, y: Any) -> list[Tensor]:
        """The leaves of a result."""
        found, self.shape = outputs(y, self.owner._name(), self.owner.f)
        return found

    def run(self, inputs: list[Tensor]) -> Any:
        """The result, by whatever transform is the innermost."""
        found = self.leaves(inputs)
        assert self.shape is not None
        return unflatten(self.shape, found)

    def leaves(self, inputs: list[Tensor]) -> list[Tensor]:
        """The leaves of the result."""
        lifted = highest(inputs)
        if lifted is None:
            return self._recorded(inputs)
        kind, at = lifted
        if at.traces:
            return self._recorded(inputs)
        with below(at):
            return self._mapped(inputs, at) if kind is Batched else self._dual(inputs, at)

    def _recorded(self, inputs: list[Tensor]) -> list[Tensor]:
        return list(self.owner.recorded.apply(self, *inputs))

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
        """Gradients that the user's rule returned, one for each input."""
        count = len(self.tree.children)
        found = given if isinstance(given, tuple) else (given,)
        if len(found) != count:
            raise ValueError(
                f"the rule of {name} returned {len(found)} gradients for {count} arguments"
            )
        leaves: list[Any] = []
        for part, tree in zip(found, self.tree.children, strict=True):
            size = len(flatten(unflatten(tree, [0.0] * _size(tree)))[0])
            leaves += [None] * size if part is None else matching(part, tree, name)
        return [None if leaves[k] is None else self._gradient(leaves[k], k) for k in self.numbers]

    def _gradient(self, g: Any, k: int) -> Tensor:
        """The gradient in one leaf of the arguments."""
        name = name_of(self.owner.f)
        if not isinstance(g, (Tensor, np.ndarray, np.generic, float, int)):
            raise TypeError(
                f"the rule of {name} returned a gradient of type {type(g).__name__}: it returns "
                "arrays, Tensors or numbers, or None for a zero"
            )
        t = _as_tensor(g)
        if t._a.shape != self.shapes[k]:
            raise ValueError(
                f"the rule of {name} returned a gradient of shape {t._a.shape} for an argument of "
                f"shape {self.shapes[k]}"
            )
        return t if t._a.dtype.kind == "f" else t.to(np.float64)


class _Recorded(Function):
    """A call as one record; its first argument is the `_Call`."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        ctx.call, *values = args
        owner = ctx.call.owner
        with _alone(ctx.call, values) as refuse:
            y, ctx.state = owner.forward(ctx.call, [v.detach() for v in values])
            results = ctx.call.results(y)
            refuse(results)
        ctx.save_for_backward(*values)
        return tuple([t.clone() for t in results])

    @staticmethod
    def backward(ctx: Any, *weights: Any) -> Any:
        call, state = ctx.call, ctx.state
        if is_grad_enabled():  # what was kept is a function of the inputs too
            state = call.owner.forward(call, list(ctx.saved_tensors))[1]
            return (None, *call.owner.gradients(call, state, list(weights)))
        with _alone(call, weights) as refuse:
            found = call.owner.gradients(call, state, list(weights))
            refuse(found)
        return (None, *found)


@contextmanager
def _alone(call: _Call, given: Sequence[Any]) -> Iterator[Callable[[Sequence[Any]], None]]:
    """What runs on constants: if a result has history all the same it read what it was not given.

    The context gives the function that refuses such results.
    """
    if highest(t for t in given if t is not None) is not None:
        yield lambda results: None
        return
    newest = leaf_keys()  # what the function makes itself is younger

    def refuse(results: Sequence[Any]) -> None:
        for t in results:
            if t is not None and any(-leaf._pos < newest for leaf in followed_leaves(t)):
                raise RuntimeError(
                    f"{name_of(call.owner.f)} (`{call.owner._name()}`) uses a Tensor that is "
                    "differentiated and is not among its arguments, so that derivative would be "
                    "lost: pass it as an argument, or as a constant (`tapegrad.stop_gradient`)"
                )

    with enable_grad():
        yield refuse


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

    def _ready(self) -> bool:
        return self.bwd is not None

    def forward(self, call: _Call, inputs: list[Tensor]) -> tuple[Any, Any]:
        """The value, and what `bwd` needs."""
        assert self.fwd is not None
        found = self.fwd(*call.arguments(inputs))
        if not isinstance(found, tuple) or len(found) != 2:
            raise TypeError(
                f"the `fwd` of {name_of(self.f)} must return a pair (value, what bwd needs), got "
                f"{type(found).__name__}"
            )
        return found

    def gradients(self, call: _Call, state: Any, weights: list[Tensor]) -> list[Tensor | None]:
        """What `bwd` returns."""
        assert self.bwd is not None
        assert call.shape is not None
        found = self.bwd(*call.static, state, unflatten(call.shape, weights))
        return call.fitted(found, name_of(self.f))

    def tangents(
        self, call: _Call, inputs: list[Tensor], slopes: list[Tensor]
    ) -> tuple[list[Tensor], list[Tensor], Tree]:
        """`bwd` is linear in the weights: its own vjp is the derivative."""
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
        """The tangents are linear in those of the inputs: transposed, they are the gradients."""
        recorded = is_grad_enabled()
        with enable_grad():
            above = highest((*weights, *state))
            maps = [] if above is None else maps_up_to(above[1])
            with variables(map(zeros_like, state), maps) as slopes:
                _, found, _ = self.tangents(call, state, slopes)
                return [*pull(found, list(weights), slopes, recorded=recorded)]

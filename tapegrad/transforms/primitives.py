"""Functions of plain arrays with rules for both directions, defined as autograd defines them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import Any

import numpy as np

from tapegrad.autograd.grad_mode import enable_grad
from tapegrad.base.native_arrays import native_array
from tapegrad.lift.levels import levels_of
from tapegrad.lift.lifted_tensor import Lifted, zeros_like
from tapegrad.tape.tape import current
from tapegrad.tensor import Tensor, place, wrap
from tapegrad.transforms.call_arguments import name_of, require_function
from tapegrad.transforms.custom import _Call, _Custom, _matters
from tapegrad.transforms.plain_call import PlainCall, plain_call
from tapegrad.transforms.pytree import Tree, flatten, matching, tree_map, unflatten
from tapegrad.transforms.transposing import transposed

Rule = Callable[..., Any]


def _followed(x: Any) -> bool:
    """Whether any leaf is a Tensor that a derivative or a map under way follows."""
    if type(x) is not Tensor:
        return any(
            _followed(t) if type(t) is Tensor else isinstance(t, Lifted) for t in flatten(x)[0]
        )
    return place(x) != 0 and current.tape.enabled


def _derived(x: Any, *, or_mapped: bool = False) -> bool:
    """Whether a derivative (or a map) under way follows any leaf: tracing alone does not count."""
    if type(x) is Tensor:
        return _followed(x)
    return any(
        t.requires_grad
        or any((or_mapped or at.size is None) and not at.traces for at in levels_of((t,)))
        for t in flatten(x)[0]
        if isinstance(t, Lifted) or _followed(t)
    )


def _seen(x: Any) -> Any:
    """What the user's rules see: plain values, but Tensors where they are followed."""
    if type(x) is Tensor:
        return x if _followed(x) else x._a[()]
    if type(x) is np.ndarray:
        return x
    if type(x) is tuple:
        return tuple([_seen(part) for part in x])
    return tree_map(lambda t: t if _followed(t) else _plain(t), x)


def _plain(t: Any) -> Any:
    """An array in place of a Tensor; under `tapegrad.jit` there is none yet."""
    return t._a[()] if isinstance(t, Tensor) and not isinstance(t, Lifted) else t


class Primitive(_Custom):
    """A function that sees plain arrays, and whose derivatives are defined by rules."""

    of_arrays = plain = True

    def __init__(self, fun: Rule) -> None:
        super().__init__(fun)
        self.fun = fun
        self.vjp: Rule | None = None  # (argnum, ans, args, kwargs) -> vjp, or None for zeros
        self.jvp: Rule | None = None  # (argnum, g, ans, args, kwargs) -> tangent, or None
        self.backward: set[int] | None = set()  # the arguments with a vjp; None: all
        self.ahead: set[int] | None = set()  # those with a jvp

    @classmethod
    def _name(cls) -> str:
        return "primitive"

    def _ready(self) -> bool:
        return True

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if kwargs:
            if _derived(kwargs, or_mapped=True):
                raise TypeError(
                    f"the primitive {name_of(self)} is differentiated in positional arguments "
                    "only: pass this one by its position"
                )
            kwargs = _seen(kwargs)
        found = plain_call(self, current.tape, args, kwargs)
        if found is not None:
            return found
        call = self.call(args, kwargs)
        if not call.tensors:
            return self.fun(*args, **kwargs)
        return call.run() if _matters(call.tensors) else self._computed(args, kwargs)

    def call(self, args: Any, kwargs: dict[str, Any]) -> _Call:
        """A call with some arguments, in which some of them is differentiated."""
        call = super().call(args, kwargs)
        call.wanted = [k for k, x in enumerate(args) if _derived(x)]
        for k in call.wanted:
            if not (_among(k, self.backward) or _among(k, self.ahead)):
                raise NotImplementedError(
                    f"no derivative of the primitive {name_of(self)} in its argument {k} is "
                    f"defined: give `defvjp` or `defjvp` a rule for it, or None for zeros"
                )
            if any(t._a.dtype.kind == "c" for t in flatten(args[k])[0] if isinstance(t, Tensor)):
                raise NotImplementedError(
                    f"the primitive {name_of(self)} is differentiated in real numbers only, got "
                    f"complex ones in its argument {k}: make it a function of their parts"
                )
        return call

    def _computed(self, args: Any, kwargs: dict[str, Any]) -> Any:
        return self.fun(*tree_map(_plain, args), **kwargs)

    def constants(self, inputs: list[Tensor]) -> list[Any]:
        """Plain arrays."""
        return [x._a[()] for x in inputs]

    def value(self, args: Any, kwargs: dict[str, Any]) -> tuple[Any, Any]:
        """The value of arrays, and what the vjps read."""
        args = tuple(args)
        ans = self.fun(*args, **kwargs)
        return ans, (ans, args)

    def pulled(self, entry: PlainCall, codes: Sequence[int], g: np.ndarray) -> Sequence[Any]:
        """What the user's vjps return."""
        ans, args = entry.state
        found: list[Any] = [None] * len(args)
        vjp = self.vjp
        assert vjp is not None
        for k in range(len(args)):
            if codes[k]:
                back = vjp(k, ans, args, entry.kwargs)
                if back is not None:
                    found[k] = back(g[()])
        return found

    def forward(self, call: _Call, inputs: list[Any]) -> tuple[Any, Any]:
        """The value, and the inputs; where they are followed, the value is a function of them."""
        args = call.arguments(inputs)
        ans = self(*args, **call.kwargs) if _followed(args) else self._computed(args, call.kwargs)
        return ans, (ans, inputs)

    def gradients(
        self, call: _Call, state: Any, weights: list[Tensor], chosen: list[int] | None = None
    ) -> list[Tensor | None]:
        """What the user's vjps return."""
        ans, inputs = state
        assert call.shape is not None
        g, ans = _seen(unflatten(call.shape, weights)), _seen(ans)
        args = _seen(call.arguments(inputs))
        found: list[Any] = [None] * len(args)
        for k in call.wanted if chosen is None else chosen:
            if not _among(k, self.backward):
                raise NotImplementedError(
                    f"no vjp of the primitive {name_of(self)} in its argument {k} is "
                    "defined, and a jvp does not serve backwards: give `defvjp` a rule for it"
                )
            assert self.vjp is not None
            back = self.vjp(k, ans, args, call.kwargs)
            found[k] = None if back is None else back(g)
        return [float_tensor(x) for x in call.fitted(tuple(found), name_of(self))]

    def tangents(
        self, call: _Call, inputs: list[Tensor], slopes: list[Tensor]
    ) -> tuple[list[Tensor], list[Tensor], Tree]:
        """What the user's jvps return; of an argument that has a vjp alone, its transpose."""
        values = call.leaves(inputs)
        assert call.shape is not None
        args = _seen(call.arguments(inputs))
        ans = _seen(unflatten(call.shape, values))
        ahead = [k for k in call.wanted if _among(k, self.ahead)]
        found = self._slopes(call, ahead, ans, args, slopes)
        rest = [k for k in call.wanted if k not in ahead]
        if rest:
            with enable_grad():
                state = self.forward(call, inputs)[1]
            more = transposed(
                lambda weights: self.gradients(call, state, weights, rest), values, slopes,
                name_of(self),
            )  # fmt: skip
            found = [a + b for a, b in zip(found, more)]
        return values, found, call.shape

    def _slopes(
        self, call: _Call, chosen: list[int], ans: Any, args: Any, slopes: list[Tensor]
    ) -> list[Tensor]:
        """The sum of the user's jvps in some arguments."""
        assert call.shape is not None
        tangents = call.rebuilt(slopes)
        total = [zeros_like(float_tensor(y)) for y in flatten(ans)[0]]
        for k in chosen:
            assert self.jvp is not None
            found = self.jvp(k, _seen(tangents[k]), ans, args, call.kwargs)
            if found is not None:
                leaves = matching(found, call.shape, name_of(self))
                total = [a + float_tensor(b) for a, b in zip(total, leaves)]
        return total


def _among(k: int, known: set[int] | None) -> bool:
    return known is None or k in known


def float_tensor(x: Any) -> Any:
    """A Tensor of what is given, in float64 unless it is one; None stays None."""
    if x is None or isinstance(x, Tensor):
        return x
    return wrap(np.asarray(native_array(x, ""), float))


def primitive(fun: Rule) -> Primitive:
    """A function that is not looked into: its derivatives are given by `defvjp` and `defjvp`.

    It sees plain arrays. Under `tapegrad.jit` alone it is traced like any other function.

    >>> import numpy as np
    >>> from tapegrad.compat.autograd import defvjp, grad, primitive
    >>> @primitive
    ... def logsumexp(x):
    ...     top = np.max(x)
    ...     return top + np.log(np.sum(np.exp(x - top)))
    >>> defvjp(logsumexp, lambda ans, x: lambda g: g * np.exp(x - ans))
    >>> grad(logsumexp)(np.array([0.0, 0.0]))
    array([0.5, 0.5])
    """
    require_function(fun, "primitive")
    return Primitive(fun)


def notrace_primitive(fun: Rule) -> Primitive:
    """A function whose result is a constant to all derivatives.

    >>> import numpy as np
    >>> from tapegrad.compat.autograd import grad
    >>> from tapegrad.compat.autograd.extend import notrace_primitive
    >>> grad(lambda x: x * notrace_primitive(np.floor)(x))(2.5)
    2.0
    """
    made = primitive(fun)
    defvjp_argnum(made, lambda argnum, ans, args, kwargs: lambda g: _nothing(args[argnum]))
    defjvp_argnum(made, lambda argnum, g, ans, args, kwargs: _nothing(ans))
    return made


def _nothing(x: Any) -> Any:
    return tree_map(lambda t: np.zeros(np.shape(t)), x)


def _checked(fun: Any, name: str) -> Primitive:
    if not isinstance(fun, Primitive):
        raise TypeError(
            f"`{name}` takes what `primitive` returned, got {name_of(fun)}: functions that have a "
            "derivative cannot be given another one, wrap them with `primitive`"
        )
    return fun


def defvjp(fun: Primitive, *vjpmakers: Rule | None, argnums: Iterable[int] | None = None) -> None:
    """Say how a primitive is differentiated backwards.

    A `vjpmaker` is called as ``vjpmaker(ans, *args, **kwargs)`` and returns the function from the
    gradient in the result to that in its argument; None means zeros. They stand for the arguments
    in order, or for those numbered in `argnums`.

    >>> from tapegrad.compat.autograd import defvjp, grad, primitive
    >>> double = primitive(lambda x: 2.0 * x)
    >>> defvjp(double, lambda ans, x: lambda g: 2.0 * g)
    >>> grad(double)(1.0)
    2.0
    """
    rules = dict(zip(count() if argnums is None else argnums, vjpmakers))
    owner = _checked(fun, "defvjp")
    for rule in rules.values():
        if rule is not None and not callable(rule):
            raise TypeError(f"`defvjp`: a rule is a function or None, got {rule!r}")

    def made(argnum: int, ans: Any, args: Any, kwargs: Any) -> Any:
        rule = rules[argnum]
        return None if rule is None else rule(ans, *args, **kwargs)

    owner.vjp, owner.backward = made, set(rules)


def defvjp_argnum(fun: Primitive, vjpmaker: Rule) -> None:
    """One rule for all arguments: ``vjpmaker(argnum, ans, args, kwargs)`` returns a vjp.

    >>> from tapegrad.compat.autograd import grad, primitive
    >>> from tapegrad.compat.autograd.extend import defvjp_argnum
    >>> total = primitive(lambda *xs: sum(xs))
    >>> defvjp_argnum(total, lambda argnum, ans, args, kwargs: lambda g: g)
    >>> grad(total, argnum=1)(1.0, 2.0)
    1.0
    """
    owner = _checked(fun, "defvjp_argnum")
    owner.vjp, owner.backward = vjpmaker, None


def defjvp(
    fun: Primitive, *jvpfuns: Rule | str | None, argnums: Iterable[int] | None = None
) -> None:
    """Say how a primitive is differentiated forwards.

    A `jvpfun` is called as ``jvpfun(g, ans, *args, **kwargs)`` with the tangent of its argument and
    returns that of the result; None means zeros, "same" that the function is linear in it.

    >>> from tapegrad.compat.autograd import defjvp, make_jvp, primitive
    >>> double = primitive(lambda x: 2.0 * x)
    >>> defjvp(double, "same")
    >>> make_jvp(double)(1.0)(10.0)
    (2.0, 20.0)
    """
    rules = dict(zip(count() if argnums is None else argnums, jvpfuns))
    owner = _checked(fun, "defjvp")
    for rule in rules.values():
        if rule is not None and rule != "same" and not callable(rule):
            raise TypeError(f"`defjvp`: a rule is a function, 'same' or None, got {rule!r}")

    def made(argnum: int, g: Any, ans: Any, args: Any, kwargs: Any) -> Any:
        rule = rules[argnum]
        if rule == "same":
            return owner(*args[:argnum], g, *args[argnum + 1 :], **kwargs)
        return rule(g, ans, *args, **kwargs) if callable(rule) else None

    owner.jvp, owner.ahead = made, set(rules)


def defjvp_argnum(fun: Primitive, jvpmaker: Rule) -> None:
    """One rule for all arguments: ``jvpmaker(argnum, g, ans, args, kwargs)`` returns a tangent.

    >>> from tapegrad.compat.autograd import make_jvp, primitive
    >>> from tapegrad.compat.autograd.extend import defjvp_argnum
    >>> total = primitive(lambda *xs: sum(xs))
    >>> defjvp_argnum(total, lambda argnum, g, ans, args, kwargs: g)
    >>> make_jvp(total)(1.0, 2.0)(10.0)
    (3.0, 10.0)
    """
    owner = _checked(fun, "defjvp_argnum")
    owner.jvp, owner.ahead = jvpmaker, None


def def_linear(fun: Primitive) -> None:
    """Say that a primitive is linear in each of its arguments.

    >>> from tapegrad.compat.autograd import make_jvp, primitive
    >>> from tapegrad.compat.autograd.extend import def_linear
    >>> double = primitive(lambda x: 2.0 * x)
    >>> def_linear(double)
    >>> make_jvp(double)(1.0)(10.0)
    (2.0, 20.0)
    """
    owner = _checked(fun, "def_linear")
    defjvp_argnum(
        owner, lambda k, g, ans, args, kwargs: owner(*args[:k], g, *args[k + 1 :], **kwargs)
    )


__all__ = [
    "def_linear", "defjvp", "defjvp_argnum", "defvjp", "defvjp_argnum", "notrace_primitive",
    "primitive",
]  # fmt: skip

"""Run a user's `Function` in forward mode, by its `jvp`."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from tapegrad.autograd.function import Context, Function
from tapegrad.autograd.grad_mode import no_grad
from tapegrad.lift.lifted_tensor import zeros_like
from tapegrad.tape import versions
from tapegrad.tensor import Tensor

Pairs = list[tuple[Any, Tensor | None]]  # the value of an argument, and its tangent if it has one
Joined = Callable[[Tensor, Tensor], Tensor]  # makes one Tensor of both


def applied(
    cls: type[Function], args: tuple[Any, ...], pairs: Pairs, joined: Joined
) -> tuple[list[Any], bool, dict[int, Any]]:
    """The results of the values with what `jvp` makes of the tangents, whether these are several,
    and which of them are arguments changed in place.
    """
    name = cls.__name__
    if cls.jvp is Function.jvp:
        raise NotImplementedError(
            f"the Function {name} met forward mode: define its tangents in a static method "
            "`jvp(ctx, *tangents)`"
        )
    primals = tuple([x for x, _ in pairs])
    if cls.setup_context is not None:
        out = cls.apply(*primals)
        context = Context()
        context.needs(primals)
        with no_grad():
            cls.setup_context(context, primals, out)
    elif any(isinstance(x, Tensor) and type(x) is not Tensor for x in primals):
        raise needs_setup(name)
    else:
        out, context = cls._applied(primals)
    context = copy.copy(context)  # the other keeps what `backward` needs
    context._to_save, context._tape = context._for_forward, None
    tangents = [_slope(x, t, context._materialize) for x, t in pairs]
    several = isinstance(out, (tuple, list))
    outputs = list(out) if several else [out]
    before = [t._version if isinstance(t, Tensor) else 0 for t in tangents]
    slopes = cls.jvp(context, *tangents)
    slopes = list(slopes) if isinstance(slopes, (tuple, list)) else [slopes]
    if len(slopes) != len(outputs):
        raise RuntimeError(
            f"`{name}.jvp` returned an incorrect number of tangents: expected {len(outputs)}, "
            f"one for each output of forward, got {len(slopes)}"
        )
    constant = {id(t) for t in context._constant}
    for j, (y, t) in enumerate(zip(outputs, slopes, strict=True)):
        if t is not None and id(y) in constant:
            raise RuntimeError(
                f"`{name}.jvp` returned a tangent for output {j}, which is marked as not "
                "differentiable: return None there"
            )
    dirty = {id(x): a for x, a in zip(primals, args, strict=True)
             if any(x is d for d in context._dirty)}  # fmt: skip
    for j, (y, t) in enumerate(zip(outputs, slopes, strict=True)):
        for x, given, version in zip(primals, tangents, before, strict=True):
            if type(x) is type(y) is type(t) is type(given) is Tensor:
                same = given is t and t._version != version
                _check_shared(name, j, (x, given), (y, t), same if id(y) in dirty else None)
    results = [
        y if id(y) in constant else _joined(y, t, j, name, joined)
        for j, (y, t) in enumerate(zip(outputs, slopes, strict=True))
    ]
    changed = {j: dirty[id(y)] for j, y in enumerate(outputs) if id(y) in dirty}
    return results, several, changed


def _check_shared(
    name: str, j: int, argument: tuple[Tensor, Tensor], output: tuple[Tensor, Tensor],
    same: bool | None,
) -> None:  # fmt: skip
    """Refuse a tangent that does not alias the argument's where the output aliases the argument.

    `same`: of an output that `forward` changed in place, whether `jvp` did that to this tangent.
    """
    (x, dx), (y, dy) = argument, output
    if same is not None:
        if x is y and not same:
            raise RuntimeError(
                f"`{name}.jvp`: output {j} is an argument that `forward` changed in place, so "
                "`jvp` must change its tangent in place and return it"
            )
    elif versions.root(x._a) is versions.root(y._a) and not (
        dy._is_view() and versions.root(dx._a) is versions.root(dy._a)
    ):
        raise RuntimeError(
            f"`{name}.jvp`: output {j} is a view of an argument (or the argument itself), so its "
            "tangent must be a view of the argument's: return `t.view_as(t)` for the argument "
            "itself, or a clone in `forward`"
        )


def needs_setup(name: str) -> RuntimeError:
    """The error for a Function without `setup_context`."""
    return RuntimeError(
        f"the Function {name} met several transforms: define `forward(*args)` without ctx and a "
        "static method `setup_context(ctx, inputs, output)`"
    )


def _slope(x: Any, t: Tensor | None, materialize: bool) -> Tensor | None:
    if t is not None or not materialize or not isinstance(x, Tensor) or x._a.dtype.kind not in "fc":
        return t
    return zeros_like(x)


def _joined(y: Any, t: Any, j: int, name: str, joined: Joined) -> Any:
    """An output with its tangent."""
    if t is None or not isinstance(y, Tensor) or y._a.dtype.kind not in "fc":
        return y
    if not isinstance(t, Tensor):
        raise TypeError(
            f"`{name}.jvp` returned {type(t).__name__} for output {j}: expected a Tensor or None"
        )
    if t._a.shape != y._a.shape:
        raise RuntimeError(
            f"`{name}.jvp` returned a tangent of shape {t._a.shape} for output {j}, which has the "
            f"shape {y._a.shape}"
        )
    return joined(y, t if t._a.dtype == y._a.dtype else t.to(y.dtype))

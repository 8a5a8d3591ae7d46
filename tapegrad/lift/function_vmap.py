"""Batch a user's `Function`: by its `vmap`, or by running it on all examples at once."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from tapegrad.autograd.function import Context, Function
from tapegrad.dispatch.dispatch import run
from tapegrad.lift.function_jvp import needs_setup
from tapegrad.lift.levels import Level, level
from tapegrad.lift.lifted_tensor import Lifted
from tapegrad.ops.reduce import sum as total
from tapegrad.ops.shape import permute
from tapegrad.tensor import Tensor


class VmapInfo(NamedTuple):
    """What `Function.vmap` is told about the map."""

    batch_size: int
    randomness: str


def applied(cls: type[Function], given: list[Any], many: tuple[bool, ...], at: Level) -> Any:
    """The results of a Function; `given` are all examples of those arguments that have `many`."""
    name = cls.__name__
    own = cls.vmap is not Function.vmap
    if own and cls.generate_vmap_rule:
        raise RuntimeError(
            f"the Function {name} has both a static method `vmap` and `generate_vmap_rule=True`: "
            "keep one of them"
        )
    if not own and not cls.generate_vmap_rule:
        raise RuntimeError(
            f"the Function {name} met `vmap`: define a static method `vmap(info, in_dims, *args)`, "
            "or set `generate_vmap_rule = True` if its methods are made of operations"
        )
    assert at.size is not None
    if not own:
        if cls.setup_context is None:
            raise needs_setup(name)
        out = generated(cls, many, at).apply(*given)
        several = isinstance(out, tuple)
        results = [_lifted_out(y, 0, name, at) for y in (out if several else (out,))]
        return tuple(results) if several else results[0]
    info = VmapInfo(at.size, at.randomness)
    found = cls.vmap(info, tuple([0 if m else None for m in many]), *given)
    if not isinstance(found, tuple) or len(found) != 2:
        raise RuntimeError(
            f"`{name}.vmap` must return a pair (results, where their examples lie), got "
            f"{type(found).__name__}"
        )
    out, dims = found
    several = isinstance(out, (tuple, list))
    outputs = list(out) if several else [out]
    places = list(dims) if isinstance(dims, (tuple, list)) else [dims] * len(outputs)
    if len(places) != len(outputs) or (type(dims) in (tuple, list) and type(dims) is not type(out)):
        raise RuntimeError(
            f"`{name}.vmap` returned an incompatible pair: a {type(out).__name__} of results and "
            f"a {type(dims).__name__} of dimensions, which must be alike, or one dimension for all"
        )
    results = [_lifted_out(y, d, name, at) for y, d in zip(outputs, places, strict=True)]
    return tuple(results) if several else results[0]


def _lifted_out(y: Any, dim: int | None, name: str, at: Level) -> Any:
    """Lift a result batched in a dimension; None: the same for all examples."""
    if dim is None or not isinstance(y, Tensor):
        return y
    ndim, shape = y._a.ndim, y._a.shape
    if not -ndim <= dim < ndim or shape[dim] != at.size:
        raise RuntimeError(
            f"`{name}.vmap` returned a result of shape {shape} whose examples are said to lie "
            f"along dimension {dim}: there are {at.size} examples"
        )
    if dim % ndim:
        rest = [d for d in range(ndim) if d != dim % ndim]
        y = run(permute, (y,), {"dims": (dim % ndim, *rest)})
    return at.batch(y)


class _Kept:
    """The attributes that `setup_context` set: batches as one Tensor, to be lifted again."""

    def __init__(self, inner: Context, at: Level) -> None:
        self.values = {k: _lowered(v, at) for k, v in vars(inner).items() if k[0] != "_"}
        self.materialize = inner._materialize
        self.saved = [_lowered(t, at) for t in inner._to_save]
        self.forward = [_lowered(t, at) for t in inner._for_forward]

    def context(self, tensors: Any, many: Any, at: Level) -> Context:
        """The context at a new level."""
        inner = Context()
        for key, (value, is_many) in self.values.items():
            setattr(inner, key, at.batch(value) if is_many else value)
        inner._to_save = tuple(
            [at.batch(t) if m else t for t, m in zip(tensors, many, strict=True)]
        )
        return inner


def _lowered(value: Any, at: Level) -> tuple[Any, bool]:
    """A value or all its examples, and whether it is a batch."""
    if isinstance(value, Lifted) and value._lift.at is at:
        return value.parts()[0], True
    return value, False


def generated(cls: type[Function], many: tuple[bool, ...], outer: Level) -> type[Function]:
    """The Function of all examples; `many` says which arguments have examples."""
    again = functools.partial(type(outer), outer.size, outer.randomness)

    class Mapped(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(*args: Any) -> Any:
            with level(again()) as at:
                out = cls.forward(*lifted(args, at))
                several = isinstance(out, (tuple, list))
                found = [_all(y, at) for y in (out if several else (out,))]
            return tuple(found) if several else found[0]

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            several = isinstance(output, tuple)
            with level(again()) as at:
                ins = lifted(inputs, at)
                outs = [at.batch(y) if isinstance(y, Tensor) else y
                        for y in (output if several else (output,))]  # fmt: skip
                inner = Context()
                inner.needs_input_grad = ctx.needs_input_grad
                cls.setup_context(inner, tuple(ins), tuple(outs) if several else outs[0])
                if inner._dirty:
                    raise RuntimeError(
                        f"the Function {cls.__name__} changes an argument in place (`mark_dirty`): "
                        "no rule for `vmap` can be generated; return a new Tensor"
                    )
                constant = {id(t) for t in inner._constant}
                flat = output if several else (output,)
                ctx.mark_non_differentiable(
                    *[y for y, o in zip(flat, outs, strict=True) if id(o) in constant]
                )
                ctx.kept = kept = _Kept(inner, at)
            ctx.set_materialize_grads(kept.materialize)
            ctx.save_for_backward(*[t for t, _ in kept.saved])
            ctx.save_for_forward(*[t for t, _ in kept.forward])

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            flags = [m for _, m in ctx.kept.saved]
            with level(again()) as at:
                inner = ctx.kept.context(ctx.saved_tensors, flags, at)
                found = cls.backward(inner, *[None if g is None else at.batch(g) for g in grads])
                found = found if isinstance(found, (tuple, list)) else (found,)
                gradients = [
                    g if g is None or not isinstance(g, Tensor) else at.all_of(g) for g in found
                ]
            return tuple([
                g if g is None or k >= len(many) or many[k] else _summed(g)
                for k, g in enumerate(gradients)
            ])  # fmt: skip

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            kept = ctx.kept
            flags = [m for _, m in kept.forward]
            with level(again()) as at:
                inner = kept.context(ctx.saved_tensors, flags, at)
                found = cls.jvp(inner, *lifted(tangents, at))
                several = isinstance(found, (tuple, list))
                slopes = [
                    None if t is None else at.all_of(t) for t in (found if several else (found,))
                ]
            return tuple(slopes) if several else slopes[0]

    def lifted(args: Any, at: Level) -> list[Any]:
        return [
            at.batch(a) if m and isinstance(a, Tensor) else a
            for a, m in zip(args, many, strict=True)
        ]

    if cls.jvp is Function.jvp:
        Mapped.jvp = Function.jvp  # type: ignore[method-assign]
    Mapped.__name__ = cls.__name__
    return Mapped


def _all(y: Any, at: Level) -> Any:
    return at.all_of(y) if isinstance(y, Tensor) else y


def _summed(g: Tensor) -> Tensor:
    """The gradient of an argument that is the same for all examples."""
    return run(total, (g,), {"dim": (0,), "keepdim": False})

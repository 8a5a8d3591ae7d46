"""A user's `Function` on lifted Tensors: its `jvp` in forward mode, its `vmap` under a map."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

from tapegrad.autograd.function import Context, Function, applying_lifted
from tapegrad.autograd.grad_mode import no_grad
from tapegrad.dispatch.dispatch import run
from tapegrad.lift.batch import Batched, all_of, batched
from tapegrad.lift.dual import dual, split
from tapegrad.lift.lifted_tensor import Level, Lifted, below, highest, level, overwrite, zeros_like
from tapegrad.ops.reduce import sum as total
from tapegrad.ops.shape import permute
from tapegrad.tape import versions
from tapegrad.tensor import Tensor


class VmapInfo(NamedTuple):
    """What `Function.vmap` is told about the map."""

    batch_size: int
    randomness: str


@applying_lifted
def apply_lifted(cls: type[Function], args: tuple[Any, ...]) -> Any:
    """Run a Function of which an argument is lifted."""
    found = highest(args)
    assert found is not None
    kind, at = found
    if at.traces:
        with below(at, and_itself=True):
            return at.apply(cls, args)
    with below(at):
        if kind is Batched:
            return _mapped(cls, args, at)
        outputs, several, changed = _dual(cls, args, at)
    for j, target in changed.items():  # the argument itself, which gets the tangent in place
        overwrite(target, outputs[j])
        outputs[j] = target
    return tuple(outputs) if several else outputs[0]


# -- forward mode ------------------------------------------------------------------------------


def _dual(
    cls: type[Function], args: tuple[Any, ...], at: Level
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
    pairs = [split(a, at) for a in args]
    primals = tuple([x for x, _ in pairs])
    if cls.setup_context is not None:
        out = cls.apply(*primals)
        context = Context()
        context.needs(primals)
        with no_grad():
            cls.setup_context(context, primals, out)
    elif any(isinstance(x, Lifted) for x in primals):
        raise _needs_setup(name)
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
        y if id(y) in constant else _joined(y, t, j, name, at)
        for j, (y, t) in enumerate(zip(outputs, slopes, strict=True))
    ]
    changed = {j: dirty[id(y)] for j, y in enumerate(outputs) if id(y) in dirty}
    return results, several, changed


def _check_shared(
    name: str, j: int, argument: tuple[Tensor, Tensor], output: tuple[Tensor, Tensor],
    same: bool | None,
) -> None:  # fmt: skip
    """Refuse a tangent that is apart from the argument's where an output is not.

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


def _needs_setup(name: str) -> RuntimeError:
    return RuntimeError(
        f"the Function {name} met several transforms: define `forward(*args)` without ctx and a "
        "static method `setup_context(ctx, inputs, output)`"
    )


def _slope(x: Any, t: Tensor | None, materialize: bool) -> Tensor | None:
    if t is not None or not materialize or not isinstance(x, Tensor) or x._a.dtype.kind not in "fc":
        return t
    return zeros_like(x)


def _joined(y: Any, t: Any, j: int, name: str, at: Level) -> Any:
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
    return dual(y, t if t._a.dtype == y._a.dtype else t.to(y.dtype), at)


# -- maps --------------------------------------------------------------------------------------


def _mapped(cls: type[Function], args: tuple[Any, ...], at: Level) -> Any:
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
    many = tuple([type(a) is Batched and a._lift.at is at for a in args])
    given = [a._lift.full if m else a for a, m in zip(args, many, strict=True)]
    if not own:
        if cls.setup_context is None:
            raise _needs_setup(name)
        out = generated(cls, many, at.size, at.randomness).apply(*given)
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
    if len(places) != len(outputs):
        raise RuntimeError(
            f"`{name}.vmap` returned {len(outputs)} results and {len(places)} dimensions"
        )
    results = [_lifted_out(y, d, name, at) for y, d in zip(outputs, places, strict=True)]
    return tuple(results) if several else results[0]


def _lifted_out(y: Any, dim: int | None, name: str, at: Level) -> Any:
    """A result whose examples lie along a dimension; None: the same for all."""
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
    return batched(y, at)


class _Kept:
    """What `setup_context` left on its context: examples as one Tensor, to be lifted anew."""

    def __init__(self, inner: Context, at: Level) -> None:
        self.values = {k: _lowered(v, at) for k, v in vars(inner).items() if k[0] != "_"}
        self.materialize = inner._materialize
        self.saved = [_lowered(t, at) for t in inner._to_save]
        self.forward = [_lowered(t, at) for t in inner._for_forward]

    def context(self, tensors: Any, many: Any, at: Level) -> Context:
        """The context at a new level."""
        inner = Context()
        for key, (value, is_many) in self.values.items():
            setattr(inner, key, batched(value, at) if is_many else value)
        inner._to_save = tuple(
            [batched(t, at) if m else t for t, m in zip(tensors, many, strict=True)]
        )
        return inner


def _lowered(value: Any, at: Level) -> tuple[Any, bool]:
    """A value, or all its examples, and which of the two it is."""
    if type(value) is Batched and value._lift.at is at:
        return value._lift.full, True
    return value, False


def generated(
    cls: type[Function], many: tuple[bool, ...], size: int, randomness: str
) -> type[Function]:
    """The Function of all examples; `many` says which arguments have examples."""

    class Mapped(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(*args: Any) -> Any:
            with level(size, randomness) as at:
                out = cls.forward(*lifted(args, at))
                several = isinstance(out, (tuple, list))
                found = [_all(y, at) for y in (out if several else (out,))]
            return tuple(found) if several else found[0]

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            several = isinstance(output, tuple)
            with level(size, randomness) as at:
                ins = lifted(inputs, at)
                outs = [batched(y, at) if isinstance(y, Tensor) else y
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
            with level(size, randomness) as at:
                inner = ctx.kept.context(ctx.saved_tensors, flags, at)
                found = cls.backward(inner, *[None if g is None else batched(g, at) for g in grads])
                found = found if isinstance(found, (tuple, list)) else (found,)
                gradients = [
                    g if g is None or not isinstance(g, Tensor) else all_of(g, at) for g in found
                ]
            return tuple([
                g if g is None or k >= len(many) or many[k] else _summed(g)
                for k, g in enumerate(gradients)
            ])  # fmt: skip

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            kept = ctx.kept
            flags = [m for _, m in kept.forward]
            with level(size, randomness) as at:
                inner = kept.context(ctx.saved_tensors, flags, at)
                found = cls.jvp(inner, *lifted(tangents, at))
                several = isinstance(found, (tuple, list))
                slopes = [
                    None if t is None else all_of(t, at) for t in (found if several else (found,))
                ]
            return tuple(slopes) if several else slopes[0]

    def lifted(args: Any, at: Level) -> list[Any]:
        return [
            batched(a, at) if m and isinstance(a, Tensor) else a
            for a, m in zip(args, many, strict=True)
        ]

    if cls.jvp is Function.jvp:
        Mapped.jvp = Function.jvp  # type: ignore[method-assign]
    Mapped.__name__ = cls.__name__
    return Mapped


def _all(y: Any, at: Level) -> Any:
    return all_of(y, at) if isinstance(y, Tensor) else y


def _summed(g: Tensor) -> Tensor:
    """The gradient of an argument that is the same for all examples."""
    return run(total, (g,), {"dim": (0,), "keepdim": False})

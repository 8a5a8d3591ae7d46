"""Calls of functions that Numba compiles as records: their values, gradients, tangents, and both.

Each is a `Function`.  The derivative of one is another, up to the second order.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

import numpy as np

from tapegrad.autograd.function import Function
from tapegrad.compiler.llvm.function_builder import Routine
from tapegrad.functions.pure_callback import pure_callback
from tapegrad.lift.batch import Batched
from tapegrad.lift.lifted_tensor import Lifted
from tapegrad.njit.compiled_calls import routine_of
from tapegrad.njit.recorded_call import RecordedCall
from tapegrad.ops.core import Spec
from tapegrad.tensor import Tensor, wrap

Numbers = tuple[int, ...]  # of Tensors among the arguments
OnArrays = Callable[..., list[np.ndarray]]


class _Record(Function):
    """A function of a call, of what is static, and of Tensors."""

    generate_vmap_rule = True

    @classmethod
    def _backward_only(cls, context: Any) -> bool:
        return False

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Keep everything."""
        tensors = [x for x in inputs if isinstance(x, Tensor)]
        ctx.lead = inputs[: len(inputs) - len(tensors)]
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)


class NumbaCall(_Record):
    """The leaves of the result."""

    @staticmethod
    def forward(call: RecordedCall, *xs: Tensor) -> tuple[Tensor, ...]:
        """Call the function."""
        found = _computed(call, xs, call.value)
        call.outputs = [_spec(y) for y in found]
        return found

    @staticmethod
    def backward(ctx: Any, *gs: Any) -> tuple[Any, ...]:
        """The reverse sweep, which runs the function again."""
        (call,), xs = ctx.lead, ctx.saved_tensors
        wanted = _wanted(call, ctx.needs_input_grad[1:])
        found = Gradients.apply(call, wanted, *xs, *_adjoints(call, gs)) if wanted else ()
        return (None, *_spread(found, wanted, len(xs)))

    @staticmethod
    def jvp(ctx: Any, *ts: Any) -> tuple[Any, ...]:
        """The forward derivative, which runs the function again."""
        (call,), xs = ctx.lead, ctx.saved_tensors
        moved, along = _moved(ts[1:])
        found = iter(Tangents.apply(call, moved, *xs, *along) if moved else ())
        return tuple([next(found, None) if _has_derivative(y) else None for y in call.outputs])


class Gradients(_Record):
    """The gradients of the result, weighted by adjoints, in some of the Tensors."""

    @staticmethod
    def forward(call: RecordedCall, wanted: Numbers, *xs: Tensor) -> tuple[Tensor, ...]:
        """Run the forward and the reverse sweep."""
        specs = [_spec(xs[k]) for k in wanted]
        return _computed(call, xs, functools.partial(call.gradients, wanted), specs)

    @staticmethod
    def backward(ctx: Any, *ws: Any) -> tuple[Any, ...]:
        """The Hessian of the weighted result times `ws`, and the tangents along them."""
        (call, wanted), xs, gs = _parts(ctx)
        needs = ctx.needs_input_grad[2:]
        again = _wanted(call, needs[: len(xs)])
        given, along = _moved(ws)
        moved = tuple([wanted[j] for j in given])
        if again:
            found = Second.apply(call, again, moved, *xs, *gs, *along)
        else:
            found = Tangents.apply(call, moved, *xs, *along)
        first = len(gs)
        return (None, None, *_spread(found[first:], again, len(xs)), *found[:first])

    @staticmethod
    def jvp(ctx: Any, *ts: Any) -> tuple[Any, ...]:
        """Linear in the adjoints; along the Tensors forward over reverse."""
        (call, wanted), xs, gs = _parts(ctx)
        found: list[Any] = [None] * len(wanted)
        moved, along = _moved(ts[2 : 2 + len(xs)])
        if moved:
            found = list(Second.apply(call, wanted, moved, *xs, *gs, *along)[len(gs) :])
        weights = ts[2 + len(xs) :]
        if any(w is not None for w in weights):
            more = Gradients.apply(call, wanted, *xs, *_adjoints_of(call, weights))
            found = [m if f is None else f + m for f, m in zip(found, more, strict=True)]
        return tuple(found)


class Tangents(_Record):
    """The tangents of the result, of those of some of the Tensors."""

    @staticmethod
    def forward(call: RecordedCall, moved: Numbers, *xs: Tensor) -> tuple[Tensor, ...]:
        """Run the forward sweep with tangents."""
        return _computed(call, xs, functools.partial(call.tangents, moved), call.float_outputs)

    @staticmethod
    def backward(ctx: Any, *ws: Any) -> tuple[Any, ...]:
        """Linear in the tangents; in the Tensors forward over reverse."""
        (call, moved), tensors = ctx.lead, ctx.saved_tensors
        count = len(call.places)
        xs, along = tensors[:count], tensors[count:]
        gs = _adjoints_of(call, ws)
        again = _wanted(call, ctx.needs_input_grad[2 : 2 + count])
        found = Second.apply(call, again, moved, *xs, *gs, *along)[len(gs) :] if again else ()
        linear = Gradients.apply(call, moved, *xs, *gs)
        return (None, None, *_spread(found, again, count), *linear)

    @staticmethod
    def jvp(ctx: Any, *ts: Any) -> tuple[Any, ...]:
        """Along the tangents alone: forward mode in forward mode there is none."""
        (call, moved), tensors = ctx.lead, ctx.saved_tensors
        count = len(call.places)
        if any(t is not None for t in ts[2 : 2 + count]):
            raise NotImplementedError(
                f"a forward derivative within a forward derivative of `{call.name}`, which Numba "
                "compiles: take one of both in reverse (`tapegrad.hessian`, `tapegrad.grad` within "
                "`tapegrad.jvp`)"
            )
        along = [
            wrap(np.zeros(x._a.shape, x._a.dtype)) if t is None else t
            for t, x in zip(ts[2 + count :], tensors[count:], strict=True)
        ]
        found: tuple[Any, ...] = Tangents.apply(call, moved, *tensors[:count], *along)
        return found


class Second(_Record):
    """The tangents of the result, then those of the gradients in some of the Tensors."""

    @staticmethod
    def forward(
        call: RecordedCall, wanted: Numbers, moved: Numbers, *xs: Tensor
    ) -> tuple[Tensor, ...]:
        """Run both sweeps with tangents."""
        specs = call.float_outputs + [_spec(xs[k]) for k in wanted]
        return _computed(call, xs, functools.partial(call.second, wanted, moved), specs)

    @staticmethod
    def backward(ctx: Any, *ws: Any) -> NoReturn:
        """Refused."""
        raise NotImplementedError(
            f"a third derivative of `{ctx.lead[0].name}`, which Numba compiles: there are first "
            "and second ones"
        )

    jvp = backward


def _computed(
    call: RecordedCall,
    tensors: Sequence[Tensor],
    run: OnArrays,
    specs: Sequence[Spec] | None = None,
) -> tuple[Tensor, ...]:  # fmt: skip
    """What a function of arrays makes of Tensors: at once, or by callbacks if they are lifted.

    A callback returns one array, in which results of one type lie one behind the other.
    """
    if all(type(t) is Tensor for t in tensors):
        return tuple([wrap(a) for a in run(*[t._a for t in tensors])])
    if specs is None:
        specs = [Spec(a.shape, a.dtype) for a in run(*map(_example, tensors))]
    found: list[Any] = [None] * len(specs)
    for kind in dict.fromkeys([spec.dtype for spec in specs]):
        places = [k for k, spec in enumerate(specs) if spec.dtype == kind]
        sizes = [math.prod(specs[k].shape) for k in places]
        packed = Packed(call, run, specs, places)
        whole = pure_callback(packed, (sum(sizes),), *tensors, dtype=kind)
        at = 0
        for k, size in zip(places, sizes, strict=True):
            found[k] = whole[at : at + size].reshape(specs[k].shape)
            at += size
    return tuple(found)


class Packed:
    """Some of the results of a function of arrays as one array."""

    def __init__(
        self, call: RecordedCall, run: OnArrays, specs: Sequence[Spec], places: Sequence[int]
    ) -> None:
        self.call, self.run, self.specs, self.places = call, run, specs, places

    def __call__(self, *arrays: np.ndarray) -> np.ndarray:
        """The results."""
        results = self.run(*arrays)
        for a, spec in zip(results, self.specs, strict=True):
            if a.shape != spec.shape:
                raise RuntimeError(
                    f"`{self.call.name}` returned an array of shape {a.shape}, and one of shape "
                    f"{spec.shape} for the values that a program was compiled with: under "
                    "`tapegrad.jit` and `tapegrad.vmap` shapes must not depend on values"
                )
        return np.concatenate([results[k].reshape(-1) for k in self.places])

    def routine(self) -> Routine | None:
        """The same for a compiled program, which calls the sweep itself."""
        run, wanted = self.run, None
        if isinstance(run, functools.partial) and run.func == self.call.gradients:
            (wanted,) = run.args
        elif run != self.call.value:
            return None
        return routine_of(self.call, wanted, self.specs, self.places)


def _example(t: Tensor) -> np.ndarray:
    """A value of a Tensor: of all examples the first, in a trace that of the call traced."""
    if isinstance(t, Batched):
        full = _example(t.parts()[0])
        return full[0] if len(full) else np.zeros(full.shape[1:], full.dtype)
    return _example(t.parts()[0]) if isinstance(t, Lifted) else t._a


def _spec(t: Tensor) -> Spec:
    return Spec(t._a.shape, t._a.dtype)


def _wanted(call: RecordedCall, needs: Sequence[bool]) -> Numbers:
    """The numbers of the Tensors that a gradient is wanted in."""
    return tuple([k for k, need in enumerate(needs) if need and call.is_float(k)])


def _moved(tangents: Iterable[Any]) -> tuple[Numbers, list[Tensor]]:
    """The numbers of the Tensors that have a tangent, and these."""
    found = [(k, t) for k, t in enumerate(tangents) if t is not None]
    return tuple([k for k, _ in found]), [t for _, t in found]


def _adjoints(call: RecordedCall, gs: Sequence[Any]) -> list[Tensor]:
    """The adjoints of those leaves of the result that have a derivative."""
    pairs = zip(call.outputs, gs, strict=True)
    return _adjoints_of(call, [g for spec, g in pairs if _has_derivative(spec)])


def _has_derivative(spec: Spec) -> bool:
    return spec.dtype.kind in "fc"


def _adjoints_of(call: RecordedCall, gs: Sequence[Any]) -> list[Tensor]:
    """The same, zeros for None."""
    pairs = zip(call.float_outputs, gs, strict=True)
    return [wrap(np.zeros(*spec)) if g is None else g for spec, g in pairs]


def _parts(ctx: Any) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]]:
    """The static arguments, the Tensors of the call, and the rest."""
    count = len(ctx.lead[0].places)
    return ctx.lead, ctx.saved_tensors[:count], ctx.saved_tensors[count:]


def _spread(found: Sequence[Any], numbers: Numbers, count: int) -> list[Any]:
    """What was found for some Tensors, None for the others."""
    of = dict(zip(numbers, found, strict=True))
    return [of.get(k) for k in range(count)]

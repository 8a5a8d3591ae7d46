"""Record a jitted function as one operation, whose derivative is a compiled program too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.autograd.function import Function
from tapegrad.base.nearest import no_number
from tapegrad.compiler.front.signature import Compilation, Signature
from tapegrad.compiler.front.specialization import STATIC, Specialization
from tapegrad.tape.tape import current
from tapegrad.tensor import Tensor, wrap
from tapegrad.transforms.pytree import flatten, unflatten
from tapegrad.transforms.reverse import vjp


def needs_record(leaves: list[Any]) -> bool:
    """Whether a call has to be recorded."""
    return bool(current.tape.enabled) and any(
        isinstance(x, Tensor) and x.requires_grad for x in leaves
    )


def run(owner: Compilation, signature: Signature, leaves: list[Any]) -> Any:
    """Run the program and append one record."""
    tensors = [x for x in leaves if isinstance(x, Tensor)]
    call = Call(owner, signature, leaves)
    outputs = Compiled.apply(call, *tensors)
    assert call.specialization is not None
    if current.tape.depth and call.specialization.numbers:
        _check_numbers(call.specialization, signature, leaves)
    return call.specialization.returned(outputs)


def _check_numbers(made: Specialization, signature: Signature, leaves: list[Any]) -> None:
    """Refuse a call in whose trace Python has made a number of what a transform differentiates in.

    Outside of transforms it may, as in eager code.
    """
    given = [x for x, kind in zip(leaves, signature.kinds, strict=True) if kind != STATIC]
    for x, line in zip(given, made.numbers, strict=True):
        if line is not None and isinstance(x, Tensor) and x.requires_grad:
            raise no_number("item", line)


class Call:
    """The call that a record stands for."""

    def __init__(self, owner: Compilation, signature: Signature, leaves: list[Any]) -> None:
        self.owner = owner
        self.signature = signature
        self.leaves = leaves
        self.specialization: Specialization | None = None

    def program(self) -> tuple[np.ndarray, ...]:
        """The outputs."""
        pairs = zip(self.leaves, self.signature.kinds, strict=True)
        arrays = [x._a if isinstance(x, Tensor) else np.asarray(x) for x, k in pairs if k != STATIC]
        self.specialization, outputs = self.owner.outputs(self.signature, self.leaves, arrays)
        return tuple(outputs)

    def adjoint(self, tensors: Any, weights: Any) -> Any:
        """The gradients in the Tensors, by the compiled adjoint."""
        specialization = self.specialization
        assert specialization is not None
        moving = tuple([t._a.dtype.kind in "fc" for t in tensors])
        firsts: dict[int, int] = {}
        for k, leaf in enumerate(specialization.leaves):
            if (
                leaf.form != STATIC
                and specialization.program.outputs[leaf.output].dtype.kind in "fc"
            ):
                firsts.setdefault(leaf.output, k)
        chosen = tuple(firsts.values())
        make = lambda: self._adjoint(moving, chosen)
        adjoint = self.owner.derived((self.signature, moving, chosen), make)
        others = [
            None if isinstance(x, Tensor) or k == STATIC else x
            for x, k in zip(self.leaves, self.signature.kinds, strict=True)
        ]
        found = iter(adjoint(list(tensors), others, [weights[k] for k in firsts]))
        return [next(found) if m else None for m in moving]

    def _adjoint(self, moving: tuple[bool, ...], chosen: tuple[int, ...]) -> Callable[..., Any]:
        owner, signature, leaves = self.owner, self.signature, self.leaves
        static = [x if k == STATIC else None for x, k in zip(leaves, signature.kinds, strict=True)]
        places = [isinstance(x, Tensor) for x in leaves]

        def adjoint(tensors: Any, others: Any, weights: Any) -> Any:
            def function(*xs: Any) -> Any:
                differentiated = iter(xs)
                given = iter(
                    [next(differentiated) if m else t for t, m in zip(tensors, moving, strict=True)]
                )
                parts = zip(static, others, places, signature.kinds, strict=True)
                all_leaves = [
                    next(given) if p else (h if k == STATIC else o) for h, o, p, k in parts
                ]
                args, kwargs = unflatten(signature.tree, iter(all_leaves))
                results, _ = flatten(owner.plain(args, kwargs))
                return [results[k] for k in chosen]

            xs = [t for t, m in zip(tensors, moving, strict=True) if m]
            return list(vjp(function, *xs)[1](list(weights)))

        return adjoint


class Compiled(Function):
    """The record of a jitted function."""

    @classmethod
    def _backward_only(cls, context: Any) -> bool:
        """Whether the jitted function calls something that is reverse-mode only."""
        return bool(context.call.specialization.backward_only)

    @staticmethod
    def forward(ctx: Any, call: Call, *tensors: Tensor) -> tuple[Tensor, ...]:
        """Run the program."""
        ctx.call = call
        ctx.save_for_backward(*tensors)
        outputs = tuple([wrap(a) for a in call.program()])
        ctx.mark_non_differentiable(*[t for t in outputs if t._a.dtype.kind not in "fc"])
        return outputs

    @staticmethod
    def backward(ctx: Any, *weights: Any) -> tuple[Any, ...]:
        """Run the adjoint program, recorded in turn under `create_graph`."""
        return (None, *ctx.call.adjoint(ctx.saved_tensors, weights))

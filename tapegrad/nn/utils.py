"""Parameters as one vector, and gradients within bounds."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from types import GeneratorType

from tapegrad.autograd.grad_mode import no_grad
from tapegrad.base.missing_names import missing
from tapegrad.base.public_names import dir_of
from tapegrad.functions.creation import tensor
from tapegrad.functions.elementwise import isfinite
from tapegrad.functions.joining import cat, stack
from tapegrad.linalg import vector_norm
from tapegrad.tensor import Tensor

__all__ = [
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "get_total_norm",
    "parameters_to_vector",
    "vector_to_parameters",
]
__dir__ = dir_of(globals())

Tensors = Tensor | Iterable[Tensor]
LEAST_NORM = 1e-6  # what PyTorch adds to a norm that it divides by


def _listed(tensors: Tensors) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All elements of some Tensors, one after the other, in one vector.

    >>> import tapegrad as tg
    >>> tg.nn.utils.parameters_to_vector([tg.ones(2, 1), tg.zeros(1)])
    tensor([1., 1., 0.])
    """
    return cat([p.view(-1) for p in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Make the elements of a vector those of some Tensors, which share its memory afterwards.

    >>> import tapegrad as tg
    >>> weight, bias = tg.ones(2, 1), tg.zeros(1)
    >>> tg.nn.utils.vector_to_parameters(tg.tensor([4.0, 5.0, 6.0]), [weight, bias])
    >>> weight.flatten(), bias
    (tensor([4., 5.]), tensor([6.]))
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"`vector_to_parameters` takes a Tensor, got {type(vec).__name__}")
    start = 0
    for p in parameters:
        end = start + p.numel()
        if end > len(vec):
            raise RuntimeError(
                f"`vector_to_parameters`: a vector of {len(vec)} elements ends before the "
                f"parameter of shape {p._a.shape}"
            )
        p.data = vec[start:end].view(p.shape).data
        start = end


@no_grad()
def get_total_norm(
    tensors: Tensors, norm_type: float = 2.0, error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:  # fmt: skip
    """The norm of all elements of some Tensors together.

    >>> import tapegrad as tg
    >>> tg.nn.utils.get_total_norm([tg.tensor([3.0]), tg.tensor([[4.0]])])
    tensor(5.)
    """
    parts, order = _listed(tensors), float(norm_type)
    if not parts:
        return tensor(0.0)
    total = vector_norm(stack([vector_norm(t, order) for t in parts]), order)
    if error_if_nonfinite and not isfinite(total):
        raise RuntimeError(
            f"the norm of order {order} of the gradients is {total.item()}, by which they cannot "
            "be scaled: pass `error_if_nonfinite=False` to scale them by it anyway"
        )
    return total


@no_grad()
def clip_grads_with_norm_(
    parameters: Tensors, max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scale gradients in place, so that a norm of them which is known is a greatest one at most.

    >>> import tapegrad as tg
    >>> w = tg.zeros(2, requires_grad=True)
    >>> w.grad = tg.tensor([3.0, 4.0])
    >>> tg.nn.utils.clip_grads_with_norm_(w, 1.0, tg.tensor(5.0))
    >>> w.grad
    tensor([0.6000, 0.8000])
    """
    factor = (float(max_norm) / (total_norm + LEAST_NORM)).clamp(max=1.0)
    for p in _listed(parameters):
        if p.grad is not None:
            p.grad.mul_(factor)


def clip_grad_norm_(
    parameters: Tensors, max_norm: float, norm_type: float = 2.0,
    error_if_nonfinite: bool = False, foreach: bool | None = None,
) -> Tensor:  # fmt: skip
    """Scale gradients in place, so that their norm together is a greatest one at most.

    The norm that they had is returned.

    >>> import tapegrad as tg
    >>> w = tg.zeros(2, requires_grad=True)
    >>> w.grad = tg.tensor([3.0, 4.0])
    >>> tg.nn.utils.clip_grad_norm_(w, 1.0), w.grad
    (tensor(5.), tensor([0.6000, 0.8000]))
    """
    many = _listed(parameters)
    if isinstance(parameters, GeneratorType) and not many:
        warnings.warn("`clip_grad_norm_`: the generator of parameters is empty", stacklevel=2)
    grads = [p.grad for p in many if p.grad is not None]
    total = get_total_norm(grads, norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(many, max_norm, total, foreach)
    return total


@no_grad()
def clip_grad_value_(parameters: Tensors, clip_value: float, foreach: bool | None = None) -> None:
    """Bound each element of gradients in place: its magnitude is at most `clip_value`.

    >>> import tapegrad as tg
    >>> w = tg.zeros(2, requires_grad=True)
    >>> w.grad = tg.tensor([-3.0, 0.5])
    >>> tg.nn.utils.clip_grad_value_(w, 1.0)
    >>> w.grad
    tensor([-1.0000,  0.5000])
    """
    bound = float(clip_value)
    for p in _listed(parameters):
        if p.grad is not None:
            p.grad.clamp_(-bound, bound)


def __getattr__(name: str) -> object:
    raise missing("module 'tapegrad.nn.utils'", name, __all__)

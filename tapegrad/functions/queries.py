"""What a Tensor is asked: whether it is signed, of one size with another, a conjugate."""

from __future__ import annotations

from tapegrad.functions.arguments import as_input
from tapegrad.functions.method_decorators import method
from tapegrad.tensor import Tensor


@method
def is_nonzero(input: Tensor) -> bool:
    """Whether the one element of a Tensor is not zero.

    >>> import tapegrad as tg
    >>> tg.is_nonzero(tg.tensor([0.0]))
    False
    """
    x = as_input(input, "is_nonzero")
    if x._a.size != 1:
        raise RuntimeError(f"`is_nonzero` asks one element, got the shape {x._a.shape}")
    return bool(x)


@method
def is_signed(input: Tensor) -> bool:
    """Whether the type of the elements has numbers below zero.

    >>> import tapegrad as tg
    >>> tg.is_signed(tg.tensor([1], dtype=tg.uint8))
    False
    """
    return as_input(input, "is_signed")._a.dtype.kind in "ifc"


@method
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether two Tensors have one shape.

    >>> import tapegrad as tg
    >>> tg.is_same_size(tg.ones(2), tg.ones(2, 1))
    False
    """
    return as_input(input, "is_same_size")._a.shape == as_input(other, "is_same_size")._a.shape


@method
def is_conj(input: Tensor) -> bool:
    """Whether the elements are yet to be conjugated: they never are, `conj` computes at once.

    >>> import tapegrad as tg
    >>> tg.is_conj(tg.tensor([1j]).conj())
    False
    """
    as_input(input, "is_conj")
    return False


@method
def is_neg(input: Tensor) -> bool:
    """Whether the elements are yet to be negated: they never are.

    >>> import tapegrad as tg
    >>> tg.is_neg(tg.tensor([1j]).conj().imag)
    False
    """
    as_input(input, "is_neg")
    return False


@method
def resolve_conj(input: Tensor) -> Tensor:
    """The Tensor with its elements conjugated if they are yet to be: itself.

    >>> import tapegrad as tg
    >>> tg.resolve_conj(tg.tensor([1j]).conj())
    tensor([0.-1.j])
    """
    return as_input(input, "resolve_conj")


@method
def resolve_neg(input: Tensor) -> Tensor:
    """The Tensor with its elements negated if they are yet to be: itself.

    >>> import tapegrad as tg
    >>> tg.resolve_neg(tg.tensor([1.0]))
    tensor([1.])
    """
    return as_input(input, "resolve_neg")


@method
def ndimension(self: Tensor) -> int:
    """The number of dimensions.

    >>> import tapegrad as tg
    >>> tg.ones(2, 3).ndimension()
    2
    """
    return self._a.ndim

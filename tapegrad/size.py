"""The shape of a Tensor."""

from __future__ import annotations


class Size(tuple[int, ...]):
    """The shape of a Tensor: a tuple that prints as PyTorch's and counts its elements.

    >>> import tapegrad as tg
    >>> tg.zeros(2, 3).shape
    tapegrad.Size([2, 3])
    """

    __slots__ = ()

    def numel(self) -> int:
        """The number of elements of a Tensor of this shape."""
        count = 1
        for n in self:
            count *= n
        return count

    def __repr__(self) -> str:
        return f"tapegrad.Size({list(self)})"

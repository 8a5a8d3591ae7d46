"""The shape of a Tensor."""

from __future__ import annotations

from typing import Any


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


def only_ints(numbers: tuple[Any, ...]) -> bool:
    """Whether these are ints and nothing that is equal to some, as True and 1.0 are."""
    for n in numbers:  # noqa: SIM110 - `all` would take as long as what it saves
        if n.__class__ is not int:
            return False
    return True

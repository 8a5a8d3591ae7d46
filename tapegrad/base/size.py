"""The shape of a Tensor."""

from __future__ import annotations

from typing import Any, overload


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


class ElementCount(int):
    """The number of elements, as an array has it in `size`; called, the shape, as PyTorch has it.

    >>> import tapegrad as tg
    >>> x = tg.zeros(2, 3)
    >>> x.size, x.size(), x.size(0)
    (6, tapegrad.Size([2, 3]), 2)
    """

    shape: Size

    @overload
    def __call__(self, dim: None = None) -> Size: ...
    @overload
    def __call__(self, dim: int) -> int: ...
    def __call__(self, dim: int | None = None) -> Size | int:
        """The shape, or one entry of it."""
        return self.shape if dim is None else self.shape[dim]


def only_ints(numbers: tuple[Any, ...]) -> bool:
    """Whether these are ints and nothing that is equal to some, as True and 1.0 are."""
    for n in numbers:  # noqa: SIM110 - `all` would take as long as what it saves
        if n.__class__ is not int:
            return False
    return True

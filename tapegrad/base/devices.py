"""The one device there is, under PyTorch's names."""

from __future__ import annotations

from typing import Any


class device:
    """Where a Tensor's elements are: always ``device("cpu")``.

    >>> import tapegrad as tg
    >>> tg.device("cpu", 0), tg.zeros(2, device="cpu").device
    (device(type='cpu', index=0), device(type='cpu'))
    """

    __slots__ = ("index", "type")

    type: str
    index: int | None

    def __init__(self, type: Any = "cpu", index: int | None = None) -> None:
        if isinstance(type, device):
            type, index = type.type, type.index
        kind, colon, number = type.partition(":") if isinstance(type, str) else ("", "", "")
        if colon and index is None and number.isdigit():
            index = int(number)
        if kind != "cpu" or index not in (None, 0) or (colon and number != "0"):
            at = "" if index is None else f" with the index {index}"
            raise RuntimeError(
                f"tapegrad computes on the CPU, there is no device {type!r}{at}: pass 'cpu', or "
                "leave it out"
            )
        self.type = "cpu"
        self.index = index

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and self.index == other.index

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __repr__(self) -> str:
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type='cpu'{index})"

    def __str__(self) -> str:
        return "cpu" if self.index is None else f"cpu:{self.index}"

    def __reduce__(self) -> tuple[Any, ...]:
        return device, ("cpu", self.index)


CPU = device()


def check_device(given: Any) -> None:
    """Refuse a device that is not the CPU; None means it."""
    if given is not None and given != "cpu":
        device(given)

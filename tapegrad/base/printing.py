"""How Tensors print: the layout that PyTorch's users know, and its options."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from tapegrad.base.dtypes import (
    bool_,
    complex64,
    complex128,
    float32,
    get_default_dtype,
    int64,
    of_numpy,
)

PREFIX = "tensor("


class _Options(NamedTuple):
    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


_options = _Options()
_PROFILES: dict[str, dict[str, Any]] = {
    "default": _options._asdict(),
    "short": _options._asdict() | {"precision": 2, "edgeitems": 2},
    "full": _options._asdict() | {"threshold": math.inf},
}


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Choose how Tensors print; what is None stays, but for `sci_mode`, which is always set.

    Parameters
    ----------
    precision : digits after the point.
    threshold : elements above which a Tensor is summarised.
    edgeitems : elements that a summary shows at each end of a dimension.
    linewidth : characters of a line.
    profile : "default", "short" or "full": where to begin with the four above.
    sci_mode : whether numbers print as ``1.0000e+00``; None: by their range.

    >>> import tapegrad as tg
    >>> tg.set_printoptions(precision=2)
    >>> tg.tensor([1.0, 2.5])
    tensor([1.00, 2.50])
    >>> tg.set_printoptions(profile="default")
    """
    global _options
    if profile is not None and profile not in _PROFILES:
        raise ValueError(
            f"`set_printoptions`: `profile` is one of {', '.join(_PROFILES)}, got {profile!r}"
        )
    given: dict[str, Any] = {
        "precision": precision, "edgeitems": edgeitems, "linewidth": linewidth,
    }  # fmt: skip
    for name, value in given.items():
        if value is not None and (not isinstance(value, int) or value < 0):
            raise ValueError(f"`set_printoptions`: `{name}` is an int of 0 or more, got {value!r}")
    if threshold is not None and not isinstance(threshold, (int, float)):
        raise ValueError(f"`set_printoptions`: `threshold` is a number, got {threshold!r}")
    given["threshold"] = threshold
    chosen = _options._asdict() | _PROFILES.get(profile or "", {})
    chosen |= {name: value for name, value in given.items() if value is not None}
    _options = _Options(**chosen | {"sci_mode": sci_mode})


def get_printoptions() -> dict[str, Any]:
    """How Tensors print, as keywords of `set_printoptions`.

    >>> import tapegrad as tg
    >>> tg.get_printoptions()["edgeitems"]
    3
    """
    return _options._asdict()


@contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """`set_printoptions` until the end of a `with` block.

    >>> import tapegrad as tg
    >>> with tg.printoptions(sci_mode=True, precision=1):
    ...     print(tg.tensor([1.0, 2.5]))
    tensor([1.0e+00, 2.5e+00])
    """
    global _options
    before = _options
    set_printoptions(**options)
    try:
        yield
    finally:
        _options = before


def describe(array: np.ndarray, note: str = "") -> str:
    """The text of a Tensor; `note` says whether and how it requires grad."""
    kind = of_numpy(array.dtype)
    default = get_default_dtype()
    of_complex = complex64 if default is float32 else complex128
    hidden = (default, of_complex, int64, bool_) if array.size else (default,)
    named = "" if kind in hidden else f"dtype={kind}"
    known = _options.edgeitems if array.size else array.ndim == 1  # from what is shown
    size = "" if known else f"size={array.shape}"
    text = _Layout(array).render(array, len(PREFIX)) if array.size else "[]"
    return _with_notes(PREFIX + text, [size, named, note])


def _with_notes(text: str, notes: list[str]) -> str:
    """Text and notes, each on a line of its own where the last line has no room for it."""
    width = len(text) - text.rfind("\n") + 1
    for note in filter(None, notes):
        if width + len(note) + 2 > _options.linewidth:
            text += ",\n" + " " * len(PREFIX) + note
            width = len(PREFIX) + len(note)
        else:
            text += ", " + note
            width += len(note) + 2
    return text + ")"


class _Layout:
    """One format and one width for all elements of an array."""

    def __init__(self, array: np.ndarray) -> None:
        self.summary = array.size > _options.threshold
        shown = _edges(array).ravel() if self.summary else array.ravel()
        self.parts = [shown.real, shown.imag] if shown.dtype.kind == "c" else [shown]
        self.formats = [_formatter(part) for part in self.parts]
        self.widths = [_width(*pair) for pair in zip(self.formats, self.parts, strict=True)]
        # Beside the elements PyTorch counts a comma and a blank, and a sign of imaginary parts.
        self.taken = sum(self.widths) + len(self.widths) + 1

    def element(self, x: Any) -> str:
        if len(self.formats) == 1:
            return self.formats[0](x).rjust(self.widths[0])
        real = self.formats[0](x.real).rjust(self.widths[0])
        imaginary = self.formats[1](x.imag) + "j"
        return real + ("" if imaginary[0] in "+-" else "+") + imaginary

    def render(self, array: np.ndarray, indent: int) -> str:
        if array.ndim == 0:
            return self.element(array.item())
        if array.ndim == 1:
            return self._row(array, indent)
        parts: list[str] = []
        for i in _shown(len(array), self.summary):
            parts.append("..." if i is None else self.render(array[i], indent + 1))
        separator = "," + "\n" * (array.ndim - 1) + " " * (indent + 1)
        return "[" + separator.join(parts) + "]"

    def _row(self, array: np.ndarray, indent: int) -> str:
        values = array.tolist()
        shown = _shown(len(values), self.summary)
        cells = [" ..." if i is None else self.element(values[i]) for i in shown]
        if cells == [" ..."]:
            cells = ["..."]
        per_line = max(1, (_options.linewidth - indent) // self.taken)
        lines = [", ".join(cells[i : i + per_line]) for i in range(0, len(cells), per_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _shown(count: int, summary: bool) -> list[int | None]:
    edge = _options.edgeitems
    if summary and count > 2 * edge:
        return [*range(edge), None, *range(count - edge, count)]
    return list(range(count))


def _edges(array: np.ndarray) -> np.ndarray:
    edge = _options.edgeitems
    for axis, n in enumerate(array.shape):
        if n > 2 * edge:
            array = np.take(array, [*range(edge), *range(n - edge, n)], axis)
    return array


def _width(written: Callable[[Any], str], values: np.ndarray) -> int:
    """How wide the widest element is; of floats, what is not finite, or zero, has no say."""
    if values.dtype.kind == "f":
        values = values[np.isfinite(values) & (values != 0)]
    return max((len(written(x)) for x in values.tolist()), default=1)


def _formatter(values: np.ndarray) -> Callable[[Any], str]:
    if values.dtype.kind in "biu":
        return str
    finite = np.abs(values[np.isfinite(values) & (values != 0)].astype(np.float64))
    if not finite.size:
        return _whole
    low, high = float(finite.min()), float(finite.max())
    whole = bool(np.all(finite == np.ceil(finite)))
    scientific = high / low > 1000.0 or high > 1e8 or low < 1e-4
    if _options.sci_mode is not None:
        scientific = _options.sci_mode
    if whole and not scientific:
        return _whole
    template = f"{{:.{_options.precision}{'e' if scientific else 'f'}}}"
    return lambda x: template.format(x) if math.isfinite(x) else str(x)


def _whole(x: float) -> str:
    return f"{x:.0f}." if math.isfinite(x) else str(x)

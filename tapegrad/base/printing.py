"""How Tensors print: the layout that PyTorch's users know."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.base.dtypes import bool_, get_default_dtype, int64, of_numpy

PRECISION, LINE, THRESHOLD, EDGE = 4, 80, 1000, 3
PREFIX = "tensor("


def describe(array: np.ndarray, note: str = "") -> str:
    """The text of a Tensor; `note` says whether and how it requires grad."""
    kind = of_numpy(array.dtype)
    suffix = note
    hidden = (get_default_dtype(), int64, bool_)
    if kind not in hidden:
        suffix = f", dtype={kind}" + note
    if array.size == 0:
        shape = f", size={array.shape}" if array.ndim != 1 else ""
        plain = kind is get_default_dtype()
        return f"{PREFIX}[]{shape}" + ("" if plain else f", dtype={kind}") + note + ")"
    text = _Layout(array).render(array, len(PREFIX))
    gap = suffix
    last = text.rsplit("\n", 1)[-1]
    width = len(last) + (len(PREFIX) if "\n" not in text else 0)
    if suffix and width + len(suffix) + 1 > LINE:
        gap = ",\n" + " " * len(PREFIX) + suffix[2:]
    return f"{PREFIX}{text}{gap})"


class _Layout:
    """One format and one width for all elements of an array."""

    def __init__(self, array: np.ndarray) -> None:
        self.summary = array.size > THRESHOLD
        shown = _edges(array).ravel() if self.summary else array.ravel()
        self.format = _formatter(shown)
        if shown.dtype.kind == "f":  # what is not finite, or zero, has no say in the width
            shown = shown[np.isfinite(shown) & (shown != 0)]
        self.width = max((len(self.format(x)) for x in shown.tolist()), default=1)

    def element(self, x: Any) -> str:
        return self.format(x).rjust(self.width)

    def render(self, array: np.ndarray, indent: int) -> str:
        if array.ndim == 0:
            return self.format(array.item())
        if array.ndim == 1:
            return self._row(array, indent)
        parts: list[str] = []
        for i in _shown(len(array), self.summary):
            parts.append("..." if i is None else self.render(array[i], indent + 1))
        separator = "," + "\n" * (array.ndim - 1) + " " * (indent + 1)
        return "[" + separator.join(parts) + "]"

    def _row(self, array: np.ndarray, indent: int) -> str:
        values = array.tolist()
        cells = [" ..." if i is None else self.element(values[i])
                 for i in _shown(len(values), self.summary)]  # fmt: skip
        per_line = max(1, (LINE - indent) // (self.width + 2))
        lines = [", ".join(cells[i : i + per_line]) for i in range(0, len(cells), per_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _shown(count: int, summary: bool) -> list[int | None]:
    if summary and count > 2 * EDGE:
        return [*range(EDGE), None, *range(count - EDGE, count)]
    return list(range(count))


def _edges(array: np.ndarray) -> np.ndarray:
    for axis, n in enumerate(array.shape):
        if n > 2 * EDGE:
            keep = [*range(EDGE), *range(n - EDGE, n)]
            array = np.take(array, keep, axis)
    return array


def _formatter(values: np.ndarray) -> Callable[[Any], str]:
    if values.dtype.kind in "biu":
        return str
    if values.dtype.kind == "c":
        real, imaginary = _formatter(values.real), _formatter(values.imag)
        return lambda z: f"{real(z.real)}{'+' if not z.imag < 0 else ''}{imaginary(z.imag)}j"
    finite = np.abs(values[np.isfinite(values) & (values != 0)].astype(np.float64))
    if not finite.size:
        return lambda x: f"{x:.0f}." if np.isfinite(x) else str(x)
    low, high = float(finite.min()), float(finite.max())
    if np.all(finite == np.ceil(finite)):
        scientific = high / low > 1000.0 or high > 1e8
        template = f"{{:.{PRECISION}e}}" if scientific else "{:.0f}."
    else:
        scientific = high / low > 1000.0 or high > 1e8 or low < 1e-4
        template = f"{{:.{PRECISION}e}}" if scientific else f"{{:.{PRECISION}f}}"
    return lambda x: template.format(x) if np.isfinite(x) else str(x)

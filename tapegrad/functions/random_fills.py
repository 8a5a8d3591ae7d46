"""Random numbers in place: each method fills a Tensor with numbers of one distribution.

Whatever the Tensor held is gone, and with it its history.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.functions.distributions import chances
from tapegrad.functions.method_decorators import method
from tapegrad.functions.random import (
    Draw,
    Generator,
    check_continuous,
    drawn,
    largest_whole,
    standard_normal,
    uniform,
    whole_numbers,
)
from tapegrad.tensor import Tensor


def _filled(self: Tensor, draw: Draw, generator: Any) -> Tensor:
    return self.copy_(drawn(draw, self._a.shape, self.dtype, None, generator))


def _positive(value: float, argument: str, name: str) -> None:
    if not value > 0:
        raise RuntimeError(f"`{name}`: `{argument}` must be greater than 0, got {value}")


def _real(self: Tensor, name: str) -> None:
    check_continuous(self._a.dtype, name)
    if self._a.dtype.kind == "c":
        raise RuntimeError(f"`{name}` draws real numbers, got {self.dtype}: fill a real Tensor")


def _bounds(low: Any, high: Any, named: dict[str, Any], name: str) -> tuple[Any, Any]:
    """Bounds, which PyTorch calls `from` and `to`: the first is no name in Python."""
    low, high = named.pop("from", low), named.pop("to", high)
    if named:
        raise TypeError(f"`{name}` has no argument {next(iter(named))!r}")
    return low, high


@method
def uniform_(
    self: Tensor,
    a: float = 0.0,
    b: float = 1.0,
    *,
    generator: Generator | None = None,
    **from_to: float,
) -> Tensor:
    """Uniform numbers from `a` to `b`, in place; PyTorch's names `from` and `to` serve, too."""
    check_continuous(self._a.dtype, "uniform_")
    low, high = _bounds(a, b, from_to, "uniform_")
    largest = float(np.finfo(self._a.dtype).max)
    if not -largest <= low <= high <= largest or high - low > largest:
        raise RuntimeError(
            f"`uniform_` draws from `a` to `b`, which {self.dtype} holds, got {low} and {high}"
        )
    standard, shift = uniform(self._a.dtype), low
    if self._a.dtype.kind == "c":
        shift = complex(low, low)
    return _filled(self, lambda source, shape: standard(source, shape) * (high - low) + shift,
                   generator)  # fmt: skip


@method
def normal_(
    self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Normal numbers, in place."""
    check_continuous(self._a.dtype, "normal_")
    if not std >= 0:
        raise RuntimeError(f"`normal_`: the standard deviation must not be negative, got {std}")
    standard = standard_normal(self._a.dtype)
    return _filled(self, lambda source, shape: standard(source, shape) * std + mean, generator)


@method
def log_normal_(
    self: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None
) -> Tensor:
    """Numbers whose logarithms are normal, in place."""
    check_continuous(self._a.dtype, "log_normal_")
    _real(self, "log_normal_")
    _positive(std, "std", "log_normal_")
    return _filled(self, lambda source, shape: source.lognormal(mean, std, shape), generator)


@method
def exponential_(self: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Exponentially distributed numbers of the rate `lambd`, in place."""
    _real(self, "exponential_")
    _positive(lambd, "lambd", "exponential_")
    kind = np.float32 if self._a.dtype.char == "f" else np.float64
    return _filled(
        self, lambda source, shape: source.standard_exponential(shape, kind) / lambd, generator
    )


@method
def cauchy_(
    self: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Numbers of Cauchy's distribution of the width 2 * `sigma` at half height, in place."""
    _real(self, "cauchy_")
    _positive(sigma, "sigma", "cauchy_")
    return _filled(
        self, lambda source, shape: median + sigma * source.standard_cauchy(shape), generator
    )


@method
def geometric_(self: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """How many trials it takes to the first success, which has the probability `p`, in place."""
    if self._a.dtype.kind in "bc":
        raise NotImplementedError(f"`geometric_` draws whole numbers, got {self.dtype}")
    if not 0 < p < 1:
        raise RuntimeError(f"`geometric_`: `p` lies between 0 and 1, got {p}")
    return _filled(self, lambda source, shape: source.geometric(p, shape), generator)


@method
def random_(
    self: Tensor,
    low: int | None = None,
    high: int | None = None,
    *,
    generator: Generator | None = None,
    **from_to: int,
) -> Tensor:
    """Whole numbers from `low` to `high` (left out), or below `low`, in place.

    Without bounds: all that the dtype can hold, from 0. PyTorch's names `from` and `to` serve, too.
    """
    kind = self._a.dtype
    if kind.kind == "c":
        raise NotImplementedError(f"`random_` draws whole numbers, got {self.dtype}")
    first, end = _bounds(low, high, from_to, "random_")
    if first is None and end is None:
        end = largest_whole(kind) + 1
    elif end is None:
        first, end = 0, first
    return _filled(self, whole_numbers(first or 0, end, kind, "random_"), generator)


@method
def bernoulli_(
    self: Tensor, p: Tensor | float = 0.5, *, generator: Generator | None = None
) -> Tensor:
    """0 or 1 with the probability `p`, in place."""
    return self.copy_(chances(self, p, generator, "bernoulli_"))

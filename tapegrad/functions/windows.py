"""Window functions of signal processing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.base.devices import check_device
from tapegrad.base.dtypes import of_numpy
from tapegrad.functions.arguments import TypeLike
from tapegrad.functions.creation import _finish, _kind
from tapegrad.tensor import Tensor


def bartlett_window(
    window_length: int, periodic: bool = True, *, dtype: TypeLike | None = None,
    device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """A triangle.

    >>> import tapegrad as tg
    >>> tg.bartlett_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _window(np.bartlett, "bartlett_window", window_length, periodic, dtype, device,
                   requires_grad)  # fmt: skip


def blackman_window(
    window_length: int, periodic: bool = True, *, dtype: TypeLike | None = None,
    device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Blackman's sum of three cosines.

    >>> import tapegrad as tg
    >>> tg.blackman_window(4).round(decimals=2)
    tensor([-0.0000,  0.3400,  1.0000,  0.3400])
    """
    return _window(np.blackman, "blackman_window", window_length, periodic, dtype, device,
                   requires_grad)  # fmt: skip


def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *,
    dtype: TypeLike | None = None, device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """``alpha - beta cos``, by default Hamming's.

    >>> import tapegrad as tg
    >>> tg.hamming_window(4)
    tensor([0.0800, 0.5400, 1.0000, 0.5400])
    """
    cosine = lambda n: alpha - beta * np.cos(2 * np.pi * np.arange(n) / (n - 1))
    return _window(cosine, "hamming_window", window_length, periodic, dtype, device, requires_grad)


def hann_window(
    window_length: int, periodic: bool = True, *, dtype: TypeLike | None = None,
    device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Von Hann's raised cosine.

    >>> import tapegrad as tg
    >>> tg.hann_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _window(np.hanning, "hann_window", window_length, periodic, dtype, device, requires_grad)


def kaiser_window(
    window_length: int, periodic: bool = True, beta: float = 12.0, *,
    dtype: TypeLike | None = None, device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Kaiser's, of modified Bessel functions.

    >>> import tapegrad as tg
    >>> tg.kaiser_window(3, beta=0.0)
    tensor([1., 1., 1.])
    """
    bessel = lambda n: np.kaiser(n, beta)
    return _window(bessel, "kaiser_window", window_length, periodic, dtype, device, requires_grad)


def _window(
    values: Callable[[int], np.ndarray], name: str, length: int, periodic: bool,
    dtype: TypeLike | None, device: Any, requires_grad: bool,
) -> Tensor:  # fmt: skip
    """A window; a periodic one is the beginning of the symmetric one with an element more."""
    check_device(device)
    kind = _kind(dtype)
    if kind.kind != "f":
        raise RuntimeError(f"`{name}` is of floating-point numbers, got {of_numpy(kind)}")
    if length < 0:
        raise RuntimeError(f"`{name}`: the length must not be negative, got {length}")
    found = np.ones(1) if length == 1 else values(length + periodic)[:length]
    return _finish(found.astype(kind), requires_grad)

"""An array times a window that slides over it: convolutions of arrays without channels."""

from __future__ import annotations

from tapegrad.dispatch.dispatch import run
from tapegrad.functions.shapes import reshape
from tapegrad.ops.convolution import Geometry, convolution
from tapegrad.tensor import Tensor

LONG = 16  # elements of a window from which on a product with copies of all windows takes longer


def slides(x: Tensor, window: Tensor) -> bool:
    """Whether `slid` serves two arrays, and takes less time than such a product."""
    kind = x._a.dtype.kind
    return x.ndim == window.ndim <= 3 and window._a.size >= LONG and kind in "fc" and x._a.size > 0


def slid(x: Tensor, window: Tensor, padding: int = 0) -> Tensor:
    """The sums of an array times a window, at each place at which this lies among zeros around it.

    >>> import tapegrad as tg
    >>> from tapegrad.functions.sliding_products import slid
    >>> slid(tg.tensor([1.0, 2.0, 4.0]), tg.tensor([-1.0, 1.0]))
    tensor([1., 2.])
    """
    ones = (1,) * x.ndim
    pairs = zip(x._a.shape, window._a.shape, strict=True)
    size = tuple([n + 2 * padding - k + 1 for n, k in pairs])
    at = Geometry(ones, (padding,) * x.ndim, ones, 1)
    operands = [reshape(t, (1, 1, *t._a.shape)) for t in (x, window)]
    found = run(convolution, tuple(operands), {"size": size, "geometry": at, "exact": False})
    return reshape(found, size)

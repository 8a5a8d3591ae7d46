"""Special functions; `tapegrad.special` shows them under the names of `torch.special`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.dispatch.dispatch import run
from tapegrad.dispatch.fast_path import unary
from tapegrad.functions.arguments import as_input
from tapegrad.functions.arithmetic import Unary, _binary, _unary, clamp
from tapegrad.ops import elementwise as e
from tapegrad.ops import special as s
from tapegrad.ops.core import Op
from tapegrad.tensor import Tensor


def _one(op: Op, text: str, at: float, answer: str, home: str = "") -> Unary:
    return _unary(op, text, f"{home}{op.name}(tg.tensor({at}))", answer, __name__)


erfc = _one(e.erfc, "1 - erf(x), exact where that is small.", 0.0, "tensor(1.)")
erfinv = _one(s.erfinv, "The inverse of the error function.", 0.5, "tensor(0.4769)")
lgamma = _one(s.lgamma, "The logarithm of |gamma(x)|.", 3.0, "tensor(0.6931)")
digamma = _one(s.digamma, "The derivative of `lgamma`.", 1.0, "tensor(-0.5772)")
sinc = _one(s.sinc, "sin(pi * x) / (pi * x); 1 at 0.", 0.5, "tensor(0.6366)")
i0 = _one(s.i0, "The modified Bessel function of the first kind, order 0.", 0.0, "tensor(1.)")
_SPECIAL = "special."
i0e = _one(s.i0e, "`i0`, times exp(-|x|).", 0.0, "tensor(1.)", _SPECIAL)
i1 = _one(
    s.i1, "The modified Bessel function of the first kind, order 1.", 0.0, "tensor(0.)", _SPECIAL
)
i1e = _one(s.i1e, "`i1`, times exp(-|x|).", 0.0, "tensor(0.)", _SPECIAL)
ndtr = _one(
    s.ndtr, "The standard normal distribution up to x.", 0.0, "tensor(0.5000)", _SPECIAL
)  # fmt: skip
log_ndtr = _one(
    s.log_ndtr, "log(ndtr(x)), exact far to the left too.", -100.0, "tensor(-5005.5242)", _SPECIAL
)
erfcx = _one(s.erfcx, "exp(x * x) * erfc(x).", 0.0, "tensor(1.)", _SPECIAL)
entr = _one(s.entr, "-x * log(x); 0 at 0, -inf below.", 0.5, "tensor(0.3466)", _SPECIAL)
xlogy = _binary(
    s.xlogy,
    "x * log(y); 0 where x is 0.",
    "xlogy(tg.tensor(0.0), tg.tensor(0.0))",
    "tensor(0.)",
    __name__,
)
xlog1py = _binary(
    s.xlog1py,
    "x * log1p(y); 0 where x is 0.",
    "special.xlog1py(tg.tensor(0.0), tg.tensor(-1.0))",
    "tensor(0.)",
    __name__,
)
_logit, _trigamma = unary(s.logit), unary(s.trigamma)


def order(n: Any) -> int:
    """The order of a polygamma function: a whole number, not negative."""
    if not isinstance(n, (int, np.integer)) or isinstance(n, bool):
        raise TypeError(f"`polygamma`: the order is an int, got {type(n).__name__}")
    if n < 0:
        raise RuntimeError(f"`polygamma`: the order must not be negative, got {n}")
    return int(n)


def polygamma(n: int, input: Any) -> Tensor:
    """The n-th derivative of `digamma`.

    >>> import tapegrad as tg
    >>> tg.polygamma(1, tg.tensor(1.0))
    tensor(1.6449)
    """
    x = as_input(input, "polygamma")
    return _trigamma(x) if order(n) == 1 else run(s.polygamma, (int(n), x), {})


def logit(input: Any, eps: float | None = None) -> Tensor:
    """``log(x / (1 - x))``; with `eps`, of x brought into [eps, 1 - eps].

    >>> import tapegrad as tg
    >>> tg.logit(tg.tensor([0.5, 1.0]), eps=0.1)
    tensor([0.0000, 2.1972])
    """
    return _logit(input if eps is None else clamp(input, eps, 1.0 - eps))

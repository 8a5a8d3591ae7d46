"""Special functions; `tapegrad.special` shows them under the names of `torch.special`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapegrad.base.dtypes import get_default_dtype
from tapegrad.dispatch.dispatch import run
from tapegrad.dispatch.inplace import run_inplace
from tapegrad.dispatch.op_functions import unary
from tapegrad.functions.arguments import as_input, whole_number
from tapegrad.functions.arithmetic import clamp
from tapegrad.functions.elementwise import lgamma
from tapegrad.functions.inplace_methods import clamp_, copy_
from tapegrad.functions.method_decorators import method
from tapegrad.functions.reductions import sum as sum_of
from tapegrad.functions.shapes import unsqueeze
from tapegrad.ops import special as s
from tapegrad.tensor import Tensor

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


@method
def logit(input: Tensor, eps: float | None = None) -> Tensor:
    """``log(x / (1 - x))``; with `eps`, of x brought into [eps, 1 - eps].

    >>> import tapegrad as tg
    >>> tg.logit(tg.tensor([0.5, 1.0]), eps=0.1)
    tensor([0.0000, 2.1972])
    """
    return _logit(input if eps is None else clamp(input, eps, 1.0 - eps))


@method
def mvlgamma(input: Tensor, p: int) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension `p`.

    >>> import tapegrad as tg
    >>> tg.mvlgamma(tg.tensor([2.0, 3.0]), 2)
    tensor([0.4516, 1.5502])
    """
    x, count = as_input(input, "mvlgamma"), whole_number(p, "mvlgamma", "p")
    if count < 1:
        raise RuntimeError(f"`mvlgamma` needs p of at least 1, got {count}")
    kind = x._a.dtype if x._a.dtype.kind == "f" else get_default_dtype().numpy
    shifts = np.arange(count).astype(kind) / 2
    terms = lgamma(unsqueeze(x, -1) - shifts)
    return sum_of(terms, -1) + count * (count - 1) / 4 * math.log(math.pi)


@method
def polygamma_(self: Tensor, n: int) -> Tensor:
    """`polygamma` in place."""
    return run_inplace(s.polygamma, (order(n), self), {}, self)


@method
def mvlgamma_(self: Tensor, p: int) -> Tensor:
    """`mvlgamma` in place."""
    if self._a.dtype.kind != "f":
        raise RuntimeError(f"`mvlgamma_`: floating-point numbers do not fit into {self.dtype}")
    return copy_(self, mvlgamma(self, p))


@method
def logit_(self: Tensor, eps: float | None = None) -> Tensor:
    """`logit` in place."""
    return run_inplace(s.logit, (self if eps is None else clamp_(self, eps, 1 - eps),), {}, self)

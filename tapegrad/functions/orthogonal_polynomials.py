"""Orthogonal polynomials of a degree `n`; `tapegrad.special` shows them.

Fractions of a degree are cut off, as PyTorch does, and polynomials of a negative degree are 0.
"""

from __future__ import annotations

from tapegrad.dispatch.dispatch import run
from tapegrad.functions.elementwise import trunc
from tapegrad.ops import orthogonal_polynomials as o
from tapegrad.ops.core import Op
from tapegrad.tensor import Tensor

Operand = Tensor | int | float


def _degree(n: Operand) -> Operand:
    """The degree as a whole number."""
    if isinstance(n, Tensor):
        return trunc(n) if n._a.dtype.kind in "fc" else n
    return int(n)


def _polynomial(op: Op, input: Operand, n: Operand) -> Tensor:
    if not isinstance(input, Tensor) and not isinstance(n, Tensor):
        raise TypeError(
            f"`{op.name}` takes a Tensor as `input`, or as `n`, got {type(input).__name__} and "
            f"{type(n).__name__}"
        )
    found: Tensor = run(op, (input, _degree(n)), {})
    return found


def chebyshev_polynomial_t(input: Operand, n: Operand) -> Tensor:
    """Chebyshev polynomials of the first kind: cos(n * t) at cos(t).

    >>> import tapegrad as tg
    >>> tg.special.chebyshev_polynomial_t(tg.tensor(0.5), 2)
    tensor(-0.5000)
    """
    return _polynomial(o.chebyshev_polynomial_t, input, n)


def chebyshev_polynomial_u(input: Operand, n: Operand) -> Tensor:
    """Chebyshev polynomials of the second kind: sin((n + 1) * t) / sin(t) at cos(t).

    >>> import tapegrad as tg
    >>> tg.special.chebyshev_polynomial_u(tg.tensor(0.5), 2)
    tensor(0.)
    """
    return _polynomial(o.chebyshev_polynomial_u, input, n)


def chebyshev_polynomial_v(input: Operand, n: Operand) -> Tensor:
    """Chebyshev polynomials of the third kind: cos((n + 1/2) * t) / cos(t / 2) at cos(t).

    >>> import tapegrad as tg
    >>> tg.special.chebyshev_polynomial_v(tg.tensor(0.5), 2)
    tensor(-1.)
    """
    degree = _degree(n)
    return chebyshev_polynomial_u(input, degree) - chebyshev_polynomial_u(input, degree - 1)


def chebyshev_polynomial_w(input: Operand, n: Operand) -> Tensor:
    """Chebyshev polynomials of the fourth kind: sin((n + 1/2) * t) / sin(t / 2) at cos(t).

    >>> import tapegrad as tg
    >>> tg.special.chebyshev_polynomial_w(tg.tensor(0.5), 2)
    tensor(1.)
    """
    degree = _degree(n)
    return chebyshev_polynomial_u(input, degree) + chebyshev_polynomial_u(input, degree - 1)


def shifted_chebyshev_polynomial_t(input: Operand, n: Operand) -> Tensor:
    """`chebyshev_polynomial_t` on [0, 1]: at 2 * x - 1.

    >>> import tapegrad as tg
    >>> tg.special.shifted_chebyshev_polynomial_t(tg.tensor(0.75), 2)
    tensor(-0.5000)
    """
    return chebyshev_polynomial_t(input * 2 - 1, n)


def shifted_chebyshev_polynomial_u(input: Operand, n: Operand) -> Tensor:
    """`chebyshev_polynomial_u` on [0, 1]: at 2 * x - 1.

    >>> import tapegrad as tg
    >>> tg.special.shifted_chebyshev_polynomial_u(tg.tensor(0.75), 2)
    tensor(0.)
    """
    return chebyshev_polynomial_u(input * 2 - 1, n)


def shifted_chebyshev_polynomial_v(input: Operand, n: Operand) -> Tensor:
    """`chebyshev_polynomial_v` on [0, 1]: at 2 * x - 1.

    >>> import tapegrad as tg
    >>> tg.special.shifted_chebyshev_polynomial_v(tg.tensor(0.75), 2)
    tensor(-1.)
    """
    return chebyshev_polynomial_v(input * 2 - 1, n)


def shifted_chebyshev_polynomial_w(input: Operand, n: Operand) -> Tensor:
    """`chebyshev_polynomial_w` on [0, 1]: at 2 * x - 1.

    >>> import tapegrad as tg
    >>> tg.special.shifted_chebyshev_polynomial_w(tg.tensor(0.75), 2)
    tensor(1.)
    """
    return chebyshev_polynomial_w(input * 2 - 1, n)


def hermite_polynomial_h(input: Operand, n: Operand) -> Tensor:
    """Hermite polynomials of the physicists: orthogonal under exp(-x * x).

    >>> import tapegrad as tg
    >>> tg.special.hermite_polynomial_h(tg.tensor(2.0), 2)
    tensor(14.0000)
    """
    return _polynomial(o.hermite_polynomial_h, input, n)


def hermite_polynomial_he(input: Operand, n: Operand) -> Tensor:
    """Hermite polynomials of probability theory: orthogonal under the normal distribution.

    >>> import tapegrad as tg
    >>> tg.special.hermite_polynomial_he(tg.tensor(2.0), 2)
    tensor(3.)
    """
    return _polynomial(o.hermite_polynomial_he, input, n)


def laguerre_polynomial_l(input: Operand, n: Operand) -> Tensor:
    """Laguerre polynomials: orthogonal on the positive numbers under exp(-x).

    >>> import tapegrad as tg
    >>> tg.special.laguerre_polynomial_l(tg.tensor(2.0), 2)
    tensor(-1.)
    """
    return _polynomial(o.laguerre_polynomial_l, input, n)


def legendre_polynomial_p(input: Operand, n: Operand) -> Tensor:
    """Legendre polynomials: orthogonal on [-1, 1].

    >>> import tapegrad as tg
    >>> tg.special.legendre_polynomial_p(tg.tensor(0.5), 2)
    tensor(-0.1250)
    """
    return _polynomial(o.legendre_polynomial_p, input, n)

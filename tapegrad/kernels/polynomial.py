"""How polynomials are evaluated, whoever writes the instructions."""

from collections.abc import Sequence
from typing import Any

LONG = 8


def polynomial(builder: Any, x: Any, coefficients: Sequence[Any]) -> Any:
    """Horner's rule; a long polynomial is split into even and odd powers, again and again.

    One chain of dependent fma would take longer than the processor looks ahead into the next
    elements; the halves run side by side.  The builder has llvmlite's `fmul` and `fma`.
    """
    if len(coefficients) >= LONG:
        square = builder.fmul(x, x)
        odd = polynomial(builder, square, coefficients[1::2])
        return builder.fma(odd, x, polynomial(builder, square, coefficients[::2]))
    total = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        total = builder.fma(total, x, c)
    return total

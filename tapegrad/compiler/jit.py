"""`tapegrad.jit`; the compiler itself is loaded by the first function that it is called for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tapegrad.compiler.jitted import Jitted


def jit(
    f: Callable[..., Any], *, static_argnums: int | tuple[int, ...] = (),
    static_argnames: str | tuple[str, ...] = (), fastmath: bool = False,
) -> Jitted:  # fmt: skip
    """Compile a function of arrays, numbers, Tensors or pytrees of them.

    The function runs once for each signature (structure, shapes, dtypes, and the values of Python
    ints, bools and strings); what it does with its arguments is optimised and compiled.  Later
    calls run the machine code.  Python's `if` and `while` on values become guards: a call that
    would go another way is traced anew.

    Parameters
    ----------
    f : the function; it may call transforms (`tapegrad.grad`), NumPy's functions and methods.
    static_argnums, static_argnames : arguments whose values are compiled in; they can be hashed.
    fastmath : allow arithmetic in any order, and `a * b + c` in one step; the last digits may
        differ. Sums are added up in any order in either case.

    >>> import numpy as np, tapegrad as tg
    >>> f = tg.jit(tg.value_and_grad(lambda x: np.sum(x**3)))
    >>> f(np.array([1.0, 2.0]))
    (9.0, array([ 3., 12.]))
    """
    from tapegrad.compiler.jitted import Jitted
    from tapegrad.transforms.arguments import require_function

    require_function(f, "jit")
    numbers = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    names = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)
    return Jitted(f, numbers, names, fastmath=fastmath)

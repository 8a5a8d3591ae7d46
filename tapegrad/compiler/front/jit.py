"""`tapegrad.jit`; the compiler itself is loaded on first use."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    from tapegrad.compiler.front.jitted import Jitted

Numbers = int | tuple[int, ...]
Names = str | tuple[str, ...]


@overload
def jit(
    f: Callable[..., Any], *, static_argnums: Numbers = (), static_argnames: Names = (),
    fastmath: bool = False,
) -> Jitted: ...  # fmt: skip
@overload
def jit(
    f: None = None, *, static_argnums: Numbers = (), static_argnames: Names = (),
    fastmath: bool = False,
) -> Callable[[Callable[..., Any]], Jitted]: ...  # fmt: skip
def jit(
    f: Callable[..., Any] | None = None, *, static_argnums: Numbers = (),
    static_argnames: Names = (), fastmath: bool = False,
) -> Any:  # fmt: skip
    """Compile a function of arrays, numbers, Tensors or pytrees of them.

    The function runs once for each signature (structure, shapes, dtypes, and the values of Python
    ints, bools and strings); what it does with its arguments is optimised and compiled.  Later
    calls run the machine code.  Python's `if` and `while` on values become guards: a call that
    would go another way is traced anew.

    Parameters
    ----------
    f : the function; it may call transforms (`tapegrad.grad`), NumPy's functions and methods.
        Without it, what is returned is a decorator: ``@tg.jit(fastmath=True)``.
    static_argnums, static_argnames : arguments whose values are compiled in, whether they are
        passed by place or by name; they can be hashed.
    fastmath : allow arithmetic in any order, and `a * b + c` in one step; the last digits may
        differ. Sums are added up in any order in either case.

    >>> import numpy as np, tapegrad as tg
    >>> f = tg.jit(tg.value_and_grad(lambda x: np.sum(x**3)))
    >>> f(np.array([1.0, 2.0]))
    (9.0, array([ 3., 12.]))
    >>> @tg.jit(static_argnames="n")
    ... def power(x, n):
    ...     return x**n
    >>> power(2.0, 3.0)
    8.0
    """
    if f is None:
        return partial(
            jit, static_argnums=static_argnums, static_argnames=static_argnames, fastmath=fastmath
        )
    from tapegrad.compiler.front.jitted import Jitted
    from tapegrad.compiler.front.static_args import statics_of
    from tapegrad.transforms.call_arguments import require_function

    require_function(f, "jit")
    return Jitted(f, statics_of(f, static_argnums, static_argnames), fastmath=fastmath)

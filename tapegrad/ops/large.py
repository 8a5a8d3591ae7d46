"""Large arrays: a compiled loop of `kernels.large` stands before the forward of a row.

The loops know some layouts and give None for all others; then the forward does it, as it does while
a loop is being compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from typing import Any

from tapegrad.base.compile_stages import NotCompiled

COMPILED = 1 << 14  # elements from which a compiled loop pays for its call
SLOW_IN_NUMPY = 1 << 11  # the same where NumPy goes element by element


def large(
    loop: str, plain: Callable[..., Any], least: int = COMPILED, row: Any = None
) -> Callable[..., Any]:
    """A forward that tries a loop, by its module and name, from a size of the first operand on.

    One that serves many operations is told the `row` of this one.

    >>> from tapegrad.ops.large import large
    >>> large("row_loops.clone", lambda x: x.copy()).plain
    <function <lambda> at 0x...>
    """
    fast: Any = None

    def forward(x: Any, *args: Any, **params: Any) -> Any:
        nonlocal fast
        if getattr(x, "size", 1) >= least:  # a number of Python's has none
            if fast is None:
                fast = found(loop) if row is None else partial(found(loop), row)
            try:
                y = fast(x, *args, **params)
            except NotCompiled:
                y = None
            if y is not None:
                return y
        return plain(x, *args, **params)

    forward.plain, forward.loop = plain, loop  # type: ignore[attr-defined]
    return forward


@cache
def found(loop: str) -> Any:
    """A loop by its module and name."""
    from tapegrad.kernels import large as loops

    module, name = loop.split(".")
    return getattr(import_module(f"{loops.__name__}.{module}"), name)

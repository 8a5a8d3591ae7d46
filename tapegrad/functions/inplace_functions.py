"""In-place forms of rows as functions: ``tg.exp_(x)`` is ``x.exp_()``."""

from collections.abc import Callable

from tapegrad.functions.inplace_methods import OF_ROWS
from tapegrad.tensor import Tensor


def __getattr__(name: str) -> Callable[..., Tensor]:
    if name not in OF_ROWS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    function: Callable[..., Tensor] = OF_ROWS[name]
    return function

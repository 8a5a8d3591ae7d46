"""Which function is meant: that for Tensors, or SciPy's own, which is loaded when it is called."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any, TypeVar

from tapegrad.functions.sparse import SparseTensor
from tapegrad.tensor import Tensor

F = TypeVar("F", bound=Callable[..., Any])


def theirs(home: str, name: str) -> Any:
    """What a module of SciPy's has under a name."""
    if name.startswith("__"):  # Python's import asks for `__path__`
        raise AttributeError(name)
    return getattr(importlib.import_module(home), name)


def among(x: Any) -> bool:
    """Whether something is a Tensor, or one is in it."""
    return isinstance(x, (Tensor, SparseTensor)) or (
        isinstance(x, (tuple, list)) and any(map(among, x))
    )


def for_tensors(home: str) -> Callable[[F], F]:
    """Take a function for Tensors, and SciPy's function of that name for all else."""

    def around(function: F) -> F:
        @functools.wraps(function)
        def either(*args: Any, **kwargs: Any) -> Any:
            if among((*args, *kwargs.values())):
                return function(*args, **kwargs)
            return theirs(home, function.__name__)(*args, **kwargs)

        found: Any = either
        return found  # type: ignore[no-any-return]

    return around

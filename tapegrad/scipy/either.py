"""Which function is meant: that for Tensors, or SciPy's own, which is loaded when it is called."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from tapegrad.functions.arguments import holds_tensor
from tapegrad.functions.joining import stacked
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


def stack_lists(x: Any) -> Any:
    """One Tensor in place of lists and tuples in which there are some; all else as it is."""
    return stacked(x) if isinstance(x, (list, tuple)) and holds_tensor(x) else x


def for_tensors(home: str, *structures: str) -> Callable[[F], F]:
    """Take a function for Tensors, and SciPy's function of that name for all else.

    Lists and tuples of Tensors are arrays, but for the arguments of these names, which have parts.
    """

    def around(function: F) -> F:
        names = list(inspect.signature(function).parameters)
        kept = {*structures, *map(names.index, structures)}

        @functools.wraps(function)
        def either(*args: Any, **kwargs: Any) -> Any:
            if not among((*args, *kwargs.values())):
                return theirs(home, function.__name__)(*args, **kwargs)
            args = tuple([x if k in kept else stack_lists(x) for k, x in enumerate(args)])
            named = {k: x if k in kept else stack_lists(x) for k, x in kwargs.items()}
            return function(*args, **named)

        found: Any = either
        return found  # type: ignore[no-any-return]

    return around

"""Pickle and copy the callables that transforms return, as the call that made them."""

from __future__ import annotations

import copy
import functools
import sys
import types
from collections.abc import Callable
from typing import Any, NoReturn, ParamSpec, Self

P = ParamSpec("P")


def global_name(x: Any) -> str | None:
    """The global name of an object in its module, by which another process finds it.

    None where there is no such name, or only in a program: `__main__` is another one there.
    """
    name = getattr(x, "__qualname__", None)
    found: Any = sys.modules.get(x.__module__) if x.__module__ != "__main__" else None
    for part in (name or "").split("."):
        found = getattr(found, part, None)
    return name if found is x else None


def findable(f: Any) -> Any:
    """A function under a name by which pickle finds it, although a decorator replaced it."""
    if isinstance(f, types.FunctionType):
        outer: Any = sys.modules.get(f.__module__)
        for part in f.__qualname__.split("."):
            outer = getattr(outer, part, None)
        depth = 0
        while outer is not None and outer is not f:
            outer = getattr(outer, "__wrapped__", None)
            depth += 1
        if outer is f:
            f.__qualname__ += depth * ".__wrapped__"
    return f


def reduced(x: Any, make: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The `__reduce__` of a callable: by its name, or by the call that made it."""
    named = {name: findable(value) for name, value in kwargs.items()}
    return global_name(x) or (_made, (make, tuple(map(findable, args)), named))


def _made(make: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return make(*args, **kwargs)


class _Callable(functools.partial[Any]):
    """A function with attributes.  As a `partial` it is called without a frame of its own."""

    __name__: str

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __copy__(self) -> Self:
        return self


class Transformed(_Callable):
    """A function that a transform returned."""

    made: tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]

    def __repr__(self) -> str:
        return f"<transformed {self.__name__}>"

    @property
    def njit(self) -> NoReturn:
        """Refused: nothing is compiled."""
        raise AttributeError(
            f"{self!r} runs in Python: `tapegrad.jit` of it has `.njit`, for nopython code"
        )

    def __reduce__(self) -> Any:
        make, args, kwargs = self.made
        return reduced(self, make, *args, **kwargs)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        make, args, kwargs = copy.deepcopy(self.made, memo)
        return make(*args, **kwargs)


def repeatable(transform: Callable[P, Callable[..., Any]]) -> Callable[P, Callable[..., Any]]:
    """Have what a transform returns pickled and copied; its own name must be that of its module."""

    @functools.wraps(transform)
    def make(*args: P.args, **kwargs: P.kwargs) -> Any:
        call = transform(*args, **kwargs)
        if getattr(call, "pickles_itself", False):
            return call
        made = Transformed(call)
        made.__dict__.update(
            __name__=call.__name__, __qualname__=call.__qualname__, __module__=call.__module__,
            __doc__=call.__doc__, __wrapped__=getattr(call, "__wrapped__", call),
            made=(make, args, kwargs),
        )  # fmt: skip
        return made

    return make


class OnTape(_Callable):
    """A function that reads its thread's tape, and cannot be pickled."""

    def __repr__(self) -> str:
        return f"<derivative of `{self.__name__}`>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"what `{self.__name__}` returned cannot be pickled, since it reads what this thread "
            f"has recorded: pickle the function and its arguments, and call `{self.__name__}` there"
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


def reads_tape(call: Callable[..., Any], name: str) -> OnTape:
    """The function that `vjp` or `linearize` (its name) returns beside the value."""
    made = OnTape(call)
    made.__dict__.update(__name__=name, __doc__=call.__doc__, __wrapped__=call)
    return made

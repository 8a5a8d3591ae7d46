"""Decorators that make a function a method of the Tensor, too."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeVar

from tapegrad.dispatch.views import view_of
from tapegrad.functions.arguments import numpy_names

F = TypeVar("F", bound=Callable[..., Any])
Methods = dict[str, Callable[..., Any]]


def method(function: F, *names: str) -> F:
    """Make a function a method, under its own name or other ones."""
    return _mark(function, function, names or (function.__name__,))


def axis_method(function: F) -> F:
    """Make a function a method that also takes `axis`, `keepdims` and `ddof`, NumPy's names."""
    return _mark(function, numpy_names(function), (function.__name__,))


def axis_view_method(function: F) -> F:
    """The same for a function that makes views."""
    plain: Any = function
    return _mark(function, view_of(numpy_names(plain.__wrapped__)), (function.__name__,))


def _mark(function: F, as_method: Callable[..., Any], names: tuple[str, ...]) -> F:
    marked: Any = function
    marked.methods = getattr(function, "methods", {}) | dict.fromkeys(names, as_method)
    return function


def methods_of(module: ModuleType) -> Methods:
    """The methods among the functions of a module."""
    found: Methods = {}
    for function in vars(module).values():
        if getattr(function, "__module__", None) == module.__name__:
            found |= getattr(function, "methods", {})
    return found

"""From a call of a NumPy function to its handler.

A handler is a Python function with NumPy's argument names; it takes those that it supports.  Any
other argument must have NumPy's default, else it is refused.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from tapegrad.numpy_face.common import HANDLERS, TABLE, bad_option, title, unsupported
from tapegrad.numpy_face.writing import into
from tapegrad.tensor import Tensor

FAMILIES = (
    "constants elementwise reductions order statistics calculus ranges padding shapes joining "
    "products polynomials sets histograms writing applying linalg systems fourier"
).split()
_missing: Any = getattr(np, "_NoValue", inspect.Parameter.empty)


def table() -> dict[Any, Callable[..., Any]]:
    """Every handler, by the NumPy function."""
    for family in FAMILIES:
        import_module(f"tapegrad.numpy_face.{family}")
    return TABLE


def find(func: Any) -> Callable[[tuple[Any, ...], dict[str, Any]], Any]:
    """How a function is called with arguments and keywords; one without a handler is refused."""
    handler = table().get(func)
    if handler is None:
        raise unsupported(title(func))
    bound = HANDLERS[func] = _bound(func, handler)
    return bound


def _bound(func: Any, handler: Any) -> Callable[[tuple[Any, ...], dict[str, Any]], Any]:
    own = inspect.signature(handler).parameters
    try:
        known = inspect.signature(func).parameters
    except ValueError:  # a function in C without a signature
        known = own
    accepts = own.keys()
    if any(p.kind is p.VAR_KEYWORD for p in own.values()):
        return lambda args, kwargs: handler(*args, **kwargs)
    several = any(p.kind is p.VAR_POSITIONAL for p in own.values())
    order = [p.name for p in known.values() if p.kind is not p.VAR_POSITIONAL]
    lead = 0
    while lead < min(len(own), len(order)) and list(own)[lead] == order[lead]:
        lead += 1

    def call(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if several or len(args) <= lead:
            if not kwargs:
                return handler(*args)
            if kwargs.keys() <= accepts and not any(v is _missing for v in kwargs.values()):
                return handler(*args, **kwargs)
        given = {} if several else dict(zip(order, args, strict=False))
        given.update(kwargs)
        kept = {}
        out = given.pop("out", None)
        out = out[0] if isinstance(out, tuple) and len(out) == 1 else out
        if out is not None and not ("out" in known and isinstance(out, Tensor)):
            raise bad_option(title(func), "out")
        for name, value in given.items():
            if value is _missing:
                continue
            if name in accepts:
                kept[name] = value
            elif not _default(value, known.get(name)):
                raise bad_option(title(func), name)
        found = handler(*args, **kept) if several else handler(**kept)
        return found if out is None else into(out, found, title(func))

    return call


def _default(value: Any, parameter: Any) -> bool:
    """Whether an argument that was given is what NumPy would have taken anyway."""
    if value is None:
        return True
    usual = None if parameter is None else parameter.default
    return value is usual or (isinstance(value, (str, bool)) and value == usual)

"""Static arguments, and how their values are compared."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tapegrad.transforms.call_arguments import name_of


class Static:
    """A static argument: a leaf that is part of the signature by its value."""

    __slots__ = ("key", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self.key = key_of(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Static) and bool(self.key == other.key)

    def __hash__(self) -> int:
        return hash(self.key)


def key_of(value: Any) -> Any:
    """The key of a static value: 1, 1.0 and True are three, 0.0 and -0.0 two, nan is one."""
    kind = type(value)
    if kind is float:
        return kind, value.hex()
    if kind is complex:
        return kind, value.real.hex(), value.imag.hex()
    if isinstance(value, np.generic):
        return kind, value.dtype.str, value.tobytes()
    if kind is tuple:
        return kind, *map(key_of, value)
    return kind, value


class Statics(NamedTuple):
    """The static arguments of a function: by position (perhaps from the end), and by name."""

    places: tuple[int, ...]
    names: tuple[str, ...]

    def marked(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a call, with those that are static as `Static`."""
        n = len(args)
        places = {k % n for k in self.places if -n <= k < n}
        given = tuple([Static(x) if k in places else x for k, x in enumerate(args)])
        return given, {k: Static(x) if k in self.names else x for k, x in kwargs.items()}


NONE = Statics((), ())


def statics_of(f: Callable[..., Any], places: Any, names: Any) -> Statics:
    """The static arguments given to `jit`, each by position and by name if it has both."""
    numbers = _numbers(places)
    chosen = _names(names)
    if not numbers and not chosen:
        return NONE
    try:
        parameters = list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):  # not every builtin function has a signature
        return Statics(numbers, chosen)
    kinds = {p.kind for p in parameters}
    listed = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if inspect.Parameter.VAR_POSITIONAL not in kinds:
        numbers = tuple([_inside(k, len(listed), f) for k in numbers])
    called = {p.name: k for k, p in enumerate(listed) if p.kind is p.POSITIONAL_OR_KEYWORD}
    known = {*called, *[p.name for p in parameters if p.kind is p.KEYWORD_ONLY]}
    for name in chosen:
        if name not in known and inspect.Parameter.VAR_KEYWORD not in kinds:
            raise ValueError(
                f"`jit`: static_argnames has {name!r}, but {name_of(f)} has no argument of that "
                f"name that can be passed by it: it has {', '.join(sorted(known)) or 'none'}"
            )
    by_name = {name for name, k in called.items() if k in numbers}
    by_place = {called[name] for name in chosen if name in called}
    return Statics(
        tuple(dict.fromkeys((*numbers, *sorted(by_place)))),
        tuple(dict.fromkeys((*chosen, *sorted(by_name)))),
    )


def _inside(k: int, count: int, f: Callable[..., Any]) -> int:
    if not -count <= k < count:
        raise ValueError(
            f"`jit`: static_argnums has {k}, but {name_of(f)} has {count} arguments that can be "
            "passed by position"
        )
    return k % count


def _numbers(places: Any) -> tuple[int, ...]:
    try:
        return (operator.index(places),)
    except TypeError:
        pass
    if isinstance(places, (tuple, list)):
        try:
            return tuple([operator.index(k) for k in places])
        except TypeError:
            pass
    raise TypeError(f"`jit`: static_argnums is an int or a tuple of ints, got {places!r}")


def _names(names: Any) -> tuple[str, ...]:
    given = (names,) if isinstance(names, str) else names
    if isinstance(given, (tuple, list)) and all(isinstance(name, str) for name in given):
        return tuple(given)
    raise TypeError(f"`jit`: static_argnames is a str or a tuple of them, got {names!r}")

"""What `dir` shows of an object: what users may rely on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def is_public(name: str) -> bool:
    """Whether a name is for users, or for Python itself."""
    return not name.startswith("_") or name.startswith("__")


def listed(thing: object, names: str) -> list[str]:
    """Some public attributes of an object, beside Python's own."""
    return [*names.split(), *(n for n in object.__dir__(thing) if n.startswith("__"))]


def dir_of(namespace: dict[str, Any]) -> Callable[[], list[str]]:
    """The `__dir__` of a module: the names in its `__all__`, beside Python's own."""
    return lambda: [*{*namespace["__all__"], *(n for n in namespace if n.startswith("__"))}]

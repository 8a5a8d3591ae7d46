"""What `dir` shows of an object: what users may rely on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def is_public(name: str) -> bool:
    """Whether a name is for users, or for Python itself."""
    return not name.startswith("_") or name.startswith("__")


def public_dir(names: str) -> Callable[[Any], list[str]]:
    """The `__dir__` of a class whose public attributes are these, beside Python's own."""

    def listed(self: Any) -> list[str]:
        return [*names.split(), *(n for n in object.__dir__(self) if n.startswith("__"))]

    return listed

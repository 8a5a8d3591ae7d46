"""Compile the pushforward and the batched form of a jitted function, for dual values and batches.

They unpack one level, the highest.  Lower levels are handled by their own pushforwards and batched
forms.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tapegrad.compiler.front.signature import Compilation, Signature
from tapegrad.lift.batch import Batched, Map, batched
from tapegrad.lift.dual import Dual, dual, split
from tapegrad.lift.levels import Level, level
from tapegrad.lift.lifted_tensor import highest
from tapegrad.transforms.pytree import flatten, unflatten

Flags = tuple[bool, ...]
Plain = Callable[..., Any]  # a function to compile


def run(owner: Compilation, signature: Signature, leaves: list[Any]) -> Any:
    """Call a jitted function with a lifted argument."""
    found = highest(leaves)
    assert found is not None
    kind, at = found
    lifted = tuple([type(x) is kind and x._lift.at is at for x in leaves])
    key = (kind, signature.tree, lifted, at.name, at.randomness)
    if kind is Batched:
        mapped = owner.derived(key, lambda: _mapped(owner, signature, lifted, at))
        given = [x._lift.full if m else x for x, m in zip(leaves, lifted, strict=True)]
        values, marks, structure = mapped.compiled((given,), {})
        results = [batched(x, at) if m == "1" else x for x, m in zip(values, marks, strict=True)]
    else:
        assert kind is Dual
        pushed = owner.derived(key, lambda: _pushed(owner, signature, lifted, at))
        pairs = [split(x, at) for x in leaves]
        given = [t for _, t in pairs if t is not None]
        values, slopes, marks, structure = pushed.compiled(([x for x, _ in pairs], given), {})
        rest = iter(slopes)
        results = [
            dual(x, next(rest), at) if m == "1" else x for x, m in zip(values, marks, strict=True)
        ]
    return unflatten(flatten(structure)[1], results)


def _mapped(
    owner: Compilation, signature: Signature, lifted: Flags, like: Level
) -> Callable[..., Any]:
    """Run all examples at once: the results, which of them are batched, and their structure."""
    name, randomness = like.name, like.randomness

    @functools.wraps(owner.function, updated=())
    def mapped(leaves: list[Any]) -> Any:
        size = leaves[lifted.index(True)]._a.shape[0]
        with level(Map(size, randomness, name)) as at:
            given = [batched(x, at) if m else x for x, m in zip(leaves, lifted, strict=True)]
            results, structure = _called(owner, signature, given)
            many = [type(x) is Batched and x._lift.at is at for x in results]
        values = [x._lift.full if m else x for x, m in zip(results, many, strict=True)]
        return values, _marks(many), structure

    return mapped


def _pushed(
    owner: Compilation, signature: Signature, lifted: Flags, like: Level
) -> Callable[..., Any]:
    """The pushforward: values and tangents of the results, which have one, and their structure."""
    name = like.name

    @functools.wraps(owner.function, updated=())
    def pushed(values: list[Any], slopes: list[Any]) -> Any:
        rest = iter(slopes)
        with level(Level(name=name)) as at:
            given = [
                dual(x, next(rest), at) if m else x for x, m in zip(values, lifted, strict=True)
            ]
            results, structure = _called(owner, signature, given)
            pairs = [split(x, at) for x in results]
        found = [t for _, t in pairs if t is not None]
        marks = _marks([t is not None for _, t in pairs])
        return [x for x, _ in pairs], found, marks, structure

    return pushed


def _called(owner: Compilation, signature: Signature, leaves: list[Any]) -> tuple[list[Any], Any]:
    """The leaves of what the function returns; its structure, with their numbers as leaves."""
    args, kwargs = unflatten(signature.tree, iter(leaves))
    results, tree = flatten(owner.plain(args, kwargs))
    return results, unflatten(tree, range(len(results)))


def _marks(flags: list[bool]) -> str:
    """A boolean constant of a program."""
    return "".join(str(int(flag)) for flag in flags)

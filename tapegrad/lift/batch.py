"""Batching: a Batched Tensor shows the shape of one example and holds all of them.

The batch dimension is the first of `full`.  How to batch an operation follows from the meaning of
its parameters, so that few operations need a batching rule of their own (`batching_rules`); one
without a rule runs example by example, with one warning.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from tapegrad.autograd.function import Function
from tapegrad.base.abstract_array import AbstractArray, filler
from tapegrad.dispatch.dispatch import run
from tapegrad.lift import batching_rules, function_vmap
from tapegrad.lift.levels import Level, below, levels_of
from tapegrad.lift.lifted_tensor import (
    Lifted,
    above,
    based,
    become,
    constant,
    handle,
    overwrite,
    pull,
)
from tapegrad.ops.core import ELEMENTWISE, Op
from tapegrad.ops.shape import clone, expand, permute
from tapegrad.tensor import Tensor, View, place, wrap

_warned: set[str] = set()


class Map(Level):
    """The level of a map, with its batch size."""

    __slots__ = ()

    def batch(self, full: Tensor) -> Tensor:
        """The Tensor of which `full` holds the examples along its first dimension."""
        return batched(full, self)

    def all_of(self, t: Any) -> Tensor:
        """The examples of a Tensor; one that is the same for all is broadcast."""
        return all_of(t, self)

    def varies(self, operands: Sequence[Any]) -> bool:
        """Whether random numbers differ from example to example.

        `operands` are the parameters of their distribution.
        """
        if self.randomness == "error":
            raise RuntimeError(
                "random numbers were asked for under `vmap`: say with `randomness` whether they "
                "shall be the 'same' for all examples or 'different', or draw them outside"
            )
        if self.randomness == "same" and self in levels_of(operands):
            raise RuntimeError(
                "`vmap`: numbers that are the 'same' for all examples were asked for of a "
                "distribution whose parameters differ from example to example: use "
                "randomness='different', or draw standard numbers (`randn`, `rand`), and scale or "
                "compare these"
            )
        return self.randomness == "different"


class Parts:
    """The parts of a Batched Tensor."""

    __slots__ = ("at", "full")

    def __init__(self, at: Level, full: Tensor) -> None:
        self.at = at
        self.full = full


class Batched(Lifted):
    """One example of many, which are computed together."""

    __slots__ = ()
    _kind = "a map"
    _name = "vmap"
    _lift: Parts

    def parts(self) -> tuple[Tensor, ...]:
        """All examples."""
        return (self._lift.full,)

    def varied(self, function: Callable[[Tensor], Tensor]) -> Tensor:
        """The same with other values."""
        return batched(function(self._lift.full), self._lift.at)

    def rebuilt(self, *parts: Tensor) -> Lifted:
        """The same of other examples."""
        return batched(parts[0], self._lift.at)

    @classmethod
    def together(
        cls, function: Callable[[Tensor, Tensor], Tensor], a: Tensor, b: Tensor, at: Level
    ) -> Lifted:
        """A function of all examples of two Tensors."""
        return batched(function(all_of(a, at), all_of(b, at)), at)

    def __bool__(self) -> NoReturn:
        raise RuntimeError(
            "under `vmap` a condition can differ from example to example, so Python cannot branch "
            "on it: use `tapegrad.where`, or loop over the examples"
        )

    @classmethod
    def apply(cls, op: Op, args: Any, params: dict[str, Any], at: Level) -> Any:
        """Run an operation on all examples at once."""
        many = []
        given = []
        single = False  # whether there is an example without dimensions
        for arg in args:
            its = type(arg) is Batched and arg._lift.at is at
            many.append(its)
            given.append(arg._lift.full if its else arg)
            single = single or (its and not arg._a.ndim)
        if op.kind is ELEMENTWISE:
            if single:
                given = batching_rules.typed(op, args, given)
            return batched(
                Tensor._tapegrad_run(op, batching_rules.aligned(given, many), params), at
            )
        assert at.size is not None
        rule = batching_rules.rule_of(op)
        found: Any = NotImplemented
        if rule is not None:
            found = rule(op, given, many, params, at.size)
        if found is NotImplemented:
            found = _one_by_one(op, given, many, params, at.size)
        return batched(found, at)

    @classmethod
    def apply_function(cls, function: type[Function], args: Any, at: Level) -> Any:
        """Run a `Function` on all examples at once."""
        many = tuple([type(a) is Batched and a._lift.at is at for a in args])
        given = [a._lift.full if m else a for a, m in zip(args, many, strict=True)]
        with below(at):
            return function_vmap.applied(function, given, many, at)

    @classmethod
    def pull(
        cls, roots: list[Tensor], weights: list[Any], inputs: list[Tensor], at: Level, *,
        recorded: bool, retain: bool, since: int,
    ) -> list[Tensor]:  # fmt: skip
        """The gradients of all examples in one sweep: they are independent."""
        for x in inputs:
            if not (type(x) is Batched and x._lift.at is at):
                raise RuntimeError(
                    "under `vmap` a gradient was asked for in a Tensor that is the same for all "
                    "examples: make it an argument of the function that is differentiated"
                )
        fulls = [all_of(r, at) for r in roots]
        found = pull(
            fulls,
            [all_of(_ones(r) if w is None else w, at) for r, w in zip(roots, weights, strict=True)],
            [x._lift.full for x in inputs],
            recorded=recorded,
            retain=retain,
            since=since,
        )
        return [batched(g, at) for g in found]

    @classmethod
    def promote(cls, target: Tensor, at: Level) -> None:
        """Make a Tensor, and its base if it is a view, one of as many examples."""
        above = based(target)
        if above is None:
            own = handle(target)
            _become(target, run(clone, (all_of(own, at),), {}), at)
            return
        base, steps = above
        if not (isinstance(base, Batched) and base._lift.at is at):
            cls.promote(base, at)
        seen: Any = base
        for op, params in steps:
            seen = run(op, (seen,), params)
        _become(target, seen._lift.full, at, View(base, steps, None))

    def write(self, result: Tensor) -> None:
        """Take over the examples of a result; views of this Tensor see them."""
        overwrite(self._lift.full, all_of(result, self._lift.at))


def _abstract(full: Tensor) -> AbstractArray:
    return filler(full._a.shape[1:], full._a.dtype, noticed=True).view(AbstractArray)


def _become(t: Tensor, full: Tensor, at: Level, home: View | None = None) -> None:
    become(t, Batched, _abstract(full), Parts(at, full), home)
    t._a.stand_for(t)  # type: ignore[attr-defined]


def batched(full: Tensor, at: Level) -> Lifted:
    """The Tensor of which `full` holds the examples along its first dimension."""
    if isinstance(full, Lifted) and above(full, at):
        # Its own examples, if it has some, lie in front of those.
        swap = _exchanged if type(full) is Batched else _same
        return full.mapped(lambda part: batched(swap(part), at))
    abstract = _abstract(full)
    t = Batched.around(abstract, Parts(at, full))
    abstract.stand_for(t)
    return t


def all_of(t: Any, at: Level) -> Tensor:
    """The examples of a Tensor; one that is the same for all is broadcast."""
    if isinstance(t, Tensor):
        place(t)
    if type(t) is Batched and t._lift.at is at:
        place(t._lift.full)
        return t._lift.full
    if above(t, at):
        swap = _exchanged if type(t) is Batched else _same
        return t.mapped(lambda part: swap(all_of(part, at)))  # type: ignore[no-any-return]
    if not isinstance(t, Tensor):
        t = wrap(np.asarray(t))
    return run(expand, (t,), {"shape": (at.size, *t._a.shape)})


def _exchanged(t: Tensor) -> Tensor:
    """Swap the first two dimensions."""
    return run(permute, (t,), {"dims": (1, 0, *range(2, t._a.ndim))})


def _same(t: Tensor) -> Tensor:
    return t


def _ones(t: Tensor) -> Tensor:
    return constant(np.ones(t._a.shape, t._a.dtype), t)


def _one_by_one(op: Op, given: list[Any], many: list[bool], params: Any, size: int) -> Tensor:
    if op.name not in _warned:
        _warned.add(op.name)
        warnings.warn(
            f"`vmap` has no rule for `{op.name}`: it runs example by example, which is slow",
            stacklevel=2,
        )
    found: Tensor = batching_rules.one_by_one(op, given, many, params, size)
    return found

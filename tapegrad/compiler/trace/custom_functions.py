"""Trace a user's `Function`: record `forward`, have sweeps call `backward`.

Its outputs are records of their own.  Each leaves its adjoint with one further record, the main
one, from which the sweep goes on to the arguments with the results of `backward`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from tapegrad.autograd.function import Context, Entry
from tapegrad.compiler.ir.graph import Node
from tapegrad.compiler.trace.trace import Parts, Trace, Wanted
from tapegrad.ops.core import Spec
from tapegrad.ops.shape import alias
from tapegrad.tape.tape import current
from tapegrad.tensor import Tensor

UNUSED = np.zeros(())


class Main(NamedTuple):
    """The record that calls `backward`; nothing is computed from it."""

    entry: Entry
    places: tuple[int | None, ...]  # of the arguments

    @property
    def operands(self) -> tuple[int, ...]:
        """The records that a sweep goes on to."""
        return tuple([p for p in self.places if p is not None])

    def remapped(self, where: dict[int, int]) -> Main:
        """The same in a trace that inlined these records."""
        return self._replace(places=tuple([None if p is None else where[p] for p in self.places]))

    def run(
        self, position: int, parts: Parts, g: Tensor | None, wanted: Wanted
    ) -> Iterator[tuple[int, Tensor]]:
        """Call `backward` for the adjoints of the arguments."""
        entry = self.entry
        found = entry.gradients(parts.pop(position), recorded=True)
        for k, (place, value) in enumerate(zip(self.places, found, strict=False)):
            if place is not None and value is not None and wanted(place):
                yield place, entry.fitted(value, k, recorded=True)


class Output(NamedTuple):
    """The record of an output, which leaves its adjoint with the main record."""

    main: int
    j: int

    @property
    def operands(self) -> tuple[int, ...]:
        """The records that a sweep goes on to."""
        return (self.main,)

    def remapped(self, where: dict[int, int]) -> Output:
        """The same in a trace that inlined these records."""
        return self._replace(main=where[self.main])

    def run(
        self, position: int, parts: Parts, g: Tensor | None, wanted: Wanted
    ) -> Iterator[tuple[int, Tensor]]:
        """Leave the adjoint."""
        if g is not None:
            parts.setdefault(self.main, {})[self.j] = g
        return iter(())


def applied(trace: Trace, cls: Any, args: tuple[Any, ...]) -> Any:
    """Run a Function on arguments of which some are traced."""
    context = Context()
    recording = context.needs(args) and current.tape.enabled
    places = [trace.position(a) if isinstance(a, Tensor) else None for a in args]
    out = cls.run_forward(context, args)
    several = isinstance(out, (tuple, list))
    outputs = list(out) if several else [out]
    specs, found = tuple([_spec(a) for a in args]), tuple([_spec(y) for y in outputs])
    entry = Entry(cls, context, specs, found)
    constant = {id(t) for t in context._constant}
    live = [
        isinstance(y, Tensor) and y._a.dtype.kind in "fc" and id(y) not in constant for y in outputs
    ]
    if not recording or not any(live):
        results = [_fresh(y, args, context) for y in outputs]
    else:
        main = trace.append(Node(None, (), {}, (), UNUSED.dtype, UNUSED), UNUSED)
        trace.pulls[main] = Main(entry, tuple(places))
        results = [
            _output(trace, y, main, j) if lives else _fresh(y, args, context)
            for j, (y, lives) in enumerate(zip(outputs, live, strict=True))
        ]
        _write(context, outputs, results)
    _save(trace, context, args, places, outputs, results)
    return tuple(results) if several else results[0]


def _spec(x: Any) -> Spec | None:
    return Spec(x._a.shape, x._a.dtype) if isinstance(x, Tensor) else None


def _fresh(y: Any, args: tuple[Any, ...], context: Context) -> Any:
    """An output without a gradient; one that is an unchanged argument becomes a constant."""
    dirty = any(y is t for t in context._dirty)
    return y.detach() if isinstance(y, Tensor) and any(y is a for a in args) and not dirty else y


def _output(trace: Trace, y: Tensor, main: int, j: int) -> Tensor:
    position = trace.record(alias, (trace.position(y),), {})
    trace.pulls[position] = Output(main, j)
    return trace.tensor(position)


def _write(context: Context, outputs: list[Any], results: list[Any]) -> None:
    """Make arguments that were changed in place the outputs."""
    for k, (y, result) in enumerate(zip(outputs, results, strict=True)):
        if any(y is t for t in context._dirty) and result is not y:
            y.write(result)
            results[k] = y


def _save(
    trace: Trace, context: Context, args: tuple[Any, ...], places: list[int | None],
    outputs: list[Any], results: list[Any],
) -> None:  # fmt: skip
    """Save the current values and history of what `save_for_backward` was given."""
    kept = []
    for t in context._to_save:
        if t is not None and not isinstance(t, Tensor):
            raise TypeError(f"`save_for_backward` takes Tensors or None, got {type(t).__name__}")
        out = next((r for y, r in zip(outputs, results, strict=True) if y is t), None)
        place = next((p for a, p in zip(args, places, strict=True) if a is t), None)
        if t is not None and out is not None:
            place = trace.position(out)
        elif t is not None and place is None:
            place = trace.position(t)
        kept.append(("plain", 0, None if place is None else trace.tensor(place), None))
    context._saved, context._to_save = tuple(kept), ()
    context._tape = current.tape

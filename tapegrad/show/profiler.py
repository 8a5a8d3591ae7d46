"""Where time goes: each operation, each step of a sweep, each stage of compiling.

A profile costs nothing while it is not active: no path asks for it. While it is, native code is
closed, operations take the general path, and what all of them come through is replaced by the same
inside of a timer: the fast paths in Python where calls find them, `dispatch.run` and its kin by
their code, since their callers hold these functions themselves.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import get_ident
from time import perf_counter_ns
from types import FunctionType
from typing import Any, NamedTuple, Self

from tapegrad.autograd.sweep import Sweep
from tapegrad.base import compile_stages
from tapegrad.base.text_tables import counted, html_table, text_table
from tapegrad.compiler.front.jitted import Jitted
from tapegrad.dispatch import dispatch, inplace, views
from tapegrad.dispatch.native_calls import native_calls
from tapegrad.dispatch.op_functions import as_operand
from tapegrad.native import install
from tapegrad.ops.core import ELEMENTWISE, Op, by_code
from tapegrad.tape.tape import Tape, current
from tapegrad.tensor import Tensor
from tapegrad.transforms.call_arguments import name_of

FORWARD, SWEEP, COMPILE = "forward", "sweep", "compile"
HEAD = ("phase", "operation", "calls", "total", "mean", "share")


class Event(NamedTuple):
    """One timed piece of work: nanoseconds of `time.perf_counter_ns`."""

    phase: str
    name: str
    start: int
    end: int


class Timing(NamedTuple):
    """All calls of one operation in one phase, in seconds.

    What was compiled during a call stands in rows of its own, and is not among its time.

    >>> import tapegrad as tg
    >>> with tg.profile() as p:
    ...     y = tg.exp(tg.ones(3))
    >>> [(row.phase, row.name, row.calls) for row in p.rows if row.name == "exp"]
    [('forward', 'exp', 1)]
    """

    phase: str
    name: str
    calls: int
    total: float

    @property
    def mean(self) -> float:
        """The time of one call."""
        return self.total / self.calls


class profile:
    """A context that times what this thread computes: operations, sweeps and compiling.

    It prints as a table, what took longest first. Operations are timed by themselves and in Python,
    so that small ones take longer than they do without; a call of a jitted function is one row,
    since its program is one. Times are those of computing and recording; what is compiled meanwhile
    stands in rows of its own. Only one profile can be active in a process, and other threads run
    without native code until it ends.

    >>> import tapegrad as tg
    >>> x = tg.ones(1000, requires_grad=True)
    >>> with tg.profile() as p:
    ...     (tg.exp(x) * x).sum().backward()
    >>> sorted((row.name, row.calls) for row in p.rows if row.phase == "sweep")
    [('exp', 1), ('mul', 1), ('sum', 1)]
    >>> print(str(p).splitlines()[1])
    phase    operation    calls    total    mean    share
    """

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._outer: str | None = None  # what is being timed
        self._thread = 0
        self._undo = ExitStack()

    def __enter__(self) -> Self:
        global active
        if active is not None:
            raise RuntimeError(
                "`profile` is active already, and only one can be: leave the other one first"
            )
        active, self._thread = self, get_ident()
        with ExitStack() as undo:
            undo.enter_context(_exchanged(self))
            self._undo = undo.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        global active
        try:
            self._undo.close()
        finally:
            active = None

    # -- timing ----------------------------------------------------------------------------

    def timed(self, phase: str, name: str, work: Callable[..., Any], *args: Any) -> Any:
        """Do some work, and note how long it took unless it is part of what is being timed."""
        if self._outer is not None or get_ident() != self._thread:
            return work(*args)
        self._outer, found = name, None
        start = perf_counter_ns()
        try:
            found = work(*args)
            return found
        finally:
            end = perf_counter_ns()
            self._outer = None
            if found is not None or phase == SWEEP:  # else a fast path has left it to another one
                self.events.append(Event(phase, name, start, end))

    def compiled(self, stage: str, start: int, end: int) -> None:
        """Note a stage of compiling, with the operation that needed it."""
        if get_ident() == self._thread:
            name = f"{self._outer}: {stage}" if self._outer else stage
            self.events.append(Event(COMPILE, name, start, end))

    # -- what was found --------------------------------------------------------------------

    @property
    def rows(self) -> list[Timing]:
        """The time of each operation in each phase, the longest first."""
        found: dict[tuple[str, str], list[int]] = {}
        for event, own in _own_times(self.events):
            row = found.setdefault((event.phase, event.name), [0, 0])
            row[0] += 1
            row[1] += own
        rows = [Timing(*key, calls, ns / 1e9) for key, (calls, ns) in found.items()]
        return sorted(rows, key=lambda row: -row.total)

    def _title(self) -> str:
        rows = self.rows
        phases = [
            f"{_duration(sum(row.total for row in rows if row.phase == phase))} {phase}"
            for phase in (FORWARD, SWEEP, COMPILE)
        ]
        return f"{', '.join(phases)}, in {counted(len(self.events), 'event')}"

    def _cells(self) -> list[tuple[str, ...]]:
        rows = self.rows
        whole = sum(row.total for row in rows) or 1.0
        return [
            (row.phase, row.name, str(row.calls), _duration(row.total), _duration(row.mean),
             f"{row.total / whole:.0%}")
            for row in rows
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"{self._title()}\n{text_table(HEAD, self._cells(), 'calls total mean share')}"

    def __repr__(self) -> str:
        return f"<profile: {self._title()}>"

    def _repr_html_(self) -> str:
        return html_table(HEAD, self._cells(), self._title())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a trace that https://ui.perfetto.dev and chrome://tracing open.

        >>> import tapegrad as tg, json, tempfile
        >>> with tg.profile() as p:
        ...     y = tg.exp(tg.ones(3))
        >>> with tempfile.NamedTemporaryFile() as file:
        ...     p.save(file.name)
        ...     trace = json.load(file)
        >>> {event["name"] for event in trace["traceEvents"]} >= {"exp"}
        True
        """
        Path(path).write_text(json.dumps(self._trace()), encoding="utf-8")

    def _trace(self) -> dict[str, Any]:
        """The events in Chrome's trace event format: complete events, in microseconds."""
        first = min((event.start for event in self.events), default=0)
        where = {"pid": os.getpid(), "tid": self._thread}
        found = [
            {"name": e.name, "cat": e.phase, "ph": "X", "ts": (e.start - first) / 1000,
             "dur": (e.end - e.start) / 1000, **where}
            for e in sorted(self.events, key=lambda e: (e.start, -e.end))
        ]  # fmt: skip
        named = {"name": "process_name", "ph": "M", **where, "args": {"name": "tapegrad"}}
        return {"traceEvents": [named, *found], "displayTimeUnit": "ns"}


active: profile | None = None


def _own_times(events: list[Event]) -> Iterator[tuple[Event, int]]:
    """Each event with its nanoseconds less those of the events within it."""
    open_events: list[tuple[Event, list[int]]] = []
    for event in sorted(events, key=lambda e: (e.start, -e.end)):
        while open_events and open_events[-1][0].end <= event.start:
            done, own = open_events.pop()
            yield done, own[0]
        if open_events:
            open_events[-1][1][0] -= event.end - event.start
        open_events.append((event, [event.end - event.start]))
    for done, own in open_events:
        yield done, own[0]


def _duration(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


# -- what is exchanged while a profile is active -----------------------------------------------


@contextmanager
def _exchanged(profiler: profile) -> Iterator[None]:
    """Operations, sweeps, jitted functions and compiling inside of a timer."""
    tape = current.tape
    install.suspend()
    with ExitStack() as undo:
        undo.callback(install.resume)
        undo.callback(_restore_mode, tape)
        undo.callback(compile_stages.listen, None)
        for holder, name, value in _replacements(profiler):
            undo.callback(setattr, holder, name, getattr(holder, name))
            setattr(holder, name, value)
        entry_points = {op: op.entry_point for op in by_code if op.entry_point is not None}
        undo.callback(_restore, entry_points)

        def new_op(op: Op) -> None:
            entry_points[op] = op.entry_point
            op.entry_point = _timed_entry_point(profiler, op)

        for op in [*entry_points]:
            new_op(op)
        native_calls.new_op = new_op
        compile_stages.listen(profiler.compiled)
        Tape.profiled = tape
        tape.set_mode()
        yield


def _restore_mode(tape: Tape) -> None:
    Tape.profiled = None
    tape.set_mode()


def _restore(entry_points: dict[Op, Any]) -> None:
    for op, function in entry_points.items():
        op.entry_point = function


def _timed_entry_point(profiler: profile, op: Op) -> Callable[..., Any]:
    """What is called for an operation on Tensors: the general path, or what leads there."""
    untimed = op.entry_point

    def general(*args: Any) -> Any:
        return _run(op, tuple(map(as_operand, args)), {})

    work = general if op.kind is ELEMENTWISE else untimed
    return lambda *args: profiler.timed(FORWARD, op.name, work, *args)


def _replacements(profiler: profile) -> Iterator[tuple[Any, str, Any]]:
    """Attributes of objects, and what they are while a profile is active."""
    step, compiled, call = Sweep._step, Sweep._run_compiled, Jitted.__call__

    def timed_step(sweep: Sweep, index: int) -> None:
        profiler.timed(SWEEP, sweep.tape.record(index).op, step, sweep, index)

    def run_step_by_step(sweep: Sweep, work: Any) -> None:
        if sweep.tape is not Tape.profiled:
            compiled(sweep, work)
            return
        sweep.work = None
        sweep._run_in_python()

    def timed_call(jitted: Jitted, *args: Any, **kwargs: Any) -> Any:
        name = f"jit {name_of(jitted.function)}"
        return profiler.timed(FORWARD, name, lambda: call(jitted, *args, **kwargs))

    def change(target: Any, second: Any, third: Any, code: int) -> Tensor | None:
        if profiler._outer is not None:  # it is `run_inplace` that asks
            return None
        op = by_code[code]
        given = [as_operand(x) for x in (second, third) if x is not None]
        return inplace.run_inplace(op, (target, *given), {}, target)

    yield Sweep, "_step", timed_step
    yield Sweep, "_run_compiled", run_step_by_step
    yield Jitted, "__call__", timed_call
    yield native_calls, "change", change
    for function, replacement in _CODES.items():
        yield function, "__code__", replacement.__code__


def _original(function: Any) -> Any:
    """The function as it is while its code is exchanged."""
    return FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__
    )


_run, _run_constant = _original(dispatch.run), _original(dispatch.run_constant)
_run_inplace, _make_view = _original(inplace.run_inplace), _original(views.make_view)


def timed_operation(work: Callable[..., Any], op: Op, *args: Any) -> Any:
    """An operation that comes through one of the functions whose code is exchanged."""
    profiler = active
    return (
        work(op, *args) if profiler is None else profiler.timed(FORWARD, op.name, work, op, *args)
    )


# The code of these runs as that of other functions, with the names of their modules: each imports
# what it needs.


def _timed_run(op: Any, args: Any, params: Any) -> Any:
    from tapegrad.show import profiler as p

    return p.timed_operation(p._run, op, args, params)


def _timed_run_constant(op: Any, x: Any, params: Any) -> Any:
    from tapegrad.show import profiler as p

    return p.timed_operation(p._run_constant, op, x, params)


def _timed_run_inplace(op: Any, args: Any, params: Any, target: Any, name: Any) -> Any:
    from tapegrad.show import profiler as p

    return p.timed_operation(p._run_inplace, op, args, params, target, name)


def _timed_make_view(op: Any, x: Any, params: Any, r: Any, key: Any, element: Any) -> Any:
    from tapegrad.show import profiler as p

    return p.timed_operation(p._make_view, op, x, params, r, key, element)


_CODES: dict[Any, Any] = {
    dispatch.run: _timed_run,
    dispatch.run_constant: _timed_run_constant,
    inplace.run_inplace: _timed_run_inplace,
    views.make_view: _timed_make_view,
}

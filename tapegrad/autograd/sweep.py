"""The reverse sweep: mark reachable records, then propagate adjoints record by record.

`Sweep` runs the compiled sweep as far as it goes, does by itself the records that need Python
(large arrays, general rules, hooks, a user's Function), and resumes the compiled sweep below.  When
the sweep is itself recorded every record is done in Python, on Tensors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from tapegrad.autograd import anomaly, gemm_adjoints, reachability_fallback
from tapegrad.autograd.adjoints import Adjoints, added
from tapegrad.autograd.grad_mode import switched
from tapegrad.autograd.node_hooks import prehooked, stepped
from tapegrad.autograd.pullback import by_rule, spec_at, unpack
from tapegrad.autograd.tensor_hooks import end_sweep, run_hooks
from tapegrad.base.compile_stages import NotCompiled
from tapegrad.dispatch.native_calls import native_calls
from tapegrad.kernels.sweep import sweep_abi
from tapegrad.kernels.sweep.sweep_abi import (
    BELOW,
    DONE,
    LEAF_REACHED,
    NEED_CAPTURE,
    NEED_INSIDE,
    RESUME,
    SPENT_RECORD,
    START,
    UNUSED,
    WANTS_BLAS,
    WANTS_KERNEL,
    WANTS_PYTHON,
    WANTS_ROOM,
    WANTS_RULE,
    SweepFrame,
)
from tapegrad.native.abi import RuleContext
from tapegrad.ops.graph_nodes import grad_name
from tapegrad.tape import versions
from tapegrad.tape.copy_on_use import shares
from tapegrad.tape.record_format import (
    CODE_MASK,
    GENERAL,
    HOOKED,
    PACKED,
    SAVES,
    SPENT,
    STRIDE,
    pack_word,
    unpack_from,
)
from tapegrad.tape.tape import MODE_FAST, Tape
from tapegrad.tensor import Tensor, wrap

# Read once: a look-up in a class takes as long as what is written there.
_RETAIN, _BOTTOM, _CHANGED, _TARGETS, _LEAF_ADJOINTS, _LOW, _DETAIL, _EVERY = (
    SweepFrame.retain,
    SweepFrame.bottom,
    SweepFrame.changed,
    SweepFrame.targets,
    SweepFrame.leaf_adjoints,
    SweepFrame.low,
    SweepFrame.detail,
    SweepFrame.every,
)

if TYPE_CHECKING:
    from tapegrad.autograd.workspace import Workspace


NOT_USED = (
    "one of the `inputs` of `grad` appears to not have been used in the graph; "
    "pass `allow_unused=True` to get None for it"
)
MANY = 8  # adjoints that Python may hold before it looks for those that were handed on


class Sweep(Adjoints):
    """One reverse sweep over a tape."""

    targets: list[int] | None = None  # codes; None: every leaf
    strict = 0  # so many of the targets must be reached
    accumulates = False  # into `inputs` of `backward`, whose prehooks hear of it
    since = 0  # a position below which nothing leads to a target; 0: not known
    aims: Sequence[int] | None = None  # positions, and keys of leaves, that become `targets`
    found: Sequence[tuple[int, Tensor, Any]] = ()  # leaves that were reached, see `collect`
    lent: np.ndarray | None = None  # weights whose memory gradients may share
    most = MANY  # adjoints that Python may hold, see `_forget_handed_on`

    def __init__(
        self, tape: Tape, *, recorded: bool, retain: bool, work: Workspace | None = None
    ) -> None:
        self.tape = tape
        self.recorded = recorded
        self.retain = retain
        self.roots: dict[int, Any] = {}  # position -> weight
        self.seeds: dict[int, Any] = {}
        self.values = {}
        self.scratch: dict[int, Any] = {}  # what a Function's outputs collect for it
        self.captured: dict[int, Any] = {}  # position -> adjoint
        self.slots = tape.slots
        self.marks = work or _workspace(tape)
        self.work = None if recorded or tape.anomaly is not None else self.marks

    # -- setting up ------------------------------------------------------------------------

    def seed(self, position: int, value: Any) -> None:
        """Add to the adjoint of a root."""
        before = self.roots.get(position)
        self.roots[position] = value if before is None else added(before, value)

    def run(self) -> None:
        """Sweep from the seeds down; nothing is done if a required target is not reached."""
        if not self.roots:
            if self.strict:
                raise RuntimeError(NOT_USED)
            return
        tape = self.tape
        tape.sweeping += 1  # excludes compaction from now on
        try:
            self._locate()
            if self.work is None:
                self._run_in_python()
            else:
                self._run_compiled(self.work)
            self.collect()
        except BaseException:
            end_sweep(tape, failed=True)
            raise
        finally:
            tape.sweeping -= 1
            if tape.recomputed and not tape.sweeping:
                tape.recomputed.clear()

    def go_on(
        self, status: int, index: int, low: int, seed: np.ndarray, targets: list[int] | None
    ) -> None:
        """Finish what `native.sweep_call` has begun, a sweep from one root to leaves."""
        work = self.work
        assert work is not None
        self.seeds[index] = self.values[index] = seed
        self.top, self.low = index, low
        work.note(self.tape, work.frame[SweepFrame.leaves], self.low, index)
        if targets is not None:
            self.targets, self.strict = targets, len(targets)
            work.set_targets(targets, self.strict)
            self.need, self.leaf_need = work.need()
        if status != DONE:
            self.finish(work, status)

    def _locate(self) -> None:
        tape = self.tape
        self.seeds = {tape.index(position): value for position, value in self.roots.items()}
        self.top = max(self.seeds)
        bottom = tape.index(self.since) if self.since else tape.floor
        self.low = min(max(bottom, 0), *self.seeds)
        if self.aims is not None:
            codes = [key if key > 0 else tape.slots.get(key, 0) for key in self.aims]
            if not all(codes[: self.strict]):
                raise RuntimeError(NOT_USED)
            self.targets = [code for code in codes if code]

    def _run_compiled(self, work: Workspace) -> None:
        seeds: list[int] = []
        for index, value in self.seeds.items():
            if value.size <= sweep_abi.SMALL:  # the compiled sweep may write there
                value = np.array(value, order="C")
            self.values[index] = value
            seeds += (index, work.data(value))
        self.finish(work, self._begin(work, seeds))

    def finish(self, work: Workspace, status: int) -> None:
        """Serve a compiled sweep's requests for Python until it is done."""
        if status != DONE:
            switched(self.tape, False, self._serve, work, status)
        if not self.retain:
            drop(self.tape, work, self.top)

    def _serve(self, work: Workspace, status: int) -> None:
        tape, frame = self.tape, work.frame
        while status != DONE:
            if status in (WANTS_PYTHON, WANTS_RULE):
                if status == WANTS_RULE and native_calls.resume is not None:
                    context = RuleContext(
                        tape=tape, wanted=self.wanted, scratch=self.scratch, hand_on=self._hand_on
                    )
                    places = frame.buffer_info()[0], work.kernel_at, id(context)
                    status = native_calls.resume(*places)
                    continue
                index = frame[SweepFrame.cursor]
                self._step(index)
                frame[SweepFrame.cursor] = index - 1
                if tape.enabled or tape.inference:  # a hook has left it so
                    tape.switch(False, False)
            elif status == WANTS_KERNEL:
                from tapegrad.kernels.codegen import kernel_table  # which loads the compiler

                if not kernel_table.fill(frame[_DETAIL]):
                    tape.mark_words(frame[SweepFrame.cursor], GENERAL)
            elif status == WANTS_ROOM:
                work.grow()
            elif status == WANTS_BLAS:
                work.bring_blas()
            else:
                self._check_versions(work.reach())
            status = work.run(RESUME)

    def _begin(self, work: Workspace, seeds: list[int]) -> int:
        """Mark the reachable records, refuse released ones, and begin."""
        work.set_seeds(seeds)
        work.frame[_RETAIN] = self.retain
        status = self._start(work)
        if status == BELOW:
            self.low = 0
            status = self._start(work)
        if self.targets is not None:
            self.need, self.leaf_need = work.need()
        if status == SPENT_RECORD:
            raise self._spent(work.frame[_DETAIL])
        if status == UNUSED:
            raise RuntimeError(NOT_USED)
        return status

    def _start(self, work: Workspace) -> int:
        tape, low = self.tape, self.low
        work.begin(tape, low, self.top)
        if self.targets is not None:
            work.set_targets(self.targets, self.strict)
        work.frame[_BOTTOM] = bool(self.since)
        work.frame[_CHANGED] = -1 if self.work is None else 0
        if self.work is not None and tape.last_mutation > tape.tokens[low]:
            work.frame[_CHANGED] = max(tape.last_mutation - tape.shift, len(tape.old))
        return work.run(START)

    def _run_in_python(self) -> None:
        tape, marks = self.tape, self.marks
        if marks is None:
            reach = self._mark_in_python()
        else:
            self._begin(marks, [number for index in self.seeds for number in (index, 0)])
            below = marks.frame[_LOW] - self.low  # records that no mark lies on
            self.low += below
            reach = marks.reach()[below:].copy()  # sweeps inside of this one mark elsewhere
            if self.need is not None:
                self.need, self.leaf_need = np.array(self.need[below:]), np.array(self.leaf_need)
        self._check_versions(reach)
        self.values.update(self.seeds)
        index, outer = 0, tape.traces.get(0, "")
        try:
            for index in (self.low + np.flatnonzero(reach))[::-1].tolist():
                if tape.anomaly is not None:
                    tape.traces[0] = anomaly.trace_of(tape, index)
                self._step(index)
        except Exception:
            if tape.anomaly is not None:
                anomaly.point_out(tape, index)
            raise
        finally:
            if tape.anomaly is not None:
                tape.traces[0] = outer
        if not self.retain:  # the records that only delivered keep what they saved
            swept = reach if self.need is None else reach & (self.need & NEED_INSIDE)
            tape.release(self.low + np.flatnonzero(swept))

    def _mark_in_python(self) -> np.ndarray:
        self.since, self.low = 0, min(self.tape.floor, self.low)
        status, at, reach = self._mark()
        if status == BELOW:
            self.low = 0
            status, at, reach = self._mark()
        if status == SPENT_RECORD:
            raise self._spent(at)
        if not self._reached(reach):
            raise RuntimeError(NOT_USED)
        return reach

    def _mark(self) -> tuple[int, int, np.ndarray]:
        tape, low, top = self.tape, self.low, self.top
        reach = np.zeros(top + 1 - low, np.uint8)
        for index in self.seeds:
            reach[index - low] = 1
        if self.targets is not None:
            need = self.need = np.zeros(top + 1 - low, np.uint8)
            leaf_need = self.leaf_need = np.zeros(len(tape.leaves), np.uint8)
            for code in self.targets:
                if code < 0:
                    leaf_need[-code - 1] = 1
                elif 0 <= (index := tape.index(code) - low) < len(need):
                    need[index] = NEED_CAPTURE
            reachability_fallback.needs(tape, need, leaf_need, low, top)
        return (
            *reachability_fallback.mark(tape, reach, self.need, self.leaf_need, low, top),
            reach,
        )

    def _reached(self, reach: np.ndarray) -> bool:
        for code in (self.targets or ())[: self.strict]:
            if code < 0:
                found = self.leaf_need is not None and self.leaf_need[-code - 1] & LEAF_REACHED
            else:
                index = self.tape.index(code) - self.low
                found = 0 <= index < len(reach) and reach[index]
            if not found:
                return False
        return True

    def _spent(self, index: int) -> Exception:
        tape = self.tape
        return RuntimeError(
            f"backward through the graph a second time: `{tape.record(index).op}` at position "
            f"{tape.tokens[index]} was swept before and its saved values were "
            "released; pass `retain_graph=True` to the first sweep"
        )

    def _check_versions(self, reach: np.ndarray) -> None:
        """Refuse when a value that a record saved was changed after it was saved."""
        tape = self.tape
        if tape.last_mutation <= tape.tokens[self.low]:
            return
        indices = np.flatnonzero(reach)
        if not len(indices):
            return
        lowest = tape.tokens[self.low + int(indices[0])]
        mutated = versions.changed_at(tape, lowest)
        if not mutated:
            return
        for index in (self.low + indices).tolist():
            position = tape.tokens[index]
            if position >= tape.last_mutation:
                return
            entry = tape.keep[index]
            values = getattr(entry, "watched", entry)
            if not isinstance(values, tuple):
                continue
            if self.need is not None and not self.need[index - self.low] & NEED_INSIDE:
                continue
            for value in values:
                if type(value) is np.ndarray and any(
                    mutated.get(id(root), 0) > position for root in versions.roots(value)
                ):
                    raise self._changed(index, value)

    def _changed(self, index: int, value: np.ndarray) -> Exception:
        tape = self.tape
        position = tape.tokens[index]
        if tape.anomaly is not None:
            anomaly.point_out(tape, index)
        return RuntimeError(
            f"a value of shape {value.shape} that `{tape.record(index).op}` "
            f"({grad_name(tape, position)}, position {position}) saved has been modified by an "
            f"inplace operation, its version is now {versions.version(versions.root(value))}; "
            "use an operation that returns a new Tensor, or `clone()` before changing it"
        )

    # -- records that need Python ----------------------------------------------------------

    def _step(self, index: int) -> None:
        """Do one record in Python."""
        tape, work = self.tape, self.work
        if work is None:
            g = self.values.pop(index, None)
            if g is None:
                return
        else:
            place = index + work.first
            cell = work.cells[place]
            if not cell:
                return
            work.cells[place] = 0
            g = self.values.pop(index) if cell & 1 else work.given(cell, *spec_at(tape, index))
            if len(self.values) > self.most:
                self._forget_handed_on(work)
        word, _, _, _, _, _ = unpack_from(tape.buffer, index * STRIDE)
        need = NEED_INSIDE if self.need is None else self.need[index - self.low]
        if not need:  # a root that leads to no target: its hooks do not hear of the sweep
            return
        own = None
        if word & HOOKED:
            g = self._hooked(tape.tokens[index], g)
            own = tape.hooks.get(tape.tokens[index])
            own = own if own is not None and (own.before or own.after) else None
        if need & NEED_CAPTURE:
            small = not self.recorded and g.size <= sweep_abi.SMALL
            self.captured[tape.tokens[index]] = g.copy() if small else g  # it may be the arena's
        if not need & NEED_INSIDE:
            if own is not None and self.accumulates:
                prehooked(own, tape, index, g, self.recorded, self.scratch)
            return
        entry = tape.keep[index]
        if word & PACKED:  # unpacked once, however many ways to do the record look at its values
            tape.keep[index] = unpack(entry)
        try:
            self._pull(index, word, g, own)
        finally:
            if word & PACKED:
                tape.keep[index] = entry
        if not self.retain and not tape.hooks and word & SAVES:
            word, _, _, _, _, _ = unpack_from(tape.buffer, index * STRIDE)
            pack_word(tape.buffer, index * STRIDE, word | SPENT)
            tape.next = tape.next - 1 + 1
            tape.keep[index] = None  # large values go as soon as they were used

    def _forget_handed_on(self, work: Workspace) -> None:
        """Drop the adjoints that compiled code has handed on, of which it does not tell."""
        for key in [k for k in self.values if k >= 0 and not work.cells[k + work.first]]:
            del self.values[key]
        self.most = MANY + 2 * len(self.values)  # those that stay are looked through seldom

    def _by_kernels(self, index: int, word: int, g: np.ndarray) -> bool:
        """Hand the adjoint of a large array on by kernels; False: none serves the record."""
        if word & CODE_MASK == gemm_adjoints.CODE and gemm_adjoints.step(self, index, g):
            return True
        from tapegrad.autograd import large_adjoints

        return large_adjoints.step(self, index, word, g)

    def _pull(self, index: int, word: int, g: Any, hooks: Any) -> None:
        """Hand an adjoint on to the inputs of a record, by kernels or by a rule."""
        tape = self.tape
        own = getattr(tape.keep[index], "pull", None)  # the rule of a user
        work = self.work
        if own is not None and work is not None and g.base is not None and work.lent(g):
            g = g.copy()  # the user may keep it, or change it
        found: Iterable[tuple[int, Any]]
        if hooks is not None:
            found = stepped(hooks, tape, index, g, self.wanted, self.recorded, self.scratch)
        elif own is not None:
            found = own(tape, index, g, self.wanted, self.recorded, self.scratch)
            g = None  # the user's rule may have handed this array on
        elif not (
            self.recorded or tape.anomaly  # which needs the rule
        ) and self._by_kernels(index, word, g):
            return
        else:
            found = by_rule(tape, index, g, self.wanted, self.recorded)
        self._hand_on(index, found)
        if tape.anomaly == anomaly.STRICT and own is None:
            anomaly.look_behind_zeros(tape, index, g, self.wanted)

    def _hand_on(self, index: int, found: Iterable[tuple[int, Any]]) -> None:
        """Add to the adjoints of a record's inputs, given by code."""
        tape = self.tape
        watched = tape.anomaly
        for code, value in taken(found) if isinstance(found, list) else found:
            if watched:
                anomaly.look_for_nan(tape, index, value)
            self.add(code if code < 0 else tape.index(code), value)

    def _hooked(self, position: int, g: Any) -> Any:
        found = run_hooks(self.tape.hooks.get(position), g if self.recorded else wrap(g.copy()))
        return found if self.recorded else found._a

    # -- what was found --------------------------------------------------------------------

    def collect(self) -> None:
        """Take the adjoints of the leaves: codes, leaves and adjoints.

        From then on another sweep may come in between, and `slots` says what the codes mean.
        """
        leaves, self.slots = self.tape.leaves, self.tape.slots
        self.found = [(code, leaves[-code - 1], g) for code, g in self._leaf_gradients()]

    def _leaf_gradients(self) -> list[tuple[int, Any]]:
        """The codes of the leaves that were reached, and their adjoints, not shared."""
        work, values = self.work, self.values
        if self.recorded:
            return [(code, value) for code, value in values.items() if code < 0]
        if work is None or not self.seeds:
            return [(code, versions.alone(values.pop(code))) for code in [*values] if code < 0]
        found = []
        code = 0
        for cell in work.cells[: work.leaves].tolist():
            code -= 1
            if cell & 1:
                if self._shares(code):
                    found.append((code, values.pop(code)[...]))
                else:
                    found.append((code, versions.alone(values.pop(code))))
            elif cell:
                leaf = self.tape.leaves[-code - 1]
                found.append((code, work.copy(cell, leaf._a, leaf._s)))
        return found

    def _shares(self, code: int) -> bool:
        """Whether the adjoint of a leaf, for which no hook waits, may stay in lent memory."""
        lent, leaf = self.lent, self.tape.leaves[-code - 1]
        return lent is not None and shares(self.values[code], lent) and not leaf.extra


def taken(items: list[Any]) -> Iterator[Any]:
    """Yield the items of a list, and drop its references to them first."""
    items.reverse()
    while items:
        yield items.pop()


def drop(tape: Tape, work: Workspace, top: int) -> None:
    """Free the values of the records that the compiled sweep has just marked as released."""
    tape.next = tape.next - 1 + 1  # the compiled sweep has marked the records
    keep, low = tape.keep, work.frame[_LOW]
    count = work.frame[_DETAIL]
    listed = work.cells[low + work.first :][:count].tolist() if count else ()
    if not work.frame[_EVERY]:
        for index in listed:
            keep[index] = None
        return
    stays = [(index, keep[index]) for index in listed]
    keep[low : top + 1] = [None] * (top + 1 - low)
    for index, entry in stays:
        keep[index] = entry
    tape.raise_floor(low, top + 1)


def deliver(sweep: Sweep, leaves: list[Tensor] | None = None) -> Any:
    """The gradients of some leaves, as a tuple; or add all of them to the leaves' `.grad`.

    False: not all are as plain as compiled code expects, and nothing is done.
    """
    work = sweep.work
    compiled = native_calls.accumulate
    if compiled is None or work is None:
        return False
    # A list might move, and leaves may have come since the sweep.
    things = (*(sweep.tape.leaves[: work.leaves] if leaves is None else leaves),)
    codes = 0 if leaves is None else work.frame[_TARGETS]
    at = id(things) + work.layout.tuple_items
    return compiled(work.frame[_LEAF_ADJOINTS], at, codes, len(things))


def swept_at_once(tape: Tape, root: int, leaf: int, since: int, into: np.ndarray) -> bool:
    """Sweep from a root to a leaf in one call; False, with nothing done: not supported.

    Nothing at a position below `since` leads to the leaf, whose gradient is written over zeros.
    """
    work = tape.workspace
    if work is None or tape.sweeping or tape.mode != MODE_FAST or tape.last_mutation > since:
        return False
    tape.sweeping = 1
    try:
        low = tape.index(since)
        if low < 0 or root < since:
            return False
        return work.one_leaf(tape, low, root, tape.slots[leaf], into)  # type: ignore[no-any-return]
    finally:
        tape.sweeping = 0


_sweeps_in_python = count()  # while the compiled sweep is on its way


def _workspace(tape: Tape) -> Workspace | None:
    """The tape's workspace, or a nested sweep's own; None if there can be none, or none yet."""
    if sweep_abi.find() is None:
        return None
    if tape.workspace is None:
        from tapegrad.autograd.workspace import Workspace, propagate

        try:
            made = Workspace()
        except NotCompiled:
            if next(_sweeps_in_python) % 64 == 0 and Tape.on_full is not None:
                Tape.on_full()
            return None
        first = Tape.propagate is reachability_fallback.propagate
        if first and Tape.on_full is not None:
            Tape.on_full()
        tape.workspace = made
        Tape.propagate = propagate
    work: Workspace = tape.workspace
    for _ in range(tape.sweeping):
        work = work.inside()
    return work

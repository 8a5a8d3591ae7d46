"""Loops and branches as LLVM text: a function over the addresses of operands and results.

The graphs that a loop or a branch owns are functions over two tables of addresses, as a whole
program is.  A trip changes the addresses of what it reads and writes; carries are copied if they
are small, else two pieces of memory change places.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tapegrad.compiler.graph import Node
from tapegrad.compiler.place import SCRATCH, Buffer, Place, whole
from tapegrad.compiler.region import BRANCH, TAKE, Repeat, graphs_of, grows
from tapegrad.ops.core import Spec

if TYPE_CHECKING:
    from tapegrad.compiler.schedule import Schedule

COPIED = 256  # bytes of a carry up to which it is copied after each trip
FIRST = 64  # trips for which there is memory at first, where their number is not known


def nbytes(spec: Spec) -> int:
    """The bytes of a value."""
    return int(np.prod(spec.shape, dtype=np.int64)) * spec.dtype.itemsize


class Nested:
    """A loop or a branch: operands in C order, results by number, and its graphs' schedules.

    `work` is what it needs of scratch memory.
    """

    __slots__ = ("args", "graphs", "node", "outs", "work")

    def __init__(self, node: Node, args: list[Place], graphs: list[Schedule]) -> None:
        self.node, self.args, self.graphs = node, args, graphs
        self.outs: dict[int, Place] = {}
        self.work = Buffer(SCRATCH, 0, np.dtype(np.uint8), _work(node, graphs))

    @property
    def trips(self) -> int | None:
        """How often the same code runs; None if that is found out when it runs."""
        return 1 if self.node.op is BRANCH else self.node.params["form"].trips

    def places(self) -> list[Place]:
        """All that it reads and writes, in the order in which its function takes the addresses."""
        return [*self.args, *self.outs.values(), whole(self.work, ())]


def place_nested(schedule: Schedule, position: int, node: Node) -> None:
    """Schedule a loop or a branch, or find the place of one of its results."""
    if node.op is not TAKE:
        args = [schedule.plain(a, ordered=True) for a in node.args]
        step = Nested(node, args, [schedule.inner(sub.graph()) for sub in graphs_of(node)])
        schedule.buffers.append(step.work)
        schedule.steps.append(step)
        schedule.home[position] = len(schedule.steps) - 1
        return
    home = schedule.home[position] = schedule.home[node.args[0]]
    found = schedule.steps[home]
    assert isinstance(found, Nested)
    k = node.params["k"]
    if k not in found.outs:
        if grows(found.node, k):
            buffer = Buffer(SCRATCH, 0, np.dtype(np.int64), 1)
            schedule.buffers.append(buffer)
            schedule.grown.append(buffer)
            found.outs[k] = whole(buffer, ())
        else:
            found.outs[k] = schedule.fresh(node)
    schedule.places[position] = found.outs[k]


def _work(node: Node, graphs: list[Schedule]) -> int:
    """Scratch memory of a loop or a branch: of one graph at a time, and for large carries."""
    size = _shared(graphs)
    if node.op is not BRANCH:
        form: Repeat = node.params["form"]
        size += sum(2 * _room(n) for n in map(nbytes, form.body.specs()[: form.carries]))
    return size


def _shared(graphs: list[Schedule]) -> int:
    return max([(g.scratch + 63) // 64 * 64 for g in graphs])


def _room(n: int) -> int:
    """The bytes in scratch memory of each of the two places of a carry."""
    return 0 if n <= COPIED else (n + 63) // 64 * 64


def nested_text(name: str, step: Nested, graphs: list[str]) -> str:
    """The function of a loop or a branch, whose graphs have become functions."""
    params = [f"ptr %a{k}" for k in range(len(step.args))]
    params += [f"ptr %o{k}" for k in step.outs]
    head = f"define internal i64 @{name}({', '.join([*params, 'ptr %work'])}) #0 {{"
    lines = _branch(step, graphs) if step.node.op is BRANCH else _Loop(step, graphs).lines
    return "\n".join([head, *lines, "ret i64 0", "}"])


def _table(name: str, count: int) -> list[str]:
    """A table of addresses, and the address `%<name><k>` of each entry."""
    lines = [f"%{name} = alloca [{max(count, 1)} x ptr]"]
    for k in range(count):
        lines.append(f"%{name}{k} = getelementptr inbounds ptr, ptr %{name}, i64 {k}")
    return lines


def _branch(step: Nested, graphs: list[str]) -> list[str]:
    count = len(step.node.params["arms"][0].outputs)
    lines = [*_table("in", len(step.args) - 1), *_table("out", count)]
    lines += [f"store ptr %a{k + 1}, ptr %in{k}" for k in range(len(step.args) - 1)]
    lines += [f"store ptr %o{k}, ptr %out{k}" for k in range(count)]
    lines += [
        "%which = load i8, ptr %a0",
        "%first = icmp ne i8 %which, 0",
        "br i1 %first, label %yes, label %no",
    ]
    for label, graph in zip(("yes", "no"), graphs, strict=True):
        lines += [
            f"{label}:",
            f"%{label}.status = call i64 @{graph}(ptr %in, ptr %out, ptr %work)",
            f"ret i64 %{label}.status",
        ]
    return [*lines, "never:"]


class _Loop:
    """Writes the function of a loop."""

    def __init__(self, step: Nested, graphs: list[str]) -> None:
        self.form: Repeat = step.node.params["form"]
        self.step = step
        self.body = graphs[0]
        self.until = graphs[1] if len(graphs) > 1 else None
        self.lines: list[str] = []
        self.count = 0
        form = self.form
        specs = form.body.specs()
        self.sizes = [nbytes(spec) for spec in specs]
        self.stacks = {  # results of every trip: their size
            k: self.sizes[k if k < len(specs) else k - len(specs)]
            for k in step.outs
            if form.carries <= k < form.counter
        }
        self._begin()
        self._head()
        self._before()
        self._status(f"call i64 @{self.body}(ptr %in, ptr %out, ptr %work)")
        self._after()

    def add(self, *lines: str) -> None:
        """Append lines."""
        self.lines += lines

    def let(self, text: str) -> str:
        """Append an instruction; returns the name of its result."""
        self.count += 1
        self.add(f"%v{self.count} = {text}")
        return f"%v{self.count}"

    def copy(self, target: str, source: str, size: int) -> None:
        """Copy bytes."""
        if size:
            self.add(
                f"call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {size}, "
                "i1 false)"
            )

    def _status(self, call: str) -> None:
        """Call what returns a status, and hand on any but 0."""
        result = self.let(call)
        bad = self.let(f"icmp ne i64 {result}, 0")
        k = self.count
        self.add(f"br i1 {bad}, label %bad{k}, label %good{k}", f"bad{k}:", f"ret i64 {result}")
        self.add(f"good{k}:")

    def _begin(self) -> None:
        """Tables, memory, and the addresses that stay."""
        form, args = self.form, self.step.args
        untaken = set(range(form.carries, len(form.body.outputs))) - self.step.outs.keys()
        assert not untaken, "what nobody takes of a loop has no place in memory"
        fixed = form.carries + form.rows
        self.add(*_table("in", len(args) - form.counted), *_table("out", len(form.body.outputs)))
        self.add("%t = alloca i64", "store i64 0, ptr %t")
        first = int(form.counted)
        offset = _shared(self.step.graphs)
        for k in range(form.carries):
            size = self.sizes[k]
            if size <= COPIED:
                self.add(*[f"%{c}{k} = alloca [{max(size, 1)} x i8], align 64" for c in "cd"])
                self.copy(f"%c{k}", f"%a{k + first}", size)
                self.add(f"store ptr %c{k}, ptr %in{k}")
            else:
                for c in "cd":
                    self.add(f"%{c}{k} = getelementptr inbounds i8, ptr %work, i64 {offset}")
                    offset += _room(size)
                self.add(f"store ptr %a{k + first}, ptr %in{k}")
            self.add(f"store ptr %d{k}, ptr %out{k}")
        for k in range(fixed, len(args) - first):
            self.add(f"store ptr %a{k + first}, ptr %in{k}")
        self.trips = "0" if form.trips is None else str(form.trips)
        if form.counted:
            self.trips = self.let("load i64, ptr %a0")
            for k, size in self.stacks.items():
                self._enlarge(k, self.let(f"mul i64 {self.trips}, {size}"))
        elif self.until is not None:
            self.add("%room = alloca i64", "store i64 0, ptr %room")
            self.add("%go = alloca i8", *_table("truth", 1), "store ptr %go, ptr %truth0")
        self.bases = {}
        for k in range(form.carries, fixed):
            name = f"%a{k + first}"
            self.bases[k] = self.let(f"load ptr, ptr {name}") if form.trips is None else name

    def _enlarge(self, k: int, size: str) -> None:
        """More memory for a result whose size is found out."""
        before = self.let(f"load ptr, ptr %o{k}")
        more = self.let(f"call ptr @realloc(ptr {before}, i64 {self.let(f'add i64 {size}, 8')})")
        none = self.let(f"icmp eq ptr {more}, null")
        n = self.count
        self.add(f"br i1 {none}, label %full{n}, label %took{n}", f"full{n}:", "ret i64 -2")
        self.add(f"took{n}:", f"store ptr {more}, ptr %o{k}")

    def _head(self) -> None:
        """Whether there is another trip."""
        self.add("br label %head", "head:", "%trip = load i64, ptr %t")
        if self.until is None:
            more = self.let(f"icmp slt i64 %trip, {self.trips}")
        else:
            self._status(f"call i64 @{self.until}(ptr %in, ptr %truth, ptr %work)")
            more = self.let(f"icmp ne i8 {self.let('load i8, ptr %go')}, 0")
        self.add(f"br i1 {more}, label %body, label %after", "body:")
        if self.until is None or not self.stacks:
            return
        room = self.let("load i64, ptr %room")
        full = self.let(f"icmp eq i64 %trip, {room}")
        self.add(f"br i1 {full}, label %enlarge, label %fits", "enlarge:")
        twice = self.let(f"mul i64 {room}, 2")
        enough = self.let(f"icmp sgt i64 {twice}, {FIRST}")
        trips = self.let(f"select i1 {enough}, i64 {twice}, i64 {FIRST}")
        for k, size in self.stacks.items():
            self._enlarge(k, self.let(f"mul i64 {trips}, {size}"))
        self.add(f"store i64 {trips}, ptr %room", "br label %fits", "fits:")

    def _before(self) -> None:
        """The addresses of this trip, and the carries that are kept."""
        form = self.form
        at = "%trip"
        if form.backwards:
            last = self.let(f"sub i64 {self.trips}, 1")
            at = self.let(f"sub i64 {last}, %trip")

        def entry(base: str, size: int) -> str:
            """The address of an entry."""
            offset = self.let(f"mul i64 {at}, {size}")
            return self.let(f"getelementptr inbounds i8, ptr {base}, i64 {offset}")

        for k, base in self.bases.items():
            spec = form.body.nodes[form.body.inputs[k]].spec
            self.add(f"store ptr {entry(base, nbytes(spec))}, ptr %in{k}")
        for k, size in self.stacks.items():
            base = f"%o{k}" if not form.unknown(k) else self.let(f"load ptr, ptr %o{k}")
            place = entry(base, size)
            if k < len(form.body.outputs):
                self.add(f"store ptr {place}, ptr %out{k}")
            else:
                carry = k - len(form.body.outputs)
                self.copy(place, self.let(f"load ptr, ptr %in{carry}"), size)

    def _after(self) -> None:
        """The carries of the next trip; after the last one, the results."""
        form = self.form
        for k in range(form.carries):
            size = self.sizes[k]
            if size <= COPIED:
                self.copy(f"%c{k}", f"%d{k}", size)
                continue
            new = self.let(f"load ptr, ptr %out{k}")
            self.add(f"store ptr {new}, ptr %in{k}")
            same = self.let(f"icmp eq ptr {new}, %d{k}")
            other = self.let(f"select i1 {same}, ptr %c{k}, ptr %d{k}")
            self.add(f"store ptr {other}, ptr %out{k}")
        after = self.let("add i64 %trip, 1")
        self.add(f"store i64 {after}, ptr %t", "br label %head", "after:")
        for k in self.step.outs:
            if k < form.carries:
                self.copy(f"%o{k}", self.let(f"load ptr, ptr %in{k}"), self.sizes[k])
            elif k == form.counter:
                self.add(f"store i64 %trip, ptr %o{k}")

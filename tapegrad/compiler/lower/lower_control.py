"""Lower loops and branches to functions over the addresses of operands and results.

The graphs that a loop or a branch owns are functions over two tables of addresses, as a whole
program is.  A trip updates the addresses of what it reads and writes; small carries are copied,
large ones double-buffered.
"""

from __future__ import annotations

from tapegrad.compiler.ir.control_ops import BRANCH, Repeat
from tapegrad.compiler.lower.first_tier import mark
from tapegrad.compiler.schedule.run_time import of_graph
from tapegrad.compiler.schedule.step_ir import COPIED, ControlStep, carry_room, graphs_work, nbytes

FIRST = 64  # trips to allocate for at first, where their number is unknown


def control_text(name: str, step: ControlStep, graphs: list[str]) -> str:
    """The function of a loop or a branch, given those of its graphs."""
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


def _branch(step: ControlStep, graphs: list[str]) -> list[str]:
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

    def __init__(self, step: ControlStep, graphs: list[str]) -> None:
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
        """Call a function, and return its status unless it is 0."""
        result = self.let(call)
        bad = self.let(f"icmp ne i64 {result}, 0")
        k = self.count
        self.add(f"br i1 {bad}, label %bad{k}, label %good{k}", f"bad{k}:", f"ret i64 {result}")
        self.add(f"good{k}:")

    def _begin(self) -> None:
        """Set up tables, memory, and loop-invariant addresses."""
        form, args = self.form, self.step.args
        untaken = set(range(form.carries, len(form.body.outputs))) - self.step.outs.keys()
        assert not untaken, "unused results of a loop have no place in memory"
        fixed = form.carries + form.rows
        self.add(*_table("in", len(args) - form.counted), *_table("out", len(form.body.outputs)))
        self.add("%t = alloca i64", "store i64 0, ptr %t")
        first = int(form.counted)
        offset = graphs_work(self.step.graphs)
        for k in range(form.carries):
            size = self.sizes[k]
            if size <= COPIED:
                self.add(*[f"%{c}{k} = alloca [{max(size, 1)} x i8], align 64" for c in "cd"])
                self.copy(f"%c{k}", f"%a{k + first}", size)
                self.add(f"store ptr %c{k}, ptr %in{k}")
            else:
                for c in "cd":
                    self.add(f"%{c}{k} = getelementptr inbounds i8, ptr %work, i64 {offset}")
                    offset += carry_room(size)
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
        """Grow the memory of a result whose size is known at run time."""
        before = self.let(f"load ptr, ptr %o{k}")
        more = self.let(f"call ptr @realloc(ptr {before}, i64 {self.let(f'add i64 {size}, 8')})")
        none = self.let(f"icmp eq ptr {more}, null")
        n = self.count
        self.add(f"br i1 {none}, label %full{n}, label %took{n}", f"full{n}:", "ret i64 -2")
        self.add(f"took{n}:", f"store ptr {more}, ptr %o{k}")

    def _head(self) -> None:
        """Write the test for another trip."""
        self.add("br label %head", "head:", "%trip = load i64, ptr %t")
        if self.until is None:
            more = self.let(f"icmp slt i64 %trip, {self.trips}")
        else:
            self._status(f"call i64 @{self.until}(ptr %in, ptr %truth, ptr %work)")
            more = self.let(f"icmp ne i8 {self.let('load i8, ptr %go')}, 0")
        self.add(f"br i1 {more}, label %body, label %after", "body:")
        self.add(mark(sum(of_graph(graph, loops=False) for graph in self.step.graphs)))
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
        """Write the addresses of this trip, and save carries."""
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
        """Write the carries of the next trip; after the last one, the results."""
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

"""From a schedule to one module of LLVM text."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from math import prod
from typing import NamedTuple

import numpy as np

from tapegrad.compiler import blocks
from tapegrad.compiler.asking import by_python, or_python
from tapegrad.compiler.elementary import PREFIX, branches, declarations, definitions, standing
from tapegrad.compiler.graph import Graph
from tapegrad.compiler.loops import MEMORY, Nest, written
from tapegrad.compiler.nested import Nested, nested_text
from tapegrad.compiler.place import CONSTANT, INPUT, OUTPUT, Buffer, Place
from tapegrad.compiler.routine import PREFIX as ROUTINES
from tapegrad.compiler.routine import Routine
from tapegrad.compiler.schedule import Schedule
from tapegrad.compiler.shared import DECLARED, Shared, dividing, shared
from tapegrad.compiler.steps import Again, Bounds, Call, Gemm, Native, Small, Step
from tapegrad.compiler.text import literal
from tapegrad.compiler.tiles import quick

ENTRY = "tapegrad_program"
STACK = 1 << 16  # bytes of scratch memory up to which the stack holds it
TEXTUAL = 1024  # elements up to which a constant stands in the module itself
PART = 200  # steps in one function
OUTSIDE = 1 << 41  # the result where an index is out of range
BITS = {"float64": "i64", "float32": "i32", "int64": "i64", "int32": "i32", "bool": "i8"}

INLINED = 60  # operations up to which straight code has the elementary functions inlined
# The function of so many operations is called, not inlined, if it has so many uses: LLVM takes long
# for code that is there many times.  What is shorter it makes one with what is before and after it.
LENGTHY, OFTEN = 16, 16
LOOPING = 64  # steps from which on a loop is worth LLVM's passes
_HEAD = re.compile(r"define internal \w+ @(\w+)\(")

PREFACE = """\
@tapegrad_number = global i64 0
@tapegrad_constants = global ptr null
declare i64 @tapegrad_callback(i64, i64, ptr, ptr)
declare ptr @aligned_alloc(i64, i64)
declare void @free(ptr)
declare ptr @realloc(ptr, i64)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
attributes #0 = { nounwind "prefer-vector-width"="512" }
attributes #1 = { nounwind noinline cold "prefer-vector-width"="512" }
attributes #2 = { nounwind noinline "prefer-vector-width"="512" }
attributes #3 = { nounwind noinline cold optsize "prefer-vector-width"="512" }
!0 = distinct !{!0, !1, !2}
!1 = !{!"llvm.loop.vectorize.enable", i1 false}
!2 = !{!"llvm.loop.unroll.disable"}
"""

_ARITHMETIC = re.compile(r" = (f(?:add|sub|mul|div|neg)) (?:reassoc nsz )?")


def relaxed(text: str) -> str:
    """LLVM text whose arithmetic may be reassociated and contracted; NaN and inf stay."""
    return _ARITHMETIC.sub(r" = \1 reassoc nsz arcp contract ", text)


class Lowered(NamedTuple):
    """A module, and what its calls back into Python and its large constants are."""

    text: str
    level: int  # of LLVM's optimisation
    calls: list[Call | Native]
    shared: list[Shared]
    constants: list[np.ndarray]
    scratch: int

    @property
    def callbacks(self) -> tuple[str, ...]:
        """The operations that Python computes, whatever the values are."""
        return tuple([call.node.name for call in self.calls if isinstance(call, Call)])


class Module:
    """A module in the making."""

    def __init__(self, graph: Graph, fast: bool = False) -> None:
        self.fast = fast  # floats may be added in any order, and contracted
        self.schedule = Schedule(graph)
        self.functions: dict[str, str] = {}
        self.used: set[str] = set()
        self.apart: set[str] = set()  # elementary functions that are called, not inlined
        self.straight = 0  # operations of straight-line code
        self.longest = 0  # the number of steps of a loop
        self.texts: list[str] = []
        self.calls: list[Call | Native] = []
        self.declared: set[str] = set()
        self.shared: list[Shared] = []
        self.products: dict[str, str] = {}
        self.uses: Counter[str] = Counter()  # of the functions of nests and routines
        self.names = itertools.count()

    def lower(self) -> Lowered:
        """All of it."""
        schedule = self.schedule
        running = self.running(schedule)
        self.texts.append(self._entry(running))
        preface = [PREFACE, *sorted(self.declared), *self._constants()]
        texts = [self._called(text) for text in self.texts]
        text = "\n".join([*preface, *texts, definitions(self.used), declarations(self.apart)])
        # Our passes leave LLVM's little to find in long straight code: a tenth of its time. To
        # compile it they would take four times as long.
        level = 0 if self.straight > INLINED and self.longest < LOOPING else 2
        return Lowered(text, level, self.calls, self.shared, schedule.constants, schedule.scratch)

    def running(self, schedule: Schedule) -> list[str]:
        """Lines that run a schedule, up to where `%result` is its status.

        They begin with the block `run`, and have `%in`, `%out` and `%scratch`.
        """
        guards: dict[int, list[tuple[int, Place]]] = {}
        for at, k, place in schedule.guards:
            guards.setdefault(at, []).append((k, place))
        parts: list[str] = []
        first = -1
        count = len(schedule.steps)
        while first < count:
            last = min(first + PART, count)
            part = Part(self, schedule, f"part{next(self.names)}")
            self.texts.append(part.write(range(first, last), guards))
            parts.append(part.name)
            first = last
        return _chain(parts, [buffer.offset for buffer in schedule.grown])

    def graph(self, schedule: Schedule) -> str:
        """The name of the function that runs the graph of a loop or a branch."""
        lines = self.running(schedule)
        self.longest = max(self.longest, LOOPING)  # nobody knows how often it runs
        name = f"graph{next(self.names)}"
        head = f"define internal i64 @{name}(ptr %in, ptr %out, ptr %scratch) #0 {{"
        self.texts.append("\n".join([head, "br label %run", *lines, "ret i64 %result", "}"]))
        return name

    def nest(self, nest: Nest) -> str:
        """The name of the function of a nest; equal nests share one."""
        divided = shared(nest)
        part = divided is not None
        found = quick(nest, part) or written(nest, part)
        name = self.functions.get(found.text)
        if name is None:
            name = self.functions[found.text] = f"nest{len(self.functions)}"
            text = relaxed(found.text) if self.fast else found.text
            text = text.replace("{name}", name if divided is None else f"{name}.part")
            if divided is not None:
                self.texts.append(dividing(name, len(self.shared), divided))
                self.shared.append(divided)
                self.declared.update(DECLARED)
            self.longest = max(self.longest, prod(nest.domain) if nest.domain else 0)
            if not nest.domain:
                self.straight += len(nest.terms)
            long = not nest.domain and len(nest.terms) > INLINED
            apart = {f for f in found.used if f.startswith(PREFIX) and (long or branches(f))}
            for f in apart:
                text = text.replace(f"@{f}(", f"@{standing(f)}(")
            self.texts.append(text)
            on_blocks = {f for f in found.used if f.startswith(blocks.PREFIX)}
            self.declared.update(map(blocks.declaration, on_blocks))
            self.used |= found.used - apart - on_blocks
            self.apart |= apart
        if prod(nest.domain) * len(nest.terms) >= LENGTHY:
            self.uses[name] += 1
        return name

    def routine(self, kind: str, routine: Routine) -> str:
        """The name of the function of a routine."""
        name = self.functions.get(routine.text)
        if name is None:
            name = self.functions[routine.text] = f"{kind}{len(self.functions)}"
            self.texts.append(routine.text.replace("{name}", name))
            self.declared |= routine.declared
            self.used |= routine.functions
        return name

    def _called(self, text: str) -> str:
        """A function as LLVM is to treat it: what is used in many places is not copied to each."""
        found = _HEAD.match(text)
        often = found is not None and self.uses[found[1]] >= OFTEN
        return text.replace(" #0 {", " #2 {", 1) if often else text

    def _constants(self) -> list[str]:
        lines = []
        for k, value in enumerate(self.schedule.constants):
            if value.size <= TEXTUAL and value.dtype.name in MEMORY:
                kind = MEMORY[value.dtype.name]
                items = ", ".join(f"{kind} {literal(x, kind).name}" for x in value.ravel().tolist())
                lines.append(
                    f"@constant{k} = internal constant [{value.size} x {kind}] [{items}], align 64"
                )
        return lines

    def _entry(self, running: list[str]) -> str:
        scratch = self.schedule.scratch
        lines = [f"define i64 @{ENTRY}(ptr %in, ptr %out, ptr %given) #0 {{"]
        if scratch <= STACK:
            lines.append(f"%scratch = alloca [{max(scratch, 1)} x i8], align 64")
            lines.append("br label %run")
        else:
            lines += [
                "%none = icmp eq ptr %given, null",
                "br i1 %none, label %take, label %have",
                "take:",
                f"%taken = call ptr @aligned_alloc(i64 64, i64 {scratch})",
                "%failed = icmp eq ptr %taken, null",
                "br i1 %failed, label %full, label %have",
                "full:",
                "ret i64 -2",
                "have:",
                "%scratch = phi ptr [ %given, %0 ], [ %taken, %take ]",
                "br label %run",
            ]
        lines += running
        if scratch > STACK:
            lines += [
                "br i1 %none, label %give, label %leave",
                "give:",
                "call void @free(ptr %scratch)",
                "br label %leave",
                "leave:",
            ]
        lines += ["ret i64 %result", "}"]
        return "\n".join(lines)


def _chain(parts: list[str], grown: list[int]) -> list[str]:
    """Call parts in order, until one fails; pointers to memory that grows lie at some offsets."""
    lines = ["run:"]
    for k, offset in enumerate(grown):
        lines += [
            f"%grown{k} = getelementptr inbounds i8, ptr %scratch, i64 {offset}",
            f"store ptr null, ptr %grown{k}",
        ]
    for k, part in enumerate(parts):
        lines.append(f"%r{k} = call i64 @{part}(ptr %in, ptr %out, ptr %scratch)")
        if k + 1 < len(parts):
            lines += [
                f"%bad{k} = icmp ne i64 %r{k}, 0",
                f"br i1 %bad{k}, label %end, label %next{k}",
                f"next{k}:",
            ]
        else:
            lines.append("br label %end")
    sources = [f"[ %r{k}, %{'run' if k == 0 else f'next{k - 1}'} ]" for k in range(len(parts))]
    lines += ["end:", f"%result = phi i64 {', '.join(sources)}"]
    for k in range(len(grown)):
        lines += [f"%held{k} = load ptr, ptr %grown{k}", f"call void @free(ptr %held{k})"]
    return lines


class Part:
    """Some steps in a row, as one function."""

    def __init__(self, module: Module, schedule: Schedule, name: str) -> None:
        self.module = module
        self.schedule = schedule
        self.name = name
        self.lines: list[str] = []
        self.known: dict[tuple[int, int], str] = {}
        self.count = 0

    def write(self, steps: range, guards: dict[int, list[tuple[int, Place]]]) -> str:
        """The function."""
        for at in steps:
            if at >= 0:
                self._step(at, self.schedule.steps[at])
            for k, place in guards.get(at, ()):
                self._guard(k, place)
        head = f"define internal i64 @{self.name}(ptr %in, ptr %out, ptr %scratch) #0 {{"
        return "\n".join([head, *self.lines, "ret i64 0", "}"])

    def fresh(self) -> str:
        """A fresh name."""
        self.count += 1
        return f"%p{self.count}"

    def address(self, place: Place) -> str:
        """Where a window begins."""
        buffer = place.buffer
        key = (id(buffer), place.offset)
        found = self.known.get(key)
        if found is None:
            found = self._offset(self._base(buffer), place.offset * buffer.dtype.itemsize)
            self.known[key] = found
        return found

    def _offset(self, base: str, offset: int) -> str:
        if not offset:
            return base
        name = self.fresh()
        self.lines.append(f"{name} = getelementptr inbounds i8, ptr {base}, i64 {offset}")
        return name

    def _base(self, buffer: Buffer) -> str:
        key = (id(buffer), 0)
        if key in self.known:
            return self.known[key]
        if buffer.kind == CONSTANT:
            value = self.schedule.constants[buffer.number]
            if value.size <= TEXTUAL and value.dtype.name in MEMORY:
                return f"@constant{buffer.number}"
            table = self.fresh()
            self.lines.append(f"{table} = load ptr, ptr @tapegrad_constants")
            return self._entry(table, buffer.number)
        if buffer.kind in (INPUT, OUTPUT):
            base = self._entry("%in" if buffer.kind == INPUT else "%out", buffer.number)
        else:
            base = self._offset("%scratch", buffer.offset)
        self.known[key] = base
        return base

    def _entry(self, table: str, number: int) -> str:
        at, found = self.fresh(), self.fresh()
        self.lines.append(f"{at} = getelementptr inbounds ptr, ptr {table}, i64 {number}")
        self.lines.append(f"{found} = load ptr, ptr {at}")
        return found

    def _step(self, at: int, step: Step) -> None:
        if isinstance(step, Call):
            self._call(step)
            return
        if isinstance(step, Gemm):
            self._gemm(step)
            return
        if isinstance(step, Native):
            self._native(step)
            return
        if isinstance(step, Small):
            self._small(step)
            return
        if isinstance(step, Nested):
            self._nested(step)
            return
        nest = self.schedule.nests[at]
        assert nest is not None
        call = self._nest(nest)
        if isinstance(step, Again):
            self._again(step, call, self._nest(step.redo))
            return
        self.lines.append(call)
        if isinstance(step, Bounds):
            self._bounds(step)

    def _nest(self, nest: Nest) -> str:
        places = [*nest.loads, *[s.place for s in nest.stores]]
        args = ", ".join(f"ptr {self.address(place)}" for place in places)
        return f"call void @{self.module.nest(nest)}({args})"

    def _again(self, step: Again, look: str, redo: str) -> None:
        """Run a nest where what another one left is no number."""
        kind = MEMORY[step.result.buffer.dtype.name]
        at, total, bad = self.address(step.result), self.fresh(), self.fresh()
        self.count += 1
        self.lines += [
            look,
            f"{total} = load {kind}, ptr {at}",
            f"{bad} = fcmp uno {kind} {total}, {total}",
            f"br i1 {bad}, label %again{self.count}, label %fine{self.count}",
            f"again{self.count}:",
            redo,
            f"br label %fine{self.count}",
            f"fine{self.count}:",
        ]

    def _bounds(self, step: Bounds) -> None:
        """An index out of range is met by the way without compiling, which says so."""
        low, high = self.fresh(), self.fresh()
        first = self.address(step.result)
        second = self.address(step.result._replace(offset=1))
        under, over, bad = self.fresh(), self.fresh(), self.fresh()
        self.count += 1
        self.lines += [
            f"{low} = load i64, ptr {first}",
            f"{high} = load i64, ptr {second}",
            f"{under} = icmp slt i64 {low}, {step.allowed.start}",
            f"{over} = icmp sge i64 {high}, {step.allowed.stop}",
            f"{bad} = or i1 {under}, {over}",
            f"br i1 {bad}, label %outside{self.count}, label %inside{self.count}",
            f"outside{self.count}:",
            f"ret i64 {OUTSIDE}",
            f"inside{self.count}:",
        ]

    def _guard(self, k: int, place: Place) -> None:
        expected = self.schedule.graph.guards[k].expected
        dtype = place.buffer.dtype
        kind = BITS[dtype.name]
        bits = int(np.array(expected, dtype).view(kind.replace("i", "int")))
        value, bad = self.fresh(), self.fresh()
        self.lines += [
            f"{value} = load {kind}, ptr {self.address(place)}",
            f"{bad} = icmp ne {kind} {value}, {bits}",
            f"br i1 {bad}, label %failed{k}, label %holds{k}",
            f"failed{k}:",
            f"ret i64 {k + 1}",
            f"holds{k}:",
        ]

    def _small(self, step: Small) -> None:
        routine = step.routine
        if step.redo is not None:
            redo = self.module.nest(step.redo)
            routine = routine._replace(text=routine.text.replace("{redo}", redo))
        given = ", ".join(f"ptr {self.address(place)}" for place in step.given)
        name = self.module.routine("small", routine)
        if step.size >= LENGTHY:
            self.module.uses[name] += 1
        self.module.longest = max(self.module.longest, step.size)
        self.lines.append(f"call void @{name}({given})")

    def _native(self, step: Native) -> None:
        """Call the routine; Python where it has no result."""
        module = self.module
        tried = module.routine("native", step.routine)
        places = (*step.given, *step.args, step.out)
        addresses = [self.address(place) for place in places]
        distinct = list(dict.fromkeys(addresses))
        names = [f"%a{distinct.index(a)}" for a in addresses]
        name = module.routine("solved", or_python(tried, names, len(step.given)))
        given = ", ".join(f"ptr {a}" for a in distinct)
        self._checked(f"call i64 @{name}(i64 {len(module.calls)}, {given})")
        module.uses[name] += 1
        module.calls.append(step)

    def _call(self, step: Call) -> None:
        number = len(self.module.calls)
        self.module.calls.append(step)
        name = self.module.routine("python", by_python(len(step.args)))
        places = (*step.args, step.out)
        addresses = ", ".join(f"ptr {self.address(place)}" for place in places)
        self._checked(f"call i64 @{name}(i64 {number}, {addresses})")

    def _checked(self, call: str) -> None:
        """Call what returns a status, and hand on any but 0."""
        result, bad = self.fresh(), self.fresh()
        number = self.count
        self.lines += [
            f"{result} = {call}",
            f"{bad} = icmp ne i64 {result}, 0",
            f"br i1 {bad}, label %raised{number}, label %went{number}",
            f"raised{number}:",
            f"ret i64 {result}",
            f"went{number}:",
        ]

    def _nested(self, step: Nested) -> None:
        """Everything goes by address; the text of the loop or branch is a function of its own."""
        graphs = [self.module.graph(schedule) for schedule in step.graphs]
        name = f"nested{next(self.module.names)}"
        self.module.longest = max(self.module.longest, step.trips or LOOPING)
        self.module.texts.append(nested_text(name, step, graphs))
        addresses = ", ".join(f"ptr {self.address(place)}" for place in step.places())
        self._checked(f"call i64 @{name}({addresses})")

    def _gemm(self, step: Gemm) -> None:
        """Row by row is column by column of the transposes: BLAS computes out' = b' a'."""
        (count, rows, inner), columns = step.a.shape, step.b.shape[2]
        single = step.out.buffer.dtype.itemsize == 4
        turned_a, lead_a = _layout(step.a)
        turned_b, lead_b = _layout(step.b)
        numbers = (columns, rows, inner, lead_b, lead_a, columns)
        steps = tuple([x.strides[0] for x in (step.b, step.a, step.out)])
        key = f"{single} {turned_b} {turned_a} {numbers} {count} {steps if count > 1 else 0}"
        name = self.module.products.get(key)
        if name is None:
            name = self.module.products[key] = f"product{len(self.module.products)}"
            routine = ROUTINES + ("sgemm" if single else "dgemm")
            self.module.declared.add(f"declare void @{routine}({', '.join(['ptr'] * 13)})")
            self.module.texts.append(
                _product(name, single, (turned_b, turned_a), numbers, count, steps)
            )
        a, b, out = (self.address(p) for p in (step.a, step.b, step.out))
        self.lines.append(f"call void @{name}(ptr {b}, ptr {a}, ptr {out})")


def _layout(place: Place) -> tuple[bool, int]:
    """Whether BLAS has to transpose a matrix, and its leading dimension."""
    (_, rows, columns), (_, down, right) = place.shape, place.strides
    if right == 1 and (down >= columns or rows == 1):
        return False, max(down, columns)
    return True, max(right, rows)


def _product(
    name: str, single: bool, turned: tuple[bool, bool], numbers: tuple[int, ...], count: int,
    steps: tuple[int, ...],
) -> str:  # fmt: skip
    kind, routine = ("float", "sgemm") if single else ("double", "dgemm")
    one = literal(1.0, kind).name
    zero = literal(0.0, kind).name
    lines = [f"define internal void @{name}(ptr %a, ptr %b, ptr %c) #0 {{", "start:"]
    for k, flag in enumerate(turned):
        lines += [f"%t{k} = alloca i8", f"store i8 {ord('T' if flag else 'N')}, ptr %t{k}"]
    for k, number in enumerate(numbers):
        lines += [f"%n{k} = alloca i32", f"store i32 {number}, ptr %n{k}"]
    lines += [
        f"%one = alloca {kind}", f"store {kind} {one}, ptr %one",
        f"%zero = alloca {kind}", f"store {kind} {zero}, ptr %zero",
        "br label %loop", "loop:", "%i = phi i64 [ 0, %start ], [ %next, %loop ]",
    ]  # fmt: skip
    for x, step in zip("abc", steps, strict=True):
        lines += [
            f"%{x}o = mul i64 %i, {step}",
            f"%{x}i = getelementptr {kind}, ptr %{x}, i64 %{x}o",
        ]
    lines += [
        f"call void @{ROUTINES}{routine}(ptr %t0, ptr %t1, ptr %n0, ptr %n1, ptr %n2, ptr %one, "
        "ptr %ai, ptr %n3, ptr %bi, ptr %n4, ptr %zero, ptr %ci, ptr %n5)",
        "%next = add i64 %i, 1",
        f"%more = icmp ult i64 %next, {count}",
        "br i1 %more, label %loop, label %done", "done:",
        "ret void", "}",
    ]  # fmt: skip
    return "\n".join(lines)

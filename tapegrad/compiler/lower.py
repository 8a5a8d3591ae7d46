"""From a schedule to one module of LLVM text."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from math import prod
from typing import NamedTuple

import numpy as np

from tapegrad.compiler import again, blocks
from tapegrad.compiler.asking import by_python, or_python
from tapegrad.compiler.elementary import PREFIX, branches, declarations, definitions, standing
from tapegrad.compiler.gemm import Product, product_of, repeated
from tapegrad.compiler.graph import Graph
from tapegrad.compiler.loops import MEMORY, Nest, Written, collapsed, moved, written
from tapegrad.compiler.nested import Nested, nested_text
from tapegrad.compiler.place import CONSTANT, INPUT, OUTPUT, Buffer, Place
from tapegrad.compiler.presumed import Exact
from tapegrad.compiler.ready import ATTRIBUTES, Ready, vectorised
from tapegrad.compiler.routine import Routine
from tapegrad.compiler.scalars import calls
from tapegrad.compiler.schedule import Schedule
from tapegrad.compiler.shared import DECLARED, SHARED, Shared, dividing, shared
from tapegrad.compiler.steps import Again, Bounds, Call, Gemm, Loop, Native, Small, Step
from tapegrad.compiler.text import literal
from tapegrad.compiler.tiles import quick
from tapegrad.compiler.ways import LONG

ENTRY = "tapegrad_program"
STACK = 1 << 16  # bytes of scratch memory up to which the stack holds it
TEXTUAL = 1024  # elements up to which a constant stands in the module itself
PART = 200  # steps in one function
TABLES = "ptr %in, ptr %out, ptr %scratch"  # what functions are given that find everything there
OUTSIDE = 1 << 41  # the result where an index is out of range
BITS = {"float64": "i64", "float32": "i32", "int64": "i64", "int32": "i32", "bool": "i8"}

INLINED = 60  # operations up to which straight code has the elementary functions inlined
# The function of so many operations is called, not inlined, if it has so many uses: LLVM takes long
# for code that is there many times.  What is shorter it makes one with what is before and after it.
LENGTHY, OFTEN = 16, 16
# There are calls if there is one for so many operations.
DENSE = 16
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
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
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
    ready: str  # a module of the nests that need none of LLVM's passes
    level: int  # of LLVM's optimisation
    calls: list[Call | Exact | Native]
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
        self.elementary = 0  # those among them that are calls
        self.once: set[str] = set()  # functions of long straight code
        self.longest = 0  # the number of steps of a loop
        self.rough = False  # whether there is code that LLVM would make better
        self.repeats = False  # whether there is a loop of graphs
        self.texts: list[str] = []
        self.ready = Ready()
        self.looping = False
        self.repeated = 0  # how many loops there are around what is being written
        self.calls: list[Call | Exact | Native] = []
        self.declared: set[str] = set()
        self.shared: list[Shared] = []
        self.products: dict[Product, str] = {}
        self.uses: Counter[str] = Counter()  # of the functions of nests and routines
        self.names = itertools.count()

    def lower(self) -> Lowered:
        """All of it."""
        schedule = self.schedule
        # Among loops what happens once is little; elsewhere it is all there is.
        sizes = [prod(nest.domain) for nest in schedule.nests if nest is not None]
        self.looping = max(sizes, default=0) >= LOOPING
        running = self.running(schedule)
        self.texts.append(self._entry(running))
        preface = [PREFACE, ATTRIBUTES, *sorted(self.declared), *self._constants()]
        level = self._level()
        if level < 2 or self.repeats:
            self.once.clear()
        texts = [self._called(text) for text in self.texts]
        text = "\n".join([*preface, *texts, definitions(self.used), declarations(self.apart)])
        ready = self.ready.module()
        constants, scratch = schedule.constants, schedule.scratch
        return Lowered(text, ready, level, self.calls, self.shared, constants, scratch)

    def _level(self) -> int:
        """How much LLVM is to do.

        Our passes leave LLVM's little to find in long straight code: a tenth of its time. To
        compile it they would take four times as long. Where most of that time is spent in
        elementary functions, it does not matter which values stay in registers either. Beside
        loops each long straight function is left out by itself, unless it may stand in one.
        """
        if self.straight <= INLINED or self.longest >= LOOPING:
            return 2 if self.rough else 1
        return 0 if self.elementary * DENSE > self.straight else 1

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
        self.repeated += 1
        self.rough = True
        lines = self.running(schedule)
        self.repeated -= 1
        self.longest = max(self.longest, LOOPING)  # nobody knows how often it runs
        name = f"graph{next(self.names)}"
        head = f"define internal i64 @{name}({TABLES}) #0 {{"
        self.texts.append("\n".join([head, "br label %run", *lines, "ret i64 %result", "}"]))
        return name

    def nest(self, nest: Nest) -> str:
        """The name of the function of a nest; equal nests share one."""
        divided = shared(nest)
        part = divided is not None
        size = prod(nest.domain)
        # What a loop around it repeats is worth being inlined there, if it is short; and LLVM
        # sees what becomes of memory that is copied or filled as a whole.
        lies = moved(collapsed(nest))
        short = (size <= LOOPING and self.repeated) or (not nest.domain and not self.looping)
        plain = None if short or lies else quick(nest, part)
        found = None if short or lies or plain else vectorised(nest, part)
        if plain is None and found is None:
            plain = written(nest, part)
        key = found.text if found else plain.text if plain else ""
        name = self.functions.get(key)
        if name is None:
            name = self.functions[key] = f"nest{len(self.functions)}"
            inner = f"{name}.part" if part else name
            if divided is not None:
                if not self.shared:
                    self.texts.append(SHARED)
                self.texts.append(dividing(name, len(self.shared), divided))
                self.shared.append(divided)
                self.declared.update(DECLARED)
            self.longest = max(self.longest, size if nest.domain else 0)
            if found is not None:
                text = relaxed(found.text) if self.fast else found.text
                self.texts.append(self.ready.add(inner, found, text))
            if plain is not None:
                self.rough |= not lies
                self._written(nest, inner, plain)
        if size * len(nest.terms) >= LENGTHY:
            self.uses[name] += 1
        return name

    def stands_alone(self, nest: Nest) -> bool:
        """Whether a nest is long straight code, which finds its windows itself.

        It reaches them by their distance from where buffers begin; a hundred addresses would have
        to be handed over on the stack.
        """
        return not nest.domain and len(nest.terms) > (LONG if self.looping else INLINED)

    def alone(self, nest: Nest, windows: list[str]) -> str:
        """The name of the function of such a nest, with the lines that find its windows."""
        found = written(nest)
        head = f"define internal void @{{name}}({TABLES}) #0 {{"
        text = "\n".join([head, *windows, found.text.partition("\n")[2]])
        name = self.functions.get(text)
        if name is None:
            name = self.functions[text] = f"nest{len(self.functions)}"
            self.rough = True
            self._written(nest, name, found._replace(text=text))
        return name

    def redo(self, nest: Nest) -> str:
        """The name of the function of a nest that hardly ever runs."""
        found = again.redone(nest)
        if found is None:
            return self.nest(nest)
        text, declaration = found
        name = self.functions.get(text)
        if name is None:
            name = self.functions[text] = f"redo{len(self.functions)}"
            self.texts.append(text.replace("{name}", name))
            self.declared.add(declaration)
        return name

    def _written(self, nest: Nest, name: str, found: Written) -> None:
        """A nest that LLVM optimises."""
        text = relaxed(found.text) if self.fast else found.text
        text = text.replace("{name}", name)
        if not nest.domain:
            self.straight += len(nest.terms)
            self.elementary += sum(calls(term.name) for term in nest.terms)
        long = not nest.domain and len(nest.terms) > INLINED
        if long:
            self.once.add(name)
        apart = {f for f in found.used if f.startswith(PREFIX) and (long or branches(f))}
        for f in apart:
            text = text.replace(f"@{f}(", f"@{standing(f)}(")
        self.texts.append(text)
        on_blocks = {f for f in found.used if f.startswith(blocks.PREFIX)}
        self.declared.update(map(blocks.declaration, on_blocks))
        self.used |= found.used - apart - on_blocks
        self.apart |= apart

    def routine(self, kind: str, routine: Routine) -> str:
        """The name of the function of a routine."""
        name = self.functions.get(routine.text)
        if name is None:
            name = self.functions[routine.text] = f"{kind}{len(self.functions)}"
            self.rough = True
            self.texts.append(routine.text.replace("{name}", name))
            self.straight += routine.inline
            if routine.inline > INLINED and "label %head" not in routine.text:
                self.once.add(name)
            self.declared |= routine.declared
            self.used |= routine.functions
        return name

    def _called(self, text: str) -> str:
        """A function as LLVM is to treat it: what is used in many places is not copied to each."""
        found = _HEAD.match(text)
        if found is None:
            return text
        if found[1] in self.once:
            return text.replace(" #0 {", " #3 {", 1)
        return text.replace(" #0 {", " #2 {", 1) if self.uses[found[1]] >= OFTEN else text

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
        lines.append(f"%r{k} = call i64 @{part}({TABLES})")
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
        head = f"define internal i64 @{self.name}({TABLES}) #0 {{"
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
        if isinstance(step, Again):
            self._again(step, nest)
            return
        if self.module.stands_alone(nest):
            name = self.module.alone(nest, self._windows(nest))
            self.lines.append(f"call void @{name}({TABLES})")
        else:
            self.lines.append(self._nest(nest, self.module.nest(nest)))
        if isinstance(step, Bounds):
            self._bounds(step)
        if isinstance(step, Loop) and step.exact is not None:
            self._exact(step.exact, nest.stores[-1].place)

    def _nest(self, nest: Nest, name: str) -> str:
        places = [*nest.loads, *[s.place for s in nest.stores]]
        args = ", ".join(f"ptr {self.address(place)}" for place in places)
        return f"call void @{name}({args})"

    def _windows(self, nest: Nest) -> list[str]:
        """Lines that find the windows of a nest in a function of its own."""
        inner = Part(self.module, self.schedule, "")
        names = [f"%l{k}" for k in range(len(nest.loads))]
        names += [f"%s{k}" for k in range(len(nest.stores))]
        places = [*nest.loads, *[s.place for s in nest.stores]]
        for name, place in zip(names, places, strict=True):
            base, offset = inner._base(place.buffer), place.offset * place.buffer.dtype.itemsize
            inner.lines.append(f"{name} = getelementptr inbounds i8, ptr {base}, i64 {offset}")
        return inner.lines

    def _again(self, step: Again, look: Nest) -> None:
        """Run a nest where what another one adds up is no number."""
        kind = MEMORY[step.result.buffer.dtype.name]
        added = None if shared(look) else again.total(look.loads[0])
        if added is not None:
            call, declaration = added
            self.module.declared.add(declaration)
            line = call.format(self.address(look.loads[0]))
        else:
            self.lines.append(self._nest(look, self.module.nest(look)))
            line = f"load {kind}, ptr {self.address(step.result)}"
        redo = self._nest(step.redo, self.module.redo(step.redo))
        total, bad = self.fresh(), self.fresh()
        self.count += 1
        self.lines += [
            f"{total} = {line}",
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
            longest = self.module.longest
            redo = self.module.redo(step.redo)
            self.module.longest = longest  # it hardly ever runs
            routine = routine._replace(text=routine.text.replace("{redo}", redo))
        given = ", ".join(f"ptr {self.address(place)}" for place in step.given)
        name = self.module.routine("small", routine)
        if step.size >= LENGTHY:
            self.module.uses[name] += 1
        self.module.longest = max(self.module.longest, prod(step.given[0].shape[:-2]))
        self.lines.append(f"call void @{name}({given})")

    def _native(self, step: Native) -> None:
        """Call the routine; Python where it has no result."""
        module = self.module
        module.longest = max(module.longest, prod(step.given[0].shape[:-2]))
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

    def _exact(self, exact: Exact, flag: Place) -> None:
        """Where a flag is set, do a nest again."""
        number = len(self.module.calls)
        self.module.calls.append(exact)
        name = self.module.routine("python", by_python(2))
        value, bad = self.fresh(), self.fresh()
        self.lines += [
            f"{value} = load i8, ptr {self.address(flag)}",
            f"{bad} = icmp ne i8 {value}, 0",
            f"br i1 {bad}, label %exact{number}, label %fine{number}",
            f"exact{number}:",
        ]
        self._checked(f"call i64 @{name}(i64 {number}, {TABLES})")
        self.lines += [f"br label %fine{number}", f"fine{number}:"]

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
        self.module.repeats |= step.trips != 1
        self.module.longest = max(self.module.longest, step.trips or LOOPING)
        self.module.texts.append(nested_text(name, step, graphs))
        addresses = ", ".join(f"ptr {self.address(place)}" for place in step.places())
        self._checked(f"call i64 @{name}({addresses})")

    def _gemm(self, step: Gemm) -> None:
        module, product = self.module, product_of(step)
        module.declared.update(product.declared)
        addresses = {"a": self.address(step.a), "b": self.address(step.b)}
        addresses["out"] = self.address(step.out)
        if product.trips == 1:
            self.lines.append(product.call.format(**addresses))
            return
        name = module.products.get(product)
        if name is None:
            name = module.products[product] = f"product{len(module.products)}"
            module.texts.append(repeated(name, product))
        given = ", ".join([f"ptr {address}" for address in addresses.values()])
        self.lines.append(f"call void @{name}({given})")

"""Lower a schedule to one module of LLVM text."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from math import prod
from typing import NamedTuple

import numpy as np

from tapegrad.compiler.codegen import gemm_fallback, math_runtime
from tapegrad.compiler.codegen.loop_order import LONG
from tapegrad.compiler.codegen.loop_tiling import quick
from tapegrad.compiler.codegen.scalar_nest import Written, moved, written
from tapegrad.compiler.codegen.threading import DECLARED, SHARED, Shared, dividing, shared
from tapegrad.compiler.codegen.vector_module import ATTRIBUTES, VectorModule, vectorised
from tapegrad.compiler.ir.buffers import Place
from tapegrad.compiler.ir.graph import Graph
from tapegrad.compiler.ir.loop_nest import MEMORY, Nest, collapsed
from tapegrad.compiler.llvm.elementary import PREFIX, branches, declarations, definitions, standing
from tapegrad.compiler.llvm.function_builder import Routine
from tapegrad.compiler.llvm.scalar_ops import calls
from tapegrad.compiler.llvm.ssa import literal
from tapegrad.compiler.lower.emit_function import LENGTHY, LOOPING, TABLES, TEXTUAL, FunctionEmitter
from tapegrad.compiler.lower.gemm_calls import Product
from tapegrad.compiler.schedule.fusion import Schedule
from tapegrad.compiler.schedule.speculation import ExactNest
from tapegrad.compiler.schedule.step_ir import Call, RoutineCall

ENTRY = "tapegrad_program"
STACK = 1 << 16  # bytes of scratch memory up to which the stack holds it
PART = 200  # steps in one function

INLINED = 60  # operations up to which straight code has the elementary functions inlined
# The function of `LENGTHY` operations is called, not inlined, if it has so many uses: LLVM takes
# long for code that is there many times.  What is shorter it makes one with what is around it.
OFTEN = 16
# There are calls if there is one for so many operations.
DENSE = 16
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
    calls: list[Call | ExactNest | RoutineCall]
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
        self.ready = VectorModule()
        self.looping = False
        self.repeated = 0  # how many loops there are around what is being written
        self.calls: list[Call | ExactNest | RoutineCall] = []
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
            part = FunctionEmitter(self, schedule, f"part{next(self.names)}")
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
        found = gemm_fallback.redone(nest)
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
        on_blocks = {f for f in found.used if f.startswith(math_runtime.PREFIX)}
        self.declared.update(map(math_runtime.declaration, on_blocks))
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

"""Lower a schedule to one module of LLVM text."""

from __future__ import annotations

import sys
from math import prod
from typing import NamedTuple

import numpy as np

from tapegrad.compiler.codegen.threading import Shared
from tapegrad.compiler.codegen.vector_lines import LOOP_HINTS
from tapegrad.compiler.codegen.vector_module import ATTRIBUTES
from tapegrad.compiler.ir.buffers import Place
from tapegrad.compiler.ir.graph import Graph
from tapegrad.compiler.ir.loop_nest import MEMORY
from tapegrad.compiler.llvm.elementary import declarations, definitions
from tapegrad.compiler.llvm.ssa import literal
from tapegrad.compiler.lower.emit_function import FunctionEmitter
from tapegrad.compiler.lower.first_tier import (
    ENTRY,
    LONG_TO_COMPILE,
    OF_OPERATION,
    Counts,
    compile_time,
    counted,
    counts,
)
from tapegrad.compiler.lower.module_functions import LOOPING, TABLES, Functions
from tapegrad.compiler.lower.vector_code import REGISTER_BYTES
from tapegrad.compiler.schedule.fusion import Schedule
from tapegrad.compiler.schedule.run_time import of_graph
from tapegrad.compiler.schedule.speculative_products import ExactNest
from tapegrad.compiler.schedule.step_ir import Call, RoutineCall, ScheduleState

LONG = 20  # operations of nests from which on they are interpreted first
STACK = 1 << 16  # bytes of scratch memory up to which the stack holds it
PART = 200  # steps in one function


# Memory that begins a cache line has functions of its own on Windows, which take the size first.
WINDOWS = sys.platform == "win32"
TAKE_ALIGNED, GIVE_ALIGNED = (
    ("_aligned_malloc", "_aligned_free") if WINDOWS else ("aligned_alloc", "free")
)

PREFACE = f"""\
@tapegrad_number = global i64 0
@tapegrad_constants = global ptr null
declare i64 @tapegrad_callback(i64, i64, ptr, ptr)
declare ptr @{TAKE_ALIGNED}(i64, i64)
{"declare void @_aligned_free(ptr)" if WINDOWS else ""}
declare void @free(ptr)
declare ptr @realloc(ptr, i64)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
{LOOP_HINTS}"""


class Lowered(NamedTuple):
    """A module, its callbacks into Python and its large constants.

    A program that takes long to compile has `counts`: it may begin in its first tier.
    """

    text: str
    ready: str  # a module of the nests that need none of LLVM's passes
    level: int  # of LLVM's optimisation
    calls: list[Call | ExactNest | RoutineCall]
    shared: list[Shared]
    constants: list[np.ndarray]
    ahead: int  # so many of them, of the interpreter, stand in front of number 0
    scratch: int
    interpreted: bool  # whether any of its nests are
    counts: Counts | None

    @property
    def callbacks(self) -> tuple[str, ...]:
        """The operations that Python computes, whatever the values are."""
        return tuple([call.node.name for call in self.calls if isinstance(call, Call)])

    def in_first_tier(self) -> Lowered:
        """The same program as its first tier."""
        return self._replace(text=counted(self.text), level=0)


class Module(Functions):
    """Builds a module."""

    def __init__(self, graph: Graph, fast: bool = False, tiered: bool = False) -> None:
        super().__init__(fast)
        self.schedule = Schedule(graph)
        self.tiered = tiered
        self.interpreting = tiered and self._length() >= LONG

    def lower(self) -> Lowered:
        """All of it."""
        schedule = self.schedule
        # Beside loops, straight-line code matters little; without any, it is everything.
        sizes = [prod(nest.domain) for nest in schedule.nests if nest is not None]
        self.looping = max(sizes, default=0) >= LOOPING
        self.registers_at = (schedule.scratch + 63) // 64 * 64
        running = self.running(schedule)
        if self.interpreted_code:
            schedule.scratch = self.registers_at + self.registers * REGISTER_BYTES
        self.texts.append(self._entry(running))
        preface = [PREFACE, ATTRIBUTES, *sorted(self.declared), *self._constants()]
        level = self.level()
        if level < 2 or self.repeats:
            self.once.clear()
        texts = [self.treated(text) for text in self.texts]
        text = "\n".join([*preface, *texts, definitions(self.used), declarations(self.outlined)])
        ready = self.ready.module()
        constants = [*reversed(self.interpreted_code), *schedule.constants]
        found = Lowered(
            text, ready, level, self.calls, self.shared, constants, len(self.interpreted_code),
            schedule.scratch, bool(self.interpreted_code), None,
        )  # fmt: skip
        return found._replace(counts=self._counts(found)) if self.tiered else found

    def _counts(self, found: Lowered) -> Counts | None:
        """What a first tier counts, if there should be one."""
        compiling = compile_time(found.text, found.level) + OF_OPERATION * self.interpreted
        whole = of_graph(self.schedule)
        short = compiling < LONG_TO_COMPILE or whole > compiling or found.callbacks
        return None if short and not found.interpreted else counts(compiling, self.time)

    def _length(self) -> int:
        """The number of operations in nests that may be interpreted."""
        nests = self.schedule.nests
        return sum(len(n.terms) for n in nests if n is not None and prod(n.domain) > 1)

    def running(self, schedule: ScheduleState) -> list[str]:
        """The code of a schedule; it leaves its status in `%result`.

        It begins with the block `run`, and uses `%in`, `%out` and `%scratch`.
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

    def graph(self, schedule: ScheduleState) -> str:
        """The name of the function that runs the graph of a loop or a branch."""
        self.repeated += 1
        self.rough = True
        lines = self.running(schedule)
        self.repeated -= 1
        self.longest = max(self.longest, LOOPING)  # its trip count is unknown
        name = f"graph{next(self.names)}"
        head = f"define internal i64 @{name}({TABLES}) #0 {{"
        self.texts.append("\n".join([head, "br label %run", *lines, "ret i64 %result", "}"]))
        return name

    def _constants(self) -> list[str]:
        lines = []
        for k in sorted(self.embedded):
            value = self.schedule.constants[k]
            kind = MEMORY[value.dtype.name]
            items = ", ".join(f"{kind} {literal(x, kind).name}" for x in value.ravel().tolist())
            lines.append(
                f"@constant{k} = internal constant [{value.size} x {kind}] [{items}], align 64"
            )
        return lines

    def _entry(self, running: list[str]) -> str:
        scratch = self.schedule.scratch
        lines = [f"define i64 @{ENTRY}(ptr %in, ptr %out, ptr %given) #0 {{"]
        size, room = f"{scratch}", max(scratch, 1)
        if self.interpreted_code:
            # Programs that are interpreted from end to end differ in their constants alone: the
            # machine code of one is that of all.
            self.declared.add("@tapegrad_scratch = global i64 0")
            size, room = "%size", STACK
        taking = f"i64 {size}, i64 64" if WINDOWS else f"i64 64, i64 {size}"
        if scratch <= STACK:
            lines.append(f"%scratch = alloca [{room} x i8], align 64")
            lines.append("br label %run")
        else:
            lines += [
                "%none = icmp eq ptr %given, null",
                "br i1 %none, label %take, label %have",
                "take:",
                *(["%size = load i64, ptr @tapegrad_scratch"] if self.interpreted_code else ()),
                f"%taken = call ptr @{TAKE_ALIGNED}({taking})",
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
                f"call void @{GIVE_ALIGNED}(ptr %scratch)",
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

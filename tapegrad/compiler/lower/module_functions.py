"""The functions of a module in the making: nests and routines, each written once."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from math import prod

from tapegrad.compiler.codegen import gemm_fallback, math_runtime
from tapegrad.compiler.codegen.loop_order import LONG
from tapegrad.compiler.codegen.loop_tiling import quick
from tapegrad.compiler.codegen.scalar_nest import Written, moved, written
from tapegrad.compiler.codegen.threading import DECLARED, SHARED, Shared, dividing, shared
from tapegrad.compiler.codegen.vector_module import VectorModule, vectorised
from tapegrad.compiler.ir.loop_nest import Nest, collapsed
from tapegrad.compiler.llvm.elementary import PREFIX, branches, standing
from tapegrad.compiler.llvm.function_builder import Routine
from tapegrad.compiler.llvm.scalar_ops import calls
from tapegrad.compiler.lower.gemm_calls import Product
from tapegrad.compiler.schedule.speculation import ExactNest
from tapegrad.compiler.schedule.step_ir import Call, RoutineCall, ScheduleState

TABLES = "ptr %in, ptr %out, ptr %scratch"  # what functions are given that find everything there
LENGTHY = 16  # operations from which on a function is called, not inlined, if it has many uses
LOOPING = 64  # steps from which on a loop is worth LLVM's passes
INLINED = 60  # operations up to which straight code has the elementary functions inlined
# The function of `LENGTHY` operations is called, not inlined, if it has so many uses: LLVM takes
# long for code that is there many times.  What is shorter it makes one with what is around it.
OFTEN = 16
# There are calls if there is one for so many operations.
DENSE = 16
_HEAD = re.compile(r"define internal \w+ @(\w+)\(")
_ARITHMETIC = re.compile(r" = (f(?:add|sub|mul|div|neg)) (?:reassoc nsz )?")


def relaxed(text: str) -> str:
    """LLVM text whose arithmetic may be reassociated and contracted; NaN and inf stay."""
    return _ARITHMETIC.sub(r" = \1 reassoc nsz arcp contract ", text)


class Functions:
    """The functions of nests and routines, and what is known of them all."""

    def __init__(self, fast: bool) -> None:
        self.fast = fast  # floats may be added in any order, and contracted
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

    def level(self) -> int:
        """How much LLVM is to do.

        Our passes leave LLVM's little to find in long straight code: a tenth of its time. To
        compile it they would take four times as long. Where most of that time is spent in
        elementary functions, it does not matter which values stay in registers either. Beside
        loops each long straight function is left out by itself, unless it may stand in one.
        """
        if self.straight <= INLINED or self.longest >= LOOPING:
            return 2 if self.rough else 1
        return 0 if self.elementary * DENSE > self.straight else 1

    def graph(self, schedule: ScheduleState) -> str:
        """The name of the function that runs the graph of a loop or a branch."""
        raise NotImplementedError

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

    def treated(self, text: str) -> str:
        """A function as LLVM is to treat it: what is used in many places is not copied to each."""
        found = _HEAD.match(text)
        if found is None:
            return text
        if found[1] in self.once:
            return text.replace(" #0 {", " #3 {", 1)
        return text.replace(" #0 {", " #2 {", 1) if self.uses[found[1]] >= OFTEN else text

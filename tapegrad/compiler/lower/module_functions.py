"""Write the functions of a module: nests and routines, each once."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from math import prod

import numpy as np

from tapegrad.compiler.codegen import gemm_fallback, math_runtime
from tapegrad.compiler.codegen.loop_order import TERMS_MOST
from tapegrad.compiler.codegen.loop_tiling import quick
from tapegrad.compiler.codegen.nest_function import Written, memory_intrinsic, vectorised, written
from tapegrad.compiler.codegen.threading import DECLARED, SHARED, Shared, dividing, shared
from tapegrad.compiler.codegen.vector_module import VectorModule
from tapegrad.compiler.ir.loop_nest import Nest, collapsed
from tapegrad.compiler.llvm.elementary import PREFIX, branches, outlined_name
from tapegrad.compiler.llvm.function_builder import Routine
from tapegrad.compiler.llvm.scalar_ops import calls
from tapegrad.compiler.lower.gemm_calls import Product
from tapegrad.compiler.schedule.speculative_products import ExactNest
from tapegrad.compiler.schedule.step_ir import Call, RoutineCall, ScheduleState

TABLES = "ptr %in, ptr %out, ptr %scratch"  # the parameters of functions that compute addresses
LENGTHY = 16  # operations from which on a function with many uses is not inlined
LOOPING = 64  # steps from which on a loop is worth optimising
INLINED = 60  # operations up to which straight-line code gets elementary functions inlined
# Uses from which on a function of `LENGTHY` operations is not inlined: LLVM takes long for repeated
# code.  Shorter ones it optimises together with the code around them.
OFTEN = 16
# Calls are used if there is one per so many operations.
DENSE = 16
_HEAD = re.compile(r"define internal \w+ @(\w+)\(")
_ARITHMETIC = re.compile(r" = (f(?:add|sub|mul|div|neg)) (?:reassoc nsz )?")


def relaxed(text: str) -> str:
    """LLVM text whose arithmetic may be reassociated and contracted; NaN and inf stay."""
    return _ARITHMETIC.sub(r" = \1 reassoc nsz arcp contract ", text)


class Functions:
    """The functions of nests and routines, and statistics of them."""

    def __init__(self, fast: bool) -> None:
        self.fast = fast  # floats may be reassociated and contracted
        self.functions: dict[str, str] = {}
        self.used: set[str] = set()
        self.outlined: set[str] = set()  # elementary functions that are called, not inlined
        self.straight = 0  # operations in straight-line code
        self.elementary = 0  # those among them that are calls
        self.once: set[str] = set()  # functions of long straight-line code
        self.longest = 0  # most steps of a loop
        self.rough = False  # whether there is code worth optimising
        self.repeats = False  # whether there is a loop of graphs
        self.texts: list[str] = []
        self.ready = VectorModule()
        self.looping = False
        self.repeated = 0  # the depth of loops around the code being written
        self.calls: list[Call | ExactNest | RoutineCall] = []
        self.declared: set[str] = set()
        self.embedded: set[int] = set()  # the constants that stand in the module
        self.shared: list[Shared] = []
        self.products: dict[Product, str] = {}
        self.uses: Counter[str] = Counter()  # of the functions of nests and routines
        self.names = itertools.count()
        self.interpreting = False  # whether nests are interpreted where that is possible
        self.registers_at = 0  # in scratch memory: where the interpreter's registers begin,
        self.registers = 0  # and how many there are
        self.interpreted_code: list[np.ndarray] = []  # for the interpreter, in front of constants
        self.interpreted = 0  # operations of interpreted nests
        self.time = 0.0  # the nanoseconds that a first tier takes but for loops, roughly

    def level(self) -> int:
        """LLVM's optimisation level.

        After our passes LLVM's gain a tenth in long straight-line code, and quadruple its compile
        time. Where elementary functions dominate, register allocation does not matter either.
        Beside loops each long straight-line function opts out by itself, unless it may be in one.
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
        # Short nests are inlined into loops that repeat them; and LLVM
        # optimises memcpy and memset itself.
        lies = memory_intrinsic(collapsed(nest))
        short = (size <= LOOPING and self.repeated) or (not nest.domain and not self.looping)
        found = None if short or lies else quick(nest, part) or vectorised(nest, part)
        found = found or written(nest, part)
        key = found.text
        if divided is not None:  # the code of its parts does not say how long the outer loop is
            key += f" of {divided.extent}"
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
            if found.ready:
                text = relaxed(found.text) if self.fast else found.text
                self.texts.append(self.ready.add(inner, found, text))
            else:
                self.rough |= not lies
                self._written(nest, inner, found)
        if size * len(nest.terms) >= LENGTHY:
            self.uses[name] += 1
        return name

    def stands_alone(self, nest: Nest) -> bool:
        """Whether a nest is long straight-line code, which computes addresses itself.

        It uses offsets from the buffers; a hundred addresses would have to be passed on the
        stack.
        """
        return not nest.domain and len(nest.terms) > (TERMS_MOST if self.looping else INLINED)

    def alone(self, nest: Nest, windows: list[str]) -> str:
        """The name of the function of such a nest, given the code of its addresses."""
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
        """The name of the function of a nest that rarely runs."""
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
        used = found.used
        outlined = {f for f in used if f.startswith(PREFIX) and (long or branches(f))}
        for f in outlined:
            text = text.replace(f"@{f}(", f"@{outlined_name(f)}(")
        self.texts.append(text)
        on_blocks = {f for f in used if f.startswith(math_runtime.PREFIX)}
        self.declared.update(map(math_runtime.declaration, on_blocks))
        self.used |= used - outlined - on_blocks
        self.outlined |= outlined

    def routine(self, kind: str, routine: Routine) -> str:
        """The name of the function of a routine."""
        name = self.functions.get(routine.text)
        if name is None:
            name = self.functions[routine.text] = f"{kind}{len(self.functions)}"
            self.rough = True
            self.texts.append(routine.text.replace("{name}", name))
            self.straight += routine.inline
            self.longest = max(self.longest, routine.longest)
            if routine.inline > INLINED and "label %head" not in routine.text:
                self.once.add(name)
            self.declared |= routine.declared
            self.used |= routine.functions
        return name

    def treated(self, text: str) -> str:
        """Set a function's attributes: one with many uses is not inlined."""
        found = _HEAD.match(text)
        if found is None:
            return text
        if found[1] in self.once:
            return text.replace(" #0 {", " #3 {", 1)
        return text.replace(" #0 {", " #2 {", 1) if self.uses[found[1]] >= OFTEN else text

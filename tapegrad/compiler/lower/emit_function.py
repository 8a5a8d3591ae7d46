"""Emit consecutive steps of a program as one function."""

from __future__ import annotations

from math import prod

import numpy as np

from tapegrad.compiler.codegen import gemm_fallback, vector_interpreter
from tapegrad.compiler.codegen.callbacks import by_python, or_python
from tapegrad.compiler.codegen.threading import shared
from tapegrad.compiler.ir.buffers import CONSTANT, INPUT, OUTPUT, Buffer, Place
from tapegrad.compiler.ir.loop_nest import MEMORY, Nest
from tapegrad.compiler.lower.gemm_calls import product_of, repeated
from tapegrad.compiler.lower.lower_control import control_text
from tapegrad.compiler.lower.module_functions import LENGTHY, LOOPING, TABLES, Functions
from tapegrad.compiler.lower.vector_code import VectorCode
from tapegrad.compiler.schedule.run_time import nanoseconds
from tapegrad.compiler.schedule.speculative_products import ExactNest
from tapegrad.compiler.schedule.step_ir import (
    BoundsCheck,
    Call,
    ControlStep,
    Copy,
    FixedNest,
    Gemm,
    GemmCheck,
    Loop,
    RoutineCall,
    ScheduleState,
    SmallMatmul,
    Step,
)

TEXTUAL = 1024  # elements up to which a constant is embedded in the module
OUTSIDE = 1 << 41  # the status for an index out of range
BITS = {"float64": "i64", "float32": "i32", "int64": "i64", "int32": "i32", "bool": "i8"}


class FunctionEmitter:
    """Emits consecutive steps as one function."""

    def __init__(self, module: Functions, schedule: ScheduleState, name: str) -> None:
        self.module = module
        self.schedule = schedule
        self.name = name
        self.lines: list[str] = []
        self.known: dict[tuple[int, int], str] = {}
        self.count = 0
        self.vectors: VectorCode | None = None  # nests that wait to be interpreted together

    def write(self, steps: range, guards: dict[int, list[tuple[int, Place]]]) -> str:
        """The function."""
        for at in steps:
            if at >= 0:
                self._step(at, self.schedule.steps[at])
            for k, place in guards.get(at, ()):
                self._interpret()
                self._guard(k, place)
        self._interpret()
        head = f"define internal i64 @{self.name}({TABLES}) #0 {{"
        return "\n".join([head, *self.lines, "ret i64 0", "}"])

    def fresh(self) -> str:
        """A fresh name."""
        self.count += 1
        return f"%p{self.count}"

    def address(self, place: Place) -> str:
        """The address of a window."""
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
                self.module.embedded.add(buffer.number)
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
        nest = self.schedule.nests[at]
        if self.module.interpreting and nest is not None and self._encoded(step, nest):
            return
        self._interpret()
        if not self.module.repeated:
            self.module.time += nanoseconds(step, nest, loops=False)
        if isinstance(step, Call):
            self._call(step)
            return
        if isinstance(step, Gemm):
            self._gemm(step)
            return
        if isinstance(step, RoutineCall):
            self._native(step)
            return
        if isinstance(step, SmallMatmul):
            self._small(step)
            return
        if isinstance(step, ControlStep):
            self._nested(step)
            return
        assert nest is not None
        if isinstance(step, GemmCheck):
            self._again(step, nest)
            return
        if self.module.stands_alone(nest):
            name = self.module.alone(nest, self._windows(nest))
            self.lines.append(f"call void @{name}({TABLES})")
        else:
            self.lines.append(self._nest(nest, self.module.nest(nest)))
        if isinstance(step, BoundsCheck):
            self._bounds(step)
        if isinstance(step, Loop) and step.exact is not None:
            self._exact(step.exact, nest.stores[-1].place)

    def _encoded(self, step: Step, nest: Nest) -> bool:
        """Whether a nest was put among those that are interpreted."""
        if self.module.repeated or not isinstance(step, Loop | Copy | FixedNest):
            return False
        if isinstance(step, Loop) and step.exact is not None:
            return False
        if self.vectors is None:
            self.vectors = VectorCode(self.module.registers_at)
        return self.vectors.add(nest)

    def _interpret(self) -> None:
        """Call the interpreter for the nests that wait."""
        waiting, self.vectors = self.vectors, None
        if waiting is None or not waiting.count:
            return
        module = self.module
        module.interpreted_code.append(waiting.table())
        module.registers = max(module.registers, waiting.registers)
        module.interpreted += waiting.terms
        module.time += waiting.time
        module.declared.add(vector_interpreter.DECLARATION)
        table = self.fresh()
        self.lines.append(f"{table} = load ptr, ptr @tapegrad_constants")
        words = self._entry(table, -len(module.interpreted_code))
        self.lines.append(
            f"call void @{vector_interpreter.SYMBOL}(ptr {words}, ptr %in, ptr %out, "
            f"ptr %scratch, ptr {table})"
        )

    def _nest(self, nest: Nest, name: str) -> str:
        places = [*nest.loads, *[s.place for s in nest.stores]]
        args = ", ".join(f"ptr {self.address(place)}" for place in places)
        return f"call void @{name}({args})"

    def _windows(self, nest: Nest) -> list[str]:
        """The code that computes the addresses of a nest's windows, in a function of its own."""
        inner = FunctionEmitter(self.module, self.schedule, "")
        names = [f"%l{k}" for k in range(len(nest.loads))]
        names += [f"%s{k}" for k in range(len(nest.stores))]
        places = [*nest.loads, *[s.place for s in nest.stores]]
        for name, place in zip(names, places, strict=True):
            base, offset = inner._base(place.buffer), place.offset * place.buffer.dtype.itemsize
            inner.lines.append(f"{name} = getelementptr inbounds i8, ptr {base}, i64 {offset}")
        return inner.lines

    def _again(self, step: GemmCheck, look: Nest) -> None:
        """Run a nest where the sum that another one computes is NaN."""
        kind = MEMORY[step.result.buffer.dtype.name]
        added = None if shared(look) else gemm_fallback.total(look.loads[0])
        result = self.address(step.result)
        if added is not None:
            call, declaration = added
            self.module.declared.add(declaration)
            self.lines.append(call.format(result, self.address(look.loads[0])))
        else:
            self.lines.append(self._nest(look, self.module.nest(look)))
        redo = self._nest(step.redo, self.module.redo(step.redo))
        total, bad = self.fresh(), self.fresh()
        self.count += 1
        self.lines += [
            f"{total} = load {kind}, ptr {result}",
            f"{bad} = fcmp uno {kind} {total}, {total}",
            f"br i1 {bad}, label %again{self.count}, label %fine{self.count}",
            f"again{self.count}:",
            redo,
            f"br label %fine{self.count}",
            f"fine{self.count}:",
        ]

    def _bounds(self, step: BoundsCheck) -> None:
        """Check the bounds of an index; where it fails, the eager path raises."""
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

    def _small(self, step: SmallMatmul) -> None:
        routine = step.routine
        if step.redo is not None:
            longest = self.module.longest
            redo = self.module.redo(step.redo)
            self.module.longest = longest  # it rarely runs
            routine = routine._replace(text=routine.text.replace("{redo}", redo))
        given = ", ".join(f"ptr {self.address(place)}" for place in step.given)
        name = self.module.routine("small", routine)
        if step.size >= LENGTHY:
            self.module.uses[name] += 1
        self.module.longest = max(self.module.longest, prod(step.given[0].shape[:-2]))
        self.lines.append(f"call void @{name}({given})")

    def _native(self, step: RoutineCall) -> None:
        """Call the routine; Python where it fails."""
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

    def _exact(self, exact: ExactNest, flag: Place) -> None:
        """Where a flag is set, rerun a nest exactly."""
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
        """Call a function, and return its status unless it is 0."""
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

    def _nested(self, step: ControlStep) -> None:
        """Call the function of a loop or branch, with everything passed by address."""
        graphs = [self.module.graph(schedule) for schedule in step.graphs]
        name = f"nested{next(self.module.names)}"
        self.module.repeats |= step.trips != 1
        self.module.longest = max(self.module.longest, step.trips or LOOPING)
        self.module.texts.append(control_text(name, step, graphs))
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

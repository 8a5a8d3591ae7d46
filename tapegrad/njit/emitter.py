"""Write a function as LLVM text: its blocks, variables, memory and stacks.

Values are handles that nobody else looks into: an emitter of dual numbers puts two into one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any

from tapegrad.compiler.llvm import elementary
from tapegrad.compiler.llvm.scalar_ops import Code as ScalarCode
from tapegrad.compiler.llvm.ssa import Value as Handle
from tapegrad.compiler.llvm.ssa import literal
from tapegrad.kernels.codegen.rule_codegen import Symbol
from tapegrad.njit import arena_text
from tapegrad.njit.partials import Partial
from tapegrad.njit.runtime_text import DECLARATIONS
from tapegrad.njit.thread_team import Routine, Team
from tapegrad.njit.three_address_code import Call, Table, Unsupported

LLVM = {"f64": "double", "f32": "float", "i64": "i64", "i1": "i1", "ptr": "ptr"}
SHORT = {long: short for short, long in LLVM.items()}
MEMORY = {
    "f64": "double", "f32": "float", "i64": "i64", "i32": "i32", "u32": "i32", "i16": "i16",
    "u16": "i16", "i8": "i8", "u8": "i8",
}  # fmt: skip
SIZE = {e: {"double": 8, "float": 4}.get(t, int(t[1:]) // 8 if t[0] == "i" else 0)
        for e, t in MEMORY.items()}  # fmt: skip
FLOATING = ("fadd", "fsub", "fmul", "fdiv", "fneg")
ADDED = "reassoc nsz contract"  # adjoints are added up in any order
PARTIAL = "contract"  # partial derivatives may be fused, and share the reciprocal of a divisor
_WORDS = {
    "iadd": "add", "isub": "sub", "imul": "mul", "iand": "and", "ior": "or", "ixor": "xor",
    "band": "and", "bor": "or", "bxor": "xor",
}  # fmt: skip


class BlockCode(ScalarCode):
    """The code of one block; `flags` are those of the arithmetic that is written next."""

    flags = ""

    def emit(self, type: str, text: str) -> Handle:
        """Append an instruction."""
        word, _, rest = text.partition(" ")
        if self.flags and word in FLOATING:
            reciprocal = " arcp" if word == "fdiv" else ""
            text = f"{word} {self.flags}{reciprocal} {rest}"
        return super().emit(type, text)


def scalar_type(x: Any) -> str:
    """The type of a number, or of those in a vector."""
    type: str = x.type
    return type[1:-1].split(" x ")[1] if type[0] == "<" else type


class Cell(tuple[str, str]):
    """A variable: its name and its LLVM type."""

    __slots__ = ()


class Emitter:
    """Writes one function."""

    words = 1  # of a number or a pointer
    strong = True  # whether an adjoint of zero stays zero, whatever it is multiplied by

    def __init__(self) -> None:
        self.blocks: list[tuple[str, BlockCode]] = []
        self.head: list[str] = []
        self.variables: dict[str, list[str]] = {}  # by name: the lines that make one
        self.declared: set[str] = set()
        self.tables: dict[Table, str] = {}
        self.levels: dict[int, int] = {}  # how many columns a loop's stack has
        self.flags = ""
        self.has_boxes = False  # results of calls, in memory
        self.team: Team | None = None  # threads that share trips, if any do
        self._scopes: dict[Any, int] = {}
        self._labels = 0
        self._repeated = 0  # loops
        self.current = BlockCode()

    # -- control -----------------------------------------------------------------------------

    def start(self, label: str) -> None:
        """Begin a block."""
        self.current = BlockCode(f"x{len(self.blocks)}_")
        self.blocks.append((label, self.current))

    def label(self, hint: str) -> str:
        """A fresh label."""
        self._labels += 1
        return f"{hint}.{self._labels}"

    @contextmanager
    def routine(self, name: str) -> Iterator[Routine]:
        """What is written inside is a routine that threads call."""
        assert self.team is not None
        outer = self.blocks, self.current
        self.blocks = []
        made = Routine(name, self.blocks)
        self.team.routines.append(made)
        yield made
        self.blocks, self.current = outer

    def line(self, text: str) -> None:
        """Append a line that gives no value."""
        self.current.lines.append(text)

    def jump(self, label: str, repeats: bool = False) -> None:
        """End the block with a jump; `repeats`: to the next trip of an innermost loop.

        LLVM does not unroll such a loop if the number of trips is not known: vectors do that where
        it pays, and what remains of the trips would take longer to compile than the loop.
        """
        self._repeated += repeats
        self.line(f"br label %{label}{f', !llvm.loop !{_LOOP + self._repeated}' * repeats}")

    def branch(self, condition: Any, yes: str, no: str, hint: str = "") -> None:
        """End the block with a branch."""
        self.line(f"br {condition}, label %{yes}, label %{no}{hint}")

    def switch(self, value: Any, labels: Sequence[str]) -> None:
        """End the block with a choice among labels, by number."""
        rest = " ".join(f"i64 {k}, label %{x}" for k, x in enumerate(labels[1:], 1))
        self.line(f"switch {value}, label %{labels[0]} [ {rest} ]")

    def require(self, condition: Any, otherwise: str) -> None:
        """Go on in a new block if a condition holds, else at a label."""
        on = self.label("on")
        self.branch(condition, on, otherwise, ", !prof !likely")
        self.start(on)

    # -- values ------------------------------------------------------------------------------

    def const(self, x: Any, kind: str) -> Any:
        """A constant."""
        if kind != "ptr":
            return literal(x, LLVM[kind])
        return self.table(x) if isinstance(x, Table) else Handle("null", "ptr")

    def table(self, x: Table) -> Any:
        """The pointer to memory that never changes."""
        name = f"@table{len(self.tables)}"
        return Handle(self.tables.setdefault(x, name), "ptr")

    def zero(self, kind: str) -> Any:
        """Zero, of an LLVM type."""
        return Handle("null", "ptr") if kind == "ptr" else literal(0, kind)

    def apply(self, name: str, *args: Any) -> Any:
        """An operation of the table."""
        self.current.flags = self.flags
        found = self.current.apply(name, args)
        self.current.flags = ""
        if found is None:
            raise Unsupported(f"`{name}` of {', '.join(a.type for a in args)}")
        return found

    def formula(self, x: Any, values: dict[str, Any], kind: str) -> Any:
        """A formula of the table's, of values, among numbers of a type."""
        if not isinstance(x, Symbol):
            return literal(float(x), kind)
        if not x.args:
            return values[x.name]
        return self.apply(x.name, *[self.formula(a, values, kind) for a in x.args])

    def scaled(self, g: Any, partial: Partial, values: dict[str, Any]) -> Any:
        """An adjoint, or a tangent, times a partial derivative."""
        formula = partial.formula
        if isinstance(formula, int | float):
            if formula in (1, -1):
                return g if formula == 1 else self.apply("neg", g)
            return self.apply("mul", g, literal(float(formula), scalar_type(g)))
        self.flags = PARTIAL
        product = partial.product if self.strong else "mul"
        found = self.apply(product, g, self.formula(formula, values, scalar_type(g)))
        self.flags = ""
        return found

    def summed(self, a: Any, b: Any, op: str = "add") -> Any:
        """The sum of two adjoints, or of others of a sum whose order does not count."""
        self.flags = ADDED
        found = self.apply(op, a, b)
        self.flags = ""
        return found

    def vanishes(self, g: Any) -> Any:
        """Whether an adjoint is zero."""
        return self.apply("eq", g, self.zero(g.type))

    def integer(self, op: str, args: Sequence[Any], attribute: Any = None) -> Any:
        """An operation on integers or conditions."""
        share = self.current.share
        a, kind = args[0].name, args[0].type
        b = args[1].name if len(args) > 1 else ""
        if op in _WORDS:
            flag = " nsw" if attribute == "nsw" else ""
            return share(kind, f"{_WORDS[op]}{flag} {kind} {a}, {b}")
        if op == "not":
            return share("i1", f"xor i1 {a}, true")
        if op in ("imax", "imin", "iabs"):
            return self._call_integer(op, args)
        if op in ("ifloordiv", "imod"):
            if attribute == "nonnegative":  # the divisor positive
                return share("i64", f"{'sdiv' if op == 'ifloordiv' else 'srem'} i64 {a}, {b}")
            return self._divide(op, args[0], args[1])
        if op in ("ishl", "ishr"):
            bits = share("i64", f"and i64 {b}, 63")
            return share("i64", f"{'shl' if op == 'ishl' else 'ashr'} i64 {a}, {bits.name}")
        if op == "wrap":
            negative = share("i1", f"icmp slt i64 {a}, 0")
            after = share("i64", f"add nsw i64 {a}, {b}")
            return share("i64", f"select {negative}, {after}, i64 {a}")
        raise Unsupported(f"`{op}` on integers")

    def _call_integer(self, op: str, args: Sequence[Any]) -> Any:
        if op == "iabs":
            self.declared.add("declare i64 @llvm.abs.i64(i64, i1)")
            return self.current.share("i64", f"call i64 @llvm.abs.i64({args[0]}, i1 false)")
        name = "llvm.smax.i64" if op == "imax" else "llvm.smin.i64"
        self.declared.add(f"declare i64 @{name}(i64, i64)")
        return self.current.share("i64", f"call i64 @{name}({args[0]}, {args[1]})")

    def _divide(self, op: str, a: Any, b: Any) -> Any:
        """A division rounded down, or what it leaves; by zero it gives zero, and never a trap."""
        share = self.current.share
        if b.name.lstrip("-").isdigit() and b.name not in ("0", "-1"):
            divisor, zero, negated = b.name, None, None
        else:
            zero = share("i1", f"icmp eq i64 {b.name}, 0")
            negated = share("i1", f"icmp eq i64 {b.name}, -1")
            unsafe = share("i1", f"or i1 {zero.name}, {negated.name}")
            divisor = share("i64", f"select {unsafe}, i64 1, i64 {b.name}").name
        quotient = share("i64", f"sdiv i64 {a.name}, {divisor}")
        whole = share("i64", f"mul i64 {quotient.name}, {divisor}")
        rest = share("i64", f"sub i64 {a.name}, {whole.name}")
        signs = share("i64", f"xor i64 {rest.name}, {divisor}")
        opposite = share("i1", f"icmp slt i64 {signs.name}, 0")
        some = share("i1", f"icmp ne i64 {rest.name}, 0")
        below = share("i1", f"and i1 {opposite.name}, {some.name}")
        if op == "imod":
            other = share("i64", f"add i64 {rest.name}, {divisor}")
            return share("i64", f"select {below}, {other}, {rest}")
        less = share("i64", f"sub i64 {quotient.name}, 1")
        found = share("i64", f"select {below}, {less}, {quotient}")
        if zero is not None and negated is not None:
            minus = share("i64", f"sub i64 0, {a.name}")
            found = share("i64", f"select {negated}, {minus}, {found}")
            found = share("i64", f"select {zero}, i64 0, {found}")
        return found

    def cast(self, x: Any, kind: str) -> Any:
        """A number in another type."""
        return self.current.cast(x, LLVM[kind])

    def select(self, condition: Any, a: Any, b: Any) -> Any:
        """One of two values."""
        return self.current.share(a.type, f"select {condition}, {a}, {b}")

    def moved(self, pointer: Any, old: Any, new: Any) -> Any:
        """The pointer to the same place of a copy of an array."""
        emit = self.current.emit
        distance = self.integer("isub", [Emitter.address(self, new), Emitter.address(self, old)])
        return emit("ptr", f"getelementptr i8, {pointer}, {distance}")

    def address(self, pointer: Any) -> Any:
        """A pointer as a number."""
        return self.current.share("i64", f"ptrtoint {pointer} to i64")

    # -- memory ------------------------------------------------------------------------------

    def at(self, pointer: Any, offset: Any, element: str) -> Any:
        """The pointer to an element."""
        return self.current.share(
            "ptr", f"getelementptr inbounds {MEMORY[element]}, {pointer}, {offset}"
        )

    def load(self, pointer: Any, offset: Any, element: str, scope: Any, lanes: bool = False) -> Any:
        """An element; with `lanes`, the next ones too, one for each."""
        return self.load_at(self.at(pointer, offset, element), element, scope)

    def load_at(self, at: Any, element: str, scope: Any) -> Any:
        """What lies at a pointer."""
        kind = MEMORY[element]
        text = f"load {kind}, {at}, align {SIZE[element]}{self._alias(scope)}"
        found = self.current.emit(kind, text)
        if kind[0] == "i" and kind != "i64":
            word = "zext" if element[0] == "u" else "sext"
            return self.current.emit("i64", f"{word} {found} to i64")
        return found

    def store(
        self, pointer: Any, offset: Any, x: Any, element: str, scope: Any, lanes: bool = False
    ) -> None:
        """Write an element, or one for each lane."""
        self.store_at(self.at(pointer, offset, element), x, element, scope)

    def store_at(self, at: Any, x: Any, element: str, scope: Any) -> None:
        """Put a value at a pointer."""
        kind = MEMORY[element]
        if x.type == "i1":
            x = self.current.cast(x, "i64")
        if x.type != kind:
            x = self.current.emit(kind, f"trunc {x} to {kind}")
        self.line(f"store {x}, {at}, align {SIZE[element]}{self._alias(scope)}")

    def accumulate(
        self, pointer: Any, offset: Any, g: Any, element: str, scope: Any, lanes: bool = False
    ) -> None:
        """Add to an adjoint in memory."""
        total = self.summed(self.load(pointer, offset, element, scope, lanes), g)
        self.store(pointer, offset, total, element, scope, lanes)

    def _alias(self, scope: Any) -> str:
        """Say that memory of different scopes is not the same."""
        k = self._scopes.setdefault(scope, len(self._scopes))
        return f", !tbaa !{_ACCESS + k}"

    def allocate(
        self, count: Any, element: str, zeroed: bool, otherwise: str, moves: bool = True
    ) -> Any:
        """New memory; `moves`, here and below: whether what it holds may have a tangent."""
        zero = "true" if zeroed else "false"
        made = self.current.emit(
            "ptr", f"call ptr @take(ptr %arena, ptr %left, {count}, i64 {SIZE[element]}, i1 {zero})"
        )
        self.require(self.current.emit("i1", f"icmp ne {made}, null"), otherwise)
        return made

    def add_into(self, to: Any, what: Any, count: Any, element: str) -> None:
        """Add numbers in memory to others."""
        self.line(f"call void @add.{element}({to}, {what}, {count})")

    # -- variables, arguments and results ----------------------------------------------------

    def cell(self, kind: str, zeroed: bool = False, lanes: bool = False, moves: bool = True) -> Any:
        """A variable; with `lanes`, one for each."""
        return self._made(LLVM[kind], str(self.zero(LLVM[kind])) if zeroed else "")

    def _made(self, type: str, first: str = "", rest: str = "") -> Cell:
        """A new variable, and what it holds at first."""
        name = f"%c{len(self.variables)}"
        lines = [f"{name} = alloca {type}{rest}"]
        self.variables[name] = lines + ([f"store {first}, ptr {name}"] if first else [])
        return Cell((name, type))

    def room(self, count: int, element: str) -> Any:
        """Memory for so many elements, of a function's own."""
        made = self._made(f"[{count} x {MEMORY[element]}]", rest=", align 64")
        return Handle(made[0], "ptr")

    def get(self, cell: Any) -> Any:
        """What a variable holds."""
        return self.current.emit(cell[1], f"load {cell[1]}, ptr {cell[0]}")

    def put(self, cell: Any, x: Any) -> None:
        """Assign to a variable."""
        self.line(f"store {x}, ptr {cell[0]}")

    def interface(self, inputs: int, outputs: int) -> None:
        """How many words of arguments and results there are."""
        self.inputs, self.outputs = inputs, outputs

    def argument(self, k: int, kind: str, moves: bool = True) -> Any:
        """A word of the arguments."""
        at = self.current.share("ptr", f"getelementptr i64, ptr %in, i64 {k}")
        if kind == "i1":
            word = self.current.emit("i64", f"load i64, {at}")
            return self.current.emit("i1", f"trunc {word} to i1")
        return self.current.emit(LLVM[kind], f"load {LLVM[kind]}, {at}")

    def result(self, k: int, x: Any) -> None:
        """Write a word of the results."""
        at = self.current.share("ptr", f"getelementptr i64, ptr %out, i64 {k}")
        if x.type == "i1":
            x = self.current.emit("i64", f"zext {x} to i64")
        self.line(f"store {x}, {at}")

    # -- stacks ------------------------------------------------------------------------------

    def level(self, k: int, columns: int) -> None:
        """Have a stack for a loop."""
        self.levels[k] = columns
        self.head += [
            f"%level{k} = alloca [2 x i64]", f"store [2 x i64] zeroinitializer, ptr %level{k}",
            f"%level{k}.cap = getelementptr i64, ptr %level{k}, i64 1",
        ]  # fmt: skip

    def ensure(self, k: int, buffer: Any, capacity: Any, need: Any, columns: int, by_slot: bool,
               otherwise: str) -> None:  # fmt: skip
        """Have room for so many slots, whose buffer and capacity are in variables then."""
        full = self.current.emit(
            "i1",
            f"icmp ugt {need}, {self.current.emit('i64', f'load i64, ptr %level{k}.cap').name}",
        )
        grow, on = self.label("grow"), self.label("on")
        self.branch(full, grow, on, ", !prof !unlikely")
        self.start(grow)
        width = self.width(columns)
        grown = self.current.emit(
            "i1",
            f"call i1 @grow(ptr %level{k}, ptr @level{k}.kept, ptr %left, {need}, i64 {width}, "
            f"i64 {1 if by_slot else width})",
        )
        self.branch(grown, on, otherwise, ", !prof !likely")
        self.start(on)
        Emitter.put(self, buffer, self.current.emit("ptr", f"load ptr, ptr %level{k}"))
        Emitter.put(self, capacity, self.current.emit("i64", f"load i64, ptr %level{k}.cap"))

    def width(self, columns: int) -> int:
        """How many columns a stack has."""
        return columns

    def slot(self, buffer: Any, capacity: Any, column: int, slot: Any, columns: int) -> Any:
        """The place of a value: slot by slot, if it is said of how many columns these are."""
        base = buffer
        if columns:
            start = self.current.share("i64", f"mul i64 {slot.name}, {columns}")
            row = self.current.share("ptr", f"getelementptr inbounds i64, {buffer}, {start}")
            return self.current.share("ptr", f"getelementptr inbounds i64, {row}, i64 {column}")
        if column:
            start = self.current.share("i64", f"mul i64 {capacity.name}, {8 * column}")
            base = self.current.share("ptr", f"getelementptr inbounds i8, {buffer}, {start}")
        return self.current.share("ptr", f"getelementptr inbounds i64, {base}, {slot}")

    def push(self, k: int, at: Any, column: int, x: Any, moves: bool = True) -> None:
        """Keep a value."""
        if x.type == "i1":
            x = self.current.share("i64", f"zext {x} to i64")
        self.line(f"store {x}, {at}, align 8{self._alias(('stack', k, column))}")

    def pop(
        self, k: int, at: Any, column: int, kind: str, lanes: bool = False, moves: bool = True
    ) -> Any:
        """A value that was kept."""
        type = "i64" if kind == "i1" else LLVM[kind]
        alias = self._alias(("stack", k, column))
        x = self.current.emit(type, f"load {type}, {at}, align 8{alias}")
        return self.current.emit("i1", f"trunc {x} to i1") if kind == "i1" else x

    def fetch(self, at: Any, count: Any) -> None:
        """Have so many words of a stack fetched."""
        self.line(f"call void @fetch({at}, {count})")

    def free_stacks(self) -> None:
        """Give the stacks back, or keep them for the next call."""
        for k, columns in self.levels.items():
            width = self.width(columns)
            self.line(f"call void @keep(ptr %level{k}, ptr @level{k}.kept, i64 {width})")
        if self.team is not None:
            self.line("call void @disband(ptr %team)")

    def _forgetting(self) -> list[str]:
        """What is kept from call to call, and the function that gives it back."""
        kept = ["@arena.kept", *[f"@level{k}.kept" for k in self.levels]]
        return [
            *[f"{name} = internal global i64 0" for name in kept],
            "define void @forget() {", *[f"call void @drop(ptr {name}, i64 0)" for name in kept],
            "ret void", "}",
        ]  # fmt: skip

    # -- calls -------------------------------------------------------------------------------

    def call(self, call: Call, args: Sequence[Any], kind: str, raised: str, full: str) -> Any:
        """Call what another compiler has compiled; its result, if it has one."""
        given, out = (
            Handle(self._made(f"[{max(n, 1)} x i64]")[0], "ptr") for n in (len(args), call.words)
        )
        for k, x in enumerate(args):
            x = Emitter.cast(self, x, "i64") if x.type == "i1" else x
            self.line(f"store {x}, {self._word(given, k)}")
        if call.bytes:
            self.has_boxes = True
            size = 8 * call.words + call.bytes
            out = self.current.emit("ptr", f"call ptr @box(ptr %boxes, ptr %left, i64 {size})")
            self.require(self.current.emit("i1", f"icmp ne {out}, null"), full)
        self.declared.add(f"declare i64 @{call.symbol}(ptr, ptr)")
        status = self.current.emit("i64", f"call i64 @{call.symbol}({given}, {out})")
        self.require(self.current.emit("i1", f"icmp eq {status}, 0"), raised)
        if call.drops:
            self.declared.add(f"declare void @{call.symbol}_drop(ptr)")
            self.line(f"store ptr @{call.symbol}_drop, {self._word(out, -1)}")
        if call.bytes or not call.words:
            return out if call.bytes else None
        return Emitter.part(self, out, 0, kind)

    def part(self, out: Any, k: int, kind: str) -> Any:
        """A word of the result of a call."""
        type = "i64" if kind == "i1" else LLVM[kind]
        x = self.current.emit(type, f"load {type}, {self._word(out, k)}")
        return self.current.emit("i1", f"trunc {x} to i1") if kind == "i1" else x

    def _word(self, pointer: Any, k: int) -> Any:
        return self.current.share("ptr", f"getelementptr i64, {pointer}, i64 {k}")

    def drop_boxes(self) -> None:
        """Drop the references that results of calls hold."""
        if self.has_boxes:
            self.line("call void @drop_boxes(ptr %boxes)")

    # -- the module --------------------------------------------------------------------------

    def module(self, name: str) -> str:
        """The module's text."""
        used: set[str] = set()
        team = self.team
        threads = "" if team is None else team.text(self.variables)
        for routine in () if team is None else team.routines:
            used = used.union(*(code.used for _, code in routine.blocks))
        lines = [
            f"define i64 @{name}(ptr noalias %in, ptr noalias %out, i64 %limit) #0 {{", "start:",
            *arena_text.beginning("%arena", "@arena.kept"), "%left = alloca i64",
            "store i64 %limit, ptr %left",
            *(["%boxes = alloca ptr", "store ptr null, ptr %boxes"] if self.has_boxes else []),
            *chain(*self.variables.values()), *self.head,
            *([] if team is None else team.head()), f"br label %{self.blocks[0][0]}",
        ]  # fmt: skip
        for label, code in self.blocks:
            used |= code.used
            lines += [f"{label}:", *code.lines]
        lines.append("}")
        body = "\n".join([threads, *lines]).replace("!prof !likely", f"!prof !{_LIKELY}")
        body = body.replace("!prof !unlikely", f"!prof !{_UNLIKELY}")
        return "\n".join([
            DECLARATIONS, *self._forgetting(),
            *sorted(self.declared), *self._tables(), self.definitions(used), body,
            'attributes #0 = { nounwind "prefer-vector-width"="512" }', self._metadata(),
        ])  # fmt: skip

    def definitions(self, used: set[str]) -> str:
        """The functions that are called."""
        return elementary.definitions(used)

    def _tables(self) -> list[str]:
        """The definitions of tables."""
        found = []
        for table, name in self.tables.items():
            text = "".join([f"\\{byte:02X}" for byte in table.content])
            kind = f"private unnamed_addr constant [{len(table.content)} x i8]"
            found.append(f'{name} = {kind} c"{text}", align 16')
        return found

    def _metadata(self) -> str:
        lines = [
            f'!{_MEMORY} = !{{!"memory"}}',
            f'!{_LIKELY} = !{{!"branch_weights", i32 2000, i32 1}}',
            f'!{_UNLIKELY} = !{{!"branch_weights", i32 1, i32 2000}}',
        ]
        # Memory of each class is one "type": lists of scopes would be as long as there are classes.
        for k in range(len(self._scopes)):
            lines += [
                f'!{_CLASS + k} = !{{!"class {k}", !{_MEMORY}}}',
                f"!{_ACCESS + k} = !{{!{_CLASS + k}, !{_CLASS + k}, i64 0}}",
            ]
        lines.append(f'!{_LOOP} = !{{!"llvm.loop.unroll.runtime.disable"}}')
        loops = [_LOOP + k for k in range(1, self._repeated + 1)]
        lines += [f"!{k} = distinct !{{!{k}, !{_LOOP}}}" for k in loops]
        return "\n".join(lines)


# Numbers of metadata.
_MEMORY, _LIKELY, _UNLIKELY, _LOOP = 1_000_000, 1_000_001, 1_000_002, 5_000_000
_CLASS, _ACCESS = 2_000_000, 3_000_000

"""Build the LLVM text of one function: numbers, vectors, memory, loops, calls."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from tapegrad.compiler.llvm.ssa import FLOATS, literal

PREFIX = "tapegrad_fortran_"  # of the routines of BLAS and LAPACK


class Routine(NamedTuple):
    """A function as LLVM text, in which `{name}` stands for its name, and what that calls."""

    text: str
    declared: frozenset[str]  # lines
    functions: frozenset[str]  # of one number, see `elementary.definitions`
    longest: int = 0  # steps of the loops that LLVM should optimise

    @property
    def inline(self) -> int:
        """The lines of what computes by itself; 0 for what calls BLAS or LAPACK."""
        return 0 if any(PREFIX in line for line in self.declared) else self.text.count("\n")


class FunctionBuilder:
    """LLVM text of a function over pointers `%a0`, `%a1`, ..., for numbers of one precision.

    LAPACK's numbers may be complex: of two `parts`, which lie side by side.
    """

    def __init__(self, dtype: np.dtype[Any], parts: int = 1) -> None:
        self.single = dtype.itemsize == 4
        kinds = ("i32", "i64") if dtype.kind == "i" else ("float", "double")
        self.kind = kinds[not self.single]
        self.parts = parts
        self.head: list[str] = []
        self.lines: list[str] = []
        self.declared: set[str] = set()
        self.functions: set[str] = set()
        self.count = 0

    def emit(self, text: str) -> str:
        """A line that computes; returns the name of what it computes."""
        self.count += 1
        self.lines.append(f"%x{self.count} = {text}")
        return f"%x{self.count}"

    def room(self, kind: str, value: Any = None) -> str:
        """Memory on the stack, holding a value."""
        self.count += 1
        self.head.append(f"%m{self.count} = alloca {kind}")
        if value is not None:
            self.head.append(f"store {kind} {value}, ptr %m{self.count}")
        return f"%m{self.count}"

    def at(self, base: str, index: str | int, kind: str = "") -> str:
        """The address of an element."""
        return self.emit(f"getelementptr {kind or self.kind}, ptr {base}, i64 {index}")

    def number_at(self, base: str, index: str) -> str:
        """The address of a number, which may be complex."""
        return self.at(base, self.mad(index, self.parts, 0) if self.parts > 1 else index)

    def load(self, address: str, kind: str = "") -> str:
        """What lies at an address."""
        return self.emit(f"load {kind or self.kind}, ptr {address}")

    def store(self, value: str, address: str, kind: str = "") -> None:
        """Put a value at an address."""
        self.lines.append(f"store {kind or self.kind} {value}, ptr {address}")

    def mad(self, a: str, by: int, b: str | int) -> str:
        """An index ``a * by + b``."""
        return self.emit(f"add i64 {self.emit(f'mul i64 {a}, {by}')}, {b}")

    @contextmanager
    def loop(self, count: int | str, start: int | str = 0, hints: str = "") -> Any:
        """The lines that are written inside are done for each number from start to count.

        The hints are metadata of the loop.
        """
        counter = self.room("i64")
        self.count += 1
        k = self.count
        self.store(str(start), counter, "i64")
        self.lines += [f"br label %head{k}", f"head{k}:"]
        index = self.load(counter, "i64")
        more = self.emit(f"icmp slt i64 {index}, {count}")
        self.lines += [f"br i1 {more}, label %body{k}, label %done{k}", f"body{k}:"]
        yield index
        self.store(self.emit(f"add i64 {index}, 1"), counter, "i64")
        hinted = f", !llvm.loop {hints}" if hints else ""
        self.lines += [f"br label %head{k}{hinted}", f"done{k}:"]

    def fail(self, condition: str) -> None:
        """Return 1 where a condition holds."""
        self.count += 1
        k = self.count
        self.lines += [
            f"br i1 {condition}, label %bad{k}, label %good{k}",
            f"bad{k}:", "ret i64 1", f"good{k}:",
        ]  # fmt: skip

    def check(self, info: str) -> None:
        """Return 1 where LAPACK has left another status than 0."""
        self.fail(self.emit(f"icmp ne i32 {self.load(info, 'i32')}, 0"))

    @contextmanager
    def where(self, condition: str) -> Any:
        """The lines inside are done where a condition holds.

        It gives what makes one value, of some type, of a value from inside and another one.
        """
        self.count += 1
        k = self.count
        self.lines += [
            f"br label %at{k}", f"at{k}:",
            f"br i1 {condition}, label %do{k}, label %on{k}", f"do{k}:",
        ]  # fmt: skip

        def merged(kind: str, inside: str, other: str) -> str:
            return self.emit(f"phi {kind} [ {inside}, %do{k} ], [ {other}, %at{k} ]")

        yield merged
        self.lines += [f"br label %on{k}", f"on{k}:"]

    @contextmanager
    def otherwise(self, condition: str) -> Any:
        """The lines inside are done where a condition does not hold, up to a call of what it gives.

        Those after the call are done where it holds.
        """
        self.count += 1
        k = self.count
        self.lines += [f"br i1 {condition}, label %yes{k}, label %no{k}", f"no{k}:"]
        yield lambda: self.lines.extend([f"br label %both{k}", f"yes{k}:"])
        self.lines += [f"br label %both{k}", f"both{k}:"]

    def call(self, routine: str, *args: str) -> None:
        """Call one of LAPACK's routines or of BLAS's, without the letter of its precision."""
        symbol = PREFIX + ("cz" if self.parts == 2 else "sd")[not self.single] + routine
        self.declared.add(f"declare void @{symbol}({', '.join(['ptr'] * len(args))})")
        self.lines.append(f"call void @{symbol}({', '.join(f'ptr {a}' for a in args)})")

    def number(self, n: int) -> str:
        """A pointer to a whole number."""
        return self.room("i32", n)

    def letter(self, letter: str) -> str:
        """A pointer to a letter."""
        return self.room("i8", ord(letter))

    def math(self, name: str, x: str) -> str:
        """One of LLVM's functions of one number."""
        symbol = f"llvm.{name}.{FLOATS[self.kind]}"
        self.functions.add(symbol)
        return self.emit(f"call {self.kind} @{symbol}({self.kind} {x})")

    def constant(self, value: float) -> str:
        """A number."""
        return literal(value, self.kind).name

    # -- numbers of one or two parts -------------------------------------------------------------

    def get(self, address: str) -> list[str]:
        """The parts of the number at an address."""
        return [self.load(self.at(address, k)) for k in range(self.parts)]

    def put(self, number: Sequence[str], address: str) -> None:
        """Put a number at an address."""
        for k, part in enumerate(number):
            self.store(part, self.at(address, k))

    def factor(self, value: float) -> str:
        """A pointer to a number that is real."""
        kind = f"[{self.parts} x {self.kind}]"
        parts = [f"{self.kind} {self.constant(x)}" for x in (value, 0.0)[: self.parts]]
        return self.room(kind, f"[{', '.join(parts)}]")

    def times(self, a: Sequence[str], b: Sequence[str]) -> list[str]:
        """The product of two numbers."""
        if self.parts == 1:
            return [self.two("fmul", a[0], b[0])]
        rr, ii, ri, ir = [self.two("fmul", a[k], b[j]) for k, j in ((0, 0), (1, 1), (0, 1), (1, 0))]
        return [self.two("fsub", rr, ii), self.two("fadd", ri, ir)]

    def size(self, number: Sequence[str]) -> str:
        """The absolute value of a number, whose square may be beyond the range of numbers."""
        sizes = [self.math("fabs", x) for x in number]
        if self.parts == 1:
            return sizes[0]
        less = self.emit(f"fcmp olt {self.kind} {sizes[0]}, {sizes[1]}")
        large, small = self.choose(less, sizes[1], sizes[0]), self.choose(less, sizes[0], sizes[1])
        nothing = self.emit(f"fcmp oeq {self.kind} {small}, {self.constant(0.0)}")
        ratio = self.two("fdiv", small, large)
        root = self.math("sqrt", self.fused(ratio, ratio, self.constant(1.0)))
        return self.choose(nothing, large, self.two("fmul", large, root))

    def conjugate(self, base: str, count: int) -> None:
        """Conjugate numbers in memory; real ones stay."""
        if self.parts == 2:
            with self.loop(count) as k:
                at = self.at(self.number_at(base, k), 1)
                self.store(self.emit(f"fneg {self.kind} {self.load(at)}"), at)

    def infinite(self, x: str) -> str:
        """Whether a real number is infinite, or none."""
        off = self.emit(f"fsub {self.kind} {x}, {x}")
        return self.emit(f"fcmp uno {self.kind} {off}, {off}")

    # -- vectors: a vector of one number is that number ------------------------------------------

    def vector(self, n: int) -> str:
        """The type of n numbers."""
        return self.kind if n == 1 else f"<{n} x {self.kind}>"

    def read(self, base: str, n: int, step: int = 1) -> str:
        """Numbers in memory, the next one always as many elements on."""
        if step == 0:
            return self.splat(self.load(base), n)
        if step == 1:
            return self.emit(f"load {self.vector(n)}, ptr {base}, align {4 if self.single else 8}")
        return self.gathered([self.load(self.at(base, k * step)) for k in range(n)])

    def write(self, value: str, base: str, n: int, step: int = 1) -> None:
        """Numbers into memory."""
        if step == 1:
            align = 4 if self.single else 8
            self.lines.append(f"store {self.vector(n)} {value}, ptr {base}, align {align}")
            return
        for k in range(n):
            self.store(self.element(value, n, k), self.at(base, k * step))

    def gathered(self, values: list[str]) -> str:
        """A vector of some numbers."""
        n = len(values)
        if n == 1:
            return values[0]
        found = "poison"
        for k, x in enumerate(values):
            found = self.emit(f"insertelement {self.vector(n)} {found}, {self.kind} {x}, i32 {k}")
        return found

    def splat(self, x: str, n: int) -> str:
        """A number n times."""
        if n == 1:
            return x
        kind = self.vector(n)
        first = self.emit(f"insertelement {kind} poison, {self.kind} {x}, i32 0")
        return self.emit(
            f"shufflevector {kind} {first}, {kind} poison, <{n} x i32> zeroinitializer"
        )

    def element(self, vector: str, n: int, k: int) -> str:
        """One number of a vector."""
        return vector if n == 1 else self.emit(f"extractelement {self.vector(n)} {vector}, i32 {k}")

    def choose(self, condition: str, a: str, b: str, n: int = 1) -> str:
        """One of two vectors."""
        kind = self.vector(n)
        return self.emit(f"select i1 {condition}, {kind} {a}, {kind} {b}")

    def two(self, name: str, a: str, b: str, n: int = 1) -> str:
        """A vector operation."""
        return self.emit(f"{name} {self.vector(n)} {a}, {b}")

    def fused(self, a: str, b: str, c: str, n: int = 1) -> str:
        """``a * b + c``, in one step where the processor has one."""
        kind, short = self.vector(n), FLOATS[self.kind]
        symbol = f"llvm.fmuladd.{short if n == 1 else f'v{n}{short}'}"
        if n == 1:
            self.functions.add(symbol)
        else:
            self.declared.add(f"declare {kind} @{symbol}({', '.join([kind] * 3)})")
        return self.emit(f"call {kind} @{symbol}({kind} {a}, {kind} {b}, {kind} {c})")

    def total(self, vector: str, n: int) -> str:
        """The sum of a vector."""
        if n == 1:
            return vector
        kind, symbol = self.vector(n), f"llvm.vector.reduce.fadd.v{n}{FLOATS[self.kind]}"
        self.declared.add(f"declare {self.kind} @{symbol}({self.kind}, {kind})")
        minus = literal(-0.0, self.kind).name
        return self.emit(
            f"call reassoc {self.kind} @{symbol}({self.kind} {minus}, {kind} {vector})"
        )

    # -- the whole -----------------------------------------------------------------------------

    def routine(self, params: Sequence[str], result: str = "i64 0") -> Routine:
        """The function, over pointers of some attributes."""
        names = ", ".join(f"ptr {attributes} %a{k}" for k, attributes in enumerate(params))
        text = "\n".join([
            f"define internal {result.split()[0]} @{{name}}({names}) #0 {{", "start:",
            *self.head, *self.lines, f"ret {result}", "}",
        ])  # fmt: skip
        return Routine(text, frozenset(self.declared), frozenset(self.functions))

"""Check a GEMM result for NaN; recompute with strong zeros. Compiled once for all programs.

BLAS gives NaN where a zero meets a non-finite factor.  So the elements of each product are summed,
and where the sum is NaN, loops with strong zeros recompute the product.  That is rare: sizes and
strides are arguments, not constants in the code.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from tapegrad.compiler.ir.buffers import Place
from tapegrad.compiler.ir.loop_nest import SUM, Nest, collapsed
from tapegrad.compiler.llvm.ssa import FLOATS
from tapegrad.kernels import build

PREFIX = "again."
RANK = 4  # dimensions of the loops
TYPES = {"float64": "double", "float32": "float"}


def total(place: Place) -> tuple[str, str] | None:
    """The call that adds up a window, and its declaration; None if it has gaps."""
    type = TYPES.get(place.buffer.dtype.name)
    if type is None or not place.is_contiguous():
        return None
    size = 1
    for n in place.shape:
        size *= n
    name = f"{PREFIX}total.{FLOATS[type]}"
    return f"call {type} @{name}(ptr {{}}, i64 {size})", f"declare {type} @{name}(ptr, i64)"


def redone(nest: Nest) -> tuple[str, str] | None:
    """The function that recomputes a product by calling the loops, and their declaration."""
    nest = collapsed(nest)
    places = [*nest.loads, *[s.place for s in nest.stores]]
    types = {TYPES.get(p.buffer.dtype.name) for p in places}
    if len(nest.domain) > RANK or any(nest.gathers) or len(types) > 1 or None in types:
        return None
    if [t.name for t in nest.terms] != ["exact"] or [s.mode for s in nest.stores] != [SUM]:
        return None
    args = nest.terms[0].args
    if nest.stores[0].source != 0 or min(nest.stores[0].place.strides, default=0) < 0:
        return None
    name = f"{PREFIX}exact.{FLOATS[types.pop() or '']}"
    windows = [nest.loads[~args[0]], nest.loads[~args[1]], nest.stores[0].place]
    missing = RANK - len(nest.domain)
    numbers = [1] * missing + list(nest.domain)
    for window in windows:
        numbers += [0] * missing + list(window.strides)
    table = ", ".join([f"i64 {n}" for n in numbers])
    given = ", ".join([f"ptr %l{k}" for k in range(len(nest.loads))])
    text = (
        f"@{{name}}.table = internal constant [{len(numbers)} x i64] [{table}]\n"
        f"define internal void @{{name}}({given}, ptr %s0) #1 {{\n"
        f"call void @{name}(ptr %l{~args[0]}, ptr %l{~args[1]}, ptr %s0, ptr @{{name}}.table)\n"
        "ret void\n}"
    )
    return text, f"declare void @{name}(ptr, ptr, ptr, ptr)"


@cache
def address(name: str) -> int:
    """The address of such a function, which is compiled on first use.

    >>> from tapegrad.compiler.codegen.gemm_fallback import address
    >>> address("again.total.f64") == address("again.total.f64") > 0
    True
    """
    what, short = name.removeprefix(PREFIX).split(".")
    type = {short: long for long, short in FLOATS.items()}[short]
    return build.assemble(_total(type) if what == "total" else _Exact(type).text())


def _total(type: str) -> str:
    return f"""\
define {type} @{build.SYMBOL}(ptr noalias readonly %x, i64 %n) "prefer-vector-width"="512" {{
start:
  br label %loop
loop:
  %i = phi i64 [ 0, %start ], [ %next, %loop ]
  %sum = phi {type} [ 0.0, %start ], [ %more, %loop ]
  %at = getelementptr inbounds {type}, ptr %x, i64 %i
  %value = load {type}, ptr %at
  %more = fadd reassoc nsz {type} %sum, %value
  %next = add nuw nsw i64 %i, 1
  %done = icmp eq i64 %next, %n
  br i1 %done, label %end, label %loop
end:
  ret {type} %more
}}"""


class _Exact:
    """Writes the loops: zero the result, then accumulate products."""

    def __init__(self, type: str) -> None:
        self.type = type
        self.lines: list[str] = []
        self.allocas: list[str] = []
        self.count = 0

    def emit(self, text: str) -> str:
        """Emit an instruction; returns the name of its result."""
        self.count += 1
        self.lines.append(f"%x{self.count} = {text}")
        return f"%x{self.count}"

    def loops(self, extents: list[str], body: Callable[[list[str]], None]) -> None:
        """Write nested loops; the innermost body gets their indices."""
        self._loops(extents, [], body)

    def _loops(self, extents: list[str], at: list[str], body: Callable[[list[str]], None]) -> None:
        if len(at) == len(extents):
            body(at)
            return
        self.count += 1
        k = self.count
        self.allocas.append(f"%c{k} = alloca i64")
        self.lines += [f"store i64 0, ptr %c{k}", f"br label %loop{k}", f"loop{k}:"]
        index = self.emit(f"load i64, ptr %c{k}")
        self._loops(extents, [*at, index], body)
        up = self.emit(f"add nuw nsw i64 {index}, 1")
        more = self.emit(f"icmp ult i64 {up}, {extents[len(at)]}")
        self.lines += [f"store i64 {up}, ptr %c{k}", f"br i1 {more}, label %loop{k}, label %end{k}"]
        self.lines.append(f"end{k}:")

    def at(self, base: str, index: list[str], strides: list[str]) -> str:
        """The address of an element."""
        offset = "0"
        for i, stride in zip(index, strides, strict=True):
            offset = self.emit(f"add nsw i64 {offset}, {self.emit(f'mul nsw i64 {i}, {stride}')}")
        return self.emit(f"getelementptr inbounds {self.type}, ptr {base}, i64 {offset}")

    def text(self) -> str:
        """The function."""
        type, numbers = self.type, []
        for k in range(4 * RANK):
            at = self.emit(f"getelementptr inbounds i64, ptr %table, i64 {k}")
            numbers.append(self.emit(f"load i64, ptr {at}"))
        extents, *strides = [numbers[k : k + RANK] for k in range(0, 4 * RANK, RANK)]
        kept = []
        for n, stride in zip(extents, strides[2], strict=True):
            still = self.emit(f"icmp eq i64 {stride}, 0")
            kept.append(self.emit(f"select i1 {still}, i64 1, i64 {n}"))

        def clear(index: list[str]) -> None:
            self.lines.append(f"store {type} 0.0, ptr {self.at('%out', index, strides[2])}")

        def add(index: list[str]) -> None:
            product, addresses = (
                "",
                [self.at(p, index, s) for p, s in zip(("%a", "%b", "%out"), strides, strict=True)],
            )
            a, b, before = [self.emit(f"load {type}, ptr {address}") for address in addresses]
            product = self.emit(f"fmul {type} {a}, {b}")
            for factor in (a, b):
                some = self.emit(f"fcmp une {type} {factor}, 0.0")
                product = self.emit(f"select i1 {some}, {type} {product}, {type} 0.0")
            after = self.emit(f"fadd {type} {before}, {product}")
            self.lines.append(f"store {type} {after}, ptr {addresses[2]}")

        self.loops(kept, clear)
        self.loops(extents, add)
        head = (
            f"define void @{build.SYMBOL}(ptr noalias readonly %a, ptr noalias readonly %b, "
            'ptr noalias %out, ptr noalias readonly %table) "prefer-vector-width"="512" {'
        )
        return "\n".join([head, *self.allocas, *self.lines, "ret void", "}"])

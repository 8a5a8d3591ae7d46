"""The interpreter of loop nests: instructions over short vectors, each a call of a block.

A program of it is words of 64 bits, see `lower.vector_code`: the number of nests, and for each nest

    HEADER  its length in words, the extents of three outer loops and of the vectorised one, the
            numbers of operands and of instructions
    operands: which table the base address stands in, where in it, an offset in bytes, the bytes
            from element to element, and from step to step of each outer loop
    instructions: a block's address, flags, and the numbers of its result and three operands

It does CHUNK elements at a time, so that what lies between instructions stays in the L1 cache.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from tapegrad.compiler.codegen.vector_blocks import MOST
from tapegrad.compiler.llvm.function_builder import FunctionBuilder
from tapegrad.kernels import build

CHUNK = 256  # elements
OUTER = 3  # loops around the vectorised one
HEADER, OPERAND, INSTRUCTION = OUTER + 4, OUTER + 4, MOST + 3  # words
OPERANDS_MOST = 1024  # of one nest
# The tables that base addresses stand in; the last holds scratch memory and the words themselves.
INPUTS, OUTPUTS, CONSTANTS, OTHERS = range(4)
SCRATCH, WORDS = range(2)
# Flags of an instruction: run once per step of the outer loops; on a single element.
FIRST, SINGLE = 1, 2
SYMBOL = "tapegrad_interpret"
DECLARATION = f"declare void @{SYMBOL}(ptr, ptr, ptr, ptr, ptr)"


@cache
def address() -> int:
    """The address of the interpreter, which is compiled on first use.

    >>> from tapegrad.compiler.codegen.vector_interpreter import address
    >>> address() > 0
    True
    """
    found = _Interpreter().routine([""] * 5, "void")
    text = found.text.replace("define internal void @{name}", f"define void @{build.SYMBOL}")
    return build.assemble(text + "\nattributes #0 = { nounwind }")


class _Interpreter(FunctionBuilder):
    """Over the words, the inputs, the outputs, scratch memory, and the constants."""

    def __init__(self) -> None:
        super().__init__(np.dtype(np.float64))
        self.bases = self.room(f"[{OPERANDS_MOST} x ptr]")
        self.current = self.room(f"[{OPERANDS_MOST} x ptr]")
        tables, others = self.room("[4 x ptr]"), self.room("[2 x ptr]")
        for k, name in enumerate(("%a1", "%a2", "%a4", others)):
            self.store(name, self.at(tables, k, "ptr"), "ptr")
        for k, name in enumerate(("%a3", "%a0")):
            self.store(name, self.at(others, k, "ptr"), "ptr")
        self.tables = tables
        position = self.room("i64", 1)
        with self.loop(self.load("%a0", "i64")):
            start = self.load(position, "i64")
            self.nest(self.at("%a0", start, "i64"))
            length = self.word(self.at("%a0", start, "i64"), 0)
            self.store(self.emit(f"add i64 {start}, {length}"), position, "i64")

    def word(self, base: str, k: int) -> str:
        """A word at an address."""
        return self.load(self.at(base, k, "i64"), "i64")

    def entry(self, base: str, k: str, words: int) -> str:
        """The address of the k-th of things of so many words."""
        return self.at(base, self.emit(f"mul i64 {k}, {words}"), "i64")

    def nest(self, base: str) -> None:
        """Run one nest."""
        *outer, extent, operands, instructions = [self.word(base, k) for k in range(1, HEADER)]
        first = self.at(base, HEADER, "i64")
        code = self.entry(first, operands, OPERAND)
        with self.loop(operands) as k:
            operand = self.entry(first, k, OPERAND)
            table = self.load(self.at(self.tables, self.word(operand, 0), "ptr"), "ptr")
            found = self.load(self.at(table, self.word(operand, 1), "ptr"), "ptr")
            found = self.at(found, self.word(operand, 2), "i8")
            self.store(found, self.at(self.bases, k, "ptr"), "ptr")
        with self.loop(outer[0]) as i, self.loop(outer[1]) as j, self.loop(outer[2]) as h:
            with self.loop(operands) as k:
                operand = self.entry(first, k, OPERAND)
                found = self.load(self.at(self.bases, k, "ptr"), "ptr")
                for index, place in zip((i, j, h), range(4, OPERAND), strict=True):
                    step = self.emit(f"mul i64 {index}, {self.word(operand, place)}")
                    found = self.at(found, step, "i8")
                self.store(found, self.at(self.current, k, "ptr"), "ptr")
            chunks = self.emit(f"udiv i64 {self.emit(f'add i64 {extent}, {CHUNK - 1}')}, {CHUNK}")
            with self.loop(chunks) as c:
                done = self.emit(f"mul i64 {c}, {CHUNK}")
                left = self.emit(f"sub i64 {extent}, {done}")
                short = self.emit(f"icmp slt i64 {left}, {CHUNK}")
                count = self.emit(f"select i1 {short}, i64 {left}, i64 {CHUNK}")
                with self.loop(instructions) as k:
                    self.instruction(self.entry(code, k, INSTRUCTION), c, count)
                with self.loop(operands) as k:
                    operand = self.entry(first, k, OPERAND)
                    at = self.at(self.current, k, "ptr")
                    step = self.emit(f"mul i64 {self.word(operand, 3)}, {CHUNK}")
                    self.store(self.at(self.load(at, "ptr"), step, "i8"), at, "ptr")

    def instruction(self, at: str, chunk: str, count: str) -> None:
        """Call a block."""
        block = self.load(at, "ptr")
        flags = self.word(at, 1)
        only = self.emit(f"icmp ne i64 {self.emit(f'and i64 {flags}, {FIRST}')}, 0")
        later = self.emit(f"icmp ne i64 {chunk}, 0")
        skipped = self.emit(f"and i1 {only}, {later}")
        single = self.emit(f"icmp ne i64 {self.emit(f'and i64 {flags}, {SINGLE}')}, 0")
        count = self.emit(f"select i1 {single}, i64 1, i64 {count}")
        with self.where(self.emit(f"xor i1 {skipped}, true")):
            places = [self.word(at, 2 + k) for k in range(1 + MOST)]
            given = [self.load(self.at(self.current, p, "ptr"), "ptr") for p in places]
            pointers = ", ".join(f"ptr {g}" for g in given)
            self.lines.append(f"call void {block}({pointers}, i64 {count})")

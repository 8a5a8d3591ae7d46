"""Three-address code over named scalars and pointers: what a front end hands on.

A name may be assigned several times; `ssa_form` makes values of names.  The types are those of
LLVM in short: ``f64``, ``f32``, ``i64``, ``i1`` and ``ptr``.  Every integer is an ``i64``; how wide
it is in memory says the element type of a load or a store.

===============  ==================================================================================
``copy``         a name for a value
a row's name     the elementwise operation of that row, on floats; comparisons, on integers too
``iadd`` ...     integers; with the attribute ``nsw`` a sum, difference or product that does not
                 overflow: of an index, or of signed integers of the user's, as in Numba
``wrap``         an index as Python counts it: a negative one from the end
``not band`` ..  conditions
``select``       one of two integers, by a condition (of floats it is the row ``where``)
``cast``         to the type of the target
``load store``   memory at a pointer and an offset in elements; the attribute is the element type
``gep``          a pointer at an offset in elements
``alloc``        new memory; the attribute is the element type and whether it is zeroed
``require``      the primal raises unless a condition holds
``call``         what the front end's own compiler has compiled; the attribute is a `Call`
``part``         a word of the result of such a call; the attribute is its number
===============  ==================================================================================

A block ends in ``jump``, ``branch``, ``raise`` or ``ret``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

FLOATS = ("f64", "f32")
# Element types in memory, by the type of the values that are loaded from them.
ELEMENTS = {
    "f64": "f64", "f32": "f32", "i64": "i64", "i32": "i64", "i16": "i64", "i8": "i64",
    "u32": "i64", "u16": "i64", "u8": "i64",
}  # fmt: skip
SIDE_EFFECTS = ("store", "require", "call")
REAL, IMAGINARY = ".re", ".im"  # suffixes of the parts of a complex number
PARALLEL = "parallel"  # the attribute of a comparison on which a `prange` loop goes on


class Unsupported(NotImplementedError):
    """What cannot be differentiated; if it is `located`, with its place in the user's source.

    If it `explains`, it says more than why a statement was left to Numba.
    """

    located = explains = False


class Table(NamedTuple):
    """Memory that never changes: the element type, and what the elements are, in C order."""

    element: str
    content: bytes


class Call(NamedTuple):
    """A function that is called by its symbol, and is never differentiated.

    It takes words, and gives as many `words` as the result has.  Where `bytes` is not zero these
    are in memory, with so many bytes behind them that hold references; another function drops them.
    `writes`: it may write into memory that an argument leads to.  `effects`: a second call may do
    something else.  `refusal` says why nothing is known of it where a derivative would be needed.
    `detached`: what it gives is new, and held constant; none is needed.
    """

    symbol: str
    words: int
    bytes: int
    drops: bool
    writes: bool
    effects: bool
    refusal: str
    detached: bool = False


class Constant(NamedTuple):
    """A number that is known when the code is written, or a pointer to a `Table`."""

    value: Any
    type: str


Operand = Constant | str


class SourceLine(NamedTuple):
    """A line of a user's function."""

    function: str
    file: str
    line: int


class Instruction(NamedTuple):
    """One assignment to a name, or one effect without a name."""

    op: str
    args: tuple[Operand, ...]
    target: str | None
    type: str | None
    attribute: Any = None
    line: SourceLine | None = None


class CodeBlock:
    """Instructions that run one after the other, and where control goes from there."""

    __slots__ = ("instructions", "label", "operands", "successors", "terminator")

    def __init__(self, label: int) -> None:
        self.label = label
        self.instructions: list[Instruction] = []
        self.terminator = "raise"
        self.operands: tuple[Operand, ...] = ()
        self.successors: list[int] = []

    def end(self, kind: str, operands: tuple[Operand, ...] = (), *successors: int) -> None:
        """Say how the block ends."""
        self.terminator, self.operands, self.successors = kind, operands, list(successors)

    def copy(self) -> CodeBlock:
        """The same block, which may be changed."""
        found = CodeBlock(self.label)
        found.end(self.terminator, self.operands, *self.successors)
        found.instructions = list(self.instructions)
        return found


class Parameter(NamedTuple):
    """A component of an argument: its name, its type, the argument's number, its own suffix."""

    name: str
    type: str
    argument: int
    suffix: str
    element: str = ""  # of a pointer
    parts: int = 1  # that each element of an array has there

    @property
    def is_length(self) -> bool:
        """Whether it is the length of an array's dimension."""
        return self.suffix.rpartition(".")[2].startswith("n")

    @property
    def is_imaginary(self) -> bool:
        """Whether it is the second part of a complex number."""
        return self.suffix.endswith(IMAGINARY)


class Code:
    """A whole function under construction."""

    def __init__(self) -> None:
        self.blocks: dict[int, CodeBlock] = {}
        self.entry = 0
        self.types: dict[str, str] = {}
        self.parameters: list[Parameter] = []
        self.result: Any = None  # the front end's type of the result
        self.source = ""  # names of what was inlined and where it stands, for messages
        self.line: SourceLine | None = None  # of what is written
        self._count = 0

    def block(self) -> CodeBlock:
        """A new block."""
        block = CodeBlock(len(self.blocks))
        self.blocks[block.label] = block
        return block

    def name(self, type: str, hint: str = "t") -> str:
        """A fresh name."""
        self._count += 1
        name = f"{hint}#{self._count}"
        self.types[name] = type
        return name

    def fresh(self) -> int:
        """A number that no other part of the code has."""
        self._count += 1
        return self._count

    def type_of(self, x: Operand) -> str:
        """The type of a name or a constant."""
        return x.type if isinstance(x, Constant) else self.types[x]

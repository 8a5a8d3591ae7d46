"""Values, blocks and loops of a function in SSA form."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from tapegrad.njit.three_address_code import CodeBlock, SourceLine

LANES = 8  # trips of an outer loop that are computed side by side; twice as many of short ones


class Value:
    """One value: a constant, a parameter, a phi or the result of an instruction.

    A pointer that leads to something with a derivative has a `shadow`: the pointer to its adjoint.
    In a loop whose trips are side by side, a `varying` value is another one in each lane; a load or
    store with `lanes` is of the places of all of them, one after another.
    """

    __slots__ = (
        "active", "args", "attribute", "block", "id", "lanes", "line", "name", "op", "position",
        "replaced", "shadow", "type", "varying",
    )  # fmt: skip

    def __init__(
        self, id: int, op: str, args: list[Value], type: str, attribute: Any, block: Block | None
    ) -> None:
        self.id, self.op, self.args, self.type = id, op, args, type
        self.attribute = attribute
        self.block = block
        self.position = -1
        self.shadow: Value | None = None
        self.active = self.varying = self.lanes = False
        self.replaced: Value | None = None  # by an equal value
        self.name = ""  # the user's, if there is one
        self.line: SourceLine | None = None

    def __hash__(self) -> int:
        return self.id  # sets have one order in every process, and programs one text

    @property
    def home(self) -> Block:
        """The block that it is computed in."""
        assert self.block is not None
        return self.block

    def __repr__(self) -> str:
        return f"{self.attribute}" if self.op == "const" else f"%{self.id}"


class Block:
    """A block: phis, instructions, how it ends; the innermost loop that it is in."""

    def __init__(self, label: int) -> None:
        self.label = label
        self.code: CodeBlock | None = None
        self.phis: list[Value] = []
        self.instructions: list[Value] = []
        self.terminator = "jump"
        self.operands: list[Value] = []
        self.successors: list[Block] = []
        self.predecessors: list[Block] = []
        self.loop: Loop | None = None
        self.dominator: Block | None = None
        self.index = -1  # in reverse postorder
        self.leaves: Loop | None = None  # the loop that is left by entering the block

    def __hash__(self) -> int:
        return self.label  # see `Value`

    def __repr__(self) -> str:
        return f"b{self.label}"

    @property
    def is_header(self) -> bool:
        """Whether a loop begins here."""
        return self.loop is not None and self.loop.header is self

    def is_of_innermost(self, header: Block) -> bool:
        """Whether the block is in an innermost loop with this header."""
        return self.loop is not None and self.loop.header is header and self.loop.is_innermost


class SharedTrips(NamedTuple):
    """What threads that share the trips of a loop have to add up.

    The `sums` are phis of its header; `copied` are the arrays of whose adjoints each has its own.
    """

    sums: tuple[Value, ...]
    copied: tuple[Value, ...]


class IdlePaths(NamedTuple):
    """The paths of trips that the reverse sweep leaves out.

    All `blocks` on them; of blocks where they meet others, which is the last thing that a trip
    does, the `sources`: the predecessors that are on those others.  The `ends` are the edges on
    which a trip turns out not to be idle, or the loop is left.  A loop `forgets` if nothing that a
    trip hands on has an adjoint before the last trip that is not idle; `most` is how many trips it
    has, if that is known before.
    """

    blocks: frozenset[Block]
    sources: dict[Block, list[Block]]
    ends: list[tuple[Block, Block]]
    forgets: bool
    most: Value | None


class Loop:
    """A loop: one block before it, one that goes back, and a block for each exit."""

    def __init__(self, header: Block) -> None:
        self.header = header
        self.blocks: set[Block] = set()
        self.parent: Loop | None = None
        self.depth = 1
        self.exits: list[Block] = []
        self.preheader = header
        self.latch = header
        self.index = -1
        self.trip: Value | None = None  # the number of this trip
        self.count: Value | None = None  # of trips, if known before and the header is the only exit
        self.trips: dict[Block, Value] = {}  # at each exit, how many trips were made
        self.width = 1  # of the vectors in it
        self.shared: SharedTrips | None = None  # among threads, if they can be
        self.sequential = ""  # why not, if they should be
        # Of a loop whose `trip` is a number among those trips alone that are not idle.
        self.idle_paths: IdlePaths | None = None

    def __hash__(self) -> int:
        return self.header.label  # see `Value`

    def __repr__(self) -> str:
        return f"loop of {self.header}"

    @property
    def number(self) -> Value:
        """The number of this trip."""
        assert self.trip is not None
        return self.trip

    @property
    def is_innermost(self) -> bool:
        """Whether there is no loop in it."""
        return all(b.loop is self for b in self.blocks)

    @property
    def in_lanes(self) -> bool:
        """Whether it runs for all lanes of a loop around it."""
        return self.parent is not None and self.parent.width > 1

    def holds(self, v: Value) -> bool:
        """Whether a value is computed in the loop."""
        return v.op != "const" and v.block is not None and v.block in self.blocks


def dominates(a: Block, b: Block) -> bool:
    """Whether every path to `b` goes through `a`."""
    while b.index > a.index:
        assert b.dominator is not None
        b = b.dominator
    return a is b


class Function:
    """A function in SSA form."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []  # in reverse postorder
        self.loops: list[Loop] = []
        self.values: list[Value] = []
        self.parameters: list[Value] = []
        self.alias_classes: dict[Value, Value] = {}
        self._constants: dict[tuple[Any, str], Value] = {}
        self.sums: set[Value] = set()  # over lanes
        self.lanes = LANES
        # Integers of which each lane has the next one: they are computed wherever they are read.
        self.rows: set[Value] = set()
        # By a store into memory of all trips: whether a lane is a trip.
        self.masked: dict[Value, Value] = {}

    @property
    def entry(self) -> Block:
        """The first block."""
        return self.blocks[0]

    @property
    def last(self) -> Block:
        """The block that returns."""
        return next(b for b in reversed(self.blocks) if b.terminator == "ret")

    @property
    def results(self) -> list[Value]:
        """The components of the result."""
        return self.last.operands

    def value(
        self, op: str, args: list[Value], type: str, attribute: Any = None,
        block: Block | None = None,
    ) -> Value:  # fmt: skip
        """A new value."""
        made = Value(len(self.values), op, args, type, attribute, block)
        self.values.append(made)
        return made

    def const(self, x: Any, type: str) -> Value:
        """A constant."""
        key = (x if type == "ptr" else repr(x), type)
        if key not in self._constants:
            self._constants[key] = self.value("const", [], type, x)
        return self._constants[key]

    def instructions(self) -> Iterator[Value]:
        """All instructions, block by block."""
        for block in self.blocks:
            yield from block.instructions

    def all_values(self) -> Iterator[Value]:
        """All phis and instructions, block by block."""
        for block in self.blocks:
            yield from block.phis
            yield from block.instructions

    def number_positions(self) -> None:
        """Say where in its block each instruction stands."""
        for block in self.blocks:
            for k, v in enumerate(block.instructions):
                v.position = k

    def alias_class(self, pointer: Value) -> Value:
        """The representative of the pointers that may lead to the same memory."""
        found = pointer
        while (above := self.alias_classes.get(found, found)) is not found:
            found = above
        return found

    def written_classes(self, v: Value) -> set[Value]:
        """The classes of memory that an instruction may write into."""
        if v.op == "store":
            return {self.alias_class(v.args[0])}
        if v.op == "call" and v.attribute.writes:
            return {self.alias_class(a) for a in v.args if a.type == "ptr"}
        return set()

    def pointer_origins(self) -> Iterator[tuple[Value, Value]]:
        """Pointers, each with one that it may come from.

        A call may let one lead to what another one does.
        """
        for v in self.all_values():
            origins = [a for a in v.args if a.type == "ptr"]
            if v.op == "call":
                pointers = [*origins, v] if v.type == "ptr" else origins
                if v.attribute.writes or (v.type == "ptr" and not v.attribute.detached):
                    for a, b in pairwise(pointers):
                        yield a, b
                        yield b, a
            elif v.type == "ptr" and v.op != "alloc":
                for a in origins:
                    yield v, a

    def written_pointers(self) -> set[Value]:
        """The pointers through which memory is written into, and all that they may come from."""
        origins: dict[Value, list[Value]] = {}
        for pointer, origin in self.pointer_origins():
            origins.setdefault(pointer, []).append(origin)
        found, pending = set[Value](), list[Value]()
        for v in self.instructions():
            if v.op == "store":
                pending.append(v.args[0])
            elif v.op == "call" and v.attribute.writes:
                pending += [a for a in v.args if a.type == "ptr"]
        while pending:
            pointer = pending.pop()
            if pointer not in found:
                found.add(pointer)
                pending += origins.get(pointer, ())
        return found

    def lengths_of(self, pointer: Value) -> list[Value]:
        """The lengths whose product is the size of an array that is an argument or made here."""
        if pointer.op == "alloc":
            return pointer.args[:1]
        if pointer.op != "arg":
            return []
        own = pointer.attribute
        start = own.suffix.rpartition(".")[0] + ".n"
        parts = [self.const(own.parts, "i64")] if own.parts > 1 else []
        return parts + [
            p for p in self.parameters
            if p.attribute.argument == own.argument and p.attribute.suffix.startswith(start)
        ]  # fmt: skip

    def has_lanes(self, v: Value) -> bool:
        """Whether the adjoint of a value is a vector: what it is, is the sum over the lanes."""
        loop = None if v.block is None or v.op == "const" else v.block.loop
        return loop is not None and loop.width > 1 and v not in self.sums

    def unite(self, a: Value, b: Value) -> None:
        """Two pointers may lead to the same memory."""
        x, y = self.alias_class(a), self.alias_class(b)
        if x is not y:
            self.alias_classes[x] = y

    def __str__(self) -> str:
        lines = []
        for b in self.blocks:
            loop = f" in {b.loop}" if b.loop else ""
            leaves = f", leaves {b.leaves}" if b.leaves else ""
            lines.append(f"{b}: from {b.predecessors}{loop}{leaves}")
            for v in (*b.phis, *b.instructions):
                attribute = "" if v.attribute is None else v.attribute
                star = " *" if v.active else ""
                lines.append(f"   {v}: {v.type} = {v.op} {v.args} {attribute}{star}")
            lines.append(f"   {b.terminator} {b.operands} -> {b.successors}")
        return "\n".join(lines)

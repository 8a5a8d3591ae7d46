"""Equal values become one; pointers that may lead to the same memory form a class.

A load is equal to another from the same place in its block, if nothing was written to memory of the
class in between; where nothing is ever written to it, to any that dominates it.
"""

from __future__ import annotations

from typing import Any

from tapegrad.njit.ssa_form import drop_trivial_phis, resolve_operands, resolved
from tapegrad.njit.values import Block, Function, Value

DEEPEST = 10  # operations that are looked through for a lower bound
COMMUTATIVE = ("iadd", "imul", "band", "bor")


def simplify(function: Function) -> None:
    """Find alias classes, then number the values."""
    find_alias_classes(function)
    _Numbering(function).run()
    drop_trivial_phis(function)
    find_alias_classes(function)
    function.number_positions()


def find_alias_classes(function: Function) -> None:
    """Unite pointers that are made of each other."""
    function.alias_classes = {}
    for pointer, origin in function.pointer_origins():
        function.unite(pointer, origin)


class _Numbering:
    """A walk down the tree of dominators with a table of what is known."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.known: dict[Any, Value] = {}
        self.written = set[Value]().union(*map(function.written_classes, function.instructions()))

    def run(self) -> None:
        """Number all blocks."""
        children: dict[Block, list[Block]] = {b: [] for b in self.function.blocks}
        for block in self.function.blocks[1:]:
            assert block.dominator is not None
            children[block.dominator].append(block)
        stack: list[tuple[Block, list[Any] | None]] = [(self.function.entry, None)]
        while stack:
            block, added = stack.pop()
            if added is not None:  # back from below: forget what is known there alone
                for key in added:
                    del self.known[key]
                continue
            stack.append((block, self._number(block)))
            stack += [(child, None) for child in children[block]]
        resolve_operands(self.function)

    def _number(self, block: Block) -> list[Any]:
        added: list[Any] = []
        versions: dict[Value, int] = {}
        for v in block.instructions:
            v.args = [resolved(a) for a in v.args]
            if v.op in ("store", "call"):
                for memory in self.function.written_classes(v):
                    versions[memory] = versions.get(memory, 0) + 1
                continue
            if v.op == "alloc" or self._simpler(v):
                continue
            key = self._key(v, block, versions)
            found = self.known.get(key)
            if found is not None and _reaches(found, block):
                v.replaced = found
            elif found is None:
                self.known[key] = v
                added.append(key)
        return added

    def _key(self, v: Value, block: Block, versions: dict[Value, int]) -> Any:
        args = [a.id for a in v.args]
        if v.op == "load":
            memory = self.function.alias_class(v.args[0])
            where = (block, versions.get(memory, 0)) if memory in self.written else None
            return "load", *args, v.attribute, where
        if v.op in COMMUTATIVE:
            args.sort()
        return v.op, *args, v.attribute, v.type

    def _simpler(self, v: Value) -> bool:
        """Replace a value by one of its operands, or a constant, where they are equal."""
        constant = all(a.op == "const" for a in v.args)
        if (v.op == "wrap" and _at_least(v.args[0], 0)) or (
            v.op == "require" and constant and v.args[0].attribute
        ):
            v.replaced = v.args[0]
        elif v.op in ("ge", "lt", "eq", "ne") and constant:
            a, b = (x.attribute for x in v.args)
            truth = {"ge": a >= b, "lt": a < b, "eq": a == b, "ne": a != b}[v.op]
            v.replaced = self.function.const(truth, "i1")
        elif v.op == "ge" and v.args[0].type == "i64" and v.args[1].op == "const":
            known = _at_least(v.args[0], v.args[1].attribute)
            v.replaced = self.function.const(True, "i1") if known else None
        elif v.op in ("ifloordiv", "imod") and _at_least(v.args[0], 0) and _at_least(v.args[1], 1):
            v.attribute = "nonnegative"
        return v.replaced is not None


def _reaches(v: Value, block: Block) -> bool:
    """Whether a value's loop is one that the block is in, too."""
    loop = block.loop
    while loop is not v.home.loop:
        if loop is None:
            return False
        loop = loop.parent
    return True


def _at_least(v: Value, x: int) -> bool:
    """Whether an integer is known not to be below a number."""
    least = lower_bound(v)
    return least is not None and least >= x


def lower_bound(v: Value, depth: int = 0, assumed: tuple[Value, ...] = ()) -> int | None:
    """A number that an integer is not below; sums and products do not overflow, as in Numba."""
    v = resolved(v)
    if v.op == "const":
        return int(v.attribute) if v.type in ("i64", "i1") else None
    if v.op == "arg":
        return 0 if v.attribute.is_length else None
    if v in assumed:
        return 0
    if depth > DEEPEST:
        return None
    if v.op == "phi":  # not negative, if that follows for every argument from being so
        below = [lower_bound(a, depth + 1, (*assumed, v)) for a in v.args]
        if any(b is None for b in below):
            return None
        least = min(b for b in below if b is not None)
        return min(least, 0) if least >= 0 else None
    if v.op == "imod":
        divisor = lower_bound(v.args[1], depth + 1, assumed)
        return 0 if divisor is not None and divisor > 0 else None
    if v.op == "cast" and v.args[0].type == "i1":
        return 0
    args = v.args[1:] if v.op == "select" else v.args
    return _of_operands(v, [lower_bound(a, depth + 1, assumed) for a in args])


def _of_operands(v: Value, below: list[int | None]) -> int | None:
    """The lower bound of a result by those of the operands."""
    if v.op == "imax":
        return max((b for b in below if b is not None), default=None)
    if v.op == "iand":
        return 0 if any(b is not None and b >= 0 for b in below) else None
    if v.op == "isub":
        a, b = below[0], resolved(v.args[1])
        return None if a is None or b.op != "const" else a - int(b.attribute)
    if any(b is None for b in below):
        return None
    known = [b for b in below if b is not None]
    if v.op == "iadd":
        return sum(known)
    if v.op in ("imin", "select"):
        return min(known)
    if v.op in ("imul", "ifloordiv", "wrap") and min(known) >= 0:
        return 0
    return None

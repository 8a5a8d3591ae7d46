"""Arrays of which each trip of a loop has one of its own: what is read was written in that trip."""

from __future__ import annotations

from tapegrad.njit.values import Function, Loop, Value, dominates


class Uses:
    """By each value, those of which it is an operand; by the class of memory, what is of it."""

    def __init__(self, function: Function) -> None:
        self.readers: dict[Value, list[Value]] = {}
        self.accesses: dict[Value, list[Value]] = {}  # loads and stores
        self.pointers: dict[Value, list[Value]] = {}
        for v in (*function.all_values(), *function.parameters):
            for a in v.args:
                self.readers.setdefault(a, []).append(v)
            if v.op in ("load", "store"):
                self.accesses.setdefault(function.alias_class(v.args[0]), []).append(v)
            if v.type == "ptr":
                self.pointers.setdefault(function.alias_class(v), []).append(v)


class PrivateMemory:
    """An array that a loop writes into: memory of a class.

    It is `usable` where the function makes it, it is read and written in the loop alone, and each
    trip reads only what it has written before: the array is filled in a loop over its length, or
    an element just written.
    """

    def __init__(self, function: Function, loop: Loop, memory: Value, uses: Uses) -> None:
        self.function, self.loop, self.memory = function, loop, memory
        accesses, pointers = uses.accesses.get(memory, []), uses.pointers[memory]
        self.allocations = [v for v in pointers if v.op == "alloc"]
        self.moved = [v for v in pointers if v.op == "gep"]
        self.accesses = [v for v in accesses if v.home in loop.blocks]
        self.usable = (
            len(self.allocations) + len(self.moved) == len(pointers)
            and len(self.allocations) == 1
            and len(accesses) == len(self.accesses)
            and not any(v in pointers for v in function.results)
            and all(map(self._is_written_before, self.accesses))
        )

    def holds(self, v: Value) -> bool:
        """Whether a load is from that memory."""
        return v.op == "load" and self.function.alias_class(v.args[0]) is self.memory

    def _is_written_before(self, load: Value) -> bool:
        if load.op == "store":
            return True
        (array,) = self.allocations
        if array.home in self.loop.blocks:
            return True
        stores = [s for s in self.accesses if s.op == "store" and s.block is not None]
        return any(self._writes(s, load) or self._fills(s, array, load) for s in stores)

    @staticmethod
    def _writes(store: Value, load: Value) -> bool:
        """Whether a store has written the very element."""
        if store.args[:2] != load.args[:2]:
            return False
        if store.home is load.home:
            return store.position < load.position
        return dominates(store.home, load.home)

    def _fills(self, store: Value, array: Value, load: Value) -> bool:
        """Whether a store in a loop over all of an array comes before a load."""
        loop = store.home.loop
        if loop is None or loop is self.loop or loop.count is None or store.args[0] is not array:
            return False
        count, size = loop.count, array.args[0]
        if count is not size and not (count.op == "imax" and size in count.args):
            return False
        return (
            plain(store.args[1]) is loop.number
            and dominates(store.home, loop.latch)
            and any(dominates(block, load.home) for block in loop.exits)
        )

    def widen(self) -> None:
        """Let each element have a place for every lane."""
        for v in (*self.allocations, *self.moved):
            k = 0 if v.op == "alloc" else 1
            v.args[k] = self._times_lanes(v.args[k], v)
        for v in self.accesses:
            pointer, offset = v.args[0], v.args[1]
            v.args[1] = self._times_lanes(offset, v)
            v.lanes = not (pointer.varying or offset.varying)
            if not v.lanes:
                lane = self._before(v, "lane", [])
                v.args[1] = self._before(v, "iadd", [v.args[1], lane])
                lane.varying = v.args[1].varying = True

    def _times_lanes(self, x: Value, reader: Value) -> Value:
        made = self._before(reader, "imul", [x, self.function.const(self.function.lanes, "i64")])
        made.varying = x.varying
        return made

    @staticmethod
    def _inserted(made: Value, reader: Value) -> Value:
        instructions = reader.home.instructions
        instructions.insert(instructions.index(reader), made)
        return made

    def _before(self, reader: Value, op: str, args: list[Value]) -> Value:
        made = self.function.value(op, args, "i64", "nsw" if args else None, reader.block)
        return self._inserted(made, reader)


def plain(v: Value) -> Value:
    """An index without what adds zero to it or multiplies it by one."""
    while v.op in ("iadd", "imul"):
        neutral = 0 if v.op == "iadd" else 1
        rest = [a for a in v.args if not (a.op == "const" and a.attribute == neutral)]
        if len(rest) != 1:
            break
        (v,) = rest
    return v

"""What the order of stores allows: whether memory still holds what was loaded from it."""

from __future__ import annotations

from tapegrad.njit.values import Block, Function, Value


class MemoryOrder:
    """The stores of a function, and calls that write, by the class of memory that they write."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.stores: dict[Value, list[Value]] = {}
        for v in function.instructions():
            for memory in function.written_classes(v):
                self.stores.setdefault(memory, []).append(v)
        self._between: dict[tuple[Block, Block], set[Block]] = {}

    def of(self, load: Value) -> list[Value]:
        """The stores that may change what a load reads."""
        return self.stores.get(self.function.alias_class(load.args[0]), [])

    def holds(self, load: Value, block: Block, at: int) -> bool:
        """Whether memory holds what was loaded, still, before the instruction at a place."""
        stores, home = self.of(load), load.home
        if home is block:
            return not any(s.home is block and load.position < s.position < at for s in stores)
        between = self.between(home, block) if stores else set()
        for s in stores:
            if s.home in between or (s.home is home and s.position > load.position):
                return False
            if s.home is block and s.position < at:
                return False
        return True

    def between(self, a: Block, b: Block) -> set[Block]:
        """The blocks that may run after `a` and before `b`, without `a` in between."""
        key = (a, b)
        if key not in self._between:
            self._between[key] = _reached(a, a, False) & _reached(b, a, True)
        return self._between[key]

    @staticmethod
    def follows(block: Block, at: int, store: Value) -> bool:
        """Whether a store may run after a place."""
        if store.home is block and store.position >= at:
            return True
        return store.home in _reached(block, None, False)


def _reached(start: Block, barrier: Block | None, back: bool) -> set[Block]:
    """The blocks after a block, or before it, on paths that do not pass a barrier."""
    found: set[Block] = set()
    stack = list(start.predecessors if back else start.successors)
    while stack:
        block = stack.pop()
        if block is not barrier and block not in found:
            found.add(block)
            stack += block.predecessors if back else block.successors
    return found

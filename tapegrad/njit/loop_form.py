"""The blocks of a function in one form: every loop with a block before it, one that goes back, and
a block of its own for every exit.

An edge that leaves several loops at once, as a `return` does, goes through one exit block of each.
"""

from __future__ import annotations

from collections.abc import Iterable

from tapegrad.njit.three_address_code import Code, CodeBlock, Instruction, Unsupported
from tapegrad.njit.values import Block, Loop, dominates

Bodies = dict[Block, set[Block]]  # of loops, by their headers


class ControlFlow:
    """The graph of blocks, brought into that form."""

    def __init__(self, code: Code) -> None:
        made = {label: Block(label) for label in code.blocks}
        for label, raw in code.blocks.items():
            block = made[label]
            block.code, block.terminator = raw.copy(), raw.terminator
            block.successors = [made[s] for s in raw.successors]
        self._labels = len(made)
        self.entry = made[code.entry]
        self.blocks: list[Block] = []
        self.loops: list[Loop] = []
        self.exits: dict[Block, Block] = {}  # exit blocks, by the header of the loop left
        self.order()
        self._merge_chains()
        self._require_what_else_raises(code)
        self._merge_chains()
        if all(block.terminator != "ret" for block in self.blocks):
            raise Unsupported("a function that never returns")
        self._normalise()

    # -- order and dominators ----------------------------------------------------------------

    def order(self) -> None:
        """Put the blocks that are reached in reverse postorder; find who dominates whom."""
        seen, post = {self.entry}, []
        stack = [(self.entry, iter(self.entry.successors))]
        while stack:
            block, rest = stack[-1]
            following = next((s for s in rest if s not in seen), None)
            if following is None:
                post.append(block)
                stack.pop()
            else:
                seen.add(following)
                stack.append((following, iter(following.successors)))
        self.blocks = post[::-1]
        for k, block in enumerate(self.blocks):
            block.index, block.predecessors, block.dominator = k, [], None
        for block in self.blocks:
            for s in block.successors:
                if block not in s.predecessors:
                    s.predecessors.append(block)
        self._find_dominators()

    def _find_dominators(self) -> None:
        """Cooper, Harvey and Kennedy's iteration."""
        self.entry.dominator = self.entry
        changed = True
        while changed:
            changed = False
            for block in self.blocks[1:]:
                found = None
                for p in block.predecessors:
                    if p.dominator is not None:
                        found = p if found is None else _common(p, found)
                if found is not block.dominator:
                    block.dominator, changed = found, True

    # -- the form ----------------------------------------------------------------------------

    def _new(self, *successors: Block) -> Block:
        block = Block(self._labels)
        self._labels += 1
        block.code = CodeBlock(block.label)
        block.successors = list(successors)
        return block

    def _merge_chains(self) -> None:
        """Make one block of two that always follow each other."""
        gone = set()
        for block in self.blocks:
            while block not in gone and block.terminator == "jump":
                (following,) = block.successors
                if len(following.predecessors) != 1 or following in (block, self.entry):
                    break
                assert block.code is not None
                assert following.code is not None
                merged = CodeBlock(block.label)
                merged.instructions = block.code.instructions + following.code.instructions
                merged.operands = following.code.operands
                block.code, block.terminator = merged, following.terminator
                block.successors = following.successors
                for s in following.successors:
                    s.predecessors = [block if p is following else p for p in s.predecessors]
                gone.add(following)
        self.order()

    def _require_what_else_raises(self, code: Code) -> None:
        """Where one side of a branch raises, its condition is required, and there is no branch."""
        for block in reversed(self.blocks):
            assert block.code is not None
            raising = [s.terminator == "raise" for s in block.successors]
            if not any(raising):
                continue
            if all(raising):
                block.terminator, block.successors = "raise", []
                continue
            (condition,) = block.code.operands
            if raising[0]:
                name = code.name("i1")
                block.code.instructions.append(Instruction("not", (condition,), name, "i1"))
                condition = name
            required = Instruction("require", (condition,), None, None)
            block.code.instructions.append(required)
            block.terminator, block.code.operands = "jump", ()
            block.successors = [block.successors[raising.index(False)]]
        self.order()

    def _bodies(self) -> Bodies:
        """The blocks of each loop, by its header."""
        found: Bodies = {}
        for block in self.blocks:
            for s in block.successors:
                if dominates(s, block):
                    body, stack = found.setdefault(s, {s}), [block]
                    while stack:
                        x = stack.pop()
                        if x not in body:
                            body.add(x)
                            stack += x.predecessors
                elif s.index <= block.index:
                    raise Unsupported("a jump into the midst of a loop")
        return found

    def _normalise(self) -> None:
        for header, body in self._bodies().items():
            outside = [p for p in header.predecessors if p not in body]
            latches = [p for p in header.predecessors if p in body]
            for group in (outside, latches):
                if len(group) != 1 or len(group[0].successors) != 1:
                    self._through(self._new(header), header, group)
        self.order()
        self._split_exits()
        self.order()
        self._make_loops()

    def _through(self, via: Block, target: Block, sources: Iterable[Block]) -> None:
        """Send the edges from some blocks to a target through another block."""
        for p in sources:
            p.successors = [via if s is target else s for s in p.successors]

    def _split_exits(self) -> None:
        bodies = self._bodies()
        by_size = sorted(bodies, key=lambda h: len(bodies[h]))
        edges = [(b, s) for b in self.blocks for s in b.successors]
        around: dict[Block, list[Block]] = {b: [] for b in self.blocks}
        for header in by_size:
            for block in bodies[header]:
                around[block].append(header)
        for block, target in edges:
            left = [h for h in around[block] if target not in bodies[h]]
            previous = block
            for header in left:
                leaving = self._new(target)
                self._through(leaving, target, [previous])
                self.exits[leaving] = header
                previous = leaving

    def _make_loops(self) -> None:
        bodies = self._bodies()
        by_size = sorted(bodies, key=lambda h: len(bodies[h]))
        loops = {h: Loop(h) for h in by_size}
        for header in by_size:
            loop = loops[header]
            loop.blocks = bodies[header]
            for block in loop.blocks:
                block.loop = block.loop or loop
            (loop.preheader,) = [p for p in header.predecessors if p not in loop.blocks]
            (loop.latch,) = [p for p in header.predecessors if p in loop.blocks]
        for header in by_size:
            for inner in bodies[header] & loops.keys() - {header}:
                loops[inner].parent = loops[inner].parent or loops[header]
        for header in reversed(by_size):
            loop = loops[header]
            loop.depth = 1 + (loop.parent.depth if loop.parent else 0)
        self._place_exits(loops)
        self.loops = sorted(loops.values(), key=lambda loop: loop.header.index)
        for k, loop in enumerate(self.loops):
            loop.index = k

    def _place_exits(self, loops: dict[Block, Loop]) -> None:
        """An exit of an inner loop by which an outer one is left, too, counts to the outer one."""
        for block, header in self.exits.items():
            loop = loops[header]
            block.leaves = loop
            loop.exits.append(block)
            block.loop = outer = loop.parent
            while outer is not None:
                outer.blocks.add(block)
                outer = outer.parent


def _common(a: Block, b: Block) -> Block:
    """The nearest block that dominates two."""
    while a is not b:
        while a.index > b.index:
            assert a.dominator is not None
            a = a.dominator
        while b.index > a.index:
            assert b.dominator is not None
            b = b.dominator
    return a

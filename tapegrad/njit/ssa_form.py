"""Values of names: static single assignment, after Cytron et al., pruned by liveness.

What is computed in a loop is read after it through a phi in the exit block, so that the values at
the end of each loop have a name of their own (loop-closed form).
"""

from __future__ import annotations

from typing import Any

from tapegrad.njit.loop_form import ControlFlow
from tapegrad.njit.three_address_code import SIDE_EFFECTS, Code, Constant, Operand
from tapegrad.njit.values import Block, Function, Value

Names = dict[Block, set[str]]


def function_of(code: Code) -> Function:
    """The function in SSA form."""
    flow = ControlFlow(code)
    function = Function()
    function.blocks, function.loops = flow.blocks, flow.loops
    _Renaming(function, code).run()
    return function


def resolved(v: Value) -> Value:
    """The value that stands for another by now."""
    while v.replaced is not None:
        v = v.replaced
    return v


class _Renaming:
    """Places phis, then gives each use of a name its value."""

    def __init__(self, function: Function, code: Code) -> None:
        self.function, self.code = function, code
        self.names: dict[Block, dict[str, Value]] = {}  # phis, by name
        self.at_end: dict[Block, dict[str, Value]] = {}

    def run(self) -> None:
        """Place phis and rename."""
        live = self._live()
        self._place_phis(live)
        for block in self.function.blocks:
            self._rename(block, live[block])
        for block in self.function.blocks:
            for name, phi in self.names[block].items():
                phi.args = [self._read(self.at_end[p], name) for p in block.predecessors]
        drop_trivial_phis(self.function)

    def _live(self) -> Names:
        """The names whose values are read after a block's beginning, before they are assigned."""
        read: Names = {}
        self.assigned: Names = {}
        for block in self.function.blocks:
            assert block.code is not None
            reads, assigned = set[str](), set[str]()
            for one in block.code.instructions:
                reads |= {a for a in one.args if isinstance(a, str)} - assigned
                if one.target is not None:
                    assigned.add(one.target)
            reads |= {a for a in block.code.operands if isinstance(a, str)} - assigned
            read[block], self.assigned[block] = reads, assigned
        self.assigned[self.function.entry] |= {p.name for p in self.code.parameters}
        live = {block: set(reads) for block, reads in read.items()}
        changed = True
        while changed:
            changed = False
            for block in reversed(self.function.blocks):
                after = set[str]().union(*(live[s] for s in block.successors))
                found = live[block] | (after - self.assigned[block])
                if len(found) != len(live[block]):
                    live[block], changed = found, True
        return live

    def _place_phis(self, live: Names) -> None:
        frontiers = _frontiers(self.function)
        homes: dict[str, set[Block]] = {}
        for block, names in self.assigned.items():
            for name in names:
                homes.setdefault(name, set()).add(block)
        closed: dict[Block, set[str]] = {}
        for loop in self.function.loops:
            inside = set[str]().union(*(self.assigned[b] for b in loop.blocks))
            for block in loop.exits:
                closed[block] = inside & live[block]
        for block, names in closed.items():
            for name in names:
                homes[name].add(block)
        placed: dict[Block, set[str]] = {b: closed.get(b, set()) for b in self.function.blocks}
        for name, blocks in homes.items():
            pending = list(blocks)
            while pending:
                for block in frontiers[pending.pop()]:
                    if name in live[block] and name not in placed[block]:
                        placed[block].add(name)
                        pending.append(block)
        for block in self.function.blocks:
            found = {}
            for name in sorted(placed[block]):
                phi = self.function.value("phi", [], self.code.types[name], None, block)
                phi.name = _of_user(name)
                block.phis.append(phi)
                found[name] = phi
            self.names[block] = found

    def _rename(self, block: Block, live: set[str]) -> None:
        assert block.code is not None
        assert block.dominator is not None
        above = self.at_end.get(block.dominator, {})
        now = {name: above[name] for name in live if name in above}
        if block is self.function.entry:
            for p in self.code.parameters:
                v = self.function.value("arg", [], p.type, p, block)
                self.function.parameters.append(v)
                now[p.name] = v
        now |= self.names[block]
        for one in block.code.instructions:
            args = [self._read(now, a) for a in one.args]
            if one.op == "copy":
                assert one.target is not None
                now[one.target] = args[0]
                args[0].name = args[0].name or _of_user(one.target)
                continue
            v = self.function.value(one.op, args, one.type or "", one.attribute, block)
            v.line = one.line
            block.instructions.append(v)
            if one.target is not None:
                now[one.target] = v
        block.operands = [self._read(now, a) for a in block.code.operands]
        self.at_end[block] = now

    def _read(self, now: dict[str, Value], x: Operand) -> Value:
        if isinstance(x, Constant):
            return self.function.const(_normal(x), x.type)
        if x not in now:
            now[x] = self.function.value("undef", [], self.code.types[x], x)
        return now[x]


def _of_user(name: str) -> str:
    """The user's name of a variable, or of a length: no function in front, no component behind."""
    if "$" in name or "#" in name:
        return ""
    _, variable, *rest = name.split(".")
    if rest and rest[-1][0] in ("n", "s"):
        variable += f".{'shape' if rest[-1][0] == 'n' else 'strides'}[{rest[-1][1:]}]"
    return variable


def _normal(x: Constant) -> Any:
    """A constant's value as Python's, in its type."""
    if x.type == "ptr":
        return x.value
    return {"f64": float, "f32": float, "i1": bool}.get(x.type, int)(x.value)


def _frontiers(function: Function) -> dict[Block, set[Block]]:
    """The dominance frontier of each block."""
    found: dict[Block, set[Block]] = {b: set() for b in function.blocks}
    for block in function.blocks:
        if len(block.predecessors) > 1:
            for p in block.predecessors:
                while p is not block.dominator:
                    found[p].add(block)
                    assert p.dominator is not None
                    p = p.dominator
    return found


def drop_trivial_phis(function: Function) -> None:
    """Replace phis that have one value, and drop what no instruction reads."""
    changed = True
    while changed:
        changed = False
        for block in function.blocks:
            for phi in block.phis:
                if phi.replaced is None and (same := _only_value(phi)) is not None:
                    phi.replaced, changed = same, True
    resolve_operands(function)
    drop_unread(function)


def _only_value(phi: Value) -> Value | None:
    """The one value that a phi has, unless the phi closes the loop of that value."""
    values = {resolved(a) for a in phi.args} - {phi}
    if len(values) != 1:
        return None
    (same,) = values
    leaves = phi.home.leaves
    return None if leaves is not None and leaves.holds(same) else same


def resolve_operands(function: Function) -> None:
    """Let all operands be the values that stand for them."""
    for block in function.blocks:
        block.phis = [p for p in block.phis if p.replaced is None]
        block.instructions = [v for v in block.instructions if v.replaced is None]
        for v in (*block.phis, *block.instructions):
            v.args = [resolved(a) for a in v.args]
        block.operands = [resolved(a) for a in block.operands]


def drop_unread(function: Function) -> None:
    """Drop the phis and instructions that nothing reads."""
    live: set[Value] = set()
    stack: list[Value] = []
    for block in function.blocks:
        stack += block.operands
        stack += [v for v in block.instructions if v.op in SIDE_EFFECTS]
    while stack:
        v = stack.pop()
        if v not in live:
            live.add(v)
            stack += v.args
    for block in function.blocks:
        block.phis = [v for v in block.phis if v in live]
        block.instructions = [v for v in block.instructions if v in live]

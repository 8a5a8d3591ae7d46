"""Find the lists of a function that grow, and all the names that each has.

What a list holds lies in memory that is made anew as it grows, so that all names of it have to lead
to one pointer and one length.  A list that grows is made at one place of the function, and is gone
when it is made there again; it does not grow while a loop runs over it.
"""

from __future__ import annotations

import heapq
from typing import Any, NamedTuple

from numba.core import analysis

from tapegrad.njit.numba_front.components import is_opaque
from tapegrad.njit.numba_front.objects import NumbaIR, NumbaType, ir, types
from tapegrad.njit.numba_front.typed_ir import TypedFunction

COPYING: tuple[Any, ...] = (list, sorted)  # what gives a list of the same elements
GROWING = ("append", "extend", "pop")
HEAP_FUNCTIONS: tuple[Any, ...] = (
    heapq.heapify, heapq.heappush, heapq.heappop, heapq.heapreplace,
)  # fmt: skip
GROWING_HEAPS = (heapq.heappush, heapq.heappop)
READING = ("cast", "getiter", "getattr", "iternext")  # expressions of one `value`


class GrowingLists(NamedTuple):
    """By the name of a variable, the name that its list was made under; or why it cannot grow."""

    names: dict[str, str]
    refused: dict[str, str]


def growing_lists(typed: TypedFunction) -> GrowingLists:
    """The lists of a function that grow."""
    return _Search(typed).found()


class _Search:
    """A walk through the blocks, and what it sees of lists."""

    def __init__(self, typed: TypedFunction) -> None:
        self.typed = typed
        self.above: dict[str, str] = {}  # names of the same list
        self.made: dict[str, list[tuple[int, Any]]] = {}  # by name: where, and how
        self.attributes: dict[str, NumbaIR] = {}
        self.grown: list[tuple[str, int]] = []  # a name, and the block
        self.handed_on: list[str] = []  # to where they may have other names
        self.iterators: dict[str, str] = {}  # by name: a list's
        self.steps: list[tuple[str, int]] = []  # an iterator, and the block that asks it
        for label, block in typed.blocks.items():
            for s in block.body:
                if isinstance(s, ir.Assign):
                    self._look(s.target.name, s.value, label)

    def _is_list(self, name: str) -> bool:
        t = self.typed.types.get(name)
        return isinstance(t, types.List) and not is_opaque(t)

    def _look(self, target: str, value: NumbaIR, label: int) -> None:
        """Note what one assignment does with lists."""
        expression = value.op if isinstance(value, ir.Expr) else ""
        source = value.value if expression in READING else value
        copies = isinstance(value, ir.Var) or expression == "cast"
        if self._is_list(target) and copies:
            self.above[self._root(target)] = self._root(source.name)
        elif expression == "inplace_binop" and self._is_list(value.lhs.name):  # the same list
            self.above[self._root(target)] = self._root(value.lhs.name)
            self.grown.append((target, label))
        elif self._is_list(target):
            self.made.setdefault(target, []).append((label, value))
        elif isinstance(source, ir.Var) and (copies or expression == "getiter"):
            if self._is_list(source.name) or source.name in self.iterators:
                self.iterators[target] = self.iterators.get(source.name, source.name)
        elif expression == "getattr" and value.attr in GROWING and self._is_list(source.name):
            self.attributes[target] = source
        elif expression == "iternext" and source.name in self.iterators:
            self.steps.append((self.iterators[source.name], label))
        if expression == "call":
            self._look_at_call(target, value, label)
        elif expression == "build_tuple":
            self.handed_on += [a.name for a in value.items if self._is_list(a.name)]

    def _look_at_call(self, target: str, call: NumbaIR, label: int) -> None:
        if call.func.name in self.attributes:
            self.grown.append((self.attributes[call.func.name].name, label))
        f = getattr(self.typed.types[call.func.name], "typing_key", None)
        if f in GROWING_HEAPS and self._is_list(call.args[0].name):
            self.grown.append((call.args[0].name, label))
        for a in (*call.args, *(a for _, a in call.kws)):
            if self._is_list(a.name):
                self.iterators[target] = a.name  # it may be `enumerate` or `zip`
                if f not in COPYING and _holds_list(self.typed.types[target]):
                    self.handed_on.append(a.name)

    def _root(self, name: str) -> str:
        while (above := self.above.get(name, name)) != name:
            name = above
        return name

    def found(self) -> GrowingLists:
        """The names of lists that grow."""
        names: dict[str, str] = {}
        refused: dict[str, str] = {}
        if not self.grown:
            return GrowingLists(names, refused)
        self.graph = analysis.compute_cfg_from_blocks(self.typed.blocks)
        uses = analysis.compute_use_defs(self.typed.blocks)
        live = analysis.compute_live_map(self.graph, self.typed.blocks, uses.usemap, uses.defmap)
        for root in dict.fromkeys(self._root(name) for name, _ in self.grown):
            members = [n for n in self.typed.types if self._is_list(n) and self._root(n) == root]
            made = [(n, *how) for n in members for how in self.made.get(n, [])]
            reason = self._reason(root, members, made, live)
            for n in members:
                if reason:
                    refused[n] = reason
                else:
                    names[n] = made[0][0]
        return GrowingLists(names, refused)

    def _reason(self, root: str, members: list[str], made: list[Any], live: Any) -> str:
        """Why a list cannot grow, if it cannot."""
        if len(made) != 1 or isinstance(made[0][2], ir.Arg):
            return "of a caller" if len(made) == 1 else "that may be one of several"
        if any(self._root(name) == root for name in self.handed_on):
            return "that a tuple or a result of a call may hold"
        if live[made[0][1]] & set(members):
            return "that is read after another one has been made in its place"
        for iterator, header in self.steps:
            loop = self.graph.loops().get(header)
            inside = set() if loop is None else loop.body
            if self._root(iterator) == root:
                for name, block in self.grown:
                    if self._root(name) == root and block in inside:
                        return "while a loop runs over it"
        return ""


def _holds_list(t: NumbaType) -> bool:
    """Whether a type is that of a list, or of a tuple with one."""
    return (isinstance(t, types.List) and not is_opaque(t)) or (
        isinstance(t, types.BaseTuple) and any(map(_holds_list, t))
    )

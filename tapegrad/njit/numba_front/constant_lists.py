"""Find lists of arrays or tuples that are written out and never change: these are tuples here."""

from __future__ import annotations

from typing import Any

from numba.core.dispatcher import Dispatcher
from numba.core.inline_closurecall import length_of_iterator

from tapegrad.njit.numba_front.components import is_opaque
from tapegrad.njit.numba_front.objects import NumbaIR, NumbaType, ir, types
from tapegrad.njit.numba_front.typed_ir import TypedFunction

# What changes a list, methods and functions of `heapq`: what calls one may get no tuple for it.
_CHANGING = {
    "append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort",
    "heapify", "heappop", "heappush", "heappushpop", "heapreplace",
}  # fmt: skip


def constant_lists(typed: TypedFunction) -> dict[str, NumbaType]:
    """By the names of such lists, and of iterators over them, the types that they have here."""
    return _Search(typed).found()


def only_reads_lists(f: Dispatcher) -> bool:
    """Whether a function calls nothing that changes a list."""
    return _CHANGING.isdisjoint(f.py_func.__code__.co_names)


class _Search:
    """The assignments of a function, and the lists that are left."""

    def __init__(self, typed: TypedFunction) -> None:
        self.typed = typed
        blocks = typed.blocks.values()
        self.statements = [s for b in blocks for s in b.body if not isinstance(s, ir.Del)]
        made: dict[str, list[NumbaIR]] = {}
        for s in self.statements:
            if isinstance(s, ir.Assign):
                made.setdefault(s.target.name, []).append(s.value)
        self.made = {name: values[0] for name, values in made.items() if len(values) == 1}
        self.types: dict[str, NumbaType] = {}
        self.roots: dict[str, set[str]] = {}  # by a name, the lists that it leads to

    def found(self) -> dict[str, NumbaType]:
        """The types of what is left when all that may change has been left out."""
        lists = {n for n, value in self.made.items() if self._is_written_out(n, value)}
        changed = lists
        while changed:
            self._follow(lists)
            changed = {
                root for s in self.statements for v in s.list_vars()
                for root in self.roots.get(v.name, ()) if not self._only_reads(s, v.name)
            }  # fmt: skip
            lists -= changed
        return self.types if lists else {}

    def _is_written_out(self, name: str, value: NumbaIR) -> bool:
        if getattr(value, "op", None) != "build_list" or not value.items:
            return False
        t: NumbaType = self.typed.types[name]
        return isinstance(t.dtype, types.Array | types.BaseTuple) and not is_opaque(t.dtype)

    def _follow(self, lists: set[str]) -> None:
        """Find the names of lists, and of iterators over them, and their types."""
        known = self.typed.types
        self.types = {n: types.UniTuple(known[n].dtype, len(self.made[n].items)) for n in lists}
        self.roots, count = {n: {n} for n in lists}, -1
        while len(self.types) > count:
            count = len(self.types)
            for name, value in self.made.items():
                of = [v.name for v in _sources(value)]
                roots = {root for n in of for root in self.roots.get(n, ())}
                t = self._type_of(value, of) if roots and name not in self.types else None
                if t is not None:
                    self.types[name], self.roots[name] = t, roots

    def _type_of(self, value: NumbaIR, of: list[str]) -> Any:
        """The type of a second name of a list, or of an iterator over lists."""
        first, *more = [self.types.get(n) or self.typed.types[n] for n in of]
        if isinstance(value, ir.Var) or value.op == "cast":
            return first
        if value.op == "getiter":
            return first.iterator_type
        key = getattr(self.typed.types[value.func.name], "typing_key", None)
        if key is zip:
            return types.ZipType([first, *more])
        return types.EnumerateType(first) if key is enumerate and not more else None

    def _only_reads(self, s: NumbaIR, name: str) -> bool:
        """Whether a statement leaves what a name stands for as it is, and names it no more."""
        if not isinstance(s, ir.Assign) or s.target.name in self.types:
            return isinstance(s, ir.Assign)
        value = s.value
        if getattr(value, "op", None) == "call":
            f = self.typed.types[value.func.name]
            if isinstance(f, types.Dispatcher):
                return only_reads_lists(f.dispatcher)
            return getattr(f, "typing_key", None) in (len, length_of_iterator)
        if getattr(value, "op", None) in ("getitem", "static_getitem"):
            is_part = not isinstance(self.typed.types[s.target.name], types.List)
            return is_part and value.value.name == name
        return getattr(value, "op", None) == "iternext"


def _sources(value: NumbaIR) -> list[NumbaIR]:
    """The variables of which another one is a second name, or an iterator."""
    if isinstance(value, ir.Var):
        return [value]
    if not isinstance(value, ir.Expr):
        return []
    if value.op in ("cast", "getiter"):
        return [value.value]
    return list(value.args) if value.op == "call" and not value.kws else []

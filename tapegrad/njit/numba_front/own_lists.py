"""Find lists of `numba.typed` that hold floats and that a function keeps to itself.

Here they are lists like those that are written `[]`, which are differentiated.  All others are left
to Numba.
"""

from __future__ import annotations

from typing import Any

from tapegrad.njit.numba_front.constant_lists import only_reads_lists
from tapegrad.njit.numba_front.growing_lists import GROWING, growing_lists
from tapegrad.njit.numba_front.objects import NumbaIR, NumbaType, ir, types
from tapegrad.njit.numba_front.typed_ir import TypedFunction

_READERS: tuple[Any, ...] = (len, sum, min, max, bool, enumerate)


def makes_typed_list(f: NumbaType) -> bool:
    """Whether a call of a function of some type is `List(...)` or `List.empty_list(...)`."""
    return isinstance(getattr(f, "this", f), types.TypeRef)


def typed_lists(typed: TypedFunction) -> dict[str, NumbaType]:
    """By the names of such lists, of iterators over them and of methods, their types here."""
    if not any(map(_is_typed, typed.types.values())):
        return {}
    return _Search(typed).found()


def _is_typed(t: NumbaType) -> bool:
    return isinstance(t, types.ListType) and isinstance(t.item_type, types.Float)


class _Search:
    """The assignments of a function, and the lists that are left."""

    def __init__(self, typed: TypedFunction) -> None:
        self.typed, self.known = typed, typed.types
        blocks = typed.blocks.values()
        self.statements = [s for b in blocks for s in b.body if not isinstance(s, ir.Del)]
        self.methods = {
            s.target.name: s.value.value.name for s in self.statements
            if isinstance(s, ir.Assign) and getattr(s.value, "op", None) == "getattr"
        }  # fmt: skip
        self.above: dict[str, str] = {}  # names of the same list, or of one that extends it
        for s in self.statements:
            if (source := _copied(s)) is not None and _is_typed(self.known[s.target.name]):
                self.above[self._root(s.target.name)] = self._root(source)
            for one, other in self._extended(s):
                self.above[self._root(other)] = self._root(one)

    def _root(self, name: str) -> str:
        while (above := self.above.get(name, name)) != name:
            name = above
        return name

    def _extended(self, s: NumbaIR) -> list[tuple[str, str]]:
        """The list whose method a statement calls, and another one that is given to it."""
        value = getattr(s, "value", None)
        if not isinstance(value, ir.Expr) or value.op != "call":
            return []
        one = self.methods.get(value.func.name, "")
        lists = [a.name for a in value.args if _is_typed(self.known[a.name])]
        return [(one, other) for other in lists if _is_typed(self.known.get(one))]

    def found(self) -> dict[str, NumbaType]:
        """The types of what is left when all that may be known elsewhere has been left out."""
        lists = {name for name, t in self.known.items() if _is_typed(t)}
        bad = {
            self._root(v.name) for s in self.statements for v in s.list_vars()
            if v.name in lists and not self._is_list_of_its_own(s, v.name)
        }  # fmt: skip
        here = self._types({n for n in lists if self._root(n) not in bad})
        try:
            self.typed.types = self.known | here
            bad |= {self._root(name) for name in growing_lists(self.typed).refused if name in lists}
        finally:
            self.typed.types = self.known
        return self._types({n for n in lists if self._root(n) not in bad})

    def _types(self, lists: set[str]) -> dict[str, NumbaType]:
        """The types of lists, of their methods, and of iterators over them."""
        found: dict[str, NumbaType] = {n: types.List(self.known[n].item_type) for n in lists}
        count = -1
        while len(found) > count:
            count = len(found)
            for s in self.statements:
                if isinstance(s, ir.Assign) and s.target.name not in found:
                    t = self._type_of(s, found)
                    if t is not None:
                        found[s.target.name] = t
        return found

    def _type_of(self, s: NumbaIR, found: dict[str, NumbaType]) -> NumbaType | None:
        """The type of a method of a list, or of an iterator."""
        source, value = _copied(s), s.value
        if source is not None:
            return found.get(source)
        if not isinstance(value, ir.Expr):
            return None
        if value.op == "call" and self._key(value) is enumerate and value.args[0].name in found:
            return types.EnumerateType(found[value.args[0].name])
        if value.op not in ("getattr", "getiter") or value.value.name not in found:
            return None
        base = found[value.value.name]
        if value.op == "getiter":
            return base.iterator_type
        return types.BoundFunction(self.known[s.target.name].template, base)

    def _key(self, call: NumbaIR) -> Any:
        return getattr(self.known[call.func.name], "typing_key", None)

    def _is_list_of_its_own(self, s: NumbaIR, name: str) -> bool:
        """Whether a statement makes a list, or does with it what is known here."""
        if isinstance(s, ir.SetItem | ir.StaticSetItem):
            at = s.index_var if isinstance(s, ir.StaticSetItem) else s.index
            return s.target.name == name and isinstance(self.known[at.name], types.Integer)
        if not isinstance(s, ir.Assign):
            return False
        value = s.value
        if s.target.name == name:
            return _copied(s) is not None or self._makes(value)
        if isinstance(value, ir.Var):
            return True
        op = value.op if isinstance(value, ir.Expr) else ""
        if op in ("getitem", "static_getitem"):
            return not _is_typed(self.known[s.target.name])
        if op == "getattr":
            return value.attr in GROWING
        if op == "call" and not isinstance(f := self.known[value.func.name], types.Dispatcher):
            return self._key(value) in _READERS or bool(self._extended(s))
        if op == "call":
            return not _is_typed(self.known[s.target.name]) and only_reads_lists(f.dispatcher)
        return op in ("getiter", "cast")

    def _makes(self, value: NumbaIR) -> bool:
        """Whether an expression makes a list: an empty one, or of the elements of another."""
        if getattr(value, "op", None) != "call" or not makes_typed_list(
            self.known[value.func.name]
        ):
            return False
        given = [self.known[a.name] for a in value.args]
        empty = isinstance(self.known[value.func.name], types.BoundFunction)
        return empty or all(isinstance(t, types.List | types.Array) for t in given)


def _copied(s: NumbaIR) -> str | None:
    """The variable of which an assignment makes another name, if it does."""
    value = getattr(s, "value", None)
    if isinstance(s, ir.Assign) and isinstance(value, ir.Expr) and value.op == "cast":
        value = value.value
    return value.name if isinstance(s, ir.Assign) and isinstance(value, ir.Var) else None

"""Find lists that a function keeps to itself, of types that are left to Numba elsewhere.

Lists of `numba.typed` that hold floats are lists like those that are written `[]` here; lists of
tuples of numbers, some of them floats, hold these one after the other.
"""

from __future__ import annotations

from typing import Any

from tapegrad.njit.numba_front.components import ListOfRows, components, is_number
from tapegrad.njit.numba_front.constant_lists import only_reads_lists
from tapegrad.njit.numba_front.growing_lists import GROWING, HEAP_FUNCTIONS, growing_lists
from tapegrad.njit.numba_front.objects import NumbaIR, NumbaType, ir, types
from tapegrad.njit.numba_front.typed_ir import TypedFunction
from tapegrad.njit.three_address_code import FLOATS

_READERS: tuple[Any, ...] = (len, sum, min, max, bool, enumerate, *HEAP_FUNCTIONS)
_READERS_OF_ROWS: tuple[Any, ...] = (len, bool, enumerate, *HEAP_FUNCTIONS)
_METHODS_OF_ROWS = ("append", "pop", "sort")


def makes_typed_list(f: NumbaType) -> bool:
    """Whether a call of a function of some type is `List(...)` or `List.empty_list(...)`."""
    return isinstance(getattr(f, "this", f), types.TypeRef)


def own_lists(typed: TypedFunction) -> dict[str, NumbaType]:
    """By the names of such lists, of iterators over them and of methods, their types here."""
    if not any(map(_is_known, typed.types.values())):
        return {}
    return _Search(typed).found()


def _is_known(t: NumbaType) -> bool:
    """Whether a list of some type may be followed."""
    is_typed = isinstance(t, types.ListType) and isinstance(t.item_type, types.Float)
    return is_typed or _holds_rows(t)


def _holds_rows(t: NumbaType) -> bool:
    """Whether a type is that of a list of tuples of numbers, of which one is a float."""
    if not isinstance(t, types.ListType | types.List):
        return False
    row = _item_of(t)
    if not isinstance(row, types.BaseTuple) or not _is_row(row):
        return False
    return any(kind in FLOATS for _, kind in components(row))


def _is_row(t: NumbaType) -> bool:
    """Whether a type is that of a number, or of a tuple of numbers and such tuples."""
    return all(map(_is_row, t)) if isinstance(t, types.BaseTuple) else is_number(t)


def _item_of(t: NumbaType) -> NumbaType:
    return t.item_type if isinstance(t, types.ListType) else t.dtype


def _type_here(t: NumbaType) -> NumbaType:
    """The type that a list has here."""
    return ListOfRows(_item_of(t)) if _holds_rows(t) else types.List(_item_of(t))


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
            if (source := _copied(s)) is not None and _is_known(self.known[s.target.name]):
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
        lists = [a.name for a in value.args if _is_known(self.known[a.name])]
        return [(one, other) for other in lists if _is_known(self.known.get(one))]

    def found(self) -> dict[str, NumbaType]:
        """The types of what is left when all that may be known elsewhere has been left out."""
        lists = {name for name, t in self.known.items() if _is_known(t)}
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
        found: dict[str, NumbaType] = {n: _type_here(self.known[n]) for n in lists}
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
        rows = _holds_rows(self.known[name])
        if op in ("getitem", "static_getitem"):
            return not _is_known(self.known[s.target.name])
        if op == "getattr":
            return value.attr in (_METHODS_OF_ROWS if rows else GROWING)
        if op == "call" and rows:
            return self._key(value) in _READERS_OF_ROWS
        if op == "call" and isinstance(f := self.known[value.func.name], types.Dispatcher):
            return not _is_known(self.known[s.target.name]) and only_reads_lists(f.dispatcher)
        if op == "call":
            return self._key(value) in _READERS or bool(self._extended(s))
        return op in ("getiter", "cast")

    def _makes(self, value: NumbaIR) -> bool:
        """Whether an expression makes a list: an empty one, or of some elements."""
        if not isinstance(value, ir.Expr) or value.op != "call":
            return getattr(value, "op", None) == "build_list"
        f = self.known[value.func.name]
        if not makes_typed_list(f):
            return self._key(value) is list and not value.args
        given = [self.known[a.name] for a in value.args]
        return isinstance(f, types.BoundFunction) or all(_is_followed(t) for t in given)


def _is_followed(t: NumbaType) -> bool:
    """Whether a value is a vector of numbers, or a list of numbers that is written `[]`."""
    return isinstance(t, types.List | types.Array) and is_number(t.dtype)


def _copied(s: NumbaIR) -> str | None:
    """The variable of which an assignment makes another name, if it does."""
    value = getattr(s, "value", None)
    if isinstance(s, ir.Assign) and isinstance(value, ir.Expr) and value.op == "cast":
        value = value.value
    return value.name if isinstance(s, ir.Assign) and isinstance(value, ir.Var) else None

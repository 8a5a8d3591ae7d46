"""Statements that are left to Numba: it compiles them, and the sweeps call what it has made.

What such a statement computes has no derivative here.  It runs once, in the forward sweep.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import Any

import numpy as np
from numba.core import analysis, registry
from numba.stencils.stencil import StencilFunc

from tapegrad.kernels.flags import from_python
from tapegrad.njit.numba_front import array_library
from tapegrad.njit.numba_front.array_calls import name_of_method
from tapegrad.njit.numba_front.components import array_of, components, element_of, is_opaque, scalar
from tapegrad.njit.numba_front.heaps import Heaps
from tapegrad.njit.numba_front.objects import NumbaIR, NumbaType, ir, types
from tapegrad.njit.numba_front.outlined_code import Statement, outlined
from tapegrad.njit.numba_front.typed_ir import GENERATOR, TRY, TRYING
from tapegrad.njit.numba_front.writer import Found, Operands
from tapegrad.njit.three_address_code import FLOATS, Call, Operand, Unsupported

# Expressions that belong to control flow, and are no statements of their own.
_CONTROL = ("getiter", "iternext", "pair_first", "pair_second", "undef", "null", "phi")
_STATEMENTS = (ir.SetItem, ir.StaticSetItem, ir.SetAttr, ir.DelItem, ir.Print)
_KNOWN = (ir.Const, ir.Global, ir.FreeVar)  # values that never change
_READERS = ("get", "keys", "values", "items", "copy", "count", "index")  # methods
_WRITERS = ("copyto", "fill_diagonal", "put", "put_along_axis", "place", "putmask")  # of NumPy's
_SEQUENCES = (types.Array, types.Sequence, types.ListType, types.UnicodeType)
_PURE = ("builtins", "math", "cmath", "operator", "_operator", StencilFunc.__module__)  # modules


@from_python
def collected(items):  # type: ignore[no-untyped-def]
    """A list of what a loop would give."""
    return [x for x in items]  # noqa: C416


@from_python
def length(items):  # type: ignore[no-untyped-def]
    """How many there are."""
    return len(items)


@from_python
def item(items, k):  # type: ignore[no-untyped-def]
    """The one at a place."""
    return items[k]


def _is_decision(result: NumbaType, given: Iterable[NumbaType]) -> bool:
    """Whether an array of integers or booleans is made of floats, and is no view of any."""
    smooth = types.Float | types.Complex
    if not isinstance(result, types.Array) or isinstance(result.dtype, smooth):
        return False
    held = (t for t in given if components(t) and scalar(t) is None)
    return not is_opaque(result) and all(
        isinstance(t, types.Array) and isinstance(t.dtype, types.Float) for t in held
    )


def _is_new(result: NumbaType, given: Iterable[NumbaType]) -> bool:
    """Whether an array of floats is made of numbers, or by a random generator."""
    if not isinstance(result, types.Array) or is_opaque(result) or element_of(result) not in FLOATS:
        return False
    generator = types.NumPyRandomGeneratorType
    held = (getattr(t, "this", t) for t in given)
    return not any(
        kind == "ptr" for t in held if not isinstance(t, generator) for _, kind in components(t)
    )


class Outlining(Heaps):
    """Writes calls of statements that Numba compiles."""

    at: int  # the block that is written

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.items_of: dict[NumbaType, NumbaType] = {}  # by the iterator, of what it takes them
        self.sources: dict[str, NumbaIR] = {}  # what a variable is first assigned

    def outline(self, s: NumbaIR, refusal: str) -> None:
        """A statement; `refusal` is what is said where it would have a derivative."""
        value = s.value if isinstance(s, ir.Assign) else s
        known = isinstance(value, _KNOWN)
        if not (known or self._is_whole(value)):
            raise Unsupported(refusal)
        target = s.target if isinstance(s, ir.Assign) else None
        given: dict[str, NumbaIR] = {}
        body = [*self._definitions(value, given), s]
        if not self.elided.isdisjoint(given):
            raise Unsupported(refusal)
        if any(isinstance(self.type(v), types.Generator) for v in given.values()):
            error = Unsupported(GENERATOR)
            error.explains = True
            raise error
        for record in (getattr(self.type(v), "dtype", None) for v in given.values()):
            if isinstance(record, types.Record) and target is not None:
                self._require_even(record, self.type(target))
        statement = Statement(
            tuple(body), tuple(given.values()), target, self.typed.types, self.typed.calls,
            self.typed.divides_as_numpy, self.typed.checks_bounds,
        )  # fmt: skip
        writes, effects = self._effects(value)
        args = [x for v in given.values() for x in self.names(v)]
        result = types.none if target is None else self.type(target)
        detached = (
            not writes and not effects and _is_decision(result, map(self.type, given.values()))
        )
        ops = self._called(statement, args, writes, effects, refusal, known, detached)
        if target is not None and components(result):
            found = ops, result
            if _is_new(result, map(self.type, given.values())):
                # A copy, which has an adjoint if something with a derivative is written into it.
                found = self.laid_out(self.inline(array_library.copied(result), [found]), result)
            self.assign(target, found)

    @staticmethod
    def _require_even(record: NumbaType, t: NumbaType) -> None:
        """Refuse fields of records that do not lie a number of elements apart."""
        if isinstance(t, types.Array) and not is_opaque(t) and t.layout != "C":
            size = t.dtype.bitwidth // 8 if t.dtype != types.boolean else 1
            if record.size % size:
                error = Unsupported(
                    f"a field of {size} bytes of records of {record.size}: align them"
                )
                error.explains = True
                raise error

    def calls_function(self, s: NumbaIR) -> bool:
        """Whether a statement calls a function of the user's, which may be left to Numba as one."""
        value = s.value if isinstance(s, ir.Assign) else None
        if not isinstance(value, ir.Expr) or value.op != "call":
            return False
        return isinstance(self.type(value.func), types.Dispatcher)

    def _is_whole(self, value: NumbaIR) -> bool:
        """Whether a statement or an expression means the same in a function of its own."""
        if not isinstance(value, ir.Expr):
            return isinstance(value, _STATEMENTS)
        if value.op != "call":
            return value.op not in _CONTROL
        f = self.type(value.func)
        module = getattr(getattr(f, "typing_key", None), "__module__", "")
        return not isinstance(f, types.RecursiveCall) and module != TRYING

    def _definitions(self, x: NumbaIR, given: dict[str, NumbaIR]) -> list[NumbaIR]:
        """The definitions of slices that are read; all else that is read is added to `given`."""
        found: list[NumbaIR] = []
        own = {x.target.name} if isinstance(x, ir.Assign) else set()
        for v in x.list_vars() if hasattr(x, "list_vars") else ():
            if v.name in own or v.name in given:
                continue
            if isinstance(self.type(v), types.SliceType):
                made = ir.Assign(self.definitions[v.name], v, v.loc)
                found += [*self._definitions(made, given), made]
            else:
                given[v.name] = v
        return found

    def _called(
        self, statement: Statement, args: Operands, writes: bool, effects: bool, refusal: str,
        once: bool, detached: bool = False,
    ) -> Operands:  # fmt: skip
        """The words that a call gives; `once`: it is made at the beginning of the function."""
        if self.unwind is not None and not once:
            error = Unsupported(f"{TRY}: what Numba compiles by itself is not handled")
            error.explains = True
            raise error
        found = outlined(statement)
        call = Call(*found, writes, effects, refusal, detached)
        here = self.current
        if once:
            self.current = self.code.blocks[self.code.entry]
        ops: Operands = []
        result = statement.result
        kinds = [] if result is None else components(statement.types[result.name])
        if not kinds:
            self.effect("call", *args, attribute=call)
        elif not call.bytes:
            ops = [self.emit("call", args, kinds[0][1], call)]
        else:
            box = self.emit("call", args, "ptr", call)
            ops = [self.emit("word", [box], kind, k) for k, (_, kind) in enumerate(kinds)]
        self.current = here
        return ops

    def _effects(self, value: NumbaIR) -> tuple[bool, bool]:
        """Whether a statement writes into memory, and whether the next time it does the same."""
        if isinstance(value, ir.Print):
            return False, True
        if not isinstance(value, ir.Expr):
            return not isinstance(value, _KNOWN), False
        if value.op != "call":
            return value.op == "inplace_binop", False
        f = self.type(value.func)
        if isinstance(f, types.TypeRef):  # makes an empty list or dictionary
            return False, False
        if isinstance(f, types.BoundFunction):
            if isinstance(f.this, types.NumPyRandomGeneratorType):
                return True, True
            name = name_of_method(f)
            return name not in _READERS and not isinstance(f.this, types.UnicodeType), False
        key = getattr(f, "typing_key", None)
        module = getattr(key, "__module__", None) or ""
        if module in _PURE or module.startswith("numba.typed"):
            return False, False
        if module == heapq.heappush.__module__:
            return True, False
        if not module.startswith("numpy") or "random" in module:
            return True, True
        into = isinstance(key, np.ufunc) and len(value.args) > key.nin
        out = any(name == "out" for name, _ in value.kws)
        return into or out or getattr(key, "__name__", "") in _WRITERS, False

    # -- loops -------------------------------------------------------------------------------

    def run(self, f: Any, *given: Found, detached: bool = False) -> Found:
        """What a function that Numba compiles makes of values."""
        loc, kinds = ir.unknown_loc, [types.unliteral(t) for _, t in given]
        names = ["f", *(f"x{k}" for k in range(len(given))), "y"]
        function, *args, target = [ir.Var(ir.Scope(None, loc), name, loc) for name in names]
        dispatcher = types.Dispatcher(f)
        signature = dispatcher.get_call_type(registry.cpu_target.typing_context, tuple(kinds), {})
        known = dict(zip(names, [dispatcher, *kinds, signature.return_type]))
        e = ir.Expr.call(function, args, (), loc)
        body = (ir.Assign(e, target, loc),)
        statement = Statement(body, (function, *args), target, known, {e: signature})
        ops = [x for ops, _ in given for x in ops]
        where = ": hold these in arrays, or in a tuple" if isinstance(kinds[0], types.List) else ""
        refusal = self._refusal(f"a loop over {kinds[0]}{where}")
        words = self._called(statement, ops, False, False, refusal, False, detached)
        return words, signature.return_type

    def _refusal(self, reason: str) -> str:
        """Why what is written now has no derivative, with the user's line."""
        at = self.code.line
        assert at is not None
        return f"`{at.function}`, line {at.line} of {at.file}, is not differentiated: {reason}"

    def require_unchanged(self, var: NumbaIR) -> None:
        """Refuse a loop over a container that changes it."""
        roots = self._roots(var)
        if not roots:
            return
        graph = analysis.compute_cfg_from_blocks(self.typed.blocks)
        loops = [graph.loops()[k] for k, _ in graph.successors(self.at) if k in graph.loops()]
        for s in (s for loop in loops for k in loop.body for s in self.typed.blocks[k].body):
            changed = self._changed(s)
            if changed is not None and roots & self._roots(changed):
                raise Unsupported(f"a loop over {self.type(var)} that changes it")

    def _changed(self, s: NumbaIR) -> NumbaIR | None:
        """The container that a statement may change, if there is one."""
        if isinstance(s, ir.SetItem | ir.StaticSetItem | ir.DelItem):
            return s.target
        if not isinstance(s, ir.Assign) or not isinstance(s.value, ir.Expr):
            return None
        if s.value.op == "inplace_binop":
            return s.value.lhs
        is_method = isinstance(self.type(s.target), types.BoundFunction)
        return s.value.value if is_method and s.value.attr not in _READERS else None

    def _roots(self, var: NumbaIR) -> set[str]:
        """The containers of which a variable is one, or a view, or an iterator."""
        if not self.sources:
            for block in self.typed.blocks.values():
                for s in block.find_insts(ir.Assign):
                    self.sources.setdefault(s.target.name, s.value)
        found, seen, pending = set[str](), set[str](), [var]
        while pending:
            v = pending.pop()
            made = self.sources.get(v.name)
            if v.name in seen:
                continue
            seen.add(v.name)
            found |= {v.name} if is_opaque(self.type(v)) else set()
            if isinstance(made, ir.Var):
                pending.append(made)
            elif isinstance(made, ir.Expr) and made.op in ("cast", "getattr"):
                pending.append(made.value)
            elif isinstance(made, ir.Expr) and made.op == "call":
                pending += [made.func, *made.args]
        return found

    def length(self, ops: Operands, t: NumbaType) -> Operand:
        """`len(...)`."""
        if is_opaque(t):
            raise Unsupported(f"the length of {t}")
        return super().length(ops, t)

    def parts_of(self, ops: Operands, t: NumbaType) -> Operands:
        """What an iterator holds of a value that is iterated over, and the count."""
        if not is_opaque(base := t):
            return super().parts_of(ops, t)
        if not isinstance(t, _SEQUENCES):
            ops, t = self.run(collected, (ops, t))
        self.items_of[base.iterator_type] = t
        return [*ops, *self.run(length, (ops, t))[0]] if is_opaque(t) else ops

    def element(self, ops: Operands, t: NumbaType, k: Operand) -> Found:
        """What an iterator gives at a place."""
        if t not in self.items_of:
            return super().element(ops, t, k)
        items = self.items_of[t]
        if isinstance(items, types.List) and not is_opaque(items):
            return self.load(ops, array_of(items), k)
        found, kind = self.run(item, (ops[:1], items), ([k], types.int64))
        return self.cast(found, kind, t.yield_type), t.yield_type

    # -- casts -------------------------------------------------------------------------------

    def cast(self, ops: Operands, a: NumbaType, b: NumbaType) -> Operands:
        """The components of a value of type `a` as one of type `b`."""
        if a == b or not (is_opaque(a) or is_opaque(b)):
            return super().cast(ops, a, b)
        if isinstance(a, types.IntEnumMember) and b != a.dtype:  # of that Numba makes floats
            return self.cast(self.cast(ops, a, a.dtype), a.dtype, b)
        loc = ir.unknown_loc
        x, y = (ir.Var(ir.Scope(None, loc), name, loc) for name in ("x", "y"))
        known = {"x": a, "y": b}
        cast = ir.Assign(ir.Expr.cast(x, loc), y, loc)
        statement = Statement((cast,), (x,), y, known, {})
        once = isinstance(a, types.Literal | types.NoneType)
        refusal = self._refusal(f"a conversion of {a} to {b}")
        return self._called(statement, ops, False, False, refusal, once)

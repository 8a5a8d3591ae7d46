"""Calls of NumPy's functions of arrays, and of the methods of arrays."""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Iterable
from typing import Any

import numpy as np

from tapegrad.njit.numba_front import array_library, matrix_library, order_library
from tapegrad.njit.numba_front.array_library import UFUNC
from tapegrad.njit.numba_front.components import (
    array_of,
    components,
    element_of,
    in_words,
    is_number,
    parts_in,
)
from tapegrad.njit.numba_front.inlining import Inlining
from tapegrad.njit.numba_front.objects import NumbaIR, NumbaType, ir, types
from tapegrad.njit.numba_front.subscripts import Chosen, Entry, Slice, is_index
from tapegrad.njit.numba_front.typed_ir import A_LIST
from tapegrad.njit.numba_front.writer import ONE, ZERO, Found, Operands, plain, row_of
from tapegrad.njit.three_address_code import Constant, Operand, Unsupported

ROUNDING: tuple[Any, ...] = (round, np.round, np.around)
NUMBAS_LINALG = "numba.np.linalg"  # the module of what its functions of matrices call
NEW: tuple[Any, ...] = (np.empty, np.zeros, np.ones, np.full)
_JOINING = ("concatenate", "stack", "vstack", "hstack", "column_stack")
# By the function: where dimensions are put into a number, a vector or a matrix one after the other.
_AT_LEAST: dict[Any, tuple[int, ...]] = {
    np.atleast_1d: (0,), np.atleast_2d: (0, 0), np.atleast_3d: (0, 0, 2),
}  # fmt: skip
_LIKE: tuple[Any, ...] = (np.empty_like, np.zeros_like, np.ones_like, np.full_like)

# Those whose arguments may be named.
_MOVING: tuple[Any, ...] = (
    np.expand_dims, np.swapaxes, np.moveaxis, np.transpose, np.reshape,
)  # fmt: skip


def in_order(function: Any, args: list[NumbaIR], named: dict[str, NumbaIR]) -> list[NumbaIR] | None:
    """Arguments by position, if those that are named follow the others."""
    following = [*inspect.signature(function).parameters][len(args) : len(args) + len(named)]
    return [*args, *(named[name] for name in following)] if named.keys() == {*following} else None


class ArrayCalls(Inlining):
    """Writes the code of functions of arrays."""

    def item(self, value: NumbaIR, index: Any, want: NumbaType) -> Found:
        """`value[index]`; what an array as the index chooses is a copy."""
        base = self.type(value)
        if isinstance(base, types.NumpyFlatType):
            ops, array = self.get(value), base.array_type
            return self.load(ops, array, self.place_in_flat(ops, array, index))
        places = self.type(index) if isinstance(index, ir.Var) else None
        if isinstance(base, types.Array) and isinstance(places, types.Array):
            f = array_library.taken(base, places)
            return self.inline(f, [self.known(value), self.known(index)])
        if isinstance(base, types.Array) and isinstance(places, types.BaseTuple):
            entries = self.entries(index, base.ndim)
            if any(isinstance(entry, Chosen) for entry in entries):
                view, chosen, axis = self.chosen_first(self.get(value), base, entries)
                f = array_library.taken(view[1], *[x.type for x in chosen])
                found = self.inline(f, [view, *[(x.ops, x.type) for x in chosen]])
                own = max(x.type.ndim for x in chosen)
                rest = range(own, found[1].ndim)
                order = [*rest[:axis], *range(own), *rest[axis:]]
                return self.in_order(self.reordered(found, order), want)
        return super().item(value, index, want)

    def chosen_first(
        self, ops: Operands, t: NumbaType, entries: list[Entry]
    ) -> tuple[Found, list[Chosen], int]:
        """Of a subscript with vectors the view that its other entries leave, and the vectors.

        The vectors' dimensions are the first ones; the last result says where they were.
        """
        chosen = [entry for entry in entries if isinstance(entry, Chosen)]
        places = [k for k, entry in enumerate(entries) if isinstance(entry, Chosen)]
        if places != [*range(places[0], places[0] + len(places))]:
            raise Unsupported("vectors as indices with others between them: write a loop")
        whole = Slice(None, None, None)
        left: list[Entry] = [whole if isinstance(entry, Chosen) else entry for entry in entries]
        view = self.subscript(ops, t, left)
        axis = sum(not is_index(entry) for entry in entries[: places[0]])
        own = range(axis, axis + len(places))
        order = [*own, *(d for d in range(view[1].ndim) if d not in own)]
        return self.reordered(view, order), chosen, axis

    def reordered(self, this: Found, order: Any) -> Found:
        """A view whose dimensions are in another order, of any layout."""
        if [*order] == [*range(this[1].ndim)]:
            return this
        return self.permuted(this, order, types.Array(this[1].dtype, this[1].ndim, "A"))

    def put_chosen(self, ops: Operands, t: NumbaType, entries: list[Entry], value: Found) -> None:
        """`a[i, places] = b`, with vectors among the entries of a subscript."""
        view, chosen, axis = self.chosen_first(ops, t, entries)
        own = max(x.type.ndim for x in chosen)
        every = own + view[1].ndim - len(chosen)
        if isinstance(value[1], types.Array) and axis > 0:
            if value[1].ndim != every:
                raise Unsupported(f"{value[1]} at places that an array chooses: write a loop")
            where = range(axis, axis + own)
            value = self.reordered(value, [*where, *(d for d in range(every) if d not in where)])
        f = array_library.put(view[1], [x.type for x in chosen], value[1])
        self.inline(f, [view, *[(x.ops, x.type) for x in chosen], value])

    def place_in_flat(self, ops: Operands, t: NumbaType, index: Any) -> Operand:
        """The offset of an element by its number in C order."""
        entries = self.entries(index, 1)
        if len(entries) != 1 or not is_index(entries[0]):
            raise Unsupported("a slice of `flat`")
        k = entries[0]
        assert isinstance(k, str | Constant)
        return self.numbered(ops, t, self.place(k, self.product(self.shape(ops, t))))[0]

    def method(self, f: NumbaType, e: NumbaIR, t: NumbaType) -> Found:
        """A method of an array, or of a user's class."""
        name = name_of_method(f)
        this: Found = (self.names(e.func), f.this)
        if isinstance(f.this, types.ClassInstanceType):
            source = f.this.jit_methods[name]
            args, keywords = self.given_to(e)
            return self.inline(source, self.bound(source.py_func, [this, *args], keywords))
        axis = self.axis_of(list(e.args), e.kws)
        if isinstance(f.this, types.Array) and name in array_library.ALONG and axis is not None:
            return self.along(name, this, axis, t)
        if name == "item" and getattr(f.this, "ndim", 0) == 0 and not e.args:
            return self.load(this[0], f.this, ZERO) if isinstance(f.this, types.Array) else this
        if name in ("conjugate", "conj") and not e.args:
            return self.conjugates(this, t)
        if not isinstance(f.this, types.Array) or e.kws:
            of = A_LIST if isinstance(f.this, types.List) else in_words(f.this)
            how = " with keywords" if e.kws else ""
            return self.overloaded(e, t, f"the method `{name}`{how} of {of}")
        if name == "sort" and not e.args:
            return self.inline(order_library.ordered("sort_in_place", f.this), [this])[0], t
        if name == "transpose":
            return self.transposed(this, list(e.args), t)
        if name == "astype":
            return self.converted_elements(this, t)
        if name == "fill":
            value = (self.get(e.args[0]), self.type(e.args[0]))
            self.inline(array_library.assigned(f.this, value[1]), [this, value])
            return [], types.none
        if name in ("flatten", "ravel") and not e.args:
            return self.flat(name, this, t)
        if name == "reshape":
            lengths = [*e.args, *([] if e.vararg is None else [e.vararg])]
            return self.reshaped(this, lengths, t)
        args = [this, *[(self.get(a), self.type(a)) for a in e.args]]
        return self.library_or_overload(name, args, e, t)

    def along(self, name: str, this: Found, axis: NumbaIR, t: NumbaType) -> Found:
        """A function of NumPy along an axis."""
        at = self.constant_of(axis)
        if not isinstance(at, int):
            raise Unsupported(f"`np.{name}` along an axis that is not a constant")
        f = array_library.along(name, this[1], at, t)
        if f is None:
            raise Unsupported(f"`np.{name}` of {this[1]} along an axis")
        return self.laid_out(self.inline(f, [this]), t)

    @staticmethod
    def axis_of(rest: list[NumbaIR], keywords: Any) -> NumbaIR | None:
        """The axis among the arguments after an array, if that is all they are."""
        named = dict(keywords)
        if len(rest) == 1 and not named:
            return rest[0]
        return named["axis"] if not rest and [*named] == ["axis"] else None

    def array_function(self, key: Any, name: str, e: NumbaIR, t: NumbaType) -> Found:
        """A function of NumPy that takes or gives arrays."""
        args = list(e.args)
        if key in NEW or key in _LIKE:
            first, *rest = [*args, *(a for name, a in e.kws if name != "dtype")]
            ops, like = self.names(first), self.type(first)
            return self.new(key, ops if key in NEW else self.shape(ops, like), rest, t)
        axis = self.axis_of(args[1:], e.kws)
        if name in array_library.ALONG and axis is not None and is_numpys(key):
            return self.along(name, self.known(args[0]), axis, t)
        if key is np.dot and [k for k, _ in e.kws] == ["out"]:
            args.append(dict(e.kws)["out"])
        elif e.kws:
            ordered = in_order(key, args, dict(e.kws)) if key in _MOVING else None
            if ordered is None:
                return self.overloaded(e, t, f"`np.{name}` with keywords")
            args = ordered
        if key in ROUNDING and len(args) < 3:
            return self.rounded(args, t)
        known = isinstance(key, UFUNC) or key in (abs, np.where, np.clip)
        if known and isinstance(t, types.Array):
            inputs = key.nin if isinstance(key, UFUNC) else 3 if key is np.clip else len(args)
            out = next((a for a in args[inputs:] if not self.is_none(a)), None)
            return self.elementwise((np.absolute if key is abs else key, args[:inputs]), t, out)
        if key is np.dot and len(args) == 3:
            return self.dot_into(args, t)
        if key is np.reshape:
            return self.reshaped((self.names(args[0]), self.type(args[0])), args[1:], t)
        if key is np.transpose:
            return self.transposed(self.known(args[0]), args[1:], t)
        if key in (np.swapaxes, np.moveaxis):
            return self.permuted(self.known(args[0]), self.order_of(name, *args), t)
        if key is np.flip:
            this = self.known(args[0])
            backwards: list[Any] = [Slice(None, None, Constant(-1, "i64"))] * this[1].ndim
            return self.view_as(self.subscript(*this, backwards), t)
        if key is np.expand_dims and (axis := self.constant_of(args[1])) is not None:
            return self.with_lengths_of_one(self.known(args[0]), [axis % t.ndim], t)
        if key in _AT_LEAST and len(args) == 1 and isinstance(self.type(args[0]), types.Array):
            this = self.known(args[0])
            return self.with_lengths_of_one(this, _AT_LEAST[key][this[1].ndim :], t)
        if key in (np.real, np.imag):
            return self.part_of(key.__name__, *self.known(args[0]))
        if key in (np.ascontiguousarray, np.asfortranarray):
            return self.in_order(self.known(args[0]), t)
        if key is np.ravel:
            return self.flat(name, (self.names(args[0]), self.type(args[0])), t)
        known = is_numpys(key) or getattr(key, "__module__", "") == NUMBAS_LINALG
        if not known and not (key is sum and self.type(args[0]).ndim == 1):
            return self.overloaded(e, t, f"a call of `{getattr(key, '__module__', '')}.{name}`")
        return self.library_or_overload(name, [(self.get(a), self.type(a)) for a in args], e, t)

    def conjugates(self, this: Found, t: NumbaType) -> Found:
        """`z.conjugate()`, of a number or an array."""
        if not isinstance(this[1], types.Array):
            return self.conjugate(this), t
        f = array_library.elementwise("np.conjugate({x0})", [this[1]], t)
        return self.laid_out(self.inline(f, [this]), t)

    def rounded(self, args: list[NumbaIR], t: NumbaType) -> Found:
        """`np.round` of an array, to so many decimals if they are given."""
        if len(args) == 1:
            return self.elementwise((np.rint, args), t, None)
        given = [self.known(a) for a in args]
        f = array_library.elementwise("round({x0}, {x1})", [kind for _, kind in given], t)
        return self.laid_out(self.inline(f, given), t)

    def transposed(self, this: Found, axes: list[NumbaIR], t: NumbaType) -> Found:
        """`np.transpose` with axes that are constants, or without."""
        kind = this[1]
        order = [self.constant_of(a) for a in axes if not isinstance(self.type(a), types.NoneType)]
        if len(axes) == 1 and isinstance(self.type(axes[0]), types.BaseTuple):
            order = [getattr(part, "literal_value", None) for part in self.type(axes[0])]
        order = order or [*range(kind.ndim)][::-1]
        if any(not isinstance(d, int) for d in order):
            raise Unsupported("`transpose` with axes that are no constants")
        return self.permuted(this, order, t)

    def order_of(self, name: str, array: NumbaIR, a: NumbaIR, b: NumbaIR) -> list[int]:
        """The order of dimensions that `np.swapaxes` or `np.moveaxis` makes."""
        order = [*range(self.type(array).ndim)]
        known = [self.constant_of(a), self.constant_of(b)]
        if any(not isinstance(d, int) or not -len(order) <= d < len(order) for d in known):
            raise Unsupported(f"`{name}` with axes that are no constants")
        first, second = known
        if name == "moveaxis":
            order.insert(second % len(order), order.pop(first))
        else:
            order[first], order[second] = order[second], order[first]
        return order

    def with_lengths_of_one(self, this: Found, places: Iterable[int], t: NumbaType) -> Found:
        """A view with dimensions more, where they stand in it."""
        entries: list[Any] = [Slice(None, None, None)] * this[1].ndim
        for place in places:
            entries.insert(place, None)
        return self.view_as(self.subscript(*this, entries), t)

    def permuted(self, this: Found, order: list[Any], t: NumbaType) -> Found:
        """A view whose dimensions are in another order."""
        ops, kind = this
        shape, strides = self.shape(ops, kind), self.strides(ops, kind)
        made = [ops[0], *(shape[d] for d in order), *(strides[d] for d in order)]
        return self.view_as((made, types.Array(kind.dtype, kind.ndim, "A")), t)

    def converted_elements(self, this: Found, t: NumbaType) -> Found:
        """A copy whose elements are of another type."""
        kind = types.Array(t.dtype, t.ndim, "C")
        found = self.inline(array_library.elementwise("{x0}", [this[1]], kind), [this])
        return self.laid_out(found, t)

    def array_of_parts(self, var: NumbaIR, t: NumbaType) -> Found:
        """`np.array` of numbers in tuples, of a list, of rows in a list, of an array."""
        if isinstance(self.type(var), types.List) and not is_number(self.type(var).dtype):
            kind = types.Array(t.dtype, t.ndim - 1, "C")
            rows = [self.array_of_parts(item, kind) for item in self.definitions[var.name].items]
            f = order_library.joined([kind] * len(rows), t, 0, new=True)
            return self.laid_out(self.inline(f, rows), t)
        ops, kind = self.known(var)
        if isinstance(kind, types.Array):
            return self.converted_elements((ops, kind), t)
        if isinstance(kind, types.List):
            return self.converted_elements((ops, array_of(kind)), t)
        shape, part = list[int](), kind
        while isinstance(part, types.BaseTuple) and len(part):
            shape.append(len(part))
            part = next(iter(part))
        step = len(components(part))
        if len(ops) != math.prod(shape) * step or len(shape) != t.ndim or not is_number(part):
            raise Unsupported(f"`np.array` of {kind}")
        made = self.allocated([Constant(n, "i64") for n in shape], t, zeroed=False)
        for k in range(math.prod(shape)):
            x = ops[k * step : (k + 1) * step]
            self.store(made, t, Constant(k, "i64"), (x, part))
        return made, t

    def of_several(self, name: str, e: NumbaIR, t: NumbaType) -> Found | None:
        """A function of several arrays in a tuple, if this is one."""
        given = dict(e.kws)
        axis = given.pop("axis", e.args[1] if len(e.args) == 2 else None)
        along = 0 if axis is None else self.constant_of(axis)
        if name not in _JOINING or given or not isinstance(along, int):
            return None
        ops, kind = self.known(e.args[0])
        if not isinstance(kind, types.BaseTuple):
            return None
        parts = self.parts(ops, kind)
        kinds = [k for _, k in parts]
        if name in ("concatenate", "stack"):
            f = order_library.joined(kinds, t, along, new=name == "stack")
        else:
            f = order_library.stacked(name, kinds, t)
        return self.laid_out(self.inline(f, parts), t)

    def new(self, key: Any, shape: Operands, rest: list[NumbaIR], t: NumbaType) -> Found:
        """A new array."""
        if not isinstance(t, types.Array) or t.layout == "A":
            raise Unsupported(f"a new {t}")
        for n in shape:
            if not isinstance(n, Constant):
                self.require(self.emit("ge", [n, ZERO], "i1"))
        self.require_size(shape)
        made: Found = (self.allocated(shape, t, zeroed=key in (np.zeros, np.zeros_like)), t)
        if key in (np.ones, np.ones_like):
            one: Found = ([Constant(1, "i64")], types.int64)
            self.inline(array_library.assigned(t, types.int64), [made, one])
        if key in (np.full, np.full_like):
            value = (self.get(rest[0]), types.unliteral(self.type(rest[0])))
            self.inline(array_library.assigned(t, value[1]), [made, value])
        return made

    def allocated(self, shape: Operands, t: NumbaType, *, zeroed: bool) -> Operands:
        """Memory for an array."""
        attribute = element_of(t), zeroed, self.code.fresh()
        size = self.product([*shape, Constant(parts_in(t), "i64")])
        made: Operands = [self.emit("alloc", [size], "ptr", attribute), *shape]
        step: Operand = ONE
        for n in shape if t.layout != "C" else ():  # Fortran's order
            made.append(step)
            step = self.index("imul", step, n)
        return made

    def laid_out(self, found: Found, t: NumbaType) -> Found:
        """A new value in the type that Numba has for it, an array in that order."""
        ops, kind = found
        if isinstance(t, types.Array) and t.layout == "F" and kind.layout == "C" and t.ndim > 1:
            made: Found = (self.allocated(self.shape(ops, kind), t, zeroed=False), t)
            disjoint: Found = ([Constant(False, "i1")], types.boolean)
            self.inline(array_library.assigned(t, kind), [made, found, disjoint])
            return made
        return self.cast(ops, kind, t), t

    def require_size(self, shape: Operands) -> None:
        """The number of elements is one that an integer holds."""
        row = row_of(operator.mul)
        assert row is not None
        if len(shape) > 1 and any(not isinstance(n, Constant) for n in shape):
            size: Operand = Constant(1.0, "f64")
            for n in shape:
                size = self.emit(row, [size, self.to(n, "f64")], "f64")
            self.require(self.emit("lt", [size, Constant(2.0**60, "f64")], "i1"))

    def in_order(self, this: Found, t: NumbaType) -> Found:
        """An array in the order of a type: itself if it lies so, which may show only now."""
        ops, kind = this
        shape, strides = self.shape(ops, kind), self.strides(ops, kind)
        view = [ops[0], *shape, *(strides if t.layout != "C" else ())]
        if kind.layout == t.layout or (kind.ndim == 1 and kind.layout != "A"):
            return view, t
        if kind.layout == "C":
            return self.laid_out(this, t)
        if kind.layout == "F":
            return self.laid_out(self.inline(array_library.copied(kind), [this]), t)
        names: Operands = [self.code.name(k, "r") for _, k in components(t)]
        same, copy, on = self.code.block(), self.code.block(), self.code.block()
        self.current.end("branch", (self.lies_in_order(this, t),), same.label, copy.label)
        self.current = copy
        made, _ = self.laid_out(self.inline(array_library.copied(kind), [this]), t)
        for block, values in ((self.current, made), (same, view)):
            self.current = block
            for name, value in zip(names, values):
                self.copy(value, str(name))
            self.current.end("jump", (), on.label)
        self.current = on
        return names, t

    def lies_in_order(self, this: Found, t: NumbaType) -> Operand:
        """Whether the elements of an array lie one behind the other in the order of a type."""
        shape, strides = self.shape(*this), self.strides(*this)
        pairs = [*zip(shape, strides)]
        found: Operand = Constant(True, "i1")
        step: Operand = ONE
        for n, stride in pairs if t.layout == "F" else reversed(pairs):
            fits = [self.emit("le", [n, ONE], "i1"), self.emit("eq", [stride, step], "i1")]
            found = self.emit("band", [found, self.emit("bor", fits, "i1")], "i1")
            step = self.index("imul", step, n)
        return found

    def flat(self, name: str, this: Found, t: NumbaType) -> Found:
        """`a.flatten()`, a copy, and `a.ravel()`: a view of an array in C order."""
        view = name == "ravel" and this[1].layout == "C"
        ops, kind = this if view else self.inline(array_library.copied(this[1]), [this])
        return [ops[0], self.product(self.shape(ops, kind))], t

    def reshaped(self, this: Found, args: list[NumbaIR], t: NumbaType) -> Found:
        """`a.reshape(...)` of an array in C order."""
        if this[1].layout != "C":
            raise Unsupported("`reshape` of an array that is not in C order")
        shape = [self.to(x, "i64") for a in args for x in self.names(a)]
        if not all(isinstance(n, Constant) and n.value >= 0 for n in shape):
            shape = self.filled_in(shape, self.product(self.shape(*this)))
        same = [self.product(shape), self.product(self.shape(*this))]
        self.require(self.emit("eq", same, "i1"))
        for n in shape:
            self.require(self.emit("ge", [n, ZERO], "i1"))
        self.require_size(shape)
        return [this[0][0], *shape], t

    def filled_in(self, shape: Operands, size: Operand) -> Operands:
        """A shape in which a length of -1 is what is left of the size."""
        free = [self.emit("lt", [n, ZERO], "i1") for n in shape]
        known = self.product([self.chosen(f, ONE, n) for f, n in zip(free, shape)])
        some = free[0]
        for f in free[1:]:
            some = self.emit("bor", [some, f], "i1")
        divisor = self.chosen(some, known, ONE)
        self.require(self.emit("ne", [divisor, ZERO], "i1"))
        rest = self.emit("ifloordiv", [size, divisor], "i64")
        return [self.chosen(f, rest, n) for f, n in zip(free, shape)]

    def library_or_overload(self, name: str, args: list[Found], e: NumbaIR, t: NumbaType) -> Found:
        """A function of the array library, or one that Numba has in its own language."""
        found = self.library(name, args, t)
        if found is not None:
            return found
        where = "np" if hasattr(np, name) else "np.linalg"
        what = f"`{where}.{name}` of {', '.join(str(k) for _, k in args)}"
        return self.laid_out(self.overloaded(e, t, what), t)

    def library(self, name: str, args: list[Found], t: NumbaType) -> Found | None:
        """A function of the array library, if it is there."""
        name = name.removeprefix("a") if name in ("amax", "amin") else name
        kinds = [types.unliteral(k) for _, k in args]
        f = (
            array_library.named(name, kinds, t)
            or matrix_library.named(name, kinds)
            or order_library.named(name, kinds, t)
        )
        return None if f is None else self.laid_out(self.inline(f, args), t)

    def dot_into(self, args: list[NumbaIR], t: NumbaType) -> Found:
        """`np.dot` of which an argument takes the result."""
        *factors, out = map(self.known, args)
        made = self.library("dot", factors, t)
        if made is None:
            raise Unsupported(f"the product of {factors[0][1]} and {factors[1][1]}")
        disjoint: Found = ([Constant(False, "i1")], types.boolean)
        self.inline(array_library.assigned(out[1], made[1]), [out, made, disjoint])
        return out

    def elementwise(self, tree: Any, t: NumbaType, out: NumbaIR | None = None) -> Found:
        """An elementwise expression over arrays: a loop, written as source.

        Where there is an `out`, it takes the result, in the loop's order, as it does in Numba.
        """
        if not isinstance(t, types.Array) or t.ndim > len(array_library.INDICES):
            raise Unsupported(f"an expression of arrays that gives {t}")
        leaves: dict[str, NumbaIR] = {}
        text = self.text(tree, leaves)
        operands = [*leaves.values(), *([] if out is None else [out])]
        kinds = [types.unliteral(self.type(v)) for v in operands]
        f = array_library.elementwise(text, kinds, t, into=out is not None)
        found = self.inline(f, [(self.get(v), k) for v, k in zip(operands, kinds)])
        if out is not None:
            return self.get(out), self.type(out)
        return self.laid_out(found, t)

    def text(self, x: Any, leaves: dict[str, NumbaIR]) -> str:
        """The text of an expression over elements, whose arrays are `{x0}`, `{x1}`, ..."""
        if isinstance(x, ir.Var):
            value = self.constant_of(x)
            if value is not None:
                return array_library.constant(value)
            leaves.setdefault(x.name, x)
            return f"{{x{list(leaves).index(x.name)}}}"
        if isinstance(x, ir.Const):
            return array_library.constant(x.value)
        f, args = x
        texts = ["None" if self.is_none(a) else self.text(a, leaves) for a in args]
        if f is np.where and len(texts) == 3:
            return f"({texts[1]} if {texts[0]} else {texts[2]})"
        if f is np.clip and len(texts) in (3, 4):
            a, low, high, *out = ["" if text == "None" else text for text in texts]
            above = f"({high} if {a} > {high} else {a})" if high else a
            if not any(out):
                return f"({low} if {a} < {low} else {above})" if low else above
        return array_library.applied(f, texts)

    def is_none(self, x: Any) -> bool:
        """Whether a part of an expression is None."""
        return isinstance(x, ir.Var) and isinstance(self.type(x), types.NoneType)

    def update(self, f: Any, target: NumbaIR, value: NumbaIR) -> Found:
        """`a += b` of an array."""
        this, t = self.names(target), self.type(target)
        other = types.unliteral(self.type(value))
        self.inline(
            array_library.updated(plain(f), t, other), [(this, t), (self.get(value), other)]
        )
        return this, t

    def overlap(self, a: Found, b: Found) -> Operand:
        """Whether the memory of two views overlaps."""
        (a_low, a_high), (b_low, b_high) = self.span(*a), self.span(*b)
        first = self.emit("lt", [a_low, b_high], "i1")
        return self.emit("band", [first, self.emit("lt", [b_low, a_high], "i1")], "i1")

    def span(self, ops: Operands, t: NumbaType) -> tuple[Operand, Operand]:
        """The addresses between which a view's elements lie."""
        size = Constant(t.dtype.bitwidth // 8 if t.dtype != types.boolean else 1, "i64")
        low: Operand = self.emit("address", [ops[0]], "i64")
        high = low
        for n, step in zip(self.shape(ops, t), self.strides(ops, t)):
            last = self.index("imul", self.index("isub", n, ONE), step)
            last = self.index("imul", last, size)
            low = self.index("iadd", low, self.emit("imin", [last, ZERO], "i64"))
            high = self.index("iadd", high, self.emit("imax", [last, ZERO], "i64"))
        return low, self.index("iadd", high, size)


def name_of_method(f: NumbaType) -> str:
    """The name of a method: of the type that Numba has for it, bound to a value."""
    key = f.typing_key
    return str(key[1] if isinstance(key, tuple) else key).rpartition(".")[2]


def is_numpys(key: Any) -> bool:
    """Whether a function is one of NumPy's, and not one of the same name."""
    module = getattr(key, "__module__", None) or ("numpy" if isinstance(key, np.ufunc) else "")
    return bool(module.partition(".")[0] == "numpy")

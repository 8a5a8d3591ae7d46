"""Calls: of other compiled functions, which are inlined, of NumPy, of `math`, of builtins."""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import typeof
from numba.core.dispatcher import Dispatcher
from numba.core.unsafe import eh

from tapegrad.njit.numba_front import array_library, matrix_library
from tapegrad.njit.numba_front.components import (
    components,
    constants,
    element_of,
    scalar,
    sequence,
)
from tapegrad.njit.numba_front.objects import NumbaIR, NumbaType, ir, types
from tapegrad.njit.numba_front.subscripts import Slice, Subscripts
from tapegrad.njit.numba_front.typed_ir import A_LIST, TRY, TypedFunction
from tapegrad.njit.numba_front.writer import (
    ONE,
    POWERS,
    UFUNCS,
    ZERO,
    Found,
    Operands,
    plain,
    row_of,
)
from tapegrad.njit.three_address_code import FLOATS, Constant, Operand, Unsupported

DEEPEST = 40  # functions that are inlined in one another
_NEW: tuple[Any, ...] = (np.empty, np.zeros, np.ones, np.full)
_LIKE: tuple[Any, ...] = (np.empty_like, np.zeros_like, np.ones_like, np.full_like)
_MADE = (np.arange, np.linspace, np.eye, np.identity)
_UNARY = (operator.neg, operator.pos, operator.invert)
_BINARY = (*(f for f in UFUNCS if f not in _UNARY), operator.matmul)
_TO_NUMBER = (float, int, bool)
_FINITE = {"isfinite": "lt", "isinf": "eq"}


class Calls(Subscripts):
    """Writes the code of calls."""

    translate: Callable[..., Any]  # the function `translation.translate`, which this is a part of

    def call(self, e: NumbaIR, t: NumbaType, target: NumbaIR) -> Found | None:
        """A call; None where the target needs no assignment."""
        f = self.type(e.func)
        if isinstance(f, types.RecursiveCall):
            raise Unsupported("a function that calls itself")
        if isinstance(f, types.ExceptionClass):
            return [], t
        if isinstance(f, types.Dispatcher):
            return self.inline(f.dispatcher, self.bound(f.dispatcher, e))
        if isinstance(f, types.BoundFunction):
            return self.method(f, e, t)
        if isinstance(f, types.NamedTupleClass):
            given = inspect.signature(f.instance_class).bind(*e.args, **dict(e.kws))
            parts = zip(given.arguments.values(), t)
            return [op for var, part in parts for op in self.get(var, part)], t
        if isinstance(f, types.NumberClass):
            return self.converted(e.args[0], t)
        key = getattr(f, "typing_key", None)
        if key is None:
            raise Unsupported(getattr(f, "refusal", f"a call of {f}"))
        return self.builtin(key, e, t, target)

    def bound(self, dispatcher: Dispatcher, e: NumbaIR) -> list[Found]:
        """The arguments of a call of a function that Numba compiled, in order."""
        args = [self.known(a) for a in e.args]
        if e.vararg is not None:
            args += self.parts(*self.known(e.vararg))
        signature = inspect.signature(dispatcher.py_func)
        try:
            given = signature.bind(*args, **{name: self.known(a) for name, a in e.kws})
        except TypeError as error:
            raise Unsupported(str(error)) from error
        found: list[Found] = []
        for name, parameter in signature.parameters.items():
            if parameter.kind is parameter.VAR_POSITIONAL:
                rest = given.arguments.get(name, ())
                kind = types.StarArgTuple.from_types([t for _, t in rest])
                found.append(([x for ops, _ in rest for x in ops], kind))
            elif name in given.arguments:
                found.append(given.arguments[name])
            else:
                kind = typeof(parameter.default)
                found.append((constants(parameter.default, kind), kind))
        return found

    def known(self, var: NumbaIR) -> Found:
        """The components of a variable, and its type."""
        return self.get(var), types.unliteral(self.type(var))

    def inline(self, f: Callable[..., Any], args: list[Found]) -> Found:
        """The code of another function in the place of its call."""
        kinds = tuple([types.unliteral(t) for _, t in args])
        if self.depth >= DEEPEST:
            raise Unsupported("a function that calls itself")
        args = [(self.cast(ops, t, kind), kind) for (ops, t), kind in zip(args, kinds)]
        typed = TypedFunction(f, kinds)
        entry, after = self.current, self.code.block()
        found: list[Found] = []

        def done(inner: Calls, result: Found) -> None:
            ops, t = result
            if not found:
                names: Operands = [self.code.name(kind, "r") for _, kind in components(t)]
                found.append((names, t))
            names, kind = found[0]
            for name, value in zip(names, inner.cast(ops, t, kind)):
                assert isinstance(name, str)
                inner.copy(value, name)
            inner.current.end("jump", (), after.label)

        start = self.translate(self.code, typed, args, done, self.depth + 1)
        entry.end("jump", (), start.label)
        self.current = after
        if not found:
            raise Unsupported("a function that never returns")
        return found[0]

    depth = 0

    # -- builtins ----------------------------------------------------------------------------

    def builtin(self, key: Any, e: NumbaIR, t: NumbaType, target: NumbaIR) -> Found | None:
        """A call of a function that Numba knows."""
        args, name = list(e.args), getattr(key, "__name__", "")
        known = _is_numpys(key) or getattr(key, "__module__", "") == "math"
        kinds = [self.type(a) for a in args]
        if key is slice:
            self.slices[target.name] = self.slice_of(args)
            return None
        if key is range or name in ("prange", "internal_prange"):
            return self.range(args), t
        if key is len:
            return [self.length(self.names(args[0]), kinds[0])], t
        if key is enumerate or key is zip:
            return self.iterator_over(key, args, t), t
        if key is tuple and isinstance(kinds[0], types.BaseTuple):
            return self.get(args[0]), t
        if key in _TO_NUMBER or name in ("is_true", "truth"):
            return self.converted(args[0], t)
        if key in (min, max) and len(args) > 1:
            return self.extreme(key, args, t)
        if any(isinstance(k, types.Array) for k in kinds) or key in _NEW or key in _MADE:
            return self.array_function(key, name, e, t)
        if known and name in ("isnan", "isinf", "isfinite"):
            return [self.classified(name, self.get(args[0])[0])], t
        return self.scalar_function(key, name, args, e, t)

    def scalar_function(
        self, key: Any, name: str, args: list[NumbaIR], e: NumbaIR, t: NumbaType
    ) -> Found:
        """A function of numbers: an operator, or one that has a row."""
        kind = scalar(t)
        f = plain(key)
        if f in _BINARY:
            return self.binary(f, args[0], args[1], self.typed.calls[e], t)
        if key is np.where and kind is not None:
            c, x, y = (self.get(a)[0] for a in args)
            return [self.chosen(self.to(c, "i1"), self.to(x, kind), self.to(y, kind))], t
        row = row_of(round if key is round and len(args) == 1 else key)
        if key is round and len(args) == 1:
            row = row_of(np.rint)
        if key is abs and kind == "i64":
            return [self.emit("iabs", [self.number(args[0], "i64")], "i64")], t
        if key is pow or key is math.pow or key is np.power:
            return self.raised(args[0], args[1], t)
        if row is None or kind is None or e.kws or (key is round and len(args) > 1):
            module = getattr(key, "__module__", None)
            called = f"a call of `{module}.{name}`" if module else f"a call of `{key}`"
            raise Unsupported(TRY if module == eh.__name__ else called)
        work = kind if kind in FLOATS else "f64"
        values = [self.number(a, work) for a in args]
        if kind == "i1":
            raise Unsupported(f"`{name}` of numbers")
        value = self.emit(row, values, work)
        return [self.to(value, kind)], t

    def classified(self, name: str, x: Operand) -> Operand:
        """Whether a number is infinite, finite or NaN."""
        kind = self.code.type_of(x)
        if kind not in FLOATS:
            return Constant(name == "isfinite", "i1")
        if name == "isnan":
            return self.emit("ne", [x, x], "i1")
        row = row_of(np.absolute)
        assert row is not None
        size = self.emit(row, [x], kind)
        return self.emit(_FINITE[name], [size, Constant(math.inf, kind)], "i1")

    def converted(self, var: NumbaIR, t: NumbaType) -> Found:
        """A number in another type, as Python's `float(x)` or `np.int64(x)`."""
        kind, have = scalar(t), types.unliteral(self.type(var))
        if kind is None or scalar(have) is None:
            raise Unsupported(f"a conversion of {have} to {t}")
        if isinstance(t, types.Integer) and t.bitwidth < 64:
            raise Unsupported(f"a conversion to {t}: use int64")
        return [self.number(var, kind)], t

    def extreme(self, key: Any, args: list[NumbaIR], t: NumbaType) -> Found:
        """Python's `min` and `max` of numbers: the first, unless a later one is beyond it."""
        kind = scalar(t)
        if kind is None:
            raise Unsupported(f"`{key.__name__}` of {t}")
        best = self.number(args[0], kind)
        for a in args[1:]:
            x = self.number(a, kind)
            beyond = self.emit("gt" if key is max else "lt", [x, best], "i1")
            best = self.chosen(beyond, x, best)
        return [best], t

    def raised(self, a: NumbaIR, b: NumbaIR, t: NumbaType) -> Found:
        """A power."""
        kind, n = scalar(t), self.constant_of(b)
        whole = isinstance(n, int | float) and abs(n) <= POWERS and n == int(n)
        if whole and (kind in FLOATS or (kind == "i64" and n >= 0)):
            return [self.power(self.number(a, kind), int(n))], t
        if kind not in FLOATS:
            raise Unsupported("a power of integers whose exponent is not a constant")
        row = row_of(np.power)
        assert row is not None
        return [self.emit(row, [self.number(a, kind), self.number(b, kind)], kind)], t

    def binary(self, f: Any, a: NumbaIR, b: NumbaIR, signature: Any, t: NumbaType) -> Found:
        """An operator of two numbers or arrays."""
        f = plain(f)
        kinds = [self.type(a), self.type(b)]
        nothing = [isinstance(k, types.NoneType) for k in kinds]
        if f in (operator.is_, operator.is_not) and any(nothing):
            return [Constant(all(nothing) == (f is operator.is_), "i1")], t
        if any(isinstance(k, types.Array) for k in kinds):
            if f is operator.matmul:
                return self.library("dot", [a, b], t)
            return self.elementwise((f, [a, b]), t)
        if f in (pow, operator.pow):
            return self.raised(a, b, t)
        if isinstance(kinds[0], types.BaseTuple):
            if f is operator.add:
                return [*self.get(a), *self.get(b)], t
            if f in (operator.eq, operator.ne):
                return [self.tuples_equal(a, b, f is operator.eq)], t
            if f is operator.contains and scalar(kinds[1]) is not None:
                return [self.contained(a, b)], t
            raise Unsupported(f"the operator `{f.__name__}` on tuples")
        if any(scalar(k) is None for k in kinds):
            raise Unsupported(f"the operator `{f.__name__}` on {kinds[0]} and {kinds[1]}")
        x, y = self.get(a, signature.args[0]), self.get(b, signature.args[1])
        return self.operation(f, [*x, *y], signature.return_type)

    def tuples_equal(self, a: NumbaIR, b: NumbaIR, wanted: bool) -> Operand:
        """Whether two tuples of numbers are equal, or whether they are not."""
        one, other = (self.parts(*self.known(x)) for x in (a, b))
        same: Operand = Constant(len(one) == len(other), "i1")
        for (x, s), (y, t) in zip(one, other):
            if scalar(s) is None or scalar(t) is None:
                raise Unsupported(f"a comparison of {s} and {t} in tuples")
            (equal,), _ = self.operation(operator.eq, [*x, *y], types.boolean)
            same = self.emit("band", [same, equal], "i1")
        return same if wanted else self.emit("not", [same], "i1")

    def contained(self, a: NumbaIR, b: NumbaIR) -> Operand:
        """Whether a number is in a tuple of numbers."""
        found: Operand = Constant(False, "i1")
        for ops, t in self.parts(*self.known(a)):
            if scalar(t) is None:
                raise Unsupported(f"the operator `in` on a tuple with {t}")
            (equal,), _ = self.operation(operator.eq, [*ops, *self.get(b)], types.boolean)
            found = self.emit("bor", [found, equal], "i1")
        return found

    # -- iteration ---------------------------------------------------------------------------

    def slice_of(self, args: list[NumbaIR]) -> Slice:
        """`slice(...)`."""
        parts = [None if isinstance(self.type(a), types.NoneType) else self.get(a)[0] for a in args]
        padded = [None, *parts] if len(parts) == 1 else parts
        return Slice(*[*padded, None, None][:3])

    def range(self, args: list[NumbaIR]) -> Operands:
        """`range(...)`: start, step and count."""
        ops = [self.number(a, "i64") for a in args]
        start, stop, step = (
            (ZERO, ops[0], ONE) if len(ops) == 1 else (*ops, ONE) if len(ops) == 2 else ops
        )
        if not isinstance(step, Constant) or step.value == 0:
            raise Unsupported("a range whose step is not a constant")
        down = step.value < 0
        span = self.index("isub", *((start, stop) if down else (stop, start)))
        if isinstance(span, Constant):
            count: Operand = Constant(max(0, -(-span.value // abs(step.value))), "i64")
        else:
            count = self.steps(self.emit("imax", [span, ZERO], "i64"), abs(step.value))
        return [start, step, count]

    def length(self, ops: Operands, t: NumbaType) -> Operand:
        """`len(...)`."""
        if isinstance(t, types.BaseTuple):
            return Constant(len(t), "i64")
        if isinstance(t, types.Array):
            return ops[1] if t.ndim else ZERO
        if isinstance(t, types.RangeType):
            return ops[2]
        raise Unsupported(f"the length of {t}")

    def parts_of(self, ops: Operands, t: NumbaType) -> Operands:
        """What an iterator holds of a value that is iterated over, and the count."""
        if isinstance(t, types.RangeType | types.Array | types.BaseTuple):
            kept = ops[:2] if isinstance(t, types.RangeType) else ops
            return [*kept, self.length(ops, t)]
        if isinstance(t, types.EnumerateType | types.ZipType):
            return ops[:-1]
        raise Unsupported(f"a loop over {t}")

    def iterator_over(self, key: Any, args: list[NumbaIR], t: NumbaType) -> Operands:
        """`enumerate` or `zip`."""
        first: Operands = []
        if key is enumerate:
            first = [self.number(args[1], "i64") if len(args) > 1 else ZERO]
            args = args[:1]
        parts, counts = first, list[Operand]()
        for a in args:
            *held, count = self.parts_of(self.names(a), self.type(a))
            parts = [*parts, *held]
            counts.append(count)
        least = counts[0] if counts else ZERO
        for count in counts[1:]:
            least = self.emit("imin", [least, count], "i64")
        return [*parts, least, ZERO]

    def element(self, ops: Operands, t: NumbaType, k: Operand) -> Found:
        """What an iterator gives at a place."""
        if isinstance(t, types.RangeIteratorType):
            return [self.index("iadd", ops[0], self.index("imul", k, ops[1]))], t.yield_type
        if isinstance(t, types.ArrayIterator):
            a = t.array_type
            offset = self.index("imul", k, self.strides(ops, a)[0])
            if a.ndim == 1:
                return self.load(ops, a, offset)
            pointer = self.emit("gep", [ops[0], offset], "ptr", element_of(a))
            rest = [*self.shape(ops, a)[1:], *self.strides(ops, a)[1:]]
            view = types.Array(a.dtype, a.ndim - 1, "A")
            return self.view_as(([pointer, *rest], view), t.yield_type)
        if isinstance(t, types.UniTupleIter):
            return self.part_at(k, self.parts(ops, t.container))
        if isinstance(t, types.EnumerateType):
            value, kind = self.element(ops[1:], t.source_type, k)
            value = self.cast(value, kind, t.yield_type[1])
            return [self.index("iadd", ops[0], k), *value], t.yield_type
        found: Operands = []
        for source, part in zip(t.source_types, t.yield_type):
            count = len(sequence(source))
            value, kind = self.element(ops[:count], source, k)
            found += self.cast(value, kind, part)
            ops = ops[count:]
        return found, t.yield_type

    def item(self, value: NumbaIR, index: Any, want: NumbaType) -> Found:
        """`value[index]`; what an array as the index chooses is a copy."""
        base = self.type(value)
        places = self.type(index) if isinstance(index, ir.Var) else None
        if isinstance(base, types.Array) and isinstance(places, types.Array):
            f = array_library.taken(base, places)
            return self.inline(f, [self.known(value), self.known(index)])
        return super().item(value, index, want)

    # -- arrays ------------------------------------------------------------------------------

    def method(self, f: NumbaType, e: NumbaIR, t: NumbaType) -> Found:
        """A method of an array."""
        key = f.typing_key
        name = str(key[1] if isinstance(key, tuple) else key).rpartition(".")[2]
        this: Found = (self.names(e.func), f.this)
        axis = self.axis_of(list(e.args), e.kws)
        if isinstance(f.this, types.Array) and name in array_library.ALONG and axis is not None:
            return self.along(name, this, axis, t)
        if not isinstance(f.this, types.Array) or e.kws:
            of = A_LIST if isinstance(f.this, types.List) else f"{f.this}"
            how = " with keywords" if e.kws else ""
            raise Unsupported(f"the method `{name}` of {of}{how}")
        if name == "fill":
            value = (self.get(e.args[0]), self.type(e.args[0]))
            self.inline(array_library.assigned(f.this, value[1]), [this, value])
            return [], types.none
        if name in ("flatten", "ravel") and not e.args:
            return self.flat(this, t)
        if name == "reshape":
            return self.reshaped(this, list(e.args), t)
        args = [this, *[(self.get(a), self.type(a)) for a in e.args]]
        return self.library_call(name, args, t)

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
        if key in _NEW:
            return self.new(key, self.names(args[0]), args[1:], t)
        if key in _LIKE:
            like = self.type(args[0])
            return self.new(key, self.shape(self.names(args[0]), like), args[1:], t)
        axis = self.axis_of(args[1:], e.kws)
        if name in array_library.ALONG and axis is not None and _is_numpys(key):
            return self.along(name, self.known(args[0]), axis, t)
        if e.kws:
            raise Unsupported(f"`np.{name}` with keywords")
        if key in _BINARY and len(args) == 2:
            return self.binary(key, args[0], args[1], self.typed.calls[e], t)
        known = isinstance(key, np.ufunc) or key in (abs, np.where, np.clip)
        if known and isinstance(t, types.Array):
            return self.elementwise((np.absolute if key is abs else key, args), t)
        if key is np.reshape:
            return self.reshaped((self.names(args[0]), self.type(args[0])), args[1:], t)
        if key is np.ravel:
            return self.flat((self.names(args[0]), self.type(args[0])), t)
        if not _is_numpys(key) and not (key is sum and self.type(args[0]).ndim == 1):
            raise Unsupported(f"a call of `{getattr(key, '__module__', '')}.{name}`")
        return self.library(name, args, t)

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
        made: Operands = [self.emit("alloc", [self.product(shape)], "ptr", attribute), *shape]
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

    def contiguous(self, this: Found) -> Found:
        """An array in C order: a copy, unless it is known to be in it."""
        t = this[1]
        if t.layout == "C":
            return this
        return self.inline(array_library.copied(t), [this])

    def flat(self, this: Found, t: NumbaType) -> Found:
        """`a.ravel()` and `a.flatten()`, both as a copy where the array may be written to."""
        ops, kind = self.inline(array_library.copied(this[1]), [this])
        return [ops[0], self.product(self.shape(ops, kind))], t

    def reshaped(self, this: Found, args: list[NumbaIR], t: NumbaType) -> Found:
        """`a.reshape(...)` of an array in C order."""
        if this[1].layout != "C":
            raise Unsupported("`reshape` of an array that is not in C order")
        shape = [self.to(x, "i64") for a in args for x in self.names(a)]
        if any(isinstance(n, Constant) and n.value < 0 for n in shape):
            known = self.product(
                [n for n in shape if not (isinstance(n, Constant) and n.value < 0)]
            )
            whole = self.product(self.shape(*this))
            self.require(self.emit("ne", [known, ZERO], "i1"))
            free = self.emit("ifloordiv", [whole, known], "i64")
            shape = [free if isinstance(n, Constant) and n.value < 0 else n for n in shape]
        same = [self.product(shape), self.product(self.shape(*this))]
        self.require(self.emit("eq", same, "i1"))
        for n in shape:
            self.require(self.emit("ge", [n, ZERO], "i1"))
        self.require_size(shape)
        return [this[0][0], *shape], t

    def library(self, name: str, args: list[NumbaIR], t: NumbaType) -> Found:
        """A function of the array library, of variables."""
        return self.library_call(name, [(self.get(a), self.type(a)) for a in args], t)

    def library_call(self, name: str, args: list[Found], t: NumbaType) -> Found:
        """A function of the array library."""
        name = name.removeprefix("a") if name in ("amax", "amin") else name
        kinds = [types.unliteral(k) for _, k in args]
        f = array_library.named(name, kinds, t) or matrix_library.named(name, kinds)
        if f is None:
            where = "np" if hasattr(np, name) else "np.linalg"
            raise Unsupported(f"`{where}.{name}` of {', '.join(str(k) for _, k in args)}")
        return self.laid_out(self.inline(f, args), t)

    def elementwise(self, tree: Any, t: NumbaType) -> Found:
        """An elementwise expression over arrays: a loop, written as source."""
        if not isinstance(t, types.Array) or t.ndim > len(array_library.INDICES):
            raise Unsupported(f"an expression of arrays that gives {t}")
        leaves: dict[str, NumbaIR] = {}
        text = self.text(tree, leaves)
        kinds = [types.unliteral(self.type(v)) for v in leaves.values()]
        f = array_library.elementwise(text, kinds, t)
        found = self.inline(f, [(self.get(v), k) for v, k in zip(leaves.values(), kinds)])
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
        texts = [self.text(a, leaves) for a in args]
        if f is np.where and len(texts) == 3:
            return f"({texts[1]} if {texts[0]} else {texts[2]})"
        if f is np.clip and len(texts) == 3:
            a, low, high = texts
            return f"({low} if {a} < {low} else ({high} if {a} > {high} else {a}))"
        return array_library.applied(f, texts)

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


def _is_numpys(key: Any) -> bool:
    """Whether a function is one of NumPy's, and not one of the same name."""
    module = getattr(key, "__module__", None) or ("numpy" if isinstance(key, np.ufunc) else "")
    return bool(module.partition(".")[0] == "numpy")

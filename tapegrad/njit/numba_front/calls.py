"""Calls: of other compiled functions, of NumPy, of `math`, of builtins; operators."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numba.core.inline_closurecall import length_of_iterator
from numba.np.ufunc.dufunc import DUFunc
from numba.np.unsafe.ndarray import empty_inferred
from numba.stencils.stencil import StencilFunc

from tapegrad.njit.numba_front import complex_library, order_library
from tapegrad.njit.numba_front.array_calls import NEW, ROUNDING, is_numpys
from tapegrad.njit.numba_front.complex_calls import ComplexCalls
from tapegrad.njit.numba_front.components import COMPLEX, array_of, in_words, is_opaque, scalar
from tapegrad.njit.numba_front.iteration import INDEXED
from tapegrad.njit.numba_front.objects import NumbaIR, NumbaType, types
from tapegrad.njit.numba_front.typed_ir import RECURSION, TRY, TRYING
from tapegrad.njit.numba_front.writer import (
    COMPARISONS,
    POWERS,
    UFUNCS,
    ZERO,
    Found,
    Operands,
    plain,
    row_of,
)
from tapegrad.njit.three_address_code import FLOATS, Constant, Operand, Unsupported

_MADE = (np.arange, np.linspace, np.eye, np.identity)
_UNARY = (operator.neg, operator.pos, operator.invert)
_BINARY = (*(f for f in UFUNCS if f not in _UNARY), operator.matmul)
_TO_NUMBER = (float, int, bool)
_CONDITIONS: dict[Any, Any] = {
    np.logical_and: operator.and_, np.logical_or: operator.or_, np.logical_xor: operator.xor,
    np.logical_not: operator.not_,
    **{ufunc: f for f, ufunc in UFUNCS.items() if f in COMPARISONS},
}  # fmt: skip
_IDENTITIES = (np.positive, np.conjugate, np.real)
_FINITE = {"isfinite": "lt", "isinf": "eq"}


def is_prange(key: Any) -> bool:
    """Whether a function is `numba.prange`."""
    return getattr(key, "__name__", "") in ("prange", "internal_prange")


class Calls(ComplexCalls):
    """Writes the code of calls and operators."""

    def call(self, e: NumbaIR, t: NumbaType, target: NumbaIR) -> Found | None:
        """A call; None where the target needs no assignment."""
        f = self.type(e.func)
        if isinstance(f, types.RecursiveCall):
            raise Unsupported(RECURSION)
        if isinstance(f, types.ExceptionClass):
            return [], t
        if isinstance(f, types.Dispatcher):
            return self.inline(f.dispatcher, self.bound(f.dispatcher.py_func, *self.given_to(e)))
        if isinstance(f, types.BoundFunction):
            return self.method(f, e, t)
        if isinstance(f, types.NamedTupleClass):
            parts = self.bound(f.instance_class, *self.given_to(e))
            return [x for (ops, of), part in zip(parts, t) for x in self.cast(ops, of, part)], t
        if isinstance(f, types.NumberClass):
            return self.converted(e.args[0], t)
        key = getattr(f, "typing_key", None)
        if key is None:
            raise Unsupported(getattr(f, "refusal", f"a call of {in_words(f)}"))
        return self.builtin(key, e, t, target)

    # -- builtins ----------------------------------------------------------------------------

    def builtin(self, key: Any, e: NumbaIR, t: NumbaType, target: NumbaIR) -> Found | None:
        """A call of a function that Numba knows."""
        args, name = list(e.args), getattr(key, "__name__", "")
        known = is_numpys(key) or getattr(key, "__module__", "") == "math"
        kinds = [self.type(a) for a in args]
        if isinstance(key, StencilFunc):
            return self.laid_out(self.stencil(key, e), t)
        if key is complex:
            return self.complex_of(args, t), t
        if key is slice:
            self.slices[target.name] = self.slice_of(args)
            return None
        if key is range or is_prange(key):
            return self.range(args), t
        if key is len:
            return [self.length(self.names(args[0]), kinds[0])], t
        # What Numba makes of `np.array([... for x in values])`.
        if key is length_of_iterator:
            *_, count, _ = self.names(args[0])
            return [count], t
        if key is empty_inferred:
            return self.new(np.empty, self.names(args[0]), [], t)
        if key in INDEXED:
            return self.indexed(key, args, t), t
        if key is enumerate or key is zip:
            return self.iterator_over(key, args, t), t
        if key is tuple and isinstance(kinds[0], types.BaseTuple):
            return self.get(args[0], t), t
        if key in _TO_NUMBER or name in ("is_true", "truth"):
            return self.converted(args[0], t)
        if self.is_of_complex(e):
            return self.complex_function(key, e, t)
        if key in (min, max) and len(args) > 1:
            return self.extreme(key, [self.known(a) for a in args], t)
        if key in (min, max, sum) and len(args) == 1 and not e.kws:
            return self.of_all(key, args[0], e, t)
        if key is np.array:
            return self.array_of_parts(args[0], t)
        if known and (joined := self.of_several(name, e, t)) is not None:
            return joined
        if any(isinstance(k, types.Array) for k in kinds) or key in NEW or key in _MADE:
            if key in _BINARY and len(args) == 2 and not e.kws:
                return self.binary(key, args[0], args[1], self.typed.calls[e], t)
            return self.array_function(key, name, e, t)
        if known and name in ("isnan", "isinf", "isfinite", "signbit"):
            return [self.classified(name, self.get(args[0])[0])], t
        return self.scalar_function(key, name, args, e, t)

    def scalar_function(
        self, key: Any, name: str, args: list[NumbaIR], e: NumbaIR, t: NumbaType
    ) -> Found:
        """A function of numbers: an operator, or one that has a row."""
        kind = scalar(t)
        if isinstance(key, DUFunc):
            return self.user_ufunc(key, args, t)
        f = plain(key)
        if f in _BINARY:
            return self.binary(f, args[0], args[1], self.typed.calls[e], t)
        if key is np.where and kind is not None:
            c, x, y = (self.get(a)[0] for a in args)
            return [self.chosen(self.to(c, "i1"), self.to(x, kind), self.to(y, kind))], t
        if key in ROUNDING and len(args) > 1:
            return self.inline(order_library.rounded(), [self.known(a) for a in args])
        if key is divmod:
            kinds = [*t]
            values = [x for a in args for x in self.get(a, kinds[0])]
            whole, rest = (
                self.operation(f, values, kinds[0])[0] for f in (operator.floordiv, operator.mod)
            )
            return [*whole, *rest], t
        if kind == "i1" and (f := _CONDITIONS.get(key)) is not None:
            return [self.condition(f, args, self.typed.calls[e].args)], t
        if key in _IDENTITIES and kind in FLOATS:
            return [self.number(args[0], kind)], t
        row = row_of(np.rint if key in ROUNDING else key)
        if key is abs and types.unliteral(t) == types.uint64:
            return self.get(args[0]), t
        if key is abs and kind == "i64":
            return [self.emit("iabs", [self.number(args[0], "i64")], "i64")], t
        if key is pow or key is math.pow or key is np.power:
            return self.raised(args[0], args[1], t)
        if row is None or kind is None or e.kws:
            module = getattr(key, "__module__", None)
            called = f"a call of `{module}.{name}`" if module else f"a call of `{key}`"
            return self.overloaded(e, t, TRY if module == TRYING else called)
        work = kind if kind in FLOATS else "f64"
        values = [self.number(a, work) for a in args]
        if kind == "i1":
            raise Unsupported(f"`{name}` of numbers")
        value = self.emit(row, values, work)
        return [self.to(value, kind)], t

    def user_ufunc(self, key: Any, args: list[NumbaIR], t: NumbaType) -> Found:
        """A ufunc of a user, of numbers; it computes in the types of one of its loops."""
        given = [self.known(a) for a in args]
        loop = key.find_ewise_function(tuple(kind for _, kind in given))[1]
        if loop is not None:
            wanted = loop.signature.args
            given = [(self.cast(ops, a, b), b) for (ops, a), b in zip(given, wanted)]
        return self.inline(key._dispatcher.py_func, given)

    def condition(self, f: Any, args: list[NumbaIR], kinds: Sequence[NumbaType]) -> Operand:
        """A comparison or a logical function of numbers, by its operator."""
        if f in COMPARISONS:
            return self.comparison(f, [self.get(a, k)[0] for a, k in zip(args, kinds)], kinds)
        values = [self.number(a, "i1") for a in args]
        if f is operator.not_:
            return self.emit("not", values, "i1")
        return self.operation(f, values, types.boolean)[0][0]

    def classified(self, name: str, x: Operand) -> Operand:
        """Whether a number is infinite, finite, NaN or below zero."""
        kind = self.code.type_of(x)
        if name == "signbit":
            row = row_of(np.copysign)
            assert row is not None
            one = self.emit(row, [Constant(1.0, "f64"), self.to(x, "f64")], "f64")
            return self.emit("lt", [one, Constant(0.0, "f64")], "i1")
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
        if have in COMPLEX and kind == "i1":
            return self.inline(complex_library.truth, [self.known(var)])
        if t in COMPLEX:
            return self.cast(self.get(var), have, t), t
        if kind is None or scalar(have) is None:
            raise Unsupported(f"a conversion of {have} to {t}")
        if isinstance(t, types.Integer) and not isinstance(have, types.Float):
            return [self.truncated(self.number(var, "i64"), t)], t
        if isinstance(t, types.Integer):
            return [self.truncated(self.whole(self.get(var)[0], t), t)], t
        return self.cast(self.get(var), have, t), t

    def whole(self, x: Operand, t: NumbaType) -> Operand:
        """A float as an integer; a large one as an unsigned one."""
        if t != types.uint64:
            return self.to(x, "i64")
        kind = self.code.type_of(x)
        half = Constant(2.0**63, kind)
        less = self.to(self.emit("sub", [x, half], kind), "i64")
        large = self.emit("ixor", [less, Constant(-(1 << 63), "i64")], "i64")
        return self.chosen(self.emit("ge", [x, half], "i1"), large, self.to(x, "i64"))

    def of_all(self, key: Any, var: NumbaIR, e: NumbaIR, t: NumbaType) -> Found:
        """Python's `min`, `max` and `sum` of a vector, a list, or a tuple of numbers."""
        ops, kind = self.known(var)
        if isinstance(kind, types.BaseTuple) and len(kind):
            parts = self.parts(ops, kind)
            if key is not sum:
                return self.extreme(key, parts, t)
            total = self.cast([ZERO], types.int64, t)
            for part, of in parts:
                values = [*total, *self.cast(part, of, t)]
                total, _ = self.operation(operator.add, values, t)
            return total, t
        if isinstance(kind, types.List):
            kind = array_of(kind)
        if not isinstance(kind, types.Array) or kind.ndim != 1:
            return self.overloaded(e, t, f"a call of `builtins.{key.__name__}`")
        if key is not sum:
            return self.inline(order_library.extreme(key.__name__), [(ops, kind)])
        found = self.library("sum", [(ops, kind)], t)
        assert found is not None
        return found

    def extreme(self, key: Any, parts: list[Found], t: NumbaType) -> Found:
        """Python's `min` and `max` of numbers: the first, unless a later one is beyond it."""
        kind = scalar(t)
        if kind is None:
            raise Unsupported(f"`{key.__name__}` of {t}")
        best, *others = [self.cast(ops, of, t)[0] for ops, of in parts]
        for x in others:
            if kind == "i64" and types.unliteral(t) != types.uint64:
                best = self.emit("imax" if key is max else "imin", [best, x], kind)
                continue
            f = operator.gt if key is max else operator.lt
            beyond = self.comparison(f, [x, best], [t, t])
            best = self.chosen(beyond, x, best)
        return [best], t

    def raised(self, a: NumbaIR, b: NumbaIR, t: NumbaType) -> Found:
        """A power."""
        kind, n = scalar(t), self.constant_of(b)
        whole = isinstance(n, int | float) and abs(n) <= POWERS and n == int(n)
        if whole and (kind in FLOATS or (kind == "i64" and n >= 0)):
            return [self.power(self.number(a, kind), int(n))], t
        if kind not in FLOATS:
            return self.inline(order_library.integer_power(), [self.known(a), self.known(b)])
        row = row_of(np.power)
        assert row is not None
        return [self.emit(row, [self.number(a, kind), self.number(b, kind)], kind)], t

    def binary(self, f: Any, a: NumbaIR, b: NumbaIR, signature: Any, t: NumbaType) -> Found:
        """An operator of two numbers or arrays."""
        f = plain(f)
        kinds = [self.type(a), self.type(b)]
        nothing = [isinstance(k, types.NoneType) for k in kinds]
        if f in (operator.is_, operator.is_not) and any(nothing):
            if any(isinstance(k, types.Optional) for k in kinds):
                return [self.is_none_or_not(f, b if nothing[0] else a)], t
            return [Constant(all(nothing) == (f is operator.is_), "i1")], t
        if any(isinstance(k, types.Array) for k in kinds):
            if f is operator.matmul:
                found = self.library("dot", [self.known(a), self.known(b)], t)
                if found is None:
                    raise Unsupported(f"the product of {kinds[0]} and {kinds[1]}")
                return found
            return self.elementwise((f, [a, b]), t)
        if f in (pow, operator.pow) and t not in COMPLEX:
            return self.raised(a, b, t)
        texts = [getattr(k, "literal_value", None) for k in kinds]
        if all(isinstance(text, str) for text in texts) and f in COMPARISONS:
            return [Constant(bool(f(*texts)), "i1")], t
        if isinstance(kinds[0], types.BaseTuple):
            if f is operator.add:
                count = len(kinds[0])
                ends = [types.BaseTuple.from_types(part) for part in ([*t][:count], [*t][count:])]
                return [*self.get(a, ends[0]), *self.get(b, ends[1])], t
            if f in (operator.eq, operator.ne):
                return [self.tuples_equal(a, b, f is operator.eq)], t
            if f is operator.contains and scalar(kinds[1]) is not None:
                return [self.contained(a, b)], t
            raise Unsupported(f"the operator `{f.__name__}` on tuples")
        if any(types.unliteral(k) in COMPLEX for k in signature.args):
            given = [(self.get(x, k), types.unliteral(k)) for x, k in zip((a, b), signature.args)]
            return self.complex_binary(f, given, b, t)
        if any(scalar(k) is None for k in signature.args):
            raise Unsupported(f"the operator `{f.__name__}` on {kinds[0]} and {kinds[1]}")
        x, y = self.get(a, signature.args[0]), self.get(b, signature.args[1])
        if f in COMPARISONS:
            return [self.comparison(f, [*x, *y], signature.args)], t
        values = [*x, *y]
        if (kind := scalar(signature.return_type)) in FLOATS:
            values = [self.as_kind(v, k, kind) for v, k in zip(values, signature.args)]
        return self.operation(f, values, signature.return_type)

    def is_none_or_not(self, f: Any, x: NumbaIR) -> Operand:
        """`x is None`, or `x is not None`, of what may be None."""
        if is_opaque(self.type(x)):
            raise Unsupported(f"the operator `{f.__name__}` on {self.type(x)} and none")
        some = self.get(x)[0]
        return some if f is operator.is_not else self.emit("not", [some], "i1")

    def comparison(self, f: Any, values: Operands, kinds: Sequence[NumbaType]) -> Operand:
        """A comparison of two numbers."""
        plain_kinds = [types.unliteral(k) for k in kinds]
        if types.uint64 in plain_kinds and all(isinstance(k, types.Integer) for k in plain_kinds):
            return self.compared(f, values[0], values[1], plain_kinds)
        return self.operation(f, values, types.boolean)[0][0]

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

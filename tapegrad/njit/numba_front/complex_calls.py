"""Calls and operators of complex numbers, by their parts or from their library."""

from __future__ import annotations

import cmath
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.njit.numba_front import complex_library
from tapegrad.njit.numba_front.array_calls import ArrayCalls
from tapegrad.njit.numba_front.components import COMPLEX, is_number
from tapegrad.njit.numba_front.objects import NumbaIR, NumbaType, types
from tapegrad.njit.numba_front.writer import COMPARISONS, POWERS, UFUNCS, Found, Operands, plain
from tapegrad.njit.three_address_code import Constant, Unsupported

# The operators of complex numbers, by their ufuncs.
_SIGNS = {pow: operator.pow} | {
    UFUNCS[f]: f for f in (
        operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.eq,
        operator.ne,
    )
}  # fmt: skip


class ComplexCalls(ArrayCalls):
    """Writes the code of functions of complex numbers that are no arrays."""

    def is_of_complex(self, e: NumbaIR) -> bool:
        """Whether a call is of a function of complex numbers, not of arrays."""
        kinds = [types.unliteral(k) for k in self.typed.calls[e].args]
        return any(k in COMPLEX for k in kinds) and all(map(is_number, kinds)) and not e.kws

    def complex_of(self, args: list[NumbaIR], t: NumbaType) -> Operands:
        """`complex(x)`, or `complex(x, y)` of real numbers."""
        parts = [self.cast(self.get(a), self.type(a), t) for a in args]
        if len(parts) == 1:
            return parts[0]
        if any(types.unliteral(self.type(a)) in COMPLEX for a in args):
            raise Unsupported("`complex(x, y)` of complex numbers")
        return [x for x, _ in parts]

    def complex_function(self, key: Any, e: NumbaIR, t: NumbaType) -> Found:
        """A function of complex numbers: by their parts, or from their library."""
        kinds = [types.unliteral(k) for k in self.typed.calls[e].args]
        given = [(self.get(a, k), k) for a, k in zip(e.args, kinds)]
        f = UFUNCS.get(plain(key), key)
        x, kind = given[0]
        if f in _SIGNS:
            return self.complex_binary(_SIGNS[f], given, e.args[1], t)
        if f in _BY_PARTS:
            return _BY_PARTS[f](self, x, t), t
        if key in (np.real, np.imag):
            return self.part_of(key.__name__, x, kind)
        if key is np.where and t in COMPLEX:
            condition = self.number(e.args[0], "i1")
            both = (self.cast(*value, t) for value in given[1:])
            return [self.chosen(condition, y, z) for y, z in zip(*both)], t
        if key is cmath.polar:
            parts = [self.inline(complex_library.FUNCTIONS[f], given) for f in (abs, cmath.phase)]
            return [value for ops, _ in parts for value in ops], t
        if key is np.reciprocal:
            one = self.cast([Constant(1.0, "f64")], types.float64, kind)
            return self.inline(complex_library.divide, [(one, kind), *given])
        found = complex_library.FUNCTIONS.get(f)
        if found is None:
            return self.overloaded(e, t, f"`{getattr(key, '__name__', key)}` of complex numbers")
        return self.inline(found, given)

    def complex_binary(self, f: Any, given: list[Found], b: NumbaIR, t: NumbaType) -> Found:
        """An operator of complex numbers; `b` is the second of them as it stands there."""
        (x, kind), (y, _) = given
        if f is operator.truediv:
            if not self.typed.divides_as_numpy:
                zero = self.cast([Constant(0.0, "f64")], types.float64, kind)
                self.require(self.complex_operation(operator.ne, y, zero, types.boolean)[0])
            return self.inline(complex_library.divide, given)
        n = self.constant_of(b)
        if f is not operator.pow:
            return self.complex_operation(f, x, y, types.boolean if f in COMPARISONS else t), t
        if isinstance(n, int | float) and 0 < n <= POWERS and n == int(n):
            return self.complex_power(x, int(n), t), t
        return self.inline(complex_library.power, given)

    def complex_power(self, x: Operands, n: int, t: NumbaType) -> Operands:
        """A power whose exponent is a positive integer, by products."""
        if n == 1:
            return x
        half = self.complex_power(x, n // 2, t)
        square = self.complex_operation(operator.mul, half, half, t)
        return self.complex_operation(operator.mul, square, x, t) if n % 2 else square


# By ufuncs: the parts of the result, from those of the operand.
_BY_PARTS: dict[Any, Callable[[Any, Operands, NumbaType], Operands]] = {
    np.positive: lambda writer, x, t: x,
    np.negative: lambda writer, x, t: writer.negatives(x),
    np.conjugate: lambda writer, x, t: writer.conjugate((x, t)),
    np.square: lambda writer, x, t: writer.complex_operation(operator.mul, x, x, t),
}

"""The fast path: elementwise operations and matrix products of float64 Tensors of modest size.

Of float32 it takes two operands of different shapes; those of one shape are left to native code.

`unary`, `binary` and `matmul` build the public function of an operation.  On common operands it
computes and writes the record itself; everything else goes to `dispatch.run`.  The lines that
append a record are those of `Tape.append`, inlined: a call there would cost a tenth of the whole.

Operations start with these functions in Python.  Compiled code replaces them as `Op.short` once it
is available (see `native.install`), and falls back to them.

Shapes are compared by their numbers (see `tapegrad.tape.shape_table`): the result's shape and the
broadcasting of a pair of shapes are worked out once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.base.abstract_array import AbstractArray
from tapegrad.base.native_arrays import native_array, refuse_operand
from tapegrad.dispatch.dispatch import MANY_CALLS, count_call, note_many_calls, resolve, run
from tapegrad.dispatch.native_calls import native_calls
from tapegrad.dispatch.numpy_semantics import numpys
from tapegrad.dispatch.record_layout import classes, matrix_layout
from tapegrad.ops.core import NO_PARAMS, Formula, Op
from tapegrad.ops.elementwise import Lazy
from tapegrad.ops.linalg import matrix_products
from tapegrad.tape.shape_table import shapes
from tapegrad.tape.tape import (
    CLASS_SHIFT,
    DTYPE_BITS,
    F4_SHAPE,
    GENERAL,
    MODE_FAST,
    SAVES,
    SCALAR,
    STRIDE,
    Tape,
    current,
    pack_into,
)
from tapegrad.tensor import F4, F8, SHORT, Tensor, number, wrap_operand

# The functions that are only a fast path, and whether their operands are swapped.
public: dict[Callable[..., Any], tuple[Op, bool]] = {}
reductions: dict[Op, Callable[[int, bool], tuple[int, int, Any]]] = {}
_new = Tensor.__new__
ids = shapes.ids
constants: dict[float, np.ndarray] = {}
constants_f4: dict[float, np.ndarray] = {}
SCALAR_A, SCALAR_B = SCALAR << CLASS_SHIFT[0], SCALAR << CLASS_SHIFT[1]
Pair = tuple[int, int, int]  # shape of the result, bits of the word, AUX
NO_PAIR = (-1, 0, 0)
pairs: dict[tuple[int, int], Pair] = {}
products: dict[tuple[int, int], tuple[int, int, int, Any]] = {}


def constant(value: float) -> np.ndarray:
    """A 0-d float64 array, from a cache of the last few hundred: loops repeat constants."""
    found = constants.get(value) if value else None
    if found is None:
        found = np.array(value, F8)
        found.flags.writeable = False
        if value:
            if len(constants) > 256:
                constants.clear()
            constants[value] = found
    return found


def as_operand(x: Any) -> Any:
    """An operand for the general path: a Tensor, an array or a number; a list is an array."""
    if isinstance(x, (Tensor, bool, int, float, complex)) or type(x) is AbstractArray:
        return x
    if isinstance(x, (np.ndarray, np.generic)):
        if type(x) is not np.ndarray and isinstance(x, np.ndarray):
            refuse_operand(type(x))
        return native_array(x, "")
    if isinstance(x, (list, tuple)) and numpys():
        array = np.asarray(x)
        if array.dtype.kind in "biufc":
            return array
    raise TypeError(
        f"an operand must be a Tensor, a NumPy array or a number, got {type(x).__name__}"
    )


def general(op: Op, *given: Any) -> Tensor:
    """Run an elementwise operation on the general path, or have a trace record it."""
    found = traced(op, given, NO_PARAMS, 3)
    return run(op, tuple([as_operand(x) for x in given]), {}) if found is None else found


def traced(op: Op, given: tuple[Any, ...], params: dict[str, Any], above: int = 2) -> Tensor | None:
    """What an operation gives under a trace that records it at once, if it does.

    So many callers are the library's.
    """
    levels = current.tape.levels
    if not levels or not levels[-1].traces:
        return None
    found: Tensor | None = levels[-1].quick(op, given, params, above)
    return found


def add_debt(tape: Tape, number: int) -> None:
    """Account for a result with a large shape (one with an odd number)."""
    tape.add_debt(8 * shapes.counts[number])


def _set_short(op: Op, short: Callable[..., Any]) -> None:
    """Give an operation its fast path, which compiled code may take the place of."""
    op.short = short
    if native_calls.new_op is not None:
        native_calls.new_op(op)


def unary(op: Op) -> Callable[[Any], Tensor]:
    """The function `op(input)` for an elementwise operation of one operand."""
    _set_short(op, _unary(op))

    def function(input: Any) -> Any:
        return op.short(input)

    public[function] = op, False
    return function


def _unary(op: Op) -> Callable[[Any], Tensor]:
    ufunc: Any = op.forward
    keeps_x, keeps_y = op.saves[0]
    keeps = keeps_x or keeps_y
    word = op.code | DTYPE_BITS[F8] | (SAVES if keeps else 0)

    def first(x: np.ndarray, out: Any) -> Any:
        nonlocal ufunc
        ufunc = lazy.load()
        return ufunc(x, out=out)

    if isinstance(ufunc, Lazy):
        lazy, ufunc = ufunc, first

    def function(input: Any) -> Tensor:
        if type(input) is not Tensor:
            return general(op, input)
        s = input._s
        tape = current.tape
        home = input._home
        if home is not None and home is not tape:
            resolve(input, tape)
        token = tape.next
        p = input._pos
        if s < 0 or (tape.mode != MODE_FAST and (p or tape.inference)):
            return run(op, (input,), {})
        x = input._a
        r = ufunc(x, out=...)
        t = _new(Tensor)
        t._a = r
        t._s = s
        if not p:
            t._pos = 0
            t._home = None
            if count_call() % MANY_CALLS == 0:
                note_many_calls()
            return t
        if s & 1:
            add_debt(tape, s)
        if p < 0:
            p = tape.slots.get(p) or tape.slot(input)
        entry = (x if keeps_x else None, r if keeps_y else None) if keeps else None
        used = tape.used
        pack_into(tape.buffer, used * STRIDE, word, p, 0, 0, s, 0)
        if tape.next is not token or used == tape.capacity:
            tape.make_room()
            return function(input)
        tape.tokens[used] = token
        tape.keep[used] = entry
        tape.used = used + 1
        tape.next = token + 1
        t._pos = token
        t._home = tape
        return t

    return function


def ternary(op: Op) -> None:
    """Give an operation of three operands a fast path, which for now is the general one."""
    _set_short(op, lambda a, b, c: general(op, a, b, c))


def pair(s: int, sb: int) -> Pair:
    """Plan the broadcasting of two operands of different shapes."""
    a, b = shapes.shapes[s], shapes.shapes[sb]
    found = NO_PAIR
    try:
        result = np.broadcast_shapes(a, b)
    except ValueError:
        result = None
    if result is not None:
        layout = classes((a, b), result) or (GENERAL, 0)
        number = shapes.number(result)
        if shapes.sizes[number] < SHORT:
            found = (number, *layout)
    pairs[s, sb] = found
    return found


def binary(op: Op) -> Callable[[Any, Any], Tensor]:
    """The function `op(input, other)` for an elementwise operation of two operands."""
    _set_short(op, _binary(op))
    return _of_two(op)


def _of_two(op: Op) -> Callable[[Any, Any], Any]:
    def function(input: Any, other: Any) -> Any:
        return op.short(input, other)

    public[function] = op, False
    return function


def whole(
    op: Op, short: Callable[[Tensor], Tensor], plan: Callable[[int, bool], tuple[int, int, Any]]
) -> None:
    """Say how a sum or mean of everything is made, and what follows from a shape, if in float64.

    That is the word of the record, its AUX and what it keeps.
    """
    reductions[op] = plan
    _set_short(op, short)


def flipped(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The same with operands swapped, for a reflected operator."""

    def operator(self: Tensor, other: Any) -> Any:
        return function(other, self)

    if function in public:
        public[operator] = public[function][0], True
    return operator


def _binary(op: Op) -> Callable[[Any, Any], Tensor]:
    if not all(isinstance(f, Formula) for f in op.formulas):
        return lambda input, other: general(op, input, other)
    ufunc = op.forward
    (aa, ab, ay), (ba, bb, by) = op.saves
    keeps = any((aa, ab, ay, ba, bb, by))
    a_keeps, b_keeps = any((aa, ab, ay)), any((ba, bb, by))
    plain = op.code | DTYPE_BITS[F8] | (SAVES if keeps else 0)
    in_float32 = op.code | DTYPE_BITS[F4] | (SAVES if keeps else 0)
    number_a, number_b = plain | SCALAR_A, plain | SCALAR_B

    def function(input: Any, other: Any) -> Tensor:
        tape = current.tape
        token = tape.next
        kind = type(input)
        if kind is Tensor:
            home = input._home
            if home is not None and home is not tape:
                resolve(input, tape)
            a, p, s = input._a, input._pos, input._s
        elif (kind is float or kind is int) and type(other) is Tensor:
            a = constant(float(input))
            p = s = 0
        else:
            return general(op, input, other)
        kind = type(other)
        if kind is Tensor:
            home = other._home
            if home is not None and home is not tape:
                resolve(other, tape)
            b, q, sb = other._a, other._pos, other._s
        elif kind is float or kind is int:
            b = constant(float(other))
            q = sb = 0
        elif kind is np.ndarray:
            b, q = other, 0
            sb = ids.get(b.shape) if b.dtype is F8 else -1
            if sb != s and (sb is None or b.size >= SHORT):  # of the same shape it is as small
                sb = number(b)
        else:
            return general(op, input, other)
        aux = 0
        if s == sb:
            word = plain
        elif sb == 0:
            word = number_b
        elif s == 0:
            s, word = sb, number_a
        elif s == -1 or sb == -1 or (s < 0) != (sb < 0):
            s = -1
        elif s < 0:
            one, two = F4_SHAPE - s, F4_SHAPE - sb
            s, word, aux = pairs.get((one, two)) or pair(one, two)
            word |= in_float32
        else:
            s, word, aux = pairs.get((s, sb)) or pair(s, sb)
            word |= plain
        if s < 0 or (tape.mode != MODE_FAST and (p or q or tape.inference)):
            return run(op, (as_operand(input), as_operand(other)), {})
        r = ufunc(a, b) if s else ufunc(a, b, out=...)
        t = _new(Tensor)
        t._a = r
        t._s = s if r.dtype is F8 else F4_SHAPE - s
        if not (p or q):
            t._pos = 0
            t._home = None
            if count_call() % MANY_CALLS == 0:
                note_many_calls()
            return t
        if s & 1:
            tape.add_debt(r.nbytes)
        if p < 0:
            p = tape.slots.get(p) or tape.slot(input)
        if q < 0:
            q = tape.slots.get(q) or tape.slot(other)
        if keeps and ((p and a_keeps) or (q and b_keeps)):
            if kind is np.ndarray:
                b = b[...]
            entry: Any = (
                a if (aa and p) or (ba and q) else None,
                b if (ab and p) or (bb and q) else None,
                r if (ay and p) or (by and q) else None,
            )
        else:
            word &= ~SAVES
            entry = None
        if word & GENERAL:
            specs = (a.shape, a.dtype), (b.shape, b.dtype)
            entry = (*(entry or (None, None, None)), ({}, specs))
        used = tape.used
        pack_into(tape.buffer, used * STRIDE, word, p, q, 0, s, aux)
        if tape.next is not token or used == tape.capacity:
            tape.make_room()
            return function(input, other)
        tape.tokens[used] = token
        tape.keep[used] = entry
        tape.used = used + 1
        tape.next = token + 1
        t._pos = token
        t._home = tape
        return t

    return function


def product(s: int, sb: int, dtype: Any = F8) -> tuple[int, int, int, Any]:
    """Plan products of matrices or vectors: the result's shape, bits, AUX, and saved values.

    The factors have one batch, or one of them is a matrix or a vector.
    """
    a, b = shapes.shapes[s], shapes.shapes[sb]
    found: tuple[int, int, int, Any] = (-1, 0, 0, None)
    alike = not a[:-2] or not b[:-2] or a[:-2] == b[:-2]
    if a and b and alike and a[-1] == b[-2:][0]:
        number = shapes.number((*(a[:-2] or b[:-2]), *a[-2:-1], *b[-1:][: len(b) - 1]))
        layout = None if dtype.kind == "c" else matrix_layout(a, b)
        bits, aux = (GENERAL, 0) if layout is None else layout
        found = (number, bits, aux, ({}, ((a, dtype), (b, dtype))))
    if dtype is F8:
        products[s, sb] = found
    return found


def matmul(op: Op, otherwise: Callable[[Any, Any], Tensor]) -> Callable[[Any, Any], Tensor]:
    """The function of products of matrices and vectors."""
    _set_short(op, _matmul(op, otherwise))
    return _of_two(op)


def _matmul(op: Op, otherwise: Callable[[Any, Any], Tensor]) -> Callable[[Any, Any], Tensor]:
    plain = op.code | DTYPE_BITS[F8] | SAVES

    def function(input: Any, other: Any) -> Tensor:
        if type(other) is np.ndarray:
            if other.dtype is not F8 or type(input) is not Tensor or input._s < 0:
                return otherwise(input, other)  # where arrays are promoted, and Tensors are not
            other = wrap_operand(other)
        if type(input) is not Tensor or type(other) is not Tensor:
            found = traced(op, (input, other), NO_PARAMS)
            return otherwise(input, other) if found is None else found
        tape = current.tape
        home = other._home
        if home is not None and home is not tape:
            resolve(other, tape)
        home = input._home
        if home is not None and home is not tape:
            resolve(input, tape)
        token = tape.next
        s, sb = input._s, other._s
        p, q = input._pos, other._pos
        if s < 0 or sb < 0 or (tape.mode != MODE_FAST and (p or q or tape.inference)):
            return otherwise(input, other)
        s, word, aux, extra = products.get((s, sb)) or product(s, sb)
        if s < 0:
            return otherwise(input, other)
        a, b = input._a, other._a
        r = a.dot(b) if a.ndim < 3 and b.ndim < 3 else matrix_products(a, b)
        t = _new(Tensor)
        t._a = r if s else np.asarray(r)
        t._s = s
        if not (p or q):
            t._pos = 0
            t._home = None
            if count_call() % MANY_CALLS == 0:
                note_many_calls()
            return t
        if s & 1:
            add_debt(tape, s)
        if p < 0:
            p = tape.slots.get(p) or tape.slot(input)
        if q < 0:
            q = tape.slots.get(q) or tape.slot(other)
        entry = (a if q else None, b if p else None, None, extra)
        used = tape.used
        pack_into(tape.buffer, used * STRIDE, plain | word, p, q, 0, s, aux)
        if tape.next is not token or used == tape.capacity:
            tape.make_room()
            return function(input, other)
        tape.tokens[used] = token
        tape.keep[used] = entry
        tape.used = used + 1
        tape.next = token + 1
        t._pos = token
        t._home = tape
        return t

    return function

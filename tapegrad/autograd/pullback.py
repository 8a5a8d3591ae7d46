"""The pullback of one record, from the one rule of its operation.

The same code serves the plain sweep, where everything is an array, and the recorded sweep, where
everything is a Tensor and the rule's operations append records of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from typing import Any

import numpy as np

from tapegrad.dispatch.dispatch import Packed
from tapegrad.ops.complex_parts import conj, conjugate
from tapegrad.ops.core import ANALYTIC, ELEMENTWISE, Formula, Op, Spec, by_code
from tapegrad.ops.elementwise import exact, is_complex, strong
from tapegrad.ops.shape import sum_to, to
from tapegrad.tape.record_format import (
    CODE_MASK,
    DTYPE_SHIFT,
    DTYPES,
    LISTED,
    PACKED,
    STRIDE,
    unpack_from,
)
from tapegrad.tape.shape_table import shapes
from tapegrad.tape.tape import Tape
from tapegrad.tensor import F8, Tensor, placed, wrap

Wanted = Callable[[int], bool]
_COMPLEX: tuple[bool, ...] = tuple([dtype.kind == "c" for dtype in DTYPES])


class Values:
    """The values that a formula can read, by parameter name."""

    __slots__ = ("ends", "op", "params", "shared")
    op: Op
    ends: tuple[int, ...]  # of operands that are joined, along the dimension
    params: dict[str, Any]
    shared: tuple[int, Any, Any] | None  # an operand, an adjoint, and what the formula gave

    def count(self) -> int:
        """The number of operands."""
        raise NotImplementedError

    def value(self, k: int) -> Any:
        """The value of operand k."""
        raise NotImplementedError

    def result(self) -> Any:
        """The result."""
        raise NotImplementedError

    def spec(self, k: int) -> Spec:
        """Shape and dtype of operand k (k = -1: the result)."""
        raise NotImplementedError

    def read(self, name: str, k: int) -> Any:
        """The value of a formula's parameter, by its name, for operand k; not of `g` and `y`."""
        op = self.op
        if name in self.params:
            return self.params[name]
        if name in op.inputs and name != "others":
            found = self.value(op.inputs.index(name))
            return self.promoted(found) if op.kind is ELEMENTWISE and name != "condition" else found
        if name == "others":
            return tuple(self.value(i) for i in range(len(op.inputs) - 1, self.count()))
        if name.endswith("_spec"):
            stem = name[:-5]
            return self.spec(-1 if stem == "y" else op.inputs.index(stem))
        if name == "k":
            return k
        if name == "ends":
            if not hasattr(self, "ends"):
                lengths = (self.spec(i).shape[self.params["dim"]] for i in range(self.count()))
                self.ends = tuple(accumulate(lengths))
            return self.ends
        if name == "factors":
            return None  # the record keeps none
        raise KeyError(f"formula of `{op.name}` reads `{name}`, which it does not have")

    def promoted(self, x: Any) -> Any:
        """An operand for a formula: integers as numbers of the result's type, in which the
        operation computed. Their own would wrap around, or be those of half precision; Python's
        numbers would raise an error where they are divided by zero.
        """
        if type(x) in (int, float, complex):
            return np.asarray(x, self.spec(-1).dtype)
        array = x._a if isinstance(x, Tensor) else x
        if getattr(array, "dtype", F8).kind not in "biu":
            return x
        return to(x, dtype=self.spec(-1).dtype)

    def evaluate(self, k: int, g: Any = None) -> Any:
        """The formula of operand k: a partial derivative, or a vjp of the adjoint `g`."""
        op = self.op
        if self.shared is not None and self.shared[0] == k and self.shared[1] is g:
            return self.shared[2]
        formula = op.formulas[k] if k < len(op.formulas) else op.formulas[-1]
        assert isinstance(formula, Formula)
        given = []
        for name in formula.reads:
            if name == "g":
                given.append(g)
            elif name == "y":
                given.append(self.result())
            elif name.startswith("g_"):
                other = op.inputs.index(name[2:])
                self.shared = other, g, self.evaluate(other, g)
                given.append(self.shared[2])
            else:
                given.append(self.read(name, k))
        return formula.function(*given)

    def adjoint(self, k: int, g: Any) -> Any:
        """What the result's adjoint `g` contributes to that of operand k.

        Where the formula says the derivative of an analytic function, J, the adjoint gets its
        conjugate: that of a vjp, (g J)*, is conj(vjp(conj(g))).
        """
        op = self.op
        analytic = op.complex is ANALYTIC and self.complex_adjoint(g)
        if op.kind is ELEMENTWISE:
            partial = self.evaluate(k)
            if analytic:
                partial = conjugate(partial)
            found = chain(g, partial, op.exact[k] if k < len(op.exact) else op.exact[-1])
        elif analytic:
            found = conjugate(self.evaluate(k, conj(g)))
        else:
            found = self.evaluate(k, g)
        return self.fitted(found, k)

    def complex_adjoint(self, g: Any) -> bool:
        """Whether the adjoint of the result is complex."""
        return is_complex(g)

    def fitted(self, found: Any, k: int) -> Any:
        """Undo broadcasting and casting of a contribution to the adjoint of operand k."""
        return fit(found, self.spec(k))


class Given(Values):
    """Values of given operands and a result."""

    __slots__ = ("operands", "y")

    def __init__(self, op: Op, operands: Any, y: Any, params: dict[str, Any]) -> None:
        self.op, self.operands, self.y, self.params = op, operands, y, params
        self.shared = None

    def count(self) -> int:
        """The number of operands."""
        return len(self.operands)

    def value(self, k: int) -> Any:
        """The value of operand k."""
        found = self.operands[k]
        return found if isinstance(found, Tensor) else np.asarray(found)

    def result(self) -> Any:
        """The result."""
        return self.y

    def spec(self, k: int) -> Spec:
        """Shape and dtype of operand k (k = -1: the result)."""
        found = self.y if k < 0 else self.value(k)
        array = found._a if isinstance(found, Tensor) else found
        return Spec(array.shape, array.dtype)


class Saved(Values):
    """Values saved by a record."""

    __slots__ = ("codes", "entry", "index", "recorded", "specs", "tape", "word")

    def __init__(self, tape: Tape, index: int, recorded: bool) -> None:
        self.tape = tape
        self.index = index
        self.recorded = recorded
        self.shared = None
        word, a, b, c, _, _ = unpack_from(tape.buffer, index * STRIDE)
        self.word: int = word
        self.op: Op = by_code[word & CODE_MASK]
        self.codes = tuple(tape.input_lists[a : a + b]) if word & LISTED else (a, b, c)
        entry = tape.keep[index]
        if word & PACKED:
            entry = unpack(entry)
        self.params: dict[str, Any] = {}
        self.specs: tuple[Any, ...] | None = None
        if entry is not None and isinstance(entry[-1], tuple):
            self.params, self.specs = entry[-1]
            entry = entry[:-1]
        self.entry = entry

    def count(self) -> int:
        """The number of operands."""
        return len(self.entry) - 1 if self.specs is None else len(self.specs)

    def value(self, k: int) -> Any:
        """The value of operand k."""
        array = self.entry[k]
        if not self.recorded or not isinstance(array, np.ndarray):
            return array
        code = self.codes[k] if k < len(self.codes) else 0
        return lift(self.tape, code, array)

    def result(self) -> Any:
        """The result."""
        array = self.entry[-1]
        if not self.recorded:
            return array
        return placed(array, self.tape, self.tape.tokens[self.index])

    def complex_adjoint(self, g: Any) -> bool:
        """Whether the adjoint is complex: it has the result's dtype."""
        return _COMPLEX[(self.word >> DTYPE_SHIFT) & 3]

    def fitted(self, found: Any, k: int) -> Any:
        """Undo broadcasting and casting of a contribution to the adjoint of operand k."""
        if isinstance(found, Tensor) and found._s >= 0:  # mostly there is nothing to undo
            code, tape = self.codes[k], self.tape
            if code < 0:
                if tape.leaves[-code - 1]._s == found._s:
                    return found
            elif code:
                word, _, _, _, shape, _ = unpack_from(tape.buffer, tape.index(code) * STRIDE)
                if shape == found._s and DTYPES[(word >> DTYPE_SHIFT) & 3] is F8:
                    return found
        return fit(found, self.spec(k))

    def spec(self, k: int) -> Spec:
        """Shape and dtype of operand k (k = -1: the result)."""
        tape = self.tape
        if k < 0:
            return spec_at(tape, self.index)
        if self.specs is not None:
            found = self.specs[k]
            return Spec(*found) if found is not None else Spec((), DTYPES[0])
        code = self.codes[k]
        if code > 0:
            return spec_at(tape, tape.index(code))
        if code < 0:
            leaf = tape.leaves[-code - 1]._a
            return Spec(leaf.shape, leaf.dtype)
        array = self.entry[k]
        return Spec(array.shape, array.dtype)


def lift(tape: Tape, code: int, array: np.ndarray) -> Tensor:
    """A Tensor at the position that an operand had when the record was made."""
    if code > 0:
        return placed(array, tape, tape.tokens[tape.index(code)])
    t = wrap(array)
    if code < 0:
        t._pos = tape.leaves[-code - 1]._pos
    return t


def spec_at(tape: Tape, index: int) -> Spec:
    """Shape and dtype of a record's result."""
    word, _, _, _, shape, _ = unpack_from(tape.buffer, index * STRIDE)
    return Spec(shapes.shapes[shape], DTYPES[(word >> DTYPE_SHIFT) & 3])


def unpack(entry: Any) -> Any:
    """Unpack values that saved_tensors_hooks packed."""
    return tuple([part.unpacked() if isinstance(part, Packed) else part for part in entry])


def contributions(
    tape: Tape, index: int, g: Any, wanted: Wanted, recorded: bool, scratch: dict[int, Any]
) -> Iterable[tuple[int, Any]]:
    """Yield for each input that needs an adjoint its code and this record's contribution."""
    own = getattr(tape.keep[index], "pull", None)
    if own is not None:  # a user's Function brings its own rule
        return own(tape, index, g, wanted, recorded, scratch)  # type: ignore[no-any-return]
    return by_rule(tape, index, g, wanted, recorded)


def by_rule(
    tape: Tape, index: int, g: Any, wanted: Wanted, recorded: bool
) -> Iterator[tuple[int, Any]]:
    """`contributions` of a record by the rule of its operation."""
    saved = Saved(tape, index, recorded)
    for k, code in enumerate(saved.codes):
        if code and wanted(code):
            yield code, saved.adjoint(k, g)


def wanted_inputs(tape: Tape, index: int, wanted: Wanted) -> tuple[int, ...]:
    """The codes of a record's inputs; 0 for one that needs no gradient.

    The only input that has a place is wanted, or nobody would ask.
    """
    codes = tape.inputs(index)
    if codes.count(0) < len(codes) - 1:
        return tuple([code if code and wanted(code) else 0 for code in codes])
    return codes


def chain(g: Any, partial: Any, both: bool = False) -> Any:
    """The adjoint times a partial derivative, by the strong product."""
    kind = type(g)
    if kind is type(partial) and (kind is np.ndarray or kind is Tensor):
        op = exact if both else strong
        return op.entry_point(g, partial) if kind is Tensor else op.forward(g, partial)
    if not isinstance(partial, (np.ndarray, Tensor, np.generic)):
        if partial == 1:
            return g
        if partial == -1:
            return -g
        if partial == 0:  # exactly zero, also for an infinite adjoint
            if isinstance(g, Tensor):
                return wrap(np.zeros(g._a.shape, g._a.dtype))
            return np.zeros_like(g)
        return g * (partial if isinstance(partial, complex) else float(partial))
    return exact(g, partial) if both else strong(g, partial)


def fit(found: Any, spec: Spec) -> Any:
    """Undo broadcasting and casting: an adjoint has the shape and the dtype of its value."""
    if isinstance(found, np.generic):
        found = np.asarray(found)
    array = found._a if isinstance(found, Tensor) else found
    if array.shape != spec.shape:
        found = sum_to(found, shape=spec.shape)
    if array.dtype != spec.dtype:
        found = to(found, dtype=spec.dtype)
    return found

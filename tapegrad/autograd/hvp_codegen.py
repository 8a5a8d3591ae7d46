"""Generate a Hessian-vector product as one Python function for all tapes of one structure.

Which values have tangents, what is broadcast and where adjoints add up follows from the records and
the shapes alone.  A function that is differentiated repeatedly writes the same records each time:
so the code is generated once, without dead code and common subexpressions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.autograd.pullback import Saved, fit
from tapegrad.autograd.tangents import Tangent, Text, moves, plus
from tapegrad.kernels.codegen.rule_codegen import OPERANDS, Symbol
from tapegrad.ops.core import ELEMENTWISE, Op, by_code
from tapegrad.ops.reduce import remaining
from tapegrad.ops.shape import sum_to
from tapegrad.tape.record_format import (
    CODE_MASK,
    DTYPE_SHIFT,
    GENERAL,
    HOOKED,
    IN0,
    LISTED,
    MIXED,
    PACKED,
    SAVES,
    SHAPE,
    SPENT,
)
from tapegrad.tape.shape_table import Shape, shapes
from tapegrad.tape.tape import Tape
from tapegrad.tensor import F8

OTHER = HOOKED | PACKED | SPENT | LISTED | MIXED | 1 << DTYPE_SHIFT  # unsupported bits of the word
# Of `Op.moves`: views in which every element of what they see stands once.
ONCE = ("identity", "reshape", "strided")
LEAF = -1  # the code of the one leaf; others do not move, and are nothing
LONG = 200  # records from which a structure is not written down before it comes a second time
MOST = 20_000  # records of all structures that are remembered
_composed: dict[Any, Any] = {}
_records = 0
_new, _late = object(), object()
# Of a tape, the index of the first of the records, what they kept, and a vector.
Product = Callable[[Tape, int, list[Any], Any], Any]


def composed(
    tape: Tape, low: int, root: int, leaf: int, shape: Shape
) -> tuple[Product | None, bool]:
    """The generated product for the records low..root, or None; and whether there may be one later.

    It gives None where the leaf is not reached.
    """
    global _records
    tokens = tape.tokens
    base = tokens[low]
    if tokens[root] - base != root - low:
        return None, False
    rows = np.array(tape.words()[low : root + 1])
    codes = rows[:, IN0:SHAPE]
    if low == 0 and leaf == LEAF:  # as for a function that nothing else is recorded around
        np.subtract(codes, base - 1, out=codes, where=codes > 0)
    else:
        places = np.maximum(codes - (base - 1), 0)
        codes[...] = np.where(codes > 0, places, np.where(codes == leaf, LEAF, 0))
    key = rows.tobytes(), shape
    found = _composed.get(key, _new)
    if found is _new:
        _records += len(rows)
        if _records > MOST:
            _composed.clear()
            _records = len(rows)
        found = _composed[key] = _late
        if len(rows) >= LONG:
            return None, True
    if found is _late:
        found = _composed[key] = Writer(rows.tolist(), shape).write()
    return found, False


def floating(x: Any) -> Any:
    """An operand for a formula: integers would wrap around."""
    return x if getattr(x, "dtype", F8).kind not in "biu" else x.astype(F8)


def summed(x: Any, given: Shape, shape: Shape) -> Any:
    """The adjoint of broadcasting from `shape` to the shape of a result."""
    return sum_to(np.broadcast_to(x, given), shape=shape)


def flattened(x: Any, shape: Shape, given: Shape, params: Any) -> Any:
    """The adjoint of a sum over dimensions, shaped to broadcast with the operand."""
    return np.broadcast_to(x, shape).reshape(remaining(given, params["dim"], keepdim=True))


def pushed(op: Op, entry: Any, tangents: Any) -> np.ndarray:
    """The tangent of the result of an operation that is linear in each operand."""
    params, n = entry[-1][0], len(op.inputs)
    if not op.multilinear:
        return np.asarray(op.forward(tangents[0], **params))
    terms = [
        op.forward(*entry[:k], tangents[k], *entry[k + 1 : n], **params)
        for k in range(n) if tangents[k] is not None
    ]  # fmt: skip
    return np.asarray(sum(terms[1:], terms[0]))


def handed(
    op: Op, tape: Tape, index: int, entry: Any, tangents: Any, shape: Shape, g: Any, dg: Any
) -> list[Any]:
    """The adjoints of such an operation's active operands, by its rule."""
    g, dg = np.broadcast_to(g, shape), np.broadcast_to(dg, shape)
    saved = Saved(tape, index, False)
    moving = [k for k, t in enumerate(tangents) if t is not None]
    pairs: list[Any] = []
    for k in moving:
        spec = saved.spec(k)
        saved.entry = entry
        h, dh = [fit(saved.evaluate(k, x), spec) for x in (g, dg)]
        for j in moving if op.multilinear else ():
            if j != k:
                saved.entry = (*entry[:j], tangents[j], *entry[j + 1 :])
                dh = dh + fit(saved.evaluate(k, g), spec)
        pairs += (h, dh)
    return pairs


class Writer:
    """Generates the text of both passes.

    ``v`` is the vector, ``t3`` the tangent of what the third record gave.  An adjoint may have any
    shape that is broadcast to the value's, and may be a number: what a sum hands on is one number
    until somebody needs all of them.  For that of the leaf nobody asks, only for its tangent.
    """

    def __init__(self, rows: list[list[int]], shape: Shape) -> None:
        self.rows = rows
        self.text = Text()
        self.text.called |= {
            "zeros": np.zeros, "broadcast_to": np.broadcast_to, "summed": summed,
            "flattened": flattened, "floating": floating, "pushed": pushed, "handed": handed,
        }  # fmt: skip
        self.tangents: dict[int, Symbol] = {LEAF: Symbol("v")}
        self.shape_of: dict[int, Shape] = {LEAF: shape}  # of what moves
        self.adjoints: dict[int, tuple[Any, Any]] = {}  # and their tangents
        # Whose adjoints (0) or tangents of them (1) have memory of their own, in full.
        self.own: set[tuple[int, int]] = set()

    def write(self) -> Product | None:
        """The function, or None if the structure is not supported."""
        steps: list[tuple[int, Op, list[int], Tangent | None]] = []
        motion: Tangent | None
        for i, (word, *codes, shape, _) in enumerate(self.rows, 1):
            moving = [k for k, code in enumerate(codes) if code in self.tangents]
            if not moving and not word & LISTED:
                continue
            op = by_code[word & CODE_MASK]
            if word & OTHER or op.variadic:
                return None
            self.shape_of[i] = shapes.shapes[shape]
            if op.kind is not ELEMENTWISE:
                if not op.multilinear and not (op.jointly_linear and len(op.inputs) == 1):
                    return None
                self._move(i, op, codes)
                steps.append((i, op, codes, None))
            elif len(op.inputs) > 3:
                return None
            else:
                motion = self._push(i, op, codes, moving, bool(word & SAVES))
                steps.append((i, op, codes, motion))
        last = len(self.rows)
        if last not in self.tangents:
            return None
        self.adjoints[last] = 1.0, 0.0
        for i, op, codes, motion in reversed(steps):
            if i in self.adjoints:
                self._hand_on(i, op, codes, motion)
        result = "None"
        if LEAF in self.adjoints:
            result = self.text.write(self.adjoints[LEAF][1])
        return self.text.function("product", "tape, low, keep, v", result)

    def _push(self, i: int, op: Op, codes: list[int], moving: list[int], kept: bool) -> Tangent:
        """The tangent of an elementwise operation, if an operand is active."""
        text, shape = self.text, self.shape_of[i]
        values = [Symbol(f"{name}{i}") for name in OPERANDS[: len(op.inputs)]]
        y = Symbol(f"y{i}")
        for k, value in enumerate((*values, y) if kept else ()):
            entry = f"keep[{i - 1}][{k}]"
            plain = not self.rows[i - 1][0] & GENERAL or op.inputs[k : k + 1] == ("condition",)
            text.assign(value.name, entry if plain else f"floating({entry})")
        motion = Tangent(op, values, y, {k: self.tangents[codes[k]] for k in moving})
        if motion.partials:
            tangent = text.write(motion.push())
            if not any(self.shape_of.get(code) == shape for code in codes):
                tangent = f"broadcast_to({tangent}, {shape})"
            self.tangents[i] = text.assign(f"t{i}", tangent)
        return motion

    def _move(self, i: int, op: Op, codes: list[int]) -> None:
        """The tangent of a multilinear operation."""
        if op.view and op.moves in ONCE:
            text = self._seen(i, op, self.tangents[codes[0]])
        else:
            text = f"pushed({self._op(op)}, keep[{i - 1}], {self._given(codes)})"
        self.tangents[i] = self.text.assign(f"t{i}", text)

    def _seen(self, i: int, op: Op, x: Symbol) -> str:
        """A view operation applied to an array."""
        name = f"{op.name}_forward"
        self.text.called[name] = op.forward
        return f"{name}({x.name}, **keep[{i - 1}][-1][0])"

    def _op(self, op: Op) -> str:
        name = f"{op.name}_op"
        self.text.called[name] = op
        return name

    def _given(self, codes: list[int]) -> str:
        """The tangents of all operands."""
        names = [self.tangents[code].name if code in self.tangents else "None" for code in codes]
        return f"({', '.join(names)})"

    def _hand_on(self, i: int, op: Op, codes: list[int], motion: Tangent | None) -> None:
        """The adjoints of a record's inputs, from that of its result."""
        g, dg = self.adjoints[i]
        if motion is not None:
            for k, pair in motion.pull(g, dg, self.tangents[i]).items():
                self._add(codes[k], *[self._summed(x, i, codes[k]) for x in pair])
        elif op.moves == "identity":
            self._add(codes[0], g, dg)
        elif op.view and op.moves in ONCE:
            self._add_to_view(i, op, codes[0], (g, dg))
        elif op.name == "sum":
            self._add(codes[0], *[self._spread(x, i, codes[0]) for x in (g, dg)])
        else:
            what = f"{self._op(op)}, tape, low + {i - 1}, keep[{i - 1}], {self._given(codes)}"
            adjoints = f"{self.text.write(g)}, {self.text.write(dg)}"
            h = self.text.call(f"handed({what}, {self.shape_of[i]}, {adjoints})").name
            moving = [code for code in codes if code in self.tangents]
            for k, code in enumerate(moving):
                self._add(code, Symbol(f"{h}[{2 * k}]"), Symbol(f"{h}[{2 * k + 1}]"))

    def _summed(self, x: Any, i: int, code: int) -> Any:
        """Sum an adjoint over the dimensions that were broadcast."""
        shape, given = self.shape_of[i], self.shape_of[code]
        if given == shape or not moves(x):
            return x
        return self.text.call(f"summed({self.text.write(x)}, {shape}, {given})")

    def _spread(self, x: Any, i: int, code: int) -> Any:
        """The adjoint of a sum."""
        shape, given = self.shape_of[i], self.shape_of[code]
        if not shape or not isinstance(x, Symbol):
            return x
        return self.text.call(f"flattened({x.name}, {shape}, {given}, keep[{i - 1}][-1][0])")

    def _add(self, code: int, g: Any, dg: Any) -> None:
        """Add to the adjoint of a value and to its tangent."""
        before = self.adjoints.get(code, (0, 0))
        self.own -= {(code, 0), (code, 1)}
        self.adjoints[code] = (
            self.text.settled(plus(before[0], 0 if code == LEAF else g)),
            self.text.settled(plus(before[1], dg)),
        )

    def _add_to_view(self, i: int, op: Op, code: int, pair: tuple[Any, Any]) -> None:
        """Add adjoints of a view to the viewed part of its base's."""
        wholes = list(self.adjoints.get(code, (0, 0)))
        for at, x in enumerate(pair):
            if not moves(x) or (code == LEAF and at == 0):
                continue
            new = not moves(wholes[at])
            if (code, at) not in self.own:
                wholes[at] = self._own(f"{'gd'[at]}{i}", code, wholes[at])
                self.own.add((code, at))
            whole = wholes[at].name
            seen = self.text.assign(f"{whole}_{i}", self._seen(i, op, wholes[at])).name
            line = f"{seen}[...] = " if new else f"{seen} += "
            self.text.change(whole, line + self.text.write(x))
        self.adjoints[code] = wholes[0], wholes[1]

    def _own(self, name: str, code: int, adjoint: Any) -> Symbol:
        """Give an adjoint an array of its own, with what was added to it so far."""
        whole = self.text.assign(name, f"zeros({self.shape_of[code]})")
        if moves(adjoint):
            self.text.change(name, f"{name} += {self.text.write(adjoint)}")
        return whole

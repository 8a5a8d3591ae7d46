"""The two passes of a Hessian's product as one Python function, for all tapes of one structure.

What `curvature.Passes` decides record by record (which values move, what is broadcast, what is
added to what) follows from the records and the shapes alone.  A function that is differentiated
again and again writes the same records each time: the decisions are made once and written down.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.autograd.motion import Motion, motion
from tapegrad.ops.core import ELEMENTWISE, Op, by_code
from tapegrad.ops.reduce import remaining
from tapegrad.ops.shape import sum_to
from tapegrad.record import PASSES
from tapegrad.tape import (
    CODE_MASK,
    DTYPE_SHIFT,
    HOOKED,
    IN0,
    PACKED,
    SAVES,
    SHAPE,
    SPENT,
    WIDE,
    Shape,
    Tape,
    shapes,
)

OTHER = HOOKED | PACKED | SPENT | WIDE | 3 << DTYPE_SHIFT  # words that nothing here knows
# Views in which every element of what they see stands once.
ONCE = frozenset(("getitem", "permute", "diagonal", *PASSES)) - {"expand", "clone", "contiguous"}
SAME = frozenset(("clone", "contiguous", "alias"))
LEAF = -1  # the code of the one leaf; others do not move, and are nothing
MOST = 200  # records up to which a structure is worth being written down
_KNOWN = 256
_composed: dict[Any, Any] = {}
ONE, ZERO = np.ones(()), np.zeros(())


def composed(tape: Tape, low: int, root: int, leaf: int, shape: Shape) -> Any:
    """A function of the kept entries of the records low..root and a vector; None: there is none.

    It gives the product, or None where the leaf is not reached.
    """
    tokens = tape.tokens
    base = tokens[low]
    if tokens[root] - base != root - low or root - low >= MOST:
        return None
    rows = np.array(tape.words()[low : root + 1])
    codes = rows[:, IN0:SHAPE]
    if low == 0 and leaf == LEAF:  # as for a function that nothing else is recorded around
        np.subtract(codes, base - 1, out=codes, where=codes > 0)
    else:
        places = np.maximum(codes - (base - 1), 0)
        codes[...] = np.where(codes > 0, places, np.where(codes == leaf, LEAF, 0))
    key = rows.tobytes(), shape
    found = _composed.get(key, _composed)
    if found is _composed:
        if len(_composed) >= _KNOWN:
            _composed.clear()
        found = _composed[key] = Writer(rows.tolist(), shape).write()
    return found


def summed(x: Any, given: Shape, shape: Shape) -> Any:
    """The adjoint of what was broadcast from `shape` to the shape of a result."""
    return sum_to(np.broadcast_to(x, given), shape=shape)


def flattened(x: Any, shape: Shape, given: Shape, params: Any) -> Any:
    """The adjoint of a sum along dimensions, so that it is broadcast to what was summed."""
    return np.broadcast_to(x, shape).reshape(remaining(given, params["dim"], keepdim=True))


class Writer:
    """The text of both passes, and what it calls.

    ``t3`` is the tangent of the third record's result, ``g3`` its adjoint, ``d3`` the tangent of
    that; of the leaf they are ``v`` and ``d_``, for its adjoint nobody asks.
    """

    def __init__(self, rows: list[list[int]], shape: Shape) -> None:
        self.rows = rows
        self.lines: list[str] = []
        self.given: dict[str, Any] = {
            "ONE": ONE, "ZERO": ZERO, "asarray": np.asarray, "broadcast_to": np.broadcast_to,
            "add": np.add, "zeros": np.zeros, "summed": summed, "flattened": flattened,
        }  # fmt: skip
        self.shape_of: dict[int, Shape] = {LEAF: shape}  # of what moves
        self.reached: set[int] = set()  # whose adjoints there are
        self.own: set[int] = set()  # whose adjoints have memory of their own, in full

    def write(self) -> Any:
        """The function, or None where the structure is not for this."""
        steps: list[tuple[int, Op, tuple[int, int, int], Motion | None]] = []
        for i, (word, a, b, c, s, _) in enumerate(self.rows, 1):
            codes = (a, b, c)
            moving = [code in self.shape_of for code in codes]
            if not any(moving) and not word & WIDE:
                continue
            op = by_code[word & CODE_MASK]
            if word & OTHER:
                return None
            if op.kind is ELEMENTWISE:
                moves = motion(op, (moving[0], moving[1], moving[2]))
                if moves is None:
                    return None
                if moves.live:
                    self._push(i, word, codes, moves, shapes.shapes[s])
                    steps.append((i, op, codes, moves))
            elif op.name in SAME or op.name in ONCE or op.name == "sum":
                self.given[f"f{i}"] = op.forward
                text = f"f{i}({_tangent(a)}, **keep[{i - 1}][-1][0])"
                self.lines.append(f"t{i} = {text if op.name in ONCE else f'asarray({text})'}")
                self.shape_of[i] = shapes.shapes[s]
                steps.append((i, op, codes, None))
            else:
                return None
        last = len(self.rows)
        if last not in self.shape_of:
            return None
        self.lines.append(f"g{last}, d{last} = ONE, ZERO")
        self.reached.add(last)
        for i, op, codes, moves in reversed(steps):
            if i not in self.reached:
                continue
            if moves is not None:
                self._bend(i, codes, moves)
            elif op.name in SAME:
                self._add(codes[0], f"g{i}", f"d{i}")
            elif op.name in ONCE:
                self._see(i, codes[0])
            else:
                self._spread(i, codes[0])
        return self._function()

    def _function(self) -> Any:
        answer = "d_" if LEAF in self.reached else "None"
        body = "".join(f"    {line}\n" for line in [*self.lines, f"return {answer}"])
        made: dict[str, Any] = {}
        exec(f"def product(keep, v):\n{body}", self.given, made)  # text from the records alone
        return made["product"]

    def _push(self, i: int, word: int, codes: Any, moves: Any, shape: Shape) -> None:
        op = by_code[word & CODE_MASK]
        n = len(op.inputs)
        values = ["None"] * 4
        if word & SAVES:
            self.lines.append(f"e{i} = keep[{i - 1}]")
            for k in range(n):
                values[k] = f"e{i}[{k}]"
            values[3] = f"e{i}[{n}]"
        tangents = [_tangent(code) if code in self.shape_of else "None" for code in codes]
        self.given |= {f"push{i}": moves.push, f"bend{i}": moves.bend, f"s{i}": shape}
        operands = ", ".join(values + tangents)
        self.lines.append(f"t{i}, p{i} = push{i}({operands})")
        if not any(self.shape_of.get(code) == shape for code in codes):
            self.lines.append(f"t{i} = broadcast_to(t{i}, s{i})")
        self.shape_of[i] = shape
        self.given[f"operands{i}"] = operands

    def _bend(self, i: int, codes: Any, moves: Any) -> None:
        operands = self.given[f"operands{i}"]
        self.lines.append(f"h = bend{i}(g{i}, d{i}, {operands}, t{i}, p{i})")
        shape = self.shape_of[i]
        for at, k in enumerate(moves.live):
            code = codes[k]
            given = self.shape_of[code]
            pair = [f"h[{2 * at}]", f"h[{2 * at + 1}]"]
            if given != shape:
                pair = [f"summed({x}, {shape}, {given})" for x in pair]
            self._add(code, *pair)

    def _add(self, code: int, g: str, dg: str) -> None:
        """Add to the adjoint of a value and to its tangent."""
        if code in self.reached:
            g, dg = f"g{code} + {g}", f"d{_name(code)} + {dg}"
            self.own.discard(code)
        text = f"d_ = {dg}" if code == LEAF else f"g{code}, d{code} = {g}, {dg}"
        self.lines.append(text)
        self.reached.add(code)

    def _see(self, i: int, code: int) -> None:
        """Add adjoints of a view where, in those of the whole, the view lies."""
        name = _name(code)
        params = f"**keep[{i - 1}][-1][0]"
        for x in "d" if code == LEAF else "gd":
            if code not in self.own:
                self.lines.append(f"w = zeros({self.shape_of[code]})")
                if code in self.reached:
                    self.lines.append(f"w += {x}{name}")
                self.lines.append(f"{x}{name} = w")
            self.lines.append(f"w = f{i}({x}{name}, {params})")
            self.lines.append(f"add(w, {x}{i}, out=w)")
        self.own.add(code)
        self.reached.add(code)

    def _spread(self, i: int, code: int) -> None:
        """The adjoint of a sum."""
        shape = self.shape_of[i]
        pair = [f"g{i}", f"d{i}"]
        if shape:
            params = f"keep[{i - 1}][-1][0]"
            pair = [f"flattened({x}, {shape}, {self.shape_of[code]}, {params})" for x in pair]
        self._add(code, *pair)


def _name(code: int) -> str:
    return "_" if code == LEAF else str(code)


def _tangent(code: int) -> str:
    return "v" if code == LEAF else f"t{code}"

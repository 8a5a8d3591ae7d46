"""The product of a Hessian with a vector, by two passes over the tape of a function.

Upwards every record that the argument leads to gets the tangent of its result; downwards every
record hands on its adjoint together with the adjoint's own tangent.  Nothing is recorded, and the
values are those that the tape kept for the plain sweep.

What the passes know is what most functions are made of: elementwise operations, linear ones, and
products, all in float64.  For a tape with anything else on it they give up, and the transforms take
their general way, by dual values.
"""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np

from tapegrad.autograd.composed import ONCE, ONE, OTHER, SAME, ZERO, composed, flattened, summed
from tapegrad.autograd.motion import motion
from tapegrad.autograd.pullback import Saved, fit
from tapegrad.ops.core import ELEMENTWISE, Op, by_code
from tapegrad.tape import (
    CODE_MASK,
    FIELDS,
    SHAPE,
    STRIDE,
    WIDE,
    Tape,
    current,
    shapes,
)
from tapegrad.tensor import Tensor

_rows = struct.Struct(f"{FIELDS}q").iter_unpack
_NOTHING = (None,) * 4
Arrays = dict[int, Any]
FEW = 8  # vectors for which passes are made however large the arrays are


class Unknown(Exception):
    """The tape holds something that the two passes do not know."""


def leaf_products(root: Tensor, leaf: Tensor, since: int, vs: np.ndarray) -> np.ndarray | None:
    """The Hessian of a scalar in one leaf, which nothing before a position reads, times vectors.

    None: the tape holds what only the general way knows.
    """
    tape = current.tape
    code = tape.slots.get(leaf._pos)
    if code is None:
        return np.zeros(np.shape(vs))
    low = tape.index(since)
    if low < 0 or tape.last_mutation > since or tape.hooks:
        return None
    if len(vs) > FEW and _large(tape, low):
        return None  # the general way computes the products with many vectors all at once
    found = np.empty(vs.shape)
    top = tape.index(root._pos)
    product = composed(tape, low, top, code, leaf._a.shape)
    keep = tape.keep[low : top + 1] if product else None
    try:
        with np.errstate(all="ignore"):
            for k, v in enumerate(vs):
                if product:
                    bent = product(keep, v)
                else:
                    bent = Passes(tape, low, top, code, v).bend(root._pos, code)
                found[k] = 0.0 if bent is None else bent
    except Unknown:
        return None
    # A zero that met an infinity is NaN here, and zero by the general way.
    return found if math.isfinite(np.vdot(found, found)) or np.isfinite(found).all() else None


def _large(tape: Tape, low: int) -> bool:
    """Whether a result that was recorded from an index on is large: its shape's number is odd."""
    return bool((tape.words()[low:, SHAPE] & 1).any())


class Passes:
    """The tangents of what a tape recorded, and what is needed to go down again.

    Adjoints stand under the codes of what they belong to.  One may have any shape that is broadcast
    to the value's: what a sum hands on is one number until somebody needs all of them.
    """

    def __init__(self, tape: Tape, low: int, root: int, leaf: int, v: np.ndarray) -> None:
        self.tape = tape
        self.tangents: Arrays = {leaf: v}
        self.steps: list[tuple[Any, ...]] = []
        self.first: Arrays = {}  # the adjoints
        self.second: Arrays = {}  # their tangents
        self.own: set[int] = set()  # whose adjoints have memory of their own, in full
        tangents, steps = self.tangents, self.steps
        tokens, keep = tape.tokens, tape.keep
        buffer = memoryview(tape.buffer)[low * STRIDE : (root + 1) * STRIDE]
        for index, (word, a, b, c, s, _) in enumerate(_rows(buffer), low):
            ta, tb, tc = tangents.get(a), tangents.get(b), tangents.get(c)
            if ta is None and tb is None and tc is None and not word & WIDE:
                continue
            op = by_code[word & CODE_MASK]
            entry = keep[index]
            if word & OTHER or not (entry is None or type(entry) is tuple):
                raise Unknown
            token = tokens[index]
            if op.kind is not ELEMENTWISE:
                tangents[token] = _tangent(op, entry, (ta, tb, tc))
                steps.append((token, op, (a, b, c), entry, index))
                continue
            moves = motion(op, (ta is not None, tb is not None, tc is not None))
            if moves is None:
                raise Unknown
            if not moves.live:
                continue
            values = _operands(op, entry)
            t, partials = moves.push(*values, ta, tb, tc)
            shape = shapes.shapes[s]
            if t.shape != shape:
                t = np.broadcast_to(t, shape)
            tangents[token] = t
            rest = (*values, ta, tb, tc, t, partials)
            steps.append((token, None, (a, b, c), moves, rest))

    def bend(self, root: int, leaf: int) -> Any:
        """Downwards: the tangent of the adjoint of the leaf."""
        first, second, tangents = self.first, self.second, self.tangents
        first[root], second[root] = ONE, ZERO
        for token, op, codes, what, rest in reversed(self.steps):
            g = first.pop(token, None)
            if g is None:
                continue
            dg = second.pop(token)
            if op is None:
                found = what.bend(g, dg, *rest)
                shape = rest[7].shape
                for at, k in enumerate(what.live):
                    h, dh = found[2 * at], found[2 * at + 1]
                    given = rest[4 + k].shape
                    if given != shape:
                        h, dh = summed(h, shape, given), summed(dh, shape, given)
                    self._add(codes[k], h, dh)
            elif op.name in SAME:
                self._add(codes[0], g, dg)
            elif op.name in ONCE:
                self._see(op, codes[0], what[-1][0], g, dg)
            elif op.name == "sum":
                given, shape = tangents[codes[0]].shape, tangents[token].shape
                if shape:
                    g, dg = [flattened(x, shape, given, what[-1][0]) for x in (g, dg)]
                self._add(codes[0], g, dg)
            else:
                self._hand_on(op, what, rest, tangents[token].shape, g, dg)
        return second.get(leaf)

    def _add(self, code: int, g: Any, dg: Any) -> None:
        """Add to the adjoint of a value and to its tangent."""
        first, second = self.first, self.second
        held = first.get(code)
        if held is None:
            first[code], second[code] = g, dg
        else:
            first[code], second[code] = held + g, second[code] + dg
            self.own.discard(code)

    def _see(self, op: Op, code: int, params: Any, g: Any, dg: Any) -> None:
        """Add adjoints of a view where, in those of the whole, the view lies."""
        if code not in self.own:
            shape = self.tangents[code].shape
            for store in (self.first, self.second):
                whole = np.zeros(shape)
                if code in store:
                    whole += store[code]
                store[code] = whole
            self.own.add(code)
        for store, x in ((self.first, g), (self.second, dg)):
            seen = op.forward(store[code], **params)
            np.add(seen, x, out=seen)

    def _hand_on(self, op: Op, entry: Any, index: int, shape: Any, g: Any, dg: Any) -> None:
        """Any other linear operation, or a product: by its rule."""
        g, dg = np.broadcast_to(g, shape), np.broadcast_to(dg, shape)
        saved = Saved(self.tape, index, False)
        moving = [k for k, code in enumerate(saved.codes) if code in self.tangents]
        for k in moving:
            spec = saved.spec(k)
            saved.entry = entry
            h, dh = [fit(saved.evaluate(k, x), spec) for x in (g, dg)]
            for j in moving if op.multilinear else ():
                if j != k:
                    t = self.tangents[saved.codes[j]]
                    saved.entry = (*entry[:j], t, *entry[j + 1 :])
                    dh = dh + fit(saved.evaluate(k, g), spec)
            self._add(saved.codes[k], h, dh)


def _tangent(op: Op, entry: Any, tangents: Any) -> np.ndarray:
    """The tangent of the result of what is not elementwise."""
    params = entry[-1][0]
    if op.jointly_linear and len(op.inputs) == 1 and not op.variadic:
        return np.asarray(op.forward(tangents[0], **params))
    if not op.multilinear or op.variadic:
        raise Unknown
    n = len(op.inputs)
    terms = [
        op.forward(*entry[:k], tangents[k], *entry[k + 1 : n], **params)
        for k in range(n) if tangents[k] is not None
    ]  # fmt: skip
    return np.asarray(sum(terms[1:], terms[0]))


def _operands(op: Op, entry: Any) -> Any:
    """The kept values as (a, b, c, y)."""
    if entry is None:
        return _NOTHING
    n = len(op.inputs)
    return entry[:4] if n == 3 else (*entry[:n], *_NOTHING[n:3], entry[n])

"""Forward mode: a Dual is a value with its tangent, pushed forward by the existing rules.

An elementwise operation's tangent is the sum of its partials times the operands' tangents; a linear
operation is its own derivative; a multilinear one is so in each operand; any other is transposed
twice: its vjp is linear in the adjoint, and the vjp of that is the jvp.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.autograd.function import Function
from tapegrad.autograd.grad_mode import recording
from tapegrad.autograd.pullback import Given, chain
from tapegrad.autograd.tangents import pushed
from tapegrad.dispatch.dispatch import run
from tapegrad.dispatch.op_functions import constant
from tapegrad.dispatch.views import make_view
from tapegrad.lift import function_jvp
from tapegrad.lift.gradient_targets import forget, variable
from tapegrad.lift.levels import Level, below
from tapegrad.lift.lifted_tensor import (
    Lifted,
    above,
    based,
    become,
    handle,
    highest,
    on_tape,
    overwrite,
    pull,
    zeros_like,
)
from tapegrad.ops import elementwise as e
from tapegrad.ops.core import ELEMENTWISE, OWN, Formula, Op
from tapegrad.ops.elementwise import is_complex
from tapegrad.ops.linalg import matmul, product
from tapegrad.ops.shape import clone, expand, to
from tapegrad.ops.strided import as_strided
from tapegrad.tape import versions
from tapegrad.tape.tape import current
from tapegrad.tensor import Tensor, View, number, place, wrap_as


class Parts:
    """The parts of a Dual; `owned`: the memory of the tangent is not shared."""

    __slots__ = ("at", "owned", "primal", "tangent")

    def __init__(self, at: Level, primal: Tensor, tangent: Tensor, *, owned: bool) -> None:
        self.at = at
        self.primal = primal
        self.tangent = tangent
        self.owned = owned


class Dual(Lifted):
    """A value and its tangent."""

    __slots__ = ()
    _kind = "a forward derivative"
    _name = "jvp"
    _lift: Parts

    def parts(self) -> tuple[Tensor, ...]:
        """The value and the tangent."""
        return self._lift.primal, self._lift.tangent

    def detach(self) -> Tensor:
        """The value without history and without tangent."""
        return self._lift.primal.detach()

    def varied(self, function: Callable[[Tensor], Tensor]) -> Tensor:
        """The same with another value, whose tangent is this one's."""
        return dual(function(self._lift.primal), self._lift.tangent, self._lift.at)

    def rebuilt(self, *parts: Tensor) -> Lifted:
        """The same of another value and tangent."""
        value, slope = parts
        return dual(value, slope, self._lift.at)

    @classmethod
    def together(
        cls, function: Callable[[Tensor, Tensor], Tensor], a: Tensor, b: Tensor, at: Level
    ) -> Lifted:
        """A function of two values, and of their tangents."""
        (x, dx), (y, dy) = split(a, at), split(b, at)
        slope = function(zeros_like(x) if dx is None else dx, zeros_like(y) if dy is None else dy)
        return dual(function(x, y), slope, at)

    def __bool__(self) -> bool:
        return bool(self._lift.primal)

    def __repr__(self) -> str:
        if self._lift.at.members is None:
            return super().__repr__()
        primal, slope = self.parts()  # which `make_dual` put together
        return f"{repr(primal)[:-1]}, tangent={slope!r})"

    @classmethod
    def apply(cls, op: Op, args: Any, params: dict[str, Any], at: Level) -> Any:
        """Run an operation on the values, and its derivative on the tangents."""
        if op.kind is ELEMENTWISE:
            found = _short(op, args, at)
            if found is not None:
                return found
        elif op.view and op is not as_strided and type(args[0]) is Dual and args[0]._lift.at is at:
            lift = args[0]._lift
            _own(lift)
            x, dx = lift.primal, lift.tangent
            return dual(_seen(op, x, params), _seen(op, dx, params), at, owned=True)
        return cls._general(op, args, params, at)

    @classmethod
    def apply_function(cls, function: type[Function], args: Any, at: Level) -> Any:
        """Run a `Function` on the values, and its `jvp` on the tangents."""
        with below(at):
            pairs = [split(a, at) for a in args]
            outputs, several, changed = function_jvp.applied(
                function, args, pairs, lambda y, t: dual(y, t, at)
            )
        for j, target in changed.items():  # the argument itself, which gets the tangent in place
            overwrite(target, outputs[j])
            outputs[j] = target
        return tuple(outputs) if several else outputs[0]

    @classmethod
    def _general(cls, op: Op, args: Any, params: dict[str, Any], at: Level) -> Any:
        """`apply`, whatever the operands are."""
        primals: list[Any] = []
        tangents: list[Tensor | None] = []
        written = False  # into the memory of a tangent, which may be the result's
        for arg in args:
            if type(arg) is Dual and arg._lift.at is at:
                written |= arg._lift.owned
                if op.view:
                    _own(arg._lift)
                primals.append(arg._lift.primal)
                tangents.append(arg._lift.tangent)
            else:
                primals.append(arg)
                tangents.append(None)
        if op is as_strided:
            _check_memory(primals[0], tangents[0])
        y = Tensor._tapegrad_run(op, tuple(primals), params)
        t = tangent(op, primals, tangents, y, params)
        if t is None:
            return y
        return dual(y, _copy(t) if written and not op.view else t, at, owned=op.view)

    @classmethod
    def pull(
        cls, roots: list[Tensor], weights: list[Any], inputs: list[Tensor], at: Level, *,
        recorded: bool, retain: bool, since: int,
    ) -> list[Tensor]:  # fmt: skip
        """The gradients and their tangents, which a second sweep computes."""
        ins = [split(x, at)[0] for x in inputs]
        first: list[tuple[Tensor, Any]] = []
        second: list[tuple[Tensor, Any]] = []
        for root, weight in zip(roots, weights, strict=True):
            value, slope = split(root, at)
            w, dw = split(weight, at)
            first.append((value, w))
            if slope is not None:
                second.append((slope, w))
            if dw is not None:
                second.append((value, dw))
        more = retain or bool(second)
        gradients = pull(*_unzip(first), ins, recorded=recorded, retain=more, since=since)
        if not second:
            return gradients
        slopes = pull(*_unzip(second), ins, recorded=recorded, retain=retain, since=since)
        return [dual(g, dg, at) for g, dg in zip(gradients, slopes, strict=True)]

    @classmethod
    def promote(cls, target: Tensor, at: Level) -> None:
        """Give a Tensor, and its base if it is a view, a tangent of zeros."""
        above = based(target)
        if above is None:
            own = handle(target)
            become(target, Dual, target._a, Parts(at, own, zeros_like(target), owned=True))
            return
        base, steps = above
        if not (isinstance(base, Dual) and base._lift.at is at):
            cls.promote(base, at)
        assert isinstance(base, Dual)
        seen = base._lift.primal, base._lift.tangent
        for op, params in steps:
            seen = run(op, (seen[0],), params), run(op, (seen[1],), params)
        become(target, Dual, target._a, Parts(at, *seen, owned=True), View(base, steps, None))

    def write(self, result: Tensor) -> None:
        """Take over a result's value and tangent; views of this Tensor see both."""
        lift = self._lift
        if type(result) is Dual and result._lift.at is lift.at:
            value, slope = result._lift.primal, result._lift.tangent
        else:
            value, slope = result, zeros_like(self)
        _own(lift)
        overwrite(lift.primal, value)
        overwrite(lift.tangent, slope)
        self._a = lift.primal._a


def dual(primal: Tensor, slope: Tensor, at: Level, *, owned: bool = False) -> Lifted:
    """A value with a tangent at a level."""
    if above(primal, at) or above(slope, at):
        found = highest((primal, slope))
        assert found is not None
        return found[0].together(lambda x, t: dual(x, t, at), primal, slope, found[1])
    made = Dual.around(primal._a, Parts(at, primal, slope, owned=owned))
    if at.members is not None:
        at.members.add(made)
    return made


def _short(op: Op, args: Any, at: Level) -> Any:
    """An elementwise operation of float64 values of modest size, none of which is on a tape.

    Returns None where the general way has to be taken.
    """
    if len(args) > 3 or current.tape.inference:
        return None
    values: list[Any] = []
    slopes: list[Any] = [None, None, None]
    moving, written = 0, []
    for k, arg in enumerate(args):
        kind = type(arg)
        if kind is Dual and arg._lift.at is at:
            lift = arg._lift
            slope = lift.tangent
            if type(slope) is not Tensor or slope._s < 0 or slope._pos or _outdated(slope):
                return None
            slopes[k] = slope._a
            if lift.owned:
                written.append(slope._a)
            moving += 1 << k
            arg = lift.primal
            kind = type(arg)
        if kind is Tensor and arg._s >= 0 and not arg._pos and not _outdated(arg):
            values.append(arg._a)
        elif kind is float or kind is int:
            values.append(constant(float(arg)))
        else:
            return None
    push, exact = _pushes.get((op, moving)) or _push(op, moving)
    if push is None:
        return None
    y = op.forward(*values)
    if type(y) is not np.ndarray:
        y = np.asarray(y)
    values += _NO_MORE[len(values) :]
    t = push(*values, y, *slopes)
    if not exact and math.isnan(np.vdot(t, t)):  # perhaps zero times infinity
        return None
    if type(t) is not np.ndarray:
        t = np.asarray(t)
    if t.shape != y.shape:
        t = np.broadcast_to(t, y.shape)
    if written and any(versions.root(t) is versions.root(slope) for slope in written):
        t = t.copy()
    s = number(y)
    made = Dual.around(y, Parts(at, wrap_as(y, s), wrap_as(t, s), owned=False))
    if at.members is not None:
        at.members.add(made)
    return made


_NO_MORE = [None, None, None]
_pushes: dict[tuple[Op, int], tuple[Any, bool]] = {}


def _push(op: Op, moving: int) -> tuple[Any, bool]:
    """`pushed` for the operands whose bits are set, and whether it does without products of values.

    Then no zero can meet an infinity in it.
    """
    which = tuple([bool(moving >> k & 1) for k in range(3)])
    exact = not any(any(reads) for k, reads in enumerate(op.saves) if which[k])
    found = _pushes[op, moving] = pushed(op, which), exact
    return found


def _outdated(t: Tensor) -> bool:
    """Whether a Tensor is a view whose base has had a recorded in-place change since."""
    home = t._home
    if home is None or type(home) is not View:
        return False
    return home.base is not None and home.base._pos != home.stamp


def _seen(op: Op, x: Tensor, params: dict[str, Any]) -> Tensor:
    """A view, by the fast path if there is one."""
    if type(x) is not Tensor:
        return run(op, (x,), params)
    r = op.forward(x._a, **params)
    shared = versions.root(r) is versions.root(x._a)  # reshaping may have copied
    return make_view(op, x, params, r) if shared else run(op, (x,), params)


def _unzip(pairs: list[tuple[Tensor, Any]]) -> tuple[list[Tensor], list[Any]]:
    return [root for root, _ in pairs], [weight for _, weight in pairs]


def _own(lift: Parts) -> None:
    """Copy a shared tangent before a view of it is made, or the value changed.

    From then on the memory is written to, and no result that is not a view may share it.
    """
    if not lift.owned:
        lift.tangent = _copy(lift.tangent)
        lift.owned = True


def _copy(slope: Tensor) -> Tensor:
    return run(clone, (slope,), {})


def _check_memory(value: Tensor, slope: Tensor | None) -> None:
    """A window into the storage of a value is one into its tangent's if they lie alike."""
    whole = [() if t is None else (versions.memory(t._a).shape, t.stride(), t.storage_offset())
             for t in (value, slope)]  # fmt: skip
    if whole[0] != whole[1]:
        raise RuntimeError(
            "`as_strided` under a forward derivative (`jvp`): the tangent lies in memory in "
            "another way than the value; use indexing, or `as_strided` of `t.clone()`"
        )


def split(t: Any, at: Level) -> tuple[Any, Tensor | None]:
    """The value and the tangent (None: zero) of what may be a Dual at a level."""
    if isinstance(t, Tensor) and t._home is not None:
        place(t)
    if type(t) is Dual and t._lift.at is at:
        value, slope = t._lift.primal, t._lift.tangent
        for part in (value, slope):
            if part._home is not None:
                place(part)
        return value, slope
    if above(t, at):
        pairs = [split(part, at) for part in t.parts()]
        value = t.rebuilt(*[x for x, _ in pairs])
        if all(slope is None for _, slope in pairs):
            return value, None
        return value, t.rebuilt(*[zeros_like(x) if s is None else s for x, s in pairs])
    return t, None


def tangent(
    op: Op, primals: list[Any], tangents: list[Tensor | None], y: Tensor, params: dict[str, Any]
) -> Tensor | None:
    """The tangent of a result; None when it does not depend on any operand that has one."""
    last = len(op.formulas) - 1
    formulas = [op.formulas[min(k, last)] for k in range(len(primals))]
    live = [k for k, t in enumerate(tangents) if t is not None and isinstance(formulas[k], Formula)]
    if not live or y._a.dtype.kind not in "fc":
        return None
    if op.jointly_linear:
        given = [
            t if k in live else _zero(p) if isinstance(formulas[k], Formula) else p
            for k, (p, t) in enumerate(zip(primals, tangents, strict=True))
        ]
        return run(op, tuple(given), params)
    total = None
    values = Given(op, primals, y, params)
    for k in live:
        t = tangents[k]
        assert t is not None
        term = _term(op, k, values, t, y)
        total = term if total is None else e.add(total, term)
    return total


def _zero(p: Any) -> Any:
    if isinstance(p, (int, float)):  # whose type does not count
        return type(p)(0)
    return np.zeros(p._a.shape, p._a.dtype) if isinstance(p, Tensor) else np.zeros_like(p)


def _term(op: Op, k: int, values: Given, t: Tensor, y: Tensor) -> Tensor:
    """What the tangent of one operand contributes."""
    if op.multilinear:
        given = (*values.operands[:k], t, *values.operands[k + 1 :])
        known = op is not matmul or all(type(x) is Tensor for x in given)
        term: Tensor = Tensor._tapegrad_run(op if known else product, given, values.params)
        if op is matmul and known and math.isnan(np.vdot(term._a, term._a).real):
            term = Tensor._tapegrad_run(product, given, {})  # perhaps zero times infinity
    elif op.kind is ELEMENTWISE and (op.complex is not OWN or not is_complex(t)):
        last = len(op.formulas) - 1
        term = chain(t, values.evaluate(k), op.exact[min(k, last)])
    else:
        return _transposed(k, values, t, y)
    if term._a.dtype != y._a.dtype:
        term = run(to, (term,), {"dtype": y._a.dtype})
    if term._a.shape != y._a.shape:
        term = run(expand, (term,), {"shape": y._a.shape})
    return term


def _transposed(k: int, values: Given, t: Tensor, y: Tensor) -> Tensor:
    """The jvp by double transposition: the vjp of the vjp, which is linear in the adjoint."""
    tape = current.tape
    recorded = tape.enabled and (on_tape(t) or on_tape(y) or any(
        isinstance(p, Tensor) and on_tape(p) for p in values.operands
    ))  # fmt: skip
    with recording(tape, True):
        g = variable(zeros_like(y))
        back = values.adjoint(k, g)
        (found,) = pull([back], [t], [g], recorded=recorded)
        forget(g)
    return found

"""Lifted Tensors: under a transform a Tensor stands for several that are computed together.

A transform that lifts opens a level, numbered above every open one.  An operation unpacks its
lifted operands at the highest level among them and runs on the parts, which may be lifted at lower
levels, or be on a tape: so transforms nest in any order without perturbation confusion.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, ClassVar, NoReturn, Self

import numpy as np

from tapegrad.autograd.engine import gradients
from tapegrad.autograd.function import Function
from tapegrad.base.abstract_array import AbstractArray
from tapegrad.dispatch import inplace_views
from tapegrad.dispatch.dispatch import run
from tapegrad.dispatch.inplace import barred, check_element, run_inplace
from tapegrad.dispatch.inplace_views import stepped
from tapegrad.dispatch.layout_history import chain_to, note_layout
from tapegrad.dispatch.views import separate
from tapegrad.lift.levels import Level, below, levels_of
from tapegrad.ops.core import Op
from tapegrad.ops.graph_nodes import GradFn
from tapegrad.ops.index import assign
from tapegrad.ops.shape import alias, clone
from tapegrad.tape import versions
from tapegrad.tape.tape import Tape, current
from tapegrad.tensor import NOWHERE, Tensor, View, place, wrap

_new, _new_view = Tensor.__new__, View.__new__


class Lifted(Tensor):
    """A Tensor that stands for several: `_lift` holds the level and the parts."""

    __slots__ = ()
    _kind: ClassVar[str] = "lifted"
    _name: ClassVar[str] = ""

    @property
    def _what(self) -> str:
        """The enclosing transform, for errors: its kind, and which the user called."""
        name = self._lift.at.name or self._name
        return f"{self._kind} (`{name}`)" if name else self._kind

    @classmethod
    def around(cls, array: np.ndarray, lift: Any) -> Self:
        """The Tensor of some parts; `array` has the shape and the dtype that it shows."""
        t = _new(cls)
        t._a, t._pos, t._home, t._s, t._lift = array, 0, None, -1, lift
        return t

    @staticmethod
    def _run(op: Op, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Run an operation of which an operand is lifted."""
        tape = current.tape
        before = tape.levels
        kind, at = _open(args, op.name, before)
        if before[-1] is not at or at.size is not None:
            tape.levels = before[: before.index(at)]  # as `below` does: they stand in order
        try:
            found = kind.apply(op, args, params, at)
        finally:
            tape.levels = before
        if op.view and isinstance(found, Lifted):
            _attach_view(found, args[0], op, params)
        return found

    @staticmethod
    def _run_inplace(
        op: Op, args: tuple[Any, ...], params: dict[str, Any], target: Tensor
    ) -> Tensor:
        """Run an operation and write the result into a Tensor; it or another operand is lifted."""
        check_element(op.name + "_", target._home)
        kind, at = _open((*args, target), op.name + "_", current.tape.levels)
        with below(at, and_itself=True):  # a view is made anew from its base, which is lifted here
            return _changed(kind, at, op, args, params, target)

    def _apply_view(self, op: Op, params: dict[str, Any], name: str) -> None:
        """Replace the parts by views of them."""
        self.check_inplace_view(name)
        shown = run(op, (self,), params)
        assert type(shown) is type(self)
        self._a, self._lift = shown._a, shown._lift
        _show(self, shown)
        if isinstance(self._home, View):
            self._home = stepped(self._home, op, params)
        else:
            note_layout(self, 0, self._pos)

    @staticmethod
    def _apply(function: type[Function], args: tuple[Any, ...]) -> Any:
        """Run a `Function` of which an argument is lifted."""
        found = highest(args)
        assert found is not None
        kind, at = found
        return kind.apply_function(function, args, at)

    @classmethod
    def apply_function(cls, function: type[Function], args: Any, at: Level) -> Any:
        """Run a `Function` on the parts of those arguments that are lifted at a level."""
        raise NotImplementedError

    @classmethod
    def apply(cls, op: Op, args: Any, params: dict[str, Any], at: Level) -> Any:
        """Run an operation on the parts of those operands that are lifted at a level."""
        raise NotImplementedError

    @classmethod
    def promote(cls, target: Tensor, at: Level) -> None:
        """Make a Tensor, with what it is a view of, one that is lifted at a level."""
        raise NotImplementedError

    def _lift_view(self, view: Tensor, home: View) -> None:
        """Lift a view that was made before this Tensor, its base, was lifted, or lifted so high."""
        seen: Any = self
        for op, params in chain_to(view, home):
            seen = run(op, (seen,), params)
        become(view, type(seen), seen._a, seen._lift, View(self, home.chain, None))
        _show(view, seen)

    def _separated(self, tape: Tape) -> Tensor:
        """Give a fresh view memory of its own."""
        if any(at.traces for at in tape.levels):
            return run(clone, (self,), {})
        for part in self.parts():
            separate(part, tape)
        if type(self._a) is np.ndarray:
            self._a = self.parts()[0]._a
        return self

    def write(self, result: Tensor) -> None:
        """Take over, in place, the parts of a result that is lifted at the same level or not."""
        raise NotImplementedError

    def check_inplace_view(self, name: str) -> None:
        """Refuse to reshape in place a variable, or what is referenced outside."""
        check_inplace_view(self.parts()[0], name)

    def parts(self) -> tuple[Tensor, ...]:
        """The Tensors that this one stands for."""
        raise NotImplementedError

    def same_values(self, other: Tensor) -> bool:
        """Whether another Tensor has the same values for sure."""
        if type(other) is not type(self) or other._lift.at is not self._lift.at:
            return False
        mine, theirs = self.parts()[0], other.parts()[0]
        if isinstance(mine, Lifted):
            return mine.same_values(theirs)
        return type(theirs) is type(mine) and np.array_equal(mine._a, theirs._a)

    def computed(self) -> Tensor:
        """The first part, which holds values."""
        return self.parts()[0]

    def varied(self, function: Callable[[Tensor], Tensor]) -> Tensor:
        """The same with another value: a function of the part that holds the value."""
        raise NotImplementedError

    def rebuilt(self, *parts: Tensor) -> Lifted:
        """The same of other parts."""
        raise NotImplementedError

    def mapped(self, function: Callable[[Tensor], Tensor]) -> Lifted:
        """A function of every part."""
        return self.rebuilt(*[function(part) for part in self.parts()])

    @classmethod
    def together(
        cls, function: Callable[[Tensor, Tensor], Tensor], a: Tensor, b: Tensor, at: Level
    ) -> Lifted:
        """Apply a function, which lifts at a lower level, to the parts of two Tensors."""
        raise NotImplementedError

    @classmethod
    def pull(
        cls, roots: list[Tensor], weights: list[Any], inputs: list[Tensor], at: Level, *,
        recorded: bool, retain: bool, since: int,
    ) -> list[Tensor]:  # fmt: skip
        """The gradients of weighted roots, of which some are lifted at a level."""
        raise NotImplementedError

    def origin(self) -> str:
        """The line of the user's program that made this Tensor, if that is kept."""
        return ""

    @property
    def requires_grad(self) -> bool:
        """Whether operations on any of the parts are recorded."""
        return any(part.requires_grad for part in self.parts())

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> NoReturn:
        """Refused: a transform says by itself what is differentiated."""
        raise RuntimeError(
            f"a Tensor under {self._what} cannot be switched to require grad: "
            "call a transform (`tapegrad.grad`) inside the function instead"
        )

    @property
    def is_leaf(self) -> bool:
        """Whether no part was made by a recorded operation."""
        return all(part.is_leaf for part in self.parts())

    @property
    def grad_fn(self) -> GradFn | None:
        """The record of the first part."""
        return self.parts()[0].grad_fn

    def register_hook(self, hook: Any) -> NoReturn:
        """Refused: it would never be called."""
        raise RuntimeError(
            f"hooks and `retain_grad` of a Tensor under {self._what} are not supported: ask for "
            "the gradient itself (`tapegrad.autograd.grad`, `tapegrad.grad`)"
        )

    register_post_accumulate_grad_hook = register_hook

    def retain_grad(self) -> NoReturn:
        """Refused: see `register_hook`."""
        self.register_hook(None)

    @property
    def data(self) -> Tensor:
        """The same without history, see `detach`."""
        return self.detach()

    @data.setter
    def data(self, value: Tensor) -> None:
        raise RuntimeError(f"`data` of a Tensor under {self._what} cannot be set: use `copy_`")

    def detach(self) -> Tensor:
        """The same without history."""
        return self.varied(lambda part: part.detach())

    def detach_(self) -> NoReturn:
        """Refused: see `detach`."""
        raise RuntimeError(f"`detach_` of a Tensor under {self._what}: use `detach()`")

    def numpy(self, *, force: bool = False) -> NoReturn:
        """Refused: an array would lose what this Tensor stands for."""
        raise RuntimeError(
            f"a Tensor under {self._what} cannot be turned into an array: what it stands for "
            "would be lost; use operations of tapegrad or NumPy's functions on the Tensor itself "
            "(`np.sin(t)` instead of `math.sin(t)`, `np.stack([a, b])` of `np.array([a, b])`), or "
            "`tapegrad.stop_gradient(t)` where no derivative is wanted"
        )

    def item(self) -> Any:
        """Refused: see `numpy`."""
        return self.numpy()

    def tolist(self) -> Any:
        """Refused: see `numpy`."""
        return self.numpy()

    def __repr__(self) -> str:
        self.computed()
        parts = ", ".join(map(repr, self.parts()))
        return f"{type(self).__name__}(level={self._lift.at.number}, {parts})"


def highest(tensors: Any) -> tuple[type[Lifted], Level] | None:
    """The kind and the level of the operand that is lifted highest."""
    kind, found = None, None
    for t in tensors:
        if isinstance(t, Tensor) and type(t._home) is View:
            place(t)  # its base may have been lifted, or lifted higher
        if type(t) is not Tensor and isinstance(t, Lifted):
            at: Level = t._lift.at
            if found is None or at.number > found.number:
                kind, found = type(t), at
    return None if kind is None or found is None else (kind, found)


def above(t: Any, at: Level) -> bool:
    """Whether a Tensor is lifted at a higher level: the highest is always outermost."""
    return isinstance(t, Lifted) and bool(t._lift.at.number > at.number)


def _open(tensors: Any, name: str, levels: list[Level]) -> tuple[type[Lifted], Level]:
    found = highest(tensors)
    assert found is not None
    at = found[1]
    if at not in levels:
        if at.thread != threading.get_ident():
            where = "in another thread: a transform follows the thread that called it and no other"
        elif at.open:
            where = (
                "in a function with a derivative of its own (or in that derivative), which was not "
                "given it: pass it to that function as an argument"
            )
        else:
            where = (
                "after that has ended: return it from the function instead of keeping it outside"
            )
        raise RuntimeError(
            f"`{name}`: a Tensor that was made inside {_made(tensors, at)} is used {where}"
        )
    return found


def _made(tensors: Any, at: Level) -> str:
    """The transform in which a Tensor was lifted, and its user's line if known."""
    (t, *_) = [t for t in tensors if isinstance(t, Lifted) and t._lift.at is at]
    return t._what + t.origin()


def _attach_view(t: Lifted, parent: Any, op: Op, params: dict[str, Any]) -> None:
    """Note the base of a lifted view: lifting it higher must lift the base."""
    if isinstance(parent, Lifted) and _shared(t, parent):
        attach_view(t, parent, op, params)


def attach_view(t: Lifted, parent: Lifted, op: Op, params: dict[str, Any]) -> None:
    """Note that a lifted Tensor is a view of another one."""
    home: Any = parent._home
    t._home = view = _new_view(View)
    if home is None:
        view.base, view.chain, view.stamp = parent, ((op, params),), parent._pos
    else:
        view.base, view.chain, view.stamp = home.base, (*home.chain, (op, params)), home.stamp
    view.tape, view.several, view.frozen = None, False, ""


def _shared(t: Tensor, parent: Tensor) -> bool:
    """Whether a result of a view operation shares its operand's memory; it may be a copy."""
    while isinstance(t, Lifted):
        t = t.parts()[0]
    while isinstance(parent, Lifted):
        parent = parent.parts()[0]
    home, above = t._home, parent._home
    if type(home) is View and home.base is not None:
        base = above.base if type(above) is View else parent
        if home.base is base:
            return True
    return versions.root(t._a) is versions.root(parent._a)


def _changed(
    kind: type[Lifted], at: Level, op: Op, args: tuple[Any, ...], params: dict[str, Any],
    target: Tensor,
) -> Tensor:  # fmt: skip
    if not (isinstance(target, Lifted) and target._lift.at is at):
        kind.promote(target, at)
    assert isinstance(target, Lifted)
    own = {id(versions.memory(t._a)) for t in _innermost(target)}
    args = tuple(
        run(clone, (a,), {})  # its rule may read what is about to be overwritten
        if isinstance(a, Tensor) and any(id(versions.memory(t._a)) in own for t in _innermost(a))
        else a
        for a in args
    )
    result = kind.apply(op, args, params, at)
    if result._a.shape != target._a.shape:
        raise RuntimeError(
            f"`{op.name}_`: the result has the shape {result._a.shape}, it cannot be written into "
            f"a Tensor of shape {target._a.shape}"
        )
    target.write(result)
    return target


def _show(t: Tensor, made: Tensor) -> None:
    """Take over the array that another Tensor showed, unless that is a part of this one."""
    if type(t._a) is AbstractArray and t._a.owner is made:
        t._a.stand_for(t)


def check_inplace_view(t: Tensor, name: str) -> None:
    """Refuse to reshape in place what cannot be changed in place."""
    if isinstance(t, Lifted):
        t.check_inplace_view(name)
    else:
        inplace_views.check_inplace_view(t, name)


def _innermost(t: Tensor) -> list[Tensor]:
    """The Tensors with memory of their own that a Tensor stands for."""
    return [x for part in t.parts() for x in _innermost(part)] if isinstance(t, Lifted) else [t]


def pull(
    roots: list[Tensor], weights: list[Any], inputs: list[Tensor], *, recorded: bool,
    retain: bool = False, since: int = 0,
) -> list[Tensor]:  # fmt: skip
    """The gradients of weighted roots; zeros for an input that no root depends on.

    Nothing at a position below `since` leads to an input.
    """
    lifted = highest((*roots, *inputs))
    if lifted is not None:
        kind, at = lifted
        with below(at, but=tuple(other for other in levels_of(weights) if other is not at)):
            return kind.pull(
                roots, weights, inputs, at, recorded=recorded, retain=retain, since=since
            )
    pairs = [
        (r, wrap(np.ones(r._a.shape, r._a.dtype)) if w is None else w)
        for r, w in zip(roots, weights, strict=True)
        if place(r)
    ]
    for x in inputs:
        place(x)
    found: list[Any] = [None] * len(inputs)
    if pairs:
        found = gradients(
            [r for r, _ in pairs], [w for _, w in pairs], inputs, recorded=recorded,
            retain=retain or recorded, since=since,
        )  # fmt: skip
    return [zeros_like(t) if g is None else g for g, t in zip(found, inputs, strict=True)]


def constant(array: np.ndarray, beside: Tensor) -> Tensor:
    """A transform's own constant, for computing with a Tensor: traced if that is.

    As a Tensor of no trace it would be taken for one of the user's, which may change.
    """
    if isinstance(beside, Lifted):
        for at in levels_of((beside,)):
            if at.traces:
                return at.fixed(array)
    return wrap(array)


def zeros_like(t: Tensor) -> Tensor:
    """A constant of zeros, of the shape and the dtype that a Tensor shows."""
    return constant(np.zeros(t._a.shape, t._a.dtype), t)


def overwrite(target: Tensor, value: Tensor) -> None:
    """Write a value into a Tensor in place."""
    run_inplace(assign, (target, value), {"index": (...,)}, target)


def handle(t: Tensor) -> Tensor:
    """A second Tensor object for the same array and position, or of the same parts."""
    if isinstance(t, Lifted):
        return type(t).around(t._a, t._lift)
    made = Tensor.__new__(Tensor)
    made._a, made._pos, made._home, made._s = t._a, t._pos, t._home, t._s
    return made


def based(t: Tensor) -> tuple[Tensor, Any] | None:
    """The base of a view and the chain of view operations that leads from it, if it is one."""
    home = t._home
    if isinstance(home, View) and home.base is not None:
        if home.opaque:
            raise RuntimeError(barred("an in-place operation", t))
        return home.base, chain_to(t, home)
    return None


def plain_again(t: Tensor) -> None:
    """Turn a lifted Tensor, which the user holds, into its first part."""
    part = t.parts()[0]  # type: ignore[attr-defined]
    home = part._home
    if isinstance(part, Lifted):
        home = t._home
        if isinstance(home, View):
            home.stamp = part._pos
    elif isinstance(home, View):  # each Tensor follows its base by itself
        own = View(home.base, home.chain, home.tape, frozen=home.frozen)
        own.stamp, own.several = home.stamp, home.several
        home = own
    else:  # views of the Tensor hold the part to be their base
        home = View(part, ((alias, {}),), home)
    t.__class__ = type(part)
    t._a, t._pos, t._home, t._s = part._a, part._pos, home, part._s
    if isinstance(part, Lifted):
        t._lift = part._lift
    else:
        del t._lift


def become(
    t: Tensor, kind: type[Lifted], array: np.ndarray, lift: Any, home: View | None = None
) -> None:
    """Turn a Tensor, which the user holds, into a lifted one; `home` says what it is a view of.

    Its place changes each time that it is lifted higher: so its older views see that.
    """
    t.__class__ = kind
    t._pos = max(NOWHERE, t._pos + 1)
    t._a, t._home, t._s, t._lift = array, home, -1, lift
    if lift.at.members is not None:
        lift.at.members.add(t)


def on_tape(t: Tensor) -> bool:
    """Whether operations on a Tensor, or on any part of it, are recorded."""
    if isinstance(t, Lifted):
        return not t._lift.at.traces and any(map(on_tape, t.parts()))
    return t._pos != 0

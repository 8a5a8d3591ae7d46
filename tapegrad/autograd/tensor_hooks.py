"""Hooks on gradients: on the adjoint of a record, on the gradient of a leaf, after accumulation."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from typing import Any, Self

from tapegrad.tape.tape import Tape, current
from tapegrad.tensor import Tensor, place

Hook = Callable[[Tensor], Any]
_keys = itertools.count()
next_key = _keys.__next__


class Hooks:
    """The hooks of one record, in the order of their registration, and who retains its adjoint."""

    __slots__ = ("after", "before", "functions", "retain")

    def __init__(self) -> None:
        self.functions: dict[int, Hook] = {}  # on the adjoint of the Tensor
        self.retain: weakref.ref[Tensor] | None = None
        self.before: dict[int, Any] = {}  # on the record, before its rule runs and after
        self.after: dict[int, Any] = {}


class Handle:
    """Removes a hook: call `remove()`, or use it in a `with` statement.

    >>> import tapegrad as tg
    >>> x = tg.tensor(1.0, requires_grad=True)
    >>> handle = x.register_hook(lambda g: 10 * g)
    >>> handle.remove()
    """

    __slots__ = ("_key", "_where")

    def __init__(self, where: dict[int, Hook], key: int) -> None:
        self._where = where
        self._key = key

    def remove(self) -> None:
        """Take the hook away; doing so twice is allowed."""
        self._where.pop(self._key, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


class Handles(Handle):
    """Removes several hooks."""

    __slots__ = ("_handles",)

    def __init__(self, handles: list[Handle]) -> None:
        self._handles = handles

    def remove(self) -> None:
        """Take the hooks away."""
        for handle in self._handles:
            handle.remove()


# What is called when the sweep of a thread has ended, and its gradients have been delivered.
ending: dict[Tape, list[Callable[[bool], None]]] = {}


def at_end(function: Callable[[bool], None]) -> None:
    """Call a function when the sweep of this thread has ended: with True if it has failed."""
    ending.setdefault(current.tape, []).append(function)


def end_sweep(tape: Tape, failed: bool = False) -> None:
    """Run the callbacks for the end of a thread's sweep."""
    for function in ending.pop(tape, ()):
        function(failed)


def _at(t: Tensor) -> Hooks:
    return at_record(*t._listen())


def at_record(tape: Tape, position: int) -> Hooks:
    """The hooks of a record marked as HOOKED."""
    found = tape.hooks.get(position)
    if found is None:
        # A number of its own: the object in the tape says by its references who holds a record.
        found = tape.hooks[position - 1 + 1] = Hooks()
    return found


def register_hook(self: Tensor, hook: Hook) -> Handle:
    """Call `hook(grad)` whenever the gradient of this Tensor is computed; it may return another.

    >>> import tapegrad as tg
    >>> x = tg.tensor(1.0, requires_grad=True)
    >>> y = 2 * x
    >>> handle = y.register_hook(lambda g: 10 * g)
    >>> y.backward(); x.grad
    tensor(20.)
    """
    if not self.requires_grad:
        raise RuntimeError("`register_hook` needs a Tensor that requires grad")
    where = _at(self).functions if place(self) > 0 else self.extra.setdefault("hooks", {})
    key = next(_keys)
    where[key] = hook
    return Handle(where, key)


def register_post_accumulate_grad_hook(self: Tensor, hook: Hook) -> Handle:
    """Call `hook(tensor)` after a gradient was added to this leaf's `.grad`.

    >>> import tapegrad as tg
    >>> x = tg.tensor(1.0, requires_grad=True)
    >>> handle = x.register_post_accumulate_grad_hook(lambda t: print(t.grad))
    >>> (3 * x).backward()
    tensor(3.)
    """
    if not self.requires_grad:
        raise RuntimeError("`register_post_accumulate_grad_hook` needs a Tensor that requires grad")
    if place(self) > 0:
        raise RuntimeError(
            "`register_post_accumulate_grad_hook` needs a leaf; on other Tensors use "
            "`register_hook`"
        )
    where = self.extra.setdefault("post", {})
    key = next(_keys)
    where[key] = hook
    return Handle(where, key)


def retain_grad(self: Tensor) -> None:
    """Keep the gradient of this non-leaf in `.grad`, as leaves do by themselves.

    >>> import tapegrad as tg
    >>> x = tg.tensor(1.0, requires_grad=True)
    >>> y = 2 * x
    >>> y.retain_grad()
    >>> (3 * y).backward(); y.grad
    tensor(3.)
    """
    if not self.requires_grad:
        raise RuntimeError("`retain_grad` needs a Tensor that requires grad")
    if place(self) < 0:
        return
    before = self.extra.get("retained_by")
    if before is not None:  # an in-place operation gave this Tensor a new record
        before.retain = None
    hooks = self.extra["retained_by"] = _at(self)
    hooks.retain = weakref.ref(self)
    self.extra["retain_anew"] = retain_grad


def retains_grad(self: Tensor) -> bool:
    """Whether `retain_grad()` was called on this non-leaf."""
    try:
        return "retained_by" in self._extra and place(self) > 0
    except AttributeError:
        return False


def run_hooks(hooks: Hooks | None, g: Tensor) -> Tensor:
    """Run the hooks of a record on its adjoint; retain the outcome if requested."""
    if hooks is None:
        return g
    g = run_functions(hooks.functions, g)
    owner = hooks.retain() if hooks.retain is not None else None
    if owner is not None:
        grad = owner.grad
        owner.grad = g.clone() if grad is None else grad + g  # `g` may be another's too
    return g


def run_functions(functions: dict[int, Hook], g: Tensor) -> Tensor:
    """Call hooks in order; one that returns a Tensor replaces the gradient."""
    for hook in tuple(functions.values()):
        try:
            found = hook(g)
        except BaseException:
            end_sweep(current.tape, failed=True)
            raise
        if found is None:
            continue
        if not isinstance(found, Tensor):
            raise TypeError(f"a gradient hook returns None or a Tensor, got {type(found).__name__}")
        if found._a.shape != g._a.shape:
            raise RuntimeError(
                f"a gradient hook was given a gradient of shape {g._a.shape} and returned one of "
                f"shape {found._a.shape}; they must agree"
            )
        if found._a.dtype != g._a.dtype:
            raise RuntimeError(
                f"a gradient hook was given a gradient of {g.dtype} and returned one of "
                f"{found.dtype}; they must agree"
            )
        g = found
    return g

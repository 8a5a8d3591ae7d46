"""Turn what a Function returned into Tensors: new ones, views of arguments, changed arguments."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from tapegrad.dispatch.inplace import move
from tapegrad.kernels.sweep.sweep_abi import KIND_CALL
from tapegrad.ops.core import CUSTOM, Op
from tapegrad.tape import versions
from tapegrad.tape.tape import Tape
from tapegrad.tensor import Tensor, View, placed, wrap

CALL = Op("function", CUSTOM, lambda: None, {}, sweep=KIND_CALL)


def is_new(out: Tensor, args: tuple[Any, ...]) -> bool:
    """Whether an output has no position yet, and is no view."""
    return not (out._pos or type(out._home) is View or is_argument(out, args))


def is_argument(out: Any, args: tuple[Any, ...]) -> bool:
    """Whether an output is an unchanged argument."""
    return id(out) in map(id, args)


def constant_output(out: Any, args: tuple[Any, ...], dirty: Collection[int], tape: Tape) -> Any:
    """An output of a call that is not recorded, or without a gradient."""
    if not isinstance(out, Tensor) or id(out) in dirty:
        return out
    if is_argument(out, args):
        out = wrap(out._a)
    elif type(out) is not Tensor or type(out._home) is not View:
        return out
    base = _shared(out, args) if tape.enabled else None
    if base is not None:  # what is recorded later may not be written there
        out._home = View(base, ((CALL, {}),), tape)
    return out


def live_output(
    out: Tensor, args: tuple[Any, ...], dirty: Collection[int], tape: Tape, token: int
) -> Tensor:
    """An output at a position."""
    if dirty and id(out) in dirty:
        move(out, tape, token)
        return out
    if not is_new(out, args):
        made = placed(out._a, tape, token)
        base = _shared(out, args)
        if base is not None:
            made._home = View(base, ((CALL, {}),), tape)
        return made
    out._pos, out._home = token, tape
    return out


def _shared(out: Tensor, args: tuple[Any, ...]) -> Tensor | None:
    """The base whose memory an output shares through an argument, if any."""
    root = versions.root(out._a)
    for a in args:
        if isinstance(a, Tensor) and versions.root(a._a) is root:
            return a._home.base if isinstance(a._home, View) else a
    return None

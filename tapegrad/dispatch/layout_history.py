"""The layouts that a Tensor had before it was reshaped in place, for views older than that.

A view holds the chain of operations that leads from its base to it.  When the base itself is
reshaped in place (`x.t_()`), the chains of older views start from a shape that it no longer has.
So the base notes its former layouts.  A view whose chain no longer leads from the base's array to
its own is older: its chain is extended by the way back to that layout.

Reshaping gives the base another record but changes no element: the record of an older view stays
valid until an element is changed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.dispatch.operand_layout import address
from tapegrad.ops.shape import permute, squeeze, unsqueeze
from tapegrad.ops.strided import as_strided, distinct, follow, strided_map
from tapegrad.tape.shape_table import Shape
from tapegrad.tensor import Chain, Tensor, View, noted, place

Params = dict[str, Any]
KEY = "layouts"  # in a Tensor's `extra`


class LayoutHistory:
    """The former layouts of a Tensor, and the record since which no element has changed."""

    __slots__ = ("last", "layouts", "since")

    def __init__(self) -> None:
        self.layouts: dict[tuple[Shape, Shape], None] = {}  # shapes and strides, the newest last
        self.since = self.last = 0


def note_layout(t: Tensor, old: int, new: int) -> None:
    """Note the layout of a Tensor that is no view before it is reshaped, and its two positions."""
    note = noted(t, KEY)
    if note is None:
        note = t.extra[KEY] = LayoutHistory()
    if old <= 0 or note.last != old:
        note.since = old - 1 + 1  # numbers of their own: see `Tape.reclaim`
    note.last = new - 1 + 1
    layout = t._a.shape, t._a.strides
    note.layouts.pop(layout, None)
    note.layouts[layout] = None


def reshaped_in_place(t: Tensor) -> bool:
    """Whether a Tensor has got another shape since its older views were made."""
    return noted(t, KEY) is not None


def unchanged(base: Tensor, stamp: int) -> bool:
    """Whether no element of a base has changed since a view was at its record `stamp`."""
    note = noted(base, KEY)
    return note is not None and note.last == base._pos and 0 < note.since <= stamp


def chain_to(t: Tensor, home: View) -> Chain:
    """The view operations that lead from a base in its current layout to the view."""
    base, chain = home.base, home.chain
    assert base is not None
    note = noted(base, KEY)
    if type(base) is not Tensor:
        if note is None:
            return chain
        raise _stale_view(t, base)
    for k in range(len(chain) - 1, -1, -1):
        if chain[k][0] is as_strided:  # whatever stands before it
            window = _laid(chain[k][1], base)
            if note is None or (strided_map(**window) >= 0).all():
                return (as_strided, window), *chain[k + 1 :]
            raise _stale_view(t, base)
    if note is None or _leads(base._a, chain, t._a):
        return chain
    for shape, strides in reversed(note.layouts):
        back = _back(base._a, shape, strides)
        if back is not None and _leads(base._a, back + chain, t._a):
            return back + chain
    own = {"size": t._a.shape, "stride": t.stride(), "offset": t.storage_offset()}
    window = _laid(own, base)
    if (strided_map(**window) < 0).any():
        raise _stale_view(t, base)
    return ((as_strided, window),)


def shown_of(t: Tensor, window: Params) -> tuple[Tensor, Params]:
    """The Tensor that `as_strided` of another is recorded of, and its parameters then.

    That is the Tensor itself; of a view that does not show all of the window, it is the base.
    """
    home = t._home
    if type(t) is Tensor and isinstance(home, View) and not home.opaque and place(t) > 0:
        base = home.base
        if type(base) is Tensor and (strided_map(**window) < 0).any():
            return base, _laid(window, base)
    return t, window


def _laid(window: Params, t: Tensor) -> Params:
    """Convert `as_strided` parameters to those from another Tensor of the same storage."""
    return window | {"layout": (t._a.shape, t.stride(), t.storage_offset())}


def _stale_view(t: Tensor, base: Tensor) -> RuntimeError:
    return RuntimeError(
        f"a Tensor of shape {t._a.shape} is a view of one that was given the shape "
        f"{base._a.shape} in place since, and does not follow from that any more (as after "
        "`as_strided_`): make the view anew, or reshape with an operation that returns a new Tensor"
    )


def check_chain(name: str, t: Tensor, home: View) -> None:
    """Refuse to write through a view into a base whose elements overlap."""
    base = home.base
    if base is None or noted(base, KEY) is None:
        return
    chain_to(t, home)  # which may raise
    if base._a.size and not distinct(base._a.shape, base._a.strides):
        raise RuntimeError(
            f"`{name}`: the base of this view shows one element in several places, since "
            f"`as_strided_` gave it the shape {base._a.shape}: change a `clone()` of it"
        )


def _leads(base: np.ndarray, chain: Chain, seen: np.ndarray) -> bool:
    """Whether a chain of view operations leads from one array to another."""
    try:
        found = follow(base, chain)
    except (ValueError, IndexError, TypeError):  # the chain begins at another shape
        return False
    return found is not None and same_elements(found, seen)


def same_elements(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays have the same type, address, shape and strides."""
    if a.shape != b.shape or a.dtype != b.dtype or not a.size:
        return a.shape == b.shape and a.dtype == b.dtype
    if type(a) is np.ndarray and type(b) is np.ndarray:
        if address(a) != address(b):
            return False
    elif a.__array_interface__["data"][0] != b.__array_interface__["data"][0]:  # of a trace
        return False
    pairs = zip(a.shape, a.strides, b.strides, strict=True)
    return a.strides == b.strides or all(n == 1 or s == r for n, s, r in pairs)


def _back(a: np.ndarray, shape: Shape, strides: Shape) -> Chain | None:
    """The view operations that give an array a shape and strides; None if there are none.

    They leave out the dimensions of one element, sort the others, and put in new ones.
    """
    ones = tuple([d for d in range(a.ndim) if a.shape[d] == 1])
    have = _steps(a.shape, a.strides, a.size)
    needed = _steps(shape, strides, a.size)
    if sorted(have) != sorted(needed):
        return None
    order = []
    for step in needed:
        order.append(have.index(step))
        have[order[-1]] = None
    put = tuple([d for d in range(len(shape)) if shape[d] == 1])
    return (squeeze, {"dims": ones}), (permute, {"dims": tuple(order)}), (unsqueeze, {"dims": put})


def _steps(shape: Shape, strides: Shape, size: int) -> list[Any]:
    """Size and step of each dimension that has more than one element; of no elements no step."""
    return [(n, s if size else 0) for n, s in zip(shape, strides, strict=True) if n != 1]

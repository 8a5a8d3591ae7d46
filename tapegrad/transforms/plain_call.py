"""A call of a custom function that no transform lifts: one record, made and swept without detours.

It takes what nearly all calls are: arguments that are Tensors, arrays or numbers, one result.
`tapegrad.transforms.custom` does the others, and what a recorded sweep does with this record.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.autograd.context import lift_anywhere
from tapegrad.autograd.function import Specs, a_number, append
from tapegrad.autograd.pullback import Wanted, fit
from tapegrad.lift.core import highest, seen_by
from tapegrad.lift.variable import followed_leaves
from tapegrad.ops.core import Spec
from tapegrad.record import resolve
from tapegrad.tape import DTYPE_BITS, MODE_OFF, Tape, current, leaf_keys
from tapegrad.tensor import Tensor, placed, tensor_of, wrap
from tapegrad.transforms.arguments import name_of

_STATIC = frozenset((int, bool, str, type(None)))


class PlainCall:
    """What the record of such a call keeps instead of values."""

    __slots__ = ("kwargs", "outputs", "owner", "specs", "state", "values")

    def __init__(
        self, owner: Any, kwargs: dict[str, Any], values: list[Any], specs: Specs, state: Any
    ) -> None:
        self.owner, self.kwargs, self.state = owner, kwargs, state
        self.values = values  # of the arguments: (where it stands, its array), or it itself
        self.specs = specs  # of the arguments that have a place; None for others
        self.outputs: Specs = ()

    @property
    def record_name(self) -> str:
        """What a printed tape calls the record."""
        return name_of(self.owner.f)

    @property
    def grad_name(self) -> str:
        """What errors and `grad_fn` call it."""
        return self.record_name + "Backward"

    @property
    def watched(self) -> tuple[Any, ...]:
        """The arrays of the arguments, of which a sweep asks whether they were changed since."""
        values = [v[1] if type(v) is tuple else v for v in self.values]
        return tuple([v._a if type(v) is Tensor else v for v in values])

    def pull(
        self, tape: Tape, index: int, g: Any, wanted: Wanted, recorded: bool,
        scratch: dict[int, Any],
    ) -> list[tuple[int, Any]]:  # fmt: skip
        """What the user's rule hands to the arguments."""
        owner = self.owner
        if tape.levels:  # a map around the sweep is none of the rule's
            with seen_by((g,)):
                found = self._rule(tape, g, recorded)
        else:
            found = self._rule(tape, g, recorded)
        given = []
        for code, spec, value in zip(tape.inputs(index), self.specs, found):
            if code and value is not None and wanted(code):
                assert spec is not None
                array = value._a if type(value) is Tensor else value
                if type(array) is not np.ndarray or (array.shape, array.dtype) != spec:
                    value = gradient(owner.f, value, spec[0])
                    given.append((code, fit(value if recorded else value._a, Spec(*spec))))
                else:
                    given.append((code, value if recorded else array))
        return given

    def _rule(self, tape: Tape, g: Any, recorded: bool) -> Any:
        """What the user's rule returns."""
        if not recorded:
            return alone(self.owner, (), self.owner.pulled, self, g)
        args = [
            value if spec is None else lift_anywhere(tape, *value)
            for value, spec in zip(self.values, self.specs)
        ]
        return self.owner.rederived(args, self.kwargs, g)


def plain_call(owner: Any, tape: Tape, args: Any, kwargs: dict[str, Any]) -> Any:
    """The result of a call, recorded; None, before anything is done, if it is not such a call."""
    given: list[Any] = []
    values: list[Any] = []
    specs: list[Any] = []
    places = []
    history = False
    arrays, known = owner.of_arrays, owner.backward
    for x in args:
        kind = type(x)
        place = 0
        spec = None
        if kind is Tensor:
            home = x._home
            if home is not None and home is not tape:
                resolve(x, tape)
            array, place = x._a, x._pos
            if array.dtype.kind != "f":
                return None
            if place:
                if known is not None and len(given) not in known:
                    return None
                history = True
                spec = array.shape, array.dtype
                values.append((x if place < 0 else a_number(place), array))
            else:
                values.append(x)
            given.append(array[()] if arrays else wrap(array))
        elif kind is float or (kind is np.ndarray and x.dtype.kind == "f"):
            values.append(x)
            given.append(x if arrays else tensor_of(x, ""))
        elif kind in _STATIC:
            values.append(x)
            given.append(x)
        else:
            return None
        specs.append(spec)
        places.append(place)
    if not history:
        return None
    newest = leaf_keys()
    y, state = owner.value(given, kwargs)
    array = None
    if type(y) is Tensor:
        array = y._a
        if y._pos:
            check_alone(owner, y, newest)
    elif type(y) is np.ndarray or type(y) is np.float64 or type(y) is float:
        array = np.asarray(y)
    if array is None or array.dtype.kind != "f" or array.dtype not in DTYPE_BITS:
        return owner.call(args, kwargs).run((y, state))
    entry = PlainCall(owner, kwargs, values, tuple(specs), state)
    entry.outputs = ((array.shape, array.dtype),)
    token = append(tape, entry, args, places, True)
    return placed(array.copy(), tape, token)  # the other is the user's


def alone(owner: Any, given: Any, function: Callable[..., Any], *args: Any) -> Any:
    """What a function makes of constants; if it has history the function read something else."""
    tape = current.tape
    if tape.levels and highest(t for t in given if t is not None) is not None:
        return function(*args)
    newest = leaf_keys()  # what the function makes itself is younger
    enabled, tape.enabled = tape.enabled, not tape.inference
    tape.set_mode()
    try:
        found = function(*args)
    finally:
        tape.enabled = enabled
        if enabled:
            tape.set_mode()
        else:
            tape.mode = MODE_OFF
    for t in found:
        if isinstance(t, Tensor) and (t._pos or type(t) is not Tensor):
            check_alone(owner, t, newest)
    return found


def check_alone(owner: Any, t: Tensor, newest: int) -> None:
    """Refuse a result that was computed from what was there before the call."""
    if any(-leaf._pos < newest for leaf in followed_leaves(t)):
        raise RuntimeError(
            f"{name_of(owner.f)} (`{owner._name()}`) uses a Tensor that is "
            "differentiated and is not among its arguments, so that derivative would be "
            "lost: pass it as an argument, or as a constant (`tapegrad.stop_gradient`)"
        )


def gradient(f: Any, g: Any, shape: tuple[int, ...]) -> Tensor:
    """The gradient in one argument that a rule of the user's returned, if it can be one."""
    name = name_of(f)
    if not isinstance(g, (Tensor, np.ndarray, np.generic, float, int)):
        raise TypeError(
            f"the rule of {name} returned a gradient of type {type(g).__name__}: it returns "
            "arrays, Tensors or numbers, or None for a zero"
        )
    t = tensor_of(g, "")
    if t._a.shape != shape:
        raise ValueError(
            f"the rule of {name} returned a gradient of shape {t._a.shape} for an argument of "
            f"shape {shape}"
        )
    return t if t._a.dtype.kind == "f" else t.to(np.float64)

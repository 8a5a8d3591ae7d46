"""The fast path of custom functions: record a call that no transform lifts.

It takes the common case: arguments that are Tensors, arrays or numbers, and one result.
`tapegrad.transforms.custom` does the others, and recorded sweeps over this record.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.autograd.function import WORD, append
from tapegrad.autograd.pullback import Wanted, fit, lift, wanted_inputs
from tapegrad.dispatch.dispatch import resolve
from tapegrad.dispatch.native_calls import native_calls
from tapegrad.lift.gradient_targets import followed_leaves
from tapegrad.lift.levels import Level
from tapegrad.lift.lifted_tensor import highest
from tapegrad.ops.core import Spec
from tapegrad.tape.record_format import DTYPE_BITS, SAVES
from tapegrad.tape.tape import MODE_FAST, MODE_OFF, Tape, current, leaf_keys
from tapegrad.tensor import Tensor, number, placed, tensor_of, wrap_as
from tapegrad.transforms.call_arguments import name_of

_STATIC = frozenset((int, bool, str, type(None)))
_NUMBERS = frozenset((float, np.float64, np.float32))


class PlainCall:
    """What the record of such a call saves in place of values."""

    __slots__ = ("kwargs", "owner", "state", "values")

    def __init__(self, owner: Any, kwargs: dict[str, Any], values: list[Any], state: Any) -> None:
        self.owner, self.kwargs, self.state = owner, kwargs, state
        self.values = values  # the arguments; of one with a place its array, or NumPy's scalar

    @property
    def record_name(self) -> str:
        """What a printed tape calls the record."""
        return name_of(self.owner.f)

    @property
    def grad_name(self) -> str:
        """What errors and `grad_fn` call it."""
        return self.record_name + "Backward"

    @property
    def arity(self) -> int:
        """How many arguments there are."""
        return len(self.values)

    @property
    def watched(self) -> tuple[Any, ...]:
        """The arrays of the arguments, whose versions a sweep checks."""
        return tuple([v._a if type(v) is Tensor else v for v in self.values])

    def pull(
        self, tape: Tape, index: int, g: Any, wanted: Wanted, recorded: bool,
        scratch: dict[int, Any],
    ) -> list[tuple[int, Any]]:  # fmt: skip
        """Call the user's rule for the adjoints of the arguments."""
        owner, values, codes = self.owner, self.values, wanted_inputs(tape, index, wanted)
        if tape.levels:  # an enclosing map must not batch the rule
            with Level.seen_by((g,)):
                found = self._rule(tape, index, codes, g, recorded)
        else:
            found = self._rule(tape, index, codes, g, recorded)
        given = []
        for code, x, value in zip(codes, values, found):
            if code and value is not None:
                array = value._a if type(value) is Tensor else value
                if (
                    type(array) is not np.ndarray
                    or array.dtype is not x.dtype
                    or array.shape != x.shape
                ):
                    value = gradient(owner.f, value, x.shape)
                    array = value = fit(value if recorded else value._a, Spec(x.shape, x.dtype))
                given.append((code, value if recorded else array))
        return given

    def _rule(self, tape: Tape, index: int, codes: Sequence[int], g: Any, recorded: bool) -> Any:
        """What the user's rule returns; of an argument whose code is 0 nothing is wanted."""
        owner = self.owner
        if not recorded:
            return alone(owner, (), owner.pulled, self, codes, g)
        pairs = zip(tape.inputs(index), self.values)
        args = [lift(tape, code, np.asarray(x)) if code else x for code, x in pairs]
        wanted = [k for k, code in enumerate(codes) if code]
        return owner.rederived(args, self.kwargs, g, wanted)


def plain_call(owner: Any, tape: Tape, args: Any, kwargs: dict[str, Any]) -> Any:
    """Record a call; None, with nothing done, if it is not such a call."""
    if tape.mode != MODE_FAST or tape.levels or not owner.plain:
        return None
    given: list[Any] = []
    places: list[int] = []
    history = False
    arrays, known = owner.of_arrays, owner.backward
    values = given if arrays else []
    for x in args:
        kind = type(x)
        place = 0
        if kind is Tensor:
            home = x._home
            if home is not None and home is not tape and not resolve(x, tape):
                return None
            array, place = x._a, x._pos
            if array.dtype.kind != "f":
                return None
            if place:
                if known is not None and len(given) not in known:
                    return None
                history = True
            if arrays:
                given.append(array[()])
            else:
                given.append(wrap_as(array, x._s))
                values.append(array if place else x)
        elif kind is float or kind in _STATIC or (kind is np.ndarray and x.dtype.kind == "f"):
            if arrays:
                given.append(x)
            else:
                given.append(x if kind in _STATIC else tensor_of(x, ""))
                values.append(x)
        else:
            return None
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
    elif type(y) is np.ndarray:
        array = y
    elif type(y) in _NUMBERS:
        array = np.asarray(y)
    if array is None or array.dtype.kind != "f" or array.dtype not in DTYPE_BITS:
        return owner.call(args, kwargs).run((y, state))
    entry = PlainCall(owner, kwargs, values, state)
    if native_calls.record_call is not None and tape.mode == MODE_FAST:
        t = native_calls.record_call(WORD | SAVES, entry, array, args, places, number(array))
        if t is not None:
            return t
    token = append(tape, entry, args, places, (array.shape, array.dtype), True)
    return placed(array.copy(), tape, token)  # the other is the user's


def alone(owner: Any, given: Any, function: Callable[..., Any], *args: Any) -> Any:
    """The result of a function of constants; history means that it captured a tracked value."""
    tape = current.tape
    if tape.levels and highest(t for t in given if t is not None) is not None:
        return function(*args)
    newest = leaf_keys()  # leaves that the function makes have larger keys
    enabled = tape.enabled
    try:
        tape.switch(not tape.inference, tape.inference)
        found = function(*args)
    finally:
        tape.enabled = enabled
        tape.mode = tape.careful if enabled else MODE_OFF
    for t in found:
        if isinstance(t, Tensor) and (t._pos or type(t) is not Tensor):
            check_alone(owner, t, newest)
    return found


def check_alone(owner: Any, t: Tensor, newest: int) -> None:
    """Refuse a result that depends on tracked values from before the call."""
    if any(-leaf._pos < newest for leaf in followed_leaves(t)):
        raise RuntimeError(
            f"{name_of(owner.f)} (`{owner._name()}`) uses a Tensor that is "
            "differentiated and is not among its arguments, so that derivative would be "
            "lost: pass it as an argument, or as a constant (`tapegrad.stop_gradient`)"
        )


def gradient(f: Any, g: Any, shape: tuple[int, ...]) -> Tensor:
    """The gradient in one argument that a rule of the user's returned, if it can be one."""
    name = name_of(f)
    if not isinstance(g, (Tensor, np.ndarray, np.generic, float, int, complex)):
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
    return t if t._a.dtype.kind in "fc" else t.to(np.float64)

"""`checkpoint`: rematerialise a function's values for its derivative instead of saving them."""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tapegrad.autograd.grad_mode import enable_grad
from tapegrad.autograd.graph import saved_tensors_hooks
from tapegrad.dispatch.dispatch import pack
from tapegrad.dispatch.truncate import truncate_in_sweep
from tapegrad.functions.random import default_generator
from tapegrad.lift.lifted_tensor import Lifted
from tapegrad.ops.core import Spec
from tapegrad.tape.tape import Ended, current, leaf_keys
from tapegrad.tensor import Tensor, noted, placed
from tapegrad.transforms.call_arguments import require_function, restoring
from tapegrad.transforms.pickling import repeatable
from tapegrad.transforms.pytree import flatten
from tapegrad.transforms.reverse import read_from_before

_MT19937 = 4 * (624 + 1)  # bytes of its state: the words, and which is the next
Watched = list[tuple[Tensor, int]]  # Tensors, and the versions that they had


class _Recomputed:
    """Saved values that are recomputed when they are needed.

    A sweep keeps the values of one such segment at a time, and of the segments around it.  What a
    transform inside the function records is kept until the function returns: the transform sweeps
    it before that.  When the function runs again everything that it can see is as it was, whatever
    transforms have opened or ended since; else it would not do the same.
    """

    def __init__(
        self, f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        tape = current.tape
        self.f = f
        self.rng_state: Any = _rng_state()  # None: the function draws no random numbers
        self.trace = _rng_fingerprint()
        self.args = [_given(x) for x in args]
        self.kwargs = {name: _given(x) for name, x in kwargs.items()}
        self.levels = list(tape.levels)
        self.depth, self.torchs = tape.depth, tape.torchs
        self.start = tape.next - 1 + 1  # not the object in the tape, whose references count
        self.time = leaf_keys()
        self.end: float = math.inf
        self.specs: list[Spec] = []
        self.within: dict[int, tuple[Tensor, int]] = {}  # of transforms inside, by number
        self.arguments = _versions(
            bare for x in flatten((self.args, self.kwargs))[0] for bare in _bare(x)
        )
        self.leaves: Watched = []

    def forget(self, t: Tensor) -> int:
        """Keep a number instead of a value."""
        self.specs.append(Spec(t._a.shape, t._a.dtype))
        if current.tape.depth > self.depth and self.end == math.inf:
            self.within[len(self.specs) - 1] = t.detach(), t._version
        return len(self.specs) - 1

    def complete(self) -> None:
        """The function has returned."""
        tape = current.tape
        self.leaves = _versions(read_from_before(tape, self.start)[1])
        self.end = tape.next - 1 + 1
        self.within.clear()
        # A second normal number may be at hand, and be taken without a trace.
        if not self.rng_state[1]["has_gauss"] and self.trace == _rng_fingerprint():
            self.rng_state = None
        self.trace = None

    def remember(self, k: int) -> Tensor:
        """The value of a number."""
        value, version = self.within.get(k) or self._recomputed()[k]
        if value._version != version:
            raise RuntimeError(
                f"`checkpoint`: a value of shape {value._a.shape} that was saved has been modified "
                "by an inplace operation; use an operation that returns a new Tensor, or "
                "`clone()` before changing it"
            )
        return value

    def _recomputed(self) -> Watched:
        """All values, which the sweeps under way keep."""
        tape = current.tape
        values: Watched | None = tape.recomputed.get(self)
        if values is None:
            # A sweep goes downwards: it has done with the segments above.
            for other in [other for other in tape.recomputed if other.start >= self.end]:
                del tape.recomputed[other]
            values = self._again()
            if tape.sweeping:
                tape.recomputed[self] = values
        return values

    @restoring
    def _again(self) -> Watched:
        for t, version in (*self.arguments, *self.leaves):
            if t._version != version:
                raise RuntimeError(
                    f"`checkpoint`: a Tensor of shape {t._a.shape} that the function read has been "
                    "modified by an inplace operation since, so its values cannot be computed "
                    "again; pass it `clone()`"
                )
        tape = current.tape
        mark, debt, since = tape.mark(), tape.debt, leaf_keys()
        values: Watched = []

        def collect(t: Tensor) -> Tensor:
            values.append((t.detach(), t._version))
            return t

        levels, depth, escaped = tape.levels, tape.depth, tape.escaped
        rng_state = self.rng_state and _rng_state(self.rng_state)
        ended = [
            (t, t._home)
            for t in tape.leaves
            if (noted(t, "ended") or 0) > self.time > -t._pos  # it was followed then
        ]
        try:
            for t, home in ended:
                t.extra["followed"] = True
                if type(home) is Ended:
                    t._home = None
            tape.levels, tape.depth, tape.escaped = list(self.levels), self.depth, {}
            tape.torchs = self.torchs
            with enable_grad(), saved_tensors_hooks(collect, lambda t: t):
                self.f(
                    *[x.rebuilt() if type(x) is _Given else x for x in self.args],
                    **{k: x.rebuilt() if type(x) is _Given else x for k, x in self.kwargs.items()},
                )
        finally:
            tape.levels, tape.depth, tape.escaped = levels, depth, escaped | tape.escaped
            for t, home in ended:
                t.extra["followed"] = False
                t._home = home
            if rng_state:
                _rng_state(rng_state)
        truncate_in_sweep(tape, mark, "checkpoint", since)
        tape.debt = debt
        found = [Spec(t._a.shape, t._a.dtype) for t, _ in values]
        if self.end == math.inf:  # the function has not come to its end the first time
            del found[len(self.specs) :]
        if found != self.specs:
            raise RuntimeError(
                "`checkpoint`: the function did other operations when it ran again; it must "
                "depend on its arguments alone"
            )
        return values


class _Given:
    """An argument that is the result of a record; hooks around the function keep its value.

    So of segments within a segment no more is kept than the inputs of the outer one.
    """

    def __init__(self, t: Tensor) -> None:
        tape = current.tape
        # A new int object: the references of the one on the tape tell whether the record is in use.
        self.position = t._pos - 1 + 1
        self.value = pack(tape, (t._a,))[0] if tape.saved_hooks else t.detach()

    def rebuilt(self) -> Tensor:
        """The argument."""
        value = self.value
        array = value._a if isinstance(value, Tensor) else value.unpacked()
        return placed(array, current.tape, self.position)


def _given(x: Any) -> Any:
    """An argument as it is kept."""
    recorded = type(x) is Tensor and x._pos > 0 and x._home is current.tape
    return _Given(x) if recorded else x


def _rng_state(new: Any = None) -> Any:
    """The states of the random generators, this library's and NumPy's; new ones are set."""
    # Code that draws may use NumPy's own source.
    found = default_generator.state(), np.random.get_state(legacy=False)  # noqa: NPY002
    if new is not None:
        default_generator.state(new[0])
        np.random.set_state(new[1])  # noqa: NPY002
    return found


def _rng_fingerprint() -> Any:
    """A fingerprint of the generators' states that changes when numbers are drawn.

    NumPy takes a hundred times as long for the whole state, which `_rng_state` needs.
    """
    random: Any = np.random
    bits = random.get_bit_generator()
    if type(bits) is not np.random.MT19937:
        return object()  # equal to no other
    return default_generator.state(), ctypes.string_at(bits.ctypes.state_address, _MT19937)


def _versions(tensors: Iterable[Tensor]) -> Watched:
    return [(t, t._version) for t in tensors]


def _bare(x: Any) -> list[Tensor]:
    """The Tensors with memory of their own that an argument stands for."""
    if type(x) is _Given:
        return [x.value] if isinstance(x.value, Tensor) else []
    if isinstance(x, Lifted):
        return [] if x._lift.at.traces else [bare for part in x.parts() for bare in _bare(part)]
    return [x] if isinstance(x, Tensor) else []


@repeatable
def checkpoint(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f`, which keeps no values for its derivative but computes them again.

    What is kept is the arguments of each call. A sweep runs `f` once more when it gets there, with
    the same random numbers, and lets go of the values when it has done with them. `f` must do the
    same operations whenever it is called with these arguments.

    >>> import numpy as np, tapegrad as tg
    >>> tg.grad(lambda x: tg.checkpoint(lambda y: np.sin(np.sin(y)))(x))(0.0)
    1.0
    """
    require_function(f, "checkpoint")

    @functools.wraps(f, updated=())
    def recomputing(*args: Any, **kwargs: Any) -> Any:
        again = _Recomputed(f, args, kwargs)
        with saved_tensors_hooks(again.forget, again.remember):
            y = f(*args, **kwargs)
        again.complete()
        return y

    return recomputing

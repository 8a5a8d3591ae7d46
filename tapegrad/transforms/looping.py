"""Checks shared by loops and branches: leaves, conditions, and the level that traces them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tapegrad.base.native_arrays import in_native_form
from tapegrad.dispatch.dispatch import run
from tapegrad.dispatch.numpy_semantics import numpys
from tapegrad.functions.arithmetic import where
from tapegrad.functions.joining import stack
from tapegrad.lift.batch import Batched
from tapegrad.lift.gradient_targets import plain
from tapegrad.lift.levels import Level
from tapegrad.lift.lifted_tensor import Lifted
from tapegrad.ops.core import Spec
from tapegrad.ops.shape import clone
from tapegrad.tape.tape import current
from tapegrad.tensor import Tensor, tensor_of
from tapegrad.transforms.call_arguments import name_of
from tapegrad.transforms.pytree import Tree, flatten, in_order_of


def tracer() -> Level | None:
    """The level that traces the computation; None if Python runs it."""
    return next((at for at in reversed(current.tape.levels) if at.traces), None)


def plain_arrays(leaves: list[Any], name: str) -> list[Any]:
    """Convert the arrays among given leaves to native ones."""
    return [in_native_form(x, name) if isinstance(x, np.ndarray) else x for x in leaves]


def spec_of(x: Any, name: str, what: str) -> Spec:
    """Shape and dtype of a leaf."""
    if isinstance(x, Tensor):
        return Spec(x._a.shape, x._a.dtype)
    if isinstance(x, (float, int, complex, np.ndarray, np.generic)):
        array = np.asarray(x)
        if array.dtype.kind in "biufc":
            if isinstance(x, np.ndarray):
                array = in_native_form(x, name)
            return Spec(array.shape, array.dtype)
    raise TypeError(
        f"`{name}`: {what} consists of arrays, numbers and Tensors and pytrees of them, got a leaf "
        f"of type {type(x).__name__}"
    )


class Carried(NamedTuple):
    """The structure of the carry, which every trip must preserve."""

    name: str
    tree: Tree
    specs: tuple[Spec, ...]

    @classmethod
    def of(cls, name: str, init: Any) -> tuple[Carried, list[Any]]:
        """The form of the first carry, and its leaves."""
        given, tree = flatten(init)
        leaves = plain_arrays(given, name)
        if numpys():  # a trip may write into them what a derivative goes through
            leaves = [_writable(x) for x in leaves]
        specs = tuple([spec_of(x, name, "the carry") for x in leaves])
        return cls(name, tree, specs), leaves

    def leaves(self, carry: Any, f: Any) -> list[Any]:
        """The leaves of what a trip returned."""
        found, tree = flatten(carry)
        leaves = in_order_of(self.tree, tree, found)
        if leaves is None:
            raise TypeError(
                f"`{self.name}`: {name_of(f)} got a carry of the structure {self.tree!r} and "
                f"returned one of {tree!r}: every iteration must keep it"
            )
        for k, (x, spec) in enumerate(zip(leaves, self.specs, strict=True)):
            kept = spec_of(x, self.name, "the carry")
            if kept != spec:
                raise TypeError(
                    f"`{self.name}`: leaf {k} of the carry went into {name_of(f)} with the shape "
                    f"{spec.shape} and dtype {spec.dtype} and came back with {kept.shape} and "
                    f"{kept.dtype}: every iteration must keep them; start with a value of that "
                    "shape and dtype (0.0 instead of 0, `np.zeros(3)`, `np.float32(0)`)"
                )
        return leaves


def _writable(x: Any) -> Any:
    """A leaf; of an array of floats a Tensor with the same values, to be written into."""
    return as_leaf(x.copy()) if isinstance(x, np.ndarray) and x.dtype.kind in "fc" else x


def condition(x: Any, name: str, kinds: str = "biuf") -> Any:
    """Check a condition: one number, of a dtype of some kinds."""
    spec = spec_of(x, name, "the condition")
    if spec.shape:
        raise TypeError(
            f"`{name}`: the condition must be a single truth value, got the shape {spec.shape}: "
            "reduce it (`.all()`, `.any()`), or use `where` to choose element by element"
        )
    if spec.dtype.kind not in kinds:
        raise TypeError(
            f"`{name}`: the condition must be a bool, got the dtype {spec.dtype}: compare it with "
            "something (`x > 0`, `n != 0`)"
        )
    return x


def as_leaf(x: Any) -> Tensor:
    """A leaf as a Tensor."""
    return tensor_of(x, "")


def decided(pred: Any) -> bool:
    """Whether a condition has a value that Python can branch on: not under a map or a trace."""
    return not any(isinstance(t, Batched) or t._lift.at.traces for t in _lifted(pred))


def _lifted(t: Any) -> list[Any]:
    if not isinstance(t, Lifted):
        return []
    return [t] if t._lift.at.traces else [t, *[x for part in t.parts() for x in _lifted(part)]]


def mapped_truth(pred: Any) -> bool:
    """Whether a condition holds for any example of the maps it is under."""
    values = plain(pred)
    return bool(np.any(values._a if isinstance(values, Tensor) else values))


def copies(leaves: list[Any]) -> list[Any]:
    """The same values for a function to change, where the old ones are wanted afterwards."""
    return [
        run(clone, (x,), {})
        if isinstance(x, Tensor)
        else x.copy()
        if isinstance(x, np.ndarray)
        else x
        for x in leaves
    ]


def chosen(pred: Any, a: Any, b: Any) -> Tensor:
    """A leaf of either of two, by a condition; no derivative passes into the other one."""
    return where(pred.bool() if isinstance(pred, Tensor) else pred, as_leaf(a), as_leaf(b))


def stacked(values: list[Any]) -> Any:
    """One value for each trip, along a new first dimension."""
    if any(isinstance(x, Tensor) for x in values):
        return stack([as_leaf(x) for x in values])
    return np.stack([np.asarray(x) for x in values])


def alike(first: Any, second: Any, functions: tuple[Any, Any]) -> tuple[list[Any], list[Any], Tree]:
    """The leaves of what the two functions of a branch returned."""
    (a, tree), (b, other) = flatten(first), flatten(second)
    names = [name_of(f) for f in functions]
    ordered = in_order_of(tree, other, b)
    if ordered is None:
        raise TypeError(
            f"`cond`: {names[0]} returned the structure {tree!r} and {names[1]} returned "
            f"{other!r}: both must return the same"
        )
    for k, (x, y) in enumerate(zip(a, ordered, strict=True)):
        p, q = spec_of(x, "cond", "a result"), spec_of(y, "cond", "a result")
        if p != q:
            raise TypeError(
                f"`cond`: leaf {k} of what {names[0]} returned has the shape {p.shape} and dtype "
                f"{p.dtype}, that of {names[1]} has {q.shape} and {q.dtype}: both must be the same "
                "(0.0 instead of 0, `np.zeros(3)`)"
            )
    return a, ordered, tree

"""Parse the arguments of transforms, and convert results back to the form of the arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numpy as np

from tapegrad.base.call_site import raise_cause
from tapegrad.base.native_arrays import in_native_form, native_array
from tapegrad.dispatch.truncate import truncate
from tapegrad.functions.masked_elements import MaskedElements
from tapegrad.lift.lifted_tensor import Lifted, on_tape
from tapegrad.tape.record_format import DTYPE_BITS
from tapegrad.tape.tape import MODE_CAREFUL, MODE_FAST, MODE_OFF, current
from tapegrad.tensor import Tensor, place, wrap
from tapegrad.transforms.pytree import Tree, flatten, unflatten

P = ParamSpec("P")
R = TypeVar("R")
Argnums = int | tuple[int, ...]
MATRICES = ("jacobian", "jacfwd", "jacrev", "hessian")  # of partial derivatives


class transforming:
    """Run a transform: tracked values must not escape."""

    def __enter__(self) -> None:
        self.tape = tape = current.tape
        if not tape.depth:
            tape.transform_start = tape.next - 1 + 1
        tape.depth += 1

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.tape.depth -= 1
        if isinstance(error, ValueError):
            raise_cause(error)


def restoring(work: Callable[P, R]) -> Callable[P, R]:
    """Restore the state of the tape after a transform.

    A context does as much, but CPython looks for signals when a function in Python begins, and so
    does `__exit__`: an exception that comes there leaves the state behind.
    """

    @functools.wraps(work)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        tape = current.tape
        depth, levels, open_levels = tape.depth, tape.levels, [*tape.levels]
        enabled, inference, torchs = tape.enabled, tape.inference, tape.torchs
        hooks = tape.saved_hooks
        everything = slice(None)
        try:
            return work(*args, **kwargs)
        finally:
            levels[everything] = open_levels
            tape.depth, tape.levels, tape.saved_hooks = depth, levels, hooks
            tape.enabled, tape.inference, tape.torchs = enabled, inference, torchs
            careful = tape.anomaly is not None or hooks or tape.escaped
            tape.careful = MODE_CAREFUL if careful else MODE_FAST
            tape.mode = tape.careful if enabled else MODE_OFF

    return call


def forgetting(name: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Truncate a transform's records afterwards, unless they are in use.

    The next call finds the tape as this one did, and positions that need not be searched for.
    """

    def around(work: Callable[P, R]) -> Callable[P, R]:
        work = restoring(work)

        @functools.wraps(work)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            tape = current.tape
            if tape.depth:
                return work(*args, **kwargs)
            mark = tape.mark()
            try:
                return work(*args, **kwargs)
            finally:
                truncate(tape, mark, name)

        return call

    return around


def name_of(f: Callable[..., Any]) -> str:
    """The name of a user's function, for errors."""
    return getattr(f, "__name__", type(f).__name__)


def require_function(f: Any, name: str) -> None:
    """Refuse what cannot be called."""
    if not callable(f):
        raise TypeError(f"`{name}` takes a function, got {type(f).__name__}")


def checked_argnums(argnums: Any, count: int, name: str, f: Any) -> tuple[int, ...]:
    """The positions of the arguments that are differentiated."""
    single = isinstance(argnums, (int, np.integer)) and not isinstance(argnums, bool)
    given = (argnums,) if single else argnums
    if not isinstance(given, (tuple, list)) or not given:
        raise TypeError(f"`{name}`: argnums is an int or a tuple of ints, got {argnums!r}")
    found = []
    for k in given:
        if not isinstance(k, (int, np.integer)) or isinstance(k, bool):
            raise TypeError(f"`{name}`: argnums is an int or a tuple of ints, got {argnums!r}")
        if not -count <= k < count:
            raise ValueError(
                f"`{name}`: argnums={argnums!r}, but {name_of(f)} was called with {count} "
                f"positional argument{'s' * (count != 1)}"
            )
        found.append(int(k) % count)
    if len(set(found)) < len(found):
        raise ValueError(f"`{name}`: argnums={argnums!r} names an argument twice")
    return tuple(found)


def chosen_leaves(args: Any, chosen: tuple[int, ...]) -> tuple[list[Any], list[Tree]]:
    """The leaves of the arguments that are differentiated, and the structure of each argument."""
    leaves: list[Any] = []
    trees = []
    for k in chosen:
        below, tree = flatten(args[k])
        leaves += below
        trees.append(tree)
    return leaves, trees


def with_leaves(args: Any, chosen: tuple[int, ...], trees: list[Tree], leaves: Any) -> list[Any]:
    """All arguments, those that are differentiated with other leaves."""
    rest = iter(leaves)
    given = list(args)
    for k, tree in zip(chosen, trees, strict=True):
        given[k] = unflatten(tree, rest)
    return given


def as_tensor(x: Any, name: str) -> Tensor:
    """A leaf of an argument as a Tensor of a floating-point type."""
    if isinstance(x, Tensor):
        place(x)  # a view sees what was written into its base
        array = x._a
    elif isinstance(x, (float, int, complex, np.ndarray, np.generic)):
        array = in_native_form(x, name)
    else:
        raise TypeError(
            f"`{name}` differentiates in arrays, numbers and Tensors and pytrees of them, got a "
            f"leaf of type {type(x).__name__}: leave it out with `argnums`, or register its type "
            "with `register_pytree_node`"
        )
    kind = array.dtype.kind
    if kind in "biu":
        raise TypeError(
            f"`{name}` needs floating-point arguments, got {array.dtype}: pass a float "
            "(1.0 instead of 1), or convert the array with `x.astype(float)`"
        )
    if name.removeprefix("func.") in MATRICES:
        refuse_complex_matrix(name, array)
    if array.dtype not in DTYPE_BITS:
        raise NotImplementedError(
            f"`{name}` in {array.dtype} arguments (shape {array.shape}) is not supported: convert "
            "them to float64 or float32 with `x.astype(float)`"
        )
    return borrowed(x if isinstance(x, Tensor) else wrap(array))


def refuse_complex_matrix(name: str, array: np.ndarray) -> None:
    """Refuse a matrix of derivatives in complex arguments."""
    if array.dtype.kind == "c":
        raise NotImplementedError(
            f"`{name}` in {array.dtype} arguments (shape {array.shape}): a function that is not "
            "analytic has no matrix of complex derivatives; pass `x.real` and `x.imag` as two "
            "arguments, and put them together in the function"
        )


def borrowed(t: Tensor) -> Tensor:
    """An argument in the caller's memory: in-place operations on it raise."""
    if isinstance(t, Lifted) or t._pos or (t._home is not None and not t.is_inference()):
        return t
    return wrap(read_only(t._a))


def read_only(array: np.ndarray) -> np.ndarray:
    """A view that cannot be written through."""
    view = array[...]
    view.setflags(write=False)  # half the time that `flags.writeable` takes
    return view


def given_back(found: Tensor, like: Any) -> Any:
    """A result in the form of an argument: a number for a number, an array for an array.

    What an outer transform still follows, or a Tensor of the user requires, stays a Tensor.
    """
    if isinstance(like, Tensor) or isinstance(found, Lifted) or found._pos:
        return found
    if isinstance(like, float) and not found._a.ndim:
        return float(found._a)
    if isinstance(like, np.generic):
        return found._a[()]
    return writable(found._a)


def writable(array: np.ndarray) -> np.ndarray:
    """An array that the user may write into: not shared, without overlapping elements."""
    return array.copy() if 0 in array.strides or not array.flags.writeable else array[...]


def value_back(found: Any, tensors: bool) -> Any:
    """A value that the user's function returned, in the form that goes with the arguments."""
    if not isinstance(found, Tensor) or isinstance(found, Lifted) or on_tape(found):
        return found
    if tensors:
        return found if found._a.flags.writeable else wrap(writable(found._a))
    return writable(found._a) if found._a.ndim else number(found._a)


def number(array: np.ndarray) -> Any:
    """An array without a shape as a Python float, or as NumPy's number of another dtype."""
    return float(array) if array.dtype == np.float64 else array[()]


def paired(y: Any, name: str, f: Any, has_aux: bool) -> tuple[Any, Any]:
    """The value and what else a function returned."""
    if not has_aux:
        return y, None
    if not isinstance(y, tuple) or len(y) != 2:
        raise TypeError(
            f"`{name}` with `has_aux=True`: {name_of(f)} must return a pair (value, anything), "
            f"got {type(y).__name__}"
        )
    return y


def any_tensor(*trees: Any) -> bool:
    """Whether any leaf is a Tensor."""
    return any(isinstance(x, Tensor) for tree in trees for x in flatten(tree)[0])


def constant_result(root: Tensor, name: str, f: Any) -> RuntimeError:
    """`strict` in forward mode: the refusal of a result without a tangent."""
    return RuntimeError(
        f"`{name}` with `strict=True`: a result of {name_of(f)}, of shape {root._a.shape}, does "
        "not depend on the arguments"
    )


def values(y: Any, name: str, f: Any) -> tuple[list[Tensor], Tree]:
    """`outputs` that have a derivative; Python's own integers are constants."""
    roots, tree = outputs(y, name, f)
    for x, root in zip(flatten(y)[0], roots, strict=True):
        kind = root._a.dtype if isinstance(x, Tensor) else np.asarray(x).dtype
        if kind.kind == "b" or (isinstance(x, Tensor) and kind.kind in "iu"):
            raise TypeError(
                f"`{name}`: {name_of(f)} returned {kind} (shape {root._a.shape}), which has no "
                "derivative: return it beside the value with `has_aux=True`, or convert it with "
                "`.astype(float)` to differentiate it as a constant"
            )
    return roots, tree


def outputs(y: Any, name: str, f: Any) -> tuple[list[Tensor], Tree]:
    """The leaves of what a function returned, as Tensors, and their structure."""
    leaves, tree = flatten(y)
    found = []
    for x in leaves:
        if isinstance(x, Tensor):
            found.append(x)
        elif isinstance(x, (float, int, np.ndarray, np.generic)) and not isinstance(x, bool):
            if np.asarray(x).dtype.kind not in "biufc":
                raise TypeError(
                    f"`{name}`: {name_of(f)} returned an array of {np.asarray(x).dtype}"
                )
            array = native_array(x, name)
            found.append(wrap(array if array.dtype.kind in "fc" else array.astype(float)))
        elif isinstance(x, MaskedElements):
            x.refuse(f"`{name}`: a result of {name_of(f)}")
        else:
            raise TypeError(
                f"`{name}`: {name_of(f)} must return arrays, Tensors, numbers or pytrees of them, "
                f"got a leaf of type {type(x).__name__}"
            )
    return found, tree

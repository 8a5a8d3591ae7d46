"""The signature of a call, for which a jitted function is specialized."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol

import numpy as np

from tapegrad.base.dtypes import dtype as DType
from tapegrad.base.dtypes import get_default_dtype
from tapegrad.base.native_arrays import native_array
from tapegrad.compiler.front.specialization import (
    ARRAY,
    FLOAT,
    SCALAR,
    STATIC,
    TENSOR,
    Specialization,
)
from tapegrad.compiler.front.static_args import Static, Statics, key_of
from tapegrad.tensor import Tensor
from tapegrad.transforms.call_arguments import name_of
from tapegrad.transforms.pytree import Tree


class Signature(NamedTuple):
    """Structure, and for each leaf its kind and either its shape and dtype or its value.

    What is made of Python's numbers has the default dtype.
    """

    tree: Tree
    kinds: tuple[str, ...]
    keys: tuple[Any, ...]
    default: DType


class Compilation(Protocol):
    """The interface of a jitted function that `jit_op` and `jit_transforms` use."""

    function: Callable[..., Any]
    statics: Statics
    _specializations: dict[Signature, list[Specialization]]
    _eager: set[Signature]  # signatures that Python runs

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def plain(self, args: Any, kwargs: dict[str, Any]) -> Any: ...
    def compiled(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any: ...
    def derived(self, key: Any, make: Callable[[], Callable[..., Any]]) -> Compilation: ...
    def signature(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Signature, list[Any], list[np.ndarray]]: ...
    def outputs(
        self, signature: Signature, leaves: list[Any], arrays: list[np.ndarray]
    ) -> tuple[Specialization, list[np.ndarray]]: ...


def signature_of(tree: Tree, leaves: list[Any], f: Any) -> tuple[Signature, list[np.ndarray]]:
    """The signature of a call, and the arrays that are its inputs."""
    kinds, keys, arrays = [], [], []
    for x in leaves:
        kind, array = _kind(x)
        kinds.append(kind)
        if array is None:
            keys.append(_static(x, f))
        else:
            keys.append((array.shape, array.dtype.str))
            arrays.append(array)
    return Signature(tree, tuple(kinds), tuple(keys), get_default_dtype()), arrays


def _kind(x: Any) -> tuple[str, np.ndarray | None]:
    if isinstance(x, Tensor):
        return TENSOR, x._a
    if type(x) is float:
        return FLOAT, np.array(x)
    if type(x) is complex:
        x = np.complex128(x)
    if isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind in "biufc":
        return (ARRAY if isinstance(x, np.ndarray) else SCALAR), native_array(x, "jit")
    return STATIC, None


def _static(x: Any, f: Any) -> Any:
    if isinstance(x, slice):  # not every version of Python hashes them
        return slice, *map(key_of, (x.start, x.stop, x.step))
    try:
        hash(x)
    except TypeError:
        if isinstance(x, Static):
            raise TypeError(
                f"`jit`: a static argument of {name_of(f)} has the type {type(x.value).__name__}: "
                "for each value of it the function is compiled anew, so it must be possible to "
                "tell the values apart, by being hashed: use a tuple for a list"
            ) from None
        what = f"dtype {x.dtype}" if isinstance(x, np.ndarray) else f"type {type(x).__name__}"
        raise TypeError(
            f"`jit`: an argument of {name_of(f)} has the {what}: arguments are arrays of "
            "numbers, floats, Tensors and pytrees of them, or values that can be hashed, for each "
            "of which the function is compiled anew"
        ) from None
    return x if isinstance(x, Static) else key_of(x)


def counting(signature: Signature, known: Iterable[Signature]) -> tuple[str, list[int]] | None:
    """A Python int argument, and its values in signatures that differ in it alone."""
    found = None
    for k, key in enumerate(signature.keys):
        if type(key) is tuple and key[0] is int:
            keys = signature.keys[:k], signature.keys[k + 1 :]
            values = [
                other.keys[k][1]
                for other in known
                if (other.keys[:k], other.keys[k + 1 :]) == keys
                and other.tree == signature.tree
                and other.kinds == signature.kinds
                and other.keys[k][0] is int
            ]
            if found is None or len(values) > len(found[1]):
                found = _argument(signature.tree, k), values
    return found


def _argument(tree: Tree, k: int) -> str:
    """Which argument a leaf belongs to."""
    args, kwargs = tree.children
    names = [*map(str, range(len(args.children))), *map(repr, kwargs.extra)]
    children = (*args.children, *kwargs.children)
    leaves = [name for name, x in zip(names, children, strict=True) for _ in range(_size(x))]
    return f"argument {leaves[k]}"


def _size(tree: Tree) -> int:
    return 1 if tree.kind is None else sum(map(_size, tree.children))

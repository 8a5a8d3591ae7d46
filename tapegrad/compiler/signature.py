"""What a call of a jitted function looks like: what it is traced anew for."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tapegrad.compiler.statics import Static, key_of
from tapegrad.compiler.variant import ARRAY, FLOAT, SCALAR, STATIC, TENSOR
from tapegrad.dtypes import dtype as DType
from tapegrad.dtypes import get_default_dtype
from tapegrad.tensor import Tensor
from tapegrad.transforms.arguments import name_of
from tapegrad.transforms.pytree import Tree


class Signature(NamedTuple):
    """Structure, and for each leaf its kind and either its shape and dtype or its value.

    What is made of Python's numbers has the default dtype.
    """

    tree: Tree
    kinds: tuple[str, ...]
    keys: tuple[Any, ...]
    default: DType


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
    if isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind in "biuf":
        array = np.asarray(x)
        if not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
        return (ARRAY if isinstance(x, np.ndarray) else SCALAR), array
    return STATIC, None


def _static(x: Any, f: Any) -> Any:
    if isinstance(x, slice):  # not every version of Python hashes them
        return slice, *map(key_of, (x.start, x.stop, x.step))
    if isinstance(x, (complex, np.complexfloating)):
        raise TypeError(
            f"`jit`: an argument of {name_of(f)} is the complex number {x!r}: programs compute "
            "with real numbers; pass its parts, or compile it in by `static_argnums`"
        )
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
            f"`jit`: an argument of {name_of(f)} has the {what}: arguments are arrays of real "
            "numbers, floats, Tensors and pytrees of them, or values that can be hashed, for each "
            "of which the function is compiled anew"
        ) from None
    return x if isinstance(x, Static) else key_of(x)

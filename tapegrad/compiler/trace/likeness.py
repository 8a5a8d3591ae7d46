"""What a result is like, without computing it: its shape, its dtype, how it lies in memory.

All follow from those of the operands, unless the operation reads them off values.  An elementwise
operation broadcasts, and its dtype is that of its result on ones.  Others are run once for each
combination of operands and parameters, on zeros; those with indices each time, which may be out of
range.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tapegrad.compiler.ir.graph import Node
from tapegrad.compiler.ir.repeats import static
from tapegrad.dispatch.dispatch import called
from tapegrad.ops.core import ELEMENTWISE, LINEAR, Op, Spec
from tapegrad.ops.strided import overlaps
from tapegrad.tape import versions
from tapegrad.tape.shape_table import Shape
from tapegrad.tensor import wrap

MOST = 4096  # results that are remembered
MANY = 6  # dimensions, from which on different extents would be many elements
NUMBERS, INDEXED = {"f", "c"}, {"f", "c", "i"}  # kinds of dtypes
# With the parameters, which keys may name by `id`.
_known: dict[tuple[Any, ...], tuple[Likeness | None, Any]] = {}


# The shape and the dtype of a result, its strides if it is not in C order, and its parameters.
Known = tuple[Shape, np.dtype[Any], Shape | None, dict[str, Any]]


class Likeness(NamedTuple):
    """What a result is like; `dims`, if it is not in C order: from the outermost in memory on."""

    spec: Spec
    dims: tuple[int, ...] | None = None

    def memory(self) -> np.ndarray:
        """An array that is so."""
        (shape, dtype), dims = self.spec, self.dims
        if dims is None:
            return np.empty(shape, dtype)
        return np.empty([shape[d] for d in dims], dtype).transpose(np.argsort(dims))


def likeness(
    op: Op, operands: Sequence[Node], arrays: Sequence[np.ndarray | None], params: dict[str, Any]
) -> Likeness | None:
    """What an operation gives; None: it must be computed.

    `arrays` lie in memory as the operands do, which are in C order if there is none; those of
    integers are their values.
    """
    if op.kind is ELEMENTWISE and not params:
        dtype = _dtype_on_ones(op, *[x.dtype for x in operands])
        if dtype is None:
            return None
        if all([a is None or _in_order(a) for a in arrays]):  # noqa: C419 - twice as fast
            shape = _broadcast(operands)
            return None if shape is None else Likeness(Spec(shape, dtype))
    else:
        kinds: set[str] = {x.dtype.kind for x in operands}
        if not _any_values_do(op, kinds, params):
            return None
        if "i" in kinds:
            return _on_zeros(op, operands, arrays, params)
    static_params = static(params) if params else ()
    key = (op, static_params, *map(_strides, arrays), *[(x.shape, x.dtype) for x in operands])
    found = _known.get(key)
    if found is None:
        if len(_known) >= MOST:
            _known.clear()
        if _along(op, params) and _strides(arrays[0]) is None and 0 not in operands[0].shape:
            like = _on_small(op, operands[0], params)
        else:
            like = _on_zeros(op, operands, arrays, params)
        found = _known[key] = like, params
    return found[0]


def _strides(array: np.ndarray | None) -> Shape | None:
    """Those of what is not in C order, or has gaps."""
    return None if array is None or array.flags.c_contiguous else array.strides


def _in_order(array: np.ndarray) -> bool:
    """Whether elements lie one after the other, or are shown again, as in C order."""
    if array.flags.c_contiguous:
        return True
    strides = [s for s, n in zip(array.strides, array.shape, strict=True) if s and n > 1]
    return strides == sorted(map(abs, strides), reverse=True)


def _broadcast(operands: Sequence[Node]) -> Shape | None:
    """The common shape; None if there is none, which the forward says better."""
    shape: Shape = ()
    for x in operands:
        if x.shape and x.shape != shape:
            if shape:
                return _of_different([x.shape for x in operands])
            shape = x.shape
    return shape


def _of_different(shapes: list[Shape]) -> Shape | None:
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        return None


@lru_cache(MOST)
def broadcast(a: Shape, b: Shape) -> Shape | None:
    """The common shape of two operands; None if there is none."""
    return _of_different([a, b])


class _OfFloats(dict[tuple[Op, np.dtype[Any]], np.dtype[Any] | None]):
    def __missing__(self, key: tuple[Op, np.dtype[Any]]) -> np.dtype[Any] | None:
        op, dtype = key
        found = _dtype_on_ones(op, *[dtype] * len(op.inputs)) if dtype.kind == "f" else None
        self[key] = found
        return found


# The dtype of an elementwise result by that of all operands; None also where those are no floats.
float_on_ones = _OfFloats()


@lru_cache(MOST)
def _dtype_on_ones(op: Op, *dtypes: np.dtype[Any]) -> np.dtype[Any] | None:
    """The dtype of an elementwise result; None where integers may be refused for their values."""
    if any(dtype.kind not in "fcb" for dtype in dtypes):
        return None
    try:
        with np.errstate(all="ignore"):
            found = called(op, tuple([wrap(np.ones(1, dtype)) for dtype in dtypes]), {})
    except (TypeError, RuntimeError):
        return None
    return found._a.dtype if found._a.dtype.kind in "fcb" else None


def _any_values_do(op: Op, kinds: set[str], params: dict[str, Any]) -> bool:
    """Whether no values are refused but indices, and none decide on the shape of the result."""
    if not (op.kind is LINEAR or op.multilinear or op.reduces or op.axis or op.lapack):
        return False
    if not kinds <= NUMBERS and not (
        kinds <= INDEXED and ("gather" in op.moves or "scatter" in op.moves)
    ):
        return False
    # What lies in the memory around a view depends on that.
    return op.moves != "storage" and not overlaps(params.get("chain", ()))


def like_view(op: Op, memory: np.ndarray, params: dict[str, Any]) -> Known | None:
    """What a view of an operand is like that lies so in memory; None: it is none, or an error."""
    try:
        seen = op.forward(memory, **params)
    except (TypeError, ValueError, IndexError):
        return None  # which the general path says
    if type(seen) is not np.ndarray or (
        seen.base is not memory  # nor, as is usual, what that is a view of
        and (seen.base is None or seen.base is not memory.base)
        and versions.root(seen) is not versions.root(memory)
    ):
        return None
    return seen.shape, seen.dtype, None if seen.flags.c_contiguous else seen.strides, params


def _along(op: Op, params: dict[str, Any]) -> bool:
    """Whether an operation reduces along dimensions, of which its parameters tell."""
    return bool(op.reduces or op.axis == "reduce") and params.keys() == {"dim", "keepdim"}


def _on_zeros(
    op: Op, operands: Sequence[Node], arrays: Sequence[np.ndarray | None], params: dict[str, Any]
) -> Likeness | None:
    zeros = [_zeros_like(x, a) for x, a in zip(operands, arrays, strict=True)]
    if op.lapack:  # which refuses singular matrices
        for x in zeros:
            x[...] = np.eye(*x.shape[-2:]) if x.ndim > 1 else 0.0
    try:
        with np.errstate(all="ignore"):
            found = np.asarray(op.forward(*zeros, **params))
    except (ArithmeticError, LookupError, TypeError, ValueError):
        return None
    if any(map(_strides, arrays)) and any(np.may_share_memory(found, x) for x in zeros):
        return None  # an operand passed on, which may have gaps
    spec = Spec(found.shape, found.dtype)
    if found.flags.c_contiguous:
        return Likeness(spec)
    if op.lapack:
        return None  # of a singular matrix it may lie otherwise
    dims = tuple(sorted(range(found.ndim), key=lambda d: -found.strides[d]))
    return Likeness(spec, dims) if found.transpose(dims).flags.c_contiguous else None


def _on_small(op: Op, operand: Node, params: dict[str, Any]) -> Likeness | None:
    """What a reduction along dimensions gives: each of them stays, goes, or is one element then.

    On many elements its forward would load the kernels for large arrays.
    """
    if len(operand.shape) > MANY:
        return _on_zeros(op, [operand], [None], params)
    small = range(2, 2 + len(operand.shape))  # extents, all different
    found = _on_zeros(op, [Node(None, (), {}, tuple(small), operand.dtype)], [None], params)
    if found is None or found.dims is not None:
        return found
    extents = {1: 1, **dict(zip(small, operand.shape, strict=True))}
    return Likeness(Spec(tuple([extents[n] for n in found.spec.shape]), found.spec.dtype))


def _zeros_like(operand: Node, array: np.ndarray | None) -> np.ndarray:
    """Zeros in the same order, or indices."""
    if array is None:
        return np.zeros(operand.shape, operand.dtype)
    if operand.dtype.kind == "i":
        return array
    turned = tuple([slice(None, None, -1 if s < 0 else 1) for s in array.strides])
    return np.zeros_like(array, subok=False)[turned]

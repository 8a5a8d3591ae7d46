"""Bring arguments into the normal form that the table of operations takes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias, TypeVar, cast

import numpy as np

from tapegrad.base.dtypes import dtype as DType
from tapegrad.base.dtypes import result_type, to_numpy
from tapegrad.dispatch.dispatch import run
from tapegrad.dispatch.index_plans import in_c_order
from tapegrad.dispatch.numpy_semantics import numpys
from tapegrad.ops.large import COMPILED
from tapegrad.ops.shape import expand, to
from tapegrad.tape.tape import current
from tapegrad.tensor import SHORT, Tensor, tensor_of, wrap

if TYPE_CHECKING:
    import numpy.typing as npt

# What functions take, as type checkers are told.
Operand: TypeAlias = Tensor | np.ndarray | np.generic | int | float | complex
TypeLike: TypeAlias = "DType | npt.DTypeLike"
Sizes: TypeAlias = SupportsIndex | Sequence[SupportsIndex]
Indices: TypeAlias = "Tensor | npt.ArrayLike"
Dim: TypeAlias = int | tuple[int, ...] | list[int] | None
F = TypeVar("F", bound=Callable[..., Any])
NUMPY_NAMES = {"axis": "dim", "keepdims": "keepdim", "ddof": "correction"}


def numpy_names(function: F) -> F:
    """The same function, which also takes `axis`, `keepdims` and `ddof`, as PyTorch's do."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        for name in NUMPY_NAMES.keys() & kwargs.keys() if kwargs else ():
            own = NUMPY_NAMES[name]
            if own in kwargs:
                raise both_given(function.__name__, name, own)
            kwargs[own] = kwargs.pop(name)
        return function(*args, **kwargs)

    return cast("F", call)


def both_given(function: str, name: str, own: str) -> TypeError:
    """The error for an argument that was given under two names."""
    return TypeError(
        f"`{function}` was given both `{name}` and `{own}`, which mean the same: give one of them"
    )


def as_input(x: Any, name: str) -> Tensor:
    """The Tensor that a function works on."""
    if isinstance(x, Tensor):
        return x
    if isinstance(x, np.ndarray):
        return tensor_of(x, name)
    raise TypeError(f"`{name}` takes a Tensor, got {type(x).__name__}")


def as_type(x: Tensor, dtype: Any) -> Tensor:
    """A Tensor in the type that an argument asks for, if it does."""
    if dtype is None:
        return x
    kind = to_numpy(dtype)
    return x if x._a.dtype == kind else run(to, (x,), {"dtype": kind})


def floating(x: Tensor, name: str) -> Tensor:
    """A Tensor of floating-point numbers; where NumPy's rules hold, integers become some."""
    if x._a.dtype.kind in "fc":
        return x
    if numpys():
        return as_type(x, np.float64)
    raise RuntimeError(
        f"`{name}` needs a floating-point Tensor, got {x.dtype}: convert it with "
        "`.to(tapegrad.float64)`"
    )


def ordered(x: Tensor, name: str) -> Tensor:
    """A Tensor whose elements can be compared: complex numbers cannot."""
    if x._a.dtype.kind == "c":
        raise RuntimeError(
            f"`{name}` is not defined for {x.dtype}: complex numbers have no order; take the "
            "absolute value, the real or the imaginary part"
        )
    return x


def has_dims(x: Tensor, name: str) -> Tensor:
    """A Tensor of at least one dimension."""
    if not x._a.ndim:
        raise RuntimeError(f"`{name}` takes at least one dimension, got a 0-d Tensor")
    return x


def whole_number(n: Any, name: str, which: str) -> int:
    """An argument that is a whole number; a fraction is never cut off."""
    if isinstance(n, (int, np.integer)) or (isinstance(n, Tensor) and not n._a.ndim):
        return int(n.__index__())
    raise TypeError(f"`{name}`: {which} is an int, got {type(n).__name__}")


def plain_number(x: Any, name: str) -> Any:
    """An argument that is a number; a Tensor that requires grad would lose its gradient."""
    if not isinstance(x, Tensor):
        return x
    if x.requires_grad and not current.tape.depth:  # in a transform `item` says more
        raise TypeError(
            f"`{name}` takes a plain number, and a Tensor that requires grad would lose its "
            "gradient: multiply by the Tensor, as in `tapegrad.ones(3) * t`, or give `t.item()`"
        )
    return x.item()


def holds_tensor(x: Any) -> bool:
    """Whether a Tensor is given, or stands in lists and tuples, however deep."""
    if isinstance(x, (list, tuple)):
        return any(map(holds_tensor, x))
    return isinstance(x, Tensor)


def alike(*operands: Any) -> list[Tensor]:
    """Tensors of the operands: what stands beside an array is promoted with it, as by `*`.

    Two Tensors keep their types, as in PyTorch; under a transform of a function of arrays they
    stand for arrays.
    """
    found = [tensor_of(x, "") for x in operands]
    kinds = {x._a.dtype for x in found}
    if len(kinds) < 2 or (all(type(x) is Tensor for x in operands) and not numpys()):
        return found
    kind = result_type([x._a for x in found])
    return [x if x._a.dtype == kind else run(to, (x,), {"dtype": kind}) for x in found]


def one_dim(dim: Any, ndim: int, name: str) -> int:
    """A dimension that is not negative; a 0-d Tensor counts as having one."""
    if type(dim) is int and -ndim <= dim < ndim:
        return dim if dim >= 0 else dim + ndim
    if isinstance(dim, Tensor):
        dim = int(dim)
    if not isinstance(dim, (int, np.integer)) or isinstance(dim, bool):
        raise TypeError(f"`{name}`: a dimension is an int, got {type(dim).__name__}")
    span = max(ndim, 1)
    if not -span <= dim < span:
        raise IndexError(
            f"`{name}`: dimension {dim} is out of range, it must be in [{-span}, {span - 1}] "
            f"for a Tensor of {ndim} dimensions"
        )
    return int(dim) % span


def all_dims(dim: Any, ndim: int, name: str) -> tuple[int, ...]:
    """The sorted dimensions of a reduction; None and () mean all of them."""
    if dim is None:
        return tuple(range(ndim))
    given = (dim,) if isinstance(dim, (int, np.integer, Tensor)) else tuple(dim)
    if not given:
        return tuple(range(ndim))
    found = [one_dim(d, ndim, name) for d in given]
    if len(set(found)) != len(found):
        raise RuntimeError(f"`{name}`: a dimension appears twice in {given}")
    return tuple(sorted(found)) if ndim else ()


def whole_shape(size: tuple[Any, ...], have: tuple[int, ...], name: str) -> tuple[int, ...]:
    """A shape for as many elements as `have` has, with one -1 worked out."""
    count = 1
    for n in have:
        count *= n
    if len(size) == 1 and not isinstance(size[0], (int, np.integer, Tensor)):
        size = tuple(size[0])
    shape = [int(n) for n in size]
    if shape.count(-1) > 1:
        raise RuntimeError(f"`{name}`: only one dimension can be -1, got {tuple(shape)}")
    known = 1
    for n in shape:
        if n < -1:
            raise RuntimeError(f"`{name}`: invalid dimension {n} in the shape {tuple(shape)}")
        if n != -1:
            known *= n
    if -1 in shape:
        if known == 0:
            raise RuntimeError(
                f"`{name}`: the -1 in {tuple(shape)} is ambiguous beside a dimension of size 0"
            )
        if count % known:
            raise RuntimeError(
                f"`{name}`: {have} cannot take the shape {tuple(shape)}: {count} elements"
            )
        shape[shape.index(-1)] = count // known
    elif known != count:
        raise RuntimeError(
            f"`{name}`: a Tensor of shape {have} cannot take the shape {tuple(shape)}, which has "
            f"{known} elements and not {count}"
        )
    return tuple(shape)


def same_and_large(*operands: Any) -> bool:
    """Whether operands are large Tensors of one floating-point type and shape.

    What is made of several operations then pays for an operation of its own, which passes over the
    memory once; the records of small ones are left to the compiled sweep.
    """
    first = operands[0]
    if not isinstance(first, Tensor) or first._a.size < SHORT or first._a.dtype.kind != "f":
        return False
    for x in operands:
        if not isinstance(x, Tensor) or x._a.dtype is not first._a.dtype:
            return False
        if x._a.shape != first._a.shape:
            return False
    return True


def index_array(index: Any, name: str) -> Tensor:
    """An operand that is an index, as every kind of code reads it: of int64, and in C order."""
    t = tensor_of(index, name)
    if t._a.dtype.kind not in "iu":
        raise RuntimeError(f"`{name}`: an index must be of an integer type (int64), got {t.dtype}")
    if t._a.dtype != np.int64:
        t = run(to, (t,), {"dtype": np.dtype(np.int64)})
    return in_c_order(t)


def dims_of(given: tuple[Any, ...]) -> tuple[Any, ...]:
    """Dimensions given one by one or as one sequence."""
    if len(given) == 1 and not isinstance(given[0], (int, np.integer)):
        return tuple(given[0])
    return given


def broadcast_but(d: int, x: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    """Both operands of `take_along_dim`, broadcast except along a dimension."""
    one, two = ((*a.shape[:d], 1, *a.shape[d + 1 :]) for a in (x._a, k._a))
    if one == two:
        return x, k
    pairs = list(zip(one, two, strict=True))
    if any(p != q and p != 1 and q != 1 for p, q in pairs):
        raise RuntimeError(
            f"`take_along_dim`: the shapes {x._a.shape} and {k._a.shape} do not broadcast except "
            f"along dimension {d}"
        )
    shape = [q if p == 1 else p for p, q in pairs]
    full, there = ((*shape[:d], a.shape[d], *shape[d + 1 :]) for a in (x._a, k._a))
    if full != x._a.shape:
        x = run(expand, (x,), {"shape": full})
    if there == k._a.shape:
        return x, k
    if type(k) is not Tensor or type(k._a) is not np.ndarray or prod(there) >= COMPILED:
        return x, run(expand, (k,), {"shape": there})
    index = np.empty(there, k._a.dtype)  # as compiled code reads it
    index[...] = k._a
    return x, wrap(index)

"""Shapes and views: functions that move elements and compute nothing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapegrad.dtypes import dtype as DType
from tapegrad.dtypes import of_numpy, to_numpy
from tapegrad.functions.arguments import as_input, dims_of, one_dim, whole_shape
from tapegrad.ops import shape as s
from tapegrad.record import run
from tapegrad.size import only_ints
from tapegrad.specimen import everything
from tapegrad.tensor import Tensor
from tapegrad.views import again, see


def reshape(input: Any, *shape: Any) -> Tensor:
    """The same elements in another shape; a view where that is possible.

    >>> import tapegrad as tg
    >>> tg.reshape(tg.arange(4), (2, -1))
    tensor([[0, 1],
            [2, 3]])
    """
    x = as_input(input, "reshape")
    found = _reshaped(x, shape)
    if found is not None:
        return found
    return run(s.reshape, (x,), {"shape": whole_shape(shape, x._a.shape, "reshape")})


def _reshaped(x: Tensor, size: tuple[Any, ...]) -> Tensor | None:
    """The view of an array in C order in another shape, if NumPy knows it by that name."""
    a = x._a
    new: Any = size
    if len(size) == 1 and not isinstance(size[0], int):
        new = tuple(size[0]) if isinstance(size[0], list) else size[0]
    given = new if isinstance(new, tuple) and only_ints(new) else None
    if given is not None:
        found = again(s.reshape, x, given)
        if found is not None:
            return found
    if not a.flags.c_contiguous:
        return None
    try:
        r = a.reshape(new)
        if r.shape != new and -1 not in new:
            return None
    except (TypeError, ValueError):
        return None
    return see(s.reshape, x, {"shape": r.shape}, r, r.shape if given is None else given)


def _shaped(x: Tensor, new: tuple[int, ...]) -> Tensor:
    """`reshape` to a shape that is known to be right."""
    found = again(s.reshape, x, new)
    if found is not None:
        return found
    if x._a.flags.c_contiguous:
        return see(s.reshape, x, {"shape": new}, x._a.reshape(new), new)
    return run(s.reshape, (x,), {"shape": new})


def view(input: Any, *shape: Any) -> Tensor:
    """The same memory in another shape.

    >>> import tapegrad as tg
    >>> tg.arange(4).view(2, 2)
    tensor([[0, 1],
            [2, 3]])
    """
    x = as_input(input, "view")
    found = _reshaped(x, shape)
    if found is not None:
        return found
    if len(shape) == 1 and isinstance(shape[0], DType):
        raise NotImplementedError("`view` to another dtype is not supported: use `.to(dtype)`")
    new = whole_shape(shape, x._a.shape, "view")
    out = run(s.reshape, (x,), {"shape": new})
    memory = everything(x._a)
    if memory.size and not np.may_share_memory(everything(out._a), memory):
        raise RuntimeError(
            f"`view`: a Tensor of shape {x._a.shape} with these strides cannot be seen as {new} "
            "without a copy; use `reshape`"
        )
    return out


def view_as(input: Any, other: Tensor) -> Tensor:
    """A view in the shape of another Tensor.

    >>> import tapegrad as tg
    >>> tg.arange(4).view_as(tg.zeros(2, 2)).shape
    tapegrad.Size([2, 2])
    """
    return view(input, other._a.shape)


def reshape_as(input: Any, other: Tensor) -> Tensor:
    """`reshape` to the shape of another Tensor.

    >>> import tapegrad as tg
    >>> tg.arange(4).reshape_as(tg.zeros(2, 2)).shape
    tapegrad.Size([2, 2])
    """
    return reshape(input, other._a.shape)


def flatten(input: Any, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Several dimensions in one.

    >>> import tapegrad as tg
    >>> tg.flatten(tg.zeros(2, 3)).shape
    tapegrad.Size([6])
    """
    x = as_input(input, "flatten")
    shape = x._a.shape
    n = len(shape)
    if not n:
        return reshape(x, (1,))
    first, last = one_dim(start_dim, n, "flatten"), one_dim(end_dim, n, "flatten")
    if first > last:
        raise RuntimeError(f"`flatten`: start_dim {start_dim} comes after end_dim {end_dim}")
    if first == last:
        return x
    if last - first == n - 1:
        return _shaped(x, (x._a.size,))
    middle = math.prod(shape[first : last + 1])
    return _shaped(x, (*shape[:first], middle, *shape[last + 1 :]))


def ravel(input: Any) -> Tensor:
    """All elements in one dimension.

    >>> import tapegrad as tg
    >>> tg.ravel(tg.zeros(2, 3)).shape
    tapegrad.Size([6])
    """
    return reshape(input, (-1,)) if as_input(input, "ravel")._a.size else reshape(input, (0,))


def unflatten(input: Any, dim: int, sizes: Any) -> Tensor:
    """One dimension as several.

    >>> import tapegrad as tg
    >>> tg.unflatten(tg.zeros(6), 0, (2, 3)).shape
    tapegrad.Size([2, 3])
    """
    x = as_input(input, "unflatten")
    shape = x._a.shape
    d = one_dim(dim, len(shape), "unflatten")
    before, after = shape[:d], shape[d + 1 :]
    given = tuple(sizes)
    found = _reshaped(x, ((*before, *given, *after),)) if x._a.size else None
    if found is not None:
        return found
    part = whole_shape((given,), shape[d : d + 1], "unflatten")
    return _shaped(x, (*before, *part, *after))


def contiguous(input: Any) -> Tensor:
    """The Tensor itself when it lies in C order, else a copy that does.

    >>> import tapegrad as tg
    >>> tg.zeros(2, 3).t().contiguous().is_contiguous()
    True
    """
    x = as_input(input, "contiguous")
    return x if x.is_contiguous() else run(s.contiguous, (x,), {})


def clone(input: Any) -> Tensor:
    """A copy; gradients flow through it.

    >>> import tapegrad as tg
    >>> tg.clone(tg.tensor(1.0))
    tensor(1.)
    """
    return run(s.clone, (as_input(input, "clone"),), {})


def permute(input: Any, *dims: Any) -> Tensor:
    """The dimensions in another order; a view.

    >>> import tapegrad as tg
    >>> tg.permute(tg.zeros(2, 3, 4), (2, 0, 1)).shape
    tapegrad.Size([4, 2, 3])
    """
    x = as_input(input, "permute")
    n = x._a.ndim
    order = tuple([one_dim(d, n, "permute") for d in dims_of(dims)])
    if len(order) != n or len(set(order)) != n:
        raise RuntimeError(f"`permute` needs each of the {n} dimensions once, got {dims_of(dims)}")
    return _permuted(x, order)


TURNED = (1, 0)


def _permuted(x: Tensor, order: tuple[int, ...]) -> Tensor:
    found = again(s.permute, x, order)
    if found is not None:
        return found
    return see(s.permute, x, {"dims": order}, x._a.transpose(order), order)


def transpose(input: Any, dim0: int, dim1: int) -> Tensor:
    """Two dimensions swapped; a view.

    >>> import tapegrad as tg
    >>> tg.transpose(tg.zeros(2, 3), 0, 1).shape
    tapegrad.Size([3, 2])
    """
    x = as_input(input, "transpose")
    n = x._a.ndim
    a, b = one_dim(dim0, n, "transpose"), one_dim(dim1, n, "transpose")
    if n == 2 and a != b:
        return _permuted(x, TURNED)
    order = list(range(n))
    if order:
        order[a], order[b] = order[b], order[a]
    return _permuted(x, tuple(order))


swapaxes = swapdims = transpose


def t(input: Any) -> Tensor:
    """A matrix transposed; a vector as it is.

    >>> import tapegrad as tg
    >>> tg.t(tg.zeros(2, 3)).shape
    tapegrad.Size([3, 2])
    """
    x = as_input(input, "t")
    n = x._a.ndim
    if n == 2:
        return _permuted(x, TURNED)
    if n > 2:
        raise RuntimeError(
            f"`t` takes at most 2 dimensions, got the shape {x._a.shape}: use `transpose` or `mT`"
        )
    return _permuted(x, tuple(range(n)))


def _reversed(input: Tensor) -> Tensor:
    """All dimensions in reverse order; a view."""
    n = input._a.ndim
    return _permuted(input, TURNED) if n == 2 else _permuted(input, tuple(range(n - 1, -1, -1)))


def matrix_transpose(input: Any) -> Tensor:
    """The last two dimensions swapped; a view.

    >>> import tapegrad as tg
    >>> tg.zeros(5, 2, 3).mT.shape
    tapegrad.Size([5, 3, 2])
    """
    x = as_input(input, "mT")
    n = x._a.ndim
    if n == 2:
        return _permuted(x, TURNED)
    if n < 2:
        raise RuntimeError(f"`mT` needs at least 2 dimensions, got the shape {x._a.shape}")
    return _permuted(x, (*range(n - 2), n - 1, n - 2))


def movedim(input: Any, source: Any, destination: Any) -> Tensor:
    """Dimensions moved to other places; a view.

    >>> import tapegrad as tg
    >>> tg.movedim(tg.zeros(2, 3, 4), 0, -1).shape
    tapegrad.Size([3, 4, 2])
    """
    x = as_input(input, "movedim")
    n = x._a.ndim
    if n and isinstance(source, int) and isinstance(destination, int):
        order = list(range(n))
        order.insert(one_dim(destination, n, "movedim"), order.pop(one_dim(source, n, "movedim")))
        return _permuted(x, tuple(order))
    given = source, destination
    if isinstance(source, int) and isinstance(destination, int):
        given = (source,), (destination,)
    if not all(isinstance(dims, (tuple, list)) for dims in given):
        raise TypeError(f"`movedim` takes two ints or two tuples, got {source} and {destination}")
    here, there = ([one_dim(d, n, "movedim") for d in dims] for dims in given)
    if len(here) != len(there) or len(set(here)) != len(here) or len(set(there)) != len(there):
        raise RuntimeError(f"`movedim` cannot move {source} to {destination}")
    order = [d for d in range(n) if d not in here]
    for d, at in sorted(zip(there, here, strict=True)):
        order.insert(d, at)
    return _permuted(x, tuple(order))


moveaxis = movedim


def squeeze(input: Any, dim: Any = None) -> Tensor:
    """Without dimensions of size 1; a view.

    >>> import tapegrad as tg
    >>> tg.squeeze(tg.zeros(1, 2, 1)).shape
    tapegrad.Size([2])
    """
    x = as_input(input, "squeeze")
    shape = x._a.shape
    n = len(shape)
    dims: tuple[int, ...]
    if dim is None:
        dims = tuple([d for d in range(n) if shape[d] == 1])
    elif isinstance(dim, int):
        d = one_dim(dim, n, "squeeze")
        dims = (d,) if n and shape[d] == 1 else ()
    else:
        chosen = [one_dim(d, n, "squeeze") for d in dim]
        dims = tuple(sorted([d for d in chosen if n and shape[d] == 1]))
    found = again(s.squeeze, x, dims)
    return see(s.squeeze, x, {"dims": dims}, x._a.squeeze(dims), dims) if found is None else found


def unsqueeze(input: Any, dim: int) -> Tensor:
    """With one more dimension, of size 1; a view.

    >>> import tapegrad as tg
    >>> tg.unsqueeze(tg.zeros(2), 0).shape
    tapegrad.Size([1, 2])
    """
    x = as_input(input, "unsqueeze")
    a = x._a
    d = one_dim(dim, a.ndim + 1, "unsqueeze")
    found = again(s.unsqueeze, x, d)
    if found is not None:
        return found
    shape = a.shape
    r = a.reshape((*shape[:d], 1, *shape[d:]))
    return see(s.unsqueeze, x, {"dims": (d,)}, r, d)


def expand(input: Any, *size: Any) -> Tensor:
    """Dimensions of size 1 repeated without a copy; a view.

    >>> import tapegrad as tg
    >>> tg.tensor([[1.0], [2.0]]).expand(2, 2)
    tensor([[1., 1.],
            [2., 2.]])
    """
    x = as_input(input, "expand")
    a = x._a
    given = dims_of(size)
    key = a.shape, a.strides, given
    found = _expansions.get(key)
    if found is None:
        found = _expansion(*key)
        if all(isinstance(n, int) for n in given):
            if len(_expansions) > 4096:
                _expansions.clear()
            _expansions[key] = found
    params, steps = found
    shape = params["shape"]
    seen = again(s.expand, x, shape)
    if seen is not None:
        return seen
    return see(s.expand, x, params, s.strided(a, shape, steps), shape)


# By shape and strides of the operand and the wanted sizes: parameters, and the view's strides.
_expansions: dict[Any, tuple[dict[str, Any], tuple[int, ...]]] = {}


def _expansion(
    shape: tuple[int, ...], strides: tuple[int, ...], size: tuple[Any, ...]
) -> tuple[dict[str, Any], tuple[int, ...]]:
    given = [int(n) for n in size]
    extra = len(given) - len(shape)
    if extra < 0:
        raise RuntimeError(f"`expand`: {tuple(given)} has fewer dimensions than {shape}")
    full = [n if n != -1 or i < extra else shape[i - extra] for i, n in enumerate(given)]
    for i, n in enumerate(full):
        if n < 0 or (i >= extra and shape[i - extra] not in (1, n)):
            raise RuntimeError(
                f"`expand`: a Tensor of shape {shape} cannot be expanded to {tuple(given)}: "
                f"dimension {i} does not match"
            )
    return {"shape": tuple(full)}, s.expanded_strides(shape, strides, tuple(full))


def expand_as(input: Any, other: Tensor) -> Tensor:
    """`expand` to the shape of another Tensor.

    >>> import tapegrad as tg
    >>> tg.tensor([1.0]).expand_as(tg.zeros(2))
    tensor([1., 1.])
    """
    return expand(input, other._a.shape)


broadcast_to = expand


def narrow(input: Any, dim: int, start: Any, length: int) -> Tensor:
    """`length` neighbours along one dimension; a view.

    >>> import tapegrad as tg
    >>> tg.narrow(tg.arange(5), 0, 1, 3)
    tensor([1, 2, 3])
    """
    x = as_input(input, "narrow")
    d = one_dim(dim, x._a.ndim, "narrow")
    n, first = x._a.shape[d], int(start)
    if not -n <= first <= n:
        raise IndexError(f"`narrow`: start {first} is out of range for size {n}")
    first = first + n if first < 0 else first
    if length < 0 or first + length > n:
        raise RuntimeError(f"`narrow`: start {first} and length {length} exceed the size {n}")
    key = ("narrow", d, first, length)
    found = again(s.getitem, x, key)
    if found is not None:
        return found
    index = (slice(None),) * d + (slice(first, first + length),)
    return see(s.getitem, x, {"index": index}, x._a[index], key)


def select(input: Any, dim: int, index: Any) -> Tensor:
    """What stands at one place of a dimension; a view.

    >>> import tapegrad as tg
    >>> tg.select(tg.tensor([[1, 2], [3, 4]]), 1, 0)
    tensor([1, 3])
    """
    x = as_input(input, "select")
    if not x._a.ndim:
        raise IndexError("`select` cannot be applied to a 0-d Tensor")
    d, i = one_dim(dim, x._a.ndim, "select"), int(index)
    n = x._a.shape[d]
    if not -n <= i < n:
        raise IndexError(f"`select`: index {i} is out of range for dimension {dim} of size {n}")
    i %= n
    key = ("select", d, i)
    found = again(s.getitem, x, key)
    if found is not None:
        return found
    place = (slice(None),) * d + (i, ...)
    return see(s.getitem, x, {"index": place}, x._a[place], key)


def diagonal(input: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The diagonal of two dimensions, as the last one; a view.

    >>> import tapegrad as tg
    >>> tg.diagonal(tg.eye(2))
    tensor([1., 1.])
    """
    x = as_input(input, "diagonal")
    a, b = one_dim(dim1, x._a.ndim, "diagonal"), one_dim(dim2, x._a.ndim, "diagonal")
    if a == b:
        raise RuntimeError(f"`diagonal` needs two different dimensions, got {dim1} and {dim2}")
    found = again(s.diagonal, x, (offset, a, b))
    if found is not None:
        return found
    r = s.diagonal_of(x._a, offset, a, b)
    return see(s.diagonal, x, {"offset": offset, "dim1": a, "dim2": b}, r, (offset, a, b))


def diag(input: Any, diagonal: int = 0) -> Tensor:
    """The matrix with a vector on its diagonal, or the diagonal of a matrix (a copy).

    >>> import tapegrad as tg
    >>> tg.diag(tg.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    x = as_input(input, "diag")
    if x._a.ndim == 1:
        n = x._a.shape[0] + abs(diagonal)
        params = {"shape": (n, n), "offset": diagonal, "dim1": 0, "dim2": 1}
        return run(s.diagonal_embed, (x,), params)
    if x._a.ndim == 2:
        found = run(s.diagonal, (x,), {"offset": diagonal, "dim1": 0, "dim2": 1})
        return run(s.clone, (found,), {})
    raise RuntimeError(f"`diag` takes a vector or a matrix, got the shape {x._a.shape}")


def tril(input: Any, diagonal: int = 0) -> Tensor:
    """The lower triangle; zeros above.

    >>> import tapegrad as tg
    >>> tg.tril(tg.ones(2, 2))
    tensor([[1., 0.],
            [1., 1.]])
    """
    return run(s.tril, (_matrix(input, "tril"),), {"diagonal": diagonal})


def triu(input: Any, diagonal: int = 0) -> Tensor:
    """The upper triangle; zeros below.

    >>> import tapegrad as tg
    >>> tg.triu(tg.ones(2, 2))
    tensor([[1., 1.],
            [0., 1.]])
    """
    return run(s.triu, (_matrix(input, "triu"),), {"diagonal": diagonal})


def _matrix(input: Any, name: str) -> Tensor:
    x = as_input(input, name)
    if x._a.ndim < 2:
        raise RuntimeError(f"`{name}` takes at least 2 dimensions, got the shape {x._a.shape}")
    return x


def flip(input: Any, *dims: Any) -> Tensor:
    """The elements in reverse order along dimensions; a copy.

    >>> import tapegrad as tg
    >>> tg.flip(tg.arange(3), (0,))
    tensor([2, 1, 0])
    """
    x = as_input(input, "flip")
    chosen = tuple(one_dim(d, x._a.ndim, "flip") for d in dims_of(dims))
    if len(set(chosen)) != len(chosen):
        raise RuntimeError(f"`flip`: a dimension appears twice in {dims_of(dims)}")
    return run(s.flip, (x,), {"dims": chosen if x._a.ndim else ()})


def unfold(input: Any, dimension: int, size: int, step: int) -> Tensor:
    """All windows of a size along a dimension, as a new last dimension; a view.

    >>> import tapegrad as tg
    >>> tg.arange(4).unfold(0, 2, 1)
    tensor([[0, 1],
            [1, 2],
            [2, 3]])
    """
    x = as_input(input, "unfold")
    d = one_dim(dimension, x._a.ndim, "unfold")
    if not 0 < size <= x._a.shape[d] or step < 1:
        raise RuntimeError(
            f"`unfold`: size {size} and step {step} do not fit dimension {dimension} of size "
            f"{x._a.shape[d]}"
        )
    found = again(s.unfold, x, (d, size, step))
    if found is not None:
        return found
    params = {"dim": d, "size": size, "step": step}
    return see(s.unfold, x, params, s.unfold.forward(x._a, **params), (d, size, step))


def to(input: Any, *args: Any, dtype: Any = None, copy: bool = False, device: Any = None) -> Tensor:
    """The Tensor in another dtype (or that of another Tensor); itself when nothing changes.

    >>> import tapegrad as tg
    >>> tg.tensor([1, 2]).to(tg.float32)
    tensor([1., 2.], dtype=tapegrad.float32)
    """
    x = as_input(input, "to")
    for arg in args:
        if isinstance(arg, Tensor):
            dtype = arg.dtype
        elif isinstance(arg, DType) or not isinstance(arg, str):
            dtype = arg
        else:
            device = arg
    if device is not None and str(device) not in ("cpu", "cpu:0"):
        raise RuntimeError(f"tapegrad computes on the CPU, there is no device {device!r}")
    kind = x._a.dtype if dtype is None else to_numpy(dtype)
    if kind == x._a.dtype:
        return clone(x) if copy else x
    return run(s.to, (x,), {"dtype": kind})


def type(input: Tensor, dtype: Any = None) -> Any:
    """The dtype, or the Tensor in another one.

    >>> import tapegrad as tg
    >>> tg.ones(1).type(tg.int64)
    tensor([1])
    """
    return of_numpy(input._a.dtype) if dtype is None else to(input, dtype)


def type_as(input: Tensor, other: Tensor) -> Tensor:
    """The Tensor in the dtype of another.

    >>> import tapegrad as tg
    >>> tg.ones(1).type_as(tg.tensor(1))
    tensor([1])
    """
    return to(input, other.dtype)

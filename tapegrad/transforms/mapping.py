"""`vmap`: a function of one example as a function of many."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.dispatch.dispatch import run
from tapegrad.lift.batch import Batched, Map, all_of, batched
from tapegrad.lift.levels import level
from tapegrad.ops.shape import permute
from tapegrad.tensor import Tensor, tensor_of
from tapegrad.transforms.call_arguments import (
    any_tensor,
    borrowed,
    name_of,
    outputs,
    require_function,
    restoring,
    transforming,
    value_back,
)
from tapegrad.transforms.pickling import repeatable
from tapegrad.transforms.pytree import LEAF, Tree, flatten, keys_of, unflatten


def axes_of(given: Any, tree: Tree, what: str) -> list[int | None]:
    """One axis, or None, for every leaf of a pytree: from a pytree that may be shorter."""
    if given is None or isinstance(given, (int, np.integer)):
        return [None if given is None else int(given)] * count(tree)
    if tree.kind is None or tree.kind is type(None):
        if what == "out_dims" and isinstance(given, tuple) and len(given) == 1:
            return axes_of(given[0], tree, what)  # as PyTorch has it for a single result
        raise ValueError(f"`vmap`: `{what}` has {given!r} where there is a single array")
    if isinstance(given, dict):
        keys = keys_of(tree)
        if keys is None or set(given) != set(keys):
            raise ValueError(f"`vmap`: `{what}` does not fit the structure {tree!r}")
        parts = [given[key] for key in keys]
    else:
        parts = list(given)
    if len(parts) != len(tree.children):
        raise ValueError(
            f"`vmap`: `{what}` has {len(parts)} entries for {len(tree.children)} values: {given!r}"
        )
    return [
        axis
        for part, child in zip(parts, tree.children, strict=True)
        for axis in axes_of(part, child, what)
    ]


def count(tree: Tree) -> int:
    """The number of leaves."""
    return 1 if tree == LEAF else sum(map(count, tree.children))


def vmap(
    f: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0, *, axis_size: int | None = None,
    **others: Any,
) -> Callable[..., Any]:  # fmt: skip
    """`f` for many examples at once, which stand along an axis of its arguments.

    Parameters
    ----------
    in_axes : the axis of the examples for each argument (an int for all, or a tuple; pytrees
        within), None for an argument that is the same for all.
    out_axes : where the results of the examples are put side by side; None for a result that is
        the same for all.
    axis_size : how many examples there are; needed only if no argument has an axis of them.

    >>> import numpy as np, tapegrad as tg
    >>> tg.vmap(tg.grad(lambda x: np.sin(x) * x))(np.array([0.0, 1.0]))
    array([0.        , 1.38177329])
    """
    require_function(f, "vmap")
    if others:
        raise TypeError(
            f"`vmap` takes `in_axes`, `out_axes` and `axis_size`, got {next(iter(others))!r}: "
            "PyTorch's, with `in_dims`, `out_dims`, `randomness` and `chunk_size`, is "
            "`tapegrad.func.vmap`"
        )
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if axis_size is not None and (type(axis_size) is not int or axis_size < 0):
        raise TypeError(f"`vmap`: `axis_size` is a number of examples or None, got {axis_size!r}")
    return mapping(f, in_axes, out_axes, axis_size=axis_size)


@repeatable
def mapping(
    f: Callable[..., Any], in_axes: Any, out_axes: Any, *, inside: str = "in_axes",
    outside: str = "out_axes", named_axis: int | None = 0, randomness: str = "same",
    axis_size: int | None = None, lent: bool = True,
) -> Callable[..., Any]:  # fmt: skip
    """`vmap`, whose errors call the axes of arguments and results by given names.

    `named_axis` is where the examples of keyword arguments lie.  What is `lent` cannot be changed
    in place; else that changes the caller's Tensors.
    """

    @functools.wraps(f, updated=())
    @restoring
    def mapped(*args: Any, **kwargs: Any) -> Any:
        leaves, tree = flatten((args, kwargs))
        given, named = tree.children
        axes = axes_of(in_axes, given, inside) + [named_axis] * count(named)
        size = size_of(leaves, axes, f, inside, axis_size)
        with transforming(), level(Map(size, randomness, "vmap")) as at:
            inputs = [
                x if axis is None else batched(_to_front(x, axis, lent), at)
                for x, axis in zip(leaves, axes, strict=True)
            ]
            args, kwargs = unflatten(tree, inputs)
            roots, shape = outputs(f(*args, **kwargs), "vmap", f)
            places = axes_of(out_axes, shape, outside)
            tensors = any_tensor(leaves)
            found = []
            for root, axis in zip(roots, places, strict=True):
                if axis is not None:
                    full = _from_front(all_of(root, at), axis, outside)
                elif type(root) is Batched and root._lift.at is at:
                    raise ValueError(
                        f"`vmap`: `{outside}` is None for a result that differs from example to "
                        "example: give the axis that the examples shall lie along"
                    )
                else:
                    full = root
                found.append(value_back(full, tensors))
        return unflatten(shape, found)

    return mapped


def size_of(
    leaves: list[Any], axes: list[int | None], f: Any, inside: str, said: int | None = None
) -> int:
    """The batch size, which may be given."""
    sizes = {}
    for x, axis in zip(leaves, axes, strict=True):
        if axis is None:
            continue
        shape = x._a.shape if isinstance(x, Tensor) else np.shape(x)
        if not -len(shape) <= axis < len(shape):
            raise ValueError(
                f"`vmap`: there is no axis {axis} in an argument of shape {shape}: give None in "
                f"`{inside}` for what is the same for all examples"
            )
        sizes[shape[axis]] = shape
    if said is not None and sizes.keys() - {said}:
        raise ValueError(
            f"`vmap`: `axis_size` is {said}, but {name_of(f)} was given other numbers of examples: "
            f"{sorted(sizes)}"
        )
    if not sizes and said is not None:
        return said
    if not sizes:
        raise ValueError(
            "`vmap` needs at least one argument that is mapped over, or `axis_size`, the number of "
            "examples"
        )
    if len(sizes) > 1:
        raise ValueError(
            f"`vmap`: {name_of(f)} was given different numbers of examples: {sorted(sizes)}"
        )
    return int(next(iter(sizes)))


def _to_front(x: Any, axis: int, lent: bool) -> Tensor:
    t = tensor_of(x, "vmap")
    t = borrowed(t) if lent else t
    axis %= t._a.ndim
    if not axis:
        return t
    rest = [d for d in range(t._a.ndim) if d != axis]
    return run(permute, (t,), {"dims": (axis, *rest)})


def _from_front(t: Tensor, axis: int, outside: str) -> Tensor:
    ndim = t._a.ndim
    if not -ndim <= axis < ndim:
        raise ValueError(
            f"`vmap`: `{outside}` {axis} is out of range for a result of shape {t._a.shape[1:]}"
        )
    axis %= ndim
    if not axis:
        return t
    dims = list(range(1, ndim))
    dims.insert(axis, 0)
    return run(permute, (t,), {"dims": tuple(dims)})

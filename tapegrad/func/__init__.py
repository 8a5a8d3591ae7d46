"""Transforms of functions under the names of `torch.func`, with PyTorch's arguments and returns.

They take and return Tensors and pytrees of them; `tapegrad.grad` and the others are the same
machinery for plain arrays and numbers.

>>> import tapegrad as tg
>>> tg.func.vmap(tg.func.grad(lambda x: x.sin() * x))(tg.tensor([0.0, 1.0]))
tensor([0.0000, 1.3818])
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tapegrad.base.missing_names import missing
from tapegrad.base.public_names import dir_of
from tapegrad.dispatch.numpy_semantics import torchs_rule
from tapegrad.func.stateful_calls import functional_call, stack_module_state
from tapegrad.functions.joining import cat
from tapegrad.functions.random import default_generator
from tapegrad.functions.shapes import narrow
from tapegrad.tensor import Tensor
from tapegrad.transforms import forward, jacobians, mapping, reverse
from tapegrad.transforms.call_arguments import name_of, require_function
from tapegrad.transforms.pickling import repeatable
from tapegrad.transforms.pytree import LEAF, Tree, flatten, unflatten

__all__ = [
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "stack_module_state",
    "vjp",
    "vmap",
]
__dir__ = dir_of(globals())

Function = Callable[..., Any]
Argnums = int | tuple[int, ...]
RANDOMNESS = ("error", "different", "same")


# -- what PyTorch checks -----------------------------------------------------------------------


def _chosen(argnums: Any, args: tuple[Any, ...], name: str, kind: type[Exception]) -> None:
    """Refuse argument numbers and arguments that cannot be differentiated in."""
    single = isinstance(argnums, int) and not isinstance(argnums, bool)
    given = (argnums,) if single else argnums
    if not isinstance(given, tuple) or not all(isinstance(k, int) for k in given) or not given:
        raise RuntimeError(
            f"`func.{name}`: argnums is an int or a non-empty tuple of ints, got {argnums!r}"
        )
    if len({k % max(len(args), 1) for k in given}) != len(given):
        raise RuntimeError(f"`func.{name}`: argnums={argnums!r} names an argument twice")
    for k in given:
        if not -len(args) <= k < len(args):
            raise RuntimeError(
                f"`func.{name}`: argnums={argnums!r} for {len(args)} positional arguments"
            )
        _tensors(flatten(args[k])[0], name, kind)


def _tensors(leaves: list[Any], name: str, kind: type[Exception] = RuntimeError) -> None:
    for x in leaves:
        if not isinstance(x, Tensor):
            raise kind(
                f"`func.{name}` differentiates in Tensors and pytrees of them, got "
                f"{type(x).__name__}: make it a Tensor, or use `tapegrad.{_COUNTERPART[name]}`, "
                "which takes arrays and numbers"
            )
        if x._a.dtype.kind not in "fc":
            raise RuntimeError(
                f"`func.{name}` needs floating-point Tensors, got {x.dtype}: convert with "
                "`.to(tapegrad.float64)`"
            )


_COUNTERPART = {
    "grad": "grad", "grad_and_value": "value_and_grad", "vjp": "vjp", "jvp": "jvp",
    "linearize": "linearize", "jacrev": "jacrev", "jacfwd": "jacfwd", "hessian": "hessian",
}  # fmt: skip


def _checking(
    func: Function, name: str, has_aux: bool, check: Callable[[Any, str], None]
) -> Function:
    """`func`, whose result is looked at before the transform sees it."""
    require_function(func, f"func.{name}")
    run = torchs_rule(func)

    @functools.wraps(func, updated=())
    def checked(*args: Any, **kwargs: Any) -> Any:
        found = run(*args, **kwargs)
        y = found
        if has_aux:
            if not isinstance(found, tuple) or len(found) != 2:
                raise RuntimeError(
                    f"`func.{name}` with `has_aux=True`: {name_of(func)} must return a pair "
                    f"(output, aux), got {type(found).__name__}"
                )
            y, aux = found
            for x in flatten(aux)[0]:
                if not isinstance(x, Tensor):
                    raise RuntimeError(
                        f"`func.{name}` with `has_aux=True`: what {name_of(func)} returns besides "
                        f"its output must be made of Tensors, got {type(x).__name__}: keep it "
                        f"outside, or use `tapegrad.{_COUNTERPART.get(name, name)}`"
                    )
        check(y, f"`func.{name}`: {name_of(func)}")
        return found

    return checked


def _scalar(y: Any, who: str) -> None:
    if not isinstance(y, Tensor):
        raise RuntimeError(f"{who} must return a scalar Tensor, got {type(y).__name__}")
    if y._a.ndim:
        raise RuntimeError(
            f"{who} must return a scalar Tensor, got the shape {y._a.shape}: reduce it "
            "(`.sum()`), or use `vjp` or `jacrev`"
        )
    if y._a.dtype.kind not in "fc":
        raise RuntimeError(f"{who} must return a floating-point scalar, got {y.dtype}")


def _only_tensors(y: Any, who: str) -> None:
    leaves = flatten(y)[0]
    if not leaves:
        raise RuntimeError(f"{who} must return at least one Tensor, got {y!r}")
    for x in leaves:
        if not isinstance(x, Tensor):
            raise RuntimeError(f"{who} must return Tensors only, got {type(x).__name__}")


def _alike(x: Any, tree: Tree, like: list[Tensor], name: str, what: str) -> None:
    """Refuse what has not the structure and the shapes of something else."""
    leaves, found = flatten(x)
    if found != tree:
        raise RuntimeError(
            f"`func.{name}`: the structure of {what} is {found!r}, expected {tree!r}"
        )
    for leaf, t in zip(leaves, like, strict=True):
        if not isinstance(leaf, Tensor):
            raise RuntimeError(f"`func.{name}`: {what} must be Tensors, got {type(leaf).__name__}")
        if leaf._a.shape != t._a.shape:
            raise RuntimeError(
                f"`func.{name}`: {what} has the shape {leaf._a.shape}, expected {t._a.shape}"
            )


# -- reverse mode ------------------------------------------------------------------------------


@repeatable
def grad(func: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """The gradient of a function that returns a scalar Tensor.

    Parameters
    ----------
    argnums : which positional arguments to differentiate in: one, or a tuple of several.
    has_aux : `func` returns (output, aux), and the result is (gradient, aux).

    >>> import tapegrad as tg
    >>> tg.func.grad(tg.func.grad(tg.sin))(tg.tensor(0.5))
    tensor(-0.4794)
    """
    both = _gradient(func, argnums, has_aux, "grad")

    @functools.wraps(func, updated=())
    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, found = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return gradient


@repeatable
def grad_and_value(func: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """The function that returns (gradient, value), or (gradient, (value, aux)).

    >>> import tapegrad as tg
    >>> tg.func.grad_and_value(lambda x: (x**2).sum())(tg.tensor([1.0, 2.0]))
    (tensor([2., 4.]), tensor(5.))
    """
    both = _gradient(func, argnums, has_aux, "grad_and_value")

    @functools.wraps(func, updated=())
    def gradient_and_value(*args: Any, **kwargs: Any) -> Any:
        value, found = both(*args, **kwargs)
        return found, value

    return gradient_and_value


def _gradient(func: Function, argnums: Argnums, has_aux: bool, name: str) -> Function:
    checked = _checking(func, name, has_aux, _scalar)

    def both(*args: Any, **kwargs: Any) -> Any:
        _chosen(argnums, args, name, ValueError)
        return reverse.value_and_grad(checked, argnums, has_aux)(*args, **kwargs)

    return both


def vjp(func: Function, *primals: Any, has_aux: bool = False) -> Any:
    """The value of a function and its vector-Jacobian product: (output, vjp_fn[, aux]).

    `vjp_fn(cotangents)` takes what has the structure of the output and returns a tuple with one
    gradient for each of `primals`.

    >>> import tapegrad as tg
    >>> output, vjp_fn = tg.func.vjp(lambda x, a: a * x**2, tg.tensor([1.0, 2.0]), tg.tensor(3.0))
    >>> vjp_fn(tg.tensor([1.0, 0.0]))
    (tensor([6., 0.]), tensor(1.))
    """
    _tensors(flatten(primals)[0], "vjp")
    checked = _checking(func, "vjp", has_aux, _only_tensors)
    value, pullback, *aux = reverse.vjp(checked, *primals, has_aux=has_aux)
    leaves, tree = flatten(value)

    def vjp_fn(cotangents: Any) -> tuple[Any, ...]:
        """The gradients of the output, weighted by cotangents."""
        _alike(cotangents, tree, leaves, "vjp", "what `vjp_fn` was given")
        return pullback(cotangents)  # type: ignore[no-any-return]

    return (value, vjp_fn, *aux)


# -- forward mode ------------------------------------------------------------------------------


def jvp(
    func: Function, primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False
) -> Any:
    """The value of a function and its derivative along tangents: (output, jvp_output[, aux]).

    Parameters
    ----------
    primals, tangents : tuples with one entry for each argument of `func`.
    strict : an output that does not depend on the arguments is an error.

    >>> import tapegrad as tg
    >>> tg.func.jvp(tg.sin, (tg.tensor(0.0),), (tg.tensor(2.0),))
    (tensor(0.), tensor(2.))
    """
    checked = _checking(func, "jvp", has_aux, _only_tensors)
    if not isinstance(primals, tuple):
        raise RuntimeError(
            f"`func.jvp`: `primals` is a tuple of the arguments of {name_of(func)}, got "
            f"{type(primals).__name__}"
        )
    leaves, tree = flatten(primals)
    if not leaves:
        raise RuntimeError("`func.jvp`: `primals` must contain at least one Tensor")
    _tensors(leaves, "jvp")
    _alike(tangents, tree, leaves, "jvp", "`tangents`")
    return forward.jvp(checked, primals, tangents, strict=strict, has_aux=has_aux)


def linearize(func: Function, *primals: Any) -> tuple[Any, Function]:
    """The value of a function, and its derivative there as a linear function of tangents.

    >>> import tapegrad as tg
    >>> output, jvp_fn = tg.func.linearize(tg.sin, tg.tensor(0.0))
    >>> jvp_fn(tg.tensor(1.0)), jvp_fn(tg.tensor(2.0))
    (tensor(1.), tensor(2.))
    """
    leaves, tree = flatten(primals)
    _tensors(leaves, "linearize")
    checked = _checking(func, "linearize", False, _only_tensors)
    value, slope = forward.linearize(checked, *primals)

    def jvp_fn(*tangents: Any) -> Any:
        """The derivative along tangents, one for each of the arguments."""
        _alike(tangents, tree, leaves, "linearize", "what `jvp_fn` was given")
        return slope(*tangents)

    return value, jvp_fn


# -- matrices ----------------------------------------------------------------------------------


@repeatable
def jacrev(
    func: Function, argnums: Argnums = 0, *, has_aux: bool = False, chunk_size: int | None = None
) -> Function:
    """The Jacobian by reverse mode; its shape is that of the output followed by the argument's.

    Parameters
    ----------
    chunk_size : how many rows are computed at once, which bounds the memory; None for all.

    >>> import tapegrad as tg
    >>> tg.func.jacrev(tg.sin)(tg.tensor([0.0, 1.0]))
    tensor([[1.0000, 0.0000],
            [0.0000, 0.5403]])
    """
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"`func.jacrev`: `chunk_size` must be positive, got {chunk_size}")
    checked = _checking(func, "jacrev", has_aux, _only_tensors)

    @functools.wraps(func, updated=())
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        _chosen(argnums, args, "jacrev", ValueError)
        rows = jacobians.reverse_rows(checked, argnums, has_aux, "jacrev", chunk=chunk_size)
        return rows(*args, **kwargs)

    return jacobian


@repeatable
def jacfwd(
    func: Function, argnums: Argnums = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Function:
    """The Jacobian by forward mode, all columns at once.

    Parameters
    ----------
    randomness : whether random numbers are the "same" or "different" for each column, or an error.

    >>> import tapegrad as tg
    >>> tg.func.jacfwd(tg.sin)(tg.tensor([0.0, 1.0]))
    tensor([[1.0000, 0.0000],
            [0.0000, 0.5403]])
    """
    _check_randomness(randomness, "jacfwd")
    checked = _checking(func, "jacfwd", has_aux, _only_tensors)

    @functools.wraps(func, updated=())
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        _chosen(argnums, args, "jacfwd", RuntimeError)
        columns = jacobians.forward_columns(checked, argnums, has_aux, "jacfwd", randomness)
        return columns(*args, **kwargs)

    return jacobian


@repeatable
def hessian(func: Function, argnums: Argnums = 0) -> Function:
    """The second derivatives of a function, by forward mode over reverse mode.

    >>> import tapegrad as tg
    >>> tg.func.hessian(lambda x: x[0] ** 2 * x[1])(tg.tensor([1.0, 2.0]))
    tensor([[4., 2.],
            [2., 0.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)


# -- maps --------------------------------------------------------------------------------------


def _check_randomness(randomness: Any, name: str) -> None:
    if randomness not in RANDOMNESS:
        raise RuntimeError(
            f"`func.{name}`: `randomness` is 'error', 'different' or 'same', got {randomness!r}"
        )


@repeatable
def vmap(
    func: Function, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *,
    chunk_size: int | None = None,
) -> Function:  # fmt: skip
    """A function of one example as a function of many, which stand along a dimension.

    Parameters
    ----------
    in_dims : the dimension of the examples for each argument (an int for all, or a tuple; pytrees
        within), None for an argument that is the same for all, as keyword arguments always are.
    out_dims : where the results are put side by side, an int or a pytree like the result; None for
        a result that is the same for all.
    randomness : whether random numbers are the "same" or "different" for each example, or an error.
    chunk_size : how many examples are computed at once; None for all.

    >>> import tapegrad as tg
    >>> tg.func.vmap(tg.dot, in_dims=(0, None))(tg.eye(2), tg.tensor([3.0, 4.0]))
    tensor([3., 4.])
    """
    _check_randomness(randomness, "vmap")
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"`func.vmap`: `chunk_size` must be positive, got {chunk_size}")
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"`func.vmap`: `in_dims` is an int or a tuple like the arguments, got {in_dims!r}"
        )
    checked = _dims_checked(func, out_dims)
    whole = mapping.mapping(
        checked,
        in_dims,
        out_dims,
        inside="in_dims",
        outside="out_dims",
        named_axis=None,
        randomness=randomness,
        lent=False,
    )

    @functools.wraps(func, updated=())
    def mapped(*args: Any, **kwargs: Any) -> Any:
        leaves, tree = flatten((args, kwargs))
        if not args:
            raise ValueError(f"`func.vmap`: {name_of(func)} was called without arguments")
        given, named = tree.children
        dims = mapping.axes_of(in_dims, given, "in_dims") + [None] * mapping.count(named)
        for x, dim in zip(leaves, dims, strict=True):
            if dim is not None and not isinstance(x, Tensor):
                raise ValueError(
                    f"`func.vmap` maps over Tensors, got {type(x).__name__} with the dimension "
                    f"{dim}: give None in `in_dims` for it"
                )
        if chunk_size is None:
            return whole(*args, **kwargs)
        return _in_chunks(whole, leaves, tree, dims, out_dims, chunk_size, randomness)

    return mapped


def _dims_checked(func: Function, out_dims: Any) -> Function:
    """`func`, whose results must be Tensors that have the dimensions asked for."""
    require_function(func, "func.vmap")
    run = torchs_rule(func)

    @functools.wraps(func, updated=())
    def checked(*args: Any, **kwargs: Any) -> Any:
        y = run(*args, **kwargs)
        if y is None:
            raise ValueError(f"`func.vmap`: {name_of(func)} must return Tensors, got None")
        leaves, tree = flatten(y)
        dims = mapping.axes_of(out_dims, tree, "out_dims")
        for x, dim in zip(leaves, dims, strict=True):
            if not isinstance(x, Tensor):
                if dim is None:
                    continue
                raise ValueError(
                    f"`func.vmap`: {name_of(func)} must return Tensors, got {type(x).__name__}"
                )
            if dim is not None and not -x._a.ndim - 1 <= dim <= x._a.ndim:
                raise IndexError(
                    f"`func.vmap`: `out_dims` {dim} is out of range for a result of shape "
                    f"{x._a.shape}"
                )
        return y

    return checked


def _in_chunks(
    whole: Function, leaves: list[Any], tree: Tree, dims: list[int | None], out_dims: Any,
    chunk_size: int, randomness: str,
) -> Any:  # fmt: skip
    """So many examples at once, and the results put together."""
    size = mapping.size_of(leaves, dims, whole, "in_dims")
    before = default_generator.state() if randomness == "same" else None
    parts = []
    shape = LEAF
    for start in range(0, max(size, 1), chunk_size):
        length = min(chunk_size, size - start)
        some = [
            x if dim is None else narrow(x, dim, start, length)
            for x, dim in zip(leaves, dims, strict=True)
        ]
        if before is not None:
            default_generator.state(before)
        args, kwargs = unflatten(tree, some)
        found, shape = flatten(whole(*args, **kwargs))
        parts.append(found)
    places = mapping.axes_of(out_dims, shape, "out_dims")
    return unflatten(
        shape,
        [
            column[0] if dim is None else cat(list(column), dim)
            for column, dim in zip(zip(*parts, strict=True), places, strict=True)
        ],
    )


def __getattr__(name: str) -> Any:
    raise missing("module 'tapegrad.func'", name, __all__)

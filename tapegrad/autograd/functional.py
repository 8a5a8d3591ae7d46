"""Derivatives of functions at Tensors, under the names of `torch.autograd.functional`.

Without `create_graph` the results do not require grad.  Inside a transform (`tapegrad.func`,
`tapegrad.grad`) the transforms themselves are what nests, so these functions refuse.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.autograd.engine import grad
from tapegrad.autograd.grad_mode import enable_grad
from tapegrad.base.public_names import dir_of
from tapegrad.functions.joining import stack
from tapegrad.functions.shapes import reshape
from tapegrad.lift.gradient_targets import variable
from tapegrad.lift.lifted_tensor import Lifted, zeros_like
from tapegrad.tape.tape import current
from tapegrad.tensor import Tensor, wrap
from tapegrad.transforms import jacobians
from tapegrad.transforms.jacobians import basis

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
__dir__ = dir_of(globals())

Tensors = Tensor | tuple[Tensor, ...]
STRATEGIES = ("reverse-mode", "forward-mode")


# -- arguments and results ---------------------------------------------------------------------


def _several(given: Any, what: str, name: str) -> tuple[Tensor, ...]:
    """A Tensor or a tuple of Tensors, as a tuple."""
    found = given if isinstance(given, tuple) else (given,)
    for x in found:
        if not isinstance(x, Tensor):
            kind = type(given if x is given else x).__name__
            raise TypeError(f"`{name}`: {what} must be a Tensor or a tuple of Tensors, got {kind}")
    return found


def _variables(inputs: Any, name: str, create_graph: bool) -> tuple[Tensor, ...]:
    """Tensors to differentiate in: with `create_graph` they stay connected to the inputs."""
    found = _several(inputs, "`inputs`", name)
    if current.tape.depth or any(isinstance(t, Lifted) for t in found):
        raise RuntimeError(
            f"`autograd.functional.{name}` was called inside a function that a transform "
            "differentiates or maps: use the transforms of `tapegrad.func` there"
        )
    return tuple([
        variable(t if create_graph and t.requires_grad else t.detach()) for t in found
    ])  # fmt: skip


def _like(given: Any, found: Any) -> Any:
    """A tuple for a tuple, a single Tensor for a Tensor."""
    return tuple(found) if isinstance(given, tuple) else found[0]


def _released(found: Any, create_graph: bool) -> list[Tensor]:
    return [t if create_graph else t.detach() for t in found]


def _vectors(v: Any, like: tuple[Tensor, ...], name: str, whose: str) -> tuple[Tensor, ...]:
    """The vector of a product: as many Tensors as there are of what it belongs to."""
    if v is None:
        if len(like) != 1 or like[0]._a.size != 1:
            raise RuntimeError(
                f"`{name}`: `v` can be left out only where {whose} is a single Tensor with one "
                "element"
            )
        return (wrap(np.ones(like[0]._a.shape, like[0]._a.dtype)),)
    found = _several(v, "`v`", name)
    if len(found) != len(like):
        raise RuntimeError(f"`{name}`: `v` has {len(found)} Tensors, {whose} has {len(like)}")
    for x, t in zip(found, like, strict=True):
        if x._a.shape != t._a.shape:
            raise RuntimeError(
                f"`{name}`: `v` has the shape {x._a.shape} where {whose} has {t._a.shape}"
            )
    return found


def _scalar(outputs: Any, name: str) -> Tensor:
    (root, *_) = _several(outputs, "the result of the function", name)
    if isinstance(outputs, tuple):
        raise RuntimeError(f"`{name}`: the function must return a single Tensor, got a tuple")
    if root._a.size != 1:
        raise RuntimeError(
            f"`{name}`: the function must return a single element, got the shape {root._a.shape}"
        )
    return root


# -- sweeps and what `strict` refuses ----------------------------------------------------------


def _depends(outputs: tuple[Tensor, ...], strict: bool, name: str) -> None:
    for k, y in enumerate(outputs):
        if strict and not y.requires_grad:
            raise RuntimeError(
                f"`{name}` with `strict=True`: output {k} of the function was not computed from "
                "the inputs by recorded operations: it does not require gradients"
            )


def _gradients(
    outputs: Any, inputs: Sequence[Tensor], weights: Any, *, create_graph: bool, **kwargs: Any
) -> tuple[Tensor | None, ...]:
    """The gradients of those outputs that require grad; None for an input that was not used."""
    pairs = [(y, w) for y, w in zip(outputs, weights, strict=True) if y.requires_grad]
    if not pairs:
        return (None,) * len(inputs)
    roots, ws = zip(*pairs, strict=True)
    return grad(roots, inputs, ws, create_graph=create_graph, allow_unused=True, **kwargs)


def _filled(
    found: Any, like: Any, strict: bool, create_graph: bool, name: str, what: str,
    result: str = "the derivative",
) -> list[Tensor]:  # fmt: skip
    """Zeros where an input was not used; with `strict` that is an error."""
    out = []
    for k, (g, t) in enumerate(zip(found, like, strict=True)):
        if strict and g is None:
            raise RuntimeError(f"`{name}` with `strict=True`: {what} is independent of input {k}")
        if strict and create_graph and not g.requires_grad:
            raise RuntimeError(
                f"`{name}` with `strict=True` and `create_graph=True`: {result} is independent of "
                f"input {k}, so it cannot be differentiated again"
            )
        out.append(zeros_like(t) if g is None else g)
    return out


def _first_derivatives(
    func: Callable[..., Any], xs: tuple[Tensor, ...], strict: bool, name: str
) -> tuple[Tensor, list[Tensor]]:
    """The scalar of a function and its gradients, recorded."""
    y = _scalar(func(*xs), name)
    _depends((y,), strict, name)
    found = _gradients((y,), xs, (_ones(y),), create_graph=True)
    for k, g in enumerate(found):
        if strict and g is not None and not g.requires_grad:
            raise RuntimeError(
                f"`{name}` with `strict=True`: the gradient in input {k} is independent of the "
                "inputs, so that there is no second derivative"
            )
    return y, _filled(found, xs, strict, False, name, "the output of the function")


def _ones(t: Tensor) -> Tensor:
    return wrap(np.ones(t._a.shape, t._a.dtype))


# -- the public functions ----------------------------------------------------------------------


def vjp(
    func: Callable[..., Any], inputs: Tensors, v: Any = None, create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """The value of a function and the product of a vector with its Jacobian.

    Parameters
    ----------
    func : takes Tensors, returns a Tensor or a tuple of Tensors.
    v : like the output; may be left out for a single output with one element.
    create_graph : make results that can be differentiated.
    strict : an output or a derivative that does not depend on an input is an error.

    >>> import tapegrad as tg
    >>> tg.autograd.functional.vjp(tg.exp, tg.zeros(2), tg.tensor([1.0, 10.0]))
    (tensor([1., 1.]), tensor([ 1., 10.]))
    """
    with enable_grad():
        xs = _variables(inputs, "vjp", create_graph)
        given = func(*xs)
        outputs = _several(given, "the result of the function", "vjp")
        _depends(outputs, strict, "vjp")
        ws = _vectors(v, outputs, "vjp", "the output of the function")
        found = _gradients(outputs, xs, ws, create_graph=create_graph)
        products = _filled(
            found, xs, strict, create_graph, "vjp", "the output of the function", "the Jacobian"
        )
    values = _released(outputs, create_graph)
    return _like(given, values), _like(inputs, _released(products, create_graph))


def jvp(
    func: Callable[..., Any], inputs: Tensors, v: Any = None, create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """The value of a function and the product of its Jacobian with a vector.

    The parameters are those of `vjp`, but `v` is like the inputs.

    >>> import tapegrad as tg
    >>> tg.autograd.functional.jvp(tg.exp, tg.zeros(2), tg.tensor([1.0, 10.0]))
    (tensor([1., 1.]), tensor([ 1., 10.]))
    """
    with enable_grad():
        xs = _variables(inputs, "jvp", create_graph)
        vs = _vectors(v, xs, "jvp", "the input")
        given = func(*xs)
        outputs = _several(given, "the result of the function", "jvp")
        _depends(outputs, strict, "jvp")
        # The gradients are linear in the weights of the outputs: their own gradients in these
        # weights, weighted by `v`, are the derivative along `v`.
        weights = [variable(zeros_like(y)) for y in outputs]
        back = _gradients(outputs, xs, weights, create_graph=True)
        _filled(back, xs, strict, False, "jvp", "the output of the function")
        pairs = [(g, x) for g, x in zip(back, vs, strict=True) if g is not None]
        found = _gradients(
            [g for g, _ in pairs], weights, [x for _, x in pairs], create_graph=create_graph
        )
        products = _filled(found, outputs, False, create_graph, "jvp", "")
        for k, g in enumerate(products):
            if strict and create_graph and not g.requires_grad:
                raise RuntimeError(
                    "`jvp` with `strict=True` and `create_graph=True`: the derivative of output "
                    f"{k} is independent of the inputs, so it cannot be differentiated again"
                )
    values = _released(outputs, create_graph)
    return _like(given, values), _like(given, _released(products, create_graph))


def vhp(
    func: Callable[..., Any], inputs: Tensors, v: Any = None, create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """The value of a scalar function and the product of a vector with its Hessian.

    The parameters are those of `vjp`, but `v` is like the inputs.

    >>> import tapegrad as tg
    >>> x = tg.tensor([1.0, 2.0])
    >>> tg.autograd.functional.vhp(lambda x: (x**3).sum(), x, tg.tensor([1.0, 10.0]))
    (tensor(9.), tensor([  6., 120.]))
    """
    return _second(func, inputs, v, create_graph, strict, "vhp")


def hvp(
    func: Callable[..., Any], inputs: Tensors, v: Any = None, create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """The value of a scalar function and the product of its Hessian with a vector.

    The Hessian is symmetric: this is `vhp`, which needs one sweep less than PyTorch's way.

    >>> import tapegrad as tg
    >>> x = tg.tensor([1.0, 2.0])
    >>> tg.autograd.functional.hvp(lambda x: (x**3).sum(), x, tg.tensor([1.0, 10.0]))
    (tensor(9.), tensor([  6., 120.]))
    """
    return _second(func, inputs, v, create_graph, strict, "hvp")


def _second(
    func: Callable[..., Any], inputs: Any, v: Any, create_graph: bool, strict: bool, name: str
) -> tuple[Any, Any]:
    with enable_grad():
        xs = _variables(inputs, name, create_graph)
        vs = _vectors(v, xs, name, "the input")
        y, first = _first_derivatives(func, xs, strict, name)
        found = _gradients(first, xs, vs, create_graph=create_graph)
        products = _filled(
            found, xs, strict, create_graph, name, "the gradient of the function", "the Hessian"
        )
    (value,) = _released((y,), create_graph)
    return value, _like(inputs, _released(products, create_graph))


def jacobian(
    func: Callable[..., Any], inputs: Tensors, create_graph: bool = False, strict: bool = False,
    vectorize: bool = False, strategy: str = "reverse-mode",
) -> Any:  # fmt: skip
    """The Jacobian of a function: of each output (if they are a tuple) in each input (likewise).

    Parameters
    ----------
    func : takes Tensors, returns a Tensor or a tuple of Tensors.
    create_graph : make a result that can be differentiated.
    strict : an output or a derivative that does not depend on an input is an error.
    vectorize : compute all rows in one sweep; not with `strict`.
    strategy : "reverse-mode", or "forward-mode" (with `vectorize` and without the other two).

    >>> import tapegrad as tg
    >>> tg.autograd.functional.jacobian(lambda x: x**2, tg.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    _check_strategy("jacobian", strategy, "strategy")
    if strategy == "forward-mode":
        _check_forward("jacobian", "strategy", create_graph, strict, vectorize)
        return _by_columns(func, inputs, "jacobian")
    with enable_grad():
        xs = _variables(inputs, "jacobian", create_graph)
        given = func(*xs)
        outputs = _several(given, "the result of the function", "jacobian")
        if any(y._a.dtype.kind == "c" for y in outputs):
            raise RuntimeError(
                "`jacobian`: the function returned complex numbers, of whose two parts a sweep "
                "differentiates one: return `y.real` and `y.imag`, or use `tapegrad.jacobian`"
            )
        _depends(outputs, strict, "jacobian")
        if vectorize and strict:
            raise RuntimeError(
                "`jacobian`: `strict=True` and `vectorize=True` do not go together: what a row "
                "depends on is not known when all are computed at once; leave one of them out"
            )
        compute = _all_rows if vectorize else _one_by_one
        rows = [
            _like(inputs, _released(compute(y, j, xs, create_graph, strict), create_graph))
            for j, y in enumerate(outputs)
        ]
    return _like(given, rows)


def _one_by_one(
    y: Tensor, j: int, xs: tuple[Tensor, ...], create_graph: bool, strict: bool
) -> list[Tensor]:
    """The rows of one output, a sweep for each."""
    columns: list[list[Tensor]] = [[] for _ in xs]
    for weights in basis([y])[0]:
        found = _gradients((y,), xs, (wrap(weights),), create_graph=create_graph, retain_graph=True)
        found_or_zero = _filled(
            found, xs, strict, create_graph, "jacobian", f"output {j} of the function",
            "the Jacobian",
        )  # fmt: skip
        for column, g in zip(columns, found_or_zero, strict=True):
            column.append(g)
    return [_shaped(c, y, x) for c, x in zip(columns, xs, strict=True)]


def _shaped(rows: list[Tensor], y: Tensor, x: Tensor) -> Tensor:
    shape = (*y._a.shape, *x._a.shape)
    return reshape(stack(rows), shape) if rows else wrap(np.zeros(shape, x._a.dtype))


def _all_rows(
    y: Tensor, j: int, xs: tuple[Tensor, ...], create_graph: bool, strict: bool
) -> list[Tensor]:
    """The rows of one output in one sweep."""
    found = _gradients(
        (y,), xs, (wrap(basis([y])[0]),), create_graph=create_graph, retain_graph=True,
        is_grads_batched=True,
    )  # fmt: skip
    shapes = [(*y._a.shape, *x._a.shape) for x in xs]
    return [
        wrap(np.zeros(shape, x._a.dtype)) if g is None else reshape(g, shape)
        for g, x, shape in zip(found, xs, shapes, strict=True)
    ]


def hessian(
    func: Callable[..., Any], inputs: Tensors, create_graph: bool = False, strict: bool = False,
    vectorize: bool = False, outer_jacobian_strategy: str = "reverse-mode",
) -> Any:  # fmt: skip
    """The Hessian of a scalar function: for a tuple of inputs a tuple of tuples.

    The parameters are those of `jacobian`; the strategy is that of the second derivative.

    >>> import tapegrad as tg
    >>> tg.autograd.functional.hessian(lambda x: x[0] ** 2 * x[1], tg.tensor([1.0, 2.0]))
    tensor([[4., 2.],
            [2., 0.]])
    """
    _check_strategy("hessian", outer_jacobian_strategy, "outer_jacobian_strategy")

    def single(*xs: Tensor) -> Tensor:
        y = _scalar(func(*xs), "hessian")
        _depends((y,), strict, "hessian")
        return y.reshape(())

    if outer_jacobian_strategy == "forward-mode":
        _check_forward("hessian", "outer_jacobian_strategy", create_graph, strict, vectorize)
        every = tuple(range(len(_several(inputs, "`inputs`", "hessian"))))
        found = _by_columns(jacobians.jacrev(single, every), inputs, "hessian")
        return found if isinstance(inputs, tuple) else found[0]

    def gradient(*xs: Tensor) -> Tensors:
        with enable_grad():
            return tuple(_first_derivatives(single, xs, strict, "hessian")[1])

    found = jacobian(gradient, _several(inputs, "`inputs`", "hessian"), create_graph, strict,
                     vectorize)  # fmt: skip
    return found if isinstance(inputs, tuple) else found[0][0]


# -- forward mode ------------------------------------------------------------------------------


def _check_strategy(name: str, strategy: Any, what: str) -> None:
    if strategy not in STRATEGIES:
        raise AssertionError(
            f"`{name}`: `{what}` is 'reverse-mode' or 'forward-mode', got {strategy!r}"
        )


def _check_forward(name: str, what: str, create_graph: bool, strict: bool, vectorize: bool) -> None:
    """Refuse what PyTorch refuses, so that a program that runs here runs there."""
    for flag, on, kind in (
        ("strict=True", strict, RuntimeError),
        ("create_graph=True", create_graph, NotImplementedError),
        ("vectorize=False", not vectorize, NotImplementedError),
    ):
        if on:
            raise kind(
                f"`{name}`: `{flag}` and `{what}='forward-mode'` do not go together: use "
                "'reverse-mode', or the transforms of `tapegrad.func`"
            )


def _by_columns(func: Callable[..., Any], inputs: Any, name: str) -> Any:
    """The Jacobian of a function by forward mode."""
    xs = [x.detach() for x in _variables(inputs, name, create_graph=False)]
    given: Any = None

    def outputs(*xs: Tensor) -> Any:
        nonlocal given
        given = func(*xs)
        return _several(given, "the result of the function", name)

    rows = jacobians.jacfwd(outputs, tuple(range(len(xs))))(*xs)
    return _like(given, [_like(inputs, _released(row, create_graph=False)) for row in rows])

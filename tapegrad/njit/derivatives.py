"""The transforms of functions that Numba compiles: `tapegrad.grad` and its kin call these.

Integers among the arguments of `jvp`, `vjp` and `linearize` are constants: their tangents are not
looked at, their gradients None.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core.dispatcher import Dispatcher

from tapegrad.njit import marshalling
from tapegrad.njit.derivative_matrices import (
    Hessian,
    HessianProduct,
    Jacobian,
    tangents_of,
    zero_seeds,
)
from tapegrad.njit.evaluation import Evaluator, all_positional
from tapegrad.njit.gradients import Gradient, NumbaDerivative, ValueAndGradient, like
from tapegrad.njit.three_address_code import Unsupported
from tapegrad.transforms.call_arguments import Argnums, name_of, paired
from tapegrad.transforms.pickling import reads_tape
from tapegrad.transforms.pytree import flatten, matching, unflatten


def grad(
    f: Dispatcher,
    argnums: Argnums,
    has_aux: bool,
    strict: bool,
    max_memory: int | None,
    inplace: bool,
) -> NumbaDerivative:
    """`tapegrad.grad`."""
    return Gradient(f, "grad", argnums, has_aux, strict, max_memory, inplace)


def value_and_grad(
    f: Dispatcher,
    argnums: Argnums,
    has_aux: bool,
    strict: bool,
    max_memory: int | None,
    inplace: bool,
) -> NumbaDerivative:
    """`tapegrad.value_and_grad`."""
    return ValueAndGradient(f, "value_and_grad", argnums, has_aux, strict, max_memory, inplace)


def jacobian(
    f: Dispatcher, argnums: Argnums, has_aux: bool, strict: bool, name: str
) -> NumbaDerivative:
    """`tapegrad.jacobian`, `jacfwd` and `jacrev`, by name."""
    return Jacobian(f, name, argnums, has_aux, strict)


def hessian(f: Dispatcher, argnums: Argnums, has_aux: bool, strict: bool) -> NumbaDerivative:
    """`tapegrad.hessian`."""
    return Hessian(f, "hessian", argnums, has_aux, strict)


def hvp(f: Dispatcher) -> NumbaDerivative:
    """`tapegrad.hvp`."""
    return HessianProduct(f, "hvp")


def _floats(args: tuple[Any, ...]) -> tuple[int, ...]:
    """The numbers of the arguments whose leaves are floats."""
    found = []
    for k, x in enumerate(args):
        leaves = marshalling.leaves(x)
        if leaves and all(map(_is_float, leaves)):
            found.append(k)
    return tuple(found)


def _is_float(x: Any) -> bool:
    return isinstance(x, marshalling.NUMBERS) and np.asarray(x).dtype.kind in "fc"


def _refuse_strict(f: Dispatcher, name: str, strict: bool) -> None:
    if strict:
        raise Unsupported(f"`{name}` with `strict=True` of `{name_of(f)}`, which Numba compiles")


def jvp(f: Dispatcher, primals: Any, tangents: Any, has_aux: bool, strict: bool) -> tuple[Any, ...]:
    """`tapegrad.jvp`."""
    _refuse_strict(f, "jvp", strict)
    for given, what in ((primals, "primals"), (tangents, "tangents")):
        if not isinstance(given, tuple | list) or len(given) != len(primals):
            raise TypeError(
                f"`jvp`: `{what}` is a tuple with one entry for each argument of {name_of(f)}"
            )
    evaluator = Evaluator(f, "jvp")
    pair, aux = _pushed(evaluator, tuple(primals), tuple(tangents), has_aux)
    return (*pair, aux) if has_aux else pair


def _pushed(
    evaluator: Evaluator, primals: tuple[Any, ...], tangents: tuple[Any, ...], has_aux: bool
) -> tuple[tuple[Any, Any], Any]:
    """The value and its derivative along tangents; what else the function returns."""
    args = all_positional(evaluator.f, primals, {})
    chosen = tuple([k for k in _floats(args) if k < len(primals)])
    evaluator.check(args, chosen)
    directions = tangents_of(evaluator, args, tangents, chosen)
    found = evaluator.run(args, (), directions=directions)
    value, aux = paired(found.value, evaluator.name, evaluator.f, has_aux)
    return (value, found.tangent[0] if has_aux else found.tangent), aux


def linearize(f: Dispatcher, primals: tuple[Any, ...], has_aux: bool) -> tuple[Any, ...]:
    """`tapegrad.linearize`; each call of the linear function runs the function again."""
    evaluator = Evaluator(f, "linearize")
    primals = tuple(map(marshalling.copied, primals))
    value, aux = _value(evaluator, primals, has_aux)

    def slope(*tangents: Any) -> Any:
        """The derivative along tangents, one for each argument."""
        if len(tangents) != len(primals):
            raise TypeError(
                f"`linearize`: {len(tangents)} tangents were given for {len(primals)} arguments"
            )
        return _pushed(evaluator, primals, tangents, has_aux)[0][1]

    linear = reads_tape(slope, "linearize")
    return (value, linear, aux) if has_aux else (value, linear)


def _value(evaluator: Evaluator, primals: tuple[Any, ...], has_aux: bool) -> tuple[Any, Any]:
    args = all_positional(evaluator.f, primals, {})
    evaluator.check(args, ())
    return paired(evaluator.run(args, ()).value, evaluator.name, evaluator.f, has_aux)


def vjp(f: Dispatcher, primals: tuple[Any, ...], has_aux: bool, strict: bool) -> Any:
    """`tapegrad.vjp`; each call of the pullback runs the function again."""
    _refuse_strict(f, "vjp", strict)
    evaluator = Evaluator(f, "vjp")
    primals = tuple(map(marshalling.copied, primals))
    args = all_positional(f, primals, {})
    chosen = tuple([k for k in _floats(args) if k < len(primals)])
    value, aux = _value(evaluator, primals, has_aux)
    results, tree = flatten(value)
    others = flatten(aux)[0] if has_aux else []

    def pullback(weights: Any) -> tuple[Any, ...]:
        """The gradients of the value, weighted."""
        seeds: list[Any] = zero_seeds([*results, *others])
        for k, (w, result) in enumerate(zip(matching(weights, tree, "vjp"), results, strict=True)):
            if np.shape(w) != np.shape(result):
                raise ValueError(
                    f"`vjp`: weights of shape {np.shape(w)} were given for a value of shape "
                    f"{np.shape(result)}"
                )
            seeds[k] = np.array(w, seeds[k].dtype, order="C")
        rest = iter(evaluator.run(args, chosen, seeds=seeds, value=False).gradients)
        return tuple([like(x, rest) if k in chosen else None for k, x in enumerate(primals)])

    pulling: Callable[..., Any] = reads_tape(pullback, "vjp")
    value = unflatten(tree, results)
    return (value, pulling, aux) if has_aux else (value, pulling)

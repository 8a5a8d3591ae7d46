"""Forward mode over functions: `jvp`, `linearize`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.autograd.grad_mode import recording
from tapegrad.base.native_arrays import native_array
from tapegrad.lift.dual import dual, split
from tapegrad.lift.gradient_targets import forget, variable
from tapegrad.lift.levels import Level, level
from tapegrad.lift.lifted_tensor import constant, on_tape, pull, zeros_like
from tapegrad.tape.tape import current
from tapegrad.tensor import Tensor
from tapegrad.transforms.call_arguments import (
    any_tensor,
    as_tensor,
    constant_result,
    forgetting,
    name_of,
    paired,
    require_function,
    restoring,
    transforming,
    value_back,
    values,
)
from tapegrad.transforms.numba_functions import numba_derivatives
from tapegrad.transforms.pickling import reads_tape
from tapegrad.transforms.pytree import flatten, matching, unflatten
from tapegrad.transforms.reverse import Inputs, aux_back, released, scalar_root, settled


@forgetting("jvp")
def jvp(
    f: Callable[..., Any], primals: Any, tangents: Any, *, has_aux: bool = False,
    strict: bool = False,
) -> tuple[Any, ...]:  # fmt: skip
    """The value of `f` at `primals` and its derivative in the direction of `tangents`.

    With `strict` a result that does not depend on any argument is an error, not a derivative of
    zeros.

    >>> import numpy as np, tapegrad as tg
    >>> tg.jvp(np.sin, (0.0,), (2.0,))
    (0.0, 2.0)
    """
    require_function(f, "jvp")
    if (numba := numba_derivatives(f, (primals, tangents))) is not None:
        return numba.jvp(f, primals, tangents, has_aux, strict)  # type: ignore[no-any-return]
    for given, what in ((primals, "primals"), (tangents, "tangents")):
        if not isinstance(given, (tuple, list)):
            raise TypeError(
                f"`jvp`: `{what}` is a tuple with one entry for each argument of {name_of(f)}, "
                f"got {type(given).__name__}"
            )
    leaves, tree = flatten(tuple(primals))
    slopes = matching(tuple(tangents), tree, "jvp")
    with transforming(), level(Level(name="jvp")) as at:
        inputs = []
        for x, t in zip(leaves, slopes, strict=True):
            value = as_tensor(x, "jvp")
            slope = _direction(t, value, "jvp")
            inputs.append(dual(value, slope, at))
        y = f(*unflatten(tree, inputs))
        y, aux = paired(y, "jvp", f, has_aux)
        roots, shape = values(y, "jvp", f)
        tensors = any_tensor(leaves, slopes)
        primal, directions = [], []
        taken = [t._a for x in inputs for t in x.parts()[1:]]
        for root in roots:
            value, found = split(root, at)
            if found is None:
                if strict:
                    raise constant_result(root, "jvp", f)
                found = zeros_like(root)
            primal.append(released(value, set(), tensors))
            directions.append(_own(released(found, set(), tensors), taken))
        if has_aux:
            below, aux_tree = flatten(aux)
            aux = unflatten(aux_tree, [released(split(x, at)[0], set(), tensors) for x in below])
    pair = unflatten(shape, primal), unflatten(shape, directions)
    return (*pair, aux) if has_aux else pair


def directional(f: Callable[..., Any], x: Any, v: Any, name: str) -> Tensor:
    """The derivative of a scalar function along a direction, which can be differentiated in `x`."""
    leaves, tree = flatten(x)
    slopes = matching(v, tree, name)
    with level(Level(name=name)) as at:
        inputs = [
            dual(value, _direction(t, value, name), at)
            for value, t in zip(leaves, slopes, strict=True)
        ]
        root = scalar_root(f(unflatten(tree, inputs)), name, f)
        found = split(root, at)[1]
    return zeros_like(root) if found is None else found


def _own(found: Any, taken: list[np.ndarray]) -> Any:
    """A tangent for the user to keep and to change: not the memory of one that was given."""
    if isinstance(found, np.ndarray):
        if any(np.may_share_memory(found, a) for a in taken):
            found = found.copy()
        taken.append(found)
    return found


def _direction(t: Any, value: Tensor, name: str) -> Tensor:
    slope = t if isinstance(t, Tensor) else constant(native_array(t, name), value)
    if slope._a.dtype.kind not in "f" + value._a.dtype.kind:
        advice = ": pass 1.0 instead of 1" if slope._a.dtype.kind in "biu" else ""
        raise TypeError(f"`{name}` needs floating-point tangents, got {slope._a.dtype}{advice}")
    if slope._a.shape != value._a.shape:
        raise ValueError(
            f"`{name}`: a tangent of shape {slope._a.shape} was given for an argument of shape "
            f"{value._a.shape}"
        )
    if slope._a.dtype != value._a.dtype:
        slope = slope.to(value.dtype)
    return slope


@restoring
def linearize(f: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """The value of `f`, and its derivative there as a linear function of tangents.

    `f` runs once; every call of the linear function is a sweep over what was recorded.  With
    `has_aux` it returns a pair of the value and anything else, which is passed on as a third.

    >>> import numpy as np, tapegrad as tg
    >>> y, slope = tg.linearize(np.sin, 0.0)
    >>> slope(1.0), slope(2.0)
    (1.0, 2.0)
    """
    require_function(f, "linearize")
    if (numba := numba_derivatives(f, primals)) is not None:
        return numba.linearize(f, primals, has_aux)  # type: ignore[no-any-return]
    tape = current.tape
    with transforming(), recording(tape, True):
        inputs = Inputs(primals, tuple(range(len(primals))), "linearize")
        y, aux = paired(inputs.call(f, {}), "linearize", f, has_aux)
        roots, tree = values(y, "linearize", f)
        del y
        # The gradients are linear in the weights of the results: their gradients in turn are
        # weighted sums of tangents.
        weights = [variable(zeros_like(r)) for r in roots]
        outside = inputs.matters_outside()
        backward = pull(roots, weights, inputs.variables, recorded=True)
    for w in weights:
        forget(w)
    inputs.close("linearize", [*roots, *weights, *backward])
    structure = flatten(tuple(primals))[1]
    tensors = any_tensor(inputs.leaves)
    own = inputs.own | {w._pos for w in weights}

    @restoring
    def slope(*tangents: Any) -> Any:
        """The derivative along tangents, one for each argument."""
        given = matching(tuple(tangents), structure, "linearize")
        slopes = [_direction(t, x, "linearize") for t, x in zip(given, inputs.tensors, strict=True)]
        recorded = outside or any(on_tape(t) for t in slopes)
        with transforming():
            found = pull(backward, slopes, weights, recorded=recorded, retain=True)
        kept = tensors or any_tensor(given)
        return unflatten(tree, [value_back(settled(x, own), kept) for x in found])

    value = unflatten(tree, [released(r, own, tensors) for r in roots])
    linear = reads_tape(slope, "linearize")
    return (value, linear, aux_back(aux, inputs.own, tensors)) if has_aux else (value, linear)

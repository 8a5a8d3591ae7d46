"""`backward` and `grad`: seeds, one sweep, and what becomes of the gradients."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from sys import getrefcount
from typing import Any

import numpy as np

from tapegrad import storage
from tapegrad.autograd.grad_mode import recording
from tapegrad.autograd.hooks import run_functions
from tapegrad.autograd.sweep import Sweep
from tapegrad.tape import Tape, current
from tapegrad.tensor import Tensor, noted, place, wrap

Tensors = Tensor | Sequence[Tensor]
_accumulating = threading.Lock()  # threads may share leaves


def backward(
    tensors: Tensors,
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Tensors | None = None,
) -> None:
    """Sweep the tape from `tensors` down and add the gradients to the leaves' `.grad`.

    Parameters
    ----------
    tensors : the roots; several share one sweep.
    grad_tensors : their weights (the vector of the vector-Jacobian product); a scalar needs none.
    retain_graph : keep the saved values for another sweep; by default only with `create_graph`.
    create_graph : record the sweep itself, for higher derivatives.
    inputs : add gradients to these only.

    >>> import tapegrad as tg
    >>> x = tg.tensor([1.0, 2.0], requires_grad=True)
    >>> tg.autograd.backward(x * x, tg.tensor([1.0, 10.0]))
    >>> x.grad
    tensor([ 2., 40.])
    """
    if grad_tensors is None and grad_variables is not None:
        grad_tensors = grad_variables
    roots = _sequence(tensors, "tensors")
    weights = _weights(roots, grad_tensors, "grad_tensors", "backward", create_graph)
    chosen = None
    if inputs is not None:
        chosen = _sequence(inputs, "inputs")
        if not chosen:
            raise RuntimeError("`inputs` of `backward` cannot be empty: leave it out for all")
        for t in chosen:
            if not t.requires_grad:
                raise RuntimeError("one of the `inputs` of `backward` does not require grad")
    retain = create_graph if retain_graph is None else retain_graph
    with recording(current.tape, create_graph):
        sweep, direct = _prepare(
            roots, weights, recorded=create_graph, retain=retain, inputs=chosen
        )
        sweep.run()
        if chosen is None:
            found = [(sweep.tape.leaves[-code - 1], g) for code, g in sweep.leaf_gradients()]
            found = _with_direct(found, direct, create_graph)
        else:
            gradients = _gradients(sweep, chosen, direct, create_graph)
            found = [(t, g) for t, g in _once(chosen, gradients) if g is not None]
        _accumulate(found, create_graph)


def grad(
    outputs: Tensors,
    inputs: Tensors,
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """The gradients of `outputs` with respect to `inputs`, as a tuple; `.grad` is not touched.

    Parameters
    ----------
    outputs, grad_outputs : the roots and their weights.
    inputs : leaves or intermediate Tensors.
    allow_unused : give None (or zeros with `materialize_grads`) for inputs that were not used.

    >>> import tapegrad as tg
    >>> x = tg.tensor([3.0], requires_grad=True)
    >>> tg.autograd.grad(x**2, x)
    (tensor([6.]),)
    """
    if is_grads_batched:
        raise NotImplementedError(
            "`is_grads_batched` is not supported: call `grad` once per row of `grad_outputs`"
        )
    if allow_unused is None:
        allow_unused = materialize_grads
    elif not allow_unused and materialize_grads:
        raise ValueError("`materialize_grads=True` needs `allow_unused` to be True or left out")
    roots = _sequence(outputs, "outputs")
    wanted = _sequence(inputs, "inputs")
    if not wanted:
        raise ValueError("`grad` needs at least one Tensor in `inputs`")
    weights = _weights(roots, grad_outputs, "grad_outputs", "grad", create_graph)
    for t in wanted:
        if not t.requires_grad:
            raise RuntimeError("one of the `inputs` of `grad` does not require grad")
    retain = create_graph if retain_graph is None else retain_graph
    with recording(current.tape, create_graph):
        sweep, direct = _prepare(
            roots, weights, recorded=create_graph, retain=retain, inputs=wanted
        )
        if not allow_unused:
            _refuse_unused(sweep, wanted, direct)
        sweep.run()
        found = _gradients(sweep, wanted, direct, create_graph)
    if materialize_grads:
        found = [
            wrap(np.zeros_like(t._a)).requires_grad_() if g is None else g
            for t, g in zip(wanted, found, strict=True)
        ]
    elif not allow_unused and any(g is None for g in found):
        raise RuntimeError(_UNUSED)
    return tuple(found)


_UNUSED = (
    "one of the `inputs` of `grad` appears to not have been used in the graph; "
    "pass `allow_unused=True` to get None for it"
)


def _sequence(given: Any, name: str) -> list[Tensor]:
    found = [given] if isinstance(given, Tensor) else list(given)
    for t in found:
        if not isinstance(t, Tensor):
            raise TypeError(f"`{name}` takes Tensors, got {type(t).__name__}")
        place(t)
    return found


def _weights(
    roots: list[Tensor], given: Any, name: str, caller: str, recorded: bool
) -> list[Tensor]:
    if given is None:
        given = [None] * len(roots)
    elif isinstance(given, Tensor):
        given = [given]
    else:
        given = list(given)
    if len(given) != len(roots):
        raise RuntimeError(
            f"`{caller}` got {len(roots)} roots and {len(given)} `{name}`: give one for each"
        )
    weights = []
    for root, weight in zip(roots, given, strict=True):
        if not root.requires_grad:
            raise RuntimeError(
                f"`{caller}`: a root of shape {root._a.shape} does not require grad and does not "
                "have a grad_fn: make a Tensor that it is computed from with `requires_grad=True`"
            )
        if weight is None:
            if root._a.size != 1:
                raise RuntimeError(
                    f"grad can be implicitly created only for scalar outputs, this root of "
                    f"`{caller}` has the shape {root._a.shape}: reduce it (`.sum()`), or pass "
                    f"`{name}`"
                )
            weight = wrap(np.ones_like(root._a))
        elif not isinstance(weight, Tensor):
            raise TypeError(f"`{name}` takes Tensors or None, got {type(weight).__name__}")
        elif weight._a.shape != root._a.shape:
            raise RuntimeError(
                f"Mismatch in shape: `{name}` of `{caller}` has the shape {weight._a.shape}, its "
                f"root has {root._a.shape}"
            )
        elif weight._a.dtype != root._a.dtype:
            weight = weight.to(root.dtype)
        weights.append(weight)
    return weights


def _prepare(
    roots: list[Tensor],
    weights: list[Tensor],
    *,
    recorded: bool,
    retain: bool,
    inputs: list[Tensor] | None,
) -> tuple[Sweep, dict[int, Any]]:
    """A seeded sweep, and the seeds of roots that are leaves themselves, by leaf key."""
    tape = current.tape
    sweep = Sweep(tape, recorded=recorded, retain=retain)
    if inputs is not None:
        sweep.targets = _codes(tape, inputs)
    direct: dict[int, Any] = {}
    for root, weight in zip(roots, weights, strict=True):
        value: Any = weight if recorded else weight._a
        if root._pos < 0:
            key = root._pos
            sweep_leaf = direct.get(key)
            direct[key] = (root, value if sweep_leaf is None else sweep_leaf[1] + value)
            continue
        if root.tape is not tape:
            raise RuntimeError(
                "this graph was recorded by another thread: call `backward` in the thread that "
                "made it"
            )
        index = tape.index(root._pos)
        if index < 0:
            raise RuntimeError("backward through the graph a second time: it was released")
        sweep.seed(index, value)
    return sweep, direct


def _codes(tape: Tape, inputs: list[Tensor]) -> list[int]:
    """What the inputs are on this tape; a leaf that the tape never met gets no code."""
    codes = []
    for t in inputs:
        position = t._pos
        if position < 0:
            code = tape.slots.get(position, 0)
        else:
            code = position if t.tape is tape else 0
        if code:
            codes.append(code)
    return codes


def _refuse_unused(sweep: Sweep, inputs: list[Tensor], direct: dict[int, Any]) -> None:
    """Find out before anything is released whether an input was not used."""
    for t in inputs:
        code = sweep.tape.slots.get(t._pos, 0) if t._pos < 0 else t._pos
        if t._pos not in direct and not sweep.reaches(code):
            raise RuntimeError(_UNUSED)


def _gradients(
    sweep: Sweep, inputs: list[Tensor], direct: dict[int, Any], recorded: bool
) -> list[Tensor | None]:
    tape = sweep.tape
    leaves = dict(sweep.leaf_gradients())
    done: dict[int, Tensor | None] = {}
    for t in inputs:
        key = t._pos
        if key in done:
            continue
        if key < 0:
            g = leaves.get(tape.slots.get(key, 0))
            if key in direct:
                own = direct[key][1]
                g = own if g is None else g + own
            if g is not None:
                g = g if recorded else wrap(_own(g))
                hooks = noted(t, "hooks")
                g = run_functions(hooks, g) if hooks else g
        else:
            g = sweep.captured.get(tape.index(key))
            g = wrap(_own(g)) if g is not None and not recorded else g
        done[key] = g
    return [done[t._pos] for t in inputs]


def _own(array: np.ndarray) -> np.ndarray:
    """An array that nothing else shares."""
    if array.base is None and array.flags.c_contiguous and getrefcount(array) <= 4:
        return array
    return array.copy()


def _once(inputs: list[Tensor], gradients: list[Tensor | None]) -> list[tuple[Tensor, Any]]:
    seen: dict[int, tuple[Tensor, Any]] = {}
    for t, g in zip(inputs, gradients, strict=True):
        seen.setdefault(id(t), (t, g))
    return list(seen.values())


def _with_direct(
    found: list[tuple[Tensor, Any]], direct: dict[int, Any], recorded: bool
) -> list[tuple[Tensor, Any]]:
    by_key: dict[int, tuple[Tensor, Any]] = {t._pos: (t, g) for t, g in found}
    for key, (t, g) in direct.items():
        held = by_key.get(key)
        by_key[key] = (t, g if held is None else held[1] + g)
    out = []
    for t, g in by_key.values():
        if t._pos == 0:  # stopped requiring grad since
            continue
        gradient = g if recorded else wrap(g)
        hooks = noted(t, "hooks")
        out.append((t, run_functions(hooks, gradient) if hooks else gradient))
    return out


def _accumulate(found: list[tuple[Tensor, Tensor]], recorded: bool) -> None:
    """Add gradients to `.grad`: all of them, after everything that could fail is done."""
    with _accumulating:
        for t, g in found:
            held = t.grad
            if held is None:
                t._grad = g if recorded else _as_gradient(g)
            elif recorded or held.requires_grad:
                t._grad = held + g
            else:
                np.add(held._a, g._a, out=held._a)
                storage.bump(storage.root(held._a))
    for t, _ in found:
        post = noted(t, "post")
        for hook in tuple(post.values()) if post else ():
            hook(t)


def _alone(array: np.ndarray) -> bool:
    """Whether an array has its memory to itself, and all of it: a reshaped adjoint has."""
    owner = array.base
    if owner is None:
        return True
    return (
        type(owner) is np.ndarray
        and owner.base is None
        and owner.size == array.size
        and getrefcount(owner) <= 3
    )


def _as_gradient(g: Tensor) -> Tensor:
    array = g._a
    if array.flags.c_contiguous and getrefcount(array) <= 3 and _alone(array):
        return g
    return wrap(np.array(array, order="C"))

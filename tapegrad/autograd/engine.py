"""`backward` and `grad`: check arguments, seed a sweep, deliver gradients."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, cast, overload

import numpy as np

from tapegrad.autograd.adjoints import added
from tapegrad.autograd.grad_mode import switched
from tapegrad.autograd.node_hooks import GradientEdge, accumulating, add_gradients
from tapegrad.autograd.sweep import NOT_USED, Sweep, deliver, swept_at_once
from tapegrad.autograd.tensor_hooks import end_sweep, ending, retain_grad, run_functions
from tapegrad.dispatch.dispatch import ended
from tapegrad.dispatch.native_calls import native_calls
from tapegrad.kernels.sweep.sweep_abi import SMALL
from tapegrad.tape import versions
from tapegrad.tape.copy_on_use import can_share, share
from tapegrad.tape.record_format import DTYPE_BITS
from tapegrad.tape.tape import Ended, Tape, current
from tapegrad.tensor import Tensor, View, former, noted, place, tape_of, wrap, wrap_as

Tensors = Tensor | Sequence[Tensor]
_ONE = np.ones(())
UNDONE: Any = object()


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
    create_graph : record the sweep itself, for higher derivatives. A leaf and its gradient then
        hold each other until `grad` is set to None: `grad`, the function, is to be preferred.
    inputs : add gradients to these only; those that are no leaves `retain_grad` from then on.

    >>> import tapegrad as tg
    >>> x = tg.tensor([1.0, 2.0], requires_grad=True)
    >>> tg.autograd.backward(x * x, tg.tensor([1.0, 10.0]))
    >>> x.grad
    tensor([ 2., 40.])
    """
    if grad_tensors is None and grad_variables is not None:
        grad_tensors = grad_variables
    plain = inputs is None and not create_graph
    if plain and _from_one(tensors, grad_tensors, None, bool(retain_graph)) is not UNDONE:
        return
    if create_graph:
        warnings.warn(
            "Using backward() with create_graph=True lets each leaf and its gradient hold each "
            "other: use `autograd.grad`, or set `grad` to None afterwards",
            stacklevel=3,
        )
    roots = _sequence(tensors, "tensors")
    chosen = None
    if inputs is not None:
        chosen = _sequence(inputs, "inputs")
        if not chosen:
            raise RuntimeError("`inputs` of `backward` cannot be empty: leave it out for all")
    if _any_lifted(roots, chosen or ()):
        from tapegrad.lift.lifted_sweep import lifted_backward

        roots, grad_tensors, chosen = lifted_backward(roots, grad_tensors, chosen)
    weights = root_weights(roots, grad_tensors, "grad_tensors", "backward")
    if chosen is not None:
        for t in chosen:
            if not t._pos:
                raise RuntimeError("one of the `inputs` of `backward` does not require grad")
    retain = create_graph if retain_graph is None else retain_graph
    switched(current.tape, create_graph, _backward, roots, weights, chosen, create_graph, retain)


def _backward(
    roots: list[Tensor],
    weights: list[Tensor],
    chosen: list[Tensor] | None,
    recorded: bool,
    retain: bool,
) -> None:
    sweep, direct = _prepare(roots, weights, recorded=recorded, retain=retain)
    if chosen is not None:
        for t in chosen:
            if t._pos > 0 and tape_of(t) is sweep.tape:
                retain_grad(t)  # by which the sweep gives it its gradient, now and later
        _aim(sweep, chosen, direct, strict=False)
        sweep.accumulates = True
    sweep.run()
    if chosen is None:
        _accumulate_leaves(sweep, direct, recorded)
    else:
        leaves = [t for t in chosen if t._pos < 0]
        gradients = _gradients(sweep, leaves, direct, recorded)
        add_gradients([(t, g) for t, g in _once(leaves, gradients) if g is not None], recorded)
    if ending:
        end_sweep(sweep.tape)


@overload
def grad(
    outputs: Tensors, inputs: dict[str, Tensor], *args: Any, **kwargs: Any
) -> dict[str, Tensor | None]: ...
@overload
def grad(
    outputs: Tensors, inputs: Tensors, *args: Any, **kwargs: Any
) -> tuple[Tensor | None, ...]: ...
def grad(
    outputs: Tensors,
    inputs: Tensors | dict[str, Tensor],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...] | dict[str, Tensor | None]:
    """The gradients of `outputs` with respect to `inputs`, as a tuple; `.grad` is not touched.

    Parameters
    ----------
    outputs, grad_outputs : the roots and their weights.
    inputs : leaves or intermediate Tensors; of a dict of them the gradients are a dict.
    allow_unused : give None (or zeros with `materialize_grads`) for inputs that were not used.
    is_grads_batched : the weights have one more dimension in front, and so have the gradients:
        one sweep computes as many vector-Jacobian products.

    >>> import tapegrad as tg
    >>> x = tg.tensor([3.0], requires_grad=True)
    >>> tg.autograd.grad(x**2, x)
    (tensor([6.]),)
    >>> x = tg.tensor([1.0, 2.0], requires_grad=True)
    >>> tg.autograd.grad(x**2, x, tg.eye(2), is_grads_batched=True)
    (tensor([[2., 0.],
            [0., 4.]]),)
    """
    if type(inputs) is dict:
        found: Any = grad(
            outputs, list(inputs.values()), grad_outputs, retain_graph, create_graph, only_inputs,
            allow_unused, is_grads_batched, materialize_grads,
        )  # fmt: skip
        return dict(zip(inputs, found, strict=True))
    wanted: list[Any] = [inputs] if isinstance(inputs, (Tensor, GradientEdge)) else list(inputs)
    special = create_graph or allow_unused or is_grads_batched or materialize_grads
    if not special:
        delivered = _from_one(outputs, grad_outputs, wanted, bool(retain_graph))
        if delivered is not UNDONE:
            return cast("tuple[Tensor, ...]", delivered)
    if allow_unused is None:
        allow_unused = materialize_grads
    elif not allow_unused and materialize_grads:
        raise ValueError("`materialize_grads=True` needs `allow_unused` to be True or left out")
    roots = _sequence(outputs, "outputs")
    edges, wanted = wanted, _sequence(wanted, "inputs")
    if not wanted:
        raise ValueError("`grad` needs at least one Tensor in `inputs`")
    retain = create_graph if retain_graph is None else retain_graph
    if is_grads_batched or _any_lifted(roots, wanted):
        from tapegrad.lift.lifted_sweep import lifted_grad

        found = lifted_grad(
            roots, grad_outputs, wanted, recorded=create_graph, retain=retain,
            batches=is_grads_batched,
        )  # fmt: skip
    else:
        weights = root_weights(roots, grad_outputs, "grad_outputs", "grad")
        for t in wanted:
            if not t._pos:
                raise RuntimeError("one of the `inputs` of `grad` does not require grad")
        found = gradients(
            roots, weights, wanted, recorded=create_graph, retain=retain, strict=not allow_unused
        )
    if materialize_grads:
        if any(g is None and isinstance(e, GradientEdge) for e, g in zip(edges, found)):
            raise RuntimeError(
                "`grad`: `materialize_grads=True` makes zeros for Tensors, and one of the `inputs` "
                "that was not used is a GradientEdge: pass the Tensor, or leave it out"
            )
        found = [
            wrap(np.zeros_like(t._a)).requires_grad_(create_graph) if g is None else g
            for t, g in zip(wanted, found, strict=True)
        ]
    elif not allow_unused and any(g is None for g in found):
        raise RuntimeError(NOT_USED)
    return tuple(found)


def gradients(
    roots: list[Tensor], weights: list[Tensor], inputs: list[Tensor], *, recorded: bool,
    retain: bool, strict: bool = False, since: int = 0,
) -> list[Tensor | None]:  # fmt: skip
    """`grad` without checks of the arguments.

    Nothing at a position below `since` leads to an input.  The weights may be lifted, as a batch of
    them is: adjoints are Tensors then, even if nothing is recorded.
    """
    tensors = recorded or any(type(w) is not Tensor for w in weights)

    def swept() -> list[Tensor | None]:
        sweep, direct = _prepare(roots, weights, recorded=tensors, retain=retain)
        sweep.since = since
        _aim(sweep, inputs, direct, strict=strict)
        sweep.run()
        found = _gradients(sweep, inputs, direct, tensors)
        if ending:
            end_sweep(sweep.tape)
        return found

    return switched(current.tape, recorded, swept)


def _from_one(root: Any, weight: Any, inputs: list[Any] | None, retain: bool) -> Any:
    """Sweep from one small Tensor to leaves: the gradients of `inputs`, as a tuple, or, without
    these, None, after adding those of all leaves to their `.grad`.

    That is what nearly all sweeps are.  UNDONE: nothing is done, take the general path.
    """
    tape = current.tape
    work, compiled = tape.workspace, native_calls.sweep
    if work is None or compiled is None or tape.sweeping > 0:
        return UNDONE
    lender = None
    try:
        leaves = None if inputs is None else (*inputs,)
        if type(weight) is Tensor and weight._s == -1:  # neither float64 nor float32, or large
            lender = weight if can_share(weight) else None
            weight = _seed(root, weight)
            if weight is None:
                return UNDONE
        with accumulating:
            found = compiled(root, weight, work.place, retain, leaves)
        if not tape.sweeping:
            if found is False:
                return UNDONE
            if ending:
                end_sweep(tape)
            return found
        sweep = Sweep(tape, recorded=False, retain=retain, work=work)  # there is more to do
        sweep.lent = None if lender is None else lender._a
        status, index, low, seed = found
        sweep.go_on(status, index, low, seed, _codes(tape, inputs))
        if inputs is None:
            with accumulating:
                delivered = deliver(sweep)
        else:
            delivered = deliver(sweep, inputs)
        if delivered is False:
            sweep.collect()
    except BaseException:
        end_sweep(tape, failed=True)
        raise
    finally:
        tape.sweeping = 0
        if tape.recomputed:
            tape.recomputed.clear()
    if delivered is False and inputs is None:
        delivered = switched(tape, False, _accumulate_leaves, sweep, {}, False)
    elif delivered is False:
        delivered = tuple(switched(tape, False, _gradients, sweep, inputs, {}, False))
    if lender is not None:
        share(lender, delivered or [getattr(t, "_grad", None) for _, t, _ in sweep.found])
    if ending:
        end_sweep(tape)
    return delivered


def _seed(root: Any, weight: Tensor) -> np.ndarray | None:
    """An array with the weight of a root; None where it does not fit."""
    given = weight._a
    if type(root) is not Tensor or root._s != -1 or given.dtype not in DTYPE_BITS:
        return None
    if given.shape != root._a.shape or given.dtype != root._a.dtype:
        return None
    if given.size > SMALL:
        return np.asarray(given, order="C")
    return np.array(given, order="C")  # the compiled sweep may write there


def _codes(tape: Tape, leaves: list[Any] | None) -> list[int] | None:
    """The codes of leaves; an empty list if not all are leaves that the tape knows."""
    if leaves is None:
        return None
    found = []
    for t in leaves:
        code = tape.slots.get(t._pos) if type(t) is Tensor else None
        if code is None or t._pos in former:
            return []
        found.append(code)
    return found


def leaf_gradient(root: Tensor, leaf: Tensor, since: int) -> np.ndarray:
    """The gradient of a float64 scalar in one leaf, unread before a position.

    What the records keep for a second sweep may stay there, though there can be none: call
    `truncate` or `Tape.drop_spent`.
    """
    tape = current.tape
    if leaf._pos not in tape.slots:
        return np.zeros(leaf._a.shape)
    if leaf._a.size <= SMALL:
        whole = np.zeros(leaf._a.shape)
        if swept_at_once(tape, root._pos, leaf._pos, since, whole):
            return whole
    sweep = Sweep(tape, recorded=False, retain=False)
    sweep.roots[root._pos] = _ONE
    sweep.aims, sweep.since = [leaf._pos], since
    switched(tape, False, sweep.run)
    code = sweep.slots.get(leaf._pos)
    for found, _, g in sweep.found:
        if found == code:
            return g  # type: ignore[no-any-return]
    return np.zeros(leaf._a.shape)


def _any_lifted(*groups: Sequence[Tensor]) -> bool:
    """Whether any Tensor is lifted, and so has no position of its own."""
    return any(type(t) is not Tensor for group in groups for t in group)


def _sequence(given: Any, name: str) -> list[Tensor]:
    """A list of Tensors, with views brought up to date."""
    given = given.values() if type(given) is dict else given
    edges = [given] if isinstance(given, (Tensor, GradientEdge)) else list(given)
    found: list[Any] = [t.tensor() if isinstance(t, GradientEdge) else t for t in edges]
    for t in found:
        if not isinstance(t, Tensor):
            raise TypeError(f"`{name}` takes Tensors, got {type(t).__name__}")
        if type(t._home) is View:
            place(t)
    return found


def root_weights(roots: list[Tensor], given: Any, name: str, caller: str) -> list[Tensor]:
    """The seeds of roots, as `caller` has got them under a name."""
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
    pairs = enumerate(zip(roots, given, strict=True))
    return [_root_weight(root, weight, k, name, caller) for k, (root, weight) in pairs]


def _root_weight(root: Tensor, weight: Any, k: int, name: str, caller: str) -> Tensor:
    if not root._pos:
        raise RuntimeError(
            f"`{caller}`: a root of shape {root._a.shape} does not require grad and does not "
            "have a grad_fn: make a Tensor that it is computed from with `requires_grad=True`"
        )
    if weight is None:
        if root._a.size != 1:
            raise RuntimeError(
                f"grad can be implicitly created only for scalar outputs, this root of `{caller}` "
                f"has the shape {root._a.shape}: reduce it (`.sum()`), or pass `{name}`"
            )
        if root._a.dtype.kind == "c":
            raise RuntimeError(
                "grad can be implicitly created only for real scalar outputs but got "
                f"{root.dtype}: take the absolute value or the real part, or pass `{name}`"
            )
        return wrap(np.ones(root._a.shape, root._a.dtype) if root._s else np.array(1.0))
    if not isinstance(weight, Tensor):
        raise TypeError(f"`{name}` takes Tensors or None, got {type(weight).__name__}")
    if weight._a.shape != root._a.shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{k}] has a shape of {weight.shape} and "
            f"output[{k}] has a shape of {root.shape}."
        )
    if weight._a.dtype == root._a.dtype:
        return weight
    if "c" in (weight._a.dtype.kind, root._a.dtype.kind):
        raise RuntimeError(
            f"`{name}` of `{caller}` is {weight.dtype}, its root is {root.dtype}: where "
            "one of them is complex both must have the same dtype"
        )
    return weight.to(root.dtype)


def _prepare(
    roots: list[Tensor], weights: list[Tensor], *, recorded: bool, retain: bool
) -> tuple[Sweep, dict[int, Any]]:
    """Seed a sweep; returns it, and the seeds of roots that are leaves, by leaf key."""
    tape = current.tape
    sweep = Sweep(tape, recorded=recorded, retain=retain)
    direct: dict[int, Any] = {}
    for root, weight in zip(roots, weights, strict=True):
        value: Any = weight if recorded else weight._a
        if type(root._home) is Ended:
            raise ended(root)
        if root._pos < 0:
            key = root._pos
            sweep_leaf = direct.get(key)
            direct[key] = (root, value if sweep_leaf is None else added(sweep_leaf[1], value))
            continue
        if tape_of(root) is not tape:
            raise RuntimeError(
                "this graph was recorded by another thread: call `backward` in the thread that "
                "made it"
            )
        if tape.index(root._pos) < 0 or root._pos in tape.escaped:
            raise ended(root)
        sweep.seed(root._pos, value)
    return sweep, direct


def _aim(sweep: Sweep, inputs: list[Tensor], direct: dict[int, Any], *, strict: bool) -> None:
    """Bound the sweep by its targets; with `strict` all but roots must be reached."""
    must, may = [], []
    for t in inputs:
        position = t._pos
        known = position < 0 or tape_of(t) is sweep.tape
        if strict and position not in direct:
            if not known:
                raise RuntimeError(NOT_USED)
            must.append(position)
        elif known:
            may.append(position)
        may += former.get(position, ())
    sweep.aims, sweep.strict = must + may, len(must)


def _gradients(
    sweep: Sweep, inputs: list[Tensor], direct: dict[int, Any], recorded: bool
) -> list[Tensor | None]:
    """The gradient of each input, after the hooks of leaves."""
    slots = sweep.slots
    leaves = {code: g for code, _, g in sweep.found}
    for t in inputs if former else ():
        codes = [slots.get(key, 0) for key in former.get(t._pos, ())]
        for code, leaf, g in sweep.found if codes else ():
            if code in codes:
                _delivered(leaf, g, recorded)  # raises
    done: dict[int, Tensor | None] = {}
    for t in inputs:
        key = t._pos
        if key in done:
            continue
        if key < 0:
            g = leaves.pop(slots.get(key, 0), None)
            if key in direct:
                own = _copy(direct[key][1])
                g = own if g is None else added(g, own)
            done[key] = None if g is None else _delivered(t, g, recorded)
        else:
            if recorded or key not in sweep.captured:
                done[key] = sweep.captured.get(key)
            else:
                done[key] = wrap_as(versions.alone(sweep.captured.pop(key)), t._s)
    return [done[t._pos] for t in inputs]


def _delivered(leaf: Tensor, g: Any, recorded: bool) -> Tensor:
    """The gradient of a leaf as a Tensor, through the leaf's hooks."""
    gradient = g if recorded else wrap_as(g, leaf._s)
    hooks = noted(leaf, "hooks")
    return run_functions(hooks, gradient) if hooks else gradient


def _once(inputs: list[Tensor], gradients: list[Tensor | None]) -> list[tuple[Tensor, Any]]:
    seen: dict[int, tuple[Tensor, Any]] = {}
    for t, g in zip(inputs, gradients, strict=True):
        seen.setdefault(id(t), (t, g))
    return list(seen.values())


def _accumulate_leaves(sweep: Sweep, direct: dict[int, Any], recorded: bool) -> None:
    add_gradients(_leaf_gradients(sweep, direct, recorded), recorded)


def _leaf_gradients(
    sweep: Sweep, direct: dict[int, Any], recorded: bool
) -> list[tuple[Tensor, Tensor]]:
    """The gradients of the leaves that the sweep reached, or that are roots."""
    if not direct and not recorded:  # a leaf may have stopped requiring grad since
        found = [(leaf, g) for _, leaf, g in sweep.found]
        return [(t, _delivered(t, g, recorded)) for t, g in found if t._pos]
    owners: dict[int, Tensor] = {}
    values: dict[int, Any] = {}
    for _, leaf, g in sweep.found:
        owners[leaf._pos], values[leaf._pos] = leaf, g
    for key, (leaf, own) in direct.items():
        before = values.get(key)
        owners[key], values[key] = leaf, _copy(own) if before is None else added(before, own)
    return [(t, _delivered(t, values[key], recorded)) for key, t in owners.items() if key]


def _copy(weight: Any) -> Any:
    """Copy a root's weight that becomes the gradient of a leaf: the array is the user's."""
    return weight.copy() if isinstance(weight, np.ndarray) else weight

"""Records as functions, and hooks on them: `grad_fn(g)`, `grad_fn.register_hook`."""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from tapegrad.autograd.pullback import Saved, Wanted, contributions, spec_at
from tapegrad.autograd.tensor_hooks import Handle, Hooks, at_record, next_key, run_functions
from tapegrad.base.locks import lock
from tapegrad.ops.core import ELEMENTWISE
from tapegrad.ops.graph_nodes import GradFn, leaf_node
from tapegrad.tape import versions
from tapegrad.tape.copy_on_use import own
from tapegrad.tape.record_format import HOOKED, SPENT, WORD
from tapegrad.tape.tape import Tape, current
from tapegrad.tape.tape_slice import output_of
from tapegrad.tensor import Tensor, noted, placed, tensor_of, wrap

accumulating = lock()  # threads may share leaves; a finaliser may sweep inside
Grads = tuple[Tensor | None, ...]


class GradientEdge(NamedTuple):
    """An edge of the graph: a record, and which of its results.

    >>> import tapegrad as tg
    >>> x = tg.tensor(3.0, requires_grad=True).clone()
    >>> edge = tg.autograd.graph.get_gradient_edge(x)
    >>> tg.autograd.grad(x * x, edge)
    (tensor(6.),)
    """

    node: GradFn
    output_nr: int

    def tensor(self) -> Tensor:
        """A Tensor that stands there."""
        node, tape = self.node, self.node.tape
        if node.variable is not None:
            leaf: Tensor = node.variable
            return leaf
        index = tape.index(node.position)
        if index < 0:
            raise RuntimeError(f"{node!r} was released and reclaimed")
        if len(getattr(tape.keep[index], "outputs", ())) > 1:  # each has a record, further on
            ours = (node.position, self.output_nr)
            records = range(index + 1, len(tape))
            index = next(k for k in records if output_of(tape, k) == ours)
        spec = spec_at(tape, index)
        unread = np.broadcast_to(np.zeros((), spec.dtype), spec.shape)
        return placed(unread, tape, tape.tokens[index])


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Where the gradient of a Tensor arrives, for `inputs` of `grad` and `backward`.

    >>> import tapegrad as tg
    >>> tg.autograd.graph.get_gradient_edge(tg.ones(1, requires_grad=True)).output_nr
    0
    """
    if not tensor.requires_grad:
        raise RuntimeError("`get_gradient_edge` takes a Tensor that requires grad")
    node = tensor.grad_fn
    if node is None:
        return GradientEdge(leaf_node(tensor), 0)
    return GradientEdge(node, tensor.output_nr)


def call(self: GradFn, *grads: Tensor | None) -> Any:
    """The adjoints of the inputs from those of the results, recorded in grad mode.

    >>> import tapegrad as tg
    >>> x = tg.tensor([1.0, 2.0], requires_grad=True)
    >>> (x * x).sum().grad_fn(tg.tensor(1.0))
    tensor([1., 1.])
    """
    if self.variable is not None:
        if len(grads) != 1 or not isinstance(grads[0], Tensor):
            raise TypeError(f"{self!r} takes one Tensor, the gradient of its leaf")
        accumulate(self.variable, grads[0])
        return None
    tape, index = self.tape, self.tape.index(self.position)
    if tape is not current.tape:
        raise RuntimeError(f"{self!r} was recorded by another thread: call it there")
    if index < 0 or tape.words()[index, WORD] & SPENT:
        raise RuntimeError(
            f"backward through the graph a second time: the values that {self!r} needs were "
            "released; pass `retain_graph=True` to the sweep"
        )
    outputs = _outputs(tape, index)
    if len(grads) != len(outputs):
        raise TypeError(f"{self!r} takes {len(outputs)} gradients, got {len(grads)}")
    for g, spec in zip(grads, outputs, strict=True):
        if g is not None and not isinstance(g, Tensor):
            raise TypeError(f"{self!r} takes Tensors or None, got {type(g).__name__}")
        if g is not None and spec is not None and g._a.shape != spec[0]:
            raise RuntimeError(f"{self!r} takes a gradient of shape {spec[0]}, got {g._a.shape}")
    recorded = tape.enabled
    found = _inputs(tape, index, lambda code: True, recorded, grads)
    handed = tuple([v if v is None or recorded else wrap(v) for v in found])
    return handed[0] if len(handed) == 1 else handed


# Operands of elementwise operations by the names that PyTorch gives what is saved of them.
_OPERANDS = {"_saved_self": 0, "_saved_other": 1, "_saved_exponent": 1, "_saved_result": -1}


def saved_value(node: GradFn, name: str) -> Tensor | None:
    """The operand or result that the record of an elementwise operation saved, or None."""
    tape, k = node.tape, _OPERANDS.get(name, 9)
    index = -1 if node.variable is not None else tape.index(node.position)
    saved = None
    if index >= 0:
        if tape.words()[index, WORD] & SPENT:
            raise node.released(name)
        saved = Saved(tape, index, True)
    op = None if saved is None else saved.op
    if (
        saved is None or op is None or op.kind is not ELEMENTWISE or k >= len(op.inputs)
        or not any(row[k] for row in op.saves)
    ):  # fmt: skip
        raise AttributeError(
            f"{node!r} has no attribute `{name}`: that of an elementwise operation has those of "
            f"{', '.join(f'`{known}`' for known in _OPERANDS)} that its derivative reads"
        )
    if saved.entry is None or saved.entry[k] is None:
        return None
    value = saved.result() if k < 0 else saved.value(k)
    code = 0 if k < 0 else saved.codes[k]
    if not isinstance(value, Tensor):
        return tensor_of(value, name)
    # Nothing leads from a record to the Tensor that it read but the garbage collector.
    holders = [tape.leaves[-code - 1]] if code < 0 else gc.get_referrers(value._pos) if code else ()
    return next((t for t in holders if type(t) is Tensor and t._a is value._a), value)


def _outputs(tape: Tape, index: int) -> tuple[tuple[Any, Any] | None, ...]:
    """Shape and dtype of each result of a record."""
    found = getattr(tape.keep[index], "outputs", None)
    return (spec_at(tape, index),) if found is None else found


def _inputs(tape: Tape, index: int, wanted: Wanted, recorded: bool, grads: Grads) -> list[Any]:
    """The adjoint of each input that the rule of a record gives: arrays, or Tensors if recorded."""
    given = [g if g is None or recorded else g._a for g in grads]
    entry = tape.keep[index]
    node = GradFn(tape, tape.tokens[index])
    found: list[Any] = [None] * len(node.next_functions)
    if hasattr(entry, "gradients"):  # a Function's own rule
        adjoints = {j: g for j, g in enumerate(given) if g is not None}
        codes, values = tape.inputs(index), entry.gradients(adjoints, recorded)
        tensors = [k for k, spec in enumerate(entry.specs) if spec is not None]
        for place, k in enumerate(tensors):
            if values[k] is not None and codes[k] and wanted(codes[k]):
                found[place] = entry.fitted(values[k], k, recorded)
        return found
    if given[0] is None:
        return found
    places = [k for k, (below, _) in enumerate(node.next_functions) if below is not None]
    used = [code for code in tape.inputs(index) if code]
    pairs = list(contributions(tape, index, given[0], wanted, recorded, {}))
    for k, code in zip(places, used, strict=True):
        if pairs and pairs[0][0] == code:  # a user's rule leaves out inputs without a gradient
            found[k] = pairs.pop(0)[1]
    return found


def prehooked(
    hooks: Hooks, tape: Tape, index: int, g: Any, recorded: bool, scratch: dict[int, Any]
) -> Grads:
    """The adjoints of a record's results, after its prehooks."""
    several = scratch.pop(tape.tokens[index], None)
    adjoints = {0: g} if several is None else several
    grads: Grads = tuple([
        _tensor(adjoints.get(j), recorded) for j in range(len(_outputs(tape, index)))
    ])  # fmt: skip
    for hook in tuple(hooks.before.values()):
        changed = hook(grads)
        if changed is not None:
            grads = _checked(changed, grads, "a prehook")
    return grads


def stepped(
    hooks: Hooks, tape: Tape, index: int, g: Any, wanted: Wanted, recorded: bool,
    scratch: dict[int, Any],
) -> Iterator[tuple[int, Any]]:  # fmt: skip
    """`contributions` of a record with hooks."""
    grads = prehooked(hooks, tape, index, g, recorded, scratch)
    found = _inputs(tape, index, wanted, recorded, grads)
    handed: Grads = tuple([_tensor(v, recorded) for v in found])
    for hook in tuple(hooks.after.values()):
        changed = hook(handed, grads)
        if changed is not None:
            handed = _checked(changed, handed, "a hook")
    places = [k for k, (below, _) in enumerate(GradFn(tape, tape.tokens[index]).next_functions)
              if below is not None]  # fmt: skip
    for k, code in zip(places, [c for c in tape.inputs(index) if c], strict=True):
        value = handed[k]
        if value is not None and wanted(code):
            yield code, value if recorded else value._a


def _tensor(value: Any, recorded: bool) -> Tensor | None:
    return value if value is None or recorded else wrap(value.copy())


def _checked(found: Any, before: Grads, what: str) -> Grads:
    """Check what a hook returned in place of gradients."""
    given = found if isinstance(found, (tuple, list)) else (found,)
    if len(given) != len(before):
        raise RuntimeError(
            f"{what} of a grad_fn was given {len(before)} gradients and returned {len(given)}"
        )
    for new, old in zip(given, before, strict=True):
        if new is None or old is None:
            if new is not None and not isinstance(new, Tensor):
                raise TypeError(f"{what} of a grad_fn returns Tensors, got {type(new).__name__}")
            continue
        run_functions({0: functools.partial(_given, new)}, old)
    return tuple(given)


def _given(new: Tensor, old: Tensor) -> Tensor:
    return new


def _registered(node: GradFn, hook: Any, name: str) -> Handle:
    if node.variable is not None:
        where = node.variable.extra.setdefault(name, {})
    else:
        tape, index = node.tape, node.tape.index(node.position)
        if index < 0:
            raise RuntimeError(f"{node!r} was released and reclaimed: it takes no more hooks")
        tape.flag(node.position, HOOKED)
        where = getattr(at_record(tape, node.position), name)
    key = next_key()
    where[key] = hook
    return Handle(where, key)


def register_hook(self: GradFn, fn: Callable[[Grads, Grads], Any]) -> Handle:
    """Call `fn(grad_inputs, grad_outputs)` after this record; it may return other `grad_inputs`.

    >>> import tapegrad as tg
    >>> x = tg.tensor(1.0, requires_grad=True)
    >>> y = x.exp() * 1
    >>> handle = y.grad_fn.register_hook(lambda inputs, outputs: (10 * inputs[0], None))
    >>> y.backward(); round(x.grad.item(), 2)
    27.18
    """
    return _registered(self, fn, "after")


def register_prehook(self: GradFn, fn: Callable[[Grads], Any]) -> Handle:
    """Call `fn(grad_outputs)` before this record; it may return other `grad_outputs`.

    >>> import tapegrad as tg
    >>> x = tg.tensor(1.0, requires_grad=True)
    >>> y = 3 * x
    >>> handle = y.grad_fn.register_prehook(lambda outputs: (10 * outputs[0],))
    >>> y.backward(); x.grad
    tensor(30.)
    """
    return _registered(self, fn, "before")


def accumulate(leaf: Tensor, g: Tensor) -> None:
    """Send a gradient through the hooks of a leaf and add it to its `.grad`."""
    hooks, recorded = noted(leaf, "hooks"), current.tape.enabled
    g = run_functions(hooks, g) if hooks else g
    add_gradients([(leaf, g if recorded else g.clone())], recorded)


def before_accumulating(leaf: Tensor, g: Tensor) -> Tensor:
    """Run the prehooks of a leaf's `AccumulateGrad` on a gradient."""
    for hook in tuple((noted(leaf, "before") or {}).values()):
        changed = hook((g,))
        if changed is not None:
            g = _checked(changed, (g,), "a prehook")[0]  # type: ignore[assignment]
    return g


def after_accumulating(leaf: Tensor, g: Tensor) -> None:
    """Run the hooks of a leaf's `AccumulateGrad`."""
    for hook in tuple((noted(leaf, "after") or {}).values()):
        hook((), (g,))


def add_gradients(found: list[tuple[Tensor, Tensor]], recorded: bool) -> None:
    """Add gradients to `.grad`, all of them, after all checks that may fail."""
    hooked = any(getattr(t, "_extra", None) for t, _ in found)
    if hooked:
        found = [(t, before_accumulating(t, g) if noted(t, "before") else g) for t, g in found]
    with accumulating:
        for t, g in found:
            grad = getattr(t, "_grad", None)
            if grad is None:
                # What is recorded, or a hook returned, may be another's, or an expanded number.
                t._grad = g.clone() if recorded or getattr(t, "_extra", None) else g
                if t._a.base is not None:
                    current.tape.leaf_debt += g._a.nbytes  # see `debts.owed_by`
            elif grad._a.shape != t._a.shape:
                raise RuntimeError(
                    f"a leaf of shape {t._a.shape} holds a gradient of shape {grad._a.shape}, "
                    "from before it was reshaped in place: set `grad` to None, or reshape it too"
                )
            elif recorded or grad.requires_grad:
                t._grad = grad + g
            else:
                own(grad)
                versions.bump(versions.root(grad._a))
                np.add(grad._a, g._a, out=grad._a)
    for t, g in found if hooked else ():
        post = noted(t, "post")
        if post:
            for hook in tuple(post.values()):
                result = hook(t)
                if result is not None and result is not t:  # `lambda p: p.sub_(p.grad)` is usual
                    raise RuntimeError(
                        "a hook of `register_post_accumulate_grad_hook` must return None: change "
                        "`tensor.grad` instead"
                    )
        if noted(t, "after"):
            after_accumulating(t, g)


# Of `GradFn`, see `autograd.install`.
METHODS = {
    "__call__": call, "register_hook": register_hook, "register_prehook": register_prehook,
    "_read_saved": staticmethod(saved_value),
}  # fmt: skip

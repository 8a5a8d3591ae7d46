"""Hooks on what the tape saves."""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal

from tapegrad.autograd.node_hooks import GradientEdge, get_gradient_edge
from tapegrad.autograd.tensor_hooks import Handle, Handles, at_end, register_hook
from tapegrad.base.public_names import dir_of
from tapegrad.dispatch.inplace import changed
from tapegrad.ops.graph_nodes import GradFn
from tapegrad.tape.tape import MODE_CAREFUL, MODE_OFF, Tape, current
from tapegrad.tensor import Tensor

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]
__dir__ = dir_of(globals())

Node = GradFn


# The messages of `disable_saved_tensors_hooks`, by the tape of the thread that is inside.
_disabled: weakref.WeakKeyDictionary[Tape, list[str]] = weakref.WeakKeyDictionary()


class saved_tensors_hooks:
    """Inside, every value that a record saves goes through `pack_hook`, and on use through
    `unpack_hook`.

    >>> import tapegrad as tg
    >>> x = tg.tensor(3.0, requires_grad=True)
    >>> with tg.autograd.graph.saved_tensors_hooks(lambda t: t.numpy().copy(), tg.from_numpy):
    ...     y = x * x
    >>> y.backward(); x.grad
    tensor(6.)
    """

    def __init__(
        self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]
    ) -> None:
        self.hooks = (pack_hook, unpack_hook)

    def __enter__(self) -> None:
        tape = current.tape
        if refused := _disabled.get(tape):
            raise RuntimeError(refused[-1])
        tape.saved_hooks = [*tape.saved_hooks, self.hooks]  # nothing is called after this
        tape.careful = MODE_CAREFUL
        tape.mode = MODE_CAREFUL if tape.enabled else MODE_OFF

    def __exit__(self, *exception: object) -> None:
        tape = current.tape
        hooks = tape.saved_hooks
        while self.hooks in hooks:  # else they ended with the sweep that they were entered in
            last, hooks = hooks[-1], hooks[:-1]
            if last == self.hooks:
                break
        tape.saved_hooks = hooks
        tape.set_mode()


def _itself(t: Tensor) -> Tensor:
    return t


def _copy(t: Tensor) -> Tensor:
    return t.detach().clone()


class save_on_cpu(saved_tensors_hooks):
    """Inside, what records save is kept on the CPU, which is where it is: nothing is copied.

    >>> import tapegrad as tg
    >>> x = tg.tensor(3.0, requires_grad=True)
    >>> with tg.autograd.graph.save_on_cpu():
    ...     y = x * x
    >>> y.backward(); x.grad
    tensor(6.)
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cpu") -> None:
        super().__init__(_itself, _itself)


class allow_mutation_on_saved_tensors(saved_tensors_hooks):
    """Inside, what a record saved may be changed in place: the record keeps a copy.

    >>> import tapegrad as tg
    >>> x = tg.tensor(3.0, requires_grad=True)
    >>> with tg.autograd.graph.allow_mutation_on_saved_tensors():
    ...     y = x.clone()
    ...     z = y * y
    ...     _ = y.zero_()
    >>> z.backward(); x.grad
    tensor(6.)
    """

    def __init__(self) -> None:
        super().__init__(_copy, _itself)

    def __enter__(self) -> None:
        if self.hooks in current.tape.saved_hooks:
            raise RuntimeError("`allow_mutation_on_saved_tensors` is entered already")
        super().__enter__()


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Inside, `saved_tensors_hooks` raises with this message.

    >>> import tapegrad as tg
    >>> with tg.autograd.graph.disable_saved_tensors_hooks("none here"):
    ...     with tg.autograd.graph.save_on_cpu():
    ...         pass
    Traceback (most recent call last):
        ...
    RuntimeError: none here
    """
    tape = current.tape
    if tape.saved_hooks:
        raise RuntimeError(error_message)
    messages = _disabled.setdefault(tape, [])
    messages.append(error_message)
    try:
        yield
    finally:
        messages.pop()


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Count a change in place that was made behind the library's back, by NumPy for example.

    >>> import tapegrad as tg
    >>> x = tg.zeros(2)
    >>> tg.autograd.graph.increment_version(x); x._version
    1
    """
    for t in (tensor,) if isinstance(tensor, Tensor) else tuple(tensor):
        if not t.is_inference():  # which counts no versions
            changed(t)


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[[Any], None], *, mode: Literal["all", "any"] = "all"
) -> Handle:
    """Call `fn` once in a sweep: with the gradients of several Tensors, None for one that the sweep
    does not reach, when it has ended; with `mode="any"` with the first of them, at once.

    >>> import tapegrad as tg
    >>> x, y = (tg.tensor(v, requires_grad=True) for v in (1.0, 2.0))
    >>> handle = tg.autograd.graph.register_multi_grad_hook((x, y), print)
    >>> (x * y).backward()
    [tensor(2.), tensor(1.)]
    """
    if mode not in ("all", "any"):
        raise ValueError(f"`register_multi_grad_hook`: mode is 'all' or 'any', got {mode!r}")
    found: dict[int, Tensor] = {}  # what this sweep has given so far

    def ended(failed: bool) -> None:
        given = [found.get(k) for k in range(len(tensors))]
        found.clear()
        if mode == "all" and not failed:
            fn(given)

    def seen(k: int, g: Tensor) -> None:
        first = not found
        found[k] = g
        if first:
            at_end(ended)
            if mode == "any":
                fn(g)

    handles = [register_hook(t, functools.partial(seen, k)) for k, t in enumerate(tensors)]
    return Handles(handles)

"""Calls of objects that hold Tensors, with other Tensors in their place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

from tapegrad.functions.joining import stack
from tapegrad.tensor import Tensor
from tapegrad.transforms.call_arguments import name_of

OPAQUE = (type, ModuleType, FunctionType, MethodType, BuiltinFunctionType)  # not looked into


class Slot(NamedTuple):
    """A place that holds a Tensor: an attribute of an object, or an item of a list or dict."""

    name: str
    owner: Any
    key: Any

    def now(self) -> Any:
        """What stands there, None if nothing does any more."""
        if isinstance(self.owner, dict):
            return self.owner.get(self.key)
        if isinstance(self.owner, (list, tuple)):
            return self.owner[self.key] if self.key < len(self.owner) else None
        return getattr(self.owner, self.key, None)

    def set(self, value: Any) -> None:
        if isinstance(self.owner, tuple):
            raise TypeError(
                f"`func.functional_call`: {self.name!r} is in a tuple, which cannot be changed: "
                "keep the Tensors in a list"
            )
        if isinstance(self.owner, (dict, list)):
            self.owner[self.key] = value
        else:
            setattr(self.owner, self.key, value)


def functional_call(
    module: Any, parameter_and_buffer_dicts: dict[str, Tensor] | Sequence[dict[str, Tensor]],
    args: Any = None, kwargs: dict[str, Any] | None = None, *, tie_weights: bool = True,
    strict: bool = False,
) -> Any:  # fmt: skip
    """Call an object with other Tensors in the place of those that it holds.

    `module` is any object that can be called. Its Tensors are attributes of it or of objects,
    lists and dictionaries within it, and have dotted names: "layer.weight", "layers.0.bias". They
    are put back after the call, also when it raises. What the call writes into such a name is
    found in the dictionary afterwards.

    Parameters
    ----------
    parameter_and_buffer_dicts : the Tensors by their names, in one dictionary or several.
    args : the positional arguments as a tuple, or the only one.
    tie_weights : a Tensor that has several names is replaced under all of them.
    strict : every Tensor that the object holds must be given.

    >>> import tapegrad as tg
    >>> class Linear:
    ...     def __init__(self):
    ...         self.weight, self.bias = tg.zeros(2), tg.zeros(())
    ...     def __call__(self, x):
    ...         return x @ self.weight + self.bias
    >>> loss = lambda p, x: tg.func.functional_call(Linear(), p, x)
    >>> p = {"weight": tg.tensor([1.0, 2.0]), "bias": tg.tensor(3.0)}
    >>> loss(p, tg.ones(2)), tg.func.grad(loss)(p, tg.ones(2))["weight"]
    (tensor(6.), tensor([1., 1.]))
    """
    given = _merged(parameter_and_buffer_dicts)
    if not callable(module):
        raise TypeError(
            f"`func.functional_call` takes an object that can be called, got {name_of(module)}"
        )
    chosen = _replacements(module, given, tie_weights, strict)
    positional = () if args is None else args if isinstance(args, tuple) else (args,)
    before: list[tuple[Slot, Any]] = []
    try:
        for slot, value in chosen:
            held = slot.now()
            slot.set(value)
            before.append((slot, held))
        return module(*positional, **(kwargs or {}))
    finally:
        for slot, held in reversed(before):
            now = slot.now()
            if slot.name in given and now is not None and now is not given[slot.name]:
                given[slot.name] = now
            slot.set(held)


def _merged(dicts: Any) -> dict[str, Any]:
    name = "func.functional_call"
    if isinstance(dicts, dict):
        return dicts
    if not isinstance(dicts, Sequence) or isinstance(dicts, str):
        raise ValueError(
            f"`{name}` takes a dict of Tensors by name, or a list or tuple of such dicts, got "
            f"{type(dicts).__name__}"
        )
    merged: dict[str, Any] = {}
    for one in dicts:
        if not isinstance(one, dict):
            raise ValueError(f"`{name}` takes dicts of Tensors, got {type(one).__name__} in a list")
        if twice := merged.keys() & one.keys():
            raise ValueError(f"`{name}`: {', '.join(sorted(twice))} in more than one dict")
        merged |= one
    return merged


def _replacements(
    module: Any, given: dict[str, Any], tie_weights: bool, strict: bool
) -> list[tuple[Slot, Any]]:
    """What goes where."""
    slots = [*tensor_slots(module)] if tie_weights or strict else []
    unknown = [name for name in given if strict and _slot(module, name) is None]
    chosen: list[tuple[Slot, Any]] = []
    by_tensor: dict[int, str] = {}
    for name, value in given.items():
        slot = _slot(module, name)
        if slot is None:
            if strict:
                continue
            raise AttributeError(
                f"`func.functional_call`: {name_of(module)} holds no Tensor named {name!r}"
            )
        if not isinstance(value, Tensor):
            raise TypeError(
                f"`func.functional_call`: {name!r} is to be a Tensor, got {type(value).__name__}"
            )
        held = id(slot.now())
        if tie_weights and given[by_tensor.setdefault(held, name)] is not value:
            raise ValueError(
                f"`func.functional_call`: {by_tensor[held]} and {name} are one Tensor and were "
                "given different ones: pass `tie_weights=False`, or give one of them"
            )
        chosen.append((slot, value))
    names = {slot.name for slot, _ in chosen}
    for slot in slots:
        if tie_weights and slot.name not in names and (name := by_tensor.get(id(slot.now()), "")):
            chosen.append((slot, given[name]))
    if strict:
        places = {(id(slot.owner), slot.key) for slot, _ in chosen}
        left = [slot.name for slot in slots if (id(slot.owner), slot.key) not in places]
        if left or unknown:
            raise RuntimeError(
                f"`func.functional_call` with `strict=True`: {name_of(module)} holds Tensors that "
                f"were not given: {left}, and none of the names {unknown}"
            )
    return chosen


def _slot(module: Any, name: Any) -> Slot | None:
    """The place with a dotted name."""
    owner, key = module, ""
    parts = str(name).split(".")
    for depth, part in enumerate(parts):
        found = _entry(owner, part)
        if found is None:
            return None
        if depth + 1 == len(parts):
            key = found[0]
            break
        owner = found[1]
    slot = Slot(name, owner, key)
    return slot if isinstance(slot.now(), Tensor) else None


def _entry(owner: Any, part: str) -> tuple[Any, Any] | None:
    """What a part of a name means to an object: the key, and what stands there."""
    if isinstance(owner, dict):
        return next(((key, x) for key, x in owner.items() if str(key) == part), None)
    if isinstance(owner, (list, tuple)):
        place = int(part) if part.isdigit() else len(owner)
        return (place, owner[place]) if place < len(owner) else None
    return (part, getattr(owner, part)) if hasattr(owner, part) else None


def tensor_slots(module: Any) -> Iterator[Slot]:
    """Every place within an object that holds a Tensor, in the order of its attributes."""
    yield from _slots("", module, set())


def _slots(prefix: str, owner: Any, seen: set[int]) -> Iterator[Slot]:
    if isinstance(owner, OPAQUE) or id(owner) in seen:
        return
    seen.add(id(owner))
    for key, value in _members(owner):
        if isinstance(value, Tensor):
            yield Slot(f"{prefix}{key}", owner, key)
        else:
            yield from _slots(f"{prefix}{key}.", value, seen)


def _members(owner: Any) -> list[tuple[Any, Any]]:
    if isinstance(owner, dict):
        return list(owner.items())
    if isinstance(owner, (list, tuple)):
        return list(enumerate(owner))
    slots = [n for kind in type(owner).__mro__ for n in getattr(kind, "__slots__", ())]
    named = [(n, getattr(owner, n)) for n in slots if n != "__dict__" and hasattr(owner, n)]
    return [*getattr(owner, "__dict__", {}).items(), *named]


def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The Tensors of several objects alike, stacked: those that require grad, and the others.

    The first are new leaves. With `functional_call` and `vmap` all the objects are called at once.

    >>> import tapegrad as tg
    >>> class Scale:
    ...     def __init__(self, factor):
    ...         self.factor = tg.tensor(factor, requires_grad=True)
    ...     def __call__(self, x):
    ...         return self.factor * x
    >>> models = [Scale(2.0), Scale(3.0)]
    >>> params, buffers = tg.func.stack_module_state(models)
    >>> call = lambda p, x: tg.func.functional_call(models[0], p, x)
    >>> tg.func.vmap(call, in_dims=(0, None))(params, tg.tensor(10.0))
    tensor([20., 30.], grad_fn=<MulBackward0>)
    """
    if not len(models):
        raise RuntimeError("`func.stack_module_state` takes at least one object, got none")
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError("`func.stack_module_state` takes objects of one class")
    held = [{slot.name: slot.now() for slot in tensor_slots(m)} for m in models]
    if any(h.keys() != held[0].keys() for h in held):
        raise RuntimeError("`func.stack_module_state` takes objects that hold Tensors of one name")
    params: dict[str, Tensor] = {}
    buffers: dict[str, Tensor] = {}
    for name, first in held[0].items():
        many = [h[name] for h in held]
        if any(t.requires_grad != first.requires_grad for t in many):
            raise RuntimeError(
                f"`func.stack_module_state`: some of the Tensors {name} require grad and others do "
                "not"
            )
        whole = stack([t.detach() for t in many])
        if first.requires_grad:
            params[name] = whole.requires_grad_()
        else:
            buffers[name] = whole
    return params, buffers

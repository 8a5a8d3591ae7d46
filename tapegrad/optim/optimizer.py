"""What all optimizers share: parameter groups, gradients, the state as plain dicts."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from tapegrad.autograd.grad_mode import enable_grad, no_grad
from tapegrad.dispatch.inplace import changed, check_inplace
from tapegrad.tape.tape import current
from tapegrad.tensor import Tensor

__all__ = ["Optimizer"]

Group = dict[str, Any]
Params = Iterable[Tensor] | Iterable[Group]
Given = tuple[np.ndarray, np.ndarray, dict[str, Any]]  # a parameter, its gradient and its state


class Optimizer:
    """The base of optimizers: a subclass gives `defaults` for its options and defines `step`.

    Parameters
    ----------
    params : the leaves to optimize, or dicts, each with leaves under "params" and options of its
        own: a parameter group.
    defaults : the options of groups that do not give them.

    Attributes
    ----------
    param_groups : list of dicts; a changed option, `lr` say, holds from the next step on.
    state : for each parameter a dict of arrays and numbers.

    >>> import tapegrad as tg
    >>> class SignDescent(tg.optim.Optimizer):
    ...     def __init__(self, params, lr):
    ...         super().__init__(params, {"lr": lr})
    ...     @tg.no_grad()
    ...     def step(self, closure=None):
    ...         for group in self.param_groups:
    ...             for p in group["params"]:
    ...                 p -= group["lr"] * tg.sign(p.grad)
    >>> w = tg.tensor([1.0, -1.0], requires_grad=True)
    >>> optimizer = SignDescent([w], lr=0.25)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([ 0.7500, -0.7500], requires_grad=True)
    """

    _not_negative: tuple[str, ...] = ()  # options that are numbers of at least 0

    def __init__(self, params: Params, defaults: Group) -> None:
        self.defaults = defaults
        self.state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[Group] = []
        self._check_options(defaults)
        if isinstance(params, Tensor):
            raise TypeError(f"{self._name}: `params` is a list of Tensors or dicts, got one Tensor")
        given: list[Any] = list(params)
        if not given:
            raise ValueError(f"{self._name}: there are no parameters: `params` is empty")
        groups = given if isinstance(given[0], dict) else [{"params": given}]
        for group in groups:
            self.add_param_group(group)

    @property
    def _name(self) -> str:
        return f"`{type(self).__name__}`"

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for k, group in enumerate(self.param_groups):
            lines += [f"Parameter Group {k}"]
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join([*lines, ")"])

    # -- parameter groups ------------------------------------------------------------------

    def add_param_group(self, param_group: Group) -> None:
        """Add parameters with options of their own; what is not given is as for all others.

        >>> import tapegrad as tg
        >>> weight, bias = tg.ones(2, requires_grad=True), tg.zeros(1, requires_grad=True)
        >>> optimizer = tg.optim.SGD([weight], lr=0.1, momentum=0.9)
        >>> optimizer.add_param_group({"params": bias, "lr": 1.0})
        >>> [(group["lr"], group["momentum"]) for group in optimizer.param_groups]
        [(0.1, 0.9), (1.0, 0.9)]
        """
        if not isinstance(param_group, dict):
            raise TypeError(
                f"{self._name}: a parameter group is a dict, got {type(param_group).__name__}"
            )
        if "params" not in param_group:
            raise KeyError(f"{self._name}: a parameter group has its Tensors under 'params'")
        params = self._listed(param_group["params"])
        taken = {p for group in self.param_groups for p in group["params"]}
        if not taken.isdisjoint(params):
            raise ValueError(f"{self._name}: a parameter is in more than one group")
        if len(set(params)) != len(params):
            warnings.warn(
                f"{self._name}: a parameter occurs twice in one group and is updated twice a step",
                stacklevel=3,
            )
        group = {**self.defaults, **param_group, "params": params}
        self._check_options(group)
        self.param_groups.append(group)

    def _listed(self, params: Any) -> list[Tensor]:
        """The parameters of a group, each of which must be a leaf."""
        if isinstance(params, (set, frozenset)):
            raise TypeError(f"{self._name}: a set of parameters has no order: give a list")
        listed = [params] if isinstance(params, Tensor) else list(params)
        for p in listed:
            if not isinstance(p, Tensor):
                raise TypeError(f"{self._name}: parameters are Tensors, got {type(p).__name__}")
            if type(p) is not Tensor or not p.is_leaf:
                raise ValueError(
                    f"{self._name}: a parameter of shape {p._a.shape} is no leaf: give "
                    "the Tensor that was made with `requires_grad=True`, not what was computed"
                )
        return listed

    def _check_options(self, options: Group) -> None:
        """Refuse options that make no sense; optimizers add theirs."""
        for key in self._not_negative:
            self._check_number(options, key, 0)

    def _check_number(self, options: Group, key: str, least: float, below: float = np.inf) -> None:
        """Make an option a Python number; an error unless it is within its bounds."""
        value = options[key]
        try:
            number = value if type(value) in (int, float) else float(value)
        except (TypeError, ValueError, RuntimeError):
            kind = type(value).__name__
            raise TypeError(f"{self._name}: `{key}` is a number, got {kind}") from None
        if not least <= number <= below or number == below:
            bound = f"at least {least}" + (f" and below {below}" if below < np.inf else "")
            raise ValueError(f"{self._name}: `{key}` must be {bound}, got {value}")
        options[key] = number

    # -- gradients -------------------------------------------------------------------------

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Take the gradients of all parameters away, or make them zero.

        >>> import tapegrad as tg
        >>> w = tg.tensor(3.0, requires_grad=True)
        >>> optimizer = tg.optim.SGD([w])
        >>> (w * w).backward()
        >>> optimizer.zero_grad()
        >>> w.grad is None
        True
        """
        for p in self._parameters():
            gradient = p.grad
            if set_to_none or gradient is None:
                p.grad = None
            else:
                gradient.detach_().requires_grad_(False)
                gradient.zero_()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters by their gradients.

        `closure`, if given, computes the loss and the gradients first; its loss is returned.

        >>> import tapegrad as tg
        >>> w = tg.tensor(3.0, requires_grad=True)
        >>> optimizer = tg.optim.SGD([w], lr=0.25)
        >>> (w * w).backward()
        >>> optimizer.step()
        >>> w
        tensor(1.5000, requires_grad=True)
        """
        loss = self._evaluated(closure)
        for group, gathered in self._gathered():
            for p, _ in gathered:
                changed(p)
            self._update(group, [(p._a, gradient, self.state[p]) for p, gradient in gathered])
        return loss

    def _update(self, group: Group, given: list[Given]) -> None:
        """Change parameters of a group, and their state; others define `step` itself."""
        raise NotImplementedError(f"{self._name} defines no `step`")

    def _parameters(self) -> Iterator[Tensor]:
        return (p for group in self.param_groups for p in group["params"])

    def _evaluated(self, closure: Callable[[], Any] | None) -> Any:
        """The loss, computed with grad mode on."""
        if closure is None:
            return None
        with enable_grad():
            return closure()

    def _gathered(self) -> list[tuple[Group, list[tuple[Tensor, np.ndarray]]]]:
        """Of each group the parameters that have gradients, all checked before any is changed."""
        found = []
        with no_grad():
            for group in self.param_groups:
                gathered = []
                for p in group["params"]:
                    gradient = p.grad
                    if gradient is not None:
                        self._check_gradient(p, gradient)
                        gathered.append((p, gradient._a))
                found.append((group, gathered))
        return found

    def _check_gradient(self, p: Tensor, gradient: Tensor) -> None:
        check_inplace(f"{type(self).__name__}.step", p, current.tape, False)
        if type(gradient) is not Tensor:
            raise RuntimeError(
                f"{self._name}: the gradient of a parameter belongs to a transform under way "
                "(`vmap`, `jvp`, `jit`): take steps outside of it"
            )
        if gradient._a.shape != p._a.shape:
            raise RuntimeError(
                f"{self._name}: a parameter of shape {p._a.shape} has a gradient of shape "
                f"{gradient._a.shape}: call `zero_grad` after the shape has changed"
            )

    # -- the state -------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """A copy of the options and the state in plain dicts, lists, numbers and arrays.

        Parameters are numbered through the groups; their values are not part of it.

        >>> import tapegrad as tg
        >>> w = tg.tensor([3.0], requires_grad=True)
        >>> optimizer = tg.optim.SGD([w], lr=0.25, momentum=0.5)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> saved = optimizer.state_dict()
        >>> saved["state"], saved["param_groups"][0]["params"]
        ({0: {'momentum_buffer': array([6.])}}, [0])
        """
        numbers: dict[Tensor, int] = {}
        for p in self._parameters():
            numbers.setdefault(p, len(numbers))
        return {
            "state": {numbers[p]: _copied(state) for p, state in self.state.items()},
            "param_groups": [
                _copied({**group, "params": [numbers[p] for p in group["params"]]})
                for group in self.param_groups
            ],
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` of an optimizer of parameters like these returned.

        >>> import tapegrad as tg
        >>> w = tg.tensor([3.0], requires_grad=True)
        >>> optimizer, other = tg.optim.Adam([w], lr=0.25), tg.optim.Adam([w], lr=0.5)
        >>> other.load_state_dict(optimizer.state_dict())
        >>> other.param_groups[0]["lr"]
        0.25
        """
        saved = state_dict["param_groups"]
        sizes = [len(group["params"]) for group in self.param_groups]
        if [len(group["params"]) for group in saved] != sizes:
            raise ValueError(
                f"{self._name}: `load_state_dict` got groups of "
                f"{[len(group['params']) for group in saved]} parameters, this one has {sizes}"
            )
        numbers = [number for group in saved for number in group["params"]]
        params = dict(zip(numbers, self._parameters()))
        # JSON makes strings of numbers.
        state = {params[int(number)]: entry for number, entry in state_dict["state"].items()}
        loaded = {
            p: {key: self._restored(p, key, value) for key, value in entry.items()}
            for p, entry in state.items()
        }
        groups = []
        for new, old in zip(saved, self.param_groups):
            entries = _copied({key: value for key, value in new.items() if key != "params"})
            groups.append({**self.defaults, **entries, "params": old["params"]})
            self._check_options(groups[-1])
        self.param_groups = groups
        self.state = defaultdict(dict, loaded)

    def _restored(self, p: Tensor, key: str, value: Any) -> Any:
        """An entry of the state as this optimizer keeps it: arrays have the parameter's dtype."""
        if isinstance(value, list):
            return [self._restored(p, key, entry) for entry in value]
        if key == "step":
            return int(value)
        array = value._a if isinstance(value, Tensor) else value
        if not isinstance(array, np.ndarray):
            return value
        expected = self._state_shape(p, key)
        if array.shape != expected:
            raise ValueError(
                f"{self._name}: `load_state_dict` got `{key}` of shape {array.shape} for a "
                f"parameter of shape {p._a.shape}, whose `{key}` has the shape {expected}"
            )
        return array.astype(p._a.dtype)

    def _state_shape(self, p: Tensor, key: str) -> tuple[int, ...]:
        """The shape of an array in the state of a parameter."""
        return p._a.shape


def _copied(value: Any) -> Any:
    """A copy of dicts and lists down to the arrays, which are copied too."""
    if isinstance(value, dict):
        return {key: _copied(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_copied(entry) for entry in value]
    return value.copy() if isinstance(value, np.ndarray) else value

"""What all learning rate schedulers share: the epoch, the first rates, the state."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tapegrad.optim.optimizer import Optimizer

__all__ = ["LRScheduler"]


class LRScheduler:
    """The base of schedulers: a subclass defines `get_lr`, the rates of epoch `last_epoch`.

    Parameters
    ----------
    optimizer : whose rates are changed; those it has now are the initial ones.
    last_epoch : the last epoch that was done, where training goes on; else -1.

    >>> import tapegrad as tg
    >>> class Halved(tg.optim.lr_scheduler.LRScheduler):
    ...     def get_lr(self):
    ...         return [lr / 2**self.last_epoch for lr in self.base_lrs]
    >>> optimizer = tg.optim.SGD([tg.zeros(1, requires_grad=True)], lr=1.0)
    >>> scheduler = Halved(optimizer)
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.5]
    """

    _initial = False  # whether the step is that of `_first_step`

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = checked(optimizer, type(self).__name__)
        for group in optimizer.param_groups:
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError(
                    f"`{type(self).__name__}`: to go on after epoch {last_epoch} every parameter "
                    "group needs its 'initial_lr': load the optimizer's state before"
                )
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._last_lr: list[float] = []
        self._first_step()

    def get_lr(self) -> list[float]:
        """The rates of epoch `last_epoch`, one for each group; for `step` to call.

        >>> import tapegrad as tg
        >>> optimizer = tg.optim.SGD([tg.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = tg.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 / (1 + epoch))
        >>> scheduler.get_lr()
        [1.0]
        """
        raise NotImplementedError(f"`{type(self).__name__}` defines no `get_lr`")

    def get_last_lr(self) -> list[float]:
        """The rates that were set last, one for each group.

        >>> import tapegrad as tg
        >>> optimizer = tg.optim.SGD([tg.zeros(1, requires_grad=True)], lr=1.0)
        >>> tg.optim.lr_scheduler.ExponentialLR(optimizer, 0.5).get_last_lr()
        [1.0]
        """
        return self._last_lr

    def step(self) -> None:
        """Set the rates of the next epoch; to be called after the optimizer's steps of this one.

        >>> import tapegrad as tg
        >>> optimizer = tg.optim.SGD([tg.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = tg.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
        >>> scheduler.step()
        >>> optimizer.param_groups[0]["lr"]
        0.5
        """
        groups = self.optimizer.param_groups
        if len(groups) != len(self.base_lrs):
            raise RuntimeError(
                f"`{type(self).__name__}`: the optimizer has {len(groups)} parameter groups, and "
                f"had {len(self.base_lrs)}: add groups before the scheduler is made"
            )
        self.last_epoch += 1
        self._set(self.get_lr())

    def _set(self, rates: Iterable[float]) -> None:
        for group, lr in zip(self.optimizer.param_groups, rates):
            group["lr"] = lr
        self._last_lr = self._rates()

    def _first_step(self) -> None:
        """Set the rates to begin, or to go on with: rules that multiply the last rate leave it."""
        self._initial = True
        self.step()
        del self._initial

    def _undo(self) -> None:
        """Go back by one epoch; rates stay."""
        self.last_epoch -= 1

    def _start_over(self) -> None:
        """Set the rates of epoch 0."""
        self._set(self.base_lrs)
        self.last_epoch = -1
        self._first_step()

    def state_dict(self) -> dict[str, Any]:
        """What `load_state_dict` needs to go on: numbers and lists of them.

        >>> import tapegrad as tg
        >>> optimizer = tg.optim.SGD([tg.zeros(1, requires_grad=True)], lr=1.0)
        >>> tg.optim.lr_scheduler.ExponentialLR(optimizer, 0.5).state_dict()
        {'gamma': 0.5, 'base_lrs': [1.0], 'last_epoch': 0, '_last_lr': [1.0]}
        """
        return {
            key: list(value) if isinstance(value, list) else value
            for key, value in vars(self).items()
            if key not in ("optimizer", "lr_lambdas")
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` of a scheduler like this returned.

        >>> import tapegrad as tg
        >>> optimizer = tg.optim.SGD([tg.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = tg.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
        >>> scheduler.load_state_dict({**scheduler.state_dict(), "last_epoch": 7})
        >>> scheduler.last_epoch
        7
        """
        vars(self).update(state_dict)

    def _rates(self) -> list[float]:
        """The rates of now."""
        return [group["lr"] for group in self.optimizer.param_groups]


def checked(optimizer: Any, name: str) -> Optimizer:
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"`{name}` takes an optimizer, got {type(optimizer).__name__}")
    return optimizer


def for_each_group(optimizer: Optimizer, value: Any, name: str, argument: str) -> list[Any]:
    """An argument of each parameter group: one for all of them, or a sequence."""
    groups = optimizer.param_groups
    values = list(value) if isinstance(value, Sequence) else [value] * len(groups)
    if len(values) != len(groups):
        raise ValueError(
            f"`{name}`: `{argument}` has {len(values)} entries for {len(groups)} parameter groups"
        )
    return values

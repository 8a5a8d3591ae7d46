"""Schedulers that are made of schedulers: one after the other, or all at once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from tapegrad.optim.lr_scheduler.base import LRScheduler
from tapegrad.optim.lr_scheduler.plateau import ReduceLROnPlateau
from tapegrad.optim.optimizer import Optimizer

__all__ = ["ChainedScheduler", "SequentialLR"]


class _Composition(LRScheduler):
    """Schedulers of one optimizer, whose states are saved with it."""

    def __init__(self, optimizer: Optimizer | None, schedulers: Sequence[LRScheduler]) -> None:
        name = type(self).__name__
        self._schedulers = list(schedulers)
        if not self._schedulers:
            raise ValueError(f"`{name}`: there are no schedulers")
        for scheduler in self._schedulers:
            if not isinstance(scheduler, LRScheduler):
                raise TypeError(f"`{name}` takes schedulers, got {type(scheduler).__name__}")
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(
                    f"`{name}`: `ReduceLROnPlateau` needs a metric at each step: step it by itself"
                )
        self.optimizer = self._schedulers[0].optimizer if optimizer is None else optimizer
        if any(scheduler.optimizer is not self.optimizer for scheduler in self._schedulers):
            raise ValueError(f"`{name}`: all schedulers must have the same optimizer")
        self.base_lrs = [group["initial_lr"] for group in self.optimizer.param_groups]

    def _undo(self) -> None:
        for scheduler in self._schedulers:
            scheduler._undo()

    def state_dict(self) -> dict[str, Any]:
        """What `load_state_dict` needs to go on, with the states of the schedulers.

        >>> import tapegrad as tg
        >>> optimizer = tg.optim.SGD([tg.zeros(1, requires_grad=True)], lr=1.0)
        >>> rules = [tg.optim.lr_scheduler.ExponentialLR(optimizer, gamma) for gamma in (0.5, 0.1)]
        >>> saved = tg.optim.lr_scheduler.ChainedScheduler(rules).state_dict()
        >>> [rule["gamma"] for rule in saved["_schedulers"]]
        [0.5, 0.1]
        """
        states = [scheduler.state_dict() for scheduler in self._schedulers]
        return {**super().state_dict(), "_schedulers": states}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` of a scheduler like this returned.

        >>> import tapegrad as tg
        >>> optimizer = tg.optim.SGD([tg.zeros(1, requires_grad=True)], lr=1.0)
        >>> rule = tg.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
        >>> chained = tg.optim.lr_scheduler.ChainedScheduler([rule])
        >>> saved = chained.state_dict()
        >>> chained.step()
        >>> chained.load_state_dict(saved)
        >>> rule.last_epoch
        0
        """
        own = dict(state_dict)
        states = own.pop("_schedulers")
        if len(states) != len(self._schedulers):
            raise ValueError(
                f"`{type(self).__name__}`: `load_state_dict` got the states of {len(states)} "
                f"schedulers, this has {len(self._schedulers)}"
            )
        super().load_state_dict(own)
        for scheduler, state in zip(self._schedulers, states):
            scheduler.load_state_dict(state)


class SequentialLR(_Composition):
    """One scheduler after the other: each begins, with its epoch 0, at the next of `milestones`.

    >>> import tapegrad as tg
    >>> optimizer = tg.optim.SGD([tg.zeros(1, requires_grad=True)], lr=1.0)
    >>> rules = tg.optim.lr_scheduler
    >>> warmup = rules.LinearLR(optimizer, start_factor=0.5, total_iters=2)
    >>> decay = rules.ExponentialLR(optimizer, gamma=0.5)
    >>> scheduler = rules.SequentialLR(optimizer, [warmup, decay], milestones=[2])
    >>> rates = scheduler.get_last_lr()
    >>> for _ in range(4):
    ...     scheduler.step()
    ...     rates += scheduler.get_last_lr()
    >>> rates
    [0.5, 0.75, 1.0, 0.5, 0.25]
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: Sequence[LRScheduler], milestones: Sequence[int],
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        super().__init__(optimizer, schedulers)
        self._milestones = list(milestones)
        if len(self._milestones) != len(self._schedulers) - 1:
            raise ValueError(
                f"`SequentialLR`: {len(self._schedulers)} schedulers need one milestone less, "
                f"there are {len(self._milestones)}"
            )
        # Each scheduler has taken its first step, which only one should.
        self.last_epoch = last_epoch
        super()._undo()
        self._set(self.base_lrs)
        self._first_step()

    def step(self) -> None:
        """Take a step of the scheduler whose turn it is, or begin with the next.

        >>> import tapegrad as tg
        >>> optimizer = tg.optim.SGD([tg.zeros(1, requires_grad=True)], lr=1.0)
        >>> rule = tg.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
        >>> scheduler = tg.optim.lr_scheduler.SequentialLR(optimizer, [rule], milestones=[])
        >>> scheduler.step()
        >>> scheduler.get_last_lr()
        [0.5]
        """
        self.last_epoch += 1
        index = bisect_right(self._milestones, self.last_epoch)
        now = self._schedulers[index]
        if index and self._milestones[index - 1] == self.last_epoch:
            now._start_over()
        else:
            now.step()
        self._last_lr = now.get_last_lr()

    def _first_step(self) -> None:
        self.last_epoch += 1
        now = self._schedulers[bisect_right(self._milestones, self.last_epoch)]
        now._first_step()
        self._last_lr = now.get_last_lr()

    def _undo(self) -> None:
        super()._undo()
        self.last_epoch -= 1


class ChainedScheduler(_Composition):
    """Schedulers that all take their steps, one after the other: their factors are multiplied.

    >>> import tapegrad as tg
    >>> optimizer = tg.optim.SGD([tg.zeros(1, requires_grad=True)], lr=1.0)
    >>> rules = tg.optim.lr_scheduler
    >>> scheduler = rules.ChainedScheduler(
    ...     [rules.ExponentialLR(optimizer, 0.5), rules.StepLR(optimizer, 2, gamma=0.5)]
    ... )
    >>> for _ in range(2):
    ...     scheduler.step()
    >>> scheduler.get_last_lr()
    [0.125]
    """

    def __init__(
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None
    ) -> None:
        super().__init__(optimizer, schedulers)
        self._last_lr = self._rates()

    def step(self) -> None:
        """Take a step of each scheduler.

        >>> import tapegrad as tg
        >>> optimizer = tg.optim.SGD([tg.zeros(1, requires_grad=True)], lr=1.0)
        >>> rule = tg.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
        >>> tg.optim.lr_scheduler.ChainedScheduler([rule]).step()
        >>> rule.get_last_lr()
        [0.5]
        """
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._rates()

    def _first_step(self) -> None:
        for scheduler in self._schedulers:
            scheduler._first_step()
        self._last_lr = self._rates()

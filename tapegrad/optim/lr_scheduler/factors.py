"""Schedulers that multiply the rate by a factor of the epoch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tapegrad.optim.lr_scheduler.base import LRScheduler, checked, for_each_group
from tapegrad.optim.optimizer import Optimizer

__all__ = [
    "ConstantLR", "ExponentialLR", "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR",
    "PolynomialLR", "StepLR",
]  # fmt: skip


class LambdaLR(LRScheduler):
    """The initial rate times a function of the epoch, one for all groups or one for each.

    >>> import tapegrad as tg
    >>> optimizer = tg.optim.SGD([tg.zeros(1, requires_grad=True)], lr=1.0)
    >>> scheduler = tg.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.5**epoch)
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def __init__(
        self, optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]], last_epoch: int = -1,
    ) -> None:  # fmt: skip
        name = type(self).__name__
        rules = lr_lambda if callable(lr_lambda) else list(lr_lambda)
        self.lr_lambdas = for_each_group(checked(optimizer, name), rules, name, "lr_lambda")
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The initial rates times the functions of the epoch."""
        return [lr * rule(self.last_epoch) for lr, rule in zip(self.base_lrs, self.lr_lambdas)]


class MultiplicativeLR(LambdaLR):
    """The rate is multiplied by a function of the epoch, one for all groups or one for each.

    >>> import tapegrad as tg
    >>> optimizer = tg.optim.SGD([tg.zeros(1, requires_grad=True)], lr=1.0)
    >>> scheduler = tg.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.5)
    >>> for _ in range(2):
    ...     scheduler.step()
    >>> scheduler.get_last_lr()
    [0.25]
    """

    def get_lr(self) -> list[float]:
        """The rates of now times the functions of the epoch."""
        if self._initial:
            return self._rates()
        return [lr * rule(self.last_epoch) for lr, rule in zip(self._rates(), self.lr_lambdas)]

    def _start_over(self) -> None:
        # Its first rate is the last of the scheduler before.
        self.last_epoch = -1
        self.step()


class StepLR(LRScheduler):
    """The rate is multiplied by `gamma` every `step_size` epochs.

    >>> import tapegrad as tg
    >>> optimizer = tg.optim.SGD([tg.zeros(1, requires_grad=True)], lr=1.0)
    >>> scheduler = tg.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    >>> for _ in range(4):
    ...     scheduler.step()
    >>> scheduler.get_last_lr()
    [0.25]
    """

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates of now, or `gamma` times these."""
        changes = self.last_epoch > 0 and self.last_epoch % self.step_size == 0
        return [lr * self.gamma if changes else lr for lr in self._rates()]


class MultiStepLR(LRScheduler):
    """The rate is multiplied by `gamma` at each of the epochs `milestones`.

    >>> import tapegrad as tg
    >>> optimizer = tg.optim.SGD([tg.zeros(1, requires_grad=True)], lr=1.0)
    >>> scheduler = tg.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[1, 3], gamma=0.5)
    >>> for _ in range(4):
    ...     scheduler.step()
    >>> scheduler.get_last_lr()
    [0.25]
    """

    def __init__(
        self, optimizer: Optimizer, milestones: Sequence[int], gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates of now, times `gamma` as often as the epoch is a milestone."""
        factor = self.gamma ** self.milestones.count(self.last_epoch)
        return [lr * factor for lr in self._rates()]


class ConstantLR(LRScheduler):
    """The rate is `factor` times the initial one for `total_iters` epochs.

    >>> import tapegrad as tg
    >>> optimizer = tg.optim.SGD([tg.zeros(1, requires_grad=True)], lr=1.0)
    >>> scheduler = tg.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=2)
    >>> rates = scheduler.get_last_lr()
    >>> for _ in range(2):
    ...     scheduler.step()
    >>> rates, scheduler.get_last_lr()
    ([0.5], [1.0])
    """

    def __init__(
        self, optimizer: Optimizer, factor: float = 1 / 3, total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        _check_factor("ConstantLR", "factor", factor)
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates of now, at first times `factor`, and at the end through it."""
        rates = self._rates()
        if self.last_epoch == 0:
            return [lr * self.factor for lr in rates]
        if self.last_epoch != self.total_iters:
            return rates
        return [lr / self.factor for lr in rates] if self.factor else list(self.base_lrs)


class LinearLR(LRScheduler):
    """The rate goes from `start_factor` to `end_factor` times the initial one, along a line.

    >>> import tapegrad as tg
    >>> optimizer = tg.optim.SGD([tg.zeros(1, requires_grad=True)], lr=1.0)
    >>> scheduler = tg.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.5, total_iters=2)
    >>> rates = scheduler.get_last_lr()
    >>> for _ in range(3):
    ...     scheduler.step()
    ...     rates += scheduler.get_last_lr()
    >>> rates
    [0.5, 0.75, 1.0, 1.0]
    """

    def __init__(
        self, optimizer: Optimizer, start_factor: float = 1 / 3, end_factor: float = 1.0,
        total_iters: int = 5, last_epoch: int = -1,
    ) -> None:  # fmt: skip
        _check_factor("LinearLR", "start_factor", start_factor)
        _check_factor("LinearLR", "end_factor", end_factor)
        if not start_factor:
            raise ValueError("`LinearLR`: `start_factor` must be greater than 0: it is divided by")
        self.start_factor, self.end_factor = start_factor, end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates of now, carried one epoch on along the line."""
        if self.last_epoch == 0:
            factor = self.start_factor
        elif self._initial or self.last_epoch > self.total_iters:
            factor = 1.0
        else:
            rise = self.end_factor - self.start_factor
            last = self.total_iters * self.start_factor + (self.last_epoch - 1) * rise
            factor = 1 + rise / last
        return [lr * factor for lr in self._rates()]


class ExponentialLR(LRScheduler):
    """The rate is multiplied by `gamma` every epoch.

    >>> import tapegrad as tg
    >>> optimizer = tg.optim.SGD([tg.zeros(1, requires_grad=True)], lr=1.0)
    >>> scheduler = tg.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> for _ in range(4):
    ...     scheduler.step()
    >>> scheduler.get_last_lr()
    [0.0625]
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates of now, after the first epoch times `gamma`."""
        return [lr if self._initial else lr * self.gamma for lr in self._rates()]


class PolynomialLR(LRScheduler):
    """The rate falls to zero in `total_iters` epochs, as a power of what is left of them.

    >>> import tapegrad as tg
    >>> optimizer = tg.optim.SGD([tg.zeros(1, requires_grad=True)], lr=1.0)
    >>> scheduler = tg.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=4, power=2.0)
    >>> for _ in range(2):
    ...     scheduler.step()
    >>> scheduler.get_last_lr()
    [0.25]
    """

    def __init__(
        self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1
    ) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates of now, times the power of how the epochs that are left have become fewer."""
        if self._initial or self.last_epoch > self.total_iters:
            return self._rates()
        left = self.total_iters - self.last_epoch
        factor = (left / (left + 1)) ** self.power
        return [lr * factor for lr in self._rates()]


def _check_factor(name: str, key: str, factor: float) -> None:
    if not 0 <= factor <= 1:
        raise ValueError(f"`{name}`: `{key}` must be from 0 to 1, got {factor}")

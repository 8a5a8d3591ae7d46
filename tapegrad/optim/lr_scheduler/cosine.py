"""Schedulers along half a cosine."""

from __future__ import annotations

from math import cos, floor, pi
from typing import Any

from tapegrad.optim.lr_scheduler.base import LRScheduler
from tapegrad.optim.optimizer import Optimizer

__all__ = ["CosineAnnealingLR", "CosineAnnealingWarmRestarts"]


class CosineAnnealingLR(LRScheduler):
    """The rate falls to `eta_min` along half a cosine, of `T_max` epochs, and rises again.

    >>> import tapegrad as tg
    >>> optimizer = tg.optim.SGD([tg.zeros(1, requires_grad=True)], lr=1.0)
    >>> scheduler = tg.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
    >>> for _ in range(2):
    ...     scheduler.step()
    >>> round(scheduler.get_last_lr()[0], 6)
    0.5
    """

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates of now, carried one epoch on along the cosine."""
        if self._initial:
            return self._rates()
        before, now = (1 + cos(pi * (self.last_epoch - k) / self.T_max) for k in (1, 0))
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            # The last rate was the least, of which nothing is left to multiply.
            return [
                lr + (base - self.eta_min) * now / 2
                for lr, base in zip(self._rates(), self.base_lrs)
            ]
        return [self.eta_min + (lr - self.eta_min) * now / before for lr in self._rates()]


class CosineAnnealingWarmRestarts(LRScheduler):
    """The rate falls to `eta_min` along half a cosine, and begins again: after `T_0` epochs first.

    Parameters
    ----------
    optimizer : whose rates are changed.
    T_0 : the epochs of the first cycle.
    T_mult : how many times as long as the last one each cycle is.
    eta_min : what the rates fall to.
    last_epoch : the last epoch that was done, where training goes on; else -1.

    >>> import tapegrad as tg
    >>> optimizer = tg.optim.SGD([tg.zeros(1, requires_grad=True)], lr=1.0)
    >>> scheduler = tg.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2, T_mult=2)
    >>> rates = []
    >>> for _ in range(6):
    ...     scheduler.step()
    ...     rates += [round(lr, 3) for lr in scheduler.get_last_lr()]
    >>> rates
    [0.5, 1.0, 0.854, 0.5, 0.146, 1.0]
    """

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        cycles: dict[str, Any] = {"T_0": T_0, "T_mult": T_mult}
        for key, value in cycles.items():
            if not isinstance(value, int) or value < 1:
                raise ValueError(
                    f"`CosineAnnealingWarmRestarts`: `{key}` is a positive integer, got {value}"
                )
        self.T_0 = self.T_i = T_0
        self.T_mult, self.eta_min = T_mult, eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates at `T_cur` epochs of a cycle of `T_i`."""
        share = (1 + cos(pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Set the rates of the next epoch, or of `epoch`, which may lie between two.

        >>> import tapegrad as tg
        >>> optimizer = tg.optim.SGD([tg.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = tg.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=1)
        >>> scheduler.step(3.5)
        >>> [round(lr, 3) for lr in scheduler.get_last_lr()]
        [0.5]
        """
        if epoch is None and self.last_epoch >= 0:
            epoch = self.last_epoch + 1
            self.T_cur += 1
        else:
            epoch = 0 if epoch is None else epoch
            if epoch < 0:
                raise ValueError(
                    f"`CosineAnnealingWarmRestarts`: an epoch is not negative, got {epoch}"
                )
            self.T_cur, self.T_i = epoch, self.T_0
        while self.T_cur >= self.T_i:
            if self.T_mult == 1:
                self.T_cur %= self.T_i
            else:
                self.T_cur -= self.T_i
                self.T_i *= self.T_mult
        self.last_epoch = floor(epoch)
        self._set(self.get_lr())

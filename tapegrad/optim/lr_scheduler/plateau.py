"""`ReduceLROnPlateau`: a rate that falls when a metric stops improving."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

from tapegrad.optim.lr_scheduler.base import LRScheduler, checked, for_each_group
from tapegrad.optim.optimizer import Optimizer

__all__ = ["ReduceLROnPlateau"]


class ReduceLROnPlateau(LRScheduler):
    """The rate is multiplied by `factor` when a metric has not improved for `patience` epochs.

    Parameters
    ----------
    optimizer : whose rates are changed.
    mode : "min" or "max", which the metric is to become.
    factor : what the rate is multiplied by, below 1.
    patience : for how many epochs without improvement nothing happens.
    threshold : how great an improvement must be to count.
    threshold_mode : "rel" for a share of the best metric, "abs" for a difference.
    cooldown : for how many epochs after a reduction none are counted.
    min_lr : the least rate, one for all groups or one for each.
    eps : the least change of a rate that is made.

    >>> import tapegrad as tg
    >>> optimizer = tg.optim.SGD([tg.zeros(1, requires_grad=True)], lr=1.0)
    >>> scheduler = tg.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
    >>> for loss in (3.0, 2.0, 2.0, 2.0):
    ...     scheduler.step(loss)
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def __init__(
        self, optimizer: Optimizer, mode: str = "min", factor: float = 0.1, patience: int = 10,
        threshold: float = 1e-4, threshold_mode: str = "rel", cooldown: int = 0,
        min_lr: float | Sequence[float] = 0, eps: float = 1e-8,
    ) -> None:  # fmt: skip
        self.optimizer = checked(optimizer, "ReduceLROnPlateau")
        if factor >= 1:
            raise ValueError(f"`ReduceLROnPlateau`: `factor` must be below 1, got {factor}")
        if mode not in ("min", "max"):
            raise ValueError(f"`ReduceLROnPlateau`: `mode` is 'min' or 'max', got {mode!r}")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(
                f"`ReduceLROnPlateau`: `threshold_mode` is 'rel' or 'abs', got {threshold_mode!r}"
            )
        self.min_lrs = for_each_group(optimizer, min_lr, "ReduceLROnPlateau", "min_lr")
        self.mode, self.factor, self.patience, self.eps = mode, factor, patience, eps
        self.threshold, self.threshold_mode, self.cooldown = threshold, threshold_mode, cooldown
        self.best = inf if mode == "min" else -inf
        self.cooldown_counter = self.num_bad_epochs = self.last_epoch = 0
        self._last_lr = self._rates()

    def step(self, metrics: Any) -> None:  # type: ignore[override]  # as PyTorch's
        """Take note of an epoch's metric, and reduce the rates if it is time.

        >>> import tapegrad as tg
        >>> optimizer = tg.optim.SGD([tg.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = tg.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
        >>> scheduler.step(2.0)
        >>> scheduler.step(2.0)
        >>> scheduler.get_last_lr()
        [0.1]
        """
        metric = float(metrics)
        self.last_epoch += 1
        if self._improved(metric):
            self.best, self.num_bad_epochs = metric, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = self._rates()

    def _improved(self, metric: float) -> bool:
        sign = 1 if self.mode == "max" else -1
        relative = self.threshold_mode == "rel"
        share = 1 + sign * self.threshold if relative else 1.0
        distance = 0.0 if relative else sign * self.threshold
        return sign * metric > sign * (self.best * share + distance)

    def _reduce(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            raise RuntimeError(
                f"`ReduceLROnPlateau`: the optimizer has {len(groups)} parameter groups, and had "
                f"{len(self.min_lrs)}: set `min_lrs` to one rate for each"
            )
        for group, least in zip(groups, self.min_lrs):
            reduced = max(group["lr"] * self.factor, least)
            if group["lr"] - reduced > self.eps:
                group["lr"] = reduced

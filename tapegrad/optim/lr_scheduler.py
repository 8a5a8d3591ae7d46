"""Learning rate schedulers: rules that change the `lr` of parameter groups from epoch to epoch.

All but `ReduceLROnPlateau` compute the next rate from the last, so that several may be used
together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import cos, inf, pi
from typing import Any

from tapegrad.base.missing_names import missing
from tapegrad.optim.optimizer import Optimizer

__all__ = [
    "CosineAnnealingLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "ReduceLROnPlateau",
    "StepLR",
]


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

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = _checked(optimizer, type(self).__name__)
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
        self.step()

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
        for group, lr in zip(groups, self.get_lr()):
            group["lr"] = lr
        self._last_lr = [group["lr"] for group in groups]

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
        groups = _checked(optimizer, "LambdaLR").param_groups
        self.lr_lambdas = [lr_lambda] * len(groups) if callable(lr_lambda) else list(lr_lambda)
        if len(self.lr_lambdas) != len(groups):
            raise ValueError(
                f"`LambdaLR`: there are {len(self.lr_lambdas)} functions for {len(groups)} "
                "parameter groups"
            )
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The initial rates times the functions of the epoch."""
        return [lr * rule(self.last_epoch) for lr, rule in zip(self.base_lrs, self.lr_lambdas)]


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
        return [lr * self.gamma if self.last_epoch > 0 else lr for lr in self._rates()]


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
        if self.last_epoch <= 0:
            return self._rates()
        before, now = (1 + cos(pi * (self.last_epoch - k) / self.T_max) for k in (1, 0))
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            # The last rate was the least, of which nothing is left to multiply.
            return [
                lr + (base - self.eta_min) * now / 2
                for lr, base in zip(self._rates(), self.base_lrs)
            ]
        return [self.eta_min + (lr - self.eta_min) * now / before for lr in self._rates()]


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
        self.optimizer = _checked(optimizer, "ReduceLROnPlateau")
        if factor >= 1:
            raise ValueError(f"`ReduceLROnPlateau`: `factor` must be below 1, got {factor}")
        if mode not in ("min", "max"):
            raise ValueError(f"`ReduceLROnPlateau`: `mode` is 'min' or 'max', got {mode!r}")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(
                f"`ReduceLROnPlateau`: `threshold_mode` is 'rel' or 'abs', got {threshold_mode!r}"
            )
        self.min_lrs = self._least_rates(min_lr)
        self.mode, self.factor, self.patience, self.eps = mode, factor, patience, eps
        self.threshold, self.threshold_mode, self.cooldown = threshold, threshold_mode, cooldown
        self.best = inf if mode == "min" else -inf
        self.cooldown_counter = self.num_bad_epochs = self.last_epoch = 0
        self._last_lr = self._rates()

    def _least_rates(self, min_lr: float | Sequence[float]) -> list[float]:
        groups = self.optimizer.param_groups
        least = list(min_lr) if isinstance(min_lr, Sequence) else [min_lr] * len(groups)
        if len(least) != len(groups):
            raise ValueError(
                f"`ReduceLROnPlateau`: `min_lr` has {len(least)} rates for {len(groups)} "
                "parameter groups"
            )
        return least

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


def _checked(optimizer: Any, name: str) -> Optimizer:
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"`{name}` takes an optimizer, got {type(optimizer).__name__}")
    return optimizer


def __getattr__(name: str) -> Any:
    raise missing("module 'tapegrad.optim.lr_scheduler'", name, __all__)

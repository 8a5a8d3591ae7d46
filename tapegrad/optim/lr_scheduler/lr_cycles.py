"""Schedulers whose rates rise and fall, step by step, while momentum does the contrary."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from math import cos, pi
from typing import Any

from tapegrad.optim.lr_scheduler.base import LRScheduler, checked, for_each_group
from tapegrad.optim.optimizer import Group, Optimizer

__all__ = ["CyclicLR", "OneCycleLR"]


class OneCycleLR(LRScheduler):
    """The rate rises from `max_lr / div_factor` to `max_lr`, and falls; momentum does the contrary.

    Its steps are those of the optimizer, not epochs.

    Parameters
    ----------
    optimizer : whose rates are changed.
    max_lr : the greatest rate, one for all groups or one for each.
    total_steps : how many steps there will be, or
    epochs, steps_per_epoch : whose product that is.
    pct_start : the share of steps in which the rate rises.
    anneal_strategy : "cos" or "linear", how it goes from one rate to the next.
    cycle_momentum : whether `momentum`, or the first of `betas`, changes too.
    base_momentum, max_momentum : between which it does, for all groups or for each.
    div_factor : the greatest rate by the first one.
    final_div_factor : the first rate by the last one.
    three_phase : whether the rate falls back to the first one as slowly as it rose.
    last_epoch : the last step that was done, where training goes on; else -1.

    >>> import tapegrad as tg
    >>> optimizer = tg.optim.SGD([tg.zeros(1, requires_grad=True)], lr=1.0, momentum=0.9)
    >>> scheduler = tg.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.5, total_steps=10)
    >>> rates = scheduler.get_last_lr()
    >>> for _ in range(9):
    ...     scheduler.step()
    ...     rates += scheduler.get_last_lr()
    >>> [round(lr, 3) for lr in rates[:4]], round(rates[-1], 6)
    ([0.02, 0.26, 0.5, 0.475], 2e-06)
    """

    def __init__(
        self, optimizer: Optimizer, max_lr: float | Sequence[float],
        total_steps: int | None = None, epochs: int | None = None,
        steps_per_epoch: int | None = None, pct_start: float = 0.3, anneal_strategy: str = "cos",
        cycle_momentum: bool = True, base_momentum: float | Sequence[float] = 0.85,
        max_momentum: float | Sequence[float] = 0.95, div_factor: float = 25.0,
        final_div_factor: float = 1e4, three_phase: bool = False, last_epoch: int = -1,
    ) -> None:  # fmt: skip
        self.optimizer = checked(optimizer, "OneCycleLR")
        steps: Any = total_steps
        if steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ValueError(
                    "`OneCycleLR`: give `total_steps`, or both `epochs` and `steps_per_epoch`"
                )
            steps = epochs * steps_per_epoch
        if not isinstance(steps, int) or steps < 1:
            raise ValueError(f"`OneCycleLR`: the steps are a positive integer, got {steps}")
        if not 0 <= pct_start <= 1:
            raise ValueError(f"`OneCycleLR`: `pct_start` must be from 0 to 1, got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"`OneCycleLR`: `anneal_strategy` is 'cos' or 'linear', got {anneal_strategy!r}"
            )
        self.total_steps, self.anneal_strategy = steps, anneal_strategy
        # Where phases end, and from which to which of a group's rates they go.
        rise = pct_start * steps
        self.phases: list[list[Any]] = [[rise - 1, "initial_lr", "max_lr"]]
        if three_phase:
            self.phases += [[2 * rise - 2, "max_lr", "initial_lr"]]
        self.phases += [[steps - 1, self.phases[-1][2], "min_lr"]]
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            _check_momentum("OneCycleLR", optimizer)
        if last_epoch == -1:
            greatest = for_each_group(optimizer, max_lr, "OneCycleLR", "max_lr")
            for group, lr in zip(optimizer.param_groups, greatest):
                first = lr / div_factor
                group.update(max_lr=lr, initial_lr=first, min_lr=first / final_div_factor)
            if cycle_momentum:
                bounds = [
                    for_each_group(optimizer, value, "OneCycleLR", key)
                    for key, value in (
                        ("base_momentum", base_momentum), ("max_momentum", max_momentum),
                    )
                ]  # fmt: skip
                for group, least, most in zip(optimizer.param_groups, *bounds):
                    group.update(base_momentum=least, max_momentum=most)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates of the step; it sets the momentum, too."""
        if self.last_epoch > self.total_steps:
            raise ValueError(
                f"`OneCycleLR` was made for {self.total_steps} steps, this is {self.last_epoch}"
            )
        # The phase of this step, or the last one.
        k = bisect_left([end for end, *_ in self.phases[:-1]], self.last_epoch)
        end, before, after = self.phases[k]
        start = self.phases[k - 1][0] if k else 0.0
        share = (self.last_epoch - start) / (end - start) if end > start else 1.0
        groups = self.optimizer.param_groups
        if self.cycle_momentum:
            # It is least where the rate is greatest.
            first, last = (
                "base_momentum" if rate == "max_lr" else "max_momentum" for rate in (before, after)
            )
            for group in groups:
                _set_momentum(group, self._between(group[first], group[last], share))
        return [self._between(group[before], group[after], share) for group in groups]

    def _between(self, first: float, last: float, share: float) -> float:
        if self.anneal_strategy == "cos":
            return last + (first - last) / 2 * (1 + cos(pi * share))
        return first + (last - first) * share


_SCALES: dict[str, Callable[[float, float], float]] = {
    "triangular": lambda cycle, gamma: 1.0,
    "triangular2": lambda cycle, gamma: 1 / 2.0 ** (cycle - 1),
    "exp_range": lambda step, gamma: gamma**step,
}


class CyclicLR(LRScheduler):
    """The rate rises from `base_lr` to `max_lr` and falls again, along lines, over and over.

    Its steps are those of the optimizer, not epochs.

    Parameters
    ----------
    optimizer : whose rates are changed.
    base_lr, max_lr : between which the rate changes, for all groups or for each.
    step_size_up, step_size_down : in how many steps it rises, and falls; by default in as many.
    mode : "triangular", or how high later cycles are: "triangular2" halves them, "exp_range" makes
        them `gamma ** step` times as high.
    gamma : see `mode`.
    scale_fn : how high a cycle is, in place of `mode`: a function of
    scale_mode : "cycle", its number from 1 on, or "iterations", the step.
    cycle_momentum : whether `momentum`, or the first of `betas`, changes too.
    base_momentum, max_momentum : between which it does, for all groups or for each.
    last_epoch : the last step that was done, where training goes on; else -1.

    >>> import tapegrad as tg
    >>> optimizer = tg.optim.SGD([tg.zeros(1, requires_grad=True)], momentum=0.9)
    >>> scheduler = tg.optim.lr_scheduler.CyclicLR(optimizer, 1.0, 2.0, step_size_up=2)
    >>> rates = scheduler.get_last_lr()
    >>> for _ in range(4):
    ...     scheduler.step()
    ...     rates += scheduler.get_last_lr()
    >>> rates
    [1.0, 1.5, 2.0, 1.5, 1.0]
    """

    def __init__(
        self, optimizer: Optimizer, base_lr: float | Sequence[float],
        max_lr: float | Sequence[float], step_size_up: int = 2000,
        step_size_down: int | None = None, mode: str = "triangular", gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None, scale_mode: str = "cycle",
        cycle_momentum: bool = True, base_momentum: float | Sequence[float] = 0.8,
        max_momentum: float | Sequence[float] = 0.9, last_epoch: int = -1,
    ) -> None:  # fmt: skip
        self.optimizer = checked(optimizer, "CyclicLR")
        if scale_fn is None and mode not in _SCALES:
            raise ValueError(f"`CyclicLR`: `mode` is one of {list(_SCALES)}, got {mode!r}")
        if scale_mode not in ("cycle", "iterations"):
            raise ValueError(
                f"`CyclicLR`: `scale_mode` is 'cycle' or 'iterations', got {scale_mode!r}"
            )
        self.step_size_up = step_size_up
        self.step_size_down = step_size_up if step_size_down is None else step_size_down
        self.mode, self.gamma, self.scale_fn = mode, gamma, scale_fn
        by_step = mode == "exp_range" if scale_fn is None else scale_mode == "iterations"
        self.scale_mode = "iterations" if by_step else "cycle"
        least = for_each_group(optimizer, base_lr, "CyclicLR", "base_lr")
        self.max_lrs = for_each_group(optimizer, max_lr, "CyclicLR", "max_lr")
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            _check_momentum("CyclicLR", optimizer)
            self.base_momentums, self.max_momentums = (
                for_each_group(optimizer, value, "CyclicLR", key)
                for key, value in (
                    ("base_momentum", base_momentum), ("max_momentum", max_momentum),
                )
            )  # fmt: skip
        if last_epoch == -1:
            for group, lr in zip(optimizer.param_groups, least):
                group["lr"] = lr
        super().__init__(optimizer, last_epoch)
        self.base_lrs = least
        self._set(self.get_lr())

    def get_lr(self) -> list[float]:
        """The rates of the step; it sets the momentum, too."""
        whole = self.step_size_up + self.step_size_down
        before, step = divmod(self.last_epoch, whole)
        rising = step <= self.step_size_up
        share = step / self.step_size_up if rising else (whole - step) / self.step_size_down
        number = self.last_epoch if self.scale_mode == "iterations" else before + 1
        if self.scale_fn is None:
            share *= _SCALES[self.mode](number, self.gamma)
        else:
            share *= self.scale_fn(number)
        if self.cycle_momentum:
            bounds = zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums)
            for group, low, high in bounds:
                _set_momentum(group, high - (high - low) * share)
        return [low + (high - low) * share for low, high in zip(self.base_lrs, self.max_lrs)]

    def state_dict(self) -> dict[str, Any]:
        """What `load_state_dict` needs to go on; a function of the caller's is not part of it.

        >>> import tapegrad as tg
        >>> optimizer = tg.optim.SGD([tg.zeros(1, requires_grad=True)], momentum=0.9)
        >>> tg.optim.lr_scheduler.CyclicLR(optimizer, 1.0, 2.0).state_dict()["max_lrs"]
        [2.0]
        """
        return {key: value for key, value in super().state_dict().items() if key != "scale_fn"}


def _check_momentum(name: str, optimizer: Optimizer) -> None:
    if optimizer.defaults.keys().isdisjoint(("momentum", "betas")):
        raise ValueError(
            f"`{name}`: `{type(optimizer).__name__}` has no momentum: give `cycle_momentum=False`"
        )


def _set_momentum(group: Group, momentum: float) -> None:
    if "betas" in group:
        group["betas"] = (momentum, *group["betas"][1:])
    else:
        group["momentum"] = momentum

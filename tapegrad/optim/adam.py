"""`Adam`: steps scaled by moving averages of the gradient and of its square."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.optim.optimizer import (
    Group,
    Optimizer,
    Params,
    cache_blocks,
    option,
    refuse_differentiable,
)

__all__ = ["Adam"]


class Adam(Optimizer):
    """Steps along the mean gradient, in each element over the root of its mean square.

    Parameters
    ----------
    params : the leaves to optimize, or parameter groups.
    lr : the learning rate.
    betas : how much of both averages stays at each step: of the gradient, of its square.
    eps : what is added to the root.
    weight_decay : `weight_decay * p` is added to the gradient of `p`.
    amsgrad : whether to divide by the greatest average so far, in place of the last.
    maximize : whether to ascend.
    decoupled_weight_decay : whether to shrink the parameters instead of adding to gradients.
    foreach, capturable, fused : PyTorch's ways to compute the same; ignored.

    >>> import tapegrad as tg
    >>> w = tg.tensor([4.0, -2.0], requires_grad=True)
    >>> optimizer = tg.optim.Adam([w], lr=0.1)
    >>> for _ in range(300):
    ...     optimizer.zero_grad()
    ...     ((w - 1) ** 2).sum().backward()
    ...     optimizer.step()
    >>> w
    tensor([1.0000, 1.0000], requires_grad=True)
    """

    def __init__(
        self, params: Params, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8, weight_decay: float = 0, amsgrad: bool = False, *,
        foreach: bool | None = None, maximize: bool = False, capturable: bool = False,
        differentiable: bool = False, fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:  # fmt: skip
        refuse_differentiable(type(self).__name__, differentiable)
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "amsgrad": amsgrad, "maximize": maximize,
            "decoupled_weight_decay": decoupled_weight_decay,
        })  # fmt: skip

    def _check_options(self, options: Group) -> None:
        name = type(self).__name__
        for key in ("lr", "eps", "weight_decay"):
            option(name, options, key, 0)
        betas = options["betas"]
        if not isinstance(betas, (tuple, list)) or len(betas) != 2:
            raise ValueError(f"`{name}`: `betas` is a pair of numbers, got {betas!r}")
        pair = {f"betas[{k}]": beta for k, beta in enumerate(betas)}
        for key in pair:
            option(name, pair, key, 0, 1)
        options["betas"] = tuple(pair.values())

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters by their gradients.

        `closure`, if given, computes the loss and the gradients first; its loss is returned.

        >>> import tapegrad as tg
        >>> w = tg.tensor(3.0, requires_grad=True)
        >>> optimizer = tg.optim.Adam([w], lr=0.25)
        >>> (w * w).backward()
        >>> optimizer.step()
        >>> w
        tensor(2.7500, requires_grad=True)
        """
        return self._stepped(closure, _update)


def _update(param: np.ndarray, gradient: np.ndarray, group: Group, state: dict[str, Any]) -> None:
    beta1, beta2 = group["betas"]
    lr, eps, decay = float(group["lr"]), group["eps"], group["weight_decay"]
    amsgrad, maximize, decoupled = (
        group["amsgrad"], group["maximize"], group["decoupled_weight_decay"],
    )  # fmt: skip
    if not state:
        state["step"] = 0
        state["exp_avg"] = np.zeros_like(param, order="C")
        state["exp_avg_sq"] = np.zeros_like(param, order="C")
    if amsgrad and "max_exp_avg_sq" not in state:
        state["max_exp_avg_sq"] = np.zeros_like(param, order="C")
    step = state["step"] = state["step"] + 1
    # Averages that begin with zero are too small by these factors.
    size, root = lr / (1 - beta1**step), (1 - beta2**step) ** 0.5
    averages = [state["exp_avg"], state["exp_avg_sq"]]
    averages += [state["max_exp_avg_sq"]] if amsgrad else []
    for p, g, mean, square, *greatest, scratch in cache_blocks(param, gradient, *averages):
        if maximize:
            g = -g
        if decoupled:
            p *= 1 - lr * decay
        elif decay:
            g = g + decay * p
        np.subtract(g, mean, out=scratch)
        scratch *= 1 - beta1
        mean += scratch
        np.multiply(g, g, out=scratch)
        scratch *= 1 - beta2
        square *= beta2
        square += scratch
        if greatest:
            square = np.maximum(greatest[0], square, out=greatest[0])
        np.sqrt(square, out=scratch)
        scratch /= root
        scratch += eps
        np.divide(mean, scratch, out=scratch)
        scratch *= size
        p -= scratch

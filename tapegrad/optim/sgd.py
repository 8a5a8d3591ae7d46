"""`SGD`: descent along the gradient, with momentum."""

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

__all__ = ["SGD"]


class SGD(Optimizer):
    """Steps against the gradient, of length `lr`, with momentum.

    Parameters
    ----------
    params : the leaves to optimize, or parameter groups.
    lr : the learning rate.
    momentum : how much of the velocity stays at each step.
    dampening : by how much a gradient counts less in the velocity.
    weight_decay : `weight_decay * p` is added to the gradient of `p`.
    nesterov : whether to look ahead along the velocity.
    maximize : whether to ascend.
    foreach, fused : PyTorch's ways to compute the same; ignored.

    >>> import tapegrad as tg
    >>> w = tg.tensor([4.0, -2.0], requires_grad=True)
    >>> optimizer = tg.optim.SGD([w], lr=0.1, momentum=0.5)
    >>> for _ in range(40):
    ...     optimizer.zero_grad()
    ...     ((w - 1) ** 2).sum().backward()
    ...     optimizer.step()
    >>> w
    tensor([1.0000, 1.0000], requires_grad=True)
    """

    def __init__(
        self, params: Params, lr: float = 1e-3, momentum: float = 0, dampening: float = 0,
        weight_decay: float = 0, nesterov: bool = False, *, maximize: bool = False,
        foreach: bool | None = None, differentiable: bool = False, fused: bool | None = None,
    ) -> None:  # fmt: skip
        refuse_differentiable("SGD", differentiable)
        super().__init__(params, {
            "lr": lr, "momentum": momentum, "dampening": dampening,
            "weight_decay": weight_decay, "nesterov": nesterov, "maximize": maximize,
        })  # fmt: skip

    def _check_options(self, options: Group) -> None:
        for key in ("lr", "momentum", "weight_decay"):
            option("SGD", options, key, 0)
        option("SGD", options, "dampening", -np.inf)
        if options["nesterov"] and (not options["momentum"] or options["dampening"]):
            raise ValueError("`SGD`: `nesterov` needs a `momentum` and no `dampening`")

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
        return self._stepped(closure, _update)


def _update(param: np.ndarray, gradient: np.ndarray, group: Group, state: dict[str, Any]) -> None:
    lr, momentum, kept = float(group["lr"]), group["momentum"], 1 - group["dampening"]
    if not momentum:
        for p, g, scratch in cache_blocks(param, gradient):
            p -= np.multiply(_descent(p, g, group, scratch), lr, out=scratch)
        return
    velocity = state.get("momentum_buffer")
    first = velocity is None
    if velocity is None:
        velocity = state["momentum_buffer"] = np.empty_like(param, order="C")
    for p, g, v, scratch in cache_blocks(param, gradient, velocity):
        slope = _descent(p, g, group, scratch)
        if first:
            v[...] = slope
        else:
            v *= momentum
            v += slope if kept == 1 else kept * slope
        step = slope + momentum * v if group["nesterov"] else v
        p -= np.multiply(step, lr, out=scratch)


def _descent(p: np.ndarray, g: np.ndarray, group: Group, scratch: np.ndarray) -> np.ndarray:
    """The gradient of what is to become small, with the decay of the parameter."""
    if not group["weight_decay"]:
        return np.negative(g, out=scratch) if group["maximize"] else g
    np.multiply(p, group["weight_decay"], out=scratch)
    if group["maximize"]:
        scratch -= g
    else:
        scratch += g
    return scratch

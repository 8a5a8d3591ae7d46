"""`Muon`: steps along a momentum whose singular values are made about 1."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapegrad.optim.optimizer import Given, Group, Optimizer, Params
from tapegrad.tensor import Tensor

__all__ = ["Muon"]

_SHAPED = (None, "original", "match_rms_adamw")


class Muon(Optimizer):
    """Steps along the momentum of matrices, orthogonalized by Newton and Schulz's iteration.

    It is computed in the type of the parameters, where PyTorch rounds to bfloat16.

    Parameters
    ----------
    params : the leaves to optimize, which are matrices, or parameter groups.
    lr : the learning rate.
    weight_decay : what parameters shrink by in each step, times `lr`.
    momentum : how much of the mean gradient stays at each step.
    nesterov : whether the gradient counts once more in the step.
    ns_coefficients : of x, x cubed and x to the fifth in the iteration on singular values.
    eps : the least norm that a momentum is divided by.
    ns_steps : how many iterations.
    adjust_lr_fn : how `lr` depends on the shape: "original", as without it, or "match_rms_adamw".

    >>> import tapegrad as tg
    >>> w = tg.zeros(2, 2, requires_grad=True)
    >>> optimizer = tg.optim.Muon([w], lr=1.0)
    >>> w.grad = tg.tensor([[30.0, 0.0], [0.0, 10.0]])
    >>> optimizer.step()
    >>> w.detach().diagonal()
    tensor([-0.7530, -1.1337])
    """

    _not_negative = "lr", "weight_decay", "momentum", "eps"

    def __init__(
        self, params: Params, lr: float = 1e-3, weight_decay: float = 0.1, momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315), eps: float = 1e-7,
        ns_steps: int = 5, adjust_lr_fn: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(params, {
            "lr": lr, "weight_decay": weight_decay, "momentum": momentum, "nesterov": nesterov,
            "ns_coefficients": ns_coefficients, "eps": eps, "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        })  # fmt: skip

    def _check_options(self, options: Group) -> None:
        super()._check_options(options)
        if options["adjust_lr_fn"] not in _SHAPED or len(options["ns_coefficients"]) != 3:
            raise ValueError(
                "`Muon`: `adjust_lr_fn` is 'original' or 'match_rms_adamw', and there are three "
                f"`ns_coefficients`; got {options['adjust_lr_fn']!r}, {options['ns_coefficients']}"
            )

    def _listed(self, params: Any) -> list[Tensor]:
        listed = super()._listed(params)
        for p in listed:
            if p._a.ndim != 2 or p._a.dtype.kind == "c":
                raise ValueError(
                    "`Muon`: parameters are matrices of real numbers, got one of shape "
                    f"{p._a.shape} and {p.dtype}: give others to `AdamW`, say"
                )
        return listed

    def _update(self, group: Group, given: list[Given]) -> None:
        lr, keep = float(group["lr"]), group["momentum"]
        for param, gradient, state in given:
            if not state:
                state["momentum_buffer"] = np.zeros_like(param, order="C")
            mean = state["momentum_buffer"]
            mean += (gradient - mean) * (1 - keep)
            update = gradient + (mean - gradient) * keep if group["nesterov"] else mean
            param *= 1 - lr * group["weight_decay"]
            m, n = param.shape
            like_adam = group["adjust_lr_fn"] == "match_rms_adamw"
            size = 0.2 * math.sqrt(max(m, n)) if like_adam else math.sqrt(max(1.0, m / n))
            param -= _orthogonalized(update, group) * (lr * size)


def _orthogonalized(x: np.ndarray, group: Group) -> np.ndarray:
    """A matrix of the same singular vectors, whose singular values are about 1."""
    a, b, c = group["ns_coefficients"]
    tall = x.shape[0] > x.shape[1]
    y: np.ndarray = x.T if tall else x
    y = y / max(float(np.linalg.norm(y)), group["eps"])
    for _ in range(group["ns_steps"]):
        gram = y @ y.T
        y = a * y + (b * gram + c * gram @ gram) @ y
    return y.T if tall else y

"""`AdamW`: Adam that shrinks parameters instead of adding weight decay to gradients."""

from __future__ import annotations

from tapegrad.optim.adam import Adam
from tapegrad.optim.optimizer import Params

__all__ = ["AdamW"]


class AdamW(Adam):
    """`Adam` where `weight_decay` shrinks the parameters, by `lr * weight_decay` of them a step.

    Its arguments are those of `Adam`, with another default of `weight_decay`.

    >>> import tapegrad as tg
    >>> w = tg.tensor([4.0, -2.0], requires_grad=True)
    >>> optimizer = tg.optim.AdamW([w], lr=0.5, weight_decay=0.1)
    >>> (0 * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([ 3.8000, -1.9000], requires_grad=True)
    """

    def __init__(
        self, params: Params, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8, weight_decay: float = 1e-2, amsgrad: bool = False, *,
        maximize: bool = False, foreach: bool | None = None, capturable: bool = False,
        differentiable: bool = False, fused: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize,
            differentiable=differentiable, decoupled_weight_decay=True,
        )  # fmt: skip

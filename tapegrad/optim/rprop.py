"""`Rprop`: steps of a length of their own for each element, which look at signs alone."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tapegrad.ops.elementwise import clamp, gt, lt, sign, where
from tapegrad.optim.fused_optimizer import FusedOptimizer, WorkOf, begin
from tapegrad.optim.fused_update import FusedUpdate, Work
from tapegrad.optim.optimizer import Group, Params

__all__ = ["Rprop"]


class _Numbers(NamedTuple):
    """The numbers of an update; a symbol of each stands in the loop."""

    less: Any
    more: Any
    least: Any
    most: Any


def _rule(
    form: tuple[bool], numbers: _Numbers, p: Any, g: Any, last: Any, length: Any
) -> tuple[Any, ...]:
    """New elements of the parameter, of the gradient that is compared with, and of lengths."""
    if form[0]:  # uphill
        g = -g
    same = g * last
    shorter = where(lt(same, 0.0), length * numbers.less, length)
    length = where(gt(same, 0.0), length * numbers.more, shorter)
    length = clamp(length, numbers.least, numbers.most)
    g = where(lt(same, 0.0), 0.0, g)  # no step where the sign has changed, nor a comparison with it
    p -= sign(g) * length
    return p, g, length


class Rprop(FusedOptimizer):
    """Steps that grow while the sign of the gradient stays, and shrink where it changes.

    For gradients of all data, not of batches.

    Parameters
    ----------
    params : the leaves to optimize, or parameter groups.
    lr : the length of the first step, in each element.
    etas : what a length is multiplied by where the sign has changed, and where it has not.
    step_sizes : the bounds of lengths.
    maximize : whether to ascend.
    foreach, capturable : PyTorch's ways to compute the same; ignored.

    >>> import tapegrad as tg
    >>> w = tg.tensor([4.0, -2.0], requires_grad=True)
    >>> optimizer = tg.optim.Rprop([w], lr=0.5)
    >>> for _ in range(2):
    ...     w.grad = tg.tensor([1.0, -2.0])
    ...     optimizer.step()
    >>> w  # by 0.5, and by 0.6
    tensor([ 2.9000, -0.9000], requires_grad=True)
    """

    _fused = FusedUpdate(_rule, _Numbers)
    _not_negative = ("lr",)

    def __init__(
        self, params: Params, lr: float = 1e-2, etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50), *, capturable: bool = False,
        foreach: bool | None = None, maximize: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, {
            "lr": lr, "etas": etas, "step_sizes": step_sizes, "maximize": maximize,
        }, differentiable)  # fmt: skip

    def _check_options(self, options: Group) -> None:
        super()._check_options(options)
        less, more = options["etas"]
        if not 0 < less < 1 < more:
            raise ValueError(f"`Rprop`: `etas` are below and above 1, got {options['etas']}")

    def _plan(self, group: Group) -> tuple[tuple[bool], WorkOf]:
        numbers = _Numbers(*map(float, (*group["etas"], *group["step_sizes"])))

        def work_of(param: np.ndarray, gradient: np.ndarray, state: dict[str, Any]) -> Work:
            if not state:
                begin(state, param, "prev")
                each = complex(1, 1) if param.dtype.kind == "c" else 1
                state["step_size"] = np.full_like(param, each * group["lr"], order="C")
            state["step"] += 1
            return numbers, [param, gradient, state["prev"], state["step_size"]]

        return (bool(group["maximize"]),), work_of

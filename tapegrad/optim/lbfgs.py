"""`LBFGS`: quasi-Newton steps from the last changes of the gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.autograd.grad_mode import no_grad
from tapegrad.dispatch.inplace import changed
from tapegrad.optim.optimizer import Group, Optimizer, Params
from tapegrad.optim.strong_wolfe import Trial, strong_wolfe
from tapegrad.tensor import Tensor

__all__ = ["LBFGS"]

LEAST_CURVATURE = 1e-10  # of a pair that is kept


class LBFGS(Optimizer):
    """Limited-memory BFGS; a step makes up to `max_iter` iterations and needs a closure.

    Parameters
    ----------
    params : the leaves to optimize, or one parameter group: there can be no second.
    lr : the length of steps, or with a line search where it begins.
    max_iter : the iterations of a step.
    max_eval : the evaluations of the closure in a step; 5/4 of `max_iter` if it is None.
    tolerance_grad : the step ends when no element of the gradient is greater.
    tolerance_change : the step ends when the loss, or no parameter, changes by more.
    history_size : how many changes of the gradient are kept.
    line_search_fn : "strong_wolfe" or None.

    >>> import tapegrad as tg
    >>> w = tg.tensor([-1.0, 2.0], requires_grad=True)
    >>> optimizer = tg.optim.LBFGS([w], max_iter=50, line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = (1 - w[0]) ** 2 + 100 * (w[1] - w[0] ** 2) ** 2
    ...     loss.backward()
    ...     return loss
    >>> loss = optimizer.step(closure)
    >>> w
    tensor([1.0000, 1.0000], requires_grad=True)
    """

    _not_negative = "lr", "tolerance_grad", "tolerance_change"

    def __init__(
        self, params: Params, lr: float = 1, max_iter: int = 20, max_eval: int | None = None,
        tolerance_grad: float = 1e-7, tolerance_change: float = 1e-9, history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(params, {
            "lr": lr, "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change,
            "history_size": history_size, "line_search_fn": line_search_fn,
        })  # fmt: skip

    def add_param_group(self, param_group: Group) -> None:
        """Take the one group of parameters; a second is refused.

        >>> import tapegrad as tg
        >>> optimizer = tg.optim.LBFGS([tg.ones(2, requires_grad=True)])
        >>> optimizer.add_param_group({"params": tg.ones(1, requires_grad=True)})
        Traceback (most recent call last):
            ...
        ValueError: `LBFGS` has one parameter group for all: give all parameters as one list
        """
        if self.param_groups:
            raise ValueError(
                "`LBFGS` has one parameter group for all: give all parameters as one list"
            )
        super().add_param_group(param_group)

    def _check_options(self, options: Group) -> None:
        super()._check_options(options)
        if options["line_search_fn"] not in (None, "strong_wolfe"):
            raise ValueError(
                "`LBFGS`: `line_search_fn` is 'strong_wolfe' or None, got "
                f"{options['line_search_fn']!r}"
            )

    def _state_shape(self, p: Tensor, key: str) -> tuple[int, ...]:
        return (sum(_real_size(p._a) for p in self._parameters()),)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Make up to `max_iter` iterations; the loss before them is returned.

        >>> import tapegrad as tg
        >>> w = tg.tensor(3.0, requires_grad=True)
        >>> optimizer = tg.optim.LBFGS([w], lr=0.5)
        >>> def closure():
        ...     optimizer.zero_grad()
        ...     loss = w * w
        ...     loss.backward()
        ...     return loss
        >>> float(optimizer.step(closure).detach())
        9.0
        """
        if closure is None:
            raise TypeError(
                "`LBFGS.step` needs a closure that clears the gradients, computes the loss and its "
                "gradients, and returns the loss"
            )
        group = self.param_groups[0]
        state = self.state[group["params"][0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        loss = self._evaluated(closure)
        value, gradient = _number(loss), self._gradient()
        state["func_evals"] += 1
        if np.abs(gradient).max(initial=0.0) <= group["tolerance_grad"]:
            return loss

        evaluations = 1
        for iteration in range(1, group["max_iter"] + 1):
            _take_note(state, gradient, group["history_size"])
            direction, step = state["d"], float(group["lr"])
            if state["n_iter"] == 1:
                step *= min(1.0, 1.0 / float(np.abs(gradient).sum()))
            state["t"] = step
            before, state["prev_loss"] = value, value
            slope = gradient @ direction
            if slope > -group["tolerance_change"]:
                break
            last = iteration == group["max_iter"]
            here = Trial(0.0, value, gradient, slope)
            if group["line_search_fn"] is not None:
                here, made = self._searched(closure, here, step, group["max_eval"] - evaluations)
                step = state["t"] = here.step
            else:
                made = 0 if last else 1
                self._move(step)
                if not last:
                    here = Trial(step, _number(self._evaluated(closure)), self._gradient(), slope)
            value, gradient = here.value, here.gradient
            evaluations += made
            state["func_evals"] += made
            if (
                last
                or evaluations >= group["max_eval"]
                or np.abs(gradient).max() <= group["tolerance_grad"]
                or np.abs(direction).max() * step <= group["tolerance_change"]
                or abs(value - before) < group["tolerance_change"]
            ):
                break
        return loss

    def _searched(
        self, closure: Callable[[], Any], start: Trial, first: float, limit: int
    ) -> tuple[Trial, int]:
        """Search along the direction; the parameters are moved to where the search ends."""
        group = self.param_groups[0]
        direction = self.state[group["params"][0]]["d"]
        origin = [p._a.copy() for p in group["params"]]

        def back() -> None:
            for p, values in zip(group["params"], origin):
                changed(p)
                p._a[...] = values

        def evaluate(step: float) -> Trial:
            self._move(step)
            value, gradient = _number(self._evaluated(closure)), self._gradient()
            back()
            return Trial(step, value, gradient, np.float64(gradient @ direction))

        found, made = strong_wolfe(
            evaluate, start, first, longest=float(np.abs(direction).max()),
            tolerance=group["tolerance_change"], limit=limit,
        )  # fmt: skip
        self._move(found.step)
        return found, made

    def _gradient(self) -> np.ndarray:
        """All gradients as one real vector; zeros where a parameter has none."""
        known = {p: g for _, gathered in self._gathered() for p, g in gathered}
        pieces = []
        for p in self.param_groups[0]["params"]:
            piece = np.ravel(known[p] if p in known else np.zeros_like(p._a))
            pieces.append(piece.view(piece.real.dtype))
        return np.concatenate(pieces)

    def _move(self, step: float) -> None:
        """Move the parameters along the direction."""
        params = self.param_groups[0]["params"]
        direction, start = self.state[params[0]]["d"], 0
        for p in params:
            end = start + _real_size(p._a)
            piece = (step * direction[start:end]).astype(p._a.real.dtype, copy=False)
            changed(p)
            p._a += piece.view(p._a.dtype).reshape(p._a.shape)
            start = end


def _take_note(state: dict[str, Any], gradient: np.ndarray, history_size: int) -> None:
    """Make the next direction, from the change of the gradient over the last step.

    `old_dirs` has changes y of the gradient, `old_stps` the steps s that made them, and `ro` 1 over
    their products; the names are those of PyTorch's state.
    """
    state["n_iter"] += 1
    if state["n_iter"] == 1:
        state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1.0)
    else:
        y, s = gradient - state["prev_flat_grad"], state["d"] * state["t"]
        curvature = float(y @ s)
        if curvature > LEAST_CURVATURE:
            for key, entry in (("old_dirs", y), ("old_stps", s), ("ro", 1 / curvature)):
                state[key].append(entry)
                del state[key][: max(0, len(state[key]) - history_size)]
            state["H_diag"] = curvature / float(y @ y)
    state["d"] = _direction(gradient, state)
    state["prev_flat_grad"] = gradient


def _direction(gradient: np.ndarray, state: dict[str, Any]) -> np.ndarray:
    """Minus the approximate inverse Hessian times the gradient, by the two-loop recursion."""
    pairs = list(zip(state["old_dirs"], state["old_stps"], state["ro"]))
    found = -gradient
    shares = []
    for y, s, ro in reversed(pairs):
        shares.append(float(s @ found) * ro)
        found -= shares[-1] * y
    found *= state["H_diag"]
    for (y, s, ro), share in zip(pairs, reversed(shares)):
        found += (share - float(y @ found) * ro) * s
    return found


def _real_size(a: np.ndarray) -> int:
    """The real numbers in an array."""
    return a.size * (2 if a.dtype.kind == "c" else 1)


@no_grad()
def _number(loss: Any) -> float:
    return float(loss)

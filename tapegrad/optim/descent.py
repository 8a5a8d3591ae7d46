"""What the rules of optimizers begin with: the direction of steps, and the decay of weights."""

from __future__ import annotations

from typing import Any, NamedTuple


class Descent(NamedTuple):
    """What decides which operations that takes."""

    maximize: bool
    decays: bool
    decoupled: bool  # from the gradient

    @classmethod
    def of(cls, group: dict[str, Any]) -> Descent:
        """That of a parameter group."""
        decoupled = bool(group.get("decoupled_weight_decay"))
        return cls(bool(group["maximize"]), group["weight_decay"] != 0, decoupled)

    def decayed(self, numbers: Any, p: Any, g: Any) -> tuple[Any, Any]:
        """The parameter and its gradient; `numbers` has the decay, and what is left without it."""
        if self.maximize:
            g = -g
        if self.decoupled:
            p *= numbers.shrink
        elif self.decays:
            g = g + p * numbers.decay
        return p, g

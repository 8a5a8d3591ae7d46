"""PyTorch, operation by operation, with `torch.func`: its own tensors in and out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.sides.side import scan
from bench.torch_names import TorchNames


class Names(TorchNames):
    """What is used beyond the names that NumPy and PyTorch share."""

    def __init__(self, torch: Any) -> None:
        super().__init__(torch)
        self.softplus, self.erf = torch.nn.functional.softplus, torch.special.erf
        self.power = torch.pow
        self.scan = scan(torch.stack)

    def min(self, x: Any, axis: int) -> Any:
        """`np.min`; PyTorch's `min` returns the places too."""
        return self.torch.amin(x, axis)


class Torch:
    """PyTorch, eager."""

    most_scalars = float("inf")

    def __init__(self, name: str, module: Any) -> None:
        self.name, self.version, self.array = name, module.__version__, module.tensor
        self.set_threads = module.set_num_threads
        self.ad, self.xp = module.func, Names(module)

    def compile(self, f: Callable[..., Any]) -> Callable[..., Any]:
        return f

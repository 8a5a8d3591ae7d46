"""NumPy's names over PyTorch, for the functions that are written with NumPy's.

PyTorch takes `axis` and `keepdims` itself; only what the problems use and what differs is here.
"""

from __future__ import annotations

from typing import Any


class TorchNames:
    """The namespace: NumPy's function names, PyTorch's functions."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.linalg = torch.linalg

    def max(self, x: Any, axis: int, keepdims: bool = False) -> Any:
        """`np.max`; PyTorch's `max` returns the places too."""
        return self.torch.amax(x, axis, keepdim=keepdims)

    def __getattr__(self, name: str) -> Any:
        # Kept on the object: a name is looked up like a module's from the second time on.
        found = getattr(self.torch, name)
        setattr(self, name, found)
        return found

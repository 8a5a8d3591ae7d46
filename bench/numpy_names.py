"""PyTorch's names over a NumPy-like module, for the libraries that have NumPy's.

Only what the problems use is here. A name that is missing is one that the library answers
"unsupported" to.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from bench.problem import Unsupported

# torch name -> NumPy name, where the call is the same.
SAME = {
    "exp": "exp", "log": "log", "log1p": "log1p", "expm1": "expm1", "sqrt": "sqrt",
    "sin": "sin", "cos": "cos", "tan": "tan", "asin": "arcsin", "acos": "arccos",
    "atan": "arctan", "atan2": "arctan2", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh",
    "abs": "abs", "minimum": "minimum", "maximum": "maximum", "where": "where",
    "matmul": "matmul", "mm": "matmul", "mv": "matmul", "dot": "dot", "outer": "outer",
    "reshape": "reshape", "permute": "transpose", "movedim": "moveaxis", "swapaxes": "swapaxes",
    "unsqueeze": "expand_dims", "squeeze": "squeeze", "broadcast_to": "broadcast_to",
    "flip": "flip", "tril": "tril", "triu": "triu", "diag": "diag", "lt": "less", "eq": "equal",
    "argmax": "argmax", "take": "take", "cat": "concatenate", "stack": "stack",
    "cumsum": "cumsum",
}  # fmt: skip


class NumpyNames:
    """The namespace: PyTorch's function names, NumPy's functions."""

    def __init__(self, np: Any, special: Any) -> None:
        def reduction(f: Callable[..., Any], **fixed: Any) -> Callable[..., Any]:
            return lambda x, dim=None, keepdim=False: f(x, axis=dim, keepdims=keepdim, **fixed)

        def log_softmax(x: Any, dim: int) -> Any:
            return x - special.logsumexp(x, axis=dim, keepdims=True)

        for torch_name, numpy_name in SAME.items():
            if hasattr(np, numpy_name):
                setattr(self, torch_name, getattr(np, numpy_name))
        self.sum = reduction(np.sum)
        self.mean = reduction(np.mean)
        self.prod = reduction(np.prod)
        self.var = reduction(np.var, ddof=1)
        self.std = reduction(np.std, ddof=1)
        self.amax = self.max = reduction(np.max)
        self.amin = self.min = reduction(np.min)
        self.logsumexp = reduction(special.logsumexp)
        self.norm = lambda x: np.sqrt(np.sum(x * x))
        self.log_softmax = log_softmax
        self.softmax = lambda x, dim: np.exp(log_softmax(x, dim))
        self.sigmoid = special.expit
        self.erf = special.erf
        self.relu = lambda x: np.maximum(x, 0.0)
        self.clamp = np.clip
        self.masked_fill = lambda x, mask, value: np.where(mask, value, x)
        self.index_select = lambda x, dim, index: np.take(x, index, axis=dim)
        self.transpose = np.swapaxes
        self.t = np.transpose
        self.addcmul = lambda x, a, b, value=1.0: x + value * a * b
        self.addcdiv = lambda x, a, b, value=1.0: x + value * a / b
        self.lerp = lambda a, b, weight: a + weight * (b - a)
        functional = SimpleNamespace(
            softplus=lambda x: np.logaddexp(x, 0.0), mse_loss=lambda a, b: np.mean((a - b) ** 2)
        )
        self.nn = SimpleNamespace(functional=functional)

    def __getattr__(self, name: str) -> Any:
        raise Unsupported(f"no {name} here")

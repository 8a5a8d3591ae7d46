"""PyTorch's autograd: `backward`, `grad`, `Function`, hooks, modes, checks.

`engine` checks the arguments of a sweep, `sweep` runs it, `pullback` is the reverse rule of a
record in Python, and the `_adjoints` modules are those of large arrays; `hvp` multiplies Hessians
with vectors.

`lift`, `transforms` and `compiler` import from here; this package imports `functions`, `native` and
the kernels.
"""

import importlib
from typing import TYPE_CHECKING, Any

from tapegrad.autograd import node_hooks, reachability_fallback
from tapegrad.autograd.anomaly import detect_anomaly, is_anomaly_enabled, set_detect_anomaly
from tapegrad.autograd.engine import backward, grad
from tapegrad.autograd.grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    no_grad,
    set_grad_enabled,
)
from tapegrad.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck
from tapegrad.autograd.tensor_hooks import (
    register_hook,
    register_post_accumulate_grad_hook,
    retain_grad,
    retains_grad,
)
from tapegrad.base.public_names import dir_of
from tapegrad.ops.graph_nodes import GradFn
from tapegrad.tape.tape import Tape
from tapegrad.tensor import Tensor

if TYPE_CHECKING:  # what `__getattr__` loads when it is first asked for
    from tapegrad.autograd import forward_ad, function, functional, graph
    from tapegrad.autograd.function import Function
    from tapegrad.autograd.variable import Variable

__all__ = [
    "Function",
    "GradcheckError",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "forward_ad",
    "function",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_anomaly_enabled",
    "is_grad_enabled",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
]
__dir__ = dir_of(globals())
_MODULES = ("forward_ad", "function", "functional", "graph")
_CLASSES = {"Function": "function", "Variable": "variable"}  # by their modules


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"tapegrad.autograd.{name}")
    if name in _CLASSES:
        module = importlib.import_module(f"tapegrad.autograd.{_CLASSES[name]}")
        found = globals()[name] = getattr(module, name)
        return found
    from tapegrad.base.missing_names import missing

    raise missing("module 'tapegrad.autograd'", name, __all__)


def _backward(
    self: Tensor,
    gradient: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Sweep the tape from here down; see `tapegrad.autograd.backward`."""
    if gradient is not None and not isinstance(gradient, Tensor):
        raise TypeError(
            f"`gradient` of `backward` is a Tensor or None, got {type(gradient).__name__}"
        )
    backward(self, gradient, retain_graph, create_graph, inputs=inputs)


def _not_deleted(self: Tensor) -> None:
    raise RuntimeError("this attribute of a Tensor cannot be deleted")


def install() -> None:
    """Attach what sweeps to Tensors, to their `grad_fn` and to tapes, which know nothing of it."""
    methods = {
        "backward": _backward, "register_hook": register_hook, "retain_grad": retain_grad,
        "register_post_accumulate_grad_hook": register_post_accumulate_grad_hook,
        "retains_grad": property(retains_grad),
    }  # fmt: skip
    for name in ("data", "requires_grad"):
        methods[name] = vars(Tensor)[name].deleter(_not_deleted)
    for name, method in methods.items():
        setattr(Tensor, name, method)
    for name, method in node_hooks.METHODS.items():
        setattr(GradFn, name, method)
    Tape.propagate = reachability_fallback.propagate  # until a workspace has been made

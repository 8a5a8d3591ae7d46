"""PyTorch, operation by operation or by `torch.compile`: its own tensors in and out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.sides.side import loop, scan
from bench.torch_names import TorchNames


class Names(TorchNames):
    """What is used beyond the names that NumPy and PyTorch share."""

    def __init__(self, torch: Any) -> None:
        super().__init__(torch)
        self.softplus, self.erf = torch.nn.functional.softplus, torch.special.erf
        self.power = torch.pow
        self.loop, self.scan = loop, scan(torch.stack)

    def min(self, x: Any, axis: int) -> Any:
        """`np.min`; PyTorch's `min` returns the places too."""
        return self.torch.amin(x, axis)


class Transforms:
    """Functions of functions on PyTorch's tape, which is faster than `torch.func` on small ones."""

    def __init__(self, torch: Any) -> None:
        self.backward, self.forward = torch.autograd.grad, torch.autograd.forward_ad
        self.jacfwd = torch.func.jacfwd  # over `vmap`, which the tape has no other form of

    def grad(self, f: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Any:
        """Return the gradient of a function in one or several arguments."""
        several = (argnums,) if isinstance(argnums, int) else argnums

        def gradient(*args: Any) -> Any:
            own = list(args)
            for i in several:
                if not own[i].requires_grad:  # one that carries a tangent does already
                    own[i] = own[i].detach().requires_grad_()
            wanted = [own[i] for i in several]
            found = self.backward(f(*own), wanted, materialize_grads=True)
            return found[0] if isinstance(argnums, int) else found

        return gradient

    def jvp(self, f: Callable[..., Any], primals: Any, tangents: Any) -> tuple[Any, Any]:
        """Return the value of a function, a gradient maybe, and its derivative in a direction."""
        with self.forward.dual_level():
            leaves = [x.detach().requires_grad_() for x in primals]
            duals = [self.forward.make_dual(x, t) for x, t in zip(leaves, tangents)]
            found = self.forward.unpack_dual(f(*duals))
            return found.primal.detach(), found.tangent.detach()


class Torch:
    """PyTorch, eager if not `compiled`."""

    most_scalars = float("inf")

    def __init__(self, name: str, module: Any) -> None:
        self.name, self.version, self.array = name, module.__version__, module.tensor
        self.set_threads, self.module = module.set_num_threads, module
        self.ad: Any = Transforms(module)
        self.xp = Names(module)
        self.compiler: Callable[..., Any] = lambda f: f

    def compile(self, f: Callable[..., Any]) -> Callable[..., Any]:
        return self.compiler(f)

    def compiled(self) -> Torch:
        """Return PyTorch with `torch.compile`, over the transforms that it can look into."""
        side = Torch("torch.compile", self.module)
        side.ad, side.compiler = self.module.func, self.module.compile
        return side

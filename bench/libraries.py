"""One adapter per library: each turns a problem into calls that can be checked and timed."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any, Protocol

import numpy as np

from bench.problem import Problem, Unsupported

Step = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one step computed, as NumPy arrays: enough to compare libraries by."""

    value: np.ndarray
    gradients: list[np.ndarray]
    inputs: list[np.ndarray]
    """The inputs after the step, which a problem with a rate has moved."""
    differences: bool = False
    """Whether the gradients are finite differences, and no better than such are."""


class Run(Protocol):
    """A problem made ready in one library."""

    forward: Step
    """Evaluate the function, recording it if that is how the library works; wait for the result."""
    step: Step
    """Evaluate, differentiate and, if the problem has a rate, update the inputs; wait."""

    def outcome(self) -> Outcome:
        """Do one step and return what it computed."""


class Library(Protocol):
    """What the benchmark needs of a library."""

    name: str
    version: str

    def set_threads(self, count: int) -> None:
        """Use this many threads."""

    def prepare(self, problem: Problem) -> Run:
        """Make a problem ready, or raise `Unsupported`."""


class Torch:
    """PyTorch, and tapegrad, which has the same face: nothing differs but the module."""

    def __init__(self, name: str, module: ModuleType) -> None:
        self.name, self.module, self.version = name, module, module.__version__

    def set_threads(self, count: int) -> None:
        self.module.set_num_threads(count)

    def prepare(self, problem: Problem) -> TorchRun:
        return TorchRun(self.module, problem)


class TorchRun:
    """A problem in PyTorch's terms: leaves, `backward` from the result, `grad` in the leaves."""

    def __init__(self, xp: Any, problem: Problem) -> None:
        self.xp, self.problem = xp, problem
        self.leaves = [xp.tensor(x, requires_grad=problem.gradient) for x in problem.inputs]
        self.data = [xp.tensor(x) for x in problem.data]
        self.forward = partial(problem.function, xp, self.leaves, self.data)
        self.weights: Any = None

    def step(self) -> Any:
        for x in self.leaves:
            x.grad = None
        y = self.forward()
        if y.ndim and self.weights is None:
            self.weights = self.xp.tensor(self.problem.weights(tuple(y.shape)), dtype=y.dtype)
        y.backward(self.weights)
        rate = self.problem.rate
        if rate is not None:
            with self.xp.no_grad():
                for x in self.leaves:
                    x -= rate * x.grad
        return y

    def outcome(self) -> Outcome:
        if not self.problem.gradient:
            return Outcome(self.forward().numpy(), [], [])
        value = self.step().detach().numpy().copy()
        gradients = [x.grad.numpy().copy() for x in self.leaves]
        return Outcome(value, gradients, [x.detach().numpy().copy() for x in self.leaves])


class Jax:
    """JAX without `jit`, operation by operation, as the other libraries work here."""

    def __init__(self, name: str, module: Any) -> None:
        from bench.numpy_names import NumpyNames

        module.config.update("jax_enable_x64", True)
        self.name, self.module, self.version = name, module, module.__version__
        special = importlib.import_module("jax.scipy.special")
        self.xp = NumpyNames(module.numpy, special)

    def set_threads(self, count: int) -> None:
        """Do nothing: the environment, set before the import, has decided."""

    def prepare(self, problem: Problem) -> FunctionRun:
        wait = self.module.block_until_ready
        return FunctionRun(self.xp, problem, self.module.numpy.asarray, self.module.vjp, wait)


class Autograd:
    """HIPS autograd."""

    def __init__(self, name: str, module: Any) -> None:
        from bench.numpy_names import NumpyNames

        special = importlib.import_module("autograd.scipy.special")
        self.xp = NumpyNames(importlib.import_module("autograd.numpy"), special)
        self.name, self.make_vjp = name, module.make_vjp
        self.version = importlib.import_module("importlib.metadata").version("autograd")

    def set_threads(self, count: int) -> None:
        """Do nothing: it computes on NumPy."""

    def prepare(self, problem: Problem) -> FunctionRun:
        def vjp(function: Callable[[Any], Any], inputs: Any) -> tuple[Any, Callable[[Any], Any]]:
            try:
                pull, y = self.make_vjp(function)(inputs)
            except NotImplementedError as error:
                raise Unsupported(str(error)) from error
            return y, lambda w: (pull(w),)

        return FunctionRun(self.xp, problem, np.asarray, vjp, lambda x: x)


class FunctionRun:
    """A problem for a library whose gradients are functions of functions."""

    def __init__(self, xp: Any, problem: Problem, array: Any, vjp: Any, wait: Any) -> None:
        if problem.methods:
            raise Unsupported("calls tensor methods")
        self.problem, self.array, self.vjp, self.wait = problem, array, vjp, wait
        self.inputs = [array(x) for x in problem.inputs]
        self.data = [array(x) for x in problem.data]
        self.function = lambda inputs: problem.function(xp, inputs, self.data)
        self.weights: Any = None

    def forward(self) -> Any:
        return self.wait(self.function(self.inputs))

    def step(self) -> Any:
        y, pull = self.vjp(self.function, self.inputs)
        if self.weights is None:
            self.weights = self.array(self.problem.weights(np.shape(y)))
        (grads,) = pull(self.weights)
        rate = self.problem.rate
        if rate is not None:
            self.inputs = [x - rate * g for x, g in zip(self.inputs, grads)]
        return self.wait((y, grads))

    def outcome(self) -> Outcome:
        if not self.problem.gradient:
            return Outcome(np.asarray(self.forward()), [], [])
        value, gradients = self.step()
        arrays = [np.asarray(g) for g in gradients]
        return Outcome(np.asarray(value), arrays, [np.asarray(x) for x in self.inputs])


Adapter = Callable[[str, ModuleType], Library]
ADAPTERS: dict[str, Adapter] = {"tapegrad": Torch, "torch": Torch, "jax": Jax, "autograd": Autograd}


def load(name: str, adapters: Mapping[str, Adapter] = ADAPTERS) -> Library | None:
    """Import a library; None if it is a peer that is not installed."""
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if name == "tapegrad" or error.name != name:
            raise
        return None
    return adapters[name](name, module)

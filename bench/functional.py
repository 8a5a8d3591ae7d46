"""The libraries by their transforms: functions of functions, over the arrays that each takes."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from bench.libraries import Adapter, Outcome, Step
from bench.problem import Problem, Unsupported

# An evaluation per element of the arguments: beyond this a gradient takes minutes.
MOST_DIFFERENCES = 1000


class Derivative:
    """A problem made ready: its function, and the transform of it, called on the same arrays."""

    def __init__(
        self, function: Any, derivative: Any, problem: Problem, array: Any, wait: Any = None
    ) -> None:
        inputs = [array(x) for x in problem.inputs]
        vector = [array(problem.vector())] if problem.transform == "hvp" else []
        self.forward: Step = partial(function, *inputs)
        self.step: Step = partial(derivative, *inputs, *vector)
        if wait is not None:
            forward, step = self.forward, self.step
            self.forward, self.step = lambda: wait(forward()), lambda: wait(step())
        self.differences = False

    def outcome(self) -> Outcome:
        """Return the value and the derivatives: one for each argument of a gradient."""
        found = self.step()
        found = [np.array(x) for x in (found if type(found) is tuple else (found,))]
        return Outcome(np.asarray(self.forward()), found, [], self.differences)


def written(xp: Any, problem: Problem, data: list[Any]) -> Callable[..., Any]:
    """Return a problem's function as the users of a transform write it: of its arguments alone."""
    function = problem.function
    if len(problem.inputs) == 1:
        return lambda x: function(xp, [x], data)
    return lambda *inputs: function(xp, list(inputs), data)


def arguments(problem: Problem) -> int | tuple[int, ...]:
    """Return which arguments to differentiate in: one, or all of several."""
    count = len(problem.inputs)
    return 0 if count == 1 else tuple(range(count))


def number_or_array(x: np.ndarray) -> Any:
    """Return what a user of NumPy has: numbers are no arrays without dimensions."""
    return x if x.ndim else float(x)


class Tapegrad:
    """tapegrad, with NumPy's own functions."""

    def __init__(self, name: str, module: Any) -> None:
        self.name, self.module, self.version = name, module, module.__version__

    def set_threads(self, count: int) -> None:
        self.module.set_num_threads(count)

    def prepare(self, problem: Problem) -> Derivative:
        f = written(np, problem, list(problem.data))
        transform = getattr(self.module, problem.transform)
        more = {} if problem.transform == "hvp" else {"argnums": arguments(problem)}
        return Derivative(f, transform(f, **more), problem, number_or_array)


class TorchFunc:
    """PyTorch's `torch.func`."""

    def __init__(self, name: str, module: Any) -> None:
        from bench.torch_names import TorchNames

        self.name, self.module, self.version = name, module, module.__version__
        self.xp = TorchNames(module)

    def set_threads(self, count: int) -> None:
        self.module.set_num_threads(count)

    def prepare(self, problem: Problem) -> Derivative:
        func = self.module.func
        f = written(self.xp, problem, [self.module.tensor(x) for x in problem.data])
        if problem.transform == "hvp":
            gradient = func.grad(f)
            derivative = lambda x, v: func.jvp(gradient, (x,), (v,))[1]
        else:
            derivative = getattr(func, problem.transform)(f, argnums=arguments(problem))
        return Derivative(f, derivative, problem, self.module.tensor)


class Jax:
    """JAX without `jit`, operation by operation, as the other libraries work here."""

    def __init__(self, name: str, module: Any) -> None:
        module.config.update("jax_enable_x64", True)
        self.name, self.module, self.version = name, module, module.__version__

    def set_threads(self, count: int) -> None:
        """Do nothing: the environment, set before the import, has decided."""

    def prepare(self, problem: Problem) -> Derivative:
        jax, array = self.module, self.module.numpy.asarray
        f = written(jax.numpy, problem, [array(x) for x in problem.data])
        if problem.transform == "hvp":
            gradient = jax.grad(f)
            derivative = lambda x, v: jax.jvp(gradient, (x,), (v,))[1]
        else:
            derivative = getattr(jax, problem.transform)(f, argnums=arguments(problem))
        return Derivative(f, derivative, problem, array, jax.block_until_ready)


class Autograd:
    """HIPS autograd."""

    def __init__(self, name: str, module: Any) -> None:
        self.name, self.module = name, module
        self.xp = importlib.import_module("autograd.numpy")
        self.version = importlib.import_module("importlib.metadata").version("autograd")

    def set_threads(self, count: int) -> None:
        """Do nothing: it computes on NumPy."""

    def prepare(self, problem: Problem) -> Derivative:
        f = written(self.xp, problem, list(problem.data))
        names = {"hvp": "hessian_vector_product"}
        transform = getattr(self.module, names.get(problem.transform, problem.transform))
        return Derivative(f, transform(f, arguments(problem)), problem, number_or_array)


class Scipy:
    """SciPy's finite differences: one evaluation more than there are arguments, and no tape."""

    def __init__(self, name: str, module: Any) -> None:
        self.name, self.version = name, module.__version__
        self.approx_fprime = importlib.import_module("scipy.optimize").approx_fprime

    def set_threads(self, count: int) -> None:
        """Do nothing: it computes on NumPy."""

    def prepare(self, problem: Problem) -> Derivative:
        sizes = [x.size for x in problem.inputs]
        if problem.transform != "grad" or sum(sizes) > MOST_DIFFERENCES:
            raise Unsupported("no such differences, or too many")
        f = written(np, problem, list(problem.data))
        shapes = [x.shape for x in problem.inputs]
        ends = np.cumsum(sizes)[:-1]

        def cut(flat: np.ndarray) -> list[np.ndarray]:
            return [x.reshape(s) for x, s in zip(np.split(flat, ends), shapes, strict=True)]

        def derivative(*inputs: np.ndarray) -> tuple[np.ndarray, ...]:
            point = np.concatenate([x.ravel() for x in inputs])
            one = len(inputs) == 1 and inputs[0].ndim == 1
            found = self.approx_fprime(point, f if one else lambda flat: f(*cut(flat)))
            return tuple(cut(found))

        run = Derivative(f, derivative, problem, np.asarray)
        run.differences = True
        return run


ADAPTERS: dict[str, Adapter] = {
    "tapegrad": Tapegrad,
    "torch": TorchFunc,
    "jax": Jax,
    "autograd": Autograd,
    "scipy": Scipy,
}

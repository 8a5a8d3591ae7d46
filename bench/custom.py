"""Functions with rules of the user's own: what a call costs with its gradient, in a chain of calls.

Each is the sine of a few doubles, with the derivative that the user writes in that form.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bench.check import Disagreement
from bench.libraries import Library
from bench.problem import SEED, Unsupported
from bench.report import Row, ratios_to, unsteady
from bench.timing import QUICK, Effort, Figure, interleave

LENGTH = 50  # calls in a chain
SIZE = 4
LIMITS = {"primitive": 8.0, "custom_vjp": 8.0, "custom_jvp": None, "Function": 12.0}

Gradient = Callable[[np.ndarray], Any]


def chained(f: Any, length: int) -> Callable[[Any], Any]:
    """Return the sum of what many calls, each of the last one's result, lead to."""

    def chain(x: Any) -> Any:
        for _ in range(length):
            x = f(x)
        return x.sum() if hasattr(x, "sum") else np.sum(x)

    return chain


def primitive(name: str, length: int) -> Gradient:
    """HIPS autograd's form."""
    home = {"autograd": "autograd", "tapegrad": "tapegrad.compat.autograd"}.get(name)
    if home is None:
        raise Unsupported(f"{name} has no such form")
    library, extend = importlib.import_module(home), importlib.import_module(home + ".extend")
    xp = importlib.import_module(home + ".numpy")
    sine = extend.primitive(lambda x: np.sin(x))
    extend.defvjp(sine, lambda ans, x: lambda g: g * np.cos(x))

    def total(x: Any) -> Any:
        for _ in range(length):
            x = sine(x)
        return xp.sum(x)

    gradient: Gradient = library.grad(total)
    return gradient


def custom_vjp(name: str, length: int) -> Gradient:
    """JAX's form for reverse mode, operation by operation."""
    xp, library = _names(name)
    sine = library.custom_vjp(lambda x: xp.sin(x))
    sine.defvjp(lambda x: (xp.sin(x), x), lambda x, g: (g * xp.cos(x),))
    gradient: Gradient = library.grad(chained(sine, length))
    return gradient


def custom_jvp(name: str, length: int) -> Gradient:
    """JAX's form for forward mode, swept in reverse."""
    xp, library = _names(name)
    sine = library.custom_jvp(lambda x: xp.sin(x))
    sine.defjvp(lambda primals, tangents: (xp.sin(primals[0]), tangents[0] * xp.cos(primals[0])))
    gradient: Gradient = library.grad(chained(sine, length))
    return gradient


def _names(name: str) -> tuple[Any, Any]:
    if name not in ("tapegrad", "jax"):
        raise Unsupported(f"{name} has no such form")
    library = importlib.import_module(name)
    return (library if name == "tapegrad" else importlib.import_module("jax.numpy")), library


def function(name: str, length: int) -> Gradient:
    """PyTorch's form."""
    if name not in ("tapegrad", "torch"):
        raise Unsupported(f"{name} has no such form")
    library = importlib.import_module(name)

    class Sine(library.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * x.cos()

    total = chained(Sine.apply, length)

    def gradient(x: np.ndarray) -> Any:
        leaf = library.tensor(x, requires_grad=True)
        total(leaf).backward()
        return leaf.grad

    return gradient


FORMS = {
    "primitive": primitive,
    "custom_vjp": custom_vjp,
    "custom_jvp": custom_jvp,
    "Function": function,
}
PEERS = ("autograd", "torch", "jax")


def custom(libraries: list[Library], threads: int, quick: bool) -> Iterator[Row]:
    """Time a call in a chain and its gradient, after comparing the gradients with NumPy's."""
    length = 3 if quick else LENGTH
    x = np.random.default_rng(SEED).uniform(0.1, 0.5, SIZE)
    expected, y = np.ones(SIZE), x
    for _ in range(length):
        expected, y = expected * np.cos(y), np.sin(y)
    for form, make in FORMS.items():
        calls: dict[str, Callable[[], Any]] = {}
        for library in libraries:
            try:
                gradient = make(library.name, length)
            except Unsupported:
                continue
            if not np.allclose(np.asarray(gradient(x)), expected, rtol=1e-12):
                raise Disagreement(f"{form}: {library.name}'s gradient and NumPy's")
            calls[library.name] = lambda gradient=gradient: gradient(x)  # type: ignore[misc]
        samples = interleave(calls, QUICK if quick else Effort())
        figures = {name: Figure.of(s, 1e6 / length) for name, s in samples.items()}
        ratios, limit = ratios_to(figures, *PEERS), LIMITS[form]
        own = figures.get("tapegrad")
        met = None if limit is None or own is None else own.median <= limit
        reach = "" if limit is None else f"≤ {limit:g} µs"
        name = f"{form}, {SIZE} doubles, a call of {length}"
        note = unsteady(figures, *PEERS)
        yield Row("custom rules", name, threads, "µs", figures, ratios, reach, met, note)

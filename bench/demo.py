"""A short demonstration: look at a tape, fit a damped oscillation, compile the fit."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from types import ModuleType
from typing import Any

import numpy as np

NAMES = ("amplitude", "decay", "frequency", "phase")
TRUTH = (1.5, 0.35, 4.0, 0.6)
GUESS = (1.0, 0.1, 3.7, 0.0)
STEPS = 300
RATE, MOMENTUM = 0.05, 0.8


def measurements() -> tuple[np.ndarray, np.ndarray]:
    """Return times and noisy readings of an oscillation that dies away."""
    rng = np.random.default_rng(7)
    t = np.linspace(0.0, 5.0, 200)
    a, k, w, p = TRUTH
    return t, a * np.exp(-k * t) * np.cos(w * t + p) + 0.05 * rng.standard_normal(t.size)


def loss(tg: ModuleType, parameters: list[Any], t: Any, y: Any) -> Any:
    """Return the mean squared distance of the model from the readings."""
    a, k, w, p = parameters
    model = a * tg.exp(-k * t) * tg.cos(w * t + p)
    return ((model - y) ** 2).mean()


def show_tape(tg: ModuleType) -> None:
    """Record a small expression, print its tape, and differentiate it."""
    x = tg.tensor(2.0, requires_grad=True)
    y = tg.tensor(0.5, requires_grad=True)
    z = tg.sin(x * y) + tg.exp(-x)
    print("The tape of z = sin(x*y) + exp(-x):\n")
    print(z.tape)
    z.backward()
    print(f"\nz = {z.item():.6f},  dz/dx = {x.grad.item():.6f},  dz/dy = {y.grad.item():.6f}")


def fit(tg: ModuleType) -> None:
    """Descend along the gradient, with momentum, and say how it went."""
    t, y = (tg.from_numpy(x) for x in measurements())
    parameters = [tg.tensor(x, dtype=tg.float64, requires_grad=True) for x in GUESS]
    velocity = [0.0] * len(parameters)
    print(f"\nFitting {', '.join(NAMES)} to {len(t)} noisy readings by gradient descent:")
    start = perf_counter()
    for step in range(STEPS + 1):
        value = loss(tg, parameters, t, y)
        value.backward()
        if step % (STEPS // 6) == 0:
            print(f"  step {step:4d}   loss {value.item():.6f}")
        with tg.no_grad():
            for i, x in enumerate(parameters):
                velocity[i] = MOMENTUM * velocity[i] - RATE * x.grad
                x += velocity[i]
                x.grad = None
    seconds = perf_counter() - start
    for name, x, truth in zip(NAMES, parameters, TRUTH):
        print(f"  {name:<10} {x.item():7.4f}   (true {truth})")
    print(f"  {STEPS} steps in {seconds:.2f} s, compiling of kernels on a first run included.")


def time_gradient(tg: ModuleType, repeats: int = 500) -> None:
    """Say how long the loss and its gradient take once the kernels are compiled."""
    t, y = (tg.from_numpy(x) for x in measurements())
    parameters = [tg.tensor(x, dtype=tg.float64, requires_grad=True) for x in TRUTH]
    samples = []
    for _ in range(repeats):
        start = perf_counter()
        loss(tg, parameters, t, y).backward()
        samples.append(perf_counter() - start)
        for x in parameters:
            x.grad = None
    median = sorted(samples)[repeats // 2]
    print(f"\nLoss and gradient of the fit: {median * 1e6:.0f} µs (median of {repeats}).")


def compiled(tg: ModuleType, steps: int = 2000) -> None:
    """Compile the loss with its gradient; fit inside Numba's code, and say what calls cost."""
    import numba

    t, y = measurements()
    f = tg.jit(tg.value_and_grad(lambda x, t, y: loss(tg, list(x), t, y)))

    @numba.njit
    def descend(x, t, y, steps):
        velocity = np.zeros_like(x)
        for _ in range(steps):
            _, gradient = f.njit(x, t, y)
            velocity = MOMENTUM * velocity - RATE * gradient
            x = x + velocity
        return x

    x = np.array(TRUTH)
    start = perf_counter()
    f(x, t, y)
    first = perf_counter() - start
    found = descend(np.array(GUESS), t, y, steps)
    print("\nThe same compiled, f = tg.jit(tg.value_and_grad(loss)):")
    print(f"  {steps} steps inside @numba.njit fit {', '.join(f'{v:.4f}' for v in found)}")
    print(f"  first call {first * 1e3:.0f} ms, compiling included; then, medians:")
    print(f"  {median_of(lambda: f(x, t, y)):6.1f} µs for a call from Python")
    print(
        f"  {median_of(lambda: descend(x, t, y, 100)) / 100:6.1f} µs for a step inside @numba.njit"
    )


def median_of(call: Callable[[], object], repeats: int = 200) -> float:
    """Return the microseconds that a call takes."""
    samples = []
    for _ in range(repeats):
        start = perf_counter()
        call()
        samples.append(perf_counter() - start)
    return sorted(samples)[repeats // 2] * 1e6


def main() -> None:
    """Run the demonstration."""
    import tapegrad as tg

    show_tape(tg)
    fit(tg)
    time_gradient(tg)
    compiled(tg)


if __name__ == "__main__":
    main()

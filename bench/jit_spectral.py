"""Fourier transforms and complex numbers in compiled functions: gradients of real parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bench.jit_gradients import Problem, gradients
from bench.problem import SEED
from bench.report import Row
from bench.sides.side import Side

GROUP = "Fourier transforms and complex numbers, gradient"


def spectral(libraries: list[Side], threads: int, quick: bool) -> Iterator[Row]:
    """Time gradients of functions that go through complex numbers."""
    yield from gradients(GROUP, problems(quick), libraries, threads, quick)


def problems(quick: bool) -> Iterator[Problem]:
    """Yield names, what makes a function of a library, and the argument."""
    rng = np.random.default_rng(SEED)
    steps = 4 if quick else 40
    for n in (256, 1000):
        name = f"phase mask of {n}, {steps} steps of a beam"
        yield name, lambda side, n=n: _beam(side.xp, n, steps), (rng.standard_normal(n),)
    for n in (1000, 16384):
        signal = rng.standard_normal(n)
        weights = rng.standard_normal(n) / n
        yield f"filter of {n}", lambda side, s=signal: _filtered(side.xp, s), (weights,)
    for edge in (64, 512):
        image = rng.standard_normal((edge, edge))
        name, start = f"blur of {edge} x {edge}", (image[::-1].copy(),)
        yield name, lambda side, i=image: _blurred(side.xp, i), start
    frames, angles = rng.standard_normal((64, 256)), rng.standard_normal((4, 8))
    yield "spectra of 64 frames of 256", lambda side: _spectra(side.xp), (frames,)
    yield "circuit of 8 qubits, 4 layers", lambda side: _circuit(side.xp), (angles,)


def _beam(xp: Any, n: int, steps: int) -> Callable[..., Any]:
    """Split steps: diffraction between Fourier transforms, then the medium's nonlinearity."""
    turn = np.exp(-0.1j * np.fft.fftfreq(n) ** 2 * n)

    def f(phase: Any) -> Any:
        def step(z: Any) -> Any:
            z = xp.fft.ifft(xp.fft.fft(z) * turn)
            return z * xp.exp(0.05j * xp.abs(z) ** 2)

        z = xp.loop(steps, step, xp.exp(1j * phase))
        return xp.sum(xp.abs(z[: n // 8]) ** 2)

    return f


def _filtered(xp: Any, signal: np.ndarray) -> Callable[..., Any]:
    wanted, n = np.roll(signal, 1), len(signal)

    def f(weights: Any) -> Any:
        found = xp.fft.irfft(xp.fft.rfft(weights) * xp.fft.rfft(signal), n)
        return xp.sum((found - wanted) ** 2)

    return f


def _blurred(xp: Any, image: np.ndarray) -> Callable[..., Any]:
    n = len(image)
    low = np.exp(-(n**2) * (np.fft.fftfreq(n)[:, None] ** 2 + np.fft.fftfreq(n) ** 2) / 100)

    def f(x: Any) -> Any:
        found = xp.fft.ifft2(xp.fft.fft2(x) * low)
        return xp.sum(xp.abs(found - image) ** 2)

    return f


def _spectra(xp: Any) -> Callable[..., Any]:
    window = np.hanning(256)
    return lambda x: xp.sum(xp.log(1e-3 + xp.abs(xp.fft.rfft(x * window)) ** 2))


def _circuit(xp: Any) -> Callable[..., Any]:
    """Rotations of each qubit, and signs between neighbours; the mean of the first one."""
    qubits = 8
    signs = np.ones([2] * qubits)
    for k in range(qubits - 1):
        signs[(slice(None),) * k + (1, 1)] *= -1.0
    start = np.zeros([2] * qubits, complex)
    start[(0,) * qubits] = 1.0

    def f(angles: Any) -> Any:
        state = start
        for layer in range(len(angles)):
            for k in range(qubits):
                c, s = xp.cos(angles[layer, k]), xp.sin(angles[layer, k])
                state = xp.moveaxis(state, k, 0)
                state = xp.stack(
                    [c * state[0] - 1j * s * state[1], c * state[1] - 1j * s * state[0]]
                )
                state = xp.moveaxis(state, 0, k)
            state = state * signs
        chances = xp.abs(state) ** 2
        return xp.sum(chances[0]) - xp.sum(chances[1])

    return f

"""A recurrent network whose weights are diagonal: the loss of its predictions of the next letter.

A row of the parameters holds four vectors: for the forget, the input and the output gate and for
the change. The forget and the output gate look at a layer's input, the others at its last output.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bench.gradbench.evaluation import Eval, Input, Instance, compiled, doubles, number

BITS = 14


def objective(xp: Any, main: Any, extra: Any, state: Any, sequence: Any) -> Any:
    """The loss; `xp.scan` does a step for each element and stacks what the steps return."""
    layers, bits = len(main) // 2, main.shape[1] // 4
    params = xp.reshape(main, (layers, 2, 4, bits))

    def step(carry: Any, x: Any) -> Any:
        after = []
        for layer, (hidden, cell) in enumerate(carry):
            weight, bias = params[layer, 0], params[layer, 1]
            forget = xp.sigmoid(x * weight[0] + bias[0])
            ingate = xp.sigmoid(hidden * weight[1] + bias[1])
            outgate = xp.sigmoid(x * weight[2] + bias[2])
            change = xp.tanh(hidden * weight[3] + bias[3])
            cell = cell * forget + ingate * change
            x = outgate * xp.tanh(cell)
            after.append((x, cell))
        return after, x

    start = [(state[2 * layer], state[2 * layer + 1]) for layer in range(layers)]
    _, outputs = xp.scan(step, start, sequence[:-1] * extra[0])
    guess = outputs * extra[1] + extra[2]
    total = xp.log(2.0 + xp.sum(xp.exp(guess), axis=1, keepdims=True))
    return -xp.mean(sequence[1:] * (guess - total))


def read(given: Input) -> Instance:
    """The parameters; the state at the start and the sequence."""
    main, extra, state, sequence = (
        doubles(given[name]) for name in ("main_params", "extra_params", "state", "sequence")
    )
    return Instance((main, extra), (state, sequence))


def generate(rng: np.random.Generator, l: int, c: int) -> dict[str, Any]:
    """Numbers between 0 and 1, and letters as bits."""
    return {
        "main_params": rng.random((2 * l, 4 * BITS)).tolist(),
        "extra_params": rng.random((3, BITS)).tolist(),
        "state": rng.random((2 * l, BITS)).tolist(),
        "sequence": rng.integers(0, 2, (c, BITS)).astype(np.float64).tolist(),
    }


@compiled
def _sigmoid(x):
    return 1.0 / (1.0 + math.exp(-x))


@compiled
def _forward(main, extra, state, sequence, kept):
    """Return the loss; keep what a step of the adjoint reads: `kept[time, layer, what, bit]`.

    What: the input, the last output, the last cell, the four gates, tanh of the new cell. With
    room for one time only, each step overwrites the last. After the layers stands the prediction.
    """
    steps, bits, layers = len(sequence) - 1, sequence.shape[1], len(state) // 2
    state, total = state.copy(), 0.0
    for t in range(steps):
        at = kept[t % len(kept)]
        norm = 2.0
        for i in range(bits):
            x = sequence[t, i] * extra[0, i]
            for layer in range(layers):
                weight, bias, keep = main[2 * layer], main[2 * layer + 1], at[layer]
                hidden, cell = state[2 * layer, i], state[2 * layer + 1, i]
                forget = _sigmoid(x * weight[i] + bias[i])
                ingate = _sigmoid(hidden * weight[bits + i] + bias[bits + i])
                outgate = _sigmoid(x * weight[2 * bits + i] + bias[2 * bits + i])
                change = math.tanh(hidden * weight[3 * bits + i] + bias[3 * bits + i])
                keep[0, i], keep[1, i], keep[2, i] = x, hidden, cell
                keep[3, i], keep[4, i], keep[5, i], keep[6, i] = forget, ingate, outgate, change
                cell = cell * forget + ingate * change
                keep[7, i] = math.tanh(cell)
                x = outgate * keep[7, i]
                state[2 * layer, i], state[2 * layer + 1, i] = x, cell
            guess = x * extra[1, i] + extra[2, i]
            at[layers, 0, i], at[layers, 1, i] = x, math.exp(guess)
            norm += at[layers, 1, i]
            total += sequence[t + 1, i] * guess
        log_norm = math.log(norm)
        for i in range(bits):
            at[layers, 1, i] /= norm
            total -= sequence[t + 1, i] * log_norm
    return -total / (steps * bits)


@compiled
def primal_by_hand(main, extra, state, sequence):
    """`objective`, as one writes it for speed."""
    kept = np.empty((1, len(state) // 2 + 1, 8, sequence.shape[1]))
    return _forward(main, extra, state, sequence, kept)


@compiled
def gradient_by_hand(main, extra, state, sequence):
    """Its derivative, as one writes it for speed."""
    steps, bits, layers = len(sequence) - 1, sequence.shape[1], len(state) // 2
    kept = np.empty((steps, layers + 1, 8, bits))
    _forward(main, extra, state, sequence, kept)
    g_main, g_extra, g_state = np.zeros_like(main), np.zeros_like(extra), np.zeros_like(state)
    scale = -1.0 / (steps * bits)
    for t in range(steps - 1, -1, -1):
        at, letters = kept[t], np.sum(sequence[t + 1])
        for i in range(bits):
            g_guess = scale * (sequence[t + 1, i] - letters * at[layers, 1, i])
            g_extra[1, i] += g_guess * at[layers, 0, i]
            g_extra[2, i] += g_guess
            g = g_guess * extra[1, i]
            for layer in range(layers - 1, -1, -1):
                weight, g_weight, g_bias = main[2 * layer], g_main[2 * layer], g_main[2 * layer + 1]
                keep = at[layer]
                x, hidden, cell = keep[0, i], keep[1, i], keep[2, i]
                forget, ingate, outgate, change = keep[3, i], keep[4, i], keep[5, i], keep[6, i]
                level = keep[7, i]
                g += g_state[2 * layer, i]
                g_cell = g_state[2 * layer + 1, i] + g * outgate * (1.0 - level * level)
                g_forget = g_cell * cell * forget * (1.0 - forget)
                g_ingate = g_cell * change * ingate * (1.0 - ingate)
                g_outgate = g * level * outgate * (1.0 - outgate)
                g_change = g_cell * ingate * (1.0 - change * change)
                g_weight[i] += g_forget * x
                g_weight[bits + i] += g_ingate * hidden
                g_weight[2 * bits + i] += g_outgate * x
                g_weight[3 * bits + i] += g_change * hidden
                g_bias[i] += g_forget
                g_bias[bits + i] += g_ingate
                g_bias[2 * bits + i] += g_outgate
                g_bias[3 * bits + i] += g_change
                g_state[2 * layer + 1, i] = g_cell * forget
                g_hidden = g_ingate * weight[bits + i] + g_change * weight[3 * bits + i]
                g_state[2 * layer, i] = g_hidden
                g = g_forget * weight[i] + g_outgate * weight[2 * bits + i]
            g_extra[0, i] += g * sequence[t, i]
    return g_main, g_extra


EVAL = Eval(
    "lstm", ("objective", "jacobian"), objective, read, generate, primal_by_hand, gradient_by_hand,
    shown=(number, lambda value, _: [y for x in value for y in np.ravel(x).tolist()]),
    standard={"l": 2, "c": 1024}, small={"l": 2, "c": 4},
    pilots=({"l": 2, "c": 4}, {"l": 2, "c": 12}), length=lambda instance: len(instance.data[1]),
)  # fmt: skip

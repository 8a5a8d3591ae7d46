"""A step of training LeNet on scikit-learn's digits, 8×8 pixels each."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.problem import SEED, Problem

SHAPES = (
    (6, 1, 3, 3),
    (6,),
    (16, 6, 3, 3),
    (16,),
    (120, 64),
    (120,),
    (84, 120),
    (84,),
    (10, 84),
    (10,),
)
RATE = 0.05


def network(xp: Any, weights: list[Any], images: Any) -> Any:
    """Return the scores of the ten digits: two convolutions with pooling, three layers."""
    f, (w1, b1, w2, b2, w3, b3, w4, b4, w5, b5) = xp.nn.functional, weights
    x = f.max_pool2d(f.relu(f.conv2d(images, w1, b1, padding=1)), 2)
    x = f.max_pool2d(f.relu(f.conv2d(x, w2, b2, padding=1)), 2)
    x = f.relu(f.linear(x.flatten(1), w3, b3))
    return f.linear(f.relu(f.linear(x, w4, b4)), w5, b5)


def loss(xp: Any, inputs: list[Any], data: list[Any]) -> Any:
    """Return the mean of the cross entropy."""
    images, labels = data
    return xp.nn.functional.cross_entropy(network(xp, inputs, images), labels.long())


def initial() -> tuple[np.ndarray, ...]:
    """Return weights as they are before training."""
    rng = np.random.default_rng(SEED)
    fans = [int(np.prod(shape[1:])) for shape in SHAPES]
    return tuple([
        rng.standard_normal(shape) * (2 / fan) ** 0.5 if len(shape) > 1 else np.zeros(shape)
        for shape, fan in zip(SHAPES, fans, strict=True)
    ])  # fmt: skip


def digits() -> tuple[np.ndarray, np.ndarray]:
    """Return all images and labels, in a random order."""
    from sklearn.datasets import load_digits

    found = load_digits()
    order = np.random.default_rng(SEED).permutation(len(found.target))
    return found.images[order, None] / 16, found.target[order]


def problem(batch: int, dtype: Any) -> Problem:
    """Return a step of gradient descent on so many images."""
    images, labels = digits()
    name = f"LeNet, {batch} digits, {np.dtype(dtype).name}"
    data = images[:batch], labels[:batch].astype(np.float64)
    return Problem(name, loss, initial(), data, rate=RATE, methods=True).astype(np.dtype(dtype))

"""Random stacks of transforms, `checkpoint`, `custom_vjp` and `custom_jvp` against JAX."""

import random

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="compares with JAX: `make peers` installs it")

import jax.numpy as jnp  # noqa: E402

import tapegrad as tg  # noqa: E402
from tests.transforms.stacks import PLAIN, X, drawn, stacked  # noqa: E402

pytestmark = [
    pytest.mark.peer,
    pytest.mark.usefixtures("double_precision_of_jax"),
    pytest.mark.tapegrad_only("runs both libraries itself"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
# JAX takes no tangents of a custom_vjp.
FORWARD = {name for name in PLAIN if "jvp" in name or "linearize" in name} | {"jacfwd", "hessian"}


@pytest.mark.parametrize("seed", range(12))
def test_stacks(seed):
    rng = random.Random(seed)
    base, names = drawn(rng, 3, [*PLAIN])
    while any("custom_vjp" in name for name in names) and not FORWARD.isdisjoint(names):
        base, names = drawn(rng, 3, [*PLAIN])
    found = stacked(tg, np, base, names)(X)
    expected = np.asarray(stacked(jax, jnp, base, names)(jnp.asarray(X)))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11 * np.abs(expected).max())

"""Random programs against JAX: values and gradients, eagerly and compiled."""

import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

jax = pytest.importorskip("jax", reason="compares with JAX: `make peers` installs it")

import jax.numpy as jnp  # noqa: E402

import tapegrad as tg  # noqa: E402
from tests.compiler.programs import SHAPES, Pure, Step, computed, total  # noqa: E402

pytestmark = [
    pytest.mark.peer,
    pytest.mark.usefixtures("double_precision_of_jax"),
    pytest.mark.tapegrad_only("runs both libraries itself"),
]

MORE = int(os.environ.get("PROGRAMS", "0"))
step = st.builds(
    Step, st.integers(0, 15), st.integers(0, 11), st.integers(0, 11), st.integers(0, 4999)
)
programs = given(
    st.lists(step, min_size=5, max_size=30),
    st.lists(st.sampled_from(SHAPES), min_size=1, max_size=2),
    st.integers(0, 1000),
)


def profile(count):
    """The same so many programs each time, or more and others if that was asked for."""
    return settings(
        max_examples=MORE or count, deadline=None, derandomize=not MORE, database=None,
        suppress_health_check=[HealthCheck.too_slow],
    )  # fmt: skip


@profile(15)
@programs
def test_values(steps, shapes, seed):
    rng = np.random.default_rng(seed)
    arrays = [rng.normal(size=s) for s in shapes]
    wanted = computed(steps, [jnp.asarray(x) for x in arrays], jnp, Pure)
    found = tg.jit(lambda *arrays: computed(steps, arrays))(*arrays)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


@profile(10)
@programs
def test_gradients(steps, shapes, seed):
    rng = np.random.default_rng(seed)
    arrays = [rng.normal(size=s) for s in shapes]

    def theirs(first):
        pool = computed(steps, [first, *map(jnp.asarray, arrays[1:])], jnp, Pure)
        return total(pool, jnp)

    wanted = np.asarray(jax.grad(theirs)(jnp.asarray(arrays[0])))
    # As Tensors: without dimensions an array would be a number of NumPy's, which is not written to.
    ours = lambda first: total(computed(steps, [first, *map(tg.tensor, arrays[1:])]))
    found = np.asarray(tg.jit(tg.grad(ours))(arrays[0]))
    known = np.isfinite(wanted)  # where JAX has none a zero adjoint may have met an infinite slope
    np.testing.assert_allclose(found[known], wanted[known], rtol=1e-8, atol=1e-8)

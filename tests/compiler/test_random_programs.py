"""Random programs: what is compiled computes what runs eagerly, values and gradients alike.

`PROGRAMS` in the environment asks for more of them, other ones each time.
"""

import os
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import tapegrad as tg
from tests.compiler.programs import SHAPES, TIERS, Step, computed, tier, total

pytestmark = pytest.mark.tapegrad_only("no counterpart in PyTorch")

MORE = int(os.environ.get("PROGRAMS", "0"))
# To shrink a program compiles hundreds of others.
PHASES = [Phase.generate, Phase.shrink] if MORE else [Phase.generate]
TOLERANCE = {"float64": 1e-9, "float32": 2e-3}

number = st.integers(0, 4999)
step = st.builds(Step, st.integers(0, 15), st.integers(0, 11), st.integers(0, 11), number)
programs = st.lists(step, min_size=5, max_size=60)
shapes = st.lists(st.sampled_from(SHAPES), min_size=1, max_size=3)


def profile(count):
    return settings(
        max_examples=MORE or count, deadline=None, derandomize=not MORE, database=None,
        phases=PHASES, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )  # fmt: skip


def points(shapes, kind, seed):
    """Two calls: what was seen in the first must not be kept for the second."""
    rng = np.random.default_rng(seed)
    return [[rng.normal(size=s).astype(kind) for s in shapes] for _ in range(2)]


def near(found, wanted, kind, factor=1.0):
    assert np.shape(found) == np.shape(wanted)
    tolerance = TOLERANCE[kind] * factor
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", TIERS)
@pytest.mark.parametrize("kind", TOLERANCE)
@profile(8)
@given(programs, shapes, st.integers(0, 1000))
def test_values(kind, name, steps, shapes, seed):
    compiled = tg.jit(lambda *arrays: computed(steps, arrays))
    for arrays in points(shapes, kind, seed):
        wanted = computed(steps, [tg.tensor(x) for x in arrays])
        with tier(name):
            found = compiled(*arrays)
        for a, b in zip(found, wanted, strict=True):
            near(a, b.numpy(), kind)


@pytest.mark.parametrize("name", TIERS)
@pytest.mark.parametrize("kind", TOLERANCE)
@profile(5)
@given(programs, shapes, st.integers(0, 1000))
def test_gradients(kind, name, steps, shapes, seed):
    derivative = tg.value_and_grad(
        lambda *arrays: total(computed(steps, arrays)), argnums=tuple(range(len(shapes)))
    )
    compiled = tg.jit(derivative)
    for arrays in points(shapes, kind, seed):
        with tier(name):
            value, gradients = compiled(*arrays)
        wanted, others = derivative(*arrays)
        near(value, wanted, kind, 10)
        for g, other in zip(gradients, others, strict=True):
            near(g, other, kind, 100)
            assert np.ndim(g) == 0 or g.dtype == other.dtype


TRANSFORMS = {
    "jvp": lambda f, x: tg.jvp(f, (x,), (np.cos(x),))[1],
    "hvp": lambda f, x: tg.hvp(f)(x, np.cos(x)),
    "vmap": lambda f, x: tg.vmap(tg.grad(f))(np.stack([x, x])),
}


@pytest.mark.parametrize("name", TRANSFORMS)
@profile(3)
@given(st.lists(step, min_size=3, max_size=12), st.sampled_from(SHAPES[2:8]), number)
def test_other_transforms(name, steps, shape, seed):
    """Without Python's `if`, which a map cannot follow."""
    steps = [s for s in steps if s.what != 15]

    def transformed(x):
        return TRANSFORMS[name](lambda x: total(computed(steps, [x])), x)

    compiled = tg.jit(transformed)
    for (x,) in points([shape], "float64", seed):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that something has no rule for maps
            near(compiled(x), transformed(x), "float64", 100)

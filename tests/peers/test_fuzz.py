"""Random programs against PyTorch and JAX: values, gradients and Hessian-vector products."""

import pytest

from tests.fuzz.checks import JAX_EVERY
from tests.fuzz.search import searched

pytestmark = [pytest.mark.peer, pytest.mark.tapegrad_only("runs both libraries itself")]


@pytest.mark.parametrize(("peer", "count"), [("torch", 200), ("jax", 12)])
def test_programs_agree_with(peer, count):
    pytest.importorskip(peer, reason=f"compares with {peer}: `make peers` installs it")
    step = JAX_EVERY if peer == "jax" else 1
    seeds = range(1_000, 1_000 + count * step, step)
    found = [text for _, _, text in searched(seeds, peers=[peer], often=10**9)]
    assert not found, "\n\n".join(found)

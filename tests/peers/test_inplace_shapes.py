"""Random programs that change shapes in place give PyTorch's shapes, values and gradients."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="compares with PyTorch: `make peers` installs it")

import tapegrad as tg  # noqa: E402
from tests.view_programs import program, run  # noqa: E402

pytestmark = [pytest.mark.peer, pytest.mark.tapegrad_only("runs both libraries itself")]

BLOCK = 50


def outcome(library, program, *, recorded):
    """Shapes, versions, values and gradients of all that a program makes.

    Where it begins with a constant, a history comes in by a write in the midst of it.
    """

    def make(array):
        return library.tensor(array, dtype=library.float64)

    a, b = make(program.data), make(program.data.ravel()[0])
    a.requires_grad_()
    b.requires_grad_()
    x = a * 2
    if not recorded:
        x = a.detach().clone()
        half = len(program.steps) // 2
        first = program._replace(steps=program.steps[:half])
        found = run(first, make, x)
        found[-1].mul_(b * b)
        for t in found:
            _ = t.grad_fn
        found += run(program._replace(steps=program.steps[half:]), make, found[0].unsqueeze(0))
    else:
        found = run(program, make, x)
    sum((t * t).sum() for t in found).backward()
    facts = [(tuple(t.shape), t.requires_grad, t.is_leaf, t._version) for t in found]
    values = [np.array(t.detach().tolist()) for t in found]
    grads = [None if t.grad is None else np.array(t.grad.tolist()) for t in (a, b)]
    return facts, values, grads


@pytest.mark.parametrize("recorded", [True, False], ids=["recorded", "recorded later"])
@pytest.mark.parametrize("block", range(10))
def test_programs_equal_pytorch(block, recorded):
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        steps = program(seed)
        facts, values, grads = outcome(tg, steps, recorded=recorded)
        told, wanted, right = outcome(torch, steps, recorded=recorded)
        assert facts == told, seed
        for mine, other in zip(values + grads, wanted + right, strict=True):
            assert (mine is None) == (other is None), seed
            if mine is not None:
                np.testing.assert_allclose(mine, other, rtol=1e-10, err_msg=str(seed))


@pytest.mark.parametrize("block", range(4))
def test_values_of_windows_into_the_storage_equal_pytorch(block):
    """Their gradients are compared with differences: PyTorch drops what the operand hides."""
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        steps = program(seed, strided=True)
        mine = run(steps, tg.tensor, tg.tensor(steps.data))
        other = run(steps, torch.tensor, torch.tensor(steps.data))
        for x, y in zip(mine, other, strict=True):
            assert tuple(x.shape) == tuple(y.shape), seed
            np.testing.assert_allclose(x.tolist(), y.tolist(), rtol=1e-12, err_msg=str(seed))

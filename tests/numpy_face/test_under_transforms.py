"""The functions that are made of several operations, under `jit`, `vmap` and in forward mode."""

import numpy as np
import pytest

import tapegrad as tg
from tests.numpy_face.cases import CASES
from tests.numpy_face.more_cases import DEPEND, MORE
from tests.numpy_face.test_numpy_functions import flat, samples

pytestmark = pytest.mark.tapegrad_only("PyTorch does not answer NumPy's functions")

FIXED = [name for name in MORE if name not in DEPEND]


def weighted(function):
    """One number of all that a function gives."""

    def total(*operands):
        parts = [y for y in flat(function(*operands)) if np.asarray(np.shape(y)).all()]
        return sum(np.sum(y * np.cos(np.arange(np.size(y)).reshape(np.shape(y)))) for y in parts)

    return total


def close(found, expected, rtol=1e-10):
    for one, two in zip(flat(found), flat(expected), strict=True):
        np.testing.assert_allclose(one, two, rtol=rtol, atol=1e-12)


@pytest.mark.parametrize("name", FIXED)
def test_compiled_is_eager(name):
    case = CASES[name]
    arrays = samples(case)
    slopes = tg.grad(weighted(case.function), tuple(range(len(arrays))))

    def both(*operands):
        return flat(case.function(*operands)), slopes(*operands)

    close(tg.jit(both)(*arrays), both(*arrays))


@pytest.mark.parametrize("name", FIXED)
def test_mapped_is_one_after_the_other(name):
    case = CASES[name]
    arrays = [np.stack([a, a[..., ::-1] if a.ndim else 1 - a]) for a in samples(case)]
    found = flat(tg.vmap(case.function)(*arrays))
    singles = [flat(case.function(*[a[k] for a in arrays])) for k in range(2)]
    close(found, [np.stack(pair) for pair in zip(*singles, strict=True)])


@pytest.mark.parametrize("name", MORE)
def test_forward_is_backward(name):
    case = CASES[name]
    arrays = samples(case)
    ways = [np.sin(1.0 + a) for a in arrays]
    total = weighted(case.function)
    _, slope = tg.jvp(total, tuple(arrays), tuple(ways))
    gradients = tg.grad(total, tuple(range(len(arrays))))(*arrays)
    backward = sum(np.sum(g * w) for g, w in zip(gradients, ways, strict=True))
    np.testing.assert_allclose(slope, backward, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", MORE)
def test_second_derivatives(name):
    case = CASES[name]
    leaves = [tg.tensor(a, requires_grad=True) for a in samples(case)]

    def outputs(*ts):
        return tuple(y for y in flat(case.function(*ts)) if y.requires_grad and 0 not in y.shape)

    assert tg.autograd.gradgradcheck(outputs, tuple(leaves))


@pytest.mark.parametrize("name", sorted(DEPEND))
def test_what_depends_on_values_says_so(name):
    case = CASES[name]
    arrays = samples(case)
    with pytest.raises(RuntimeError, match="known when the compiled program runs"):
        tg.jit(case.function)(*arrays)
    with pytest.raises(RuntimeError, match="under `vmap`"):
        tg.vmap(case.function)(*[np.stack([a, a]) for a in arrays])

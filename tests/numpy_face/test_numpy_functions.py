"""Every handler against NumPy on values, and against differences on gradients."""

import numpy as np
import pytest

import tapegrad as tg
from tests.numpy_face import more_cases  # noqa: F401 - enters its cases
from tests.numpy_face.cases import AWAITED, CASES

pytestmark = pytest.mark.tapegrad_only("PyTorch does not answer NumPy's functions")


def flat(found):
    if isinstance(found, (list, tuple)):
        return [leaf for part in found for leaf in flat(part)]
    return [found]


def samples(case):
    rng = np.random.default_rng(7)
    # All values differ, and none is close to another: no ties, no kinks.
    count = sum(int(np.prod(shape)) for shape in case.shapes)
    values = rng.permutation(np.linspace(0.15, 0.85, count)) + rng.uniform(0, 1e-3, count)
    edges = np.cumsum([int(np.prod(shape)) for shape in case.shapes])[:-1]
    return [v.reshape(s) for v, s in zip(np.split(values, edges), case.shapes, strict=True)]


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name):
    case = CASES[name]
    arrays = samples(case)
    leaves = [tg.tensor(a, requires_grad=True) for a in arrays]
    if case.needs in AWAITED:
        with pytest.raises(TypeError, match="is not supported for Tensors"):
            case.function(*leaves)
        return
    expected, got = flat(case.function(*arrays)), flat(case.function(*leaves))
    constants = flat(case.function(*[tg.tensor(a) for a in arrays]))
    assert len(got) == len(expected) == len(constants)
    for g, c, e in zip(got, constants, expected, strict=True):
        assert type(g) is type(c) is tg.Tensor
        assert g.requires_grad or (name.startswith("average") and g is not got[0])
        assert not c.requires_grad
        assert g.shape == np.shape(e)
        assert g.detach().numpy().dtype == np.asarray(e).dtype
        np.testing.assert_allclose(g.detach().numpy(), e, rtol=1e-13, atol=1e-14)
        # The same operations; BLAS adds up in another order where memory is aligned otherwise.
        np.testing.assert_array_max_ulp(c.numpy(), g.detach().numpy(), 2)
    assert tg.autograd.gradcheck(lambda *ts: tuple(flat(case.function(*ts))), tuple(leaves))

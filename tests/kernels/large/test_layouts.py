"""Operations along one dimension of large arrays, some of whose sides have one element."""

import numpy as np
import pytest

import tapegrad as tg
from tests.kernels.large.test_forwards import results, rules_alone

pytestmark = pytest.mark.tapegrad_only("how tapegrad computes on large arrays")

SHAPES = [
    (16384, 1), (1, 16384), (1, 16385, 1), (2, 8192, 1), (2, 1, 8192), (8192, 1, 2), (129, 128, 1),
    (1, 129, 128), (128, 1, 1, 129), (3, 5, 1100),
]  # fmt: skip
F = tg.nn.functional
FUNCTIONS = {
    name: getattr(tg, name)
    for name in (
        "cumsum cumprod logcumsumexp sum mean prod amax amin var std logsumexp flip nansum norm"
    ).split()
} | {
    "softmax": F.softmax,
    "log_softmax": F.log_softmax,
    "normalize": lambda x, d: F.normalize(x, dim=d),
    "sort": lambda x, d: tg.sort(x, d).values,
    "max": lambda x, d: tg.max(x, d).values,
    "median": lambda x, d: tg.median(x, d).values,
    "cummax": lambda x, d: tg.cummax(x, d).values,
    "roll": lambda x, d: tg.roll(x, 5, d),
    "diff": lambda x, d: tg.diff(x, dim=d),
    "topk": lambda x, d: tg.topk(x, 1, d).values,
    "norm, p=1": lambda x, d: tg.norm(x, 1, d),
    "gather": lambda x, d: tg.gather(x, d, tg.argsort(x.detach(), d)),
    "cat": lambda x, d: tg.cat([x, 2.0 * x], d),
    "trapezoid": lambda x, d: tg.trapezoid(x, dim=d),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_large_is_as_small(name, shape, dtype):
    rng = np.random.default_rng(3)
    x = rng.uniform(0.98, 1.02, shape).astype(dtype)
    for d in range(len(shape)):
        if name == "diff" and shape[d] == 1:
            continue
        found = results(lambda x, d=d: FUNCTIONS[name](x, d), [x])
        with rules_alone():
            expected = results(lambda x, d=d: FUNCTIONS[name](x, d), [x])
        near = 2e-4 if dtype == np.float32 else 1e-9
        for a, b in zip(found, expected, strict=True):
            assert a.dtype == b.dtype == dtype
            scale = max(np.abs(b).max(), 0.01)  # where the derivative is zero, of what cancels
            np.testing.assert_allclose(a, b, rtol=near, atol=near * scale)

"""The type that a reduction is asked for is the one that it gives."""

import numpy as np
import pytest

TYPES = "bool uint8 int8 int16 int32 int64 float32 float64".split()
SUMS = {
    "sum": lambda tg, x, kind: tg.sum(x, dtype=kind),
    "sum along": lambda tg, x, kind: tg.sum(x, 1, dtype=kind),
    "sum along both": lambda tg, x, kind: x.sum((0, 1), dtype=kind),
    "prod": lambda tg, x, kind: tg.prod(x, dtype=kind),
    "prod along": lambda tg, x, kind: x.prod(1, dtype=kind),
}
SCANS = {
    "cumsum": lambda tg, x, kind: x.cumsum(0, dtype=kind),
    "cumprod": lambda tg, x, kind: tg.cumprod(x, 1, dtype=kind),
}
VALUES = np.array([[1, 2, 3], [2, 5, 1]])
WHOLE = {
    "sum": VALUES.sum(), "sum along": VALUES.sum(1), "sum along both": VALUES.sum(),
    "prod": VALUES.prod(), "prod along": VALUES.prod(1), "cumsum": VALUES.cumsum(0),
    "cumprod": VALUES.cumprod(1),
}  # fmt: skip


@pytest.mark.parametrize("name", [*SUMS, *SCANS])
@pytest.mark.parametrize("kind", TYPES)
def test_dtype(tg, name, kind):
    if name in SCANS and kind == "bool":
        pytest.skip("PyTorch has no scans of booleans")
    target = getattr(tg, kind)
    for given in TYPES[1:]:
        x = tg.tensor(VALUES).to(getattr(tg, given))
        found = (SUMS | SCANS)[name](tg, x, target)
        assert found.dtype == target, given
        np.testing.assert_array_equal(found.numpy(), WHOLE[name].astype(kind))


def test_small_integers_wrap_around(tg):
    x = tg.full((3,), 100, dtype=tg.int8)
    assert x.sum(dtype=tg.int8).item() == 44
    assert x.sum().item() == 300
    assert x.prod(dtype=tg.uint8).item() == 1000000 % 256


def test_norms_take_types_that_hold_the_elements(tg):
    x = tg.ones(2, 2, dtype=tg.float64)
    for kind in (tg.int64, tg.float32):
        with pytest.raises(RuntimeError, match="dtype"):
            tg.linalg.vector_norm(x, dtype=kind)
        with pytest.raises(RuntimeError, match="dtype"):
            tg.linalg.matrix_norm(x, dtype=kind)
    assert tg.linalg.vector_norm(x.float(), dtype=tg.float64).dtype == tg.float64


NUMPYS = {
    name: getattr(np, name)
    for name in "sum prod cumsum cumprod nansum nanprod nancumsum nancumprod trace".split()
}
MEANS = {name: getattr(np, name) for name in "mean var std nanmean nanvar nanstd".split()}


@pytest.mark.tapegrad_only("NumPy's functions")
@pytest.mark.parametrize("name", NUMPYS)
def test_dtype_of_numpys(tg, name):
    for given in TYPES:
        x = VALUES.astype(given)
        for kind in (None, *TYPES):
            options = {} if kind is None else {"dtype": kind}
            found, expected = NUMPYS[name](tg.tensor(x), **options), NUMPYS[name](x, **options)
            assert found.numpy().dtype == expected.dtype, (given, kind)
            np.testing.assert_array_equal(found.numpy(), expected)


@pytest.mark.tapegrad_only("NumPy's functions")
@pytest.mark.parametrize("name", MEANS)
def test_means_have_no_integers(tg, name):
    for kind in TYPES[:-2]:
        with pytest.raises(TypeError, match=f"`np.{name}`: dtype is a floating-point type, got"):
            MEANS[name](tg.tensor(VALUES), dtype=kind)
    for kind in TYPES[-2:]:
        found, expected = (
            MEANS[name](tg.tensor(VALUES), dtype=kind),
            MEANS[name](VALUES, dtype=kind),
        )
        assert found.numpy().dtype == expected.dtype
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)

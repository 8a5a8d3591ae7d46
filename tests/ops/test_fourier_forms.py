"""Compiled cosine and sine transforms are SciPy's, of every type and size."""

import numpy as np
import pytest
import scipy.fft

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("how programs are compiled")

RNG = np.random.default_rng(5)
NAMES = ("dct", "dst")
# Even and odd ones, some with a large factor.
SIZES = (1, 2, 3, 4, 5, 6, 8, 9, 16, 17, 34, 101)


def agree(f, x, wanted, tolerance=1e-14):
    """The compiled function gives these arrays, without Python."""
    compiled = tg.jit(f)
    for found, array in zip(compiled(x), wanted, strict=True):
        assert (np.shape(found), np.asarray(found).dtype) == (array.shape, array.dtype)
        scale = max(np.abs(array).max(initial=0.0), 1e-30)
        np.testing.assert_allclose(found / scale, array / scale, atol=tolerance)
    assert compiled.lower(x).callbacks == ()


@pytest.mark.parametrize("type", [1, 2, 3, 4])
@pytest.mark.parametrize("name", NAMES)
def test_sizes(name, type):
    theirs, ours = getattr(scipy.fft, name), getattr(tg.scipy.fft, name)
    sizes = [n for n in SIZES if (name, type, n) != ("dct", 1, 1)]
    xs = [RNG.normal(size=n) for n in sizes]
    agree(lambda xs: [ours(x, type) for x in xs], xs, [theirs(x, type) for x in xs])


@pytest.mark.parametrize("type", [1, 2, 3, 4])
@pytest.mark.parametrize("name", NAMES)
def test_dimensions_and_norms(name, type):
    x = RNG.normal(size=(4, 7, 6))

    def transforms(of, x):
        one, several, inverse = (getattr(of, kind) for kind in (name, f"{name}n", f"i{name}"))
        found = [one(x, type, axis=axis) for axis in range(3)]
        found += [one(x, type, norm=norm) for norm in ("ortho", "forward")]
        return [*found, several(x, type), inverse(x, type, 5)]

    for dtype, tolerance in ((np.float64, 1e-13), (np.float32, 3e-6)):
        given = x.astype(dtype)
        agree(lambda x: transforms(tg.scipy.fft, x), given, transforms(scipy.fft, given), tolerance)


@pytest.mark.parametrize("type", [1, 2, 3, 4])
@pytest.mark.parametrize("name", NAMES)
def test_derivatives_and_other_transforms(name, type):
    ours = getattr(tg.scipy.fft, name)
    x, v = RNG.normal(size=(2, 3, 6))

    def loss(x):
        return (ours(x, type) ** 3).sum() / 99

    def filtered(x):
        def step(y, t):
            return np.tanh(ours(y, type) * t), None

        return (tg.scan(step, x, np.linspace(0.1, 0.2, 4))[0] ** 2).sum()

    def all_of_them(x):
        return [
            tg.grad(loss)(x),
            tg.grad(lambda x: (tg.grad(loss)(x) * v).sum())(x),
            tg.vmap(tg.grad(loss))(x),
            *tg.jvp(lambda x: ours(x, type), (x,), (v,)),
            tg.grad(filtered)(x),
        ]

    agree(all_of_them, x, all_of_them(x), 1e-13)


def test_one_element_has_no_cosine_transform_of_type_1():
    with pytest.raises(RuntimeError, match="zero-length"):
        tg.jit(lambda x: tg.scipy.fft.dct(x, 1))(np.ones(1))


@pytest.mark.parametrize("shape", [(0, 4), (3, 0, 4)])
def test_nothing(shape):
    x = np.ones(shape)
    agree(lambda x: [tg.scipy.fft.dct(x)], x, [scipy.fft.dct(x)])

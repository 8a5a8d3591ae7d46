"""Beside values and gradients: constants, writing in place, NaN and infinities, what is refused."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.functions.quantiles import METHODS

pytestmark = pytest.mark.tapegrad_only("PyTorch does not answer NumPy's functions")

A = np.array([[0.5, 1.5, 2.5], [3.5, 4.5, 5.5]])


@pytest.fixture
def t():
    return tg.tensor(A, requires_grad=True)


def flat(found):
    return (
        [leaf for x in found for leaf in flat(x)] if isinstance(found, (list, tuple)) else [found]
    )


CONSTANT = {
    "histogram": lambda t: np.histogram(t, [0.0, 1.5, 4.5])[0],
    "histogram of bins": lambda t: np.histogram(t, 3)[0],
    "histogram beyond": lambda t: np.histogram(t, 3, (1.0, 4.0))[0],
    "histogram of one value": lambda t: np.histogram(t * 0 + 1, 3),
    "histogram of integers": lambda t: np.histogram((t > 1) * 2, 2),
    "bincount": lambda t: np.bincount(np.ravel(t > 1) * 2, minlength=4),
    "matrix_rank": lambda t: np.linalg.matrix_rank(t),
    "matrix_rank of a vector": lambda t: np.linalg.matrix_rank(t[0]),
    "matrix_rank hermitian": lambda t: np.linalg.matrix_rank(t.T @ t, hermitian=True),
    "matrix_rank tol": lambda t: np.linalg.matrix_rank(np.stack([t, t * 0]), tol=[2.0, 0.1]),
    "matrix_rank rtol": lambda t: np.linalg.matrix_rank(t, rtol=0.5),
    "rank of a system": lambda t: np.linalg.lstsq(t, A[:, 0])[2],
    "rank beyond a bound": lambda t: np.linalg.lstsq(t, A[:, 0], rcond=0.5)[1:3],
    "unique": lambda t: np.unique(np.floor(t / 2), True, True, True)[1:],
    "unique_all": lambda t: np.unique_all(t)[1:],
    "unique_counts": lambda t: np.unique_counts(t).counts,
    "unique_inverse": lambda t: np.unique_inverse(t).inverse_indices,
    "intersect1d": lambda t: np.intersect1d(t, [5.5, 1.5], return_indices=True)[1:],
    "unravel_index": lambda t: np.unravel_index(np.argsort(np.ravel(t)), (3, 2)),
    "ravel_multi_index": lambda t: np.ravel_multi_index(np.nonzero(t > 2), (2, 3)),
    "ix_": lambda t: np.ix_(t[0] > 1, [], np.argsort(t[0])),
    "packbits": lambda t: np.packbits(t > 1),
    "frexp": lambda t: np.frexp(t)[1],
    "corner of nothing": lambda t: np.resize(t[:0], (2, 2)),
}


@pytest.mark.parametrize("name", CONSTANT)
@pytest.mark.filterwarnings("ignore:`rcond`")
def test_constants(name, t):
    found, expected = flat(CONSTANT[name](t)), flat(CONSTANT[name](A))
    assert len(found) == len(expected)
    for one, two in zip(found, expected, strict=True):
        assert type(one) is tg.Tensor
        assert one.shape == np.shape(two)
        assert one.numpy(force=True).dtype.kind == np.asarray(two).dtype.kind
        np.testing.assert_allclose(one.numpy(force=True), two, rtol=1e-14)
        assert not one.requires_grad or name.startswith("histogram of")


# Each writes into its first argument what it takes from the second.
WRITE = {
    "copyto": lambda x, v: np.copyto(x, v),
    "copyto where": lambda x, v: np.copyto(x, v[0], where=np.array([[True], [False]])),
    "put": lambda x, v: np.put(x, [0, -1, 2], v[1]),
    "put again": lambda x, v: np.put(x, [0, 4, 3, 1], v[0, :2]),
    "put clip": lambda x, v: np.put(x, [-3, 20], v[0], mode="clip"),
    "put wrap": lambda x, v: np.put(x, [7, -8], v[0], mode="wrap"),
    "putmask": lambda x, v: np.putmask(x, A > 2, v[0, :2]),
    "place": lambda x, v: np.place(x, A > 2, v[0]),
    "put_along_axis": lambda x, v: np.put_along_axis(x, np.array([[2], [0]]), v[:, :1], 1),
    "put_along_axis all": lambda x, v: np.put_along_axis(x, np.array([4, 0]), v[0, :2], None),
    "fill_diagonal": lambda x, v: np.fill_diagonal(x, v[1, 1]),
    "fill_diagonal again": lambda x, v: np.fill_diagonal(x[:, :2], v[0, :2]),
}


@pytest.mark.parametrize("name", WRITE)
def test_writing_in_place(name, t):
    write = WRITE[name]
    v = tg.tensor(-A, requires_grad=True)
    expected, found = A.copy(), t.clone()
    write(expected, -A)
    write(found, v)
    np.testing.assert_array_equal(found.detach().numpy(), expected)

    def written(x, v):
        y = x * 1
        write(y, v)
        return y

    assert tg.autograd.gradcheck(written, (t, v))
    with pytest.raises(RuntimeError, match="leaf"):
        write(t, v)
    stacked = np.stack([A, 2 * A])
    np.testing.assert_array_equal(
        tg.vmap(written)(stacked, -stacked), np.stack([expected, 2 * expected])
    )
    np.testing.assert_array_equal(tg.jit(written)(A, -A), expected)


@pytest.mark.parametrize("wrap", [True, False])
@pytest.mark.parametrize("shape", [(5, 2), (2, 5), (3, 3, 3)])
def test_diagonals_of_other_shapes(wrap, shape):
    expected, found = np.zeros(shape), tg.zeros(*shape)
    np.fill_diagonal(expected, [1.0, 2.0, 3.0], wrap)
    np.fill_diagonal(found, [1.0, 2.0, 3.0], wrap)
    np.testing.assert_array_equal(found.numpy(), expected)


def test_quantiles_among_nan_and_infinities():
    x = np.array([[1.0, np.nan, 2.0, 4.0], [-np.inf, 1.0, 2.0, np.inf], [np.nan] * 4])
    for q in (0.0, 0.5, [0.25, 1.0]):
        for method in METHODS:
            got = np.quantile(tg.tensor(x), q, axis=1, method=method).numpy()
            some = np.nanquantile(tg.tensor(x), q, axis=1, method=method).numpy()
            assert np.isnan(got[..., 0]).all()
            assert np.isnan(some[..., 2]).all()
            wanted = np.quantile([1.0, 2.0, 4.0], q, method=method)
            np.testing.assert_allclose(some[..., 0], wanted)
            np.testing.assert_array_equal(got[..., 1], some[..., 1])
    ends = np.quantile(tg.tensor(x[1]), [0.0, 0.2, 0.5, 0.9, 1.0])
    assert ends.tolist() == [-np.inf, -np.inf, 1.5, np.inf, np.inf]
    assert np.isnan(np.quantile(tg.tensor([-np.inf, np.inf]), 0.5).item())


def test_what_is_nan_everywhere():
    x = tg.tensor([[np.nan, np.nan], [1.0, np.nan]], requires_grad=True)
    for function in (np.nanmax, np.nanmin, np.nanmedian, np.nanvar, np.nanstd):
        found = function(x, axis=1)
        assert np.isnan(found[0].item())
        (g,) = tg.autograd.grad(found[1], x)
        assert np.isfinite(g.numpy()).all()
    assert np.nanmax(tg.tensor([1, 3, 2])).item() == 3
    assert np.nanmin(tg.tensor([[1.0, np.nan]]), axis=()).numpy()[0, 0] == 1.0


def test_deviations_of_equal_elements_have_no_slope():
    x = tg.tensor([2.0, np.nan, 2.0], requires_grad=True)
    (g,) = tg.autograd.grad(np.nanstd(x), x)
    assert g.tolist() == [0.0, 0.0, 0.0]


def test_no_axes_mean_groups_of_one(t):
    for function in (np.nanvar, np.nanstd):
        assert function(t, axis=()).tolist() == np.zeros((2, 3)).tolist()
    for function in (np.median, np.nanmedian):
        assert function(t, axis=(), keepdims=True).tolist() == A.tolist()
    assert np.quantile(t, [0.2, 0.3], axis=()).tolist() == np.stack([A, A]).tolist()


def test_types_are_those_of_the_tensor():
    x = tg.tensor(A, dtype=tg.float32)
    for function in (np.cov, np.corrcoef, np.nanvar, np.nanmedian, np.nanmax, np.linalg.cond):
        assert function(x).dtype is tg.float32
    for q in (0.5, [0.5], np.float64(0.5)):
        assert np.quantile(x, q).dtype is tg.float32
    i = tg.tensor([[1, 2], [3, 5]])
    assert np.cov(i).tolist() == [[0.5, 1.0], [1.0, 2.0]]
    assert np.percentile(i, 50).item() == 2.5
    assert np.partition(i, 1).dtype is np.nancumsum(i).dtype is tg.int64
    assert np.linspace(i[0], 4.9, 3, dtype=int).tolist() == [[1, 2], [2, 3], [4, 4]]
    assert np.polyint(i[0]).tolist() == [0.5, 2.0, 0.0]
    assert np.unwrap(tg.tensor([0, 3, 0, 5]), period=4).tolist() == [0, -1, 0, 1]
    assert np.unwrap(tg.tensor([0, 3]), period=5).tolist() == np.unwrap([0, 3], period=5).tolist()
    assert np.unwrap(tg.zeros(0)).tolist() == []
    assert np.heaviside(i, 0.5).tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_leading_zeros_of_polynomials_are_kept():
    p = tg.tensor([0.0, 1.0], requires_grad=True)
    product = np.polymul(p, [1.0, 2.0])
    assert product.tolist() == [0.0, 1.0, 2.0]
    product[0].backward()
    assert p.grad.tolist() == [1.0, 0.0]


def test_powers_of_zero_have_derivatives_of_any_order():
    x = tg.tensor([0.0, 2.0], requires_grad=True)
    value = np.vander(x, 4)[0]
    for expected in ([0, 0, 1, 0], [0, 2, 0, 0], [6, 0, 0, 0]):
        slopes = [tg.autograd.grad(v, x, create_graph=True)[0][0] for v in value]
        assert [s.item() for s in slopes] == expected
        value = tg.stack(slopes)


def test_ldexp_of_what_would_overflow():
    x = tg.tensor([1e-300, 2.0**1000, 3.0])
    powers = np.array([1100, -1100, -1074])
    assert np.ldexp(x, powers).tolist() == np.ldexp(x.numpy(), powers).tolist()
    assert np.modf(tg.tensor(np.inf))[0].item() == 0.0
    assert [p.item() for p in np.frexp(tg.tensor(-6.0))] == [-0.75, 3]
    assert np.angle(tg.tensor([-0.0, 0.0, np.nan, -1.0])).tolist()[::3] == [np.pi, np.pi]


def test_insertion_into_nothing_and_of_nothing(t):
    assert np.insert(t, [], [], axis=None).tolist() == np.insert(A, [], [], axis=None).tolist()
    assert np.insert(t[:0], 0, [1.0, 2.0, 3.0], axis=0).tolist() == [[1.0, 2.0, 3.0]]
    assert np.linspace(t[0], 1.0, 0).shape == (0, 3)
    assert np.geomspace(t[0, 0], 1.0, 0).shape == (0,)
    assert np.trim_zeros(t * 0, "b").shape == np.trim_zeros(A * 0, "b").shape


WRONG = {
    "quantile": (lambda t: np.quantile(t, 1.5), ValueError, r"between 0 and 1"),
    "percentile": (lambda t: np.percentile(t, [-1]), ValueError, r"between 0 and 100"),
    "method": (lambda t: np.quantile(t, 0.5, method="x"), ValueError, r"method .*got 'x'"),
    "nothing": (lambda t: np.quantile(t[:0], 0.5, axis=0), ValueError, r"`np.quantile`: no elem"),
    "weights": (
        lambda t: np.quantile(t, 0.5, weights=A), ValueError, r"weights need .*got 'linear'",
    ),
    "negative weights": (
        lambda t: np.quantile(t, 0.5, method="inverted_cdf", weights=-A),
        ValueError, r"must not be negative",
    ),
    "other weights": (
        lambda t: np.quantile(t, 0.5, method="inverted_cdf", weights=[1.0]),
        TypeError, r"`np.quantile`: weights of shape \(1,\)",
    ),
    "cov": (lambda t: np.cov(t.reshape(1, 2, 3)), ValueError, r"\(1, 2, 3\)"),
    "ddof": (lambda t: np.cov(t, ddof=0.5), ValueError, r"ddof is an integer, got 0.5"),
    "fweights": (lambda t: np.cov(t, fweights=[1]), RuntimeError, r"a vector of 3 integers"),
    "aweights": (lambda t: np.cov(t, aweights=[1, 2, -1]), ValueError, r"aweights must not"),
    "partition": (lambda t: np.partition(t, 3), ValueError, r"out of range for 3 elements"),
    "polyadd": (lambda t: np.polyadd(t, t), ValueError, r"vectors of coefficients, .*\(2, 3\)"),
    "polyder": (lambda t: np.polyder(t[0], -1), ValueError, r"not negative, got -1"),
    "polyint": (lambda t: np.polyint(t[0], 3, [1, 2]), ValueError, r"3 integrations, got 2"),
    "polyfit": (lambda t: np.polyfit(t[0], t[0], -1), ValueError, r"degree .*got -1"),
    "polyfit weights": (
        lambda t: np.polyfit(t[0], t[0], 1, w=[1.0]), TypeError, r"takes 3 weights",
    ),
    "vander": (lambda t: np.vander(t), ValueError, r"takes a vector"),
    "geomspace": (lambda t: np.geomspace(t, 0.0), ValueError, r"begins or ends with zero"),
    "linspace": (lambda t: np.linspace(t, 1, -1), ValueError, r"must not be negative, got -1"),
    "choose": (lambda t: np.choose([2], [t, t]), ValueError, r"out of range for 2 choices"),
    "choose mode": (lambda t: np.choose([0], [t], mode="x"), ValueError, r"got 'x'"),
    "ix_": (lambda t: np.ix_(t), ValueError, r"takes vectors, got the shape \(2, 3\)"),
    "rows": (
        lambda t: np.apply_along_axis(np.sum, 1, t[:0]), ValueError, r"no rows in the shape",
    ),
    "axes": (lambda t: np.apply_over_axes(lambda x, d: x[0, 0], t, 0), ValueError, r"keep the dim"),
    "piecewise": (
        lambda t: np.piecewise(t, [A > 1], [1, 2, 3]), ValueError, r"1 or 2 functions, got 3",
    ),
    "trim_zeros": (lambda t: np.trim_zeros(t, "x"), ValueError, r"'f' and 'b', got 'x'"),
    "bins": (lambda t: np.histogram(t, 0), ValueError, r"positive number or edges"),
    "put": (lambda t: np.put(t.detach(), 6, 1.0), IndexError, r"out of range for size 6"),
    "put mode": (lambda t: np.put(t.detach(), 6, 1.0, "x"), ValueError, r"got 'x'"),
    "place": (lambda t: np.place(t.detach(), A > 1, []), ValueError, r"no values .* 5 places"),
    "put_along_axis": (
        lambda t: np.put_along_axis(t.detach(), np.array([0]), 1.0, 1), ValueError, r"as many dim",
    ),
    "diagonal": (lambda t: np.fill_diagonal(t[0].detach(), 1), ValueError, r"got \(3,\)"),
    "lstsq": (lambda t: np.linalg.lstsq(t, A.T), np.linalg.LinAlgError, r"\(2, 3\) and \(3, 2\)"),
    "lstsq of nothing": (
        lambda t: np.linalg.lstsq(t[:0], A[:0]), np.linalg.LinAlgError, r"no equations",
    ),
    "rank": (
        lambda t: np.linalg.matrix_rank(t, tol=1.0, rtol=1.0), ValueError, r"`tol` or `rtol`",
    ),
    "cond": (lambda t: np.linalg.cond(t[0]), np.linalg.LinAlgError, r"got the shape \(3,\)"),
    "tensorsolve": (
        lambda t: np.linalg.tensorsolve(t, A[0]), np.linalg.LinAlgError, r"as many equations",
    ),
    "tensorinv": (lambda t: np.linalg.tensorinv(t, 1), np.linalg.LinAlgError, r"dimension 1"),
    "tensorinv ind": (lambda t: np.linalg.tensorinv(t, 0), ValueError, r"positive, got 0"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments(name, t):
    call, error, message = WRONG[name]
    with pytest.raises(error, match=message):
        call(t)

"""What NumPy's functions refuse on Tensors, and what they give beside a gradient."""

import math

import numpy as np
import pytest
import scipy.special

import tapegrad as tg
from tapegrad.compat.autograd import make_jvp

pytestmark = pytest.mark.tapegrad_only("PyTorch does not answer NumPy's functions")


@pytest.fixture
def t():
    return tg.tensor([[1.5, 0.5], [0.25, 2.0]], requires_grad=True)


@pytest.fixture
def v():
    return tg.tensor([0.5, 0.25, 0.75], requires_grad=True)


# (call, what the message says)
REFUSED = {
    "out": (lambda t: np.sin(t, out=np.ones((2, 2))), r"`np.sin` into an array .*history"),
    "out of a reduction": (
        lambda t: np.add.reduce(t, out=np.ones(2)), r"`np.add.reduce` into an array",
    ),
    "out is both": (
        lambda t: np.modf(t.detach(), out=(t.detach(), np.ones((2, 2)))), r"got both",
    ),
    "out of another type": (
        lambda t: np.sin(t, out=tg.zeros(2, 2, dtype=tg.int64)), r"`np.sin` from float64 to int64",
    ),
    "out of a function": (lambda t: np.sum(t, out=np.ones(())), r"`np.sum`: `out=` .*returned"),
    "out by position": (lambda t: np.sum(t, 0, None, np.ones(2)), r"`np.sum`: `out=`"),
    "out of an index": (lambda t: np.argmax(t, 0, np.ones(2, int)), r"`np.argmax`: `out=`"),
    "where": (lambda t: np.sin(t, where=np.eye(2) > 0), r"`np.sin`: `where=` .*np.where"),
    "initial of a ufunc": (
        lambda t: np.logaddexp.reduce(t, initial=3), r"`np.logaddexp.reduce`: `initial=`.*combine",
    ),
    "pad of a dictionary": (
        lambda t: np.pad(t, 1, constant_values={0: (t[0, 0], 1)}), r"got a Tensor in it",
    ),
    "dtype": (lambda t: np.sin(t, dtype=np.int32), r"`np.sin`: `dtype=` .*`t.to\(dtype\)`"),
    "casting": (lambda t: np.add(t, t, casting="unsafe"), r"`np.add`: `casting=`"),
    "axes": (lambda t: np.matmul(t, t, axes=[(0, 1)] * 3), r"`np.matmul`: `axes=` .*leave it out"),
    "reduceat": (lambda t: np.hypot.reduceat(t, [0, 1]), r"`np.hypot.reduceat` is not supported"),
    "reduceat of fractions": (
        lambda t: np.add.reduceat(t, [0.5]), r"vector of integers .*\(2, 2\) and \(1,\) of float64",
    ),
    "reduceat dtype": (lambda t: np.add.reduceat(t, [0], dtype=int), r"`dtype=`"),
    "at": (lambda t: np.hypot.at(t, [0], 1.0), r"`np.hypot.at` is not supported"),
    "at with a Tensor": (lambda t: np.add.at(np.ones((2, 2)), [0], t), r"`np.add.at` is not"),
    "reduce": (lambda t: np.subtract.reduce(t), r"`np.subtract.reduce` is not supported"),
    "accumulate": (np.hypot.accumulate, r"`np.hypot.accumulate` is not"),
    "outer of matrices": (lambda t: np.matmul.outer(t, t), "outer is not allowed"),
    "no rule": (lambda t: np.spacing(t), r"`np.spacing` is not supported .*detach"),
    "no rule in scipy": (scipy.special.kolmogorov, r"`scipy.special.kolmogorov` is not"),
    "no handler": (lambda t: np.roots(t[0]), r"`np.roots` is not supported .*detach"),
    "no handler in linalg": (
        lambda t: np.linalg.eigvals(t), r"`np.linalg.eigvals` is not supported",
    ),
    "copyto": (lambda t: np.copyto(np.ones((2, 2)), t), r"`np.copyto` is not supported"),
    "full_like of an array": (lambda t: np.full_like(np.ones((2, 2)), t), r"`np.copyto` is not"),
    "reshape A": (lambda t: np.reshape(t, 4, order="A"), r"order 'C' or 'F', got 'A'"),
    "pad mode": (lambda t: np.pad(t, 1, mode="empty"), r"`np.pad` .*'constant'.*got 'empty'"),
    "pad option": (lambda t: np.pad(t, 1, mode="mean", end_values=1), r"'end_values'.*'mean'"),
    "pad odd": (lambda t: np.pad(t, 1, mode="wrap", reflect_type="odd"), r"reflect_type"),
    "nan_to_num in place": (lambda t: np.nan_to_num(t, copy=False), r"`copy=False`"),
    "in place": (
        lambda t: np.median(t, overwrite_input=True), r"`np.median`: `overwrite_input=`",
    ),
    "quantile out": (lambda t: np.quantile(t, 0.5, out=np.ones(())), r"`np.quantile`: `out="),
    "polyfit points": (lambda t: np.polyfit(t, t, 1), r"points and as many values.*\(2, 2\)"),
    "poly of a matrix": (lambda t: np.poly(t), r"zeros in a vector, got the shape \(2, 2\)"),
    "piecewise of integers": (
        lambda t: np.piecewise(t > 1, [t > 1], [lambda x: t[t > 1]]), r"gives tapegrad.bool, which",
    ),
    "histogram bins": (lambda t: np.histogram(t, "auto"), r"number of bins or .*got 'auto'"),
    "putmask of an array": (
        lambda t: np.putmask(np.ones((2, 2)), t > 1, t), r"`np.putmask` is not supported",
    ),
    "cov of fractions": (
        lambda t: np.cov(t, fweights=[0.5, 1.5]), r"fweights are integers, got fractions",
    ),
    "copyto of complex": (
        lambda t: np.copyto(t.detach(), 1j * np.ones((2, 2))), r"complex128 to float64 is not",
    ),
    "average weights": (lambda t: np.average(t, weights=[1.0, 2.0]), r"weights of shape \(2,\)"),
    "take of floats": (lambda t: np.take(t, [0.5]), r"must be integers, got float64"),
    "gradient spacings": (lambda t: np.gradient(t, 1, 2, 3), r"each of the 2 axes, got 3"),
    "qr mode": (lambda t: np.linalg.qr(t, mode="raw"), r"got 'raw'"),
    "a foreign operand": (lambda t: np.add(t, object()), r"returned NotImplemented"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name, t):
    call, message = REFUSED[name]
    with pytest.raises(TypeError, match=message):
        call(t)


# (call, error, message): arguments that make no sense.
WRONG = {
    "out of another shape": (
        lambda t: np.sin(t, out=tg.zeros(2)), ValueError, r"shape \(2, 2\) does not fit .*\(2,\)",
    ),
    "out of a reduction": (
        lambda t: np.sum(t, axis=0, out=tg.zeros(2, 2)), ValueError, r"`np.sum`: a result of shape",
    ),
    "out is a leaf": (lambda t: np.sin(t, out=t), RuntimeError, r"a leaf that requires grad"),
    "coefficients in a matrix": (
        lambda t: np.polynomial.Polynomial(t), RuntimeError, r"`np.polynomial.Polynomial` makes an",
    ),
    "coefficients along an array": (
        lambda t: np.polynomial.chebyshev.chebval(np.ones(2), t[0]), RuntimeError, r"chebvander",
    ),
    "interp period": (lambda t: np.interp(t, [0], [1], period=0), ValueError, r"must not be zero"),
    "pad statistics": (
        lambda t: np.pad(t, 1, mode="mean", stat_length=0), ValueError, r"got 0 of 2",
    ),
    "polyfit cov": (
        lambda t: np.polyfit(t[0], t[0], 1, cov=True), ValueError, r"2 points leave nothing",
    ),
    "histogramdd": (lambda t: np.histogramdd(t, [2, 2, 2]), ValueError, r"each of 2 .*got 3 and 2"),
    "where alone": (lambda t: np.max(t, where=np.eye(2) > 0), ValueError, r"need `initial=`"),
    "axis": (lambda t: np.sum(t, axis=2), IndexError, r"dimension 2 is out of range"),
    "squeeze": (lambda t: np.squeeze(t, 0), ValueError, r"only axes of size 1 .*\(2, 2\)"),
    "expand_dims": (lambda t: np.expand_dims(t, (0, 0)), ValueError, r"an axis appears twice"),
    "split": (lambda t: np.split(t, 3), ValueError, r"2 elements cannot be divided into 3"),
    "array_split": (lambda t: np.array_split(t, 0), ValueError, r"positive number of pieces"),
    "dsplit": (lambda t: np.dsplit(t, 2), ValueError, r"at least 3 dimensions.*\(2, 2\)"),
    "where": (lambda t: np.where(t > 0, t), ValueError, r"both `x` and `y`"),
    "select": (lambda t: np.select([], [t]), ValueError, r"got 0 and 1"),
    "select lengths": (lambda t: np.select([t > 0], [t, t]), ValueError, r"got 1 and 2"),
    "diag": (lambda t: np.diag(t.reshape(1, 2, 2)), ValueError, r"a vector or a matrix"),
    "max of nothing": (lambda t: np.max(t[:0], axis=0), ValueError, r"no elements to choose"),
    "median of nothing": (lambda t: np.median(t[:0]), ValueError, r"no elements to choose from"),
    "diff order": (lambda t: np.diff(t, -1), ValueError, r"must not be negative, got -1"),
    "diff of a number": (lambda t: np.diff(t[0, 0]), ValueError, r"at least one dimension"),
    "cumulative_sum": (lambda t: np.cumulative_sum(t), ValueError, r"needs an `axis`"),
    "accumulate": (lambda t: np.add.accumulate(t, None), ValueError, r"along one axis"),
    "take": (lambda t: np.take(t, 4), IndexError, r"out of range for size 4"),
    "take mode": (lambda t: np.take(t, 4, mode="x"), ValueError, r"'raise', 'wrap' or 'clip'"),
    "take_along_axis": (
        lambda t: np.take_along_axis(t, np.array([0]), 1), ValueError, r"as many dimensions",
    ),
    "rot90": (lambda t: np.rot90(t, axes=(0, -2)), ValueError, r"two different axes"),
    "block": (lambda t: np.block([[t], t]), ValueError, r"nested equally deep"),
    "meshgrid": (lambda t: np.meshgrid(t[0], indexing="x"), ValueError, r"got 'x'"),
    "windows": (
        lambda t: np.lib.stride_tricks.sliding_window_view(t, 3, 0), ValueError, r"does not fit",
    ),
    "windows without axes": (
        lambda t: np.lib.stride_tricks.sliding_window_view(t, 2), ValueError, r"one axis for each",
    ),
    "convolve": (lambda t: np.convolve(t, t), ValueError, r"takes vectors, got \(2, 2\)"),
    "convolve nothing": (lambda t: np.convolve(t[0], []), ValueError, r"cannot be empty"),
    "convolve mode": (lambda t: np.convolve(t[0], t[0], "x"), ValueError, r"got 'x'"),
    "gradient": (lambda t: np.gradient(t[:1], axis=0), ValueError, r"at least 2 elements .* got 1"),
    "gradient points": (lambda t: np.gradient(t, [1.0], axis=0), ValueError, r"2 coordinates"),
    "interp": (lambda t: np.interp(t, [0, 1], [0]), ValueError, r"\(2,\) and \(1,\)"),
    "linalg.outer": (lambda t: np.linalg.outer(t, t), ValueError, r"takes two vectors"),
    "linalg.norm": (lambda t: np.linalg.norm(t, "fro", axis=0), ValueError, r"'fro' is not one of"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments(name, t):
    call, error, message = WRONG[name]
    with pytest.raises(error, match=message):
        call(t)


def test_an_array_takes_in_only_what_has_no_history(v):
    total = np.ones(3)
    with pytest.raises(TypeError, match=r"array \+= t.*would lose .* `result = array \+ t`"):
        total += v
    assert total.tolist() == [1.0, 1.0, 1.0]
    before = total
    total += v.detach()
    assert total is before
    assert total.tolist() == [1.5, 1.25, 1.75]
    for write in (lambda: np.array([v, v]), lambda: np.asarray(v), lambda: np.full((2, 3), v)):
        with pytest.raises(RuntimeError, match="detach"):
            write()
    with pytest.raises(RuntimeError, match="detach"):
        total[:] = v


def test_options_that_say_what_is_usual_are_taken(t):
    assert np.sin(t, where=True, dtype=None, casting="same_kind").requires_grad
    assert np.sum(t, out=None, initial=np._NoValue, keepdims=np._NoValue).shape == ()
    assert np.sum(t, None, None, None, False).requires_grad
    assert np.copy(t, order="F").requires_grad
    single = np.multiply(t, 2, dtype=np.float32)
    assert single.dtype is tg.float32
    assert single.requires_grad
    assert np.concatenate([t, t], 0, None, casting="same_kind").requires_grad


def test_other_classes_are_asked_too(v):
    class Other:
        def __array_ufunc__(self, *args, **kwargs):
            return "theirs"

        def __array_function__(self, *args, **kwargs):
            return "theirs"

    assert np.add(v, Other()) == "theirs"
    assert np.dot(v, Other()) == "theirs"


def test_results_that_are_no_arrays(t):
    assert np.shape(t) == (2, 2)
    assert (np.ndim(t), np.size(t), np.size(t, 0)) == (2, 4, 2)
    assert np.allclose(t, t.detach().numpy()) is True
    assert np.array_equal(t, t + 1) is False
    assert np.result_type(t, np.float32) == np.float64
    assert isinstance(np.split(t, 2), list)
    for found in (np.argmax(t, axis=0), np.argsort(t), np.isclose(t, 1), np.any(t > 1), t == 1):
        assert type(found) is tg.Tensor
        assert not found.requires_grad
    assert [type(x) for x in np.nonzero(t > 1)] == [tg.Tensor, tg.Tensor]
    assert np.zeros_like(t, dtype=tg.float32).dtype is tg.float32


def test_the_value_that_fills_has_a_gradient(v):
    np.full_like(tg.zeros(2, 2), v[0]).sum().backward()
    assert v.grad.tolist() == [4.0, 0.0, 0.0]


@pytest.mark.parametrize("other", [np.ones(3, np.float32), np.arange(3), np.float64(2), [1, 2, 3]])
@pytest.mark.parametrize("kind", [tg.float32, tg.float64], ids=str)
def test_dtypes_are_those_of_the_operators(other, kind):
    t = tg.tensor([1.0, 2.0, 3.0], dtype=kind, requires_grad=True)
    as_operand = np.asarray(other) if isinstance(other, list) else other
    for ufunc, operator in ((np.add, t + as_operand), (np.multiply, t * as_operand)):
        assert ufunc(t, other).dtype is ufunc(other, t).dtype is operator.dtype
        assert ufunc(other, t).tolist() == operator.tolist()


def test_integers_become_floats_where_the_operation_makes_floats():
    i = tg.tensor([[1, 2], [3, 4]])
    for function in (np.sin, np.mean, np.var, np.std, np.linalg.norm, np.median, np.average):
        assert function(i).dtype is tg.float64
        np.testing.assert_allclose(function(i).numpy(), function(i.numpy()), rtol=1e-15)
    for function in (np.sum, np.prod, np.cumsum, np.max, np.sort, np.diff):
        assert function(i).dtype is tg.int64
        assert function(i).tolist() == function(i.numpy()).tolist()


def test_conventions_at_ties_and_bounds():
    def slope(function):
        x = tg.tensor([1.0, 1.0], requires_grad=True)
        return tg.autograd.grad(function(x), x)[0].tolist()

    assert slope(np.max) == slope(np.min) == [0.5, 0.5]
    assert slope(lambda x: np.maximum(x[0], x[1])) == [0.5, 0.5]
    assert slope(lambda x: np.fmax(x[0], x[1])) == slope(lambda x: np.fmin(x[0], x[1])) == [1, 0]
    assert slope(lambda x: np.clip(x, 1, 1).sum()) == [1.0, 1.0]
    assert slope(lambda x: np.linalg.norm(x - 1)) == [0.0, 0.0]


def test_not_a_number():
    nan = float("nan")
    x = tg.tensor([nan, 1.0, nan], requires_grad=True)
    other = np.array([1.0, nan, nan])
    for function in (np.fmax, np.fmin, np.maximum, np.copysign):
        np.testing.assert_array_equal(
            function(x, other).detach().numpy(), function(x.detach().numpy(), other)
        )
    assert np.isnan(np.median(x).item())
    (g,) = tg.autograd.grad(np.fmax(x, other).sum(), x)
    assert g.tolist() == [0.0, 1.0, 1.0]
    (g,) = tg.autograd.grad(np.nansum(x), x)
    assert g.tolist() == [0.0, 1.0, 0.0]


def test_copysign_of_zeros_and_both_operands(v):
    sign = tg.tensor([-0.0, 0.0, -2.0], requires_grad=True)
    y = np.copysign(v, sign)
    assert y.tolist() == [-0.5, 0.25, -0.75]
    y.sum().backward()
    assert v.grad.tolist() == [-1.0, 1.0, -1.0]
    assert sign.grad.tolist() == [0.0, 0.0, 0.0]
    assert np.copysign([1.0, 2.0, 3.0], sign).requires_grad


SCIPY = {
    "expit": "sigmoid", "erf": "erf", "erfc": "erfc", "erfcx": "special.erfcx",
    "erfinv": "erfinv", "gammaln": "lgamma", "psi": "digamma", "logit": "logit",
    "log_expit": "", "exp2": "exp2", "expm1": "expm1", "log1p": "log1p", "cbrt": "",
    "entr": "special.entr", "i0": "i0", "i1": "special.i1", "i0e": "special.i0e",
    "i1e": "special.i1e", "ndtr": "special.ndtr", "log_ndtr": "special.log_ndtr",
    "xlogy": "xlogy", "xlog1py": "special.xlog1py",
}  # fmt: skip


@pytest.mark.parametrize("name", SCIPY)
def test_ufuncs_of_scipy(name, v):
    ufunc = getattr(scipy.special, name)
    operands = (v,) * ufunc.nin
    thing = tg
    for step in SCIPY[name].split(".") if SCIPY[name] else ():
        thing = getattr(thing, step, None)
    if thing is None:
        with pytest.raises(TypeError, match=rf"`scipy.special.{name}` is not supported"):
            ufunc(*operands)
        return
    expected = ufunc(*[x.detach().numpy() for x in operands])
    np.testing.assert_allclose(ufunc(*operands).detach().numpy(), expected, rtol=1e-13)
    assert tg.autograd.gradcheck(ufunc, operands)


def _add_to(t):
    total = np.zeros(3)
    total += t
    return total * t


def _multiply_by(t):
    total = np.ones(3)
    total *= t[0]
    return total


def _write(t):
    out = np.zeros(3)
    np.multiply(t, t, out=out)
    return out


def _dual(f, x):
    with tg.autograd.forward_ad.dual_level():
        return f(tg.autograd.forward_ad.make_dual(tg.tensor(x), tg.ones(3)))


def _strategy(f, x):
    functional = tg.autograd.functional
    return functional.jacobian(f, tg.tensor(x), vectorize=True, strategy="forward-mode")


WAYS = {
    "jvp": lambda f, x: tg.jvp(f, (x,), (np.ones(3),)),
    "jacfwd": lambda f, x: tg.jacfwd(f)(x),
    "func.jvp": lambda f, x: tg.func.jvp(f, (tg.tensor(x),), (tg.ones(3),)),
    "forward_ad": _dual,
    "functional": _strategy,
    "compat": lambda f, x: make_jvp(f)(x)(np.ones(3)),
    "vmap": lambda f, x: tg.vmap(f)(np.stack([x, x])),
    "grad of jvp": lambda f, x: tg.grad(lambda q: tg.jvp(f, (q,), (q,))[1].sum())(x),
}


@pytest.mark.parametrize("f", [_add_to, _multiply_by, _write])
@pytest.mark.parametrize("way", WAYS)
def test_an_array_takes_in_nothing_that_a_transform_follows(f, way):
    with pytest.raises((RuntimeError, TypeError), match="into an array"):
        WAYS[way](f, np.array([1.0, 2.0, 3.0]))


def test_an_array_takes_in_what_is_constant_in_forward_mode():
    def f(t):
        total, order = np.zeros(3), np.zeros(3, int)
        total += tg.stop_gradient(t)
        order += np.argsort(t)
        return total * t[order]

    x = np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(tg.jacfwd(f)(x), np.diag(x))
    np.testing.assert_array_equal(tg.jacrev(f)(x), np.diag(x))


@pytest.mark.parametrize("function", [np.zeros_like, np.ones_like, np.empty_like])
def test_arrays_like_a_tensor(function, t):
    for x in (t, t.detach()):
        found = function(x)
        assert (type(found), found.shape, found.dtype) == (tg.Tensor, (2, 2), tg.float64)
        assert not found.requires_grad
    assert function(t, np.int64, shape=3).shape == (3,)
    assert function(t, dtype=tg.float32).dtype is tg.float32
    rows = tg.vmap(lambda row: row + 0 * function(row))(np.eye(2))
    np.testing.assert_array_equal(rows, np.eye(2))
    if function is not np.empty_like:
        assert function(t).tolist() == function(np.ones((2, 2))).tolist()
    assert np.empty_like(prototype=t).shape == (2, 2)


def test_what_is_made_like_a_tensor_can_be_filled():
    def f(x):
        y = np.empty_like(x)
        y[0], y[1:] = x[1], x[:-1] ** 2
        return y

    expected = [[0.0, 1.0, 0.0], [2.0, 0.0, 0.0], [0.0, 4.0, 0.0]]
    for transform in (tg.jacobian, tg.jacfwd, tg.jacrev):
        np.testing.assert_array_equal(transform(f)(np.array([1.0, 2.0, 3.0])), expected)


def test_a_dtype_may_have_any_of_its_names(v):
    for kind in ("f4", np.float32, tg.float32, np.dtype("float32")):
        for found in (
            np.concatenate([v, v], dtype=kind), np.stack([v, v], dtype=kind),
            np.full_like(v, 1.0, dtype=kind), np.sum(v, dtype=kind), np.zeros_like(v, dtype=kind),
        ):  # fmt: skip
            assert found.dtype is tg.float32


def test_pythons_own_rounding(v):
    assert round(v * 10).tolist() == [5.0, 2.0, 8.0]
    assert round(v, 1).tolist() == np.round([0.5, 0.25, 0.75], 1).tolist()
    for x in (2.75, -2.75, 3.0):
        for function in (math.trunc, math.floor, math.ceil):
            assert function(tg.tensor(x)) == function(x)
            assert type(function(tg.tensor(x))) is int
    np.testing.assert_array_equal(tg.jacobian(lambda x: x * round(x))(np.array([1.2])), [[1.0]])
    with pytest.raises(RuntimeError, match="would lose its gradient"):
        tg.grad(lambda x: x * math.trunc(x))(1.5)

"""Methods as users of arrays call them, on values inside of a function that is differentiated."""

import pickle

import numpy as np
import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("methods of NumPy's arrays")

A = np.random.default_rng(3).standard_normal((3, 4))
V = np.array([0.5, -1.0, 2.0])


def filled(x):
    y = x.copy()
    y.fill(2.0)
    return y * x


# name: (the call, its argument); the array itself says what is right.
CALLS = {
    "astype": (lambda x: x.astype(np.float64), A),
    "astype to integers": (lambda x: x.astype(int) * x, 3 * A),
    "astype of a name": (lambda x: x.astype("float64", copy=False), A),
    "copy": (lambda x: x.copy(), A),
    "fill": (filled, A),
    "dot of vectors": (lambda x: x.dot(x), V),
    "dot of a matrix": (lambda x: x.dot(np.arange(4.0)), A),
    "dot of matrices": (lambda x: x.dot(np.ones((4, 2))), A),
    "dot of a number": (lambda x: x.dot(2.0), A),
    "T": (lambda x: x.T, A),
    "transpose": (lambda x: x.transpose(), A),
    "transpose of a tuple": (lambda x: x[None].transpose((2, 0, 1)), A),
    "transpose of numbers": (lambda x: x[None].transpose(2, 0, 1), A),
    "mean": (lambda x: x.mean(axis=1, keepdims=True), A),
    "sum": (lambda x: x.sum(axis=(0, 1)), A),
    "std": (lambda x: x.std(axis=0, ddof=0), A),
    "prod": (lambda x: x.prod(axis=0), A),
    "max": (lambda x: x.max(), A),
    "ravel": (lambda x: x.ravel("F"), A),
    "flatten": (lambda x: x.flatten("F"), A),
    "reshape": (lambda x: x.reshape(2, -1), A),
    "reshape in another order": (lambda x: x.reshape((2, 6), order="F"), A),
    "round": (lambda x: x.round(1) * x, A),
    "clip": (lambda x: x.clip(-0.5, None), A),
    "cumsum": (lambda x: x.cumsum(), A),
    "cumsum of an axis": (lambda x: x.cumsum(axis=1), A),
    "cumprod": (lambda x: x.cumprod(), A),
    "diagonal": (lambda x: x.diagonal(1), A),
    "trace": (lambda x: x[:, :3].trace(), A),
    "swapaxes": (lambda x: x.swapaxes(0, 1), A),
    "squeeze": (lambda x: x[None].squeeze(axis=0), A),
    "any": (lambda x: x.any() * x, A),
    "all of an axis": (lambda x: x.all(axis=0) * x, A),
    "argmax": (lambda x: x[x.argmax(axis=0), np.arange(4)], A),
    "repeat": (lambda x: x.repeat(2, axis=0), A),
    "take": (lambda x: x.take([0, 5]), A),
    "take of an axis": (lambda x: x.take([0, 1], axis=1), A),
    "compress": (lambda x: x.compress([True, False, True], axis=0), A),
    "searchsorted": (lambda x: np.sort(x).searchsorted(0.1) * x, V),
    "conj": (lambda x: x.conj() + x.conjugate(), A),
    "dtype": (lambda x: x * (x.dtype == np.float64) * (x.dtype == float), A),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_method_gives_what_the_array_gives(name):
    f, x = CALLS[name]
    value, back = tg.vjp(f, x)
    np.testing.assert_allclose(value, f(x.copy()), rtol=1e-14)
    np.testing.assert_allclose(tg.vmap(f)(x[None])[0], value, rtol=1e-14)
    weights = np.cos(np.arange(float(np.size(value)))).reshape(np.shape(value))
    along = np.sin(np.arange(float(x.size))).reshape(x.shape)
    step = 1e-6 * along
    slope = np.sum(weights * (f(x + step) - f(x - step))) / 2e-6
    np.testing.assert_allclose(np.sum(back(weights)[0] * along), slope, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(np.sum(tg.jvp(f, (x,), (along,))[1] * weights), slope, atol=1e-7)


REFUSED = {
    "item": (lambda x: x.sum().item() * x, RuntimeError, "would lose its gradient"),
    "tolist": (lambda x: x.tolist(), RuntimeError, "would lose its gradient"),
    "fill of the argument": (lambda x: x.fill(2.0), RuntimeError, "the caller's"),
    "max with PyTorch's argument": (lambda x: np.exp(x.max(dim=1)), TypeError, r"two Tensors.*`np"),
    "sort with PyTorch's": (lambda x: np.exp(x.sort(descending=True)), TypeError, r"take `\.val"),
    "sort of the argument": (lambda x: x.sort(), RuntimeError, "the caller's"),
    "flat": (lambda x: x.flat[0], AttributeError, r"no `flat`.*use `x\.reshape\(-1\)`"),
    "partition": (lambda x: x.partition(1), AttributeError, r"use `np\.partition\(x, k\)`"),
    "tobytes": (lambda x: x.tobytes(), AttributeError, r"use `x\.detach\(\)\.numpy\(\)`"),
    "nonsense": (lambda x: x.nonsense, AttributeError, "'Tensor' object has no attribute 'nons"),
    "astype": (lambda x: x.astype(str), TypeError, "cannot hold NumPy's"),
    "casting": (lambda x: x.astype(int, casting="safe"), TypeError, "casting='safe'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_as_for_arrays_says_so(name):
    f, problem, match = REFUSED[name]
    with pytest.raises(problem, match=match):
        tg.grad(lambda x: np.sum(f(x)))(A)


def test_a_type_is_the_type_of_numpy():
    assert tg.float64 == np.float64
    assert tg.float64 == np.dtype("f8")
    assert tg.float32 != np.float64
    assert np.dtype("i8") == tg.int64
    assert {tg.float64: 1}[np.dtype("f8")] == 1
    assert tg.float64 != None  # noqa: E711
    assert tg.float64 != 8


def _in_place(change):
    def function(x):
        k = x.copy()
        change(k)
        return k

    return function


# Methods that mean another thing in PyTorch; what they give for arrays holds under transforms.
OF_ARRAYS = {
    "std()": lambda x: x.std(),
    "std(0)": lambda x: x.std(0),
    "std(axis)": lambda x: x.std(axis=(0, 1), keepdims=True),
    "std(ddof)": lambda x: x.std(1, ddof=1),
    "std(ddof=0)": lambda x: x.std(ddof=0),
    "var()": lambda x: x.var(),
    "var(1)": lambda x: x.var(1),
    "var(ddof)": lambda x: x.var(axis=0, ddof=1),
    "max(0)": lambda x: x.max(0),
    "max(axis)": lambda x: x.max(axis=1, keepdims=True),
    "min(1)": lambda x: x.min(1),
    "min(-1)": lambda x: x.min(axis=-1),
    "sort()": _in_place(lambda k: k.sort()),
    "sort(0)": _in_place(lambda k: k.sort(0)),
    "sort(axis)": _in_place(lambda k: k.sort(axis=0)),
    "sort(kind)": _in_place(lambda k: k.sort(kind="stable")),
    "put": _in_place(lambda k: k.put([0, 5], k[1, :2] + k[0, 0])),
    "put(array)": _in_place(lambda k: k.put(np.arange(3), 2.0 * k[0, 1:])),
    "put(mode)": _in_place(lambda k: k.put([-1, 13], k[0, :2], mode="wrap")),
    "trace(offset)": lambda x: x.trace(1),
    "argsort(kind)": lambda x: np.take_along_axis(x, x.argsort(kind="stable"), 1),
    "argsort(axis)": lambda x: x[x.argsort(0)[:, 1]],
    "repeat(2)": lambda x: x.repeat(2),
    "repeat(2, 1)": lambda x: x.repeat(2, 1),
    "repeat(list)": lambda x: x.repeat([1, 2, 0], axis=0),
    "transpose(0, 1)": lambda x: x.transpose(0, 1) * np.arange(4.0),
    "transpose(1, 0)": lambda x: x.transpose(1, 0) * np.arange(3.0),
    "transpose(-1, 0)": lambda x: x.transpose(-1, 0),
    "nonzero()": lambda x: x[(x > 1.0).nonzero()],
    "flatten()": lambda x: (lambda k: (k.flatten().fill(0.0), k)[1])(x * 1.0),
    "> list": lambda x: x * (x[0] > [0.5, 1.0, 1.5, 2.0]),
    "== list": lambda x: x[0] * (np.round(x[0]) == [1.0, 2.0, 3.0, 0.0]),
    "- list": lambda x: [1.0, 2.0, 3.0, 4.0] - x * [0.5, 1.0, 1.5, 2.0],
}


def test_two_dimensions_are_not_numpys_order_of_three():
    f = lambda x: x.transpose(1, 2).sum()
    with pytest.raises(ValueError, match=r"write `swapaxes\(1, 2\)`.*`tapegrad\.func`"):
        tg.grad(f)(np.ones((2, 3, 4)))
    assert tg.func.grad(f)(tg.ones(2, 3, 4)).shape == (2, 3, 4)


B = np.array([[0.7, 2.0, 1.3, 0.2], [1.9, 0.4, 2.2, 1.1], [0.9, 1.4, 0.1, 2.4]])


@pytest.mark.parametrize("name", OF_ARRAYS)
def test_methods_of_arrays_under_transforms(name):
    f, v = OF_ARRAYS[name], np.cos(B)
    expected = f(B)
    slope = (f(B + 1e-6 * v) - f(B - 1e-6 * v)) / 2e-6
    y, back = tg.vjp(f, B)
    np.testing.assert_allclose(y, expected, rtol=1e-13)
    np.testing.assert_allclose(np.sum(back(np.ones_like(y))[0] * v), np.sum(slope), atol=1e-8)
    y, t = tg.jvp(f, (B,), (v,))
    np.testing.assert_allclose(y, expected, rtol=1e-13)
    np.testing.assert_allclose(t, slope, atol=1e-8)
    np.testing.assert_allclose(tg.linearize(f, B)[0], expected, rtol=1e-13)
    if name not in ("nonzero()",):  # finds another number of elements in each example
        np.testing.assert_allclose(tg.vmap(f)(np.stack([B, B]))[1], expected, rtol=1e-13)
        np.testing.assert_allclose(tg.jit(f)(B), expected, rtol=1e-13)


def test_outside_of_transforms_and_in_those_of_func_methods_are_pytorchs():
    x = tg.tensor(B)
    for t in (x, x.detach().requires_grad_()):
        np.testing.assert_allclose(t.std().item(), B.std(ddof=1))
        assert t.max(0).values.shape == (4,)
        assert t.repeat(2, 1).shape == (6, 4)
        assert t.transpose(0, 1).shape == (4, 3)
        assert t.sort().values.shape == t.shape
        assert t.put(tg.tensor([0]), tg.ones(1))[0, 0] == 1.0
        assert t[0, 0] == B[0, 0]
    assert tg.func.vjp(lambda x: x.repeat(2, 1), x)[0].shape == (6, 4)
    np.testing.assert_allclose(tg.func.vmap(lambda x: x.var())(x).numpy(), B.var(1, ddof=1))
    np.testing.assert_allclose(tg.func.jvp(lambda x: x.std(), (x,), (x,))[0].item(), B.std(ddof=1))


def test_lists_are_operands_where_tensors_stand_for_arrays():
    with pytest.raises(TypeError, match="a NumPy array or a number, got list"):
        tg.ones(2) + [1.0, 2.0]
    with pytest.raises(TypeError, match="a NumPy array or a number, got list"):
        tg.grad(lambda x: np.sum(x + ["a", "b"]))(np.ones(2))
    with pytest.raises(TypeError, match="a NumPy array or a number, got list"):
        tg.func.grad(lambda x: (x + [1.0, 2.0]).sum())(tg.ones(2))


def test_size_is_the_number_of_elements():
    x = np.ones((2, 3))
    mean = lambda v: v.sum() / v.size + (np.zeros(v.size) + v.ravel()).sum() * v.size(0)
    for grad in (
        tg.grad(mean),
        tg.jit(tg.grad(mean)),
        lambda v: tg.vmap(tg.grad(mean))(v[None])[0],
    ):
        np.testing.assert_allclose(grad(x), np.full((2, 3), 1 / 6 + 2))
    t = tg.zeros(2, 3)
    assert (t.size, t.size + 1, list(range(t.size))[-1]) == (6, 7, 5)
    assert isinstance(t.size, int)
    assert pickle.loads(pickle.dumps(t.size)).shape == (2, 3)


def pivoted(x):
    a, m = np.outer(x, x), np.argmax(x)
    a[[0, m]] = a[[m, 0]]
    return np.sum(a * np.arange(9.0).reshape(3, 3))


def halves(x):
    return x[x > 0.5].astype(float).sum()


AS_ARRAYS = {
    "product with a list": lambda x: x @ [1, 2, 3],
    "product of a list": lambda x: [1, 2, 3] @ (x * x),
    "matrix and a list": lambda x: (np.outer(x, x) @ [[1], [2], [3]]).sum(),
    "dot with a list": lambda x: x.dot([1, 2, 3]),
    "mean of truth values": lambda x: (x > 0.5).mean() * x[0],
    "mean of places": lambda x: np.argsort(x).mean() * x[1],
    "std of truth values": lambda x: (x > 0.5).std() * x.sum(),
    "imaginary part": lambda x: (x.imag + x.real).sum(),
    "take, clipped": lambda x: x.take([7], mode="clip").sum(),
    "places in a list": lambda x: x[[0, np.argmax(x)]].sum(),
    "places in a list, and a number": lambda x: np.outer(x, x)[[0, np.argmax(x)], 1].sum(),
    "places of rows": lambda x: np.outer(x, x)[range(3), [np.argmin(r) for r in np.diag(x)]].sum(),
    "rows exchanged": pivoted,
    "what a mask chooses, in another type": halves,
}


@pytest.mark.parametrize("name", AS_ARRAYS)
def test_programs_of_arrays(name):
    f, x = AS_ARRAYS[name], np.array([0.3, 0.9, 0.6])
    steps = 1e-6 * np.eye(3)
    wanted = [(f(x + s) - f(x - s)) / 2e-6 for s in steps]
    gradient = tg.grad(f)
    for found in (gradient(x), tg.jit(gradient)(x), tg.vmap(gradient)(np.stack([x, x]))[1]):
        np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-9)


def test_elements_that_a_mask_chose_are_not_written_into():
    def f(x):
        v = x[x > 0.5]
        v[...] = 1.0
        return v.sum()

    with pytest.raises(RuntimeError, match=r"`x\[mask\]\[...\] = value`: how many elements"):
        tg.jit(f)(np.array([0.3, 0.9]))


class Column:
    """What pandas and polars have: numbers beside a Tensor, and operators that give way to it."""

    __pandas_priority__ = 3000

    def __init__(self, values):
        self.values = np.asarray(values)

    def to_numpy(self):
        return self.values

    def __array__(self, dtype=None, copy=None):
        return self.values

    def __mul__(self, other):
        if getattr(other, "__pandas_priority__", 0) > self.__pandas_priority__:
            return NotImplemented
        raise AssertionError("the column took the Tensor for an array")


def test_columns_of_tables_are_operands():
    column, x = Column([1.0, 2.0]), np.array([0.3, 0.9])
    for f in (
        lambda x: np.sum((x - column) ** 2 + column * x),
        lambda x: tg.sum((x - column) ** 2 + x * column),
    ):
        for gradient in (tg.grad(f), tg.jit(tg.grad(f))):
            np.testing.assert_allclose(gradient(x), 2 * (x - column.values) + column.values)
    with pytest.raises(TypeError, match="got object"):
        tg.tensor([1.0]) * object()

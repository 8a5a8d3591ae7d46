"""The compiled sweep does over whole tapes what the passes in Python do."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import tapegrad as tg
from tapegrad.autograd import sweep
from tapegrad.dispatch.native_calls import native_calls
from tapegrad.kernels.sweep import sweep_abi
from tests.conformance.checks import rules_only

pytestmark = pytest.mark.tapegrad_only("compares the compiled sweep with the one in Python")


def both(build, tolerance=1e-12, **options):
    """The gradients by the sweep and by Python, of a function that gives a root and its inputs."""
    found = []
    for native in (True, False):
        tg.manual_seed(5)
        root, inputs = build()
        if native:
            found.append(tg.autograd.grad(root, inputs, **options))
        else:
            with rules_only():
                found.append(tg.autograd.grad(root, inputs, **options))
    for a, b in zip(*found, strict=True):
        if a is None or b is None:
            assert a is b
        else:
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=tolerance, atol=tolerance / 100)
    return found[0]


def leaf(*shape, dtype=None):
    return tg.randn(*shape, dtype=dtype or tg.float64).requires_grad_()


def random_graph(rng, steps, shapes):
    """A graph in which Tensors of many shapes are read again and again."""
    leaves = [leaf(*s) for s in shapes]
    pool = list(leaves)
    for _ in range(steps):
        x, y = (pool[int(rng.integers(len(pool)))] for _ in range(2))
        kind = int(rng.integers(6))
        if kind == 0:
            pool.append(tg.tanh(x))
        elif kind == 1:
            pool.append(tg.sin(x) * 0.5)
        elif kind == 2:
            pool.append(x.sum(-1, keepdim=True) * 0.1)
        elif kind == 3:
            pool.append(x.mean() + tg.sigmoid(y))
        else:
            try:
                pool.append(tg.tanh(x) * y if kind == 4 else x + tg.cos(y))
            except (ValueError, RuntimeError):
                pool.append(x.reshape(-1)[:1] + y)
    total = sum((x * (k % 3 + 1)).sum() for k, x in enumerate(pool))
    return total, leaves


@pytest.mark.parametrize("seed", range(12))
def test_random_graphs(seed):
    shapes = [(3, 4), (4,), (3, 1), (1,), (2, 3, 4), (40, 40)]
    both(lambda: random_graph(np.random.default_rng(seed), 60, shapes))


@pytest.mark.parametrize("seed", range(4))
def test_gradients_of_intermediate_values(seed):
    def build():
        rng = np.random.default_rng(seed)
        x = leaf(3, 4)
        values = [x]
        for _ in range(20):
            values.append(tg.tanh(values[int(rng.integers(len(values)))]) + values[-1] * 0.5)
        return values[-1].sum(), [values[3], values[10], values[17], x]

    both(build, allow_unused=True)


def test_a_graph_larger_than_the_first_arena_chunk():
    def build():
        x = leaf(1000)
        values = [tg.sin(x) * k for k in range(100)]  # all adjoints are alive at once
        return sum((v * v).sum() for v in values), [x]

    both(build)


def test_buffers_are_used_again():
    """Different sizes come and go; a buffer of one size never serves a larger one."""

    def build():
        x = leaf(1000)
        y = x
        for n in [1000, 7, 512, 3, 900, 1, 64, 65, 1000, 2, 33]:
            y = tg.tanh(x[:n]) + y[:1]
            y = tg.cat([y, y.sum().reshape(1)])
        return y.sum(), [x]

    both(build)


MATRICES = [((3, 4), (4, 5)), ((4,), (4, 5)), ((3, 4), (4,)), ((4,), (4,)), ((1, 4), (4, 1)),
            ((3, 1), (1, 5)), ((1, 1), (1, 1)), ((32, 32), (32, 32)), ((33, 32), (32, 33)),
            ((0, 4), (4, 2)), ((2, 0), (0, 3)), ((2, 4), (4, 0))]  # fmt: skip


@pytest.mark.parametrize("transposed", ["", "a", "b", "ab"])
@pytest.mark.parametrize(("left", "right"), MATRICES)
def test_matrix_products_of_any_strides(left, right, transposed):
    def build():
        a = leaf(*(left[::-1] if "a" in transposed else left))
        b = leaf(*(right[::-1] if "b" in transposed else right))
        x = a.t() if "a" in transposed else a
        y = b.t() if "b" in transposed else b
        return (tg.tanh(x) @ y + x @ tg.tanh(y)).sum(), [a, b]

    both(build)


BATCHES = [
    ((2, 3, 4), (4, 5)), ((2, 3, 4), (4,)), ((4,), (2, 4, 5)), ((3, 4), (2, 4, 5)),
    ((2, 3, 4), (2, 4, 5)), ((2, 6, 3, 4), (2, 6, 4, 5)), ((2, 6, 3, 4), (4, 5)),
    ((5, 4), (2, 6, 4, 3)), ((2, 3, 1, 4), (2, 3, 4, 1)), ((1, 3, 4), (4, 2)),
    ((1, 3, 4), (1, 4, 1)),
]  # fmt: skip


def laid_out(shape, how, dtype):
    """A leaf, and a view of it of a shape: its matrices by columns, the batch turned, or both."""
    if how == "columns" and len(shape) > 1:
        x = leaf(*shape[:-2], shape[-1], shape[-2], dtype=dtype)
        return x, x.mT
    if how == "batch" and len(shape) > 3:
        x = leaf(shape[1], shape[0], *shape[2:], dtype=dtype)
        return x, x.transpose(0, 1)
    if how == "heads" and len(shape) > 3:  # as in attention
        x = leaf(shape[0], shape[2], shape[1], shape[3], dtype=dtype)
        return x, x.transpose(1, 2)
    x = leaf(*shape, dtype=dtype)
    return x, x


@pytest.mark.parametrize("infinite", [False, True])
@pytest.mark.parametrize("dtype", [tg.float64, tg.float32], ids=str)
@pytest.mark.parametrize("how", ["", "columns", "batch", "heads"])
@pytest.mark.parametrize(("left", "right"), BATCHES, ids=str)
def test_products_of_a_batch(left, right, how, dtype, infinite):
    """Each matrix of a batch counts for itself, in whatever order they lie."""

    def build():
        a, x = laid_out(left, how, dtype)
        b, y = laid_out(right, "columns" if how == "heads" else "", dtype)
        product = x @ y
        weights = tg.rand(*product.shape, dtype=dtype)
        if infinite:
            with tg.no_grad():
                a.view(-1)[1] = float("inf")
                b.view(-1)[0] = float("nan")
            weights.zero_()
        return (tg.tanh(x) @ y * weights).sum() + (x @ tg.sin(y) * weights).sum(), [a, b]

    both(build, tolerance=1e-12 if dtype is tg.float64 else 1e-5)


def test_products_of_a_batch_need_no_python(monkeypatch):
    def refuse(*_):
        raise AssertionError("handed back to Python")

    x, w, b = leaf(2, 3, 4), leaf(5, 4), leaf(2, 5, 3)
    monkeypatch.setattr(sweep, "by_rule", refuse)
    (x @ w.T @ b @ b.mT).sum().backward()
    assert x.grad.shape == x.shape
    assert w.grad.shape == w.shape


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("size", [(3, 3), (2, 4), (4, 2), (1, 5), (5, 1)], ids=str)
@pytest.mark.parametrize("strides", [(1, 1), (1, 2), (2, 1), (0, 1), (1, 0), (3, 1)], ids=str)
def test_matrix_products_of_overlapping_rows(size, strides, turned):
    """BLAS cannot read a matrix whose rows begin before the last has ended."""
    rng = np.random.default_rng(0)
    x = tg.tensor(rng.normal(size=20), requires_grad=True)
    windows = tg.as_strided(x, size, strides)
    windows = windows.T if turned else windows
    for other in ((windows.shape[1],), (windows.shape[1], 3)):
        y = tg.tensor(rng.normal(size=other), requires_grad=True)
        for product in (lambda w, y: w @ y, lambda w, y: y.T @ w.T):
            got = tg.autograd.grad((product(windows, y) ** 2).sum(), (x, y))
            plain = windows.detach().clone().requires_grad_()
            want = tg.autograd.grad((product(plain, y) ** 2).sum(), (plain, y))
            places = np.lib.stride_tricks.as_strided(
                np.arange(20), size, tuple(8 * s for s in strides)
            )
            places = places.T if turned else places
            added = np.bincount(places.ravel(), want[0].numpy().ravel(), 20)
            np.testing.assert_allclose(got[0].numpy(), added, rtol=1e-12, atol=1e-13)
            np.testing.assert_allclose(got[1].numpy(), want[1].numpy(), rtol=1e-12, atol=1e-13)


def test_views_of_a_storage_need_no_python(monkeypatch):
    """Even where they show an element several times; if the operand is not in C order they do."""

    def refuse(*_):
        raise AssertionError("handed back to Python")

    x = leaf(3, 4)
    w = tg.tensor(np.arange(6.0).reshape(2, 3))
    turned = (x * 1.0).t().as_strided((2, 3), (1, 2))
    monkeypatch.setattr(sweep, "by_rule", refuse)
    for strides in ((1, 4), (1, 1), (0, 2)):
        (g,) = tg.autograd.grad(x.as_strided((2, 3), strides, 1), x, w)
        places = 1 + np.add.outer(np.arange(2) * strides[0], np.arange(3) * strides[1])
        added = np.bincount(places.ravel(), w.numpy().ravel(), 12)
        np.testing.assert_array_equal(g.numpy().ravel(), added)
    with pytest.raises(AssertionError, match="handed back"):
        turned.backward(w)


def test_matrix_products_of_slices():
    def build():
        a, b = leaf(6, 8), leaf(8, 6)
        return (a[::2, 1::3] @ b[2:5, ::2]).sum() + a[0, :3] @ b[:3, 0], [a, b]

    both(build)


@pytest.mark.parametrize("dtype", [tg.float64, tg.float32], ids=str)
@pytest.mark.parametrize("dim", [0, 1, 2, (0, 1), (1, 2), (0, 2), (0, 1, 2)], ids=str)
@pytest.mark.parametrize("name", ["sum", "mean"])
def test_sums_along_every_dimension(name, dim, dtype):
    def build():
        x = leaf(2, 3, 4, dtype=dtype)
        y = getattr(tg, name)(x * x, dim)
        return (y * y).sum(), [x]

    found = []
    for native in (True, False):
        tg.manual_seed(5)
        root, inputs = build()
        if native:
            found.append(tg.autograd.grad(root, inputs)[0].numpy())
        else:
            with rules_only():
                found.append(tg.autograd.grad(root, inputs)[0].numpy())
    np.testing.assert_allclose(*found, rtol=1e-12 if dtype is tg.float64 else 1e-5)


def test_records_with_many_inputs():
    def build():
        parts = [leaf(3) for _ in range(9)]
        y = tg.stack([tg.tanh(p) for p in parts])
        z = tg.cat([p * 2 for p in parts] + [y.reshape(-1)])
        return (z * z).sum() + y.prod(0).sum(), parts

    both(build)


def test_the_sweep_resumes_after_records_that_need_python():
    def build():
        x = leaf(3, 4)
        y = tg.tanh(x)
        for _ in range(5):
            y = tg.sin(tg.softmax(tg.tanh(y), 1).flip(0) * y[[2, 0, 1]])
        return y.sum(), [x]

    both(build)


def test_retained_graphs_can_be_walked_again():
    x = leaf(3, 4)
    y = (tg.tanh(x) @ tg.sin(x).t()).sum() + x.mean()
    first = tg.autograd.grad(y, x, retain_graph=True)[0].numpy()
    with rules_only():
        second = tg.autograd.grad(y, x, retain_graph=True)[0].numpy()
    third = tg.autograd.grad(y, x)[0].numpy()
    np.testing.assert_allclose(first, second, rtol=1e-13)
    np.testing.assert_array_equal(first, third)
    with pytest.raises(RuntimeError, match="second time"):
        tg.autograd.grad(y, x)


SPREAD = {
    "two": lambda x, y, z: x * y + (x - z).exp(),
    "three": lambda x, y, z: tg.lerp(x, y, z) + tg.addcmul(z, x, y),
    "by a condition": lambda x, y, z: tg.where(x.detach() > y.detach(), y * z, x),
    "of a number": lambda x, y, z: x**2.0 / (y * y + 1.0) - z,
}


@pytest.mark.parametrize("dtype", [tg.float64, tg.float32])
@pytest.mark.parametrize("name", SPREAD)
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_operands_broadcast_along_any_dimensions(name, dtype, data):
    whole = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    shapes = []
    for _ in range(3):
        kept = data.draw(st.lists(st.booleans(), min_size=len(whole), max_size=len(whole)))
        shape = [n if keep else 1 for n, keep in zip(whole, kept, strict=True)]
        shapes.append(shape[data.draw(st.integers(0, len(shape) - 1)) :])

    def build():
        inputs = [leaf(*shape, dtype=dtype) for shape in shapes]
        return (SPREAD[name](*inputs) ** 2).sum(), inputs

    both(build, 1e-12 if dtype is tg.float64 else 1e-4)


def test_differences_of_pairs_need_no_python(monkeypatch):
    def refuse(*_):
        raise AssertionError("handed back to Python")

    x, y = leaf(4, 3), leaf(5, 3)
    monkeypatch.setattr(sweep, "by_rule", refuse)
    ((x[:, None] - y[None]) * x[:, None] * y[None]).sum().backward()
    assert x.grad.shape == x.shape
    assert y.grad.shape == y.shape


@pytest.mark.parametrize(
    "shapes", [((0, 3), (3,)), ((2, 0), (1, 1)), ((0,), ()), ((3, 0, 2), (2,))], ids=str
)
def test_nothing_broadcast_against_something_gives_zeros(shapes):
    """What is read zero times has the adjoint zero, not whatever lay in the buffer."""
    big = leaf(1000)
    (big * 3.0).sum().backward()  # leaves something in memory that is used again
    a, b = (leaf(*s) for s in shapes)
    for y in (a * b, a + b, b / (a + 1), tg.addcmul(a, b, b)):
        (g,) = tg.autograd.grad(y.sum(), b)
        assert not g.numpy().any()


def everything():
    x, w, big = leaf(3, 4), leaf(4, 4), leaf(50, 60)
    y = tg.tanh(x @ w).sum() + (x * x.mean(0)).sum() + tg.softmax(x, 1)[0].prod()
    return y + (tg.sin(big) * big).sum() + (big @ big.t()).mean(), [x, w, big]


def test_an_interpreter_with_another_layout_of_objects(monkeypatch):
    """Where the compiled sweep cannot be used, Python does all of it."""
    found = both(everything)
    tg.manual_seed(5)
    root, inputs = everything()
    monkeypatch.setattr(sweep_abi, "find", lambda: None)
    monkeypatch.setattr(native_calls, "sweep", None)
    for a, b in zip(found, tg.autograd.grad(root, inputs), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12)


def test_anomaly_detection_gives_the_same():
    found = both(everything)
    tg.manual_seed(5)
    with tg.autograd.detect_anomaly(check_nan=True):
        root, inputs = everything()
        for a, b in zip(found, tg.autograd.grad(root, inputs), strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12)


@pytest.mark.parametrize("f", [lambda x, w: x * w, lambda x, w: x + w, lambda x, w: 2 * x - w])
def test_a_column_beside_rows_of_no_elements_gets_zeros(f):
    for _ in range(20):  # what earlier sweeps left in memory must not be seen
        x = tg.full((3, 1), 7.7).requires_grad_()
        (x.sin() * x * 3).exp().sum().backward()
        x = tg.ones(3, 1).requires_grad_()
        f(x, tg.zeros(3, 0)).sum().backward()
        assert x.grad.tolist() == [[0.0], [0.0], [0.0]]
        x = tg.ones(3, 1).requires_grad_()
        x.expand(3, 0).sum().backward()
        assert x.grad.tolist() == [[0.0], [0.0], [0.0]]


def test_what_is_older_than_a_sweep_wants_no_adjoint_whatever_was_marked_before():
    def f(x, length):
        older = tg.sin(x)
        y = older
        for _ in range(length):
            y = tg.sin(y)
        with tg.no_grad():  # a compiled sweep of few records, which read one far below
            slope = tg.grad(lambda p: (p * older).sum())(tg.ones(3))
        return y + slope.sum()

    tg.grad(f)(0.5, 240)  # its marks remain
    for length in (0, 60, 120, 180):
        wanted, y = np.cos(0.5), np.sin(0.5)
        for _ in range(length):
            wanted, y = wanted * np.cos(y), np.sin(y)
        np.testing.assert_allclose(tg.grad(f)(0.5, length), wanted, rtol=1e-12)


OUT_OF_ORDER = {
    "a transpose": lambda x, y: x.T * y,
    "a column": lambda x, y: x[:, 0] * y[0] / x[:, 1],
    "every other": lambda x, y: x[:, ::2] * y.T[:, :2] - x[:, 1::2] * y.T[:, 2:],
    "a result": lambda x, y: tg.exp(x.T) + tg.tanh(y.T).T,
    "reversed": lambda x, y: tg.from_numpy(y.detach().numpy()[::-1]) * y,
    "a row, a column, a number": lambda x, y: x.T * x[:, 0] + y.T[:, :1].T * y + y * x.T[1, 2],
    "broadcast in other ways": lambda x, y: x[:, None, ::2] * y.T[None, :, 1::2],
    "a condition": lambda x, y: tg.where((x > 0).T, x.T, y),
    "a view of a view": lambda x, y: x.T[1:][:, 0].unsqueeze(0) * y.T.diagonal()[1:, None],
    "three operands": lambda x, y: tg.addcmul(x.T, y, x.T) + tg.lerp(x.T, y, x.T),
}


@pytest.mark.parametrize("dtype", [tg.float64, tg.float32], ids=str)
@pytest.mark.parametrize("case", OUT_OF_ORDER)
def test_values_that_lie_in_another_order(case, dtype, never_in_python):
    def build():
        x, y = leaf(3, 4, dtype=dtype), leaf(4, 3, dtype=dtype)
        made = OUT_OF_ORDER[case](x * 1, y * 1)
        return (made * made).sum() + made.mean(), [x, y]

    both(build, tolerance=1e-12 if dtype is tg.float64 else 1e-5, allow_unused=True)


def test_many_values_that_lie_in_another_order():
    """Copies are given back: the arena does not run out."""

    def build():
        x = leaf(120, 130)
        y = x
        for _ in range(12):
            y = tg.sin(y.T * x.T).T
        return y.sum(), [x]

    both(build)


def test_masks_and_counts_beside_floats(never_in_python):
    x, n = tg.tensor([1.0, -2.0, 3.0], requires_grad=True), tg.tensor([1, 2, 3])
    for array in (n, n.numpy()):
        x.grad = None
        (x * (x > 0) + x / array).sum().backward()
        np.testing.assert_allclose(x.grad, [2.0, 0.5, 4 / 3], rtol=1e-15)


def test_casts(never_in_python):
    x = tg.tensor([1.0, -2.0, 3.0], requires_grad=True)
    w = tg.tensor([0.5, 0.25, 4.0], dtype=tg.float32, requires_grad=True)
    for _ in range(2):
        x.grad = w.grad = None
        (x.float() * w * 2).double().square().sum().backward()
        (x.to(tg.float32) * 3).sum().backward()
        np.testing.assert_allclose(x.grad, [5.0, 2.0, 387.0], rtol=1e-6)  # 8 x w^2 + 3
        np.testing.assert_allclose(w.grad, [4.0, 8.0, 288.0], rtol=1e-6)
        assert (x.grad.dtype, w.grad.dtype) == (tg.float64, tg.float32)


def test_sums_of_sizes(never_in_python):
    x = tg.tensor([[1.0, -2.0, 0.0]], requires_grad=True)
    for norm in (lambda t: t.norm(1), lambda t: tg.linalg.vector_norm(t, 1, dim=1).sum()):
        x.grad = None
        norm(x).backward()
        assert x.grad.tolist() == [[1.0, -1.0, 0.0]]


@pytest.mark.parametrize(
    ("index", "wanted"),
    [
        ([2, 0, 2], [[1.0], [0.0], [2.0]]), (np.array([2, 0, 2]), [[1.0], [0.0], [2.0]]),
        (([0, 1], [0, 0]), [[1.0], [1.0], [0.0]]), ((slice(None), [0, 0]), [[2.0]] * 3),
        ((np.array([[0], [1]]), np.array([0, 0])), [[2.0], [2.0], [0.0]]),
        ([], [[0.0]] * 3), ([-1], [[0.0], [0.0], [1.0]]),
    ],
)  # fmt: skip
def test_indices_that_are_lists_and_arrays(index, wanted):
    x = tg.tensor([[1.0], [2.0], [3.0]], requires_grad=True)
    for _ in range(12):  # by a plan at the end
        x.grad = None
        found = x[index]
        np.testing.assert_array_equal(found.detach().numpy(), np.array(x.tolist())[index])
        found.sum().backward()
        assert x.grad.tolist() == wanted

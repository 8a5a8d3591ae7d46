"""An element that is read inside a transform of a NumPy function is a number, as it is for NumPy.

Whatever is written into the array afterwards, whoever has read an element before keeps what it was.
"""

import numpy as np
import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("the NumPy face, of which PyTorch has none")


def _unpacked(y):
    a, _, _ = y
    return a


READS = {
    "int": lambda y: y[0],
    "negative": lambda y: y[-3],
    "np.int64": lambda y: y[np.int64(0)],
    "np.int32": lambda y: y[np.int32(0)],
    "tuple": lambda y: y[(0,)],
    "two steps": lambda y: y[:2][0],
    "view of a view": lambda y: y.reshape(3, 1)[0, 0],
    "tuple of two": lambda y: y[None][0, 0],
    "tuple of np.int64": lambda y: y[None][np.int64(0), -3],
    "empty tuple": lambda y: y[0, ...][()],
    "iteration": lambda y: next(iter(y)),
    "list": lambda y: list(y)[-3],
    "unpacking": _unpacked,
    "unstack": lambda y: np.unstack(y)[0] if hasattr(np, "unstack") else y[0],
    "unstack of two": lambda y: (np.unstack(y[None], axis=1) if hasattr(np, "unstack")
                                 else tuple(y[None].T))[0][0],
    "twice": lambda y: (y[0], y[0])[1],
}  # fmt: skip


def _assign(y, x):
    y[0] = x[1]


def _exchange(y, x):
    y[0], y[1] = y[1], y[0]


def _add(y, x):
    y[0] += x[1]


def _slice(y, x):
    y[:2] += x[1:]


def _all(y, x):
    y[...] = x * x


def _multiply(y, x):
    y *= x[1]


def _fill(y, x):
    y.fill(3.0)


def _copyto(y, x):
    np.copyto(y, np.cos(x))


def _mask(y, x):
    y[np.array([True, False, True])] = x[1]


def _places(y, x):
    y[np.array([0, 2])] = x[:2] * 7.0


def _of_row(y, x):
    for row in y.reshape(3, 1):
        row *= 3.0


WRITES = [_assign, _exchange, _add, _slice, _all, _multiply, _fill, _copyto, _mask, _places,
          _of_row]  # fmt: skip
MADE = {
    "copy": lambda x: x.copy(),
    "computed": lambda x: x * 1.5,
    "untracked": lambda x: np.array([2.0, 3.0, 5.0]) if type(x) is np.ndarray
    else tg.tensor([2.0, 3.0, 5.0]),
}  # fmt: skip
X = np.array([0.5, -1.25, 2.0])
V = np.array([1.0, 0.25, -0.5])


def program(read, write, made):
    def f(x):
        y = made(x)
        old = read(y)
        write(y, x)
        again = read(y)
        return np.stack([old * x[2], again + x[0], old, old * again]) + y.sum()

    return f


def slope(f, v):
    h = 1e-6
    return (f(X + h * v) - f(X - h * v)) / (2 * h)


@pytest.mark.parametrize(
    ("read", "write", "made"),
    [(read, write, "computed") for read in READS for write in WRITES]
    + [("int", write, made) for write in WRITES for made in ("copy", "untracked")],
)
def test_an_element_keeps_what_it_was(read, write, made):
    f = program(READS[read], write, MADE[made])
    plain, along = f(X.copy()), slope(f, V)
    columns = np.stack([slope(f, e) for e in np.eye(3)], 1)
    near = {"rtol": 1e-6, "atol": 1e-7}
    for _ in range(3):  # the third time compiled code answers
        value, _ = tg.vjp(f, X)
        np.testing.assert_allclose(value, plain)
    g = tg.grad(lambda x: f(x).sum())
    np.testing.assert_allclose(g(X), columns.sum(0), **near)
    value, forward = tg.jvp(f, (X,), (V,))
    np.testing.assert_allclose(value, plain)
    np.testing.assert_allclose(forward, along, **near)
    many = np.stack([X, X + 0.25])
    np.testing.assert_allclose(tg.vmap(f)(many), [f(x.copy()) for x in many])
    if made != "computed":
        return
    np.testing.assert_allclose(tg.jacfwd(f)(X), columns, **near)
    h = tg.hvp(lambda x: f(x).sum())(X, V)
    np.testing.assert_allclose(h, (g(X + 1e-6 * V) - g(X - 1e-6 * V)) / 2e-6, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(tg.vmap(g)(many)[0], columns.sum(0), **near)


@pytest.mark.parametrize(
    ("read", "write"),
    [*[(read, _exchange) for read in READS], *[("negative", write) for write in WRITES]],
)
def test_an_element_keeps_what_it_was_when_compiled(read, write):
    f = program(READS[read], write, MADE["computed"])
    np.testing.assert_allclose(tg.jit(f)(X), f(X.copy()))
    want = tg.grad(lambda x: f(x).sum())(X)
    np.testing.assert_allclose(tg.jit(tg.grad(lambda x: f(x).sum()))(X), want)


def test_a_view_of_one_element_stays_a_view():
    """With `...`, and after reshaping, NumPy gives an array without dimensions, which follows."""

    def f(x):
        y = x * 2.0
        seen, shaped, piece = y[0, ...], y[:1].reshape(()), np.squeeze(y[:1])
        y[0] = x[1]
        return np.stack([seen, shaped, piece])

    for run in (f, lambda x: tg.vjp(f, x)[0], lambda x: tg.jvp(f, (x,), (x,))[0], tg.jit(f)):
        np.testing.assert_allclose(run(X.copy()), [-1.25] * 3)
    np.testing.assert_allclose(tg.grad(lambda x: f(x).sum())(X), [0.0, 3.0, 0.0])


CHANGES = {
    "add_": lambda e: e.add_(1.0),
    "fill_": lambda e: e.fill_(1.0),
    "zero_": lambda e: e.zero_(),
}
RUNS = {"grad": tg.grad, "jit": tg.jit, "vmap": tg.vmap,
        "jvp": lambda f: lambda x: tg.jvp(f, (x,), (x,))}  # fmt: skip


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("change", CHANGES)
def test_an_element_that_is_changed_in_place_is_refused(change, run):
    """PyTorch's functions would change the array; NumPy's number has nothing of the kind."""

    def f(x):
        y = x * 2.0
        CHANGES[change](y[0])
        return y.sum()

    x = np.stack([X, X]) if run == "vmap" else X
    with pytest.raises(RuntimeError, match="element"):
        RUNS[run](f)(x)


@pytest.mark.parametrize("times", [1, 4])
def test_elements_are_views_where_torchs_rules_hold(times):
    def f(x):
        y = x.clone()
        old = y[0]
        y[0] = y[1]
        y[1].mul_(3.0)
        return old * y[1]

    for _ in range(times):
        x = tg.tensor(X, requires_grad=True)
        f(x).backward()
        np.testing.assert_allclose(x.grad.numpy(), [0.0, 6 * X[1], 0.0])
        np.testing.assert_allclose(tg.func.grad(f)(tg.tensor(X)).numpy(), [0.0, 6 * X[1], 0.0])
        y = tg.tensor(X)
        first, _, last = y
        y += 1.0
        assert first.item() == X[0] + 1.0
        assert last.item() == X[2] + 1.0
        assert y[1]._is_view()


def test_recomputed_functions_of_torchs_keep_its_rule():
    def f(x):
        def piece(x):
            y = x * 1.0
            old = y[0]
            y[0] = y[1]
            return old * x

        return tg.checkpoint(piece)(x).sum()

    want = tg.func.grad(lambda x: (x[1] * x).sum())(tg.tensor(X)).numpy()
    np.testing.assert_allclose(tg.func.grad(f)(tg.tensor(X)).numpy(), want)


def test_views_without_dimensions_are_written_into():
    def f(x):
        y = x * 1.0
        v = y[0, ...]
        v += 1.0
        w = y[1:].reshape(())
        w *= 3.0
        return y * y

    x = np.array([1.0, 2.0])
    assert f(x).tolist() == [4.0, 36.0]
    assert tg.vjp(f, x)[0].tolist() == tg.jit(f)(x).tolist() == [4.0, 36.0]
    assert tg.vmap(f)(x[None])[0].tolist() == [4.0, 36.0]
    value, tangent = tg.jvp(f, (x,), (np.ones(2),))
    assert (value.tolist(), tangent.tolist()) == ([4.0, 36.0], [4.0, 36.0])
    assert tg.grad(lambda x: np.sum(f(x)))(x).tolist() == [4.0, 36.0]


NUMBERS = {
    "sum": np.sum,
    "median": np.median,
    "nanmedian": np.nanmedian,
    "quantile": lambda x: np.quantile(x, 0.3),
    "nanpercentile": lambda x: np.nanpercentile(x, 30),
    "inner": lambda x: np.inner(x, x),
    "einsum": lambda x: np.einsum("i->", x),
    "norm": np.linalg.norm,
    "flip": lambda x: np.flip(np.sum(x)),
    "sin": lambda x: np.sin(x[0]),
}


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_with_two_names_keeps_one_of_them(number, run):
    def f(x):
        s = NUMBERS[number](x)
        other = s
        s += x[1]
        return other * 2.0 + s

    same(f, run)


SEEN = {
    "None": lambda s: s[None],
    "...": lambda s: s[...],
    "reshape": lambda s: s.reshape(1),
    "expand_dims": lambda s: np.expand_dims(s, 0),
    "atleast_1d": np.atleast_1d,
}


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("number", ["sum", "sin", "element"])
@pytest.mark.parametrize("seen", SEEN)
def test_a_view_of_a_number_is_a_copy(seen, number, run):
    """What is written into it does not change the number."""

    def f(x):
        s = x[0] if number == "element" else NUMBERS[number](x)
        y, z = SEEN[seen](s), SEEN[seen](s)
        y[...] = x[1]
        z *= x[2]
        y += z
        return np.sum(s * y + z)

    same(f, run)


@pytest.mark.parametrize("run", RUNS)
def test_a_view_of_an_array_without_dimensions_is_none(run):
    def f(x):
        y = x * 2.0
        for array in (y[0, ...], y[:1].reshape(())):
            seen = array[None]
            seen *= x[1]
        return np.sum(y)

    same(f, run)


def same(f, run):
    """What a transform gives, several times, is what the function gives without it."""
    x = np.stack([X, X]) if run == "vmap" else X
    want = {"vmap": [f(X)] * 2, "grad": [slope(f, e) for e in np.eye(3)]}.get(run, f(X))
    for _ in range(3):
        got = RUNS[run](f)(x)
        np.testing.assert_allclose(got[0] if run == "jvp" else got, want, rtol=1e-6, atol=1e-7)


def test_a_view_of_a_number_is_written_through_where_torchs_rules_hold():
    def f(x):
        s = x.sum()
        s[None].mul_(x[1])
        return s

    np.testing.assert_allclose(tg.func.grad(f)(tg.tensor(X)), [-1.25, 0.0, -1.25])
    x = tg.tensor(X, requires_grad=True)
    f(x).backward()
    np.testing.assert_allclose(x.grad, [-1.25, 0.0, -1.25])

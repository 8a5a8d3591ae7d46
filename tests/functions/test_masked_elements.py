"""Elements that a mask chooses, where the mask is not known: under `jit` and `vmap`."""

import numpy as np
import pytest

import tapegrad as tg

X = np.array([1.5, -2.0, 0.25, 3.0, -0.5, 0.75])


def changed_in_place(x):
    y = x * 1.0
    m = y > 0
    y[m] *= 3.0
    y[~m] += x[0]
    y[m] **= 2
    return np.sum(y**2)


def computed_with_each(x):
    y = np.sin(x)
    m = y > 0
    y[m] = x[1] * np.exp(y[m]) * tg.cos(x[m]) + 1 / x[m]
    return np.sum(y**2)


def reduced(x):
    m = x > 0
    return np.sum(np.sqrt(x[m])) + x[m].mean() * np.mean(x[m] ** 2) + np.sum(x[m] > 1)


def of_rows(x):
    y = x.reshape(3, 2) * 1.0
    m = y[:, 1] > 0
    y[m] = y[m] * np.array([2.0, 3.0]) + y[m]
    y[~m] = np.array([5.0, 6.0]) * x[0]
    return np.sum(y**3) + np.mean(y[m])


def rows_of_one_number(x):
    """Square, so that a mask over columns would be taken as well."""
    y = np.stack([x[:2], x[2:4]]) * 1.0
    y[y[:, 0] > 0] = x[5]
    z = x.reshape(1, 2, 3) * np.ones((2, 1, 1))
    z[z[:, :, 0] > 1] = 7.0
    z[z[0, 0, 0] > z[:, 0, 1]] = [1.0, 2.0, 3.0]
    return np.sum(y**2) + np.sum(z**3)


def along_the_first_axis(x):
    y = x.reshape(3, 2)
    m = y[:, 0] > 0
    z = y.reshape(3, 1, 2)
    total = np.sum(np.sin(y[m]), axis=0) * y[m].sum(0) + z[m].mean(axis=0)
    return np.sum(total * np.mean(y[~m], axis=0))


def a_copy(x):
    y = x * 2.0
    m = y > 0
    kept = y[m]
    y[m] = 0.0
    y[m] += kept * x[m]
    return np.sum(y**2)


def chosen_again(x):
    y = x * 2.0
    m = y > 0
    y[m] = np.where(y[m] > 1, np.clip(y[m], 0, 4) * 2, x[m])
    return np.sum(y**2)


def masks_without_a_name(x):
    y = x * 2.0
    y[y > 0] = np.sqrt(y[y > 0]) * x[0]
    y[~(x > 0)] = x[~(x > 0)] ** 2
    return np.sum(y**2)


def reduced_otherwise(x):
    m = x > 0
    y = x[m]
    found = y.max() * np.min(y) + np.prod(y) + np.std(y) + y.var(ddof=1) + np.linalg.norm(y)
    return found * np.any(y > 2) + (y**2 @ np.sin(x[x > 0])) / y.size + np.all(y > 0) / np.size(y)


def columns_of_rows(x):
    y = np.stack([x[:2], x[2:4], x[4:]]) * 2.0
    m = y[:, 1] > -1.5
    fitted = y[m] @ x[:2]
    y[m, 0] *= 3.0
    y[y[:, 1] > 0, 1:] = y[y[:, 1] > 0, 1:] ** 2
    error = fitted - y[m, 1]
    spread = y[m].std(axis=0) + y[m].max(0) + np.dot(y[m], np.stack([x[:2], x[2:4]])).sum(axis=0)
    return np.sum(error**2) + np.sum(spread) + np.sum(y**2)


def by_functions(x):
    return np.extract(x > 0, x).sum() * np.compress(x < 1, x).mean() + np.sum(x.compress(x > 1))


def at_places(x):
    y = x.reshape(3, 2) * 2.0
    (i,) = np.where(y[:, 0] > 0)
    rows, columns = np.nonzero(y > -2)
    z = x * 1.0
    at = np.flatnonzero(x > 0)
    z[at] = np.sqrt(z[at]) * i.mean()
    z[np.where(z < 0)] -= 3.0
    return y[i, 1].sum() + np.sum(y[rows, columns] ** 3) / at.size + np.sum(z**2) + y[i].max()


PROGRAMS = [
    at_places,
    reduced_otherwise,
    columns_of_rows,
    by_functions,
    rows_of_one_number,
    along_the_first_axis,
    masks_without_a_name,
    changed_in_place,
    computed_with_each,
    reduced,
    of_rows,
    a_copy,
    chosen_again,
]


@pytest.mark.parametrize("f", PROGRAMS)
def test_unknown_masks_do_what_known_ones_do(f):
    expected = tg.grad(f)(X)  # which knows its mask
    both = np.stack([X, -X])
    np.testing.assert_allclose(tg.jit(tg.grad(f))(X), expected, rtol=1e-12)
    np.testing.assert_allclose(tg.grad(tg.jit(f))(X), expected, rtol=1e-12)
    found = tg.vmap(tg.grad(f))(both)
    np.testing.assert_allclose(found, np.stack([expected, tg.grad(f)(-X)]), rtol=1e-12)
    np.testing.assert_allclose(tg.jit(tg.vmap(tg.grad(f)))(both), found, rtol=1e-12)
    hessian = tg.hessian(f)(X)
    np.testing.assert_allclose(tg.jit(tg.hessian(f))(X), hessian, rtol=1e-12, atol=1e-13)
    forward = tg.vmap(lambda x: tg.jvp(f, (x,), (X,))[1])(both)
    np.testing.assert_allclose(forward, found @ X, rtol=1e-12)
    single = tg.jit(tg.grad(f))(X.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected, rtol=1e-4)


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.bool_])
def test_of_no_elements_the_greatest_is_the_least_value(dtype):
    x = np.array([1, 0, 1], dtype)
    least = {np.float64: -np.inf, np.int64: -(2**63), np.bool_: False}[dtype]
    assert tg.jit(lambda x: np.max(x[x > 5]))(x) == least
    assert tg.jit(lambda x: np.max(x[x > 0]))(x) == tg.jit(lambda x: x[x > 0].min())(x) == 1


def test_pytorchs_rules():
    x = tg.tensor(X)[None]

    def found(f):
        return tg.func.vmap(f)(x).item()

    assert found(lambda x: x[x > 0].std()) == pytest.approx(X[X > 0].std(ddof=1))
    assert found(lambda x: x[x > 0].var(correction=0)) == pytest.approx(X[X > 0].var())
    assert found(lambda x: x[x > 0].sum() / x[x > 0].numel()) == pytest.approx(X[X > 0].mean())
    for several in (lambda x: x[x > 0].max(0), lambda x: x[x > 0].sum() / x[x > 0].size):
        with pytest.raises(RuntimeError, match=r"`max` and its places|`size`"):
            found(several)


def test_complex_elements():
    z = X[:3] + 1j * X[3:]
    for f in (np.std, np.var, np.mean, np.sum, np.prod):
        np.testing.assert_allclose(tg.jit(lambda z, f=f: f(z[z.real > 0]))(z), f(z[z.real > 0]))


def of_a_changed_mask(x):
    y = x * 1.0
    m = y > 0
    kept = y[m]
    m &= y < 1
    y[m] = kept
    return y


def of_two_masks(x):
    y = x * 1.0
    y[y > 0.5] = x[x > 0]
    return y


def of_a_mask_that_moves(x):
    y = x * 1.0
    kept = y[y > 0]
    y[0] = -1.0
    y[y > 0] = kept
    return y


def of_an_array(x):
    y = x * 1.0
    y[y > 0] += x
    return y


def written_from_an_array(x):
    y = x * 1.0
    y[y > 0] = x
    return y


REFUSED = [
    lambda x: x[np.where(x > 0)[0] - 1],
    lambda x: np.outer(x, x)[np.where(np.outer(x, x) > 0)[1]],
    lambda x: np.where(x > 0)[0][0],
    lambda x: np.nonzero(x > 0),
    of_a_changed_mask,
    of_two_masks,
    of_a_mask_that_moves,
    of_an_array,
    written_from_an_array,
    lambda x: x[x > 0],
    lambda x: len(x[x > 0]),
    lambda x: np.sort(x[x > 0]),
    lambda x: x[x > 0].argmax(),
    lambda x: np.add.reduce(x[x > 0]),
    lambda x: x[x > 0] @ x[x < 0],
    lambda x: np.outer(x, x)[x > 0] @ np.outer(x, x)[x > 0],
    lambda x: np.median(x[x > 0]),
    lambda x: np.average(x[x > 0], weights=x[x > 0]),
    lambda x: x[x > 0] @ np.eye(6),
    lambda x: np.sum(x[x > 0], keepdims=True),
    lambda x: np.outer(x, x)[x > 0].sum(axis=1),
    lambda x: np.asarray(x[x > 0]),
]


@pytest.mark.parametrize("f", REFUSED)
@pytest.mark.parametrize("run", [lambda f: tg.jit(f)(X), lambda f: tg.vmap(f)(X[None])])
def test_what_needs_their_number_says_so(f, run):
    with pytest.raises(RuntimeError, match=r"how many elements `x\[mask\]` has is not known"):
        run(f)

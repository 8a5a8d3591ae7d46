"""Compiled products with sparse matrices are SciPy's, and so are their derivatives."""

import numpy as np
import pytest
import scipy.sparse

import tapegrad as tg
from tests.compiler.graphs import same_without_python

pytestmark = pytest.mark.tapegrad_only("how programs are compiled")

sparse = tg.scipy.sparse
TOLERANCE = {"float64": 1e-13, "float32": 5e-6}
# Rows, columns, and how many of the elements are stored: lines of some elements, of many, of none.
SHAPES = {"square": (9, 9, 0.3), "wide": (5, 40, 0.9), "tall": (40, 5, 0.5), "empty": (6, 4, 0.0)}
# Columns: none, one, parts of a block of vectors, blocks with a rest.
COLUMNS = [(), (1,), (3,), (21,), (70,), (0,)]


def matrix(rows, columns, density, dtype="float64", form="csr"):
    rng = np.random.default_rng(1)
    found = scipy.sparse.random_array((rows, columns), density=density, rng=rng, dtype=dtype)
    return found.asformat(form)


def agree(f, *args, dtype="float64"):
    same_without_python(f, *args, tolerance=TOLERANCE[dtype])


@pytest.mark.parametrize("form", ["csr", "csc"])
@pytest.mark.parametrize("columns", COLUMNS, ids=str)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_products(shape, columns, form):
    rng = np.random.default_rng(2)
    make = sparse.csr_array if form == "csr" else sparse.csc_array
    for dtype in ("float64", "float32"):
        a = matrix(*shape, dtype, form)
        x, y = (rng.standard_normal((n, *columns)).astype(dtype) for n in reversed(a.shape))

        def products(values, x, y, a=a):
            def loss(values, x):
                return ((make((values, a.indices, a.indptr), shape=a.shape) @ x) ** 2).sum()

            return a @ x, a.T @ y, *tg.grad(loss, argnums=(0, 1))(values, x)

        agree(products, a.data, x, y, dtype=dtype)


def test_second_derivatives_and_other_transforms():
    a = matrix(7, 6, 0.5)
    rng = np.random.default_rng(3)
    x, v, many = rng.standard_normal(6), rng.standard_normal(6), rng.standard_normal((4, 6))

    def loss(values, x):
        return (np.sin(sparse.csr_array((values, a.indices, a.indptr), shape=a.shape) @ x)).sum()

    agree(tg.jacobian(tg.grad(loss, argnums=1), argnums=1), a.data, x)
    agree(tg.grad(lambda w, x: (tg.grad(loss)(w, x) ** 2).sum(), argnums=(0, 1)), a.data, x)
    agree(lambda x, v: tg.jvp(lambda x: loss(a.data, x), (x,), (v,)), x, v)
    agree(tg.vmap(lambda x: a @ x), many)
    agree(tg.vmap(tg.grad(loss, argnums=(0, 1)), in_axes=(None, 0)), a.data, many)
    agree(tg.vmap(tg.grad(loss), in_axes=(0, None)), np.stack([a.data, -a.data]), x)


def test_in_loops():
    n = 40
    ones = np.ones(n)
    second = scipy.sparse.diags_array([ones[1:], -2 * ones, ones[1:]], offsets=[-1, 0, 1]).tocsr()

    def heated(u, rate):
        u = tg.fori_loop(0, 20, lambda k, u: u + rate * (second @ u), u)
        return (u**2).sum()

    agree(tg.grad(heated, argnums=(0, 1)), np.linspace(0.0, 1.0, n), 0.2)


def test_complex_numbers():
    a = matrix(8, 5, 0.6).astype(complex) * (1 - 2j)
    rng = np.random.default_rng(4)
    z = rng.standard_normal((5, 3)) + 1j * rng.standard_normal((5, 3))
    agree(lambda z: a @ z, z)
    agree(tg.grad(lambda z: (np.abs(a @ z) ** 2).sum()), z)
    agree(lambda z: a.real @ z, z)


def test_indices_of_any_integers():
    a = matrix(6, 6, 0.5)
    x = np.arange(6.0)
    for kind in (np.int64, np.uint8):
        made = sparse.csr_array((a.data, a.indices.astype(kind), a.indptr.astype(kind)), a.shape)
        agree(lambda x, made=made: made @ x, x)

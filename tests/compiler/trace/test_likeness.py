"""What is known of a result before it is computed; a trace computes what Python asks for."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.compiler.ir.graph import Node
from tapegrad.compiler.trace import trace
from tapegrad.compiler.trace.likeness import likeness
from tapegrad.dispatch.dispatch import called
from tapegrad.ops.elementwise import add, floor_divide, mul, where
from tapegrad.ops.factorizations import cholesky, eigh
from tapegrad.ops.families import table
from tapegrad.ops.index import HOLE, index
from tapegrad.ops.linalg import matmul
from tapegrad.ops.reduce import sum as sum_
from tapegrad.tensor import wrap
from tests.conformance.checks import F8, Case
from tests.conformance.samples import LAYOUTS, laid_out, samples_of

pytestmark = pytest.mark.tapegrad_only("PyTorch has no `jit` of this kind")
X = np.linspace(-1.0, 2.0, 12).reshape(3, 4)


def order_of(array):
    """The strides that matter."""
    return [s for s, n in zip(array.strides, array.shape, strict=True) if n > 1 and array.size]


def known(op, arrays, params):
    """Shape and dtype of a result, once its layout was found to be that of the result."""
    operands = [Node(None, (), {}, a.shape, a.dtype) for a in arrays]
    like = likeness(op, operands, arrays, params)
    if like is None:
        return None
    if not op.view:
        result = called(op, tuple(map(wrap, arrays)), params)._a
        assert order_of(like.memory()) == order_of(result)
        assert (result.shape, result.dtype) == like.spec
    return like.spec


@pytest.mark.parametrize("layout", ["plain", *LAYOUTS])
@pytest.mark.parametrize("name", sorted(table))
def test_what_is_known_of_a_result_is_so(name, layout):
    for sample in samples_of(table[name]):
        arrays = [np.ascontiguousarray(x) for x in Case(table[name], sample, F8).arrays]
        if layout != "plain":
            arrays = [laid_out(x, layout) for x in arrays]
        known(table[name], arrays, sample.params)


def test_of_which_results_it_is_known():
    column, number, condition = X[:, :1].copy(), np.array(2.0), X > 0
    integers = np.arange(1, 4)
    assert known(mul, [X, column], {}) == ((3, 4), F8)
    assert known(mul, [X.T, X.T], {}) == ((4, 3), F8)
    assert known(add, [number, X], {}) == ((3, 4), F8)
    assert known(where, [condition, X, number], {}) == ((3, 4), F8)
    assert known(sum_, [X], {"dim": (1,), "keepdim": True}) == ((3, 1), F8)
    assert known(matmul, [X, X.T], {}) == ((3, 3), F8)
    assert known(add, [X, X[:, :3].copy()], {}) is None  # refused where it is computed
    assert known(floor_divide, [integers, integers], {}) is None
    assert known(cholesky, [np.eye(3)], {}) == ((3, 3), F8)
    assert known(eigh, [np.eye(3)], {}) is None
    assert known(index, [X, condition[:, 0].copy()], {"plan": (HOLE, ...)}) is None


@pytest.fixture
def computed(monkeypatch):
    """The operations that a trace runs, by their names."""
    found = []

    def counted(op, args, params):
        found.append(op.name)
        return called(op, args, params)

    monkeypatch.setattr(trace, "go", counted)
    return found


def chain(x):
    return tg.exp(tg.sin(x) @ x.T).sum()


def test_a_gradient_is_traced_without_values(computed):
    np.testing.assert_allclose(tg.jit(tg.grad(chain))(X), tg.grad(chain)(X), rtol=1e-12)
    views = {"permute", "unsqueeze", "expand"}  # of memory whose content nobody reads
    assert set(computed) <= views


def test_what_python_asks_for_is_computed_once(computed):
    def f(x):
        y = tg.sin(x).sum()
        return (y if y > 0 else -y) + tg.exp(y), float(y)

    tg.jit(f)(X)
    assert sorted(computed) == ["gt", "sin", "sum"]


def test_python_is_told_the_value():
    asked = []

    @tg.jit
    def f(x):
        y = x * 2.0
        seen = y.reshape(-1)
        seen += 1.0  # in the memory of `y`, which has no value yet
        z = y.T.sum(dim=0)
        asked.append(float(z[0]))
        return z if z[0] > 0 else -z

    expected = (2 * X + 1).sum(1)
    np.testing.assert_allclose(f(X), np.where(expected[0] > 0, expected, -expected))
    np.testing.assert_allclose(f(X + 3), (2 * X + 7).sum(1))
    assert asked == [expected[0], (2 * X + 7).sum(1)[0]]


def test_python_is_told_what_a_loop_comes_to():
    asked = []

    @tg.jit
    def f(x):
        last, rows = tg.scan(lambda c, _: (c + 1.0, c * c), x, None, length=50)
        asked.extend([float(last), float(rows.sum())])
        return last

    assert f(1.0) == 51.0
    assert asked == [51.0, sum(k * k for k in range(1, 51))]


def test_a_value_that_is_printed_is_computed(capsys):
    tg.jit(lambda x: print(x * 2.0) or x)(3.0)
    assert "6." in capsys.readouterr().out


@pytest.mark.parametrize("ndim", [6, 7, 12, 15])
def test_reductions_of_many_dimensions_take_little_memory(ndim):
    x = np.cos(np.arange(2.0**ndim)).reshape((2,) * ndim)
    for f in (lambda v: v.sum(0), lambda v: v.max(-1), lambda v: v.mean((1, 3), keepdims=True)):
        np.testing.assert_allclose(tg.jit(f)(x), f(x), rtol=1e-12)

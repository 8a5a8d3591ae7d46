"""`jacobian` takes columns where there are fewer arguments than results, compiled or not."""

import tracemalloc

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.transforms import jacobians
from tapegrad.transforms.pytree import flatten

pytestmark = pytest.mark.tapegrad_only("transforms are not PyTorch's")

MANY = 250
T = np.linspace(0.0, 1.0, MANY)
P = np.array([1.0, 2.0, 0.5])
WIDE = np.linspace(0.1, 1.0, MANY)
ROWS = np.arange(3.0)[:, None] + 1.0


def tall(p):
    return p[0] * np.exp(-p[1] * T) + p[2] * np.sin(3.0 * T * p[0])


def wide(x):
    return np.sum(np.sin(ROWS * x), axis=1)


def tall_parts(p, by):
    return {"fit": p["size"] * np.exp(-p["rate"] * T) * by, "size": p["size"] * T}


def repeated(p):
    return tg.scan(lambda c, t: (c * 0.999 + 0.01, c * t), p, T)[1]


TREE = {"size": np.array([1.0]), "rate": 2.0}
TALL = {
    "tall": (tg.jacobian(tall), P),
    "jit inside": (tg.jacobian(tg.jit(tall)), P),
    "aux": (tg.jacobian(lambda p: (tall(p), np.sum(p)), has_aux=True), P),
    "argnums": (tg.jacobian(lambda a, b: tall(np.stack([a, b, 1.0])), argnums=(0, 1)), 1.0, 2.0),
    "pytrees": (tg.jacobian(tall_parts), TREE, 3.0),
    "mapped": (tg.vmap(tg.jacobian(tall)), np.stack([P, 2 * P])),
    "of a map": (tg.jacobian(lambda p: tg.vmap(lambda q: tall(q))(np.stack([p, 2 * p]))), P),
    "of itself": (tg.jacobian(tg.jacobian(tall)), P),
    "of a gradient": (tg.jacobian(tg.vmap(tg.grad(lambda q, t: np.exp(q @ q * t)), (None, 0))), P,
                      T),
    "differentiated": (tg.grad(lambda p: np.sum(tg.jacobian(tall)(p) ** 2)), P),
    "a loop": (tg.jacobian(repeated), P),
}  # fmt: skip


def same(found, wanted):
    for a, b in zip(flatten(found)[0], flatten(wanted)[0], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)


@pytest.fixture
def columns(monkeypatch):
    """How often columns were taken by `jacobian`."""
    calls = []
    taken = jacobians._columns
    monkeypatch.setattr(
        jacobians, "_columns", lambda *a, **k: (calls.append(a[6]), taken(*a, **k))[1]
    )
    return calls


@pytest.mark.parametrize("name", TALL)
def test_more_results_than_arguments_go_forward_compiled_or_not(name, columns, monkeypatch):
    f, *args = TALL[name]
    eager = f(*args)
    assert columns
    columns.clear()
    compiled = tg.jit(f)
    same(compiled(*args), eager)
    assert columns
    graph = compiled.lower(*args).graph
    assert max(np.prod(node.shape, dtype=int) for node in graph.nodes) < MANY**2
    if name != "of itself":  # which would take gigabytes
        monkeypatch.setattr(jacobians, "_forward_pays", lambda *args: False)
        same(eager, f(*args))


def test_fewer_results_than_arguments_go_in_reverse(columns):
    f = tg.jacobian(wide)
    compiled = tg.jit(f)
    same(compiled(WIDE), f(WIDE))
    same(tg.jacobian(tg.jit(wide))(WIDE), f(WIDE))
    assert not columns
    assert max(np.prod(n.shape, dtype=int) for n in compiled.lower(WIDE).graph.nodes) < MANY**2


class Doubled(tg.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return 2.0 * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, g):
        return 2.0 * g


ONE_WAY = {
    "a Function": lambda p: tall(Doubled.apply(p)),
    "in a loop": lambda p: tg.scan(lambda c, t: (c, Doubled.apply(c) * t), p, T)[1],
    "in a branch": lambda p: tall(tg.cond(p[0] > 0, Doubled.apply, lambda p: p, p)),
}


@pytest.mark.parametrize("name", ONE_WAY)
def test_a_rule_for_reverse_mode_alone_is_left_to_it(name, columns):
    f = ONE_WAY[name]
    wanted = tg.jacrev(f)(P)
    for made in (tg.jacobian(f), tg.jit(tg.jacobian(f)), tg.jacobian(tg.jit(f))):
        same(made(P), wanted)
    assert not columns


def test_least_squares_of_a_compiled_function_goes_forward(columns):
    data = tall(P)
    found = tg.optimize.least_squares(tg.jit(lambda p: tall(p) - data), P * 1.1)
    np.testing.assert_allclose(found.x, P, rtol=1e-8)
    assert columns


def test_memory_is_that_of_the_matrix():
    t = np.linspace(0.0, 1.0, 20_000)
    compiled = tg.jit(tg.jacobian(lambda p: p[0] * np.exp(-p[1] * t)))
    tracemalloc.start()
    try:
        assert compiled(np.array([1.0, 2.0])).shape == (20_000, 2)
        assert tracemalloc.get_traced_memory()[1] < 100 * t.nbytes
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["jacobian", "jacrev", "jacfwd", "hessian"])
@pytest.mark.parametrize("jit", [False, True])
def test_what_cannot_fit_into_memory_is_refused_before_it_is_tried(name, jit):
    f = getattr(tg, name)(lambda x: np.sum(x**3) if name == "hessian" else np.sin(x))
    with pytest.raises(MemoryError, match=rf"`{name}` of .*1000000 × 1000000 .*`linearize`"):
        (tg.jit(f) if jit else f)(np.ones(10**6))


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("name", ["jacobian", "jacrev", "jacfwd", "func.jacrev", "func.jacfwd"])
def test_complex_results_have_complex_matrices(name, jit):
    transform = tg.func if name.startswith("func.") else tg
    x = tg.tensor([1.0, 2.0, 3.0])
    weights = np.array([1 + 2j, -0.5j, 0.25])
    jacobian = getattr(transform, name.rpartition(".")[2])(
        lambda x: ((x * x * weights)[:2], tg.sin(x), (x * weights).sum())
    )
    first, second, third = (tg.jit(jacobian) if jit else jacobian)(x)
    np.testing.assert_allclose(first, np.diag(2 * x.numpy() * weights)[:2])
    np.testing.assert_allclose(second, np.diag(np.cos(x)))
    np.testing.assert_allclose(third, weights)


def test_complex_results_are_refused_where_pytorch_refuses_them():
    with pytest.raises(RuntimeError, match=r"use `tapegrad\.jacobian`"):
        tg.autograd.functional.jacobian(lambda x: x * 1j, tg.tensor([1.0]))

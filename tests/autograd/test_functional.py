"""`tg.autograd.functional`; what PyTorch gives for many more cases: tests/peers/test_torch_func."""

import numpy as np
import pytest

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")


@pytest.fixture
def f(tg):
    return tg.autograd.functional


@pytest.fixture
def x(tg):
    return tg.tensor([1.0, 2.0, 3.0])


def same(found, expected):
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-12)


def cube(x):
    return (x**3).sum()


@pytest.mark.parametrize("vectorize", [False, True])
def test_jacobian_has_a_place_for_every_pair(tg, f, x, vectorize):
    y = tg.ones(2)
    found = f.jacobian(lambda a, b: (a.sum() * b, a**2), (x, y), vectorize=vectorize)
    same(found[0][0], np.ones((2, 3)))
    same(found[0][1], 6 * np.eye(2))
    same(found[1][0], np.diag([2.0, 4.0, 6.0]))
    same(found[1][1], np.zeros((3, 2)))
    assert isinstance(f.jacobian(lambda a: (a,), x, vectorize=vectorize), tuple)


def test_hessian_in_every_way(f, x):
    for flags in (
        {},
        {"vectorize": True},
        {"vectorize": True, "outer_jacobian_strategy": "forward-mode"},
    ):
        same(f.hessian(cube, x, **flags), np.diag([6.0, 12.0, 18.0]))


@pytest.mark.parametrize("name", ["vjp", "jvp", "hvp", "vhp"])
def test_products(tg, f, x, name):
    function = cube if name in ("hvp", "vhp") else lambda a: a**2
    value, product = getattr(f, name)(function, x, x)
    same(value, function(x).tolist())
    same(product, [6.0, 24.0, 54.0] if function is cube else [2.0, 8.0, 18.0])
    assert not value.requires_grad
    assert not product.requires_grad


def test_results_can_be_differentiated_with_create_graph(tg, f, x):
    w = x.clone().requires_grad_()
    _, product = f.hvp(cube, w, tg.ones(3), create_graph=True)
    same(tg.autograd.grad(product.sum(), w)[0], [6.0, 6.0, 6.0])
    found = f.jacobian(lambda a: a**3, w, create_graph=True, vectorize=True)
    same(tg.autograd.grad(found.sum(), w)[0], [6.0, 12.0, 18.0])


def test_the_vector_may_be_left_out_for_one_element(tg, f, x):
    same(f.vjp(cube, x)[1], [3.0, 12.0, 27.0])
    same(f.jvp(lambda a: a * x, tg.tensor(2.0))[1], [1.0, 2.0, 3.0])
    with pytest.raises(RuntimeError, match=r"v"):
        f.vjp(lambda a: a, x)
    with pytest.raises(RuntimeError, match=r"v"):
        f.hvp(cube, x)


ERRORS = {
    "constant": lambda tg, f, x: f.jacobian(lambda a: tg.ones(2), x, strict=True),
    "unused": lambda tg, f, x: f.vjp(lambda a, b: a.sum(), (x, x), strict=True),
    "linear": lambda tg, f, x: f.hvp(lambda a: a.sum(), x, x, strict=True),
    "linear, recorded": lambda tg, f, x: f.jvp(
        lambda a: 2 * a, x.clone().requires_grad_(), x, create_graph=True, strict=True
    ),
    "Hessian": lambda tg, f, x: f.hessian(lambda a: a.sum(), x, strict=True),
    "with vectorize": lambda tg, f, x: f.jacobian(cube, x, strict=True, vectorize=True),
    "with forward": lambda tg, f, x: f.jacobian(
        cube, x, strict=True, vectorize=True, strategy="forward-mode"
    ),
}


@pytest.mark.parametrize("call", ERRORS.values(), ids=ERRORS)
def test_strict(tg, f, x, call):
    with pytest.raises(RuntimeError, match=r"strict"):
        call(tg, f, x)


def test_inside_a_transform_the_transforms_are_to_be_used(tg, f, x):
    def inner(a):
        return f.jacobian(lambda b: b**2, a).sum()

    for call in (
        lambda: tg.func.grad(inner)(x),
        lambda: tg.func.vmap(inner)(x.reshape(1, 3)),
        lambda: tg.func.jvp(inner, (x,), (x,)),
    ):
        with pytest.raises(RuntimeError, match=r"transform"):
            call()


def test_types(tg, f, x):
    with pytest.raises(TypeError):
        f.jacobian(cube, 2.0)
    with pytest.raises(TypeError):
        f.jacobian(lambda a: 2.0, x)
    with pytest.raises(AssertionError, match=r"forward-mode"):
        f.jacobian(cube, x, strategy="sideways")
    with pytest.raises(NotImplementedError, match=r"vectorize"):
        f.jacobian(cube, x, strategy="forward-mode")

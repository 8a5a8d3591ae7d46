"""Forward derivatives and maps of jitted functions are compiled, and cached on them."""

import math
import warnings

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.transforms.pytree import flatten

pytestmark = pytest.mark.tapegrad_only("no counterpart in PyTorch")

X = np.array([0.5, 1.0, -2.0])
V = np.array([1.0, -0.4, 0.7])
XS = np.stack([X, -X, X * 0.3, X + 1.0])


def close(found, wanted):
    (a, tree), (b, other) = flatten(found), flatten(wanted)
    assert tree == other
    for x, y in zip(a, b, strict=True):
        assert type(x) is type(y)
        if not isinstance(x, str):
            np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-11, atol=1e-13)


def counting(f):
    """A function, and how often Python has run it."""
    calls = []

    def counted(*args, **kwargs):
        calls.append(1)
        return f(*args, **kwargs)

    return counted, calls


def wave(x):
    return np.sum(np.sin(x) ** 2 * x)


def waves(x):
    return np.sin(x) * x[0] + np.cumsum(x**2)


def rooted(x):
    root = tg.while_loop(
        lambda r: abs(r * r - x[1] ** 2) > 1e-9, lambda r: (r + x[1] ** 2 / r) / 2, 1.0
    )
    return root * np.sum(np.cos(x))


SCALAR = {
    "jvp": lambda f: lambda x: tg.jvp(f, (x,), (V,)),
    "linearize": lambda f: lambda x: tg.linearize(f, x)[1](V),
    "jacfwd": tg.jacfwd,
    "jacrev": tg.jacrev,
    "hessian": tg.hessian,
    "hvp": lambda f: lambda x: tg.hvp(f)(x, V),
    "vhp": lambda f: lambda x: tg.vhp(f)(x, V),
    "jvp_of_grad": lambda f: lambda x: tg.jvp(tg.grad(f), (x,), (V,)),
    "grad_of_jvp": lambda f: tg.grad(lambda x: tg.jvp(f, (x,), (V,))[1]),
    "jacfwd_of_grad": lambda f: tg.jacfwd(tg.grad(f)),
    "jacfwd_of_jacfwd": lambda f: tg.jacfwd(tg.jacfwd(f)),
    "vmap": lambda f: lambda x: tg.vmap(f)(np.stack([x, 2 * x])),
    "vmap_of_grad": lambda f: lambda x: tg.vmap(tg.grad(f))(np.stack([x, 2 * x])),
    "vmap_of_jvp": lambda f: lambda x: tg.vmap(lambda y: tg.jvp(f, (y,), (V,)))(np.stack([x, -x])),
    "vmap_of_vmap": lambda f: lambda x: tg.vmap(tg.vmap(f))(np.stack([XS, XS * x])),
    "vmap_of_hessian": lambda f: lambda x: tg.vmap(tg.hessian(f))(np.stack([x, 2 * x])),
    "grad_of_vmap": lambda f: tg.grad(lambda x: np.sum(tg.vmap(f)(tg.stack([x, x * 2])))),
    "hvp_of_vmap": lambda f: lambda x: tg.hvp(
        lambda x: np.sum(tg.vmap(f)(tg.stack([x, x * 2])) ** 2)
    )(x, V),
    "jvp_of_vmap": lambda f: lambda x: tg.jvp(lambda x: tg.vmap(f)(tg.stack([x, x])), (x,), (V,)),
}  # fmt: skip


@pytest.mark.parametrize("f", [wave, rooted])
@pytest.mark.parametrize("name", SCALAR)
def test_transforms_run_compiled_code(f, name):
    counted, calls = counting(f)
    jitted, make = tg.jit(counted), SCALAR[name]
    transform = make(jitted)
    for _ in range(2):  # a first product with a Hessian tries another way
        close(transform(X), make(f)(X))
    traced, info = len(calls), jitted.cache_info()
    assert info.eager == 0
    for scale in (-0.5, 2.0):
        close(transform(scale * X), make(f)(scale * X))
    assert len(calls) == traced
    assert jitted.cache_info() == info


ARRAYS = {
    "jacfwd": tg.jacfwd,
    "jacrev": tg.jacrev,
    "jacobian": tg.jacobian,
    "vmap": lambda f: lambda x: tg.vmap(f)(XS * x),
    "jvp": lambda f: lambda x: tg.jvp(f, (x,), (V,)),
    "vjp": lambda f: lambda x: tg.vjp(f, x)[1](V),
}


@pytest.mark.parametrize("make", ARRAYS.values(), ids=ARRAYS)
def test_transforms_of_a_function_of_arrays(make):
    counted, calls = counting(waves)
    jitted = tg.jit(counted)
    close(make(jitted)(X), make(waves)(X))
    traced = len(calls)
    close(make(jitted)(-X), make(waves)(-X))
    assert len(calls) == traced


def test_one_object_serves_all_transforms_of_a_kind():
    f = tg.jit(wave)
    for scale in (1.0, 2.0):
        tg.jvp(f, (X * scale,), (V,))
        tg.jvp(lambda x: f(x) * 2.0, (X,), (V,))
    assert f.cache_info() == (1, 1, 0)
    tg.vmap(f)(XS)
    tg.vmap(f, in_axes=1)(XS.T)
    assert f.cache_info() == (2, 2, 0)
    tg.vmap(f)(XS[:2])
    assert f.cache_info() == (3, 3, 0)
    f(X)
    assert f.cache_info() == (4, 4, 0)
    f.clear_cache()
    assert f.cache_info() == (0, 0, 0)


def test_pytrees_statics_names_and_results_of_all_kinds():
    def f(p, n, *, scale, how="plain"):
        y = {"a": p["w"] ** n * scale, "b": (p["b"].sum(), n)}
        return y, how, np.arange(2.0), (p["w"] > 0), None

    jitted = tg.jit(f, static_argnums=1, static_argnames="how")
    given = {"w": XS, "b": XS * 2}

    def mapped(f):
        def one(p):
            y, how, constant, signs, nothing = f(p, 3, scale=2.0, how="other")
            assert (how, nothing) == ("other", None)
            np.testing.assert_array_equal(constant, [0.0, 1.0])
            assert y["b"][1] == 3
            return y["a"], y["b"][0], signs

        return tg.vmap(one)(given)

    close(mapped(jitted), mapped(f))

    def pushed(f):
        def one(p):
            y, how, _, signs, _ = f(p, 3, scale=2.0)
            assert how == "plain"
            return (y["a"], y["b"][0]), signs

        return tg.jvp(one, (given,), (given,), has_aux=True)

    close(pushed(jitted), pushed(f))


def test_arguments_that_are_the_same_for_all_examples_stay_single():
    f = lambda a, x: (a @ x, np.sum(a))
    a = np.arange(6.0).reshape(2, 3)
    jitted = tg.jit(f)
    close(tg.vmap(jitted, (None, 0))(a, XS), tg.vmap(f, (None, 0))(a, XS))
    close(tg.vmap(jitted, (None, 0), (0, None))(a, XS), tg.vmap(f, (None, 0), (0, None))(a, XS))


def test_branches_of_a_function_under_a_forward_derivative_are_guarded():
    f = tg.jit(lambda x: x**2 if x > 0 else -3.0 * x)
    for x in (2.0, -2.0, 3.0, -3.0):
        close(tg.jvp(f, (x,), (1.0,)), (x**2, 2 * x) if x > 0 else (-3.0 * x, -3.0))
    assert f.cache_info() == (1, 2, 0)
    with pytest.raises(RuntimeError, match="under `vmap` a condition can differ"):
        tg.vmap(f)(X)


def test_too_many_branches_are_left_to_python():
    counted, calls = counting(lambda x: x * float(int(tg.stop_gradient(x))))
    f = tg.jit(counted)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for k in range(1, 12):
            close(tg.jvp(f, (k + 0.5,), (1.0,)), (k * (k + 0.5), float(k)))
    assert f.cache_info() == (1, 8, 1)
    assert len(said) == 1
    assert "`jit`: counted branched in more than 8 ways" in str(said[0].message)
    assert len(calls) == 11


def test_what_is_closed_over_keeps_its_derivative():
    def outer(jit):
        def f(x, w):
            return np.sum(jit(lambda y: np.sin(y) * w)(x))

        return f

    plain, compiled = outer(lambda f: f), outer(tg.jit)
    close(tg.jvp(compiled, (X, V), (V, X)), tg.jvp(plain, (X, V), (V, X)))
    close(tg.vmap(compiled)(XS, XS * 2), tg.vmap(plain)(XS, XS * 2))
    close(tg.hessian(compiled, 1)(X, V), tg.hessian(plain, 1)(X, V))
    w = tg.tensor(V, requires_grad=True)
    f = tg.jit(lambda y: (y * w).sum())
    tg.vmap(f)(tg.tensor(XS)).sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), XS.sum(0))


def test_tensors_that_require_grad_under_maps_and_duals():
    f = tg.jit(waves)
    found = []
    for g in (f, waves):
        x = tg.tensor(XS, requires_grad=True)
        tg.vmap(g)(x).sum().backward()
        y, t = tg.tensor(X, requires_grad=True), tg.tensor(V, requires_grad=True)
        (tg.jvp(g, (y,), (t,))[1] ** 2).sum().backward()
        found.append([v.grad.numpy() for v in (x, y, t)])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b)
    assert f.cache_info().eager == 0


def test_dual_tensors_that_the_user_made():
    fwad = tg.autograd.forward_ad
    counted, calls = counting(waves)
    f = tg.jit(counted)
    for _ in range(2):
        with fwad.dual_level():
            y = f(fwad.make_dual(tg.tensor(X), tg.tensor(V)))
            value, slope = fwad.unpack_dual(y)
        np.testing.assert_allclose(slope.numpy(), tg.jvp(waves, (X,), (V,))[1])
        np.testing.assert_allclose(value.numpy(), waves(X))
    assert len(calls) == 1


def test_methods_and_functions_of_functions():
    class Model:
        def __init__(self, w):
            self.w = w

        @tg.jit
        def loss(self, x):
            return np.sum(np.tanh(x * self.w))

    model = Model(1.5)
    plain = lambda x: np.sum(np.tanh(x * 1.5))
    close(tg.vmap(model.loss)(XS), tg.vmap(plain)(XS))
    close(tg.hvp(model.loss)(X, V), tg.hvp(plain)(X, V))
    twice = tg.jit(tg.vmap(tg.jit(tg.grad(wave))))
    close(twice(XS), tg.vmap(tg.grad(wave))(XS))
    assert twice.cache_info() == (1, 1, 0)


def test_changes_in_place_and_errors_within():
    def squares(x):
        y = tg.zeros(3)
        y[1:] = x[1:] ** 2
        return y.sum() + x[0]

    f = tg.jit(squares)
    close(tg.vmap(f)(XS), tg.vmap(squares)(XS))
    close(tg.jvp(f, (X,), (V,)), tg.jvp(squares, (X,), (V,)))
    assert f.cache_info().eager == 0

    def spoiling(x):
        x[0] = 0.0
        return x

    with pytest.raises(RuntimeError, match="the memory of an argument is the caller's"):
        tg.vmap(tg.jit(spoiling))(XS)
    with pytest.raises(RuntimeError, match=r"random numbers were asked for inside `tapegrad.jit`"):
        tg.vmap(tg.jit(lambda x: x * tg.rand(3)))(XS)


def test_single_precision_stays():
    f = tg.jit(waves)
    x = XS.astype(np.float32)
    assert tg.vmap(f)(x).dtype == np.float32
    value, slope = tg.jvp(f, (x[0],), (x[1],))
    assert value.dtype == slope.dtype == np.float32


def test_a_change_of_a_tensor_from_outside_is_seen():
    w = tg.tensor(V.copy())
    f = tg.jit(lambda x: (x * w).sum())
    close(tg.vmap(f)(XS), XS @ V)
    w.mul_(2.0)
    close(tg.vmap(f)(XS), XS @ V * 2)


def as_a_number(x):
    return float(np.sum(x**2))


def in_an_array(x):
    found = np.zeros((2, 2))
    found[0, 0] = found[1, 1] = math.cos(x[0])
    return found


TRANSFORMS = {
    "grad": tg.grad,
    "value_and_grad": tg.value_and_grad,
    "hessian": tg.hessian,
    "jacrev": tg.jacrev,
    "vjp": lambda f: lambda x: tg.vjp(f, x),
    "jvp": lambda f: lambda x: tg.jvp(f, (x,), (x,)),
    "jit of grad": lambda f: tg.jit(tg.grad(f)),
    "minimize": lambda f: lambda x: tg.optimize.minimize(f, x),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_numbers_that_python_makes_of_arguments_have_no_derivative(name):
    x, compiled = np.array([0.3, 0.9]), tg.jit(as_a_number)
    assert compiled(x) == pytest.approx(0.9)
    with pytest.raises(RuntimeError, match=r"would lose its gradient|cannot be turned into"):
        TRANSFORMS[name](compiled)(x)
    rotated = tg.jit(in_an_array)
    with pytest.raises(RuntimeError, match=r"lose its gradient|be turned|cannot put a Tensor"):
        TRANSFORMS[name](lambda x: np.sum(rotated(x) @ x))(x)


def test_numbers_of_what_is_not_differentiated_have_no_part_in_it():
    chosen = tg.jit(lambda x, n: x**2 if float(n) > 1 else x)
    assert tg.grad(chosen)(0.5, 2.0) == 1.0
    with pytest.raises(RuntimeError, match=r"lose its gradient.*\(at .*test_jit_transforms.py:"):
        tg.grad(chosen, argnums=1)(0.5, 2.0)
    assert tg.grad(tg.jit(lambda x: x * float(tg.stop_gradient(x))))(0.5) == 0.5
    assert tg.grad(tg.jit(lambda x: x * x if x > 1 else x))(0.5) == 1.0

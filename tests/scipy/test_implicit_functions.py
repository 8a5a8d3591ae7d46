"""Roots and fixed points: values are SciPy's, derivatives those of the implicit function."""

import math
import warnings

import numpy as np
import pytest
import scipy.optimize

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("PyTorch has other names")

A, V = np.array([0.5, 0.8]), np.array([1.0, -0.7])
MATRIX = np.array([[1.0, 0.3], [-0.2, 2.0]])


def cubic(x, a):
    return x**3 - a[0] * x - a[1]


def cubic_slope(x, a):
    return 3 * x**2 - a[0]


def system(x, a):
    return np.stack([x[0] + a[0] * x[1] ** 3 - 1.0, np.exp(x[1]) + a[1] * x[0] - 2.0])


def system_slope(x, a):
    one = 1.0 + 0.0 * x[0]
    return np.stack([
        np.stack([one, 3 * a[0] * x[1] ** 2]), np.stack([a[1] * one, np.exp(x[1])])
    ])  # fmt: skip


def listed(x, a):
    return [x[0] + a[0] * x[1] ** 3 - 1.0, np.exp(x[1]) + a[1] * x[0] - 2.0]


# Each of the module, SciPy's or ours, and of two numbers.
ROOTS = {
    "brentq": lambda lib, a: lib.brentq(cubic, 0.0, 4.0, (a,)),
    "closure": lambda lib, a: lib.brentq(lambda x: cubic(x, a), 0.0, 4.0),
    "full": lambda lib, a: lib.brenth(cubic, 0.0, 4.0, (a,), full_output=True)[1].root,
    "bisect": lambda lib, a: lib.bisect(cubic, 0.0, 4.0, (a,)),
    "ridder": lambda lib, a: lib.ridder(cubic, 0.0, 4.0, (a,)),
    "toms748": lambda lib, a: lib.toms748(cubic, 0.0, 4.0, (a,), 2),
    "between Tensors": lambda lib, a: lib.brentq(cubic, a[0] - 0.5, a[1] + 3.0, (a,)),
    "scalar": lambda lib, a: lib.root_scalar(cubic, (a,), bracket=(0, 4)).root,
    "scalar, near": lambda lib, a: lib.root_scalar(cubic, (a,), x0=2.0).root,
    "scalar, secant": lambda lib, a: lib.root_scalar(cubic, (a,), x0=2.0, x1=2.2).root,
    "scalar, slope": lambda lib, a: (
        lib.root_scalar(cubic, (a,), x0=2.0, fprime=cubic_slope, options={"maxiter": 30}).root
    ),
    "scalar, pair": lambda lib, a: (
        lib.root_scalar(lambda x: (cubic(x, a), cubic_slope(x, a)), x0=2.0, fprime=True).root
    ),
    "newton": lambda lib, a: lib.newton(cubic, 2.0, args=(a,), fprime=cubic_slope),
    "newton, full": lambda lib, a: lib.newton(cubic, 2.0, args=(a,), full_output=True)[1].root,
    "newton of arrays": lambda lib, a: lib.newton(lambda x: x**3 - a, np.array([1.0, 2.0])),
    "newton of arrays, full": lambda lib, a: lib.newton(
        lambda x: x**3 - a, np.array([1.0, 2.0]), full_output=True
    )[0],
    "fixed_point": lambda lib, a: lib.fixed_point(lambda x: a[1] * np.cos(a[0] * x), 0.5),
    "fixed_point of arrays": lambda lib, a: lib.fixed_point(
        lambda x, a: np.cos(MATRIX * a * x) / 2, np.ones((2, 2)), (a,), method="iteration"
    ),
    "fsolve": lambda lib, a: lib.fsolve(system, [0.0, 0.0], (a,)),
    "fsolve, listed": lambda lib, a: lib.fsolve(listed, [0.0, 0.0], (a,)),
    "fsolve, full": lambda lib, a: lib.fsolve(
        system, np.zeros(2), (a,), system_slope, full_output=True
    )[0],
    "fsolve of a number": lambda lib, a: lib.fsolve(cubic, 2.0, (a,)),
    "root": lambda lib, a: lib.root(system, np.zeros(2), (a,)).x,
    "root, pair": lambda lib, a: (
        lib.root(lambda x, a: (system(x, a), system_slope(x, a)), np.zeros(2), (a,), jac=True).x
    ),
    "root of a matrix": lambda lib, a: (
        lib.root(lambda x: x**3 + MATRIX @ x - a, np.ones((2, 2)), method="krylov", tol=1e-12).x
    ),
}


@pytest.mark.parametrize("name", ROOTS)
def test_values_are_scipys(name):
    found = ROOTS[name](tg.scipy.optimize, tg.tensor(A, requires_grad=True))
    wanted = ROOTS[name](scipy.optimize, A)
    assert isinstance(found, tg.Tensor)
    assert tuple(found.shape) == np.shape(wanted)
    # The derivative of Newton's method is exact, and what `root` finds is refined.
    exact = name != "scalar, near" and not name.startswith("root")
    np.testing.assert_allclose(found.detach(), wanted, rtol=1e-14 if exact else 1e-9)


@pytest.mark.parametrize("name", [n for n in ROOTS if n not in ("bisect", "ridder", "toms748")])
def test_derivatives_in_all_modes(name):
    def f(a):
        return np.sum(np.sin(ROOTS[name](tg.scipy.optimize, a)))

    def near(actual, desired):
        np.testing.assert_allclose(actual, desired, rtol=1e-6, atol=1e-9)

    slope, second, both = tg.grad(f), tg.hessian(f), np.stack([A, 1.1 * A])
    g, h = slope(A), second(A)
    value = f(A)
    tg.check_grads(f, (A,), order=2, rtol=1e-4, atol=1e-5)
    near(tg.jvp(f, (A,), (V,))[1], g @ V)
    near(tg.jvp(slope, (A,), (V,))[1], h @ V)
    near(tg.vmap(f)(both), [value, f(both[1])])
    near(tg.vmap(slope)(both), [g, slope(both[1])])
    for compiled, wanted in (
        (tg.jit(f), value), (tg.jit(slope), g), (tg.grad(tg.jit(f)), g), (tg.jit(second), h),
        (tg.hessian(tg.jit(f)), h),
    ):  # fmt: skip
        near(compiled(A), wanted)
    near(tg.jit(tg.vmap(slope))(both)[1], slope(both[1]))
    leaf = tg.tensor(A, requires_grad=True)
    f(leaf).backward()
    near(leaf.grad, g)


def test_derivatives_of_high_order():
    def cube_root(a):
        return tg.scipy.optimize.brentq(lambda x: x**3 - a, 0.0, 3.0)

    f, wanted = cube_root, 2.0 ** (1 / 3)
    for order in range(6):
        assert math.isclose(f(2.0), wanted, rel_tol=1e-9)
        if order < 4:
            assert math.isclose(tg.jit(f)(2.0), wanted, rel_tol=1e-9)
        wanted *= (1 / 3 - order) / 2.0
        f = tg.grad(f)
    f = tg.jit(cube_root)
    assert math.isclose(tg.grad(tg.grad(tg.grad(f)))(2.0), 10 / 27 * 2.0 ** (-8 / 3))
    x = tg.tensor(2.0, requires_grad=True)
    y = cube_root(x)
    for _ in range(3):
        (y,) = tg.autograd.grad(y, x, create_graph=True)
    assert math.isclose(y.item(), 10 / 27 * 2.0 ** (-8 / 3))


def test_roots_within_roots():
    def inner(a, b):
        return tg.scipy.optimize.newton(lambda y: y + np.sin(y) - a * b, 0.5)

    def outer(a):
        return tg.scipy.optimize.brentq(lambda b: inner(a, b) + b - 1.0, -3.0, 3.0)

    tg.check_grads(outer, (0.7,), order=2, rtol=1e-5)
    for f in (outer, tg.grad(outer)):
        assert math.isclose(tg.jit(f)(0.7), f(0.7), rel_tol=1e-9)
        assert math.isclose(tg.vmap(f)(np.array([0.7, 0.1]))[0], f(0.7), rel_tol=1e-9)


@pytest.mark.parametrize("name", ["brentq", "newton", "fixed_point of arrays", "fsolve", "root"])
def test_single_precision(name):
    a = tg.tensor(A, dtype=tg.float32, requires_grad=True)
    f = lambda a: ROOTS[name](tg.scipy.optimize, a)
    wanted = f(A)
    slope = tg.grad(lambda a: np.sum(f(a)))(A)
    found = f(a)
    found.sum().backward()
    assert {found.dtype, a.grad.dtype} == {tg.float32}
    np.testing.assert_allclose(found.detach(), wanted, rtol=1e-6)
    np.testing.assert_allclose(a.grad, slope, rtol=1e-5)
    single = tg.jit(f)(A.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, wanted, rtol=1e-6)
    # What the function reads elsewhere may be in single precision alone.
    single = tg.jit(lambda a: tg.scipy.optimize.newton(lambda x: x**3 - a[0], 1.0))(tg.tensor(
        A, dtype=tg.float32))  # fmt: skip
    np.testing.assert_allclose(single, np.cbrt(A[0]), rtol=1e-6)


def test_without_tensors_they_are_scipys():
    lib = tg.scipy.optimize
    assert type(lib.brentq(math.cos, 0.0, 3.0)) is float
    assert lib.root_scalar(math.cos, x0=1.0) == scipy.optimize.root_scalar(math.cos, x0=1.0)
    assert type(lib.fsolve(system, np.zeros(2), (A,))) is np.ndarray
    assert tg.jit(lambda x: x * lib.brentq(math.cos, 0.0, 3.0))(2.0) == math.pi
    assert lib.linprog is scipy.optimize.linprog
    unfollowed = lib.root(system, np.zeros(2), (tg.tensor(A),)).x
    assert isinstance(unfollowed, tg.Tensor)
    assert not unfollowed.requires_grad


def test_results_have_scipys_fields():
    for method in ("brentq", "newton"):
        how = {"bracket": [0.0, 4.0]} if method == "brentq" else {"x0": 2.0, "fprime": cubic_slope}
        found = tg.scipy.optimize.root_scalar(cubic, (tg.tensor(A),), **how)
        wanted = scipy.optimize.root_scalar(cubic, (A,), **how)
        assert type(found) is type(wanted)
        assert found == wanted

    def traced(a):
        found = tg.scipy.optimize.root_scalar(cubic, (a,), bracket=[0.0, 4.0])
        several = tg.scipy.optimize.root(system, np.zeros(2), (a,))
        full = tg.scipy.optimize.fsolve(system, np.zeros(2), (a,), full_output=True)
        return found.converged, found.iterations, several.success, several.nit, full[2]

    converged, iterations, success, trips, flag = tg.jit(traced)(A)
    assert converged
    assert success
    assert flag == 1
    assert 3 < iterations < 15
    assert 2 < trips < 10


def test_what_is_not_found():
    lib, t = tg.scipy.optimize, tg.tensor(A, requires_grad=True)
    square = lambda x, a: x**2 + a[0]
    for call, error, words in [
        (lambda: lib.brentq(cubic, 3.0, 4.0, (t,)), ValueError, "must have different signs"),
        (lambda: lib.brentq(cubic, 0.0, 4.0, (t,), maxiter=2), RuntimeError, "Failed to converge"),
        (lambda: lib.newton(square, 1.0, args=(t,)), RuntimeError, "Failed to converge"),
        (lambda: lib.fixed_point(lambda x: 2 * x + t[0], 1.0, maxiter=1, method="iteration"),
         RuntimeError, "Failed to converge"),
        (lambda: lib.fsolve(lambda x: x[:1] - t[0], [0.0, 1.0]), TypeError, "mismatch between"),
        (lambda: lib.root(system, np.zeros(2), (t,), method="x"), ValueError, "Unknown solver x"),
        (lambda: lib.brentq(None, 0.0, 1.0), TypeError, "`brentq` takes a function, got NoneType"),
        (lambda: lib.newton(lambda x: x - t[0], 1j), TypeError, "real roots, got complex"),
    ]:  # fmt: skip
        with pytest.raises(error, match=words):
            call()
    with pytest.raises(TypeError, match="real roots, got complex"):
        tg.jit(lambda a: lib.newton(lambda x: x - a, 1j))(1.0)
    with pytest.warns(RuntimeWarning, match="not making good progress"):
        lib.fsolve(square, 1.0, (t,))
    for f in (
        lambda a: lib.brentq(cubic, 3.0, 4.0, (a,)),
        lambda a: lib.brentq(cubic, 0.0, 4.0, (a,), maxiter=2),
        lambda a: lib.newton(square, 1.0, args=(a,)),
        lambda a: lib.fsolve(square, 1.0, (a,))[0],
        lambda a: lib.root(square, 1.0, (a,)).x[0],
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            assert np.isnan(tg.jit(f)(A))
            assert np.isnan(tg.vmap(f)(np.stack([A, A]))).all()


def test_an_end_or_a_start_may_be_the_root():
    for f in (
        lambda a: tg.scipy.optimize.brentq(lambda x: x - a, 1.0, 3.0),
        lambda a: tg.scipy.optimize.brentq(lambda x: x - a, -3.0, 1.0),
        lambda a: tg.scipy.optimize.newton(lambda x: x - a, 1.0),
        lambda a: tg.scipy.optimize.fsolve(lambda x: x**3 + x - 2 * a, (1.0,))[0],
    ):
        slope = tg.grad(f)(1.0)
        assert slope in (1.0, 0.5)
        assert tg.jit(f)(1.0) == tg.vmap(f)(np.ones(2))[0] == 1.0
        assert math.isclose(tg.jit(tg.grad(f))(1.0), slope)


optimize = tg.scipy.optimize

LOST = {
    "brentq": lambda p: optimize.brentq(lambda t: math.exp(p[0] * t) - 1.2, 0, 2),
    "newton": lambda p: optimize.newton(lambda t: math.exp(p[0] * t) - 1.2, 0.1),
    "fixed_point": lambda p: optimize.fixed_point(lambda t: math.cos(t * p[0]), 0.1),
    "minimize": lambda p: optimize.minimize(lambda t: float((t[0] - p[0]) ** 2), [0.1]).x[0],
    "least_squares": lambda p: optimize.least_squares(
        lambda t: np.array([float(t[0] - p[0])]), [0.1]
    ).x[0],
    "fsolve": lambda p: optimize.fsolve(lambda z: in_an_array(z, p), np.zeros(2)).sum(),
}


def in_an_array(z, p):
    found = np.zeros(2)
    found[0], found[1] = z[0] - p[0], z[1] - p[1]
    return found


@pytest.mark.parametrize("name", LOST)
@pytest.mark.parametrize(
    "derivative", [tg.grad, lambda f: tg.jit(tg.grad(f)), lambda f: tg.grad(tg.jit(f))]
)
def test_numbers_made_of_what_a_closure_reads_are_refused(name, derivative):
    p = np.array([0.3, 0.9])
    LOST[name](p)
    with pytest.raises(RuntimeError, match=r"would lose its gradient|`array\[...\] = t` cannot"):
        derivative(LOST[name])(p)
    constant = derivative(lambda p: p[0] * optimize.brentq(lambda t: math.exp(t) - 1.2, 0, 2))(p)
    assert constant == pytest.approx([math.log(1.2), 0.0])


def test_where_levenberg_and_marquardt_find_no_root_the_value_is_scipys():
    def nearest(p):
        equations = lambda t: [t[0] + t[1] ** 2 - p, t[0] * t[1] - 0.1]
        return optimize.root(equations, [0.1, 0.5], method="lm").x[0]

    assert tg.value_and_grad(nearest)(0.3)[0] == pytest.approx(nearest(0.3))
    _, slope = tg.value_and_grad(nearest)(0.9)
    h = 1e-6
    assert slope == pytest.approx((nearest(0.9 + h) - nearest(0.9 - h)) / (2 * h), rel=1e-5)

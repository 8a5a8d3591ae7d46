"""No function of NumPy loses a gradient silently: the whole namespace is called with Tensors."""

import inspect
import warnings

import numpy as np
import pytest
import scipy.special

import tapegrad as tg
from tapegrad.autograd import gradcheck, gradgradcheck
from tapegrad.numpy_face.common import title
from tapegrad.numpy_face.constants import NAMES as CONSTANT
from tapegrad.numpy_face.constants import SHAPES
from tapegrad.numpy_face.handlers import table
from tapegrad.numpy_face.ufuncs import SPECIAL, TABLE
from tapegrad.ops import scipy_bessel, scipy_distributions, scipy_elliptic, scipy_special
from tapegrad.ops.core import NotImplementedYet

pytestmark = pytest.mark.tapegrad_only("PyTorch does not answer NumPy's functions")

# Results without a derivative: comparisons, truth values, indices, shapes; the zeros that `imag`
# gives for what is real.
FILLED = {"empty_like", "ones_like", "zeros_like"}
NO_DERIVATIVE = FILLED | {
    *CONSTANT,
    *SHAPES,
    *"all any argmax argmin argsort count_nonzero isclose matrix_rank searchsorted".split(),
    *(
        "equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor "
        "logical_not isnan isinf isfinite signbit imag"
    ).split(),
}
# Functions that NumPy does not ask a Tensor about: these say what an object is, print a number,
# or make Python numbers of what they iterate over, as `float(t)` does.
DESCRIBE = set(
    "base_repr binary_repr format_float_positional format_float_scientific fromiter isscalar "
    "iterable mintypecode typename".split()
)
# Those that NumPy asks a Tensor about if it is their `like` alone.
LIKE = {"array", "asarray", "empty", "full", "ones", "zeros"}
# Not about arrays.
SYSTEM = set(
    "bmat geterr geterrcall get_include get_printoptions getbufsize info load nested_iters "
    "printoptions set_printoptions setbufsize seterr seterrcall show_config show_runtime test "
    "fromfile fromregex genfromtxt loadtxt".split()
)
# An argument of these names says what to do: it is no operand that a gradient could flow to
# (nor is `dx` beside `x`).
OPTIONS = set(
    "axis axes condition k n M N R order dtype shape indices indices_or_sections decimals deg tol "
    "assume_unique return_index repeats reps shift ord UPLO mode start destination source rowvar "
    "newshape axis1 axis2 offset kth side right keepdims bins obj period discont condlist rcond "
    "full_matrices optimize window_shape pad_width new_shape copy casting kind ndmin subok range "
    "hermitian full_like.a trapezoid.dx setdiff1d.ar2".split()
)
T = [[1.5, 0.5], [0.25, 2.0]]
V = [0.5, 0.25, 0.75]
PATTERNS = {
    "t": lambda t: (t,),
    "t, t": lambda t: (t, t),
    "t, t, t": lambda t: (t, t, t),
    "[t, t]": lambda t: ([t, t],),
    "[t], [t]": lambda t: ([t], [t]),
    "t, 1": lambda t: (t, 1),
    "t, 0, 0": lambda t: (t, 0, 0),
    "t, [0], [1]": lambda t: (t, [0], [1]),
    "t, places": lambda t: (t, np.zeros((1, 1), int)),
    "t, shape": lambda t: (t, tuple(t.shape)),
    "deep t, 1": lambda t: (t.reshape(*t.shape, 1), 1),
    "t, dtype": lambda t: (t, np.float64),
    "t, t, 1": lambda t: (t, t, 1),
    "places, t": lambda t: (np.zeros(t.shape, int), t),
    "places, [t, t]": lambda t: (np.zeros(t.shape, int), [t, t]),
    "array, t": lambda t: (np.ones(2), t),
    "array, t, t": lambda t: (np.ones((2, 1), bool), t, t),
    "array, array, t": lambda t: (np.ones(2), np.ones(2), t),
    "[array], [t]": lambda t: ([np.ones(t.shape, bool)], [t]),
}
FUNCTION_FIRST = {
    "function, 0, t": lambda t: (np.sin, 0, t),
    "function, t": lambda t: (np.sin, t),
    "function, t, 0": lambda t: (np.sum, t, 0),
}
TAKE_FUNCTIONS = {"apply_along_axis", "apply_over_axes", "fromfunction"}
WHOLE_NUMBERS = {"invert", "left_shift", "right_shift", "gcd", "lcm"}
# They write into their first argument and return nothing.
WRITE = set("copyto fill_diagonal place put put_along_axis putmask".split())
# Numbers between edges that are given, a quotient that is zero, the zeroth power alone.
CONSTANT_OF = {
    "histogram": {"t, shape"},
    "histogram_bin_edges": {"t, shape", "t, [0], [1]"},
    "polydiv": {"array, t"},
    "vander": {"t, 1", "t, 0, 0"},
}


def public():
    for module in (np, np.linalg):
        for name in sorted(module.__all__):
            thing = getattr(module, name)
            if callable(thing) and not isinstance(thing, type) and name not in SYSTEM:
                yield f"{module.__name__}.{name}", thing


FUNCTIONS = dict(public())


def leaves(x):
    if isinstance(x, (list, tuple)):
        return [leaf for part in x for leaf in leaves(part)]
    return [x]


def carries(func, args):
    """Whether a Tensor among the arguments is an operand, by the names of the parameters."""
    try:
        names = [p.name for p in inspect.signature(func).parameters.values()]
    except ValueError:
        names = []
    names += [""] * len(args)
    return any(
        any(isinstance(leaf, tg.Tensor) for leaf in leaves(x))
        and not {name, f"{func.__name__}.{name}"} & OPTIONS
        for x, name in zip(args, names, strict=False)
    )


def outcome(func, args):
    """What became of the gradient: "tracked", "refused" by name, "raised" or "lost"."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = func(*args)
    except TypeError as problem:
        said = str(problem)
        return "refused" if said.startswith(f"`{title(func)}` is not supported") else "raised"
    except Exception:  # other arguments are wanted, or `__array__` refused
        return "raised"
    tracked = [x.requires_grad for x in leaves(found) if isinstance(x, tg.Tensor)]
    return "tracked" if any(tracked) else "lost"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_gradient_is_lost(name):
    func, short = FUNCTIONS[name], name.rsplit(".", 1)[1]
    patterns = PATTERNS | (FUNCTION_FIRST if short in TAKE_FUNCTIONS else {})
    outcomes = {}
    for data in (T, V):
        t = tg.tensor(data, requires_grad=True)
        for pattern, make in patterns.items():
            args = make(t)
            if carries(func, args) and pattern not in CONSTANT_OF.get(short, ()):
                outcomes[f"{pattern} of shape {tuple(t.shape)}"] = outcome(func, args)
    if short in NO_DERIVATIVE or short in DESCRIBE:
        assert not {"tracked", "refused"} & set(outcomes.values()) or short == "mintypecode"
        return
    assert not [pattern for pattern, what in outcomes.items() if what == "lost"]
    if short in WRITE:
        assert set(outcomes.values()) <= {"raised", "refused"}
        return
    asked = func in table() or isinstance(func, np.ufunc) or "refused" in outcomes.values()
    whole = short.startswith("bitwise") or short in WHOLE_NUMBERS
    assert {"tracked", "refused"} & set(outcomes.values()) or not asked or whole or short in LIKE


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_refuse_tensors_that_require_no_grad_too(name):
    func = FUNCTIONS[name]
    for requires_grad in (True, False):
        t = tg.tensor(T, requires_grad=requires_grad)
        seen = {p: outcome(func, make(t)) for p, make in PATTERNS.items()}
        if requires_grad:
            refused = {p for p, what in seen.items() if what == "refused"}
        else:
            assert refused == {p for p, what in seen.items() if what == "refused"}


def test_ufuncs_of_scipy():
    t = tg.tensor(V, requires_grad=True)
    for name in dir(scipy.special):
        func = getattr(scipy.special, name)
        if not isinstance(func, np.ufunc) or func in TABLE:
            continue
        assert name in ("psi", func.__name__, "jn") or getattr(scipy.special, func.__name__) is func
        found = outcome(func, (t,) * func.nin)
        assert found in ("tracked", "refused")
        assert found == "refused" or func.__name__ in SPECIAL


POLYNOMIALS = [name for name in SPECIAL if name.startswith("eval_")]


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials_of_scipy(name):
    f, x = getattr(scipy.special, name), np.array([-0.3, 0.4, 1.5])
    orders = (0.5, 1.5)[: f.nin - 2]
    for n in (0, 3, 4.0, np.array([1, 2, 3]), tg.tensor([1, 2, 3])):
        t = tg.tensor(x, requires_grad=True)
        found = f(n, *orders, t)
        assert found.requires_grad
        degree = np.asarray(n).astype(int)
        np.testing.assert_allclose(found.detach().numpy(), f(degree, *orders, x), rtol=1e-12)
        assert gradcheck(lambda t, n=n: f(n, *orders, t), (t,))
    for n in (2.5, -1, tg.tensor(2.0, requires_grad=True)):
        with pytest.raises(TypeError, match=f"`scipy.special.{name}` is not supported"):
            f(n, *orders, tg.tensor(x, requires_grad=True))
    for k in range(len(orders)):
        given = [2, *orders, 0.5]
        given[k + 1] = tg.tensor(given[k + 1], requires_grad=True)
        with pytest.raises(TypeError, match=f"`scipy.special.{name}` is not supported"):
            f(*given)


FAMILIES = (scipy_bessel, scipy_distributions, scipy_elliptic, scipy_special)
OF_SCIPY = [op for family in FAMILIES for op in family.ROWS]


@pytest.mark.parametrize("op", OF_SCIPY, ids=lambda op: op.name)
def test_functions_that_scipy_alone_has(op):
    """By SciPy's own ufunc, against differences, compiled and mapped; the table tests the rules."""
    ufunc = getattr(scipy.special, op.forward.name)
    points = [[1.5, 2.5], [3.0, 2.0], [4.0, 1.0], [0.2, 0.6]][-ufunc.nin :]
    if op is scipy_special.ndtri_exp:  # of the logarithm of a probability
        points = [[-0.2, -0.6]]
    of = max(k for k, f in enumerate(op.formulas) if not isinstance(f, NotImplementedYet))
    rest, x = list(map(np.array, points)), np.array(points[of])
    f = lambda x: ufunc(*rest[:of], x, *rest[-1:][: ufunc.nin - 1 - of])
    t = tg.tensor(x, requires_grad=True)
    np.testing.assert_allclose(f(t).detach(), f(x), rtol=1e-13)
    assert tg.autograd.gradcheck(f, (t,), check_forward_ad=True)
    slope = tg.grad(lambda x: f(x).sum())
    np.testing.assert_allclose(tg.jit(slope)(x), slope(x), rtol=1e-13)
    np.testing.assert_allclose(tg.vmap(slope)(np.stack([x, x]))[1], slope(x), rtol=1e-13)


def test_integrals_of_sine_and_cosine():
    """Two results, each with its derivative, at 0 too."""
    x = np.array([1e-3, 0.7, 30.0])
    slopes = np.stack([np.sinc(x / np.pi), np.cos(x) / x])
    for f in (tg.jacfwd, tg.jacrev, lambda g: tg.jit(tg.jacrev(g))):
        found = f(lambda x: np.stack(scipy.special.sici(x)))(x)
        np.testing.assert_allclose(found.sum(2), slopes, rtol=1e-13)
    assert tg.grad(lambda x: scipy.special.sici(x)[0])(0.0) == 1.0


def test_integrals_of_fresnel():
    x = np.array([0.0, -0.7, 3.0])
    slopes = np.stack([np.sin(np.pi / 2 * x * x), np.cos(np.pi / 2 * x * x)])
    f = lambda x: np.stack(scipy.special.fresnel(x))
    np.testing.assert_array_equal(f(tg.tensor(x)), scipy.special.fresnel(x))
    for jacobian in (tg.jacfwd, tg.jacrev, lambda g: tg.jit(tg.jacrev(g))):
        np.testing.assert_allclose(jacobian(f)(x).sum(2), slopes, rtol=1e-13)
    bend = tg.jit(tg.vmap(tg.grad(tg.grad(lambda x: f(x)[0]))))(x)
    np.testing.assert_allclose(bend, np.pi * x * slopes[1], rtol=1e-13)


@pytest.mark.parametrize(
    ("name", "x", "second"),
    [
        ("spence", 1.0, 0.5),
        ("spence", 1.0 + 1e-7, 0.5 - 1e-7 * 2 / 3),
        ("ellipk", 0.0, np.pi * 9 / 64),
        ("ellipe", 0.0, -np.pi * 3 / 64),
    ],
)  # fmt: skip
def test_second_derivatives_where_a_quotient_is_zero_by_zero(name, x, second):
    slope = tg.grad(getattr(scipy.special, name))
    np.testing.assert_allclose(tg.grad(slope)(x), second, rtol=1e-13)


@pytest.mark.parametrize("power", [0.0, 1e-9, 0.0999, 0.1001, 1.5])
def test_box_cox_in_its_parameter(power):
    """Both ways, through each other: to first and second order, with differences in neither."""
    x, y = 0.8, scipy.special.boxcox(0.8, power)
    f, g = scipy.special.boxcox, scipy.special.inv_boxcox
    there, back = (tg.grad(h, argnums=(0, 1)) for h in (f, g))
    (x_slope, slope), (y_slope, back_slope) = there(x, power), back(y, power)
    np.testing.assert_allclose(y_slope, 1 / x_slope, rtol=1e-13)
    np.testing.assert_allclose(back_slope, -slope / x_slope, rtol=1e-12)
    whole = tg.hessian(lambda p: g(f(x, p), p) + x * p)
    np.testing.assert_allclose(whole(power), 0.0, atol=1e-10)


def test_relative_exponential():
    """Its product with x is `expm1`, to first and second order; at 0 the derivative is a half."""
    x, f = np.array([-30.0, -0.1001, -0.0999, 1e-9, 0.0999, 0.1001, 30.0]), scipy.special.exprel
    slope, bend = tg.grad(lambda x: f(x).sum()), tg.grad(lambda x: tg.grad(f)(x))
    np.testing.assert_allclose(x * slope(x) + f(x), np.exp(x), rtol=1e-14, atol=1e-16)
    assert slope(np.zeros(1)) == [0.5]
    for t in x:
        np.testing.assert_allclose(t * bend(t) + 2 * slope(t), np.exp(t), rtol=1e-13, atol=1e-16)


def test_orders_of_scipys_functions_have_no_derivative():
    for name in ("jv", "expn", "hyp1f1"):
        ufunc = getattr(scipy.special, name)
        others = (0.5,) * (ufunc.nin - 1)
        with pytest.raises(NotImplementedError, match=f"`scipy.special.{name}` has no derivative"):
            tg.grad(lambda n, ufunc=ufunc, others=others: ufunc(n, *others))(1.0)


def test_the_zeta_function_of_scipy():
    x = np.array([0.5, 1.5])
    slope = tg.grad(lambda x: scipy.special.zeta(2.0, x).sum())(x)
    np.testing.assert_allclose(slope, -2 * scipy.special.zeta(3.0, x), rtol=1e-14)
    with pytest.raises(TypeError, match=r"`scipy.special.zetac` is not supported"):
        scipy.special.zetac(tg.tensor(x))


def test_lamberts_function_has_its_real_branches():
    lambertw, x = scipy.special.lambertw, np.array([-0.3, -0.01, 0.0, 0.5, 1e5])
    np.testing.assert_allclose(lambertw(tg.tensor(x)).numpy(), lambertw(x).real, rtol=1e-14)
    low = lambertw(tg.tensor(x[:2]), -1)
    np.testing.assert_allclose(low.numpy(), lambertw(x[:2], -1).real, rtol=1e-14)
    assert lambertw(tg.tensor([-0.5])).isnan().item()
    for k, at in ((0, x), (-1, x[:2])):
        slope = tg.grad(lambda x, k=k: np.sum(lambertw(x, k)))
        w = lambertw(at, k).real
        np.testing.assert_allclose(slope(at) * np.exp(w) * (1 + w), 1.0, rtol=1e-13)
        np.testing.assert_allclose(tg.jit(slope)(at), slope(at), rtol=1e-13)
    assert lambertw(tg.tensor(x, dtype=tg.float32)).dtype == tg.float32
    with pytest.raises(ValueError, match="real branches 0 and -1, got 1"):
        lambertw(tg.tensor(x), 1)


def test_voigts_profile():
    def total(x, sigma, gamma):
        return np.sum(np.sin(scipy.special.voigt_profile(x, sigma, gamma)))

    x = tuple(
        tg.tensor(v, requires_grad=True)
        for v in ([-2.0, 0.0, 0.3, 50.0], [0.5, 1.0, 0.1, 2.0], 0.7)
    )
    assert gradcheck(total, x)
    assert gradgradcheck(total, x)
    found = scipy.special.voigt_profile(tg.tensor([1.0], dtype=tg.float32), 0.5, 0.5)
    assert found.dtype == tg.float32


def test_every_name_of_a_constant_is_one_of_numpy():
    assert all(getattr(np, name) in table() for name in CONSTANT)

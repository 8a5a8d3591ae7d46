"""`tg.optimize`: SciPy's optimizers over pytrees, with derivatives that need not be asked for."""

import dataclasses
import gc
import io
import sys
from typing import NamedTuple

import numpy as np
import pytest
from scipy import optimize

import tapegrad as tg
from tapegrad.optimize.minimizing import METHODS
from tapegrad.tape.tape import current

pytestmark = pytest.mark.tapegrad_only("there is no counterpart in PyTorch")

minimize, least_squares = tg.optimize.minimize, tg.optimize.least_squares
DERIVATIVES = [title for title, wants, *_ in METHODS.values() if wants != "free"]
BOUNDED = [title for title, _, bounded, _ in METHODS.values() if bounded]
CONSTRAINED = [title for title, *_, constrained in METHODS.values() if constrained]
OPTIONS = {"TNC": {"maxfun": 1000}, "SLSQP": {"ftol": 1e-12}, "COBYLA": {"maxiter": 5000}}


def bowl(p):
    """Convex, smallest at a = (1, 2), b = 3, c = [[0, -1]]."""
    a = p["a"] - np.array([1.0, 2.0])
    b = p["b"] - 3.0
    c = p["c"] - np.array([[0.0, -1.0]])
    return np.sum(np.cosh(a)) + b**2 + np.sum(c**2) + 0.1 * b * a[0]


def start():
    return {"a": np.array([0.5, 1.0]), "b": 2.0, "c": np.array([[0.5, 0.0]])}


LOWEST = {"a": [1.0, 2.0], "b": 3.0, "c": [[0.0, -1.0]]}


@pytest.mark.parametrize("method", METHODS)
def test_every_method_finds_the_minimum_of_a_pytree(method):
    title = METHODS[method][0]
    found = minimize(bowl, start(), method=title, options=OPTIONS.get(title))
    assert found.success
    assert isinstance(found, optimize.OptimizeResult)
    assert type(found.fun) is float
    for name, expected in LOWEST.items():
        np.testing.assert_allclose(found.x[name], expected, atol=1e-3)
    assert type(found.x["b"]) is float
    assert found.x["c"].shape == (1, 2)
    gradient = found.get("grad" if title == "trust-constr" else "jac")
    if title in DERIVATIVES:
        exact = tg.grad(bowl)(found.x)
        late = 1e-6 if title == "Newton-CG" else 1e-12  # its `jac` is that before the last step
        for name in LOWEST:
            np.testing.assert_allclose(gradient[name], exact[name], atol=late)


@pytest.mark.parametrize("method", DERIVATIVES)
def test_the_derivatives_are_those_of_scipy_with_a_flat_function(method):
    flat, unravel = tg.ravel_pytree(start())
    f = lambda x: bowl(unravel(x))
    wants = METHODS[method.lower()][1]
    more = {"products": {"hessp": tg.hvp(f)}, "matrix": {"hess": tg.hessian(f)}}.get(wants, {})
    expected = optimize.minimize(
        tg.value_and_grad(f), flat, jac=True, method=method, options=OPTIONS.get(method), **more
    )
    found = minimize(bowl, start(), method=method, options=OPTIONS.get(method))
    assert found.nit == expected.nit
    np.testing.assert_allclose(tg.ravel_pytree(found.x)[0], expected.x, rtol=1e-8, atol=1e-8)


def test_value_and_gradient_come_from_one_run():
    seen = []

    def f(x):
        seen.append(tuple(np.asarray(x._a)) if isinstance(x, tg.Tensor) else None)
        return np.sum(np.cosh(x - 1.0))

    found = minimize(f, np.zeros(3))
    assert len(seen) == found.nfev
    assert len(set(seen)) == len(seen)


def test_products_at_one_point_share_one_run():
    runs = []

    def f(x):
        runs.append(1)
        return np.sum(np.cosh(x - 1.0) * np.arange(1.0, 21.0)) + np.sum(x[1:] * x[:-1])

    found = minimize(f, np.zeros(20), method="trust-ncg")
    assert found.nhev > found.nit
    assert len(runs) <= found.nfev + found.nit + 1


@pytest.mark.parametrize("method", ["BFGS", "trust-ncg", "trust-exact", "trust-constr", "SLSQP"])
def test_no_record_is_kept(method):
    gc.disable()
    try:
        tape = current.tape
        tape.reclaim()
        before = len(tape)
        ring = {"type": "eq", "fun": lambda p: p["b"] ** 2 - 4.0}
        more = {"constraints": ring} if method in CONSTRAINED else {}
        minimize(bowl, start(), method=method, **more)
        tape.reclaim()
        assert len(tape) <= before
    finally:
        gc.enable()


def test_without_a_method_the_constraints_and_bounds_decide():
    for more, title in (
        ({}, "BFGS"),
        ({"bounds": (0.0, None)}, "L-BFGS-B"),
        ({"constraints": {"type": "eq", "fun": lambda x: x[0]}}, "SLSQP"),
    ):
        by_itself = minimize(lambda x: np.sum((x - 1.0) ** 2), np.full(2, 0.5), **more)
        named = minimize(lambda x: np.sum((x - 1.0) ** 2), np.full(2, 0.5), method=title, **more)
        assert by_itself.nfev == named.nfev
        np.testing.assert_array_equal(by_itself.x, named.x)


# Forms of points


class Pair(NamedTuple):
    left: object
    right: object


@dataclasses.dataclass
class Model:
    weights: object
    bias: object


@pytest.mark.parametrize("make", [Pair, Model, lambda a, b: (a, [b]), lambda a, b: {1: a, 2: b}])
def test_containers(make):
    def f(p):
        a, b = tg.ravel_pytree(p)[0][:2], tg.ravel_pytree(p)[0][2]
        return np.sum((a - 1.0) ** 2) + (b - 2.0) ** 2

    found = minimize(f, make(np.zeros(2), 0.0))
    assert type(found.x) is type(make(0, 0))
    np.testing.assert_allclose(tg.ravel_pytree(found.x)[0], [1.0, 1.0, 2.0], atol=1e-6)


def test_numbers_and_types_come_back_as_they_were():
    square = lambda x: (x - 1.0) ** 2
    assert type(minimize(square, 0.0).x) is float
    assert type(minimize(square, 3).x) is float
    assert type(minimize(square, np.float32(0)).x) is np.float32
    total = lambda x: np.sum(square(x))
    assert minimize(total, np.zeros(2, np.float32)).x.dtype == np.float32
    assert minimize(total, np.zeros(2, int)).x.dtype == np.float64
    assert minimize(total, np.zeros((2, 3))).x.shape == (2, 3)
    found = minimize(lambda t: (t - 1.0).square().sum(), tg.zeros(2))
    assert type(found.x) is tg.Tensor
    assert type(found.fun) is float
    assert not found.x.requires_grad
    found = minimize(lambda t: (t - 1.0).square().sum(), tg.zeros(2), method="Powell")
    np.testing.assert_allclose(found.x.numpy(), 1.0, atol=1e-6)


def test_the_start_is_not_written_to():
    x0 = np.zeros(3)
    found = minimize(lambda x: np.sum((x - 1.0) ** 2), x0)
    assert not x0.any()
    assert not np.shares_memory(found.x, x0)


def test_further_arguments():
    f = lambda x, a, b: np.sum((x - a) ** 2) + b
    for method in ("BFGS", "Nelder-Mead", "trust-exact"):
        found = minimize(f, np.zeros(2), (np.array([1.0, 2.0]), 5.0), method)
        np.testing.assert_allclose(found.x, [1.0, 2.0], atol=1e-4)
        np.testing.assert_allclose(found.fun, 5.0)
    assert minimize(lambda x, a: (x - a) ** 2, 0.0, 2.0).x == pytest.approx(2.0)


# Bounds and constraints


@pytest.mark.parametrize("method", BOUNDED)
def test_bounds_are_pytrees(method):
    bounds = {"a": (None, np.array([0.75, 5.0])), "b": (0.0, 2.5), "c": None}
    found = minimize(bowl, start(), method=method, bounds=bounds, options=OPTIONS.get(method))
    np.testing.assert_allclose(found.x["a"], [0.75, 2.0], atol=2e-3)
    np.testing.assert_allclose(found.x["b"], 2.5, atol=2e-3)
    np.testing.assert_allclose(found.x["c"], LOWEST["c"], atol=2e-3)


@pytest.mark.parametrize(
    "bounds",
    [
        (None, np.array([0.5, np.inf])),
        [(None, 0.5), (0.0, None)],
        np.array([[-np.inf, 0.5], [0.0, np.inf]]),
        optimize.Bounds([-np.inf, 0.0], [0.5, np.inf]),
    ],
)
def test_bounds_of_a_vector(bounds):
    found = minimize(lambda x: np.sum((x - 1.0) ** 2), np.zeros(2), bounds=bounds)
    np.testing.assert_allclose(found.x, [0.5, 1.0], atol=1e-6)


def test_a_variable_fixed_by_its_bounds():
    for method in ("L-BFGS-B", "TNC", "SLSQP"):
        f = lambda p: (p["a"] - 1.0) ** 2 + (p["b"] - p["a"]) ** 2
        found = minimize(
            f, {"a": 0.0, "b": 0.0}, method=method, bounds={"a": (0.0, 0.0), "b": (1.0, 2.0)},
            callback=lambda intermediate_result: None,
        )  # fmt: skip
        assert found.x == pytest.approx({"a": 0.0, "b": 1.0})


@pytest.mark.parametrize("method", CONSTRAINED)
@pytest.mark.parametrize("form", ["dict", "object"])
def test_constraints_are_functions_of_pytrees(method, form):
    ring = lambda p: p["x"] ** 2 + p["y"] ** 2
    order = lambda p: {"first": p["y"] - p["x"], "second": p["x"] + 2.0}
    if form == "dict":
        constraints = [
            {"type": "eq", "fun": lambda p, r: ring(p) - r, "args": (2.0,)},
            {"type": "ineq", "fun": order},
        ]
    else:
        constraints = (
            optimize.NonlinearConstraint(ring, 2.0, 2.0),
            optimize.NonlinearConstraint(order, 0.0, np.inf),
        )
    found = minimize(
        lambda p: p["y"] - 2.0 * p["x"], {"x": 0.5, "y": 1.5}, method=method,
        constraints=constraints, tol=1e-8, options={"maxiter": 5000},
    )  # fmt: skip
    assert found.x == pytest.approx({"x": 1.0, "y": 1.0}, abs=1e-4)


def test_constraints_get_exact_derivatives():
    """No differences: the function is called at no point that is not an iterate."""
    calls = []

    def ring(x):
        calls.append(x)
        return np.sum(x**2)

    found = minimize(
        lambda x: np.sum(x), np.array([0.5, -2.0]), method="trust-constr",
        constraints=optimize.NonlinearConstraint(ring, 2.0, 2.0),
    )  # fmt: skip
    np.testing.assert_allclose(found.x, [-1.0, -1.0], atol=1e-6)
    assert found.nit < 30
    assert len(calls) <= 3 * found.nfev + 5


def test_a_jacobian_of_the_users_own_and_a_linear_constraint():
    seen = []

    def jac(x):
        seen.append(x)
        return 2.0 * x[None, :]

    ring = {"type": "eq", "fun": lambda x: np.sum(x**2) - 2.0, "jac": jac}
    straight = optimize.LinearConstraint(np.array([[1.0, -1.0]]), 0.0, np.inf)
    found = minimize(lambda x: np.sum(x), np.array([0.5, -2.0]), constraints=[ring, straight])
    np.testing.assert_allclose(found.x, [-1.0, -1.0], atol=1e-5)
    assert seen


# Callback and progress


@pytest.mark.parametrize("method", METHODS)
def test_callbacks_see_pytrees(method):
    title = METHODS[method][0]
    points = []
    minimize(bowl, start(), method=title, callback=points.append, options=OPTIONS.get(title))
    assert points
    assert all(p.keys() == LOWEST.keys() and type(p["b"]) is float for p in points)

    states = []

    def whole(intermediate_result):
        states.append(intermediate_result.x["c"].shape)

    minimize(bowl, start(), method=title, callback=whole, options=OPTIONS.get(title))
    assert set(states) == {(1, 2)}


def test_a_callback_may_stop():
    def stop(x):
        raise StopIteration

    found = minimize(bowl, start(), callback=stop)
    assert found.nit == 1
    assert not found.success


def test_progress(capsys, monkeypatch):
    minimize(bowl, start())
    assert capsys.readouterr() == ("", "")
    minimize(bowl, start(), progress=True)
    assert capsys.readouterr() == ("", "")  # no terminal
    minimize(bowl, start(), progress="always")
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("minimize bowl by BFGS: iteration ")
    assert "max |gradient|" in err
    assert err.count("\n") == 1

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr("tapegrad.optimize.progress.EVERY", 0.0)
    found = minimize(bowl, start(), method="Nelder-Mead", progress=True)
    lines = terminal.getvalue().split("\r")
    assert len(lines) >= found.nit
    assert f"iteration {found.nit}, {found.nfev} evaluations" in lines[-1]
    assert "gradient" not in lines[-1]
    least_squares(lambda x: x - 1.0, np.zeros(2), progress=True)
    assert "least_squares of <lambda> by trf: iteration" in terminal.getvalue()
    with pytest.raises(ValueError, match="`progress` is True, False or 'always', got 'yes'"):
        minimize(bowl, start(), progress="yes")
    monkeypatch.setattr(sys, "stderr", None)
    assert minimize(bowl, start(), progress=True).success


# Least squares

T = np.linspace(0.0, 2.0, 15)


def decay(p):
    return {"data": p["size"] * np.exp(-p["rate"][0] * T) - 2.0 * np.exp(-3.0 * T)}


@pytest.mark.parametrize("method", ["trf", "dogbox", "lm"])
def test_least_squares(method):
    found = least_squares(decay, {"size": 1.0, "rate": np.ones(1)}, method=method)
    assert found.success
    assert found.x["size"] == pytest.approx(2.0)
    np.testing.assert_allclose(found.x["rate"], [3.0], rtol=1e-6)
    assert found.jac.shape == (15, 2)
    assert type(found.grad["size"]) is float
    expected = np.stack([np.exp(-3.0 * T), -2.0 * T * np.exp(-3.0 * T)], axis=1)
    np.testing.assert_allclose(found.jac, expected, atol=1e-6)


def test_least_squares_with_bounds_scales_arguments_and_callback():
    seen = []
    found = least_squares(
        lambda p, shift: p["a"] - np.array([1.0, 2.0]) - shift, {"a": np.zeros(2)}, (1.0,),
        bounds={"a": (-5.0, [1.5, 9.0])}, x_scale={"a": [1.0, 2.0]}, loss="soft_l1",
        callback=seen.append,
    )  # fmt: skip
    np.testing.assert_allclose(found.x["a"], [1.5, 3.0], atol=1e-5)
    assert seen
    assert seen[0].keys() == {"a"}
    flat = least_squares(lambda x: x - 2.0, np.zeros(2), bounds=([-1, -1], [1, 3]), x_scale="jac")
    np.testing.assert_allclose(flat.x, [1.0, 2.0], atol=1e-5)
    both = least_squares(lambda x: x - 2.0, np.zeros(2), bounds=optimize.Bounds(-1, 1))
    np.testing.assert_allclose(both.x, 1.0, atol=1e-5)


def test_residuals_may_be_one_number():
    assert least_squares(lambda x: np.cos(x) - x, 0.5).x == pytest.approx(0.7390851332)


# Bad input

SQUARE = lambda x: np.sum(x**2)
ONES = np.ones(2)
BAD = {
    "no function": (TypeError, "takes a function, got float", lambda: minimize(3.0, ONES)),
    "a vector": (TypeError, r"scalar, got the shape \(2,\)", lambda: minimize(lambda x: x, ONES)),
    "a vector, no gradient": (
        TypeError, r"scalar, got the shape", lambda: minimize(lambda x: x, ONES, method="Powell"),
    ),
    "nothing": (TypeError, "scalar, got NoneType", lambda: minimize(lambda x: None, ONES)),
    "complex": (TypeError, "a real number", lambda: minimize(lambda x: 1j, ONES)),
    "unknown method": (
        ValueError, "no method 'LBFGS': did you mean L-BFGS-B?",
        lambda: minimize(SQUARE, ONES, method="LBFGS"),
    ),
    "strange method": (
        ValueError, "no method 'adam': there are .*BFGS",
        lambda: minimize(SQUARE, ONES, (), "adam"),
    ),
    "method a function": (TypeError, "own methods", lambda: minimize(SQUARE, ONES, (), SQUARE)),
    "nan start": (
        ValueError, r"`x0\['a'\]\[1\]` is not finite",
        lambda: minimize(SQUARE, {"a": [1.0, np.nan]}),
    ),
    "nan value": (ValueError, "is nan at the start", lambda: minimize(lambda x: np.nan, ONES)),
    "nan gradient": (
        ValueError, r"not finite at the start, in `x0\['b'\]`",
        lambda: minimize(lambda p: p["a"] + np.sqrt(p["b"]), {"a": 1.0, "b": 0.0}),
    ),
    "empty": (ValueError, "no elements", lambda: minimize(SQUARE, {})),
    "text": (TypeError, r"`x0\['a'\]` must be an array or a number, got str",
             lambda: minimize(SQUARE, {"a": "b"})),
    "complex start": (TypeError, "real numbers, got complex128",
                      lambda: minimize(SQUARE, 1j * ONES)),
    "objects": (TypeError, "real numbers, got object",
                lambda: minimize(SQUARE, np.array([1, None]))),
    "no bounds": (ValueError, "BFGS cannot keep to bounds: use Nelder-Mead,",
                  lambda: minimize(SQUARE, ONES, (), "BFGS", bounds=(0, 1))),
    "no constraints": (
        ValueError, "CG cannot keep to constraints: use COBYLA, COBYQA, SLSQP or trust-constr",
        lambda: minimize(SQUARE, ONES, (), "CG", constraints={"type": "eq", "fun": SQUARE}),
    ),
    "bounds crossed": (ValueError, "above its upper",
                       lambda: minimize(SQUARE, ONES, bounds=(1, 0))),
    "bounds of another shape": (
        ValueError, r"`x0\['a'\]` do not fit its shape \(2,\)",
        lambda: minimize(SQUARE, {"a": ONES}, bounds={"a": (np.zeros(3), None)}),
    ),
    "bounds of another structure": (
        ValueError, r"`minimize\(bounds=...\)`: expected something like {'a': \*}",
        lambda: minimize(SQUARE, {"a": ONES}, bounds={"b": (0, 1)}),
    ),
    "bounds no pair": (
        ValueError, r"a pair \(low, high\), got 3", lambda: minimize(SQUARE, ONES, bounds=3),
    ),
    "constraint of no kind": (
        ValueError, "'eq' or 'ineq', got None",
        lambda: minimize(SQUARE, ONES, constraints={"fun": SQUARE}),
    ),
    "constraint without a function": (
        ValueError, "a function under the key 'fun'",
        lambda: minimize(SQUARE, ONES, constraints={"type": "eq"}),
    ),
    "constraint with more": (
        ValueError, r"no entry \['lower'\]",
        lambda: minimize(SQUARE, ONES, constraints={"type": "eq", "fun": SQUARE, "lower": 0}),
    ),
    "constraint a function": (
        TypeError, "a constraint is a dict .* got function",
        lambda: minimize(SQUARE, ONES, constraints=[SQUARE]),
    ),
    "constraint returns text": (
        TypeError, "got a leaf of type str",
        lambda: minimize(SQUARE, ONES, constraints={"type": "eq", "fun": lambda x: "zero"}),
    ),
    "residuals no function": (TypeError, "takes a function", lambda: least_squares(ONES, ONES)),
    "residuals text": (TypeError, "a leaf of type str", lambda: least_squares(lambda x: "", ONES)),
    "residuals nan": (
        ValueError, "returns nan or inf at the start",
        lambda: least_squares(lambda x: x / 0.0, ONES),
    ),
    "residuals method": (
        ValueError, "no method 'gn': there are trf, dogbox, lm",
        lambda: least_squares(SQUARE, ONES, method="gn"),
    ),
    "residuals jac": (
        TypeError, "leave out `jac`", lambda: least_squares(SQUARE, ONES, jac="2-point"),
    ),
    "lm callback": (
        ValueError, "lm takes no `callback`",
        lambda: least_squares(SQUARE, ONES, method="lm", callback=print),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_bad_input(case):
    kind, words, call = BAD[case]
    with pytest.raises(kind, match=words):
        call()


@pytest.mark.parametrize("method", ["BFGS", "Powell"])
def test_a_list_is_a_pytree_and_an_error_says_so(method):
    with pytest.raises(TypeError) as caught:
        minimize(lambda x: np.sum(x**2), [1.0, 2.0], method=method)
    assert "np.array(x0)" in "".join(caught.value.__notes__)
    found = minimize(lambda x: x[0] ** 2 + x[1] ** 2, [1.0, 2.0])
    assert type(found.x) is list


@pytest.mark.parametrize("method", ["BFGS", "Nelder-Mead", "SLSQP"])
@pytest.mark.parametrize("transform", ["grad", "jvp", "vmap"])
def test_no_derivative_goes_through_unnoticed(method, transform):
    def apply(f):
        if transform == "grad":
            return tg.grad(f)(1.0)
        if transform == "jvp":
            return tg.jvp(f, (1.0,), (1.0,))
        return tg.vmap(f)(np.ones(2))

    square = lambda x, a: (x - a) ** 2
    refused = pytest.raises(RuntimeError, match="no derivative goes through an optimization")
    with refused:
        apply(lambda a: minimize(lambda x: square(x, a), 0.0, method=method).x)
    with refused:
        apply(lambda a: minimize(square, 0.0, a, method=method).x)
    with refused:
        apply(lambda a: minimize(lambda x: x**2, a, method=method).x)
    with refused:
        apply(lambda a: least_squares(lambda x: x - a, 0.0).x)
    if transform != "vmap":
        apply(lambda a: a * minimize(square, 0.0, tg.stop_gradient(2.0), method=method).x)

"""Differential equations and integrals: SciPy's values, derivatives, every mode."""

import numpy as np
import pytest
import scipy.integrate

import tapegrad as tg
from tests.scipy.test_names import alike_in_transforms, same

pytestmark = pytest.mark.tapegrad_only("PyTorch has other names")

ours, theirs = tg.scipy.integrate, scipy.integrate
P, Q = np.array([1.5, 1.0, 3.0, 1.0]), np.array([0.5, 3.0, 0.2, 4.0])
KEPT, SOON = np.linspace(0.0, 4.0, 5), np.array([0.0, 0.2, 0.5])
FINE = {"rtol": 1e-10, "atol": 1e-10}  # jumps of the steps stay below differences
ALONG = np.array([1.0, 2.0, -3.0, 0.4])
rng = np.random.default_rng(5)


def animals(p):
    return lambda t, y: [p[0] * y[0] - p[1] * y[0] * y[1], -p[2] * y[1] + p[3] * y[0] * y[1]]


def difference(f, x, v, h=1e-4):
    return (f(x + h * v) - f(x - h * v)) / (2 * h)


def in_every_mode(f, x, v, rtol=1e-6):
    """Hold derivatives of a function of an array along a direction to differences."""
    wanted, slope = difference(f, x, v), tg.grad(f)
    assert np.sum(slope(x) * v) == pytest.approx(wanted, rel=rtol)
    leaf = tg.tensor(x, requires_grad=True)
    f(leaf).backward()
    compiled = tg.jit(slope)
    for found in (leaf.grad.numpy(), compiled(x), tg.jit(tg.vmap(slope))(np.stack([x, x]))[1]):
        np.testing.assert_allclose(found, slope(x), rtol=1e-7, atol=1e-10)
    forward = lambda x, v: tg.jvp(f, (x,), (v,))[1]
    for along in (forward, tg.jit(forward)):
        assert along(x, v) == pytest.approx(wanted, rel=rtol)
    second = tg.jit(tg.hvp(f))(x, v)
    np.testing.assert_allclose(second, difference(compiled, x, v), rtol=10 * rtol, atol=10 * rtol)


@pytest.mark.parametrize(
    "how",
    [
        {}, {"method": "RK23"}, {"method": "DOP853", "t_eval": KEPT},
        {"max_step": 0.3}, {"first_step": 0.5}, {"t_eval": KEPT},
        {"rtol": 1e-6, "atol": np.array([1e-6, 1e-8])},
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("span", [(0, 4), (4, 0)])
def test_the_steps_are_scipys(how, span):
    how = {k: x[::-1] if k == "t_eval" and span[0] else x for k, x in how.items()}
    found = ours.solve_ivp(animals(P), span, tg.tensor([1.0, 1.5]), **how)
    wanted = theirs.solve_ivp(animals(P), span, [1.0, 1.5], **how)
    np.testing.assert_allclose(found.t.numpy(), wanted.t, rtol=1e-8)
    np.testing.assert_allclose(found.y.numpy(), wanted.y, rtol=1e-7)
    assert (found.status, found.success, found.message) == (0, True, wanted.message)


def test_complex_states_and_arguments_are_taken():
    for lib, y0 in ((ours, tg.tensor([1.0 + 0j])), (theirs, [1.0 + 0j])):
        found = lib.solve_ivp(lambda t, y, w: 1j * w * y, (0, 2), y0, args=(3.0,), **FINE).y
        assert abs(complex(found[0, -1]) - np.exp(6j)) < 1e-7
    narrow = tg.tensor([1.0], dtype=tg.float32)
    assert ours.solve_ivp(lambda t, y: -y, (0, 1), narrow).y.dtype == tg.float32


def test_parameters_have_derivatives():
    def f(p):
        y0 = np.array([1.0, 1.5])
        return np.sum(ours.solve_ivp(animals(p), (0, 0.5), y0, t_eval=SOON, **FINE).y[0] * SOON)

    in_every_mode(f, P, ALONG, rtol=1e-5)


def test_times_and_the_first_state_have_derivatives():
    def f(q):
        y0 = q[3] * np.array([1.0, 0.5])
        found = ours.solve_ivp(animals(P), (q[0], q[1]), y0, t_eval=q[[2, 1]], **FINE)
        return np.sum(found.y[0] * np.array([1.0, 2.0]))

    at = np.array([0.1, 0.6, 0.4, 1.2])
    in_every_mode(f, at, ALONG, rtol=1e-5)
    ends = lambda t: ours.solve_ivp(animals(P), t, np.array([1.0, 1.5]), **FINE).y[0, -1]
    span, v = np.array([0.5, 2.0]), np.array([1.0, -0.7])
    assert tg.grad(ends)(span) @ v == pytest.approx(difference(ends, span, v), rel=1e-5)


def test_a_stiff_problem():
    def robertson(k):
        return lambda t, y: [
            -k[0] * y[0] + k[1] * y[1] * y[2],
            k[0] * y[0] - k[1] * y[1] * y[2] - k[2] * y[1] ** 2,
            k[2] * y[1] ** 2,
        ]

    def f(lib, k):
        how = {"method": "Radau", "rtol": 1e-8, "atol": 1e-12, "t_eval": np.array([1.0, 1e4])}
        return np.sum(lib.solve_ivp(robertson(k), (0, 1e4), np.array([1.0, 0.0, 0.0]), **how).y[0])

    k = np.array([0.04, 1e4, 3e7])
    value, slope = tg.jit(tg.value_and_grad(lambda k: f(ours, k)))(k)
    assert value == pytest.approx(f(theirs, k), rel=1e-7)
    wanted = [(f(theirs, k + e) - f(theirs, k - e)) / (2 * e.sum()) for e in np.diag(1e-3 * k)]
    np.testing.assert_allclose(slope, wanted, rtol=1e-4)


def test_a_solution_that_ends_early():
    square = lambda t, y: y * y
    found = ours.solve_ivp(square, (0, 2), tg.tensor([1.0]))
    wanted = theirs.solve_ivp(square, (0, 2), [1.0])
    assert (found.status, found.success, found.message) == (-1, False, wanted.message)
    assert found.t[-1].item() == pytest.approx(1.0, abs=1e-3)
    late = tg.jit(lambda y: ours.solve_ivp(square, (0, 2), y, t_eval=[0.5, 1.5]).y)(np.ones(1))
    assert np.isnan(late).tolist() == [[False, True]]


def test_without_tensors_it_is_scipy():
    found = ours.solve_ivp(animals(P), (0, 1), [1.0, 1.5], "DOP853", dense_output=True)
    assert isinstance(found.y, np.ndarray)
    assert found.nfev > 0
    assert ours.quad(np.cos, 0.0, 1.0, full_output=1)[2]["neval"] == 21
    assert ours.fixed_quad is theirs.fixed_quad


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda y: ours.solve_ivp(animals(P), (0, 1), y, "RK67"), NotImplementedError, "RK45"),
        (
            lambda y: ours.solve_ivp(animals(P), (0, 1), y, min_step=np.ones(2)),
            NotImplementedError, "min_step",
        ),
        (
            lambda y: tg.jit(lambda y: ours.solve_ivp(animals(P), (0, 1), y, events=growth).y)(y),
            TypeError, "without `events=`",
        ),
        (
            lambda y: ours.solve_ivp(animals(P), (0, 1), y, dense_output=True).sol(np.ones((2, 2))),
            ValueError, "at most one dimension",
        ),
        (lambda y: ours.solve_ivp(animals(P), (0, 1), y[:, None]), ValueError, "one dimension"),
        (lambda y: ours.solve_ivp(lambda t, y: y[:1], (0, 1), y), ValueError, "returned the shape"),
        (lambda y: tg.jit(lambda y: ours.solve_ivp(animals(P), (0, 1), y).y)(y), TypeError, "t_ev"),
        (lambda y: ours.odeint(lambda y, t: y, y, KEPT, mxstep=1), NotImplementedError, "mxs"),
        (lambda y: ours.quad(lambda x: x * y[0], 0, 1, weight="cos"), NotImplementedError, "wei"),
        (lambda y: ours.simpson(y, x=y), TypeError, "points"),
        (lambda y: ours.solve_ivp(animals(P), (0, 1), y, t_eval=[2.0]), ValueError, "not within"),
        (lambda y: ours.solve_ivp(animals(P), (0, 1), y, t_eval=[1, 0]), ValueError, "sorted"),
        (lambda y: ours.cumulative_trapezoid(y, initial=1.0), ValueError, "initial"),
    ],
)  # fmt: skip
def test_what_is_not_there(call, error, says):
    with pytest.raises(error, match=says):
        call(tg.tensor([1.0, 1.5]))


def growth(t, y, *_):
    """The slope of the animals that are eaten."""
    return P[0] - P[1] * y[1]


def few(t, y, *_):
    return y[0] - 0.5


def both(y0, span, **how):
    """A solution by this library and by SciPy."""
    how = {"events": (growth, few), "dense_output": True, "rtol": 1e-5, "atol": 1e-6} | how
    expected = theirs.solve_ivp(animals(P), span, y0, **how)
    return ours.solve_ivp(animals(P), span, tg.tensor(y0), **how), expected


@pytest.mark.parametrize("t_eval", [None, np.linspace(0.0, 10.0, 51)], ids=["steps", "times"])
@pytest.mark.parametrize("method", ["RK45", "RK23", "DOP853"])
@pytest.mark.parametrize(("terminal", "direction"), [(None, 0), (True, -1), (3, 1), (4, 0)])
def test_events_are_scipys(terminal, direction, method, t_eval, monkeypatch):
    monkeypatch.setattr(few, "terminal", terminal, raising=False)
    monkeypatch.setattr(few, "direction", direction, raising=False)
    found, expected = both([1.0, 2.0], (0.0, 10.0), method=method, t_eval=t_eval)
    assert (found.status, found.message) == (expected.status, expected.message)
    for name in ("t", "y"):
        np.testing.assert_allclose(found[name].numpy(), expected[name], atol=1e-6)
    for name in ("t_events", "y_events"):
        assert [x.shape for x in found[name]] == [x.shape for x in expected[name]]
        for a, b in zip(found[name], expected[name], strict=True):
            np.testing.assert_allclose(a.numpy(), b, atol=1e-6)
    times = np.linspace(0.0, expected.sol.t_max, 17)
    np.testing.assert_allclose(found.sol(times).numpy(), expected.sol(times), atol=1e-6)
    np.testing.assert_allclose(found.sol(1.0).numpy(), expected.sol(1.0), atol=1e-6)
    assert found.sol.n_segments == expected.sol.n_segments


def test_events_and_the_solution_at_times_back_in_time():
    found, expected = both([1.0, 2.0], (4.0, 0.0))
    for a, b in zip(found.t_events, expected.t_events, strict=True):
        np.testing.assert_allclose(a.numpy(), b, atol=1e-6)
    times = np.array([3.0, 0.5, 2.0])
    np.testing.assert_allclose(found.sol(times).numpy(), expected.sol(times), atol=1e-6)
    still = ours.solve_ivp(animals(P), (1, 1), tg.tensor([1.0, 1.5]), dense_output=True)
    np.testing.assert_allclose(still.sol([1.0]).numpy(), [[1.0], [1.5]])


def test_events_have_derivatives():
    """The n-th zero of cos(sqrt(k) t) is at (n - 1 / 2) pi / sqrt(k)."""

    def third(k):
        found = ours.solve_ivp(
            lambda t, y: [y[1], -k * y[0]], (0, 100), [1.0, 0.0], events=middle, method="DOP853",
            rtol=1e-11, atol=1e-12,
        )  # fmt: skip
        return found.t_events[0][-1]

    def middle(t, y):
        return y[0]

    middle.terminal = 3
    k, time = 4.0, 1.25 * np.pi
    assert tg.value_and_grad(third)(k) == pytest.approx((time, -time / (2 * k)))
    assert tg.jvp(third, (k,), (1.0,))[1] == pytest.approx(-time / (2 * k))
    assert tg.hessian(third)(k) == pytest.approx(0.75 * time / k**2)
    leaf = tg.tensor(k, requires_grad=True)
    third(leaf).backward()
    assert leaf.grad.item() == pytest.approx(-time / (2 * k))


def test_the_solution_as_a_function_of_time_has_derivatives():
    def middle(k, time):
        how = {"dense_output": True, "rtol": 1e-9, "atol": 1e-9}
        return ours.solve_ivp(lambda t, y: -k * y, (0, 2), [1.0], **how).sol(time)[0]

    found = tg.grad(middle, (0, 1))(0.5, 1.5)
    assert found == pytest.approx((-1.5 * np.exp(-0.75), -0.5 * np.exp(-0.75)), rel=1e-6)


def test_what_saves_scipy_work_is_not_needed():
    found = ours.solve_ivp(lambda t, y: -y, (0, 1), tg.ones(2), "BDF", jac=-np.eye(2), rtol=1e-8)
    np.testing.assert_allclose(found.y[:, -1].numpy(), np.exp(-1.0), rtol=1e-6)


def test_odeint():
    def f(p):
        found = ours.odeint(lambda y, t, p: animals(p)(t, y), [1.0, 1.5], SOON, (p,), **FINE)
        return np.sum(found[:, 0] * SOON)

    wanted = theirs.odeint(animals(P), [1.0, 1.5], KEPT, tfirst=True)
    found = ours.odeint(animals(P), tg.tensor([1.0, 1.5]), KEPT, tfirst=True)
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-6)
    in_every_mode(f, P, ALONG, rtol=1e-5)


INTEGRALS = {
    "finite": (lambda x: np.exp(-x) * np.sin(3 * x), 0.2, 4.0),
    "backwards": (np.square, 2.0, 1.0),
    "root": (np.sqrt, 0.0, 1.0),
    "peak": (lambda x: 1 / (1e-4 + (x - 0.3) ** 2), -1.0, 2.0),
    "line": (lambda x: np.exp(-x * x), -np.inf, np.inf),
    "line backwards": (lambda x: np.exp(-x * x), np.inf, -np.inf),
    "upwards": (lambda x: np.exp(-x), 0.5, np.inf),
    "downwards": (lambda x: np.exp(x), 0.5, -np.inf),
}


@pytest.mark.parametrize("name", INTEGRALS)
def test_integrals(name):
    f, a, b = INTEGRALS[name]
    found, error = ours.quad(lambda x: tg.tensor(1.0) * f(x), a, b)
    wanted = theirs.quad(f, a, b)[0]
    assert found.item() == pytest.approx(wanted, abs=1e-9, rel=1e-10)
    assert abs(found.item() - wanted) <= error.item() + 1e-12


def test_integrals_have_derivatives():
    decay = lambda t, a, b: np.exp(-a * t) * np.sin(b * t)
    in_every_mode(lambda q: ours.quad(decay, q[2], q[3], (q[0], q[1]))[0], Q, ALONG)
    area = lambda k: ours.quad(lambda x: np.exp(-k * x * x), -np.inf, np.inf)[0]
    assert tg.jit(tg.grad(area))(2.0) == pytest.approx(-0.5 * np.pi**0.5 * 2**-1.5, rel=1e-9)


def test_too_few_pieces_are_a_warning():
    with pytest.warns(theirs.IntegrationWarning, match="2 pieces"):
        ours.quad(lambda x: tg.tensor(1.0) / np.sqrt(abs(x - 0.3)), 0.0, 1.0, limit=2)


@pytest.mark.parametrize("axis", [0, -1])
def test_values_at_points(axis):
    y, x = rng.standard_normal((5, 5)), np.cumsum(rng.uniform(0.5, 1.0, 5))
    for how in ({}, {"dx": 0.3}, {"x": x}):
        for name in ("trapezoid", "cumulative_trapezoid", "simpson", "cumulative_simpson"):
            call = lambda lib, y, name=name, how=how: getattr(lib, name)(y, axis=axis, **how)
            same("integrate", call, y)
            alike_in_transforms("integrate", call, y)
    for name in ("cumulative_trapezoid", "cumulative_simpson"):
        same("integrate", lambda lib, y, n=name: getattr(lib, n)(y, axis=axis, initial=0), y)
    same("integrate", lambda lib, y: lib.romb(y, 0.5, axis), y)
    same("integrate", lambda lib, y, x: lib.trapezoid(y, x, axis=axis), y, x)


def test_a_function_that_writes_into_an_array_like_the_state():
    def slopes(a):
        def fun(t, y):
            d = np.zeros_like(y)
            d[0] = -a * y[0]
            return d

        return fun

    def last(a):
        how = {"t_eval": [1.0], "rtol": 1e-10, "atol": 1e-12}
        return tg.scipy.integrate.solve_ivp(slopes(a), (0, 1), [1.0], **how).y[0, -1]

    step = (last(0.7 + 1e-6) - last(0.7 - 1e-6)) / 2e-6
    np.testing.assert_allclose(tg.grad(last)(0.7), step, rtol=1e-6)
    np.testing.assert_allclose(tg.jit(tg.grad(last))(0.7), step, rtol=1e-6)
    a = tg.tensor(0.7, requires_grad=True)
    last(a).backward()
    np.testing.assert_allclose(a.grad, step, rtol=1e-6)


SEVERAL = {
    "dblquad": lambda lib, a: lib.dblquad(
        lambda y, x: a * x * y + np.sin(a * y), 0, 1, lambda x: 0.1 * x, lambda x: x * a
    ),
    "dblquad to infinity": lambda lib, a: lib.dblquad(
        lambda y, x, k: k * np.exp(-a * x - k * y), 0, np.inf, 0, np.inf, (2.0,)
    ),
    "tplquad": lambda lib, a: lib.tplquad(
        lambda z, y, x: a * x + y * z, 0, 1, 0, lambda x: x, lambda x, y: y, lambda x, y: a + x
    ),
    "nquad": lambda lib, a: lib.nquad(
        lambda x, y, k: np.cos(a * x) * y * k, [lambda y, k: (0, a * y), (1, 2)], (3.0,),
        [{"epsabs": 1e-9}, {}],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SEVERAL)
def test_integrals_over_several_variables(name):
    ours = lambda a: SEVERAL[name](tg.scipy.integrate, a)[0]
    theirs = lambda a: SEVERAL[name](scipy.integrate, a)[0]
    a = tg.tensor(1.3, requires_grad=True)
    found = ours(a)
    np.testing.assert_allclose(found.detach(), theirs(1.3), rtol=1e-8)
    found.backward()
    step = (theirs(1.3 + 1e-5) - theirs(1.3 - 1e-5)) / 2e-5
    np.testing.assert_allclose(a.grad, step, rtol=1e-6)
    np.testing.assert_allclose(tg.grad(ours)(1.3), step, rtol=1e-6)
    assert SEVERAL[name](tg.scipy.integrate, 1.3) == SEVERAL[name](scipy.integrate, 1.3)

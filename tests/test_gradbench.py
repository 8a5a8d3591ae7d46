"""The evals of GradBench compute what they should, and the harness is answered."""

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tapegrad as tg
from bench import gradbench, jit, jit_evals
from bench.check import Disagreement
from bench.gradbench import protocol
from bench.gradbench.evaluation import as_numpy, largest_difference
from bench.libraries import load
from bench.patience import Clock
from bench.sides import ADAPTERS, Tapegrad

pytestmark = pytest.mark.tapegrad_only("about this project's benchmark")

ROOT = Path(__file__).parents[1]
STEP = 1e-6
every_eval = pytest.mark.parametrize("name", gradbench.NAMES)


def eager():
    return Tapegrad("tapegrad", tg).eager()


def drawn(name, seed=3):
    problem = gradbench.find(name)
    return problem, problem.instance(problem.small, seed)


@every_eval
def test_objective_and_derivative_are_those_by_hand(name):
    problem, instance = drawn(name)
    for got, expected in zip(problem.ready(eager(), instance), problem.by_hand(instance)):
        assert largest_difference(as_numpy(got()), as_numpy(expected())) < 1e-12


def moved(problem, instance, directions, t):
    """The objective, t along the directions."""
    inputs = [x + t * d for x, d in zip(instance.inputs, directions)]
    return problem.objective(eager().xp, *inputs, *instance.data, **instance.static)


def slope(problem, instance, directions):
    high, low = (moved(problem, instance, directions, t) for t in (STEP, -STEP))
    if isinstance(high, tuple):
        return tuple((x - y) / (2 * STEP) for x, y in zip(high, low))
    return (high - low) / (2 * STEP)


@pytest.mark.parametrize("name", ["gmm", "llsq", "det", "lstm", "ode"])
def test_gradient_by_hand_is_the_slope(name, rng):
    problem, instance = drawn(name)
    directions = [rng.standard_normal(x.shape) for x in instance.inputs]
    found = problem.by_hand(instance)[1]()
    expected = slope(problem, instance, directions)
    expected = expected[-1] if name == "ode" else expected
    along = sum(np.sum(g * d) for g, d in zip(found, directions))
    assert math.isclose(along, expected, rel_tol=1e-6, abs_tol=1e-8)


def test_blocks_by_hand_are_slopes(rng):
    problem, instance = drawn("ba")
    directions = [rng.standard_normal(x.shape) for x in instance.inputs]
    blocks, diagonal = problem.by_hand(instance)[1]()
    errors, off = slope(problem, instance, directions)
    camera, point, _ = instance.data
    cameras, points, weights = directions
    own = np.concatenate([cameras[camera], points[point], weights[:, None]], axis=1)
    np.testing.assert_allclose(np.einsum("prk,pk->pr", blocks, own), errors, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(diagonal * weights, off, rtol=1e-6)


@pytest.mark.parametrize("u", [0, 2])
@pytest.mark.parametrize("mirrored", [False, True])
def test_columns_by_hand_are_slopes(rng, u, mirrored):
    problem = gradbench.find("ht")
    given = problem.generate(np.random.default_rng(3), **problem.small | {"u": u})
    given["data"]["model"]["is_mirrored"] = mirrored
    instance = problem.read(given)
    theta, us = (rng.standard_normal(x.shape) for x in instance.inputs)
    value, columns = (f() for f in problem.by_hand(instance))
    here = moved(problem, instance, (theta, us), 0.0)
    np.testing.assert_allclose(value, here, rtol=1e-12, atol=1e-12)
    found = columns[:, :, u:] @ theta
    if u:
        found += np.einsum("pru,pu->pr", columns[:, :, :u], us)
    expected = slope(problem, instance, (theta, us))
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)
    derivative = problem.ready(eager(), instance)[1]
    assert largest_difference(as_numpy(derivative()), columns) < 1e-12


def test_a_camera_that_is_not_turned_has_a_jacobian():
    problem = gradbench.find("ba")
    given = problem.generate(np.random.default_rng(3), **problem.small)
    given["cam"][:3] = [0.0, 0.0, 0.0]
    instance = problem.read(given)
    for got, expected in zip(problem.ready(eager(), instance), problem.by_hand(instance)):
        assert largest_difference(as_numpy(got()), as_numpy(expected())) < 1e-12


def test_direction_by_hand_is_newtons_step():
    problem, instance = drawn("kmeans")
    found = problem.by_hand(instance)[1]()
    here, step = moved(problem, instance, [np.zeros_like(found)], 0.0), 1e-4
    for place in np.ndindex(found.shape):
        unit = np.zeros_like(found)
        unit[place] = 1.0
        high, low = (moved(problem, instance, [unit], t) for t in (step, -step))
        newton = (high - low) / (2 * step) / ((high - 2 * here + low) / step**2)
        assert math.isclose(found[place], newton, rel_tol=1e-5, abs_tol=1e-6)


def test_determinant_is_numpys():
    problem, instance = drawn("det")
    (a,) = instance.inputs
    value, (gradient,) = (f() for f in problem.by_hand(instance))
    assert math.isclose(value, np.linalg.det(a), rel_tol=1e-12)
    np.testing.assert_allclose(gradient, value * np.linalg.inv(a).T, rtol=1e-10)


def conversation():
    """What the harness sends in one go, eval after eval."""
    messages = [{"kind": "start", "eval": "all"}]
    for name in gradbench.NAMES:
        problem = gradbench.find(name)
        given = problem.generate(np.random.default_rng(3), **problem.small)
        given |= {"min_runs": 2, "min_seconds": 0}
        messages.append({"kind": "define", "module": name})
        for function in problem.functions:
            message = {"kind": "evaluate", "module": name, "function": function, "input": given}
            messages.append(message | {"description": "small"})
            messages.append({"kind": "analysis", "of": 0, "valid": True})
    return [{"id": i} | message for i, message in enumerate(messages)]


def test_the_harness_is_answered_line_by_line():
    messages = conversation()
    done = subprocess.run(
        [sys.executable, "-m", "bench.gradbench"], cwd=ROOT, text=True, check=True,
        input="".join(json.dumps(message) + "\n" for message in messages),
        stdout=subprocess.PIPE,
    )  # fmt: skip
    responses = [json.loads(line) for line in done.stdout.splitlines()]
    assert [r["id"] for r in responses] == [m["id"] for m in messages]
    by_hand = load("numba", ADAPTERS)
    for message, response in zip(messages, responses):
        if message["kind"] in ("start", "analysis"):
            assert "success" not in response
            continue
        assert response["success"]
        if message["kind"] == "evaluate":
            timed = [timing["name"] for timing in response["timings"]]
            assert timed == ["prepare", "evaluate", "evaluate"]
            expected = protocol.answer(message, by_hand)["output"]
            same(response["output"], expected)


def same(got, expected):
    """Compare two results as the harness does: by structure, numbers nearly."""
    assert type(got) is type(expected)
    if isinstance(expected, dict):
        assert got.keys() == expected.keys()
        for key in expected:
            same(got[key], expected[key])
    elif isinstance(expected, list):
        assert len(got) == len(expected)
        for x, y in zip(got, expected):
            same(x, y)
    else:
        assert math.isclose(got, expected, rel_tol=1e-9, abs_tol=1e-9)


def test_sparse_jacobian_is_shown_as_the_harness_wants_it():
    problem = gradbench.find("ba")
    message = next(
        m for m in conversation() if m.get("module") == "ba" and m.get("function") == "jacobian"
    )
    shown = protocol.answer(message, eager())["output"]
    n, m, p = (problem.small[key] for key in "nmp")
    after = 11 * n + 3 * m
    row = [*range(11), *range(11 * n, 11 * n + 3), after]
    assert shown["cols"] == [*row, *row, after + p - 1]
    assert shown["rows"] == [*range(0, 15 * 2 * p, 15), *range(30 * p, 30 * p + 6), 31 * p]
    assert len(shown["vals"]) == 31


@pytest.mark.parametrize(
    ("message", "match"),
    [
        ({"kind": "define", "module": "saddle"}, "no module 'saddle' here, only gmm, ba"),
        (
            {"kind": "evaluate", "module": "det", "function": "jacobian", "input": {}},
            "det has the functions primal and gradient, not 'jacobian'",
        ),
        ({"kind": "evaluate", "module": "det", "function": "primal", "input": {}}, "KeyError: 'A'"),
    ],
)
def test_the_harness_is_told_what_went_wrong(message, match):
    response = protocol.answer({"id": 7} | message, eager())
    assert response["id"] == 7
    assert response["success"] is False
    assert match in response["error"]


@pytest.mark.parametrize("group", jit.GROUPS)
def test_groups_have_rows_beside_code_by_hand(group):
    libraries = [load(name, ADAPTERS) for name in ("tapegrad", "numba", "scipy")]
    rows = list(getattr(jit, group)(libraries, 1, True))
    assert any("tapegrad" in row.figures for row in rows)
    for row in rows:
        assert all(0 <= figure.minimum <= figure.median for figure in row.figures.values())


def test_a_wrong_value_is_not_timed():
    problem, instance = drawn("llsq")
    wrong = Tapegrad("tapegrad", tg)
    wrong.jit = lambda f: lambda *xs: tg.tree_map(lambda y: 1.001 * y, f(*xs))
    with pytest.raises(Disagreement, match="llsq: tapegrad's primal is off by"):
        jit_evals.checked(problem, instance, [wrong], Clock())

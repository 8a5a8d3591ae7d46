"""What the benchmark of compiled functions times is checked before."""

from dataclasses import replace

import numpy as np
import pytest

import tapegrad as tg
from bench.check import Disagreement
from bench.njit import measure
from bench.njit.problems import problems
from bench.sides import Tapegrad
from bench.timing import Figure

pytestmark = pytest.mark.tapegrad_only("about this project's benchmark")
PROBLEMS = {problem.name: problem for problem in problems(quick=True)}
SIDES = [Tapegrad("tapegrad", tg)]
ROSENBROCK = PROBLEMS["Rosenbrock"]
(X,), VALUE = ROSENBROCK.arguments, ROSENBROCK.function(*ROSENBROCK.arguments)


@pytest.mark.parametrize("name", PROBLEMS)
def test_gradients_by_hand_of_arrays_and_of_loops_agree(name):
    problem = PROBLEMS[name]
    calls = measure.checked(problem, SIDES, tg)
    assert (measure.BY_HAND in calls) == (problem.by_hand is not None)
    assert ("tg.jit of arrays" in calls) == (problem.arrays is not None)


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({"by_hand": lambda x: (np.ones_like(x),)}, "the gradient by hand is off"),
        ({"arrays": lambda xp, x: xp.sum(x)}, "the value of tg.jit of arrays"),
        ({"arrays": lambda xp, x: VALUE + xp.sum(x) - xp.sum(X)}, "the gradient tg.jit of arrays"),
    ],
    ids=["by-hand", "value", "gradient"],
)
def test_what_disagrees_is_not_timed(fields, match):
    with pytest.raises(Disagreement, match=match):
        measure.checked(replace(ROSENBROCK, **fields), SIDES, tg)


def test_a_wrong_gradient_is_not_timed():
    class Skewed:
        hvp = staticmethod(tg.hvp)

        @staticmethod
        def grad(f, argnums):
            return lambda *args: tuple([1.001 * g for g in tg.grad(f, argnums)(*args)])

    with pytest.raises(Disagreement, match="from differences"):
        measure.checked(ROSENBROCK, [], Skewed)


def test_multiples_are_those_of_the_same_round_and_say_what_is_missed():
    names = ("stencil", "other")
    taken = {"primal": [1.0, 2.0, 4.0], "gradient": [9.0, 18.0, 36.0]}
    taken |= {"Hessian-vector": [2.0, 4.0, 8.0], "by hand": [10.0, 20.0, 40.0]}
    stencil, other, gradients, products = measure.multiples(dict.fromkeys(names, taken), 1)
    assert stencil.figures["gradient"] == Figure(9.0, 9.0)
    assert stencil.met
    assert not other.met
    assert not gradients.met
    assert products.met
    (row, _) = measure.others(dict.fromkeys(names, taken), 1)
    assert row.figures.keys() == {"by hand"}
    assert row.met


def test_what_takes_long_to_compile_is_missed():
    short, long, middle = measure.until({"short": [0.1], "long": [0.6]}, 1)
    assert (short.met, long.met, middle.met) == (True, False, False)

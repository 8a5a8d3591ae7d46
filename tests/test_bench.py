"""The benchmark runs, and what it writes has the shape that its readers expect."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench import check, eager, functions, operations, parts, problems, report, timing, transforms
from bench.__main__ import parse
from bench.libraries import Outcome, load

pytestmark = pytest.mark.tapegrad_only("about this project's benchmark")

ROOT = Path(__file__).parents[1]


def quick(suite, *arguments):
    command = [sys.executable, "-m", "bench", suite, "--quick", *arguments]
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout


@pytest.mark.parametrize(
    ("suite", "group"),
    [("eager", group) for group in (*eager.GROUPS, *eager.PROCESS_GROUPS)]
    + [("transforms", group) for group in transforms.GROUPS]
    + [("parts", group) for group in parts.GROUPS],
)
def test_smoke(suite, group, tmp_path):
    out = tmp_path / "figures.json"
    printed = quick(suite, "--libraries", "tapegrad", "--groups", group, "--json", str(out))
    assert "| tapegrad |" in printed
    document = json.loads(out.read_text())
    assert {"suite", "quick", "processor", "cores", "python", "versions"} == document["meta"].keys()
    assert document["rows"]
    for row in document["rows"]:
        fields = {"group", "name", "threads", "unit", "figures", "ratios", "reach", "met"}
        assert fields | {"note", "family", "phase"} == row.keys()
        figure = row["figures"]["tapegrad"]
        assert 0 <= figure["minimum"] <= figure["median"]
        assert row["ratios"] == {}
    assert report.open_saved(out)[1][0].figures["tapegrad"].minimum >= 0


class Counter:
    """A number that counts the operations done on it and on what comes of it."""

    count = 0

    def operate(self, *_):
        Counter.count += 1
        return self

    __add__ = __radd__ = __sub__ = __mul__ = __rmul__ = __truediv__ = __neg__ = operate


class CountingNames:
    def __getattr__(self, name):
        return Counter.operate


@pytest.mark.parametrize(
    ("problem", "expected"),
    [(problems.chain(1), problems.CHAIN_OPS), (problems.scalar(), problems.SCALAR_OPS)],
    ids=["chain", "scalar"],
)
def test_operations_are_as_many_as_stated(problem, expected):
    Counter.count = 0
    inputs, data = ([Counter() for _ in arrays] for arrays in (problem.inputs, problem.data))
    problem.function(CountingNames(), inputs, data)
    assert Counter.count == expected


class Wrong:
    """A library whose gradient is off by a thousandth, or whose value is."""

    name, version = "wrong", "0"

    def __init__(self, value=1.0, gradient=1.0):
        self.factors = value, gradient

    def prepare(self, problem):
        self.x = problem.inputs[0]
        return self

    def outcome(self):
        value, gradient = self.factors
        weights = problem_weights(self.x)
        return Outcome(self.x**2 * value, [2 * self.x * weights * gradient], [self.x])


def problem_weights(x):
    return square().weights(x.shape)


def square():
    row = ("square", lambda xp, x: x**2, (operations.vec,), ())
    return next(operations.problems([row], 8))


def test_a_right_gradient_passes_the_check():
    assert check.checked(square(), [Wrong()]).keys() == {"wrong"}


@pytest.mark.parametrize("factors", [{"value": 1.001}, {"gradient": 1.001}])
def test_a_wrong_result_is_not_timed(factors):
    with pytest.raises(check.Disagreement, match="square"):
        check.checked(square(), [Wrong(**factors)])


def test_readme_tables_are_replaced_between_the_markers(tmp_path):
    readme = tmp_path / "README.md"
    begin, end = report.markers("eager")
    others = "\n".join(report.markers("transforms"))
    readme.write_text(f"before\n{begin}\nold\n{end}\nafter\n{others}\n")
    figures = {"tapegrad": timing.Figure(2.0, 1.0), "torch": timing.Figure(7.0, 6.0)}
    ratios = report.ratios_to(figures, "torch", "autograd")
    reach = report.at_least(ratios, torch=4)
    row = report.Row("group", "name", 1, "µs", figures, ratios, *reach)
    meta = {"suite": "eager", "processor": "P", "cores": 2, "python": "3", "versions": {}}
    report.write_readme(meta, [row], readme)
    text = readme.read_text()
    assert text.startswith("before\n")
    assert text.endswith(f"after\n{others}\n")
    assert "old" not in text
    assert "| 2 (1) | 7 (6) | 3.50× | ≥ 4× | **missed** |" in text


def test_a_reach_names_its_peers_and_is_open_without_one():
    at_least = report.at_least
    assert at_least({"torch": 2.0}, torch=2) == ("≥ 2×", True)
    assert at_least({}, torch=2) == ("≥ 2×", None)
    assert at_least({"autograd": 5.0, "torch": 3.0}, autograd=6, torch=2.5) == (
        "≥ 6× autograd, ≥ 2.5× PyTorch",
        False,
    )
    assert at_least({"torch": 3.0}, autograd=6, torch=2.5)[1] is None
    assert at_least({"torch": 2.0}, autograd=6, torch=2.5)[1] is False


class Skewed:
    """tapegrad, but for the results of one transform, which are off by a thousandth."""

    name = "skewed"

    def __init__(self, transform):
        self.library, self.transform = load("tapegrad", transforms.ADAPTERS), transform

    def prepare(self, problem):
        self.run = self.library.prepare(problem)
        self.factor = 1.001 if problem.transform == self.transform else 1.0
        return self

    def outcome(self):
        outcome, factor = self.run.outcome(), self.factor
        outcome.gradients[0] *= factor
        return outcome


@pytest.mark.parametrize("transform", ["grad", "hessian", "hvp"])
def test_a_wrong_derivative_is_not_timed(transform):
    problem = functions.rosenbrock(5, transform)
    assert check.checked(problem, [load("tapegrad", transforms.ADAPTERS)]).keys() == {"tapegrad"}
    with pytest.raises(check.Disagreement, match="Rosenbrock"):
        check.checked(problem, [Skewed(transform)])


def test_an_unknown_group_is_refused(capsys):
    with pytest.raises(SystemExit):
        parse(["transforms", "--groups", "small"])
    assert "transforms has the groups gradient, hessian, hvp, not small" in capsys.readouterr().err

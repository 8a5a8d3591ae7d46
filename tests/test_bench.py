"""The benchmark runs, and what it writes has the shape that its readers expect."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench import (
    check,
    compile,
    eager,
    figures,
    functions,
    jit_evals,
    operations,
    ops,
    parts,
    patience,
    problems,
    programs,
    report,
    timing,
    transforms,
)
from bench.__main__ import parse
from bench.gradbench import find
from bench.libraries import Outcome, load
from bench.patience import Clock
from bench.problem import TooLong
from bench.sides import ADAPTERS as SIDES

pytestmark = pytest.mark.tapegrad_only("about this project's benchmark")

ROOT = Path(__file__).parents[1]


def quick(suite, *arguments):
    command = [sys.executable, "-m", "bench", suite, "--quick", *arguments]
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout


@pytest.mark.parametrize(
    ("suite", "group"),
    [("eager", group) for group in (*eager.GROUPS, *eager.PROCESS_GROUPS)]
    + [("transforms", group) for group in transforms.GROUPS]
    + [("parts", group) for group in parts.GROUPS]
    + [("jit", "call")]  # the others run in test_gradbench.py
    + [("compile", group) for group in (*compile.GROUPS, *compile.PROCESS_GROUPS)],
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


def test_calls_of_what_numba_compiles_are_timed():
    printed = quick("njit", "--groups", "call")
    assert "| call of a function of 2 doubles (µs) | primal | gradient |" in printed
    assert printed.count("| from ") == 2


def test_rows_are_shared_by_threads_and_processes():
    """And the sums agree, which it checks."""
    printed = quick("scale")
    assert "| 1 thread | 2 threads | 2 processes |" in printed
    assert printed.count("2 processes ") == 3  # with the heading, that of each problem


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


def measured(median, *, of="torch", group="group", name="name"):
    figures = {"tapegrad": timing.Figure(2.0, 1.0), of: timing.Figure(median, median)}
    ratios = report.ratios_to(figures, of)
    return report.Row(group, name, 1, "µs", figures, ratios, *report.at_least(ratios, torch=4))


META = {"suite": "eager", "processor": "P", "cores": 2, "python": "3", "versions": {}}


def test_what_is_printed_says_what_is_to_be_reached():
    told = report.printed(META, [measured(7.0)])
    assert "| name | 2 (1) | 7 (7) | 3.50× | ≥ 4× | **missed** |" in told


def test_tables_of_the_documents_are_replaced_between_the_markers(tmp_path):
    page = tmp_path / "benchmarks.md"
    begin, end = report.markers("eager")
    others = "\n".join(report.markers("transforms"))
    page.write_text(f"before\n{begin}\nold\n{end}\nafter\n{others}\n")
    report.document(META, [measured(7.0)], page=page)
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith(f"after\n{others}\n")
    assert "old" not in text
    assert "| name | 2 | 7 | 3.50× |\n" in text


def test_chosen_figures_are_kept_until_they_are_measured_again(tmp_path):
    (tmp_path / "docs").mkdir()
    readme = tmp_path / "README.md"
    readme.write_text("\n".join(report.markers("figures")))
    suite, group, name, label, _ = next(row for row in figures.CHOSEN if row[4])
    figures.renew(META, [measured(7.0, group=group, name=name)], tmp_path)
    assert suite == "eager"
    assert f"| {label} | 2 µs | 7 µs | – | – | – |" in readme.read_text()
    figures.renew(META | {"suite": "jit"}, [measured(9.0, group=group, name=name)], tmp_path)
    assert "| 2 µs | 7 µs |" in readme.read_text()
    plot = ElementTree.parse(tmp_path / "docs" / "figures.svg").getroot()
    assert [title.text for title in plot.iter("{http://www.w3.org/2000/svg}title")][1:] == [
        "PyTorch: 3.50×"
    ]


def test_the_documents_show_the_figures_that_are_kept():
    known = json.loads(figures.KEPT.read_text(encoding="utf-8"))
    assert figures.PLOT.read_text(encoding="utf-8") == figures.drawn(known)
    assert figures.table(known) in figures.README.read_text(encoding="utf-8")


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
    assert (
        "transforms has the groups gradient, hessian, hvp, custom, not small"
        in capsys.readouterr().err
    )


def test_what_takes_too_long_is_left():
    clock = Clock(program=0.05)
    assert clock.timed("quick", lambda: 7)[0] == 7
    start = time.perf_counter()
    for _ in range(patience.MOST_OVER):
        with pytest.raises(TooLong, match="not there after 0 s"):
            clock.timed("slow", lambda: time.sleep(60))
    with pytest.raises(TooLong, match="ran over 2 times before"):
        clock.timed("slow", lambda: 7)
    assert clock.timed("quick", lambda: 7)[0] == 7
    assert time.perf_counter() - start < 30


def test_a_table_that_had_its_time_takes_no_more():
    with pytest.raises(TooLong, match="no time left of 0 s"):
        Clock(table=0.0).timed("any", lambda: 7)


def test_a_library_may_swallow_the_alarm():
    def stubborn():
        try:
            time.sleep(60)
        except BaseException:
            return 7

    with pytest.raises(TooLong):
        Clock(program=0.05).timed("stubborn", stubborn)


def test_times_are_drawn_out_along_a_line():
    assert patience.expected([4, 12], [1.0, 3.0], 1000) == pytest.approx(250.0)
    assert patience.expected([4, 12], [3.0, 1.0], 1000) == 1.0


def test_pilots_are_compiled_anew(monkeypatch):
    monkeypatch.setenv("TAPEGRAD_CACHE", "1")
    with patience.environment(TAPEGRAD_CACHE="0"):
        assert os.environ["TAPEGRAD_CACHE"] == "0"
    assert os.environ["TAPEGRAD_CACHE"] == "1"


def test_an_eval_that_would_take_too_long_has_a_reason_instead_of_a_figure(monkeypatch):
    monkeypatch.setattr(jit_evals, "pilot", lambda problem, side, sizes: 0.02 * sizes["c"])
    monkeypatch.setattr(jit_evals, "forms", lambda library: [library])
    problem, side = find("lstm"), load("tapegrad", SIDES)
    instance = problem.instance({"l": 2, "c": 1024}, 1)
    calls, left_out = jit_evals.checked(problem, instance, [side], Clock(program=10.0))
    assert calls == {}
    assert left_out.keys() == {("tapegrad", "primal"), ("tapegrad", "derivative")}
    assert set(left_out.values()) == {"would take some 20 s to compile"}


def test_a_program_that_would_take_too_long_has_a_reason_instead_of_a_figure(monkeypatch):
    few = [programs.scalars(8), programs.scalars(10**7)]
    monkeypatch.setattr(programs, "listed", lambda quick: few)
    monkeypatch.setattr(programs, "run", lambda *_, **__: "0.008 0.0")
    first, second = programs.programs(["tapegrad"], False)
    assert first.figures["tapegrad"].median == pytest.approx(8.0)
    assert second.figures == {}
    assert second.met is False
    assert second.note == "not run: tapegrad (would take some 10,000 s to compile)"


def test_no_program_of_an_earlier_run_is_found(tmp_path, monkeypatch):
    monkeypatch.setenv("TAPEGRAD_CACHE_DIR", str(tmp_path))
    (tmp_path / "kernel.o").write_bytes(b"code")
    with patience.machine_code() as cache:
        assert (Path(cache) / "kernel.o").read_bytes() == b"code"
        (Path(cache) / "program.o").write_bytes(b"code")
    assert [path.name for path in tmp_path.iterdir()] == ["kernel.o"]


def test_a_row_whose_results_differ_is_missed_and_the_others_are_timed(monkeypatch):
    def disagree(problem, libraries):
        raise check.Disagreement(f"{problem.name}: values differ by 1")

    row = next(row for row in operations.FAMILIES["reductions"] if row[0] == "sum")
    monkeypatch.setattr(ops, "checked", disagree)
    monkeypatch.setattr(ops, "families", lambda scale: [("sums", [row], 3)])
    (found,) = ops.tiny([], 1, True)
    assert (found.met, found.figures) == (False, {})
    assert found.note == "not timed: sum: values differ by 1"
    assert ops.summary([found]).endswith("| ratio |\n|---|---:|")


def test_the_medians_are_of_the_evals_that_tapegrad_did():
    figure = timing.Figure(2.0, 2.0)
    both = {"tapegrad": figure, "numba": figure}
    rows = [report.Row("g", "a", 1, "×", both), report.Row("g", "b", 1, "×", {"numba": figure})]
    assert jit_evals.summary(rows, 1).name == "median of the 1 that tapegrad did"
    assert jit_evals.summary(rows, 1).figures.keys() == {"tapegrad", "numba"}
    assert jit_evals.summary(rows[:1], 1).name == "median of all"


def test_a_derivative_without_its_primal_is_no_multiple():
    samples = {("a", "derivative"): [2.0], ("b", "primal"): [1.0], ("b", "derivative"): [3.0]}
    assert jit_evals.multiple("name", samples, 1).figures == {"b": timing.Figure(3.0, 3.0)}

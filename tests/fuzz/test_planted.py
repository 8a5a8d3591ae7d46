"""The test of the test: planted errors are found within the 300 programs, or among their next."""

import subprocess
import sys
from pathlib import Path

import pytest

from tapegrad.autograd.sweep import Sweep
from tapegrad.compiler.trace.trace import Trace
from tapegrad.lift.batch import Batched
from tapegrad.lift.dual import Dual
from tapegrad.lift.lifted_tensor import overwrite
from tests.conformance.test_planted_errors import planted, rule, wrong
from tests.fuzz import checks
from tests.fuzz.control import Plain
from tests.fuzz.programs import program
from tests.fuzz.test_programs import COUNT

pytestmark = pytest.mark.tapegrad_only("programs that are run in all of its ways")


def found(form="", often=4, count=COUNT):
    """The check that disagrees first, of the programs that have some form, or None."""
    for seed in range(count):
        p = program(seed, Plain)
        if not any(step.form.name.startswith(form) for step in p.steps):
            continue
        failed = checks.run(p, checks.checks_of(seed, often=often))
        if failed:
            return failed[0]
    return None


RULES = {
    "tanh": {"x": wrong(rule("tanh", 0))},
    "div": {"b": wrong(rule("div", 1))},
    "cumsum": {"x": wrong(rule("cumsum", 0))},
    "hypot": {"b": wrong(rule("hypot", 1))},
}


def plant(name):
    with planted(name, **RULES[name]):
        assert found(name) is not None


@pytest.mark.parametrize("name", RULES)
def test_a_rule_that_is_wrong_by_a_thousandth(name):
    """In a process of its own, for what was compiled of a wrong rule is kept."""
    code = f"from tests.fuzz.test_planted import plant; plant({name!r})"
    words = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(words, cwd=Path(__file__).parents[2], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


def test_a_saved_value_that_was_changed_and_is_not_noticed(monkeypatch):
    monkeypatch.setattr(Sweep, "_check_versions", lambda self, indices: None)
    assert found("write") is not None


def test_a_write_that_loses_the_tangent(monkeypatch):
    def write(self, result):
        value = result._lift.primal if type(result) is Dual else result
        overwrite(self._lift.primal, value)
        self._a = self._lift.primal._a

    monkeypatch.setattr(Dual, "write", write)
    assert found("write") is not None


def test_a_write_that_only_the_first_example_sees(monkeypatch):
    def write(self, result):
        full = result._lift.full if type(result) is Batched else result
        overwrite(self._lift.full[:1], full[:1])

    monkeypatch.setattr(Batched, "write", write)
    assert found("write") is not None


def test_a_branch_without_a_guard(monkeypatch):
    right = Trace.concretize

    def unguarded(self, t):
        value, self.guards[:] = right(self, t), []
        return value

    monkeypatch.setattr(Trace, "concretize", unguarded)
    # A branch has to be taken the other way, in a program whose turn it is to be compiled whole.
    assert found("if ", often=1, count=5 * COUNT) is not None

"""The evals of GradBench in the other libraries: what is timed beside this one is the same."""

import pytest

from bench import gradbench, jit_evals
from bench.libraries import load
from bench.patience import Clock
from bench.sides import ADAPTERS

pytestmark = [
    pytest.mark.peer,
    pytest.mark.tapegrad_only("about this project's benchmark"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


@pytest.fixture(autouse=True)
def _precision_as_before():
    jax = pytest.importorskip("jax", reason="`make peers` installs it")
    before = jax.config.jax_enable_x64
    yield
    jax.config.update("jax_enable_x64", before)


LONG = {"ba", "gmm", "ht", "lstm", "ode"}  # JAX compiles them for 15 to 85 seconds


@pytest.mark.parametrize("library", ["jax", "torch"])
@pytest.mark.parametrize("name", gradbench.NAMES)
def test_the_other_libraries_agree_with_what_is_written_by_hand(
    name, library, monkeypatch, pytestconfig
):
    if library == "jax" and name in LONG and not pytestconfig.getoption("--nightly"):
        pytest.skip("JAX compiles it for too long; `make nightly` runs it")
    monkeypatch.setattr(jit_evals, "forms", lambda library: [library])  # compiling takes minutes
    pytest.importorskip(library, reason="`make peers` installs it")
    problem = gradbench.find(name)
    instance, side = problem.instance(problem.small, 3), load(library, ADAPTERS)
    found, left_out = jit_evals.checked(problem, instance, [side], Clock())
    assert list(found) == [(library, "primal"), (library, "derivative")]
    assert not left_out

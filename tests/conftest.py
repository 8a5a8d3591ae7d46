"""Fixtures shared by all tests.

The behavioural tests take the library under test as the fixture `tg`. By default it is tapegrad;
with `--library=torch` it is PyTorch, whose behaviour is the specification wherever a test is not
marked `tapegrad_only`. PyTorch is imported in that case alone.
"""

import gc
import importlib
import os
import sys

import numpy as np
import pytest

from tests.misuse import World


def pytest_addoption(parser):
    parser.addoption(
        "--library",
        choices=("tapegrad", "torch"),
        default="tapegrad",
        help="the library that the behavioural tests are run on",
    )
    parser.addoption(
        "--native",
        choices=("on", "off", "forced"),
        default="on",
        help="whether operations go by native code: never, or from the first call of each plan on",
    )
    parser.addoption("--slow", action="store_true", help="also run the tests marked slow")
    parser.addoption(
        "--nightly", action="store_true", help="walk over everything, of which tests take a part"
    )


def pytest_configure(config):
    config.addinivalue_line(
        "markers",
        "tapegrad_only(reason): tapegrad deliberately differs from PyTorch, or has no counterpart",
    )
    config.addinivalue_line("markers", "slow: takes many seconds; runs only with --slow")
    # What is compiled late would be by processes that outlive the tests.
    os.environ["TAPEGRAD_BACKGROUND"] = "0"
    # And programs would be compiled in a thread, while other tests measure; those of tiers ask.
    os.environ["TAPEGRAD_TIERED"] = "0"
    if config.getoption("--native") == "off":
        os.environ["TAPEGRAD_NATIVE"] = "0"


def pytest_collection_modifyitems(config, items):
    on_torch = config.getoption("--library") == "torch"
    if on_torch:  # a test that does not take `tg` is of tapegrad alone, and has been run on it
        others = [item for item in items if "tg" not in item.fixturenames]
        items[:] = [item for item in items if "tg" in item.fixturenames]
        config.hook.pytest_deselected(items=others)
    for item in items:
        mark = item.get_closest_marker("tapegrad_only")
        if on_torch and mark:
            reason = mark.args[0] if mark.args else "no counterpart in PyTorch"
            item.add_marker(pytest.mark.skip(reason=f"tapegrad only: {reason}"))
        if item.get_closest_marker("slow") and not config.getoption("--slow"):
            item.add_marker(pytest.mark.skip(reason="slow: run with --slow"))


def pytest_collection_finish():
    """Spare collections of garbage the tests themselves, a million objects that stay."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def native_path(request):
    """Have operations go by compiled code from the first on, as where a machine has compiled it.

    tests/native/test_install.py compares it with the functions in Python.
    """
    if request.config.getoption("--library") != "tapegrad":
        return
    importlib.import_module("tapegrad.native.install").install()
    if request.config.getoption("--native") == "forced":
        kernels = importlib.import_module("tapegrad.kernels.codegen.kernel_table")
        kernels.small_axis_loop = lambda op, **_: kernels._load_small_axis_loop(op)
        # a plan is made at the first call, not at the eighth
        importlib.import_module("tapegrad.dispatch.call_plans").TIMES = 1


@pytest.fixture(scope="module")
def native():
    """Native operations, put in; a machine that has none skips the test."""
    install = importlib.import_module("tapegrad.native.install")
    if not install.install():
        pytest.skip("this machine has no native path")
    return install.installed


@pytest.fixture
def fresh_tape(monkeypatch):
    """A tape of the test's own."""
    tape = importlib.import_module("tapegrad.tape.tape")
    monkeypatch.setattr(tape.current, "tape", tape.Tape())


@pytest.fixture(scope="session")
def tg(request):
    """The library under test, with float64 as the default dtype."""
    name = request.config.getoption("--library")
    library = importlib.import_module(name)
    if name == "torch":
        library.set_default_dtype(library.float64)
        library.set_num_threads(1)
    return library


@pytest.fixture(scope="session")
def leaf(tg):
    """Make a leaf that requires grad from nested lists or an array."""

    def make(value, **kwargs):
        return tg.tensor(value, requires_grad=True, **kwargs)

    return make


@pytest.fixture
def world(tg):
    """A healthy graph beside which the library is misused."""
    return World(tg)


@pytest.fixture
def rng():
    """A NumPy generator that gives every test the same numbers on every run."""
    return np.random.default_rng(20240229)


@pytest.fixture
def references_kept():
    """Whether 50 rounds of `work` leave the references to `shared`, and the objects, as many.

    What is lost or leaked is so in every round and each time. Other threads of the process,
    and what earlier tests left behind, may move a count once.
    """

    def kept(work, shared):
        def counted():
            for _ in range(50):
                work()
            importlib.import_module("tapegrad.tape.tape").current.tape.reclaim()
            gc.collect()
            return [*(sys.getrefcount(thing) for thing in shared), len(gc.get_objects())]

        counted()
        moved = np.diff([counted() for _ in range(4)], axis=0)
        return bool(np.all(np.abs(moved).min(axis=0) < 20))

    return kept

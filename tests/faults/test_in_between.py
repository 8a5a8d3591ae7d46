"""Signal handlers, finalisers and the collector in the middle of the library.

`points` goes through the places where CPython may run something else, one run of a program for
each; some of them are tried.  Timers hit places that no bytecode shows, in a child process each.
With more `TAPEGRAD_TRIALS` there are more of both: `make faults N=10000` tries all points.
"""

import collections
import contextlib
import gc
import importlib
import os
import random
import signal
import sys
from pathlib import Path

import llvmlite
import numpy as np
import pytest

import tapegrad as tg
from tapegrad.kernels import build
from tapegrad.tape.tape import MIN_CAPACITY, current

sys.path.insert(0, str(Path(__file__).parent))
points = importlib.import_module("points")
programs = importlib.import_module("programs")

pytestmark = pytest.mark.tapegrad_only("about the memory that this library keeps")

TRIALS = int(os.environ.get("TAPEGRAD_TRIALS", "12"))  # timers for each program
TRIED = TRIALS // 4  # points for each program and what is done there
BY_NAME = {program.__name__: program for program in programs.PROGRAMS}


@pytest.fixture(params=["native path", "in Python"])
def native(request):
    """Have operations go by compiled code or by functions in Python."""
    native = importlib.import_module("tapegrad.native.install").installed
    if request.param == "in Python" and native is not None:
        tg.tensor(1.0, requires_grad=True).exp().backward()  # the first sweep would open it again
        native.close()
        yield request.param
        native.open()
    else:
        yield request.param


def computing():
    """Work on the tape that is in the middle of something."""
    with tg.inference_mode(False), tg.enable_grad():
        leaf = tg.tensor([1.0, 2.0, 3.0], requires_grad=True)
        assert tg.autograd.grad(tg.exp(leaf * 2) @ leaf, leaf)[0].shape == (3,)
        changed = leaf * 3
        changed[1:].mul_(2)
        g = tg.grad(lambda v: np.sum(v**3))(programs.X)  # under a map for each example
        assert isinstance(g, tg.Tensor) or np.allclose(g, 3 * programs.X**2)


abandoned = []  # a result that stands on the tape before a program, until `filling`


def filling():
    """Work until the tape is full: records stand elsewhere, and leaves have other numbers."""
    computing()
    abandoned.clear()
    tape = current.tape
    with tg.inference_mode(False), tg.enable_grad():
        leaf = tg.tensor(1.0, requires_grad=True)
        kept = [leaf * 2 for _ in range(tape.capacity - tape.used + 2)]
    current.tape.reclaim()
    assert kept[0] is not kept[-1]


class Finaliser:
    """Works when the collector finds it."""

    def __init__(self):
        self.me = self

    def __del__(self):
        computing()


def collecting():
    """Run the collector, which finds somebody who works."""
    Finaliser()
    gc.collect()


def assert_untouched(program, found, start, older):
    """Nothing is left behind: the program's results, an older graph, the tape."""
    tape = current.tape
    assert points.state_of(tape) == start
    points.check_tape(tape)
    for _ in range(2):
        assert points.close(program(), found)
    root, leaf, gradient = older
    assert np.allclose(tg.autograd.grad(root, leaf)[0].numpy(), gradient)
    points.check_tape(tape)


def try_points(program, act, seed):
    """Run a program with something done at one point after the other."""
    for _ in range(3):
        found = program()
    start = points.state_of(current.tape)
    count = points.points_of(program)
    for at in random.Random(seed).sample(range(count), min(TRIED, count)):
        current.tape.reclaim()
        current.tape._resize(MIN_CAPACITY)  # `filling` doubles it each time
        abandoned[:] = [tg.tensor(1.0, requires_grad=True) * 2.0]
        leaf = tg.tensor([0.5, 1.5], requires_grad=True)
        older = (tg.sin(leaf * 2.0) * leaf).sum()
        gradient = np.sin(2 * leaf._a) + 2 * leaf._a * np.cos(2 * leaf._a)
        with points.Points(at, act) as here:
            try:
                result = program()
            except points.Stop:
                result = None
            except RuntimeError as problem:
                # What computes while a checkpoint does so again is taken for the function's.
                if "the function did other operations" not in str(problem):
                    raise
                result = None
        try:
            assert result is None or points.close(result, found)
            assert_untouched(program, found, start, (older, leaf, gradient))
        except BaseException as problem:
            problem.add_note(f"{act.__name__} at point {at} of {program.__name__}: {here.where}")
            raise


ACTS = {"interrupt": points.stop, "compute": computing, "fill": filling, "collect": collecting}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("name", BY_NAME)
def test_what_comes_in_between_leaves_no_trace(name, act, native):
    try_points(BY_NAME[name], ACTS[act], name + act + native)


# -- an interruption in place: the value and its history agree -------------------------------------


def halved(y):
    y.mul_(0.5)


def halved_in_view(y):
    y[1:].mul_(0.5)


def assigned(y):
    y[0] = 7.0


def masked(y):
    y[y > 0.5] = 0.0


def added(y):
    y.add_(y.detach().clone())


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("change", [halved, halved_in_view, assigned, masked, added])
@pytest.mark.parametrize("size", [3, 700])
def test_an_interrupted_change_is_made_or_not(change, size, native):
    """The gradient of the sum says how each element was computed, with the change or without."""

    def run():
        x = tg.tensor(np.linspace(0.1, 0.9, size), requires_grad=True)
        return x, x * 1.0

    for _ in range(3):
        x, y = run()
        change(y)
    before = run()[1].detach().numpy()
    after = y.detach().numpy()
    slopes = tg.autograd.grad(y.sum(), x)[0].numpy()
    count = points.points_of(lambda: change(run()[1]))
    outcomes = collections.Counter()
    for at in range(count):
        x, y = run()
        with contextlib.suppress(points.Stop), points.Points(at, points.stop):
            change(y)
        is_made = not np.array_equal(y.detach().numpy(), before)
        assert np.array_equal(y.detach().numpy(), after if is_made else before)
        try:
            found = tg.autograd.grad(y.sum(), x)[0].numpy()
        except RuntimeError:  # loud
            outcomes["refused"] += 1
            continue
        assert np.allclose(found, slopes if is_made else 1.0), at
        outcomes[is_made] += 1
    assert outcomes[True]
    assert outcomes["refused"] <= 1 + count // 10


# -- timers ----------------------------------------------------------------------------------------


TIMED = ["chain", "joined", "in_place", "large", "gradients", "mapped", "compiling"]


def in_a_child(program, found, seconds):
    """What becomes of a process whose work is interrupted after a while: its exit code."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = 3
    try:

        def handler(*_):
            raise points.Stop

        signal.signal(signal.SIGALRM, handler)
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds, 0.5)  # one may be lost in a destructor
            while True:
                program()
        except points.Stop:
            signal.setitimer(signal.ITIMER_REAL, 0)
        points.check_tape(current.tape)
        code = 0 if all(points.close(program(), found) for _ in range(8)) else 2
    except BaseException as problem:
        sys.stderr.write(f"{program.__name__}: {type(problem).__name__}: {problem}\n")
    finally:
        os._exit(code)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="interrupts a child process")
@pytest.mark.parametrize("name", TIMED)
def test_a_timer_at_any_moment(name):
    program = BY_NAME[name]
    found = [program() for _ in range(30 if name != "compiling" else 1)][-1]
    chance = random.Random(5)
    longest = 0.03 if name != "compiling" else 0.4
    threads = tg.get_num_threads()
    tg.set_num_threads(1)
    try:
        ends = collections.Counter(
            in_a_child(program, found, chance.uniform(1e-3, longest)) for _ in range(TRIALS)
        )
    finally:
        tg.set_num_threads(threads)
    assert ends == {0: TRIALS}


# -- LLVM's objects --------------------------------------------------------------------------------


def linked():
    """The text of a module that took another one over."""
    llvm = build.binding()
    module = llvm.parse_assembly("define i64 @one() { ret i64 1 }")
    build.link_in(module, llvm.parse_assembly("define i64 @two() { ret i64 2 }"))
    return str(module)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a double free ends the process")
def test_an_interruption_frees_nothing_twice(monkeypatch):
    monkeypatch.setattr(points, "WATCHED", (*points.WATCHED, os.path.dirname(llvmlite.__file__)))
    text = linked()
    child = os.fork()
    if not child:
        code = 1
        try:
            gc.freeze()  # what other tests have left need not be looked through each time
            for at in range(points.points_of(linked)):
                with contextlib.suppress(points.Stop), points.Points(at, points.stop):
                    linked()
                gc.collect()
            code = 0 if linked() == text else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

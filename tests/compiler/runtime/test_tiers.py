"""Programs that take long to compile begin in a first tier, and are compiled when that pays."""

import ctypes
import gc
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import pytest

import tapegrad as tg
from tapegrad.compiler.lower import first_tier as tier
from tapegrad.compiler.lower import lower
from tapegrad.compiler.runtime import tiers
from tapegrad.kernels import compile_ahead
from tests.compiler.programs import random_chain

pytestmark = pytest.mark.tapegrad_only("about the compiler")
X = np.linspace(0.1, 0.9, 300)


@pytest.fixture(autouse=True)
def first_tier(monkeypatch):
    monkeypatch.setenv("TAPEGRAD_TIERED", "1")
    monkeypatch.setenv("TAPEGRAD_BACKGROUND", "0")  # in a thread: a process takes seconds to start


@pytest.fixture
def paying(monkeypatch):
    """Compiling pays at the first call."""
    monkeypatch.setattr(tier, "PART", 0.0)


def program_of(jitted):
    ((specialization,),) = jitted._specializations.values()
    return specialization.program.kept


def is_first_tier(jitted):
    return program_of(jitted).engine[0].get_global_value_address("tapegrad_compiled") != 0


def compiled(jitted):
    """Wait until the second tier is there."""
    end = time.monotonic() + 60
    while program_of(jitted).compiled is None:
        assert time.monotonic() < end
        time.sleep(0.01)


def near(found, wanted):
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)


def test_a_long_program_is_interpreted_until_compiling_pays(monkeypatch):
    f = random_chain(80)
    jitted = tg.jit(tg.grad(f))
    wanted = tg.grad(f)(X)
    near(jitted(X), wanted)
    assert program_of(jitted).compiled is None
    counts = lower.Module(jitted.lower(X).graph, tiered=True).lower().counts
    calls = counts.pays // counts.cost
    assert calls > 10
    for _ in range(1 + calls):
        jitted(X)
    compiled(jitted)
    near(jitted(X), wanted)
    near(jitted(X * 0.5), tg.grad(f)(X * 0.5))


@pytest.mark.parametrize("elements", [30, lower.STACK])  # scratch memory on the stack, and not
def test_programs_that_are_interpreted_share_their_machine_code(elements):
    x = np.linspace(0.1, 0.9, elements)
    constant = np.linspace(0.0, 1.0, 30)
    chains = [random_chain(60, seed=1), random_chain(75, seed=2)]
    functions = [chains[0], lambda x: chains[1](x + np.resize(constant, x.shape))]
    texts = set()
    for f in functions:
        jitted = tg.jit(tg.grad(f))
        near(jitted(x), tg.grad(f)(x))
        texts.add(lower.Module(jitted.lower(x).graph, tiered=True).lower().text)
    assert len(texts) == 1


def test_a_short_one_is_compiled_at_once(paying):
    jitted = tg.jit(lambda x: np.sin(x) * x)
    jitted(X)
    assert not is_first_tier(jitted)


def test_threads_go_on_while_the_tiers_change(paying):
    f = random_chain(60)
    jitted = tg.jit(tg.value_and_grad(f))
    points = [X * scale for scale in (0.25, 0.5, 0.75, 1.0)]
    wanted = [tg.value_and_grad(f)(x) for x in points]
    stop = threading.Event()

    def call(k):
        count = 0
        while not stop.is_set():
            value, gradient = jitted(points[k])
            near(value, wanted[k][0])
            near(gradient, wanted[k][1])
            count += 1
        return count

    with ThreadPoolExecutor(4) as pool:
        running = [pool.submit(call, k) for k in range(4)]
        try:
            while not any(jitted._specializations.values()):
                time.sleep(0.01)
            compiled(jitted)
            time.sleep(0.05)
        finally:
            stop.set()
        assert min(one.result() for one in running) > 0


def test_numba_code_and_pointers_pass_over(paying):
    f = random_chain(60)
    jitted = tg.jit(f)

    @numba.njit
    def repeated(x, times):
        total = 0.0
        for _ in range(times):
            total += jitted(x)
        return total

    wanted = f(X)
    pointer = jitted.cfunc("plain", X)
    near(repeated(X, 3), 3 * wanted)
    compiled(jitted)
    near(repeated(X, 3), 3 * wanted)
    out = np.zeros(1)
    tables = [(ctypes.c_void_p * 1)(a.ctypes.data) for a in (X, out)]
    assert pointer.ctypes(*tables) == 0
    near(out[0], wanted)


def test_a_function_that_is_gone_is_not_compiled(paying, monkeypatch):
    made = []
    monkeypatch.setattr(compile_ahead, "compile_module", lambda *module: made.append(module))
    for k in range(3):
        tg.jit(random_chain(60 + k))(X)
    gc.collect()
    for thread in threading.enumerate():
        if thread.name == "tapegrad compiler":
            thread.join(60)
    assert len(made) <= 3


def test_the_environment_switches_tiers_off(monkeypatch):
    monkeypatch.setenv("TAPEGRAD_TIERED", "0")
    jitted = tg.jit(random_chain(80))
    jitted(X)
    assert not is_first_tier(jitted)


CODE = """
import numpy as np, time
import tapegrad as tg
from tapegrad.compiler.lower import first_tier
from tests.compiler.programs import random_chain
first_tier.PART = 0.0
x = np.linspace(0.1, 0.9, 40)
f = tg.jit(random_chain(60))
for _ in range(3):
    f(x)
"""


@pytest.mark.parametrize("background", ["0", "1"])
def test_a_process_may_end_while_the_second_tier_is_compiled(background, tmp_path, monkeypatch):
    monkeypatch.setenv("TAPEGRAD_BACKGROUND", background)
    monkeypatch.setenv("TAPEGRAD_CACHE_DIR", str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


def test_another_process_compiles_the_second_tier(paying, monkeypatch, tmp_path):
    monkeypatch.setenv("TAPEGRAD_BACKGROUND", "1")
    monkeypatch.setenv("TAPEGRAD_CACHE_DIR", str(tmp_path))
    f = random_chain(50, seed=3)
    jitted = tg.jit(f)
    near(jitted(X), f(X))
    compiled(jitted)
    near(jitted(X), f(X))
    assert any(tmp_path.glob("*.o"))


# -- loops ----------------------------------------------------------------------------------------


def steps(x):
    """So many operations in a loop, and as many as the values decide in another one."""

    def step(x, row):
        for k in range(12):
            x = x + 0.01 * np.tanh(x * (k + 1.0) + row) - 0.02 * np.sin(x)
        return x, np.sum(x)

    x, sums = tg.scan(step, x, np.linspace(0.0, 1.0, 40))
    double = lambda x: np.where(x > 0.5, x * 1.5, x * 2.0)
    return np.sum(tg.while_loop(lambda x: np.sum(x) < 100.0, double, x * x + 0.1)) + np.sum(sums)


@pytest.fixture
def long_to_compile(monkeypatch, tmp_path):
    """Loops take long to compile, and are nowhere on disk."""
    monkeypatch.setattr(lower, "LONG_TO_COMPILE", 0.0)
    monkeypatch.setenv("TAPEGRAD_CACHE_DIR", str(tmp_path))


def counting(monkeypatch, *counts):
    monkeypatch.setattr(lower, "counts", lambda compiling, call: tier.Counts(*counts))


POINTS = np.linspace(0.1, 0.4, 5)


def test_loops_give_the_same_to_the_bit_in_both_tiers(long_to_compile, paying, monkeypatch):
    gradient = tg.grad(steps)
    jitted = tg.jit(gradient)
    found = jitted(POINTS)
    assert is_first_tier(jitted)
    near(found, gradient(POINTS))
    compiled(jitted)
    assert np.array_equal(jitted(POINTS), found)
    again = tg.jit(tg.grad(steps))
    assert np.array_equal(again(POINTS), found)
    assert not is_first_tier(again)  # its code is on disk


@pytest.mark.parametrize("form", ["called", "in machine code"])
def test_a_call_that_takes_long_is_given_up_and_compiled(form, long_to_compile, monkeypatch):
    counting(monkeypatch, 1 << 60, 1, 20_000)
    jitted = tg.jit(steps)
    wanted = steps(POINTS)
    if form == "called":
        near(jitted(POINTS), wanted)
    else:
        near(numba.njit(lambda x: jitted(x))(POINTS), wanted)
    made = [one.program.kept.compiled for many in jitted._specializations.values() for one in many]
    assert any(made)
    near(jitted(2.0 * POINTS), steps(2.0 * POINTS))


def test_short_calls_are_not_given_up(long_to_compile, monkeypatch):
    counting(monkeypatch, 1 << 60, 1, 1 << 40)
    jitted = tg.jit(steps)
    near(jitted(POINTS), steps(POINTS))
    assert program_of(jitted).compiled is None


def test_without_memory_to_compile_a_call_goes_on(long_to_compile, monkeypatch):
    counting(monkeypatch, 1 << 60, 1, 20_000)
    jitted = tg.jit(steps)

    def none_left(*args, **kwargs):
        raise MemoryError

    with monkeypatch.context() as patch:
        module = tiers.Module
        patch.setattr(
            tiers,
            "Module",
            lambda *a, tiered=False: module(*a, tiered=True) if tiered else none_left(),
        )
        for _ in range(2):
            near(jitted(POINTS), steps(POINTS))
    assert program_of(jitted).compiled is None


def test_an_interruption_ends_a_call_that_waits(long_to_compile, monkeypatch):
    counting(monkeypatch, 1 << 60, 1, 20_000)
    jitted = tg.jit(steps)

    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(tiers, "_compile", interrupted)
        with pytest.raises(KeyboardInterrupt):
            jitted(POINTS)
    near(jitted(POINTS), steps(POINTS))


def test_threads_may_give_up_one_program_together(long_to_compile, monkeypatch):
    counting(monkeypatch, 1 << 60, 1, 20_000)
    jitted = tg.jit(steps)
    wanted = steps(POINTS)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(jitted, [POINTS] * 16):
            near(found, wanted)


def test_what_calls_python_has_no_first_tier(long_to_compile):
    def f(x):
        return tg.scan(lambda x, _: (tg.pure_callback(np.sin, (5,), x), None), x, None, 20)[0]

    jitted = tg.jit(f)
    near(jitted(POINTS), f(POINTS))
    assert not is_first_tier(jitted)

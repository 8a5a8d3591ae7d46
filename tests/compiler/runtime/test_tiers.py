"""Long programs are interpreted first, and compiled when that pays."""

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
from tapegrad.compiler.lower import lower
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
    monkeypatch.setattr(lower, "COMPILE_TIME", 0.0)


def program_of(jitted):
    ((specialization,),) = jitted._specializations.values()
    return specialization.program.kept


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
    calls = lower.Module(jitted.lower(X).graph, interpreting=True).lower().calls_until_compiled
    assert calls > 10
    for _ in range(calls):
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
        texts.add(lower.Module(jitted.lower(x).graph, interpreting=True).lower().text)
    assert len(texts) == 1


def test_a_short_one_is_compiled_at_once(paying):
    jitted = tg.jit(lambda x: np.sin(x) * x)
    jitted(X)
    assert not program_of(jitted).engine[0].get_global_value_address("tapegrad_calls")


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
    assert not program_of(jitted).engine[0].get_global_value_address("tapegrad_calls")


CODE = """
import numpy as np, time
import tapegrad as tg
from tapegrad.compiler.lower import lower
from tests.compiler.programs import random_chain
lower.COMPILE_TIME = 0.0
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

"""Processes beside each other: forks with threads, and several that compile into one cache."""

import os
import subprocess
import sys

import pytest

pytestmark = [
    pytest.mark.tapegrad_only("how tapegrad shares work and compiled code"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork"),
]

FORK = """
import os, sys, threading, warnings
import numpy as np, tapegrad as tg
warnings.simplefilter("ignore")
tg.set_num_threads(2)
a = np.linspace(0.0, 1.0, 300_000)

def right():
    x = tg.tensor(a, requires_grad=True)
    y = (x * x + x).sum()
    y.backward()
    assert np.allclose(x.grad.numpy(), 2 * a + 1)
    assert np.isclose(y.item(), np.sum(a * a + a))
    assert np.allclose(tg.grad(lambda x: np.sum(np.exp(x)))(a), np.exp(a))

right()
ended = threading.Event()

def beside():
    while not ended.is_set():
        right()
"""

CASES = {
    "while the pool rests": "children = 3",
    "while another thread computes": """
children = 8
threading.Thread(target=beside, daemon=True).start()
""",
    "while another thread compiles": """
children = 6

def compiling():
    for k in range(1000):
        if ended.is_set():
            return
        f = lambda x: np.sum(np.cos(x) ** k)
        assert np.isclose(tg.jit(f)(a[:5]), f(a[:5]))

right_as_before = right

def right():
    right_as_before()
    k = 1000 + os.getpid()
    f = tg.jit(tg.grad(lambda x: np.sum(np.sin(x) * k)))
    assert np.allclose(f(a[:5]), k * np.cos(a[:5]))

right()  # imports the compiler: a child can wait for what another thread imports, in any program
threading.Thread(target=compiling, daemon=True).start()
""",
}
END = """
import signal, time
for _ in range(children):
    child = os.fork()
    if not child:
        status = 1
        try:
            signal.alarm(60)
            right()
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    right()
ended.set()
"""


@pytest.mark.parametrize("case", CASES)
def test_a_child_of_a_process_with_threads(case):
    words = [sys.executable, "-c", FORK + CASES[case] + END]
    done = subprocess.run(words, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, (done.returncode, done.stderr[-3000:])


TOGETHER = """
import numpy as np, tapegrad as tg
x = np.linspace(0.1, 1.0, 5)
f = tg.jit(tg.value_and_grad(lambda x: np.sum(np.sin(x) * x)))
value, gradient = f(x)
assert np.isclose(value, np.sum(np.sin(x) * x)) and np.allclose(gradient, np.cos(x) * x + np.sin(x))
"""


def test_four_processes_compile_at_once(tmp_path):
    """All are right, and what they leave is whole: the next one compiles nothing."""
    environment = {**os.environ, "TAPEGRAD_CACHE_DIR": str(tmp_path), "TAPEGRAD_CACHE": "1"}
    words = [sys.executable, "-c", TOGETHER]
    processes = [
        subprocess.Popen(words, env=environment, stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    for process in processes:
        _, said = process.communicate(timeout=240)
        assert process.returncode == 0, said[-2000:]
    assert not list(tmp_path.glob("*.part"))
    before = {path: path.stat().st_ino for path in tmp_path.glob("*.o")}
    assert before
    subprocess.run(words, env=environment, check=True, timeout=240)
    assert {path: path.stat().st_ino for path in tmp_path.glob("*.o")} == before

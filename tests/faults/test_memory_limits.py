"""Memory that runs out: a MemoryError, after which everything goes on and is right."""

import subprocess
import sys

import pytest

pytestmark = [
    pytest.mark.tapegrad_only("what is left after a MemoryError"),
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux holds a process to RLIMIT_AS"),
]

# A process that may take so many bytes more than it has when the work begins.
SETUP = """
import ctypes, gc, resource, sys
import numpy as np, tapegrad as tg
tg.set_num_threads(1)

def in_use():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()

def limited(room, work):
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)  # what was freed, by a compiler above all, would be there in spite of the limit
    most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (in_use() + room, most[1]))
    try:
        work()
    except MemoryError:
        return True
    finally:
        resource.setrlimit(resource.RLIMIT_AS, most)
    return False

def right():
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    y = (x * x).sin().sum()
    y.backward()
    assert np.allclose(x.grad.numpy(), 2 * x.detach().numpy() * np.cos([1.0, 4.0]))
    big = np.linspace(0.0, 1.0, 20_000)
    assert np.allclose(tg.grad(lambda x: np.sum(np.exp(x) * x))(big), np.exp(big) * (1 + big))
    f = lambda x: np.sum(np.tanh(x) ** 2)
    assert np.allclose(tg.jvp(tg.grad(f), (big,), (big,))[1], tg.hvp(f)(big, big))
right()
N = 5_000_000  # 40 MB: of less than 32 MB the C library keeps what is freed
a = np.linspace(0.1, 1.0, N)
MB = 1 << 20
"""

WORK = {
    "eager operations": """
x = tg.tensor(a, requires_grad=True)
kept = []
def work():
    y = x
    for _ in range(50):
        y = y.sin() * x
        kept.append(y)
for room in (20, 50, 175, 500):
    assert limited(room * MB, work)
    kept.clear()
    right()
y = x
for _ in range(3):
    y = y.sin() * x
y.sum().backward()
assert np.all(np.isfinite(x.grad.numpy()))
""",
    "a sweep": """
def loss(x):
    y = x
    for _ in range(6):
        y = y.sin() * x
    return y.sum()
wanted = tg.grad(loss)(a)
x = tg.tensor(a, requires_grad=True)
failed = 0
for room in (2, 12, 42, 50, 100):
    total = loss(x)
    failed += limited(room * MB, lambda: tg.autograd.grad(total, x, retain_graph=True))
    found, = tg.autograd.grad(total, x)
    assert np.allclose(found.numpy(), wanted), room
    right()
assert failed >= 2
""",
    "in place": """
failed = 0
def work():
    z.mul_(tg.tensor(a[::-1])).exp_().pow_(3.0)
# Once without a limit: its loops are compiled then, and an import that runs out of memory leaves
# CPython with a SystemError. What compiling does without memory is tried below.
z = tg.tensor(a, requires_grad=True) * 1.0
work()
for room in (2, 25, 42):
    z = tg.tensor(a, requires_grad=True) * 1.0
    failed += limited(room * MB, work)
    right()
assert failed >= 1
""",
    "transforms": """
f = lambda x: np.sum(np.cumsum(np.sin(x)) * x)
wanted = tg.grad(f)(a)
failed = 0
transforms = (tg.grad(f), lambda a: tg.jvp(f, (a,), (a,)), lambda a: tg.hvp(f)(a, a),
              lambda a: tg.vmap(np.sin)(a.reshape(2, -1)))
for g in transforms:
    g(a)  # once without a limit, for the same reason as above
for room in (2, 42, 100):
    for g in transforms:
        failed += limited(room * MB, lambda: g(a))
    right()
    assert np.allclose(tg.grad(f)(a), wanted)
assert failed >= 6, failed
""",
    "compiling": """
def f(x, k):
    for i in range(30):
        x = np.sin(x) * (0.1 + 0.01 * (k + i)) + x
    return np.sum(x)
x = np.linspace(0.0, 1.0, 7)
failed = 0
for k, room in enumerate((0, 1, 2, 8, 30)):
    g = tg.jit(lambda x: tg.grad(f)(x, k))
    failed += limited(room * MB, lambda: g(x))
    assert np.allclose(g(x), tg.grad(f)(x, k))
right()
assert failed >= 1, failed
""",
    "calls of what is compiled": """
g = tg.jit(lambda x: tg.grad(lambda x: np.sum(np.cumsum(np.sin(x)) * x))(x))
wanted = g(a)
kept = []
assert limited(10 * MB, lambda: kept.extend(g(a) for _ in range(20)))
kept.clear()
assert np.allclose(g(a), wanted)
right()
""",
    "the cache": """
from tapegrad.kernels import disk_cache as cache
code = bytes(48 * MB)
cache.write("0" * 64, code)
kept = []
assert limited(8 * MB, lambda: kept.extend(cache.read("0" * 64) for _ in range(20)))
kept.clear()
assert cache.read("0" * 64) == code
right()
""",
}


@pytest.mark.parametrize("name", WORK)
def test_work_that_runs_out_of_memory(name, tmp_path, monkeypatch):
    if name == "the cache":
        monkeypatch.setenv("TAPEGRAD_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TAPEGRAD_NUM_THREADS", "1")
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    words = [sys.executable, "-W", "ignore", "-c", SETUP + WORK[name]]
    done = subprocess.run(words, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, (done.returncode, done.stderr[-3000:])

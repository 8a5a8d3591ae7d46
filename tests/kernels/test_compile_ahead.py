"""Compiling in another process, and what is said of compiling in this one."""

import contextlib
import os
import subprocess
import sys
import time

import numpy as np
import pytest

from tapegrad import __main__ as command
from tapegrad.base.compile_stages import NotCompiled
from tapegrad.compiler.codegen import vector_blocks
from tapegrad.diagnostics import ahead_of_time
from tapegrad.kernels import build, compile_ahead, disk_cache

pytestmark = pytest.mark.tapegrad_only("how kernels are compiled")

SOURCE = "def {name}(a, b):\n    return {number} * a + b\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty cache, which another process may fill."""
    monkeypatch.setenv("TAPEGRAD_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("TAPEGRAD_CACHE", raising=False)
    monkeypatch.delenv("TAPEGRAD_BACKGROUND", raising=False)
    monkeypatch.setattr(compile_ahead, "_waiting", {})
    monkeypatch.setattr(compile_ahead, "_given", {})
    monkeypatch.setattr(build, "_next_look", {})
    monkeypatch.setattr(compile_ahead, "_processes", [None, None])
    return tmp_path / "cache"


class Process:
    """A process that ends when a test says so."""

    def __init__(self, requests):
        self.requests = requests
        self.returncode = None

    def poll(self):
        return self.returncode


@pytest.fixture
def started(monkeypatch):
    processes = []

    def start(requests, number):
        assert compile_ahead._processes[number] in [None, *processes]
        processes.append(Process(requests))
        return processes[-1]

    monkeypatch.setattr(compile_ahead, "_start", start)
    return processes


def test_each_function_is_asked_for_once_and_two_processes_run_at_a_time(started):
    for name in "abccd":
        assert not build.is_compiled(name, "source", 2, asking=True)
    assert [p.requests for p in started] == [[(name, "source", 2)] for name in "ab"]
    started[0].returncode = 1  # it has failed
    for name in "aacd":
        assert not build.is_compiled(name, "source", 2, asking=True)
    assert [p.requests for p in started[2:]] == [[("c", "source", 2), ("d", "source", 2)]]
    assert compile_ahead._processes == [started[2], started[1]]
    started[1].returncode = 0
    compile_ahead.ask("a", "source", 2)
    assert len(started) == 3
    assert not build.is_compiled("e", "source", 2)
    assert len(started) == 3


def test_who_can_do_without_is_told_so_while_another_process_compiles(started, monkeypatch):
    monkeypatch.setattr(build, "_LOOKS", 0.0)
    monkeypatch.setattr(compile_ahead, "_processes", [None])
    source = SOURCE.format(name="a", number=3)
    for _ in range(2):
        with pytest.raises(NotCompiled, match="a"):
            build.load_or_ask("a", source, 2)
    with pytest.raises(NotCompiled):  # it waits for the process that is at work
        build.load_or_ask("b", "source", 2)
    assert [p.requests for p in started] == [[("a", source, 2)]]
    started[0].returncode = 1  # it has failed: nobody else will do it
    assert build.ctypes.CFUNCTYPE(*[build.ctypes.c_int64] * 3)(build.load_or_ask("a", source, 2))(
        10, 5
    ) == 35  # fmt: skip
    with pytest.raises(NotCompiled):
        build.load_or_ask("b", "source", 2)
    assert [p.requests for p in started] == [[("a", source, 2)], [("b", "source", 2)]]


def test_where_no_process_can_compile_it_is_waited_for(started, monkeypatch):
    switched_off(monkeypatch)
    source = SOURCE.format(name="a", number=3)
    assert build.load_or_ask("a", source, 2) > 0
    assert started == []


def test_a_first_gradient_waits_for_no_compiler():
    """On a machine that has compiled nothing; the two kinds of sweep agree."""
    code = (
        "import sys, numpy as np, tapegrad as tg\n"
        "from tapegrad.kernels import compile_ahead as ahead\n"
        "made = [np.linspace(-1, 1, n * n).reshape(n, n) for n in (4, 200)]\n"
        "w = [tg.tensor(x, requires_grad=True) for x in made]\n"
        "def step():\n"
        "    loss = sum((tg.tanh(x @ x).softmax(1).cumsum(0) * x).sum() for x in w)\n"
        "    return loss, *tg.autograd.grad(loss, w)\n"
        "first = step()\n"
        "working = [p for p in ahead._processes if p is not None]\n"
        "print('numba' in sys.modules, len(working))\n"
        "for p in working: p.kill(); p.wait()\n"  # so this one compiles, or waits for it
        "import os; os.environ['TAPEGRAD_BACKGROUND'] = '0'\n"
        "from tapegrad.kernels import build; build._next_look.clear()\n"
        "print(all(np.allclose(a, b, rtol=1e-12) for a, b in zip(first, step())))\n"
        "print('numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", str(len(compile_ahead._processes)), "True", "True"]


def switched_off(monkeypatch):
    monkeypatch.setenv("TAPEGRAD_BACKGROUND", "0")


def without_a_cache(monkeypatch):
    monkeypatch.setenv("TAPEGRAD_CACHE", "0")


def read_only(monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)


def packed(monkeypatch):
    monkeypatch.setattr(sys, "frozen", True, raising=False)


def called(name):
    return lambda monkeypatch: monkeypatch.setattr(sys, "executable", name)


@pytest.mark.parametrize(
    "where",
    [
        switched_off, without_a_cache, read_only, packed, called(None), called(""),
        called("/usr/bin/blender"),
    ],
)  # fmt: skip
def test_where_no_process_can_compile_none_is_started(where, monkeypatch, started):
    where(monkeypatch)
    compile_ahead.ask("a", "source", 2)
    assert started == []


def test_a_process_that_cannot_be_started(monkeypatch, tmp_path):
    missing = tmp_path / "python"
    monkeypatch.setattr(sys, "executable", str(missing))
    compile_ahead.ask("a", "source", 2)
    assert compile_ahead._processes[0] is None
    missing.write_text("#!/bin/sh\nexit 1\n")
    missing.chmod(0o700)
    compile_ahead.ask("b", "source", 2)
    assert compile_ahead._processes[0].wait(60) == 1
    assert not build.is_compiled("b", "source", 2, asking=True)


def until(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_another_process_compiles_and_waits_for_its_like(folder, monkeypatch):
    fcntl = pytest.importorskip("fcntl")
    monkeypatch.setattr(compile_ahead, "_processes", [None])
    sources = {name: SOURCE.format(name=name, number=k) for k, name in enumerate("pq", 3)}
    folder.mkdir()
    with open(folder / "compiling-0.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert not build.is_compiled("p", sources["p"], 2, asking=True)
        assert not build.is_compiled("q", sources["q"], 2, asking=True)
        with pytest.raises(subprocess.TimeoutExpired):
            compile_ahead._processes[0].wait(1.0)
        assert not list(folder.glob("*.o"))
    for name, expected in (("p", 35), ("q", 45)):
        until(lambda name=name: build.is_compiled(name, sources[name], 2, asking=True))
        address = build.load(name, sources[name], 2)
        function = build.ctypes.CFUNCTYPE(*[build.ctypes.c_int64] * 3)(address)
        assert function(10, 5) == expected
    assert compile_ahead._processes[0].wait(60) == 0


def test_a_process_that_goes_on_is_no_news_at_the_end():
    code = (
        "from tapegrad.kernels import compile_ahead as ahead\n"
        f"ahead.ask('p', {SOURCE.format(name='p', number=7)!r}, 2); print(ahead._processes[0].pid)"
    )
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", code], capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert done.stdout.strip().isdigit()
    assert done.stderr == ""
    until(lambda: build.is_compiled("p", SOURCE.format(name="p", number=7), 2))


# -- what is said ----------------------------------------------------------------------------------


def test_a_pause_is_announced_while_it_lasts(capsys, monkeypatch, folder):
    monkeypatch.setattr(build, "_NOTICE_AFTER", 0.05)
    monkeypatch.setattr(build, "_BURST_GAP", 0.2)
    monkeypatch.setattr(build, "_burst_end", 0.0)
    with build._announced():
        pass
    assert capsys.readouterr().err == ""
    for _ in range(2):  # another one, after a while, is announced again
        with build._announced():
            until(lambda: build._announced_burst, 10)
            said = capsys.readouterr().err
            assert said.startswith("tapegrad: compiling for this machine, once")
            assert str(folder) in said
        with build._announced():  # in a row with the last
            time.sleep(0.1)
        assert capsys.readouterr().err == ""
        time.sleep(0.3)
    monkeypatch.setenv("TAPEGRAD_CACHE", "0")
    with build._announced():
        time.sleep(0.2)
    assert "in every process: no code is kept on disk" in capsys.readouterr().err


def test_short_pauses_in_a_row_count_as_one(capsys, monkeypatch):
    monkeypatch.setattr(build, "_NOTICE_AFTER", 0.15)
    monkeypatch.setattr(build, "_burst_end", 0.0)
    for _ in range(3):
        with build._announced():
            time.sleep(0.08)
    assert capsys.readouterr().err.count("tapegrad: compiling") == 1


def test_the_notice_is_kept_back(capsys, monkeypatch):
    monkeypatch.setenv("TAPEGRAD_QUIET", "1")
    monkeypatch.setattr(build, "_NOTICE_AFTER", 0.01)
    monkeypatch.setattr(build, "_burst_end", 0.0)
    with build._announced():
        time.sleep(0.05)
    assert capsys.readouterr().err == ""


# -- the command -----------------------------------------------------------------------------------


def test_the_command_says_what_it_takes(capsys, monkeypatch):
    assert command.main(["all"]) == command.main(["compile", "all"]) == 2
    assert "usage: python -m tapegrad [check | compile]" in capsys.readouterr().err
    monkeypatch.setenv("TAPEGRAD_CACHE", "0")
    assert command.main(["compile"]) == 1
    assert "nothing is kept on disk" in capsys.readouterr().err


def test_the_command_compiles_everything(capsys, monkeypatch, folder):
    names = [name for name, _ in ahead_of_time.everything()]
    assert {"the sweep", "softmax", "the gradient of mul"} < set(names)
    assert names.count("the gradient of mul") == 6
    assert names.count("the gradient of lerp") == 6
    done = []
    tasks = [(name, lambda name=name: done.append(name)) for name in names]
    monkeypatch.setattr(ahead_of_time, "tasks", lambda: tasks)
    monkeypatch.setattr(command, "processors", lambda: 1)
    for name in ("TAPEGRAD_BACKGROUND", "TAPEGRAD_QUIET"):  # which the command sets
        monkeypatch.setenv(name, "0")
    assert command.main(["compile"]) == 0
    assert done == names
    assert f"compiled into {folder}" in capsys.readouterr().err


def test_processes_share_what_is_to_be_compiled(folder, monkeypatch):
    monkeypatch.setenv("TAPEGRAD_BACKGROUND", "0")
    names = [name for name, _ in ahead_of_time.everything()]
    numbers = [names.index("the gradient of mul"), names.index("the gradient of div")]
    # As `python -m tapegrad` would, whose main module other processes cannot import from.
    program = f"""
from tapegrad.diagnostics import ahead_of_time
if __name__ == "__main__":
    assert sorted(ahead_of_time.compiled({numbers}, 2)) == {numbers}
"""
    subprocess.run([sys.executable, "-c", program], check=True)
    assert len(list(folder.glob("*.o"))) == 2


def test_the_command_does_not_warn():
    with np.errstate(all="raise"):  # of which a warning would be the mildest form
        assert [name for name, _ in ahead_of_time.called_by_programs()]


def test_what_programs_call_is_compiled_with_it():
    for _, task in ahead_of_time.called_by_programs():
        task()
    found = vector_blocks.operation.cache_info().misses
    double = np.dtype("f8")
    assert vector_blocks.operation("mul", (double, double), double).address
    assert vector_blocks.operation.cache_info().misses == found


# -- a long run on a fresh machine -----------------------------------------------------------------

TRAINING = """
import sys, time
import tapegrad as tg
from tapegrad.dispatch.native_calls import native_calls
w = tg.tensor([[0.5, -0.25], [0.125, 1.0]], requires_grad=True)
x = tg.tensor([[1.0, 2.0], [3.0, 4.0]])
opened, last = None, time.monotonic() + 240
pauses, step = [], 0
while step < 20_000 or (time.monotonic() < last and not native_calls.planned):
    start = time.perf_counter()
    loss = (tg.softmax(x @ w, 1).clamp(0.1, 0.9) ** 2).mean()
    loss.backward()
    with tg.no_grad():
        w -= 0.01 * w.grad
    w.grad = None
    pause = time.perf_counter() - start
    if pause > 1.0:
        pauses.append((step, pause))
    step += 1
    if step > 20_000:
        time.sleep(0.002)  # leave the core to those that compile
print(pauses, native_calls.planned is not None)
"""


@pytest.mark.slow
def test_no_step_of_a_training_loop_waits_for_a_compiler(folder):
    done = subprocess.run(
        [sys.executable, "-c", TRAINING], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[] True"
    assert done.stderr == ""  # where this process compiles, it says so
    assert disk_cache.folder() == folder
    with contextlib.suppress(FileNotFoundError):  # of a process that still writes there
        assert list(folder.glob("*.o"))

"""Memory that runs out while a program is compiled: an error, and the next call works."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest

import tapegrad as tg
from tapegrad.compiler.front import jitted
from tapegrad.compiler.lower import lower
from tapegrad.compiler.runtime import link, tiers
from tapegrad.kernels import build, disk_cache


def none_left(*args: Any, **kwargs: Any) -> Any:
    raise MemoryError


def no_mapping(*args: Any) -> Any:
    raise OSError(12, "Cannot allocate memory")


PLACES: dict[str, tuple[Any, str, Any]] = {
    "passes": (tiers, "Module", none_left),
    "text": (lower.Module, "nest", none_left),
    "reserve": (build.mmap, "mmap", no_mapping),
    "parsing": (llvm, "parse_assembly", none_left),
    "optimising": (build, "_settle", none_left),
    "writing to the cache": (disk_cache.os, "fdopen", none_left),
    "loading": (llvm, "create_mcjit_compiler", none_left),
    "linking": (link, "_offer_symbols", none_left),
}


def f(x: Any) -> Any:
    return np.sum(x**3)


@pytest.mark.parametrize("place", PLACES)
def test_a_program_that_could_not_be_compiled(
    place: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TAPEGRAD_CACHE_DIR", str(tmp_path))
    jitted = tg.jit(tg.grad(f))
    x, y = np.linspace(0.0, 1.0, 5), np.linspace(0.0, 1.0, 7)
    np.testing.assert_allclose(jitted(x), 3 * x**2)
    kept = sorted(tmp_path.iterdir())
    with monkeypatch.context() as patch:
        patch.setattr(*PLACES[place])
        for _ in range(2):
            with pytest.raises(MemoryError, match=r"`jit`: there is not enough memory to compile"):
                jitted(y)
        np.testing.assert_allclose(jitted(x), 3 * x**2)
    assert jitted.cache_info().traces == 1
    new = set(tmp_path.iterdir()).difference(kept)
    assert all(disk_cache.read(path.stem) is not None for path in new)
    np.testing.assert_allclose(jitted(y), 3 * y**2)
    assert jitted.cache_info().traces == 2


def test_a_door_that_could_not_be_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    f = tg.jit(lambda x: x * 2.0)
    with monkeypatch.context() as patch:
        patch.setattr(jitted, "fastcall", none_left)
        with pytest.raises(MemoryError):
            f(np.ones(3))
    np.testing.assert_array_equal(f(np.ones(3)), 2.0 * np.ones(3))
    assert f.cache_info() == (1, 1, 0)


def test_a_derivative_that_could_not_be_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    f = tg.jit(lambda x: (x * x).sum())
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    y = f(x)
    (x * 2.0).sum().backward()  # kernels of the sweep are there
    x.grad = None
    with monkeypatch.context() as patch:
        patch.setattr(build.mmap, "mmap", no_mapping)
        with pytest.raises(MemoryError, match="there is not enough memory"):
            y.backward(retain_graph=True)
    assert x.grad is None
    y.backward()
    assert x.grad.tolist() == [2.0, 4.0]


LIMITED = """
    import resource
    import numpy as np
    import tapegrad as tg

    def f(x):
        for k, even in enumerate(np.random.default_rng(0).random(100) < 0.5):
            x = (np.sin(x) if even else np.cos(x)) * 1.01 + np.exp(-x) + k  # no loop for long
        return np.sum(x)

    slope = tg.jit(tg.grad(f))
    tg.jit(tg.grad(lambda x: np.sum(np.exp(x) * np.sin(x))))(np.ones(3))
    [size] = [x for x in open("/proc/self/status") if x.startswith("VmSize")]
    limit = int(size.split()[1]) * 1024 + (int({room}) << 20)
    unlimited = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (limit, unlimited[1]))
    x = np.linspace(0.0, 1.0, 50)
    try:
        slope(x)
    except MemoryError as error:
        print(error)
    resource.setrlimit(resource.RLIMIT_AS, unlimited)
    assert np.isfinite(slope(x)).all()
    print("done")
"""


@pytest.mark.parametrize("room", [20, 50])
def test_a_process_with_a_limit_lives_on(room: int) -> None:
    code = textwrap.dedent(LIMITED).replace("{room}", str(room))
    environment = os.environ | {"TAPEGRAD_CACHE": "0", "TAPEGRAD_TIERED": "0"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    told, end = done.stdout.splitlines()
    assert told.startswith("`jit`: there is not enough memory to compile a program of")
    assert "compiled code may take" in told
    assert end == "done"

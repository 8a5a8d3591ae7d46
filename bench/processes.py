"""What needs processes of its own: import, first gradient, peak memory."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import perf_counter

from bench import child
from bench.libraries import ADAPTERS
from bench.report import Row, ratios_to
from bench.timing import Figure

ROOT = Path(__file__).parents[1]
IMPORT_SLACK = 0.05
COLD_LIMIT = 1.2
WARM_LIMIT = 0.25
# What `import tapegrad` must leave alone.
LATE = ("numba", "llvmlite", "scipy")

IMPORT = """
import sys, time
start = time.perf_counter()
import {name}
print(time.perf_counter() - start)
print(*({late} & sys.modules.keys()))
"""


def imports(libraries: list[str], quick: bool) -> Iterator[Row]:
    """Time `import` in fresh interpreters, next to NumPy's."""
    figures: dict[str, Figure] = {}
    names = ["numpy", *libraries]
    samples: dict[str, list[float]] = {name: [] for name in names}
    loaded = ""
    for i in range(2 if quick else 8):
        for name in names:
            code = IMPORT.format(name=name, late=set(LATE))
            seconds, late = run("-c", code).split("\n")[:2]
            if i:  # the first round fills the caches
                samples[name].append(float(seconds))
            if name == "tapegrad":
                loaded = late
    figures = {name: Figure.of(s) for name, s in samples.items()}
    met = None
    if "tapegrad" in figures:
        within = figures["tapegrad"].median <= figures["numpy"].median + IMPORT_SLACK
        met = within and not loaded
    reach = f"≤ NumPy's + {IMPORT_SLACK} s, without {', '.join(LATE)}"
    note = f"loads {loaded}" if loaded else ""
    ratios = ratios_to(figures, "torch")
    yield Row("import", "import", 1, "s", figures, ratios, reach, met, note)


def starts(libraries: list[str], quick: bool) -> Iterator[Row]:
    """Time from the start of a process to the first gradient of the MLP step."""
    rounds = 1 if quick else 5
    libraries = [name for name in libraries if name in ADAPTERS]
    cold: dict[str, list[float]] = {name: [] for name in libraries}
    warm: dict[str, list[float]] = {name: [] for name in libraries}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory(prefix="tapegrad-bench-") as cache:
            for samples in (cold, warm):
                for name in libraries:
                    samples[name].append(_first_gradient(name, cache))
                    if name == "tapegrad" and samples is cold:
                        _compile_the_rest(cache)
    for name, samples, limit in (("cold", cold, COLD_LIMIT), ("warm", warm, WARM_LIMIT)):
        figures = {library: Figure.of(s) for library, s in samples.items()}
        own = figures.get("tapegrad")
        met = None if own is None else own.median <= limit
        yield Row(
            "process start to first gradient", f"MLP step, {name} kernel cache", 1, "s",
            figures, ratios_to(figures, "torch"), f"≤ {limit:g} s", met,
        )  # fmt: skip


def fresh(libraries: list[str], quick: bool) -> Iterator[Row]:
    """Time eager steps in the first second of a process on a machine that has compiled nothing.

    And how long that lasts, from the start of the process on.
    """
    steps: dict[str, list[float]] = {name: [] for name in libraries if name in ADAPTERS}
    waits: list[float] = []
    for _ in range(1 if quick else 3):
        for name in steps:
            with tempfile.TemporaryDirectory(prefix="tapegrad-bench-") as cache:
                first, *later = _lines("fresh", name, cache)
                waits += [seconds for _, seconds in later]
                _wait_for_compilers(cache)
            steps[name].append(float(first[0]))
    figures = {name: Figure.of(s, 1e6) for name, s in steps.items()}
    group = "on a machine that has compiled nothing"
    yield Row(group, "MLP step, at first", 1, "µs", figures, ratios_to(figures, "torch"), "", None)
    waited = {"tapegrad": Figure.of(waits)} if waits else {}
    yield Row("until eager code is compiled", "MLP steps", 1, "s", waited, {}, "", None)


def memory(libraries: list[str], quick: bool) -> Iterator[Row]:
    """Measure by how much one step of a deep network raises a process's peak memory."""
    layers, width = (8, 16) if quick else (child.LAYERS, child.WIDTH)
    samples: dict[str, list[float]] = {name: [] for name in libraries}
    for _ in range(1 if quick else 3):
        for name in libraries:
            out = run("-m", "bench.child", "memory", name, str(layers), str(width))
            samples[name].append(float(out.split()[-1]))
    figures = {name: Figure.of(s, 1e-6) for name, s in samples.items()}
    met = None
    if {"tapegrad", "torch"} <= figures.keys():
        met = figures["tapegrad"].median <= figures["torch"].median
    name = f"MLP step, {layers} layers, batch {width}, width {width}"
    ratios = {} if quick else ratios_to(figures, "torch")
    yield Row("peak memory", name, 1, "MB", figures, ratios, "≤ PyTorch's", met)


GROUPS: dict[str, Callable[[list[str], bool], Iterator[Row]]] = {
    "memory": memory,
    "import": imports,
}


def _environment(**more: str) -> dict[str, str]:
    """Return an environment in which bytecode is kept, as pip keeps it for what it installs.

    Else a checkout would be compiled from source in every process, next to peers that are not.
    """
    unwanted = "PYTHONDONTWRITEBYTECODE"
    return {name: value for name, value in os.environ.items() if name != unwanted} | more


def run(*arguments: str, timeout: float | None = None, **more: str) -> str:
    """Run a Python of its own, with `more` in its environment, and return what it prints."""
    command, environment = [sys.executable, *arguments], _environment(**more)
    done = subprocess.run(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True,
        timeout=timeout,
    )  # fmt: skip
    return done.stdout


def _compile_the_rest(cache: str) -> None:
    """Compile what a first gradient has asked for, and wait for the processes that do so too."""
    _first_gradient("tapegrad", cache, TAPEGRAD_BACKGROUND="0")
    _wait_for_compilers(cache)


def _wait_for_compilers(cache: str) -> None:
    from fcntl import LOCK_EX, flock

    for path in Path(cache).glob("compiling-*.lock"):
        with open(path, "w") as lock:
            flock(lock, LOCK_EX)


def _first_gradient(name: str, cache: str, **more: str) -> float:
    return _lines("start", name, cache, **more)[0][1]


def _lines(command: str, name: str, cache: str, **more: str) -> list[tuple[str, float]]:
    """What a measurement prints in a process of its own, each line with when it came."""
    environment = _environment(**{"TAPEGRAD_CACHE_DIR": cache, "TAPEGRAD_BACKGROUND": "1"} | more)
    called = [sys.executable, "-m", "bench.child", command, name]
    popen = partial(subprocess.Popen, cwd=ROOT, env=environment, stdout=subprocess.PIPE)
    start = perf_counter()
    with popen(called) as process:
        printed = [(line.decode(), perf_counter() - start) for line in process.stdout]
    if process.returncode or not printed:
        raise RuntimeError(f"{' '.join(called)} failed")
    return printed

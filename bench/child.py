"""What is measured in a process of its own: peak memory, the first gradient, the first minute."""

from __future__ import annotations

import contextlib
import re
import resource
import sys
from pathlib import Path
from statistics import median
from time import perf_counter

from bench.libraries import Library, load
from bench.problems import mlp

WIDTH = 256
LAYERS = 200
PATIENCE = 300.0


def peak_bytes() -> int:
    """Return the greatest resident size so far, or since `reset_peak` where Linux has it."""
    with contextlib.suppress(OSError):
        found = re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())
        if found:
            return int(found[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def reset_peak() -> None:
    """Forget earlier peaks (of imports, of compiling), so that the baseline is what is in use."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def memory(library: Library, layers: int, width: int) -> int:
    """Return by how many bytes one step of a deep network raises the peak."""
    # What is loaded or compiled once, for any size, is no part of a step.
    library.prepare(mlp((2, 2, 2), batch=2)).step()
    run = library.prepare(mlp((width,) * (layers + 1), batch=width))
    reset_peak()
    before = peak_bytes()
    run.step()
    return peak_bytes() - before


def first_steps(library: Library) -> float:
    """Return the median time of a step in the second after the first one."""
    run, samples = library.prepare(mlp()), list[float]()
    run.step()
    end = perf_counter() + 1.0
    while (start := perf_counter()) < end:
        run.step()
        samples.append(perf_counter() - start)
    return median(samples)


def until_compiled(library: Library) -> None:
    """Take steps until native code does them."""
    from tapegrad.dispatch.native_calls import native_calls

    run, end = library.prepare(mlp()), perf_counter() + PATIENCE
    while native_calls.sweep is None:
        if perf_counter() > end:
            raise SystemExit(f"native code is not there after {PATIENCE} s")
        run.step()


def main(command: str, name: str, *sizes: str) -> None:
    """Run one measurement and print its result on the last line."""
    library = load(name)
    if library is None:
        raise SystemExit(f"{name} is not installed")
    library.set_threads(1)
    if command == "memory":
        print(memory(library, *map(int, sizes)))
    elif command == "fresh":
        print(first_steps(library), flush=True)
        if name == "tapegrad":
            until_compiled(library)
            print("compiled", flush=True)
    else:
        library.prepare(mlp()).step()
        print("first gradient", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""``python -m tapegrad``: what is installed and whether it works; ``compile``: compile it ahead.

The code goes to the disk cache: once per machine, for all programs.
"""

from __future__ import annotations

import gc
import os
import sys
import time

from tapegrad.diagnostics import ahead_of_time, self_check
from tapegrad.diagnostics.environment import environment
from tapegrad.kernels import build, compile_ahead, disk_cache
from tapegrad.kernels.codegen import kernel_table
from tapegrad.native import install
from tapegrad.parallel.thread_pool import processors

MOST = 4  # processes that compile: each takes some 400 MB
USAGE = """usage: python -m tapegrad [check | compile]

Without an argument: print versions, processor, kernel cache and threads, and compare derivatives
with known values, for ten seconds at most.  `check` does the second alone, without a limit.

`compile` compiles for this machine what gradients, operations on small arrays and operations along
dimensions are computed with, and what the programs of `tapegrad.jit` call, into the folder of
TAPEGRAD_CACHE_DIR (or the user's cache).  Later, only what is rare is compiled, and programs."""


def compile_all() -> int:
    """Compile on all processors, with a line that says how far that is."""
    # It is waited for, and each process would say so.
    os.environ["TAPEGRAD_BACKGROUND"], os.environ["TAPEGRAD_QUIET"] = "0", "1"
    where = disk_cache.folder()
    if where is None:
        print("tapegrad: nothing is kept on disk (TAPEGRAD_CACHE=0)", file=sys.stderr)
        return 1
    started, tasks = time.perf_counter(), ahead_of_time.tasks()
    shown = sys.stderr.isatty()
    for done, number in enumerate(
        ahead_of_time.compiled(range(len(tasks)), min(processors(), MOST))
    ):
        if shown:
            name = tasks[number][0]
            print(f"\r\x1b[K[{done + 1}/{len(tasks)}] {name}", end="", file=sys.stderr, flush=True)
    seconds = time.perf_counter() - started
    before = "\r\x1b[K" if shown else ""
    print(f"{before}tapegrad: compiled into {where} in {seconds:.0f} s", file=sys.stderr)
    return 0


def compile_requested() -> int:
    """Compile what another process asked for."""
    requests, modules, number = compile_ahead.read_requests()
    gc.disable()  # a tenth of the time; the process ends soon
    with compile_ahead.alone(number):
        for text, level, ready in modules:
            build.assembled(text, level, ready)
        for name, source, arity in requests:
            kernel_table.load(name, source, arity)
        install.install(compiling=False)  # its ways in are compiled, too
    return 0


def main(arguments: list[str]) -> int:
    """Do what the command line says."""
    match arguments:
        case []:
            print(*environment(), sep="\n", flush=True)
            return self_check.check_in_time()
        case ["check"]:
            return self_check.check()
        case ["compile"]:
            return compile_all()
        case ["compile", "--asked"]:
            return compile_requested()
        case ["-h" | "--help"]:
            print(USAGE)
            return 0
    print(f"tapegrad: there is no command {' '.join(arguments)!r}\n{USAGE}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

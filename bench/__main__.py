"""The command: ``python -m bench eager``.

The process that is called only plans and prints. What is timed side by side runs in one worker
process per number of threads, whose environment pins every thread pool before anything is
imported.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench import report
from bench.libraries import ADAPTERS, load
from bench.processes import GROUPS as PROCESS_GROUPS
from bench.processes import ROOT
from bench.report import Row

WORKER_GROUPS = ("small", "large")
POOLS = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS", "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS", "NPROC",
)  # fmt: skip


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser("python -m bench", description=__doc__.split("\n")[0])
    parser.add_argument("suite", choices=["eager"])
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument("--from", type=Path, metavar="FILE", dest="saved", help="measure nothing")
    parser.add_argument("--readme", action="store_true", help="renew the README's tables")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: does it run?")
    parser.add_argument(
        "--threads", type=int, default=1, metavar="N", help="time the large operations at N too"
    )
    parser.add_argument(
        "--libraries", type=lambda s: s.split(","), default=list(ADAPTERS), metavar="A,B"
    )
    parser.add_argument(
        "--groups",
        type=lambda s: s.split(","),
        default=[*WORKER_GROUPS, *PROCESS_GROUPS],
        metavar="A,B",
        help=f"of {', '.join([*WORKER_GROUPS, *PROCESS_GROUPS])}",
    )
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def main() -> None:
    """Measure, or read what was measured, and show it."""
    options = parse()
    if options.worker:
        work(options)
        return
    if options.saved:
        meta, rows = report.open_saved(options.saved)
    else:
        options.libraries = [name for name in options.libraries if installed(name)]
        meta, rows = about(options), list(measure(options))
    print(report.printed(meta, rows))
    if options.json:
        report.save(options.json, meta, rows)
    if options.readme:
        report.write_readme(meta, rows)


def measure(options: argparse.Namespace) -> Iterator[Row]:
    """Yield the rows of all groups."""
    timed = [group for group in WORKER_GROUPS if group in options.groups]
    if timed:
        yield from in_worker(options, timed, 1)
    if "large" in timed and options.threads > 1:
        yield from in_worker(options, ["large"], options.threads)
    os.environ |= pinned(1)
    for group, rows in PROCESS_GROUPS.items():
        if group in options.groups:
            say(f"{group} …")
            yield from rows(options.libraries, options.quick)


def pinned(threads: int) -> dict[str, str]:
    """Return the environment that gives every library's pools this many threads."""
    flags = "--xla_cpu_multi_thread_eigen=false" if threads == 1 else ""
    return {pool: str(threads) for pool in POOLS} | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}


def in_worker(options: argparse.Namespace, groups: list[str], threads: int) -> list[Row]:
    """Time groups in a process with this many threads."""
    with tempfile.TemporaryDirectory(prefix="tapegrad-bench-") as folder:
        out = Path(folder) / "rows.json"
        command = [
            sys.executable, "-m", "bench", options.suite, "--worker", str(out),
            "--threads", str(threads), "--groups", ",".join(groups),
            "--libraries", ",".join(options.libraries), *["--quick"] * options.quick,
        ]  # fmt: skip
        subprocess.run(command, cwd=ROOT, env=os.environ | pinned(threads), check=True)
        return report.open_saved(out)[1]


def work(options: argparse.Namespace) -> None:
    """Be the worker: load the libraries, time the groups, leave the rows in a file."""
    from bench import eager

    libraries = [library for name in options.libraries if (library := load(name))]
    for library in libraries:
        library.set_threads(options.threads)
    rows: list[Row] = []
    for group in options.groups:
        for row in getattr(eager, group)(libraries, options.threads, options.quick):
            say(f"{group}, {options.threads} threads: {row.name} {row.phase}")
            rows.append(row)
    report.save(options.worker, {}, rows)


def about(options: argparse.Namespace) -> dict[str, Any]:
    """Say what is measured where."""
    names = ["numpy", "numba", "scipy", *options.libraries]
    return {
        "suite": options.suite,
        "quick": options.quick,
        "processor": processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in names},
    }


def version(name: str) -> str:
    """Return a distribution's version; a library on the path need not be installed."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "from source"


def processor() -> str:
    """Return the processor's name, as well as the system tells it."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def installed(name: str) -> bool:
    """Whether a library is there; only a peer may be absent."""
    if name == "tapegrad" or importlib.util.find_spec(name):
        return True
    say(f"{name} is not installed")
    return False


def say(line: str) -> None:
    """Report progress where it does not mix with the tables."""
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()

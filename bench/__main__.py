"""The command: ``python -m bench`` and a suite.

The suites are ``eager``, ``ops`` (all families, beside PyTorch), ``transforms``, ``jit``, ``njit``
(functions that Numba compiles), ``compile`` (until the first result), ``parts`` (of a step, of
operations), and ``scale`` (threads and processes).

The process that is called only plans and prints. What is timed side by side runs in one worker
process per number of threads, whose environment pins every thread pool before anything is
imported.
"""

from __future__ import annotations

import argparse
import importlib
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

from bench import figures, report
from bench.libraries import load
from bench.processes import ROOT
from bench.report import Row

# Each is a module with the groups that it times itself, those that need processes of their own,
# and how it calls each library.
SUITES = ("eager", "ops", "transforms", "parts", "jit", "njit", "compile", "scale")
POOLS = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS", "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS", "NPROC",
)  # fmt: skip


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser("python -m bench", description=__doc__.split("\n")[0])
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument("--from", type=Path, metavar="FILE", dest="saved", help="measure nothing")
    parser.add_argument("--docs", action="store_true", help="renew docs/benchmarks.md and its plot")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: does it run?")
    parser.add_argument(
        "--threads", type=int, default=1, metavar="N", help="time the large operations at N too"
    )
    parser.add_argument("--libraries", type=names, metavar="A,B")
    parser.add_argument("--groups", type=names, metavar="A,B", help="only these tables")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    suite = suite_of(options)
    for given, known in (("libraries", suite.ADAPTERS), ("groups", groups_of(suite))):
        chosen = getattr(options, given)
        if chosen is None:
            setattr(options, given, list(known))
        elif unknown := [name for name in chosen if name not in known]:
            parser.error(f"{options.suite} has the {given} {', '.join(known)}, not {unknown[0]}")
    return options


def names(given: str) -> list[str]:
    """Read several names, with commas between them."""
    return given.split(",")


def suite_of(options: argparse.Namespace) -> Any:
    """Return the suite's module."""
    return importlib.import_module(f"bench.{options.suite}")


def groups_of(suite: Any) -> list[str]:
    """Return all groups of a suite."""
    return [*suite.GROUPS, *suite.PROCESS_GROUPS]


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
    suite = suite_of(options)
    summary = suite.summary(rows) if hasattr(suite, "summary") else ""
    print("\n\n".join(filter(None, [report.printed(meta, rows), summary])))
    if options.json:
        report.save(options.json, meta, rows)
    if options.docs:
        report.document(meta, rows, summary)
        figures.renew(meta, rows)


def measure(options: argparse.Namespace) -> Iterator[Row]:
    """Yield the rows of all groups."""
    suite = suite_of(options)
    if "tapegrad" in options.libraries and not options.quick:
        subprocess.run([sys.executable, "-m", "tapegrad", "compile"], cwd=ROOT, check=True)
    if options.suite not in (
        "jit",
        "compile",
    ):  # or Python would do the work of kernels that are not there yet
        os.environ["TAPEGRAD_BACKGROUND"] = "0"
    timed = [group for group in suite.GROUPS if group in options.groups]
    if timed:
        yield from in_worker(options, timed, 1)
    if "large" in timed and options.threads > 1:
        yield from in_worker(options, ["large"], options.threads)
    os.environ |= pinned(1)
    for group, rows in suite.PROCESS_GROUPS.items():
        if group in options.groups:
            say(f"{group} …")
            yield from rows(options.libraries, options.quick)


def pinned(threads: int) -> dict[str, str]:
    """Return the environment that gives every library's pools this many threads.

    In it tapegrad compiles at once: figures are not those of a first tier.
    """
    flags = "--xla_cpu_multi_thread_eigen=false" if threads == 1 else ""
    others = {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "TAPEGRAD_TIERED": "0"}
    return {pool: str(threads) for pool in POOLS} | others


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
    suite = suite_of(options)
    libraries = [x for name in options.libraries if (x := load(name, suite.ADAPTERS))]
    for library in libraries:
        library.set_threads(options.threads)
    rows: list[Row] = []
    for group in options.groups:
        for row in getattr(suite, group)(libraries, options.threads, options.quick):
            say(f"{group}, {options.threads} threads: {row.name} {row.phase}")
            rows.append(row)
    report.save(options.worker, {}, rows)
    # Python's own end would crash in the thread of a peer's compiler that was not waited for.
    sys.stderr.flush()
    os._exit(0)


def about(options: argparse.Namespace) -> dict[str, Any]:
    """Say what is measured where."""
    packages = dict.fromkeys(["numpy", "numba", "scipy", *options.libraries])
    return {
        "suite": options.suite,
        "quick": options.quick,
        "processor": processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in packages},
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

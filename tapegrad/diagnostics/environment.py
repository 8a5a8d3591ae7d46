"""What a report of a fault should name: versions, processor, kernel cache, threads."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import tapegrad
from tapegrad.kernels import build, disk_cache
from tapegrad.native import install
from tapegrad.parallel.large_elementwise import get_num_threads
from tapegrad.parallel.thread_pool import processors

NEEDED = {"numpy": "NumPy", "numba": "Numba", "llvmlite": "llvmlite", "scipy": "SciPy"}
VECTORS = (
    "sse4",
    "avx",
    "fma",
    "neon",
    "sve",
)  # how the names of features begin that loops profit from


def environment() -> Iterator[str]:
    """The lines of the report."""
    yield f"tapegrad {tapegrad.__version__} in {Path(tapegrad.__file__).parent}"
    python = f"{platform.python_implementation()} {platform.python_version()}"
    yield ", ".join([python, *[f"{title} {_version(name)}" for name, title in NEEDED.items()]])
    yield f"{platform.platform()}, compiling for {_processor()}"
    yield f"kernel cache: {_cache()}"
    yield f"threads: {get_num_threads()}, on {processors()} processors"
    yield f"native operations: {_native()}"


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "(not installed)"


def _processor() -> str:
    try:
        llvm = build.binding()
    except ImportError as error:
        return f"no processor: {error}"
    features = [name for name, there in llvm.get_host_cpu_features().items() if there]
    used = sorted(name for name in features if name.startswith(VECTORS))
    return f"{llvm.get_host_cpu_name()} with {' '.join(used) or 'no vectors'}"


def _cache() -> str:
    where = disk_cache.folder()
    if where is None:
        return "none (TAPEGRAD_CACHE=0, or the folder belongs to another user)"
    sizes = [path.stat().st_size for path in where.glob("*.o")]
    return f"{where}, {len(sizes)} files, {sum(sizes) / 1e6:.1f} MB"


def _native() -> str:
    if not install.possible():
        return "off: TAPEGRAD_NATIVE=0, or not this interpreter and machine"
    if install.install(compiling=False):
        return "compiled"
    return (
        "not compiled yet, so that small operations take some ten times longer: "
        "`python -m tapegrad compile` does it, or a program that runs for a while"
    )

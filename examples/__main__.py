"""Run the examples: `python -m examples`, or some of them: `python -m examples hmc curve_fitting`.

Each runs in a process of its own, asserts what it found, and leaves a picture in `examples/out`.
`python -m examples --notebooks` writes the notebooks anew.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from examples.notebooks import write_notebooks

HERE = Path(__file__).parent
HELPERS = {"__main__", "display", "notebooks"}
NAMES = sorted(path.stem for path in HERE.glob("*.py") if path.stem not in HELPERS)
LEAST, MOST = 100, 4000  # pixels of a picture, each way
SIGNATURE = b"\x89PNG\r\n\x1a\n"
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TAPEGRAD_NUM_THREADS")


def picture_size(path: Path) -> tuple[int, int]:
    """Width and height of a PNG file, which stand behind its signature."""
    head = path.read_bytes()[:24]
    if not head.startswith(SIGNATURE):
        raise ValueError(f"{path.name} is no PNG file")
    return int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")


def picture_fault(name: str) -> str:
    """What is wrong with the picture of an example; empty if nothing is."""
    path = HERE / "out" / f"{name}.png"
    if not path.exists():
        return f"it left no picture examples/out/{path.name}"
    try:
        size = picture_size(path)
    except ValueError as error:
        return str(error)
    fits = all(LEAST <= pixels <= MOST for pixels in size)
    return "" if fits else f"its picture has {size[0]} x {size[1]} pixels"


def run(name: str) -> bool:
    """Run an example, and print how long it took or what went wrong."""
    (HERE / "out" / f"{name}.png").unlink(missing_ok=True)
    path = os.pathsep.join([str(HERE.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, **dict.fromkeys(ONE_THREAD, "1")}
    print(f"== {name}", flush=True)
    start = time.perf_counter()
    done = subprocess.run([sys.executable, HERE / f"{name}.py"], env=environment, check=False)
    fault = f"it ended with status {done.returncode}" if done.returncode else picture_fault(name)
    print(f"== {name}: {fault or 'passed'}, {time.perf_counter() - start:.1f} s\n", flush=True)
    return not fault


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m examples")
    parser.add_argument("names", nargs="*", metavar="name", help=", ".join(NAMES))
    parser.add_argument("--notebooks", action="store_true", help="write the notebooks anew")
    given = parser.parse_args()
    if unknown := set(given.names) - {*NAMES}:
        parser.error(f"there is no example {', '.join(sorted(unknown))}: {', '.join(NAMES)}")
    if given.notebooks:
        write_notebooks()
        return
    failed = [name for name in given.names or NAMES if not run(name)]
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()

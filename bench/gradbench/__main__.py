"""The command: a tool for GradBench's harness, which speaks to it through pipes.

gradbench run --eval "gradbench eval gmm" --tool "python -m bench.gradbench"
"""

from __future__ import annotations

import argparse
import sys

from bench.gradbench.protocol import serve
from bench.libraries import load
from bench.sides import ADAPTERS, Tapegrad

LIBRARIES = ("tapegrad", "numba", "jax", "torch")


def main() -> None:
    """Serve the messages on standard input until it ends."""
    parser = argparse.ArgumentParser("python -m bench.gradbench", description=__doc__)
    parser.add_argument("--library", choices=LIBRARIES, default="tapegrad")
    name = parser.parse_args().library
    side = load(name, ADAPTERS)
    if side is None:
        parser.error(f"{name} is not installed")
    if isinstance(side, Tapegrad) and side.jit is None:
        side = side.eager()
    serve(sys.stdin, sys.stdout, side)


if __name__ == "__main__":
    main()

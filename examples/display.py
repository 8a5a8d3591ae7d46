"""What the examples show: a bar while they work, a picture at the end."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import matplotlib

if "ipykernel" not in sys.modules:
    matplotlib.use("Agg")  # pictures are files: no window opens

from matplotlib.figure import Figure

OUT = Path(__file__).parent / "out"
WIDTH = 40
EVERY = 0.1  # seconds between two writings


def bar(items: Sequence[int], title: str) -> Iterator[int]:
    """The items one by one, with a bar that grows on the terminal."""
    begin = written = time.perf_counter()
    for done, item in enumerate(items, 1):
        yield item
        now = time.perf_counter()
        if sys.stderr.isatty() and (now - written > EVERY or done == len(items)):
            written = now
            part = "#" * (WIDTH * done // len(items))
            end = "\n" if done == len(items) else ""
            sys.stderr.write(f"\r{title} [{part:{WIDTH}}] {now - begin:5.1f} s{end}")
            sys.stderr.flush()


def save(figure: Figure, name: str) -> None:
    """Write a picture to `examples/out`."""
    OUT.mkdir(exist_ok=True)
    path = OUT / f"{name}.png"
    figure.savefig(path, dpi=100, bbox_inches="tight")
    print(f"picture: examples/out/{path.name}")

"""The lists beside the suites: which tests are outside or fail, each with its reason."""

from __future__ import annotations

import fnmatch
from collections.abc import Container, Iterable, Iterator
from pathlib import Path


def entries(path: Path, kinds: Container[str]) -> Iterator[tuple[str, str, str]]:
    """(kind, what, reason) of each line `kind what | reason`; lines with `#` are comments."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        head, _, reason = line.partition(" | ")
        kind, _, what = head.strip().partition(" ")
        if kind not in kinds or not what.strip() or not reason.strip():
            raise ValueError(f"{path}:{number}: expected `kind what | reason`, got {line!r}")
        yield kind, what.strip(), reason.strip()


def listed(test: str, names: Iterable[str]) -> str | None:
    """The entry that a test falls under: its own, or one with wildcards."""
    if test in names:
        return test
    return next((name for name in names if fnmatch.fnmatchcase(test, name)), None)

"""Rows of figures, as Markdown tables, as JSON, and as the tables of docs/benchmarks.md."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from bench.timing import Figure

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
# The peers that a table states ratios to, by the name of the library.
PEERS = {
    "torch": "PyTorch", "torch.compile": "torch.compile", "autograd": "autograd", "jax": "JAX",
    "numba": "Numba", "casadi": "CasADi", "scipy": "NumPy, SciPy",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table.

    Parameters
    ----------
    group, name
        The table, and what was measured.
    figures
        Per library; a library that has no such thing is absent.
    ratios
        Per peer, its median by tapegrad's, so above 1 tapegrad is ahead; empty without tapegrad.
    reach
        What is to be reached, in words.
    met
        Whether it is; None where nothing is to be reached or the peer is absent.
    family, phase
        In a group of many operations: what the documents sum up by.
    """

    group: str
    name: str
    threads: int
    unit: str
    figures: dict[str, Figure]
    ratios: dict[str, float] = field(default_factory=dict)
    reach: str = ""
    met: bool | None = None
    note: str = ""
    family: str = ""
    phase: str = ""

    @classmethod
    def read(cls, fields: dict[str, Any]) -> Row:
        figures = {name: Figure(**figure) for name, figure in fields["figures"].items()}
        return cls(**{**fields, "figures": figures})


def ratios_to(figures: dict[str, Figure], *peers: str) -> dict[str, float]:
    """Return the medians of those peers that were measured by tapegrad's."""
    if "tapegrad" not in figures:
        return {}
    own = figures["tapegrad"].median
    return {peer: figures[peer].median / own for peer in peers if peer in figures}


def at_least(ratios: dict[str, float], **least: float) -> tuple[str, bool | None]:
    """Return the least ratios in words and whether all are there; None if one has no peer."""
    named = len(least) > 1 or "torch" not in least
    reach = ", ".join(f"≥ {x:.3g}×" + f" {PEERS[name]}" * named for name, x in least.items())
    if any(name in ratios and ratios[name] < x for name, x in least.items()):
        return reach, False
    return reach, True if least.keys() <= ratios.keys() else None


def unsteady(figures: dict[str, Figure], *peers: str) -> str:
    """Return a note if a side of a ratio was disturbed while it was measured."""
    sides = [name for name in ("tapegrad", *(peers or ("torch",))) if name in figures]
    return "unsteady" if any(figures[name].unsteady for name in sides) else ""


def verdict(met: bool | None) -> str:
    """Return the word for the last column."""
    return {True: "yes", False: "**missed**", None: ""}[met]


def cell(value: float) -> str:
    """Return a figure to three significant digits, without an exponent."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def table(rows: list[Row], *, reach: bool = True) -> str:
    """Return one group's Markdown table: medians, with the minimum in brackets.

    With `reach` it says what is to be reached, else it gives what a reader compares.
    """
    libraries = list(dict.fromkeys(name for row in rows for name in row.figures))
    peers = list(dict.fromkeys(name for row in rows for name in row.ratios))
    threads = len({row.threads for row in rows}) > 1
    lines = heading(
        f"{rows[0].group} ({rows[0].unit})",
        ["threads"] * threads + libraries + [f"{PEERS[peer]} / tapegrad" for peer in peers],
        reach,
    )
    for row in rows:
        cells = [", ".join(filter(None, (row.name, row.phase, row.note)))]
        cells += [str(row.threads)] * threads
        for name in libraries:
            figure = row.figures.get(name)
            spread = f" ({cell(figure.minimum)})" if figure and reach else ""
            cells.append(f"{cell(figure.median)}{spread}" if figure else "–")
        cells += [f"{row.ratios[peer]:.2f}×" if peer in row.ratios else "" for peer in peers]
        lines.append(line([*cells, *([row.reach, verdict(row.met)] if reach else [])]))
    return "\n".join(lines)


def heading(title: str, columns: list[str], reach: bool) -> list[str]:
    """Return the first two lines of a table of figures."""
    ends = ["reach", "reached"] if reach else []
    rule = "|---" + "|---:" * len(columns) + "|---" * len(ends) + "|"
    return [line([title, *columns, *ends]), rule]


def line(cells: list[str]) -> str:
    """Return a line of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def families(rows: list[Row], *, reach: bool = True) -> str:
    """Return the summary of a group of many operations: one line per family and phase."""
    members: dict[tuple[str, str, int], list[Row]] = {}
    for row in rows:
        if "torch" in row.ratios:
            members.setdefault((row.family, row.phase, row.threads), []).append(row)
    threads = len({row.threads for row in rows}) > 1
    columns = ["threads"] * threads + ["operations", "median", "least"]
    lines = heading(f"{rows[0].group}, PyTorch / tapegrad", columns, reach)
    for (family, phase, count), found in members.items():
        least = min(found, key=lambda row: row.ratios["torch"])
        middle = median(row.ratios["torch"] for row in found)
        unsteady = sum(bool(row.note) for row in found) if reach else 0
        cells = [f"{family}, {phase}", *[str(count)] * threads]
        cells.append(f"{len(found)} ({unsteady} unsteady)" if unsteady else str(len(found)))
        cells += [f"{middle:.2f}×", f"{least.ratios['torch']:.2f}× ({least.name})"]
        if reach:
            missed = sum(row.met is False for row in found)
            reached = f"**missed by {missed}**" if missed else verdict(True) if least.reach else ""
            cells += [least.reach, reached]
        lines.append(line(cells))
    return "\n".join(lines)


def grouped(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Return the rows by group, in order of appearance."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.group, []).append(row)
    return groups


def printed(meta: dict[str, Any], rows: list[Row]) -> str:
    """Return everything, as it is printed."""
    parts = [about(meta)]
    for found in grouped(rows).values():
        parts.append(table(found))
        if found[0].family:
            parts.append(families(found))
    return "\n\n".join(parts)


def about(meta: dict[str, Any]) -> str:
    """Return the line that says what was measured where."""
    versions = ", ".join(f"{name} {version}" for name, version in meta["versions"].items())
    return f"{meta['processor']}, {meta['cores']} cores; Python {meta['python']}, {versions}."


def save(path: Path, meta: dict[str, Any], rows: list[Row]) -> None:
    """Write the JSON file."""
    document = {"meta": meta, "rows": [asdict(row) for row in rows]}
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def open_saved(path: Path) -> tuple[dict[str, Any], list[Row]]:
    """Read what `save` wrote."""
    document = json.loads(path.read_text(encoding="utf-8"))
    return document["meta"], [Row.read(fields) for fields in document["rows"]]


def markers(suite: str) -> tuple[str, str]:
    """Return the lines of a page between which the tables of a suite stand."""
    return f"<!-- bench {suite}: begin -->", f"<!-- bench {suite}: end -->"


def document(meta: dict[str, Any], rows: list[Row], summary: str = "", page: Path = PAGE) -> None:
    """Put the tables of a suite, or its summary, where the page has its place for them."""
    parts = [about(meta), *filter(None, [summary])]
    for found in [] if summary else grouped(rows).values():
        write = families if found[0].family else table
        parts.append(write(found, reach=False))
    replace(page, meta["suite"], "\n\n".join(parts))


def replace(page: Path, name: str, body: str) -> None:
    """Put text between the two markers of a page."""
    text = page.read_text(encoding="utf-8")
    begin, end = markers(name)
    if begin not in text or end not in text:
        raise SystemExit(f"{page.name} has no place for the tables: {begin} … {end}")
    head, rest = text.split(begin, 1)
    tail = rest.split(end, 1)[1]
    page.write_text(f"{head}{begin}\n\n{body}\n\n{end}{tail}", encoding="utf-8")

"""Rows of figures, as Markdown tables, as JSON, and as the section of the README."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bench.timing import Figure

README = Path(__file__).parents[1] / "README.md"
BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table.

    Parameters
    ----------
    group, name
        The table, and what was measured.
    figures
        Per library; a library that has no such thing is absent.
    ratio
        PyTorch's median by tapegrad's, so above 1 tapegrad is ahead; None without both.
    reach
        What is to be reached, in words.
    met
        Whether it is; None where nothing is to be reached or the peer is absent.
    family, phase
        In a group of many operations: what the README sums up by.
    """

    group: str
    name: str
    threads: int
    unit: str
    figures: dict[str, Figure]
    ratio: float | None = None
    reach: str = ""
    met: bool | None = None
    note: str = ""
    family: str = ""
    phase: str = ""

    @classmethod
    def read(cls, fields: dict[str, Any]) -> Row:
        figures = {name: Figure(**figure) for name, figure in fields["figures"].items()}
        return cls(**{**fields, "figures": figures})


def ratio_to_torch(figures: dict[str, Figure]) -> float | None:
    """Return PyTorch's median by tapegrad's."""
    if not {"tapegrad", "torch"} <= figures.keys():
        return None
    return figures["torch"].median / figures["tapegrad"].median


def at_least(ratio: float | None, least: float) -> tuple[str, bool | None]:
    """Return the reach in words and whether a ratio is there."""
    return f"≥ {least:g}×", None if ratio is None else ratio >= least


def verdict(met: bool | None) -> str:
    """Return the word for the last column."""
    return {True: "yes", False: "**missed**", None: ""}[met]


def cell(value: float) -> str:
    """Return a figure to three significant digits, without an exponent."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def table(rows: list[Row]) -> str:
    """Return one group's Markdown table: medians, with the minimum in brackets."""
    libraries = list(dict.fromkeys(name for row in rows for name in row.figures))
    lines = [
        f"| {rows[0].group} ({rows[0].unit}) | threads | "
        + " | ".join(libraries)
        + " | ratio to PyTorch | reach | reached |",
        "|---|---" + "|---:" * len(libraries) + "|---:|---|---|",
    ]
    for row in rows:
        cells = [
            f"{cell(row.figures[name].median)} ({cell(row.figures[name].minimum)})"
            if name in row.figures
            else "–"
            for name in libraries
        ]
        ratio = "" if row.ratio is None else f"{row.ratio:.2f}×"
        name = ", ".join(filter(None, (row.name, row.phase, row.note)))
        lines.append(
            f"| {name} | {row.threads} | "
            + " | ".join(cells)
            + f" | {ratio} | {row.reach} | {verdict(row.met)} |"
        )
    return "\n".join(lines)


def families(rows: list[Row]) -> str:
    """Return the summary of a group of many operations: one line per family and phase."""
    lines = [
        f"| {rows[0].group}, ratio to PyTorch | threads | operations | median | least | reach "
        "| reached |",
        "|---|---|---:|---:|---|---|---|",
    ]
    members: dict[tuple[str, str, int], list[Row]] = {}
    for row in rows:
        if row.ratio is not None:
            members.setdefault((row.family, row.phase, row.threads), []).append(row)
    for (family, phase, threads), found in members.items():
        least = min(found, key=lambda row: row.ratio or 0.0)
        middle = median(row.ratio or 0.0 for row in found)
        missed = sum(row.met is False for row in found)
        unsteady = sum(bool(row.note) for row in found)
        count = f"{len(found)} ({unsteady} unsteady)" if unsteady else str(len(found))
        reached = f"**missed by {missed}**" if missed else verdict(True)
        lines.append(
            f"| {family}, {phase} | {threads} | {count} | {middle:.2f}× "
            f"| {least.ratio:.2f}× ({least.name}) | {least.reach} | {reached} |"
        )
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


def write_readme(meta: dict[str, Any], rows: list[Row], path: Path = README) -> None:
    """Put the tables between the README's two markers."""
    text = path.read_text(encoding="utf-8")
    if BEGIN not in text or END not in text:
        raise SystemExit(f"{path.name} has no place for the tables: {BEGIN} … {END}")
    parts = [about(meta)]
    for found in grouped(rows).values():
        parts.append(families(found) if found[0].family else table(found))
    head, rest = text.split(BEGIN, 1)
    tail = rest.split(END, 1)[1]
    body = "\n\n".join(parts)
    path.write_text(f"{head}{BEGIN}\n\n{body}\n\n{END}{tail}", encoding="utf-8")

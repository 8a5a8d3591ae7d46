"""Rows of figures, as Markdown tables, as JSON, and as the section of the README."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from bench.timing import Figure

README = Path(__file__).parents[1] / "README.md"
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
        In a group of many operations: what the README sums up by.
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


def table(rows: list[Row]) -> str:
    """Return one group's Markdown table: medians, with the minimum in brackets."""
    libraries = list(dict.fromkeys(name for row in rows for name in row.figures))
    peers = list(dict.fromkeys(name for row in rows for name in row.ratios))
    lines = [
        f"| {rows[0].group} ({rows[0].unit}) | threads | "
        + " | ".join([*libraries, *[f"ratio to {PEERS[peer]}" for peer in peers]])
        + " | reach | reached |",
        "|---|---" + "|---:" * (len(libraries) + len(peers)) + "|---|---|",
    ]
    for row in rows:
        cells = [
            f"{cell(row.figures[name].median)} ({cell(row.figures[name].minimum)})"
            if name in row.figures
            else "–"
            for name in libraries
        ]
        cells += [f"{row.ratios[peer]:.2f}×" if peer in row.ratios else "" for peer in peers]
        name = ", ".join(filter(None, (row.name, row.phase, row.note)))
        lines.append(
            f"| {name} | {row.threads} | "
            + " | ".join(cells)
            + f" | {row.reach} | {verdict(row.met)} |"
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
        if "torch" in row.ratios:
            members.setdefault((row.family, row.phase, row.threads), []).append(row)
    for (family, phase, threads), found in members.items():
        least = min(found, key=lambda row: row.ratios["torch"])
        middle = median(row.ratios["torch"] for row in found)
        missed = sum(row.met is False for row in found)
        unsteady = sum(bool(row.note) for row in found)
        count = f"{len(found)} ({unsteady} unsteady)" if unsteady else str(len(found))
        reached = f"**missed by {missed}**" if missed else verdict(True) if least.reach else ""
        lines.append(
            f"| {family}, {phase} | {threads} | {count} | {middle:.2f}× "
            f"| {least.ratios['torch']:.2f}× ({least.name}) | {least.reach} | {reached} |"
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


def markers(suite: str) -> tuple[str, str]:
    """Return the lines of the README between which the tables of a suite stand."""
    return f"<!-- bench {suite}: begin -->", f"<!-- bench {suite}: end -->"


def write_readme(meta: dict[str, Any], rows: list[Row], path: Path = README) -> None:
    """Put the tables between the README's two markers."""
    text = path.read_text(encoding="utf-8")
    begin, end = markers(meta["suite"])
    if begin not in text or end not in text:
        raise SystemExit(f"{path.name} has no place for the tables: {begin} … {end}")
    parts = [about(meta)]
    for found in grouped(rows).values():
        parts.append(families(found) if found[0].family else table(found))
    head, rest = text.split(begin, 1)
    tail = rest.split(end, 1)[1]
    body = "\n\n".join(parts)
    path.write_text(f"{head}{begin}\n\n{body}\n\n{end}{tail}", encoding="utf-8")

"""Boxes and edges as SVG, in light and dark."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import fsum
from typing import NamedTuple

from tapegrad.show.layered_layout import Point, layered

LEAF, CONSTANT, VALUE, RELEASED = "leaf", "constant", "value", "released"
KINDS = {
    LEAF: "leaf", CONSTANT: "constant", VALUE: "intermediate value",
    RELEASED: "released by backward",
}  # fmt: skip
TITLE, DETAIL = 13, 11  # sizes of letters
LETTER = 0.61  # the width of one, of fonts whose letters are all as wide, by its size
PADDING, HEIGHT, LINE, CUT, STACK, MARGIN = 14, 42, 14, 9, 4, 16
LONGEST = 30  # letters of a line
STYLE = """
@media screen { .tapegrad-graph { max-width: 100%; height: auto } }
.tapegrad-graph text { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas,
  "DejaVu Sans Mono", "Liberation Mono", monospace; font-size: 11px; text-anchor: middle;
  fill: #57606a }
.tapegrad-graph text.title { font-size: 13px; fill: #1f2328 }
.tapegrad-graph text.key { text-anchor: start }
.tapegrad-graph .ground { fill: #ffffff }
.tapegrad-graph .edge { fill: none; stroke: #8b949e; stroke-width: 1.3 }
.tapegrad-graph .head { fill: #8b949e }
.tapegrad-graph .shape { stroke-width: 1.3 }
.tapegrad-graph .root .shape { stroke-width: 2.8 }
.tapegrad-graph .leaf .shape { fill: #dff3e3; stroke: #2e7d4f }
.tapegrad-graph .constant .shape { fill: #fff4cc; stroke: #a87f00 }
.tapegrad-graph .value .shape { fill: #f6e8dc; stroke: #9a5b2c }
.tapegrad-graph .released .shape { fill: #f2f3f4; stroke: #8a9199; stroke-dasharray: 4 3 }
.tapegrad-graph .released text.title { fill: #6b737c }
.tapegrad-graph .lit .shape { stroke: #0b66d0; stroke-width: 3.4 }
.tapegrad-graph .lit .edge { stroke: #0b66d0; stroke-width: 2.4 }
.tapegrad-graph .lit .head { fill: #0b66d0 }
@media (prefers-color-scheme: dark) {
.tapegrad-graph text { fill: #9aa4af }
.tapegrad-graph text.title { fill: #e6edf3 }
.tapegrad-graph .ground { fill: #14171a }
.tapegrad-graph .edge { stroke: #6e7681 }
.tapegrad-graph .head { fill: #6e7681 }
.tapegrad-graph .leaf .shape { fill: #153a26; stroke: #56c288 }
.tapegrad-graph .constant .shape { fill: #3c3310; stroke: #d9b640 }
.tapegrad-graph .value .shape { fill: #3d2a1b; stroke: #d49463 }
.tapegrad-graph .released .shape { fill: #23272b; stroke: #7d8590 }
.tapegrad-graph .released text.title { fill: #9aa4af }
.tapegrad-graph .lit .shape, .tapegrad-graph .lit .edge { stroke: #58a6ff }
.tapegrad-graph .lit .head { fill: #58a6ff }
}
"""


class Box(NamedTuple):
    """A box of the drawing: of one value, or stacked, of several."""

    kind: str
    title: str
    detail: str
    tip: str
    positions: tuple[int, ...] = ()  # of the records that it stands for
    stacked: bool = False
    root: bool = False
    adjoint: str = ""  # a third line
    label: str = ""  # what the adjoint is of, where a page changes that line

    @property
    def details(self) -> tuple[str, ...]:
        """The lines below the title."""
        return (self.detail, self.adjoint) if self.adjoint else (self.detail,)

    @property
    def width(self) -> float:
        """The room that the longest line needs."""
        letters = len(_short(self.title)) * TITLE
        letters = max(letters, *(len(_short(text)) * DETAIL for text in self.details))
        return max(round(letters * LETTER) + 2 * PADDING, 60.0)

    @property
    def height(self) -> float:
        """The room that all lines need."""
        return float(HEIGHT + (len(self.details) - 1) * LINE)


def draw(boxes: Sequence[Box], edges: Sequence[tuple[int, int]], label: str) -> str:
    """The text of an SVG; edges lead from a box to a later one."""
    layout = layered([(box.width, box.height) for box in boxes], edges)
    kinds = [kind for kind in KINDS if any(box.kind == kind for box in boxes)]
    key = list(_key(kinds, layout.height + MARGIN + 22))
    key_width = fsum(_key_width(kind) for kind in kinds)
    width = round(max(layout.width + STACK, key_width)) + 2 * MARGIN
    height = round(layout.height) + 2 * MARGIN + 36
    shift = (width - 2 * MARGIN - layout.width) / 2 + MARGIN
    parts = [
        *(_edge(route, *edge) for route, edge in zip(layout.routes, edges, strict=True)),
        *(_box(k, box, *layout.centres[k]) for k, box in enumerate(boxes)),
    ]
    return "\n".join([
        f"<svg xmlns='http://www.w3.org/2000/svg' class='tapegrad-graph' width='{width}' "
        f"height='{height}' viewBox='0 0 {width} {height}' role='img' "
        f"aria-label='{escaped(label)}'>",
        f"<style>{STYLE}</style>",
        f"<rect class='ground' width='{width}' height='{height}'/>",
        f"<g transform='translate({shift:.1f} {MARGIN})'>", *parts, "</g>",
        f"<g transform='translate({MARGIN} 0)'>", *key, "</g>",
        "</svg>\n",
    ])  # fmt: skip


def escaped(text: str) -> str:
    """Text for XML, which has no control characters."""
    return html.escape(
        re.sub(r"[^\x20-\ud7ff\ue000-\U0010ffff]", "\N{REPLACEMENT CHARACTER}", text)
    )


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _box(number: int, box: Box, x: float, y: float) -> str:
    size = box.width, box.height
    left, top = x - box.width / 2, y - box.height / 2
    behind = _shape(box.kind, left + STACK, top + STACK, *size) if box.stacked else ""
    marks = "", f" data-adjoint='{escaped(box.label)}'"
    lines = [
        f"<text{mark} x='{x:.1f}' y='{top + 33 + k * LINE:.1f}'>{escaped(_short(text))}</text>"
        for k, (text, mark) in enumerate(zip(box.details, marks, strict=False))
    ]
    at = f" data-at='{' '.join(map(str, box.positions))}'" if box.positions else ""
    return (
        f"<g class='box {box.kind}{' root' * box.root}' data-box='{number}'{at}>"
        f"<title>{escaped(box.tip)}</title>"
        f"{behind}{_shape(box.kind, left, top, *size)}"
        f"<text class='title' x='{x:.1f}' y='{top + 18:.1f}'>{escaped(_short(box.title))}</text>"
        f"{''.join(lines)}</g>"
    )


def _shape(kind: str, x: float, y: float, width: float, height: float) -> str:
    """The outline of a kind: round ends, pointed ends, a rectangle, cut corners."""
    if kind in (LEAF, VALUE):
        radius = min(height, HEIGHT) / 2 if kind == LEAF else 3
        return (
            f"<rect class='shape' x='{x:.1f}' y='{y:.1f}' width='{width:g}' height='{height:g}' "
            f"rx='{radius:g}'/>"
        )
    cut = CUT * min(height / HEIGHT, 1.0)
    right, bottom, middle = x + width, y + height, y + height / 2
    corners: list[Point]
    if kind == CONSTANT:
        corners = [(x, middle), (x + cut, y), (right - cut, y), (right, middle)]
        corners += [(right - cut, bottom), (x + cut, bottom)]
    else:
        corners = [(x, y + cut), (x + cut, y), (right - cut, y), (right, y + cut)]
        corners += [(right, bottom - cut), (right - cut, bottom), (x + cut, bottom)]
        corners += [(x, bottom - cut)]
    return f"<polygon class='shape' points='{' '.join(f'{a:.1f},{b:.1f}' for a, b in corners)}'/>"


def _edge(route: list[Point], start: int, end: int) -> str:
    """A curve along the points of a route, upright at each, with a head at its end."""
    *points, (x, y) = route
    route = [*points, (x, y - 5)]
    path = f"M{route[0][0]:.1f} {route[0][1]:.1f}"
    for (a, b), (c, d) in pairwise(route):
        if abs(a - c) < 0.05:
            path += f"V{d:.1f}"
        else:
            half = (d - b) / 2
            path += f"C{a:.1f} {b + half:.1f} {c:.1f} {d - half:.1f} {c:.1f} {d:.1f}"
    head = f"M{x:.1f} {y:.1f}l-3.6 -7h7.2z"
    return (
        f"<g data-from='{start}' data-to='{end}'><path class='edge' d='{path}'/>"
        f"<path class='head' d='{head}'/></g>"
    )


def _key_width(kind: str) -> float:
    return 34 + len(KINDS[kind]) * DETAIL * LETTER + 18


def _key(kinds: list[str], y: float) -> Iterator[str]:
    """What the outlines mean, in one line."""
    x = 0.0
    for kind in kinds:
        yield (
            f"<g class='{kind}'>{_shape(kind, x, y - 8, 26.0, 15.0)}"
            f"<text class='key' x='{x + 34:.1f}' y='{y + 3.5:.1f}'>{KINDS[kind]}</text></g>"
        )
        x += _key_width(kind)

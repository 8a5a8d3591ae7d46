"""Draw docs/architecture.svg from the imports: ``python -m tests.architecture``.

A box is a folder, a line an import that no other path through the picture implies; whoever stands
higher imports what stands below.
"""

import graphlib
from collections.abc import Iterator
from math import fsum

from tests.test_project import ROOT, inner_edges, part

PICTURE = ROOT / "docs" / "architecture.svg"
STYLE = "font-family='sans-serif' font-size='13' text-anchor='middle'"
WIDTH, HEIGHT, GAP, ROW = 8, 26, 18, 62  # pixels a letter, a box, between two, from row to row
# Several modules of `native` stand above what runs operations in Python.
TITLES = {"__init__": "tapegrad", "native.install": "native.install …", "__main__": "python -m"}
TOGETHER = {"native.bindings": "native.install", "native.stubs": "native.install"}
TOGETHER |= {"native.view_cache": "native.install", "autograd.functional": "func"}
TOGETHER |= {"autograd.forward_ad": "func"}


def folders() -> dict[str, set[str]]:
    """What each folder imports."""
    graph: dict[str, set[str]] = {}
    for name, target in inner_edges():
        if target == "tapegrad.cuda":  # nothing but the answer that there is none
            continue
        above, below = (TOGETHER.get(part(m), part(m)) for m in (name, target))
        graph.setdefault(below, set())
        if above != below:
            graph.setdefault(above, set()).add(below)
    return graph


def reduced(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """Without the imports that others imply."""
    reach: dict[str, set[str]] = {}
    for name in graphlib.TopologicalSorter(graph).static_order():
        reach[name] = set(graph[name]).union(*(reach[below] for below in graph[name]))
    return {
        name: {below for below in found if not any(below in reach[other] for other in found)}
        for name, found in graph.items()
    }


def rows(graph: dict[str, set[str]]) -> list[list[str]]:
    """The folders from the highest row to the lowest, near those that they import."""
    height: dict[str, int] = {}
    for name in graphlib.TopologicalSorter(graph).static_order():
        height[name] = 1 + max((height[below] for below in graph[name]), default=-1)
    found: list[list[str]] = [[] for _ in range(max(height.values()) + 1)]
    where: dict[str, float] = {}
    for level, row in enumerate(found):
        row += sorted(name for name in height if height[name] == level)
        row.sort(key=lambda n: fsum(where[b] for b in graph[n]) / max(len(graph[n]), 1))
        where |= {name: (k + 0.5) / len(row) for k, name in enumerate(row)}
    return found[::-1]


def title(name: str) -> str:
    """What stands in a folder's box."""
    return TITLES.get(name, name.replace(".", "/"))


def picture() -> str:
    """The picture as SVG."""
    graph = reduced(folders())
    levels = rows(graph)
    widths = {name: WIDTH * len(title(name)) + 20 for name in graph}
    spans = [sum(widths[name] + GAP for name in row) - GAP for row in levels]
    whole = max(spans) + 2 * GAP
    boxes: dict[str, tuple[float, int]] = {}
    for k, (row, span) in enumerate(zip(levels, spans, strict=True)):
        left = (whole - span) / 2
        for name in row:
            boxes[name] = left + widths[name] / 2, GAP + k * ROW
            left += widths[name] + GAP
    size = f"viewBox='0 0 {whole} {2 * GAP + (len(levels) - 1) * ROW + HEIGHT}'"
    lines = [f"<svg xmlns='http://www.w3.org/2000/svg' {size} {STYLE}>", *drawn(graph, boxes)]
    for name, (x, y) in boxes.items():
        left, wide = x - widths[name] / 2, widths[name]
        shape = f"x='{left:g}' y='{y}' width='{wide}' height='{HEIGHT}' rx='5'"
        lines.append(f"<rect {shape} fill='#eef3fa' stroke='#456'/>")
        lines.append(f"<text x='{x:g}' y='{y + 18}'>{title(name)}</text>")
    return "\n".join([*lines, "</svg>", ""])


def drawn(graph: dict[str, set[str]], boxes: dict[str, tuple[float, int]]) -> Iterator[str]:
    """The lines between boxes."""
    for name in sorted(graph):
        for below in sorted(graph[name]):
            (x, y), (x_, y_) = boxes[name], boxes[below]
            path = f"x1='{x:g}' y1='{y + HEIGHT}' x2='{x_:g}' y2='{y_}'"
            yield f"<line {path} stroke='#9ab' stroke-width='1'/>"


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
    print(f"{PICTURE.relative_to(ROOT)} is drawn")

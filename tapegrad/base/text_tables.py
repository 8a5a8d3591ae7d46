"""Tables as text and as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Cells = Sequence[str]


def text_table(head: Cells, rows: Iterable[Cells], right: str = "") -> str:
    """A table as text; `right` names the columns that are aligned to the right."""
    lines = [head, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    on_right = [name in right.split() for name in head]
    texts = (
        "  ".join(
            cell.rjust(width) if aligned else cell.ljust(width)
            for cell, width, aligned in zip(line, widths, on_right, strict=True)
        )
        for line in lines
    )
    return "\n".join(text.rstrip() for text in texts)


def html_table(head: Cells, rows: Iterable[Cells], caption: str = "") -> str:
    """A table as HTML."""
    import html  # which nobody needs who prints

    lines = [("th", head), *(("td", row) for row in rows)]
    body = "".join(
        "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in line) + "</tr>"
        for tag, line in lines
    )
    title = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    return f"<table>{title}{body}</table>"


def counted(n: int, noun: str) -> str:
    """A number of things: ``1 record``, ``2 records``."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def byte_count(n: int) -> str:
    """A number of bytes, to three digits."""
    value, unit = float(n), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if value < 1000:
            break
        value, unit = value / 1000, larger
    return f"{value:.3g} {unit}" if value < 999.5 else f"{value:.0f} {unit}"

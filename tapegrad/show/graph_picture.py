"""The graph under a Tensor, drawn: `tg.show.graph`."""

from __future__ import annotations

import html
import os
from collections.abc import Mapping
from pathlib import Path

from tapegrad.base.text_tables import counted, text_table
from tapegrad.show.graph_boxes import Boxes, Swept
from tapegrad.show.graph_svg import draw
from tapegrad.show.named_slice import NamedSlice, Names
from tapegrad.tape.records import HEAD, table_rows
from tapegrad.tape.tape_slice import beneath
from tapegrad.tensor import Tensor, tape_of

UNASKED = 10_000  # records up to which a notebook draws a Tensor's graph under its value


class GraphPicture:
    """The slice of the tape under a Tensor; made by `tapegrad.show.graph`.

    It prints as a table of its records, and notebooks draw it.

    >>> import tapegrad as tg
    >>> x = tg.tensor(2.0, requires_grad=True)
    >>> print(tg.show.graph(tg.exp(3 * x)))
    position  operation  inputs    shape  state
    ...       mul        leaf...   ()     live
    ...       exp        ...       ()     live
    """

    def __init__(self, part: NamedSlice, swept: Mapping[int, Swept] | None = None) -> None:
        tape, indices = part.tape, part.indices
        self._count = len(indices)
        tape.sweeping += 1  # no record may move meanwhile
        try:
            rows = table_rows(lambda k: tape.record(indices[k]), len(indices))
            boxes, edges = Boxes(part, swept).drawn()
        finally:
            tape.sweeping -= 1
        self._text = text_table(HEAD, rows)
        self.svg = draw(boxes, edges, f"graph of {counted(self._count, 'record')}")

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<GraphPicture of {counted(self._count, 'record')}>"

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture as a file of SVG.

        >>> import tapegrad as tg, tempfile, pathlib
        >>> x = tg.ones(3, requires_grad=True)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     tg.show.graph(x.sin().sum(), x=x).save(f"{folder}/y.svg")
        ...     pathlib.Path(folder, "y.svg").read_text()[:4]
        '<svg'
        """
        file = Path(path)
        if file.suffix.lower() != ".svg":
            raise ValueError(f"`save` writes SVG: name a file that ends in .svg, got {file.name!r}")
        file.write_text(self.svg, encoding="utf-8")


def graph(y: Tensor, /, names: Names = None, **tensors: Tensor) -> GraphPicture:
    """Draw the slice of the tape under `y`: leaves, constants, values, and what a sweep released.

    Parameters
    ----------
    y : a Tensor that was computed of leaves.
    names : names of variables and their Tensors, as a dict; what is no Tensor is left out, so that
        `locals()` will do.
    tensors : the same as keywords.

    Each kind has an outline and a colour of its own. Of more than 60 records those that repeat, as
    in a loop, and then neighbours, are one box that says how many they are and of which operations.

    >>> import tapegrad as tg
    >>> x, w = tg.ones(3, requires_grad=True), tg.ones(3, requires_grad=True)
    >>> y = (x * w).sum()
    >>> tg.show.graph(y, x=x, w=w)
    <GraphPicture of 2 records>
    >>> "<title>w: leaf of shape (3,), float64</title>" in tg.show.graph(y, {"w": w}).svg
    True
    """
    return GraphPicture(NamedSlice(y, "graph", names, tensors))


def tensor_html(t: Tensor) -> str:
    """What a notebook shows of a Tensor: its value, and the graph if it has a history."""
    text = f"<pre>{html.escape(repr(t))}</pre>"
    tape = tape_of(t) if type(t) is Tensor else None
    if tape is None or (top := tape.index(t._pos)) < 0:
        return text
    if len(beneath(tape, top, UNASKED)) > UNASKED:
        return f"{text}<p>More than {UNASKED} records: <code>tapegrad.show.graph</code></p>"
    return text + graph(t).svg

"""The steps of a reverse sweep, as text and as a page."""

from __future__ import annotations

import html
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tapegrad.base.text_tables import counted, text_table
from tapegrad.show.graph_boxes import Swept
from tapegrad.show.graph_picture import GraphPicture
from tapegrad.show.named_slice import NamedSlice, value_text
from tapegrad.show.sweep_page import page

HEAD = ("operand", "read from", "value", "local derivative", "adds", "to make")
LONGEST = 40  # letters of a formula that is shown in full
PRINTED = 40  # steps that are printed; of a longer sweep its two ends


class Contribution(NamedTuple):
    """What one operand of a record gets: `adds` is added to the adjoint of `source`.

    `derivative` is the partial derivative of an elementwise operation, or the gradient of a result
    of one element; None otherwise. What a constant would get is None, too.

    >>> import tapegrad as tg
    >>> x = tg.tensor(3.0, requires_grad=True)
    >>> first = tg.show.sweep(x * x, x=x)[0].operands[0]
    >>> first.source, first.formula, first.adds.item(), first.total.item()
    ('x', 'b', 3.0, 3.0)
    """

    operand: str
    source: str
    value: np.ndarray | None
    formula: str
    derivative: np.ndarray | None
    adds: np.ndarray | None
    total: np.ndarray | None

    def cells(self) -> tuple[str, ...]:
        """The row of a printed step."""
        read = self.operand, self.source, value_text(self.value)
        if self.adds is None:
            return *read, "", "", ""
        derivative = "" if self.derivative is None else value_text(self.derivative)
        text = self.formula
        text = text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
        local = " = ".join(dict.fromkeys(filter(None, [text, derivative])))
        total = "" if self.total is None else f"{self.source}: {value_text(self.total)}"
        return *read, local, value_text(self.adds), total


class SweepStep(NamedTuple):
    """One record of a reverse sweep: its adjoint, and what that adds to those of its operands.

    >>> import tapegrad as tg
    >>> x = tg.tensor(0.0, requires_grad=True)
    >>> print(tg.show.sweep(tg.exp(x), x=x)[0])
    step 1: exp at ..., ExpBackward0
    result ... = 1, adjoint 1
    operand  read from  value  local derivative  adds  to make
    x        x          0      y = 1             1     x: 1
    """

    number: int
    position: int
    op: str
    grad_name: str
    result: str
    value: np.ndarray | None
    adjoints: tuple[np.ndarray, ...]
    operands: tuple[Contribution, ...]

    @property
    def adjoint(self) -> np.ndarray:
        """The adjoint of the result; a Function with several has further `adjoints`."""
        return self.adjoints[0]

    @property
    def title(self) -> str:
        """The record, in words."""
        return f"step {self.number}: {self.op} at {self.position}, {self.grad_name}"

    @property
    def summary(self) -> str:
        """The result and its adjoint, in words."""
        value = "not kept" if self.value is None else f"= {value_text(self.value)}"
        adjoints = ", ".join(map(value_text, self.adjoints))
        return f"result {self.result} {value}, adjoint {adjoints}"

    def shown(self) -> dict[str, Any]:
        """What the page shows of the step."""
        rows = [c.cells() for c in self.operands]
        totals = [(c.source, value_text(c.total)) for c in self.operands if c.total is not None]
        found = {"title": self.title, "summary": self.summary, "rows": rows}
        return {**found, "at": self.position, "totals": totals}

    def __str__(self) -> str:
        table = text_table(HEAD, [c.cells() for c in self.operands])
        return "\n".join([self.title, self.summary, table])


class SweepSteps:
    """The steps of a reverse sweep; made by `tapegrad.show.sweep`.

    It prints, and is a sequence of steps. `gradients` has those of the leaves, by name; `picture`
    is the graph with the value and the adjoint of each record, which its `save` writes as SVG.

    >>> import tapegrad as tg
    >>> x = tg.tensor(2.0, requires_grad=True)
    >>> steps = tg.show.sweep(tg.exp(x * x), x=x)
    >>> [step.op for step in steps]
    ['exp', 'mul']
    >>> round(steps.gradients["x"].item(), 4)
    218.3926
    >>> ">adjoint 218.393<" in steps.picture.svg
    True
    """

    def __init__(
        self, part: NamedSlice, seed: np.ndarray, steps: list[SweepStep],
        gradients: dict[str, np.ndarray], swept: Mapping[int, Swept],
    ) -> None:  # fmt: skip
        self.picture = GraphPicture(part, swept)  # as it is now
        self.root = part.label(part.tape.tokens[part.top])
        self.seed = seed
        self.steps = tuple(steps)
        self.gradients = gradients

    def __len__(self) -> int:
        return len(self.steps)

    def __iter__(self) -> Iterator[SweepStep]:
        return iter(self.steps)

    def __getitem__(self, k: int) -> SweepStep:
        return self.steps[k]

    @property
    def title(self) -> str:
        """Where the sweep begins, in words."""
        count = counted(len(self), "record")
        return f"reverse sweep from {self.root}, seed {value_text(self.seed)}: {count}"

    def __str__(self) -> str:
        half, steps = PRINTED // 2, [*map(str, self.steps)]
        if len(steps) > PRINTED:
            steps[half:-half] = [f"... ({len(steps) - PRINTED} more)"]
        gradients = [f"{name}: {value_text(g)}" for name, g in self.gradients.items()]
        return "\n\n".join([self.title, *steps, "\n".join(["gradients", *gradients])])

    def __repr__(self) -> str:
        return f"<SweepSteps: {self.title}>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one page of HTML to step through, by buttons, a slider or the arrow keys.

        The graph shows which record it is. The page needs nothing else, no network either.

        >>> import tapegrad as tg, tempfile, pathlib
        >>> x = tg.tensor(2.0, requires_grad=True)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     tg.show.sweep(tg.exp(x), x=x).save(f"{folder}/sweep.html")
        ...     "step 1: exp" in pathlib.Path(folder, "sweep.html").read_text()
        True
        """
        file = Path(path)
        if file.suffix.lower() not in (".html", ".htm"):
            raise ValueError(
                f"`save` writes HTML: name a file that ends in .html, got {file.name!r}"
            )
        file.write_text(self._page(), encoding="utf-8")

    def _repr_html_(self) -> str:
        source = html.escape(self._page())
        return f'<iframe srcdoc="{source}" style="width:100%;height:640px;border:0"></iframe>'

    def _page(self) -> str:
        seeded = {
            "title": "step 0: seed",
            "summary": f"the adjoint of {self.root} is {value_text(self.seed)}",
            "rows": [], "at": 0, "totals": [(self.root, value_text(self.seed))],
        }  # fmt: skip
        return page(self.title, self.picture.svg, HEAD, [seeded, *(step.shown() for step in self)])

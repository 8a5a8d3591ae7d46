"""Notebooks of examples: the scripts' cells, which begin with `# %%`, without outputs."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
NAMES = ("curve_fitting", "digits_classifier", "linear_regression")
MARK, TEXT = "# %%", " [markdown]"


def _cell(kind: str, number: int, source: str) -> dict[str, Any]:
    lines = source.strip("\n").splitlines(keepends=True)
    cell = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": lines}
    return cell if kind == "markdown" else {**cell, "execution_count": None, "outputs": []}


def notebook(source: str) -> str:
    """The notebook of a script, as JSON; the docstring becomes its first text."""
    _, *parts = source.split(f"\n{MARK}")
    cells = [_cell("markdown", 0, "# " + (ast.get_docstring(ast.parse(source)) or ""))]
    for number, part in enumerate(parts, 1):
        if part.startswith(TEXT):
            text = "\n".join(
                line.removeprefix("#").strip() for line in part[len(TEXT) :].split("\n")
            )
            cells.append(_cell("markdown", number, text))
        else:
            cells.append(_cell("code", number, part))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    whole = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def write_notebooks() -> None:
    """Write the notebooks beside their scripts."""
    for name in NAMES:
        source = (HERE / f"{name}.py").read_text(encoding="utf-8")
        (HERE / f"{name}.ipynb").write_text(notebook(source), encoding="utf-8")

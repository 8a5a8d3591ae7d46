"""The examples: their notebooks are current, and the runner sees what went wrong.

`make examples` runs the examples themselves.
"""

import ast
import json
import re

import pytest

from examples import __main__ as main
from examples import notebooks

pytestmark = pytest.mark.tapegrad_only("about this project")


@pytest.mark.parametrize("name", notebooks.NAMES)
def test_notebooks_are_those_of_their_scripts(name):
    script = (main.HERE / f"{name}.py").read_text(encoding="utf-8")
    written = (main.HERE / f"{name}.ipynb").read_text(encoding="utf-8")
    assert written == notebooks.notebook(script), "python -m examples --notebooks"
    cells = json.loads(written)["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    statements = ast.parse(script).body[1:]  # without the docstring
    assert ast.unparse(ast.parse(code)) == ast.unparse(ast.Module(statements, []))
    assert not any(cell.get("outputs") for cell in cells)


@pytest.mark.parametrize("name", main.NAMES)
def test_scripts_say_what_they_show_check_it_and_draw_it(name):
    tree = ast.parse((main.HERE / f"{name}.py").read_text(encoding="utf-8"))
    assert len(ast.get_docstring(tree).splitlines()) > 2
    assert any(isinstance(node, ast.Assert) for node in tree.body)
    assert f"save(figure, '{name}')" in ast.unparse(tree)


def test_the_readme_lists_all():
    said = (main.HERE / "README.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^\| \[(\w+)\]", said, re.MULTILINE)) == main.NAMES
    assert sorted(re.findall(r"\((\w+)\.ipynb\)", said)) == sorted(notebooks.NAMES)


PICTURE = main.SIGNATURE + b"\0\0\0\rIHDR" + (600).to_bytes(4, "big") + (400).to_bytes(4, "big")
ENDINGS = {
    "raise SystemExit(3)": "it ended with status 3",
    "pass": "it left no picture",
    "(OUT / 'fast.png').write_bytes(b'text')": "fast.png is no PNG file",
    "(OUT / 'fast.png').write_bytes(PICTURE.replace(b'\\2X', b'\\0X'))": "88 x 400 pixels",
    "(OUT / 'fast.png').write_bytes(PICTURE)": "passed",
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_runner_sees_what_went_wrong(ending, tmp_path, monkeypatch, capsys):
    (tmp_path / "out").mkdir()
    head = f"import pathlib\nOUT = pathlib.Path({str(tmp_path / 'out')!r})\nPICTURE = {PICTURE!r}\n"
    (tmp_path / "fast.py").write_text(head + ending + "\n")
    monkeypatch.setattr(main, "HERE", tmp_path)
    assert main.run("fast") == (ENDINGS[ending] == "passed")
    assert ENDINGS[ending] in capsys.readouterr().out

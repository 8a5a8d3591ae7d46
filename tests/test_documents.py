"""What the documents show is what happens: every example in them runs."""

import doctest
import importlib
import inspect
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytestmark = pytest.mark.tapegrad_only("about this project")

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
COMPILED = ROOT / "tapegrad" / "kernels", ROOT / "tapegrad" / "native"
# To import a module of compiled code is to compile it: those without an example are left out.
MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted((ROOT / "tapegrad").rglob("*.py"))
    if not any(map(path.is_relative_to, COMPILED)) or ">>>" in path.read_text(encoding="utf-8")
]
# Modules whose examples run on what not everybody installs, and how to.
EXTRAS = {"tapegrad.distributed.chunk_sums": ("dask", "`make distributed` installs it")}
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(text: str):
    """The Python blocks of a Markdown page, with the line each begins at."""
    for match in BLOCK.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, match[1]


def run_page(path: Path) -> int:
    """Run a page's blocks in order, in one namespace; a block with prompts is held to its output.

    Returns how many blocks there were.
    """
    namespace = {"__name__": path.stem}
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    count = 0
    for line, source in blocks(path.read_text(encoding="utf-8")):
        count += 1
        if source.lstrip().startswith(">>>"):
            test = doctest.DocTestParser().get_doctest(source, {}, path.name, str(path), line)
            test.globs = namespace
            runner.run(test, clear_globs=False)
        else:
            # The blank lines make the line numbers of a traceback those of the page.
            exec(compile("\n" * line + source, str(path), "exec"), namespace)
    assert runner.summarize(verbose=False).failed == 0
    return count


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_page(path, tmp_path, monkeypatch):
    """On a thread of its own, and so on a tape of its own: positions are those of a fresh start."""
    monkeypatch.chdir(tmp_path)
    with ThreadPoolExecutor(1) as fresh:
        fresh.submit(run_page, path).result()


class Finder(doctest.DocTestFinder):
    """Finds the examples of decorated functions, too, in the module that they stand in."""

    def _from_module(self, module, found):
        return super()._from_module(module, inspect.unwrap(found))


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name):
    if name in EXTRAS:
        package, how = EXTRAS[name]
        pytest.importorskip(package, reason=how)
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    for test in Finder().find(importlib.import_module(name), name):
        runner.run(test)
    assert runner.failures == 0


def test_examples_of_decorated_functions_are_found():
    shapes = importlib.import_module("tapegrad.functions.shapes")
    found = {test.name for test in Finder().find(shapes, "shapes") if test.examples}
    assert {"shapes.permute", "shapes.flip"} <= found


def test_blocks_share_a_namespace_and_prompts_are_checked(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```python\nx = 1\n```\ntext\n```python\n>>> x + 1\n2\n```\n")
    assert run_page(page) == 2
    page.write_text("```python\n>>> 1 + 1\n3\n```\n")
    with pytest.raises(AssertionError):
        run_page(page)

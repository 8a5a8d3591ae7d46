"""What PyPI shows, and what the continuous integration calls, is there."""

import re
import tomllib
from pathlib import Path

import pytest

import tapegrad

pytestmark = pytest.mark.tapegrad_only("about this project")

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
REPOSITORY = PROJECT["project"]["urls"]["Source"]
LINK = re.compile(r"\]\(([^)\s]+)\)")
WORKFLOW = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def test_links_of_the_readme_lead_somewhere_from_pypi():
    hook = PROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]
    (fragment,) = hook["fragments"]
    shown = (ROOT / fragment["path"]).read_text(encoding="utf-8")
    files = f"{REPOSITORY}/blob/main/"
    for rule in hook["substitutions"]:
        shown = re.sub(rule["pattern"], rule["replacement"], shown)
    links = LINK.findall(shown)
    assert sum(link.startswith(files) for link in links) > 10
    for link in links:
        assert link.startswith(("https://", "#")), f"{link} leads nowhere on PyPI"
        if link.startswith(files):
            assert (ROOT / link.removeprefix(files).partition("#")[0]).is_file(), link


def test_the_citation_names_this_version():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    (version,) = re.findall(r"^version: (\S+)$", citation, re.MULTILINE)
    assert version == tapegrad.__version__


def test_links_between_the_documents_lead_somewhere():
    missing = []
    for page in [*(ROOT / "docs").glob("*.md"), ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]:
        for link in LINK.findall(page.read_text(encoding="utf-8")):
            file = page.parent / link.partition("#")[0]
            if re.fullmatch(r"[\w./-]+\.(md|svg)(#.*)?", link) and not file.is_file():
                missing.append(f"{page.name}: {link}")
    assert not missing


def test_the_workflow_does_what_the_script_does():
    rules = re.findall(r"^([\w-][\w -]*):(.*)", MAKEFILE, re.MULTILINE)
    needs = {name: said.split() for names, said in rules for name in names.split()}
    called = re.findall(r"run: make (\S+)", WORKFLOW)
    assert set(called) <= set(needs)
    made = {*called, *(part for name in called for part in needs[name])}
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    jobs = set(re.findall(r"^ *start \S+ (\S+)", script, re.MULTILINE))
    assert jobs <= set(needs)
    assert jobs - made == {"test"}, "which runs on Windows, too"
    recipe = re.search(r"^test: .*\n\t\$\(PY\) (.*)$", MAKEFILE, re.MULTILINE)[1]
    command = recipe.replace("$(JOBS)", "2").replace("$(TESTS)", "tests")
    assert f"run: python {command}\n" in WORKFLOW


def test_the_workflow_tests_the_versions_of_python_that_are_promised():
    promised = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["project"]["classifiers"]))
    tested = re.search(r"python: \[(.*)\]", WORKFLOW)[1].replace('"', "").split(", ")
    assert tested == promised

"""The reference of the site: every public name is in it, with its signature and its example."""

import inspect

import pytest

import tapegrad as tg
from tests import reference_pages

pytestmark = pytest.mark.tapegrad_only("about this project")


def test_every_public_name_has_one_place_in_its_namespace():
    text = "\n".join(text for _, text in reference_pages.reference().values())
    missing = [
        f"{path}.{name}"
        for path, module in reference_pages.namespaces().items()
        for name in module.__all__
        if not inspect.ismodule(getattr(module, name))
        if sum(
            text.count(f"{sign}{path}.{name}{end}") for sign, end in (("{ #", " }"), ('id="', '"'))
        )
        != 1
    ]
    assert not missing


def test_what_is_loaded_late_is_among_the_namespaces():
    assert {"tg.linalg", "tg.nn.functional", "tg.scipy.sparse.linalg"} <= set(
        reference_pages.namespaces()
    )


def test_an_entry_has_signature_other_names_and_example():
    (entry,) = (x for x in reference_pages.entries("tg", tg, ["absolute", "abs"]))
    text = reference_pages.written(entry, ["tg.abs_"])
    assert text.startswith("### `tg.abs` { #tg.abs }")
    assert "\ntg.abs(input: Any) -> Any\n" in text
    assert "Also `tg.absolute`." in text
    assert "In place: `tg.abs_`." in text
    assert (
        "```pycon\n>>> import tapegrad as tg\n>>> tg.abs(tg.tensor(-1.0))\ntensor(1.)\n```" in text
    )


def test_a_signature_shows_defaults_as_python_writes_them():
    def f(x: "Tensor", mode: "str" = "same") -> "Tensor": ...  # noqa: F821

    assert reference_pages.signature("f", f) == "f(x: Tensor, mode: str = 'same') -> Tensor"


def test_sections_become_lists_and_text_is_not_read_as_markup():
    doc = "The `*` of <a>.\n\nParameters\n----------\nx : a number\n    of any size.\n\nEnd."
    assert reference_pages.markdown(doc) == (
        "The `*` of \\<a>.\n\n**Parameters**\n\n- `x`: a number\n    of any size.\n\nEnd."
    )


def test_links_of_a_root_page_lead_to_the_pages_of_the_site():
    text = reference_pages.root_page("README")
    assert "](tape.md)" in text
    assert "](contributing.md)" in text
    assert "](docs/" not in text


def test_sessions_are_highlighted_as_such():
    page = "```python\n>>> 1\n1\n```\n```python\nx = 1\n```\n"
    assert reference_pages.on_page_markdown(page) == page.replace("python\n>>>", "pycon\n>>>")

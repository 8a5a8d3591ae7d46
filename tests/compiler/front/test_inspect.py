"""A lowered function as text and as a page."""

from html.parser import HTMLParser

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.compiler.front.inspect import FORMS, TITLES

pytestmark = pytest.mark.tapegrad_only("about the compiler")


class Page(HTMLParser):
    """Reads the headings and the texts of a page, and whether what is opened is closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.headings, self.texts, self.outside = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag != "meta":
            self.open.append(tag)
        self.outside += [value for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("h2", "pre"):
            (self.headings if self.open[-1] == "h2" else self.texts).append(data)


@pytest.fixture(scope="module")
def lowering():
    def energy(x):
        return np.sum(np.where(x < 2.0, x * x, x))

    return tg.jit(tg.grad(energy)).lower(np.ones(100))


def test_the_page_shows_all_stages_and_needs_nothing_else(lowering, tmp_path):
    lowering.save(tmp_path / "f.html")
    page = Page((tmp_path / "f.html").read_text(encoding="utf-8"))
    assert page.headings == list(TITLES.values())
    assert page.texts == [lowering.as_text(form) for form in FORMS]
    assert page.open == page.outside == []


def test_a_notebook_draws_the_same(lowering):
    text = lowering._repr_html_()
    assert Page(text).texts == [lowering.as_text(form) for form in FORMS]
    assert "energy: " in text.split("</p>")[0]
    assert "reads 800 B, writes 800 B" in text.split("</p>")[0]


def test_another_form_is_refused(lowering):
    with pytest.raises(ValueError, match="`as_text` shows one of tape, loops, llvm, asm, got 'c'"):
        lowering.as_text("c")


def test_a_notebook_shows_what_a_function_was_compiled_for():
    f = tg.jit(lambda x, y, n: np.sin(x) * y if y > 0 else (x[:n], x))
    assert "<caption>jitted &lt;lambda&gt;</caption>" in f._repr_html_()
    assert f._repr_html_().count("<tr>") == 1
    f(np.ones(3), 2.0, 2)
    f(np.ones(3), -2.0, 2)
    f(np.ones((4, 2), np.float32), 1.0, 2)
    shown = f._repr_html_()
    assert shown.count("<td>float64 (3,), float, static</td>") == 2
    assert "<td>float32 (4, 2), float, static</td><td>float32 (4, 2)</td>" in shown
    assert "<td>float64 (2,), float64 (3,)</td>" in shown

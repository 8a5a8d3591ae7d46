"""How the steps of a sweep print, and what a notebook shows of them."""

import html
import xml.etree.ElementTree as ET

import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("about this project's pictures")

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def steps():
    x, w = tg.tensor(2.0, requires_grad=True), tg.tensor(5.0, requires_grad=True)
    p = x * w
    y = tg.exp(p - 10.0)
    return tg.show.sweep(y, x=x, w=w, p=p, y=y)


def test_all_steps_in_order(steps):
    text = str(steps)
    assert text.splitlines()[0] == "reverse sweep from y, seed 1: 3 records"
    assert text.index("step 1: exp at") < text.index("step 2: sub at") < text.index("step 3: mul")
    assert text.splitlines()[-3:] == ["gradients", "x: 5", "w: 2"]


def test_one_step(steps):
    head, result, columns, a, b = str(steps[2]).splitlines()
    assert head == f"step 3: mul at {steps[2].position}, MulBackward0"
    assert result == "result p = 10, adjoint 1"
    assert columns.split("  ")[0] == "operand"
    assert a.split() == ["a", "x", "2", "b", "=", "5", "5", "x:", "5"]
    assert b.split() == ["b", "w", "5", "a", "=", "2", "2", "w:", "2"]


def test_a_sequence(steps):
    assert len(steps) == 3
    assert [step.number for step in steps] == [1, 2, 3]
    assert steps[-1] is steps.steps[2]
    assert repr(steps) == "<SweepSteps: reverse sweep from y, seed 1: 3 records>"


def lines_of_boxes(picture):
    root = ET.fromstring(picture.svg)
    boxes = [g for g in root.iter(f"{SVG}g") if g.get("class", "").startswith("box ")]
    return [[text.text for text in box.iter(f"{SVG}text")] for box in boxes]


def test_the_picture_shows_values_and_adjoints(steps):
    assert lines_of_boxes(steps.picture) == [
        ["x", "2", "adjoint 5"],
        ["w", "5", "adjoint 2"],
        ["constant", "not kept"],
        ["mul", "p = 10", "adjoint 1"],
        ["sub", f"{steps[1].position} ()", "adjoint 1"],  # a value that nothing keeps
        ["exp", "y = 1", "adjoint 1"],
    ]


def test_large_arrays_are_abbreviated():
    x = tg.full((30, 40), 2.0, requires_grad=True)
    text = str(tg.show.sweep((x * x).sum(), x=x))
    assert "x: (30, 40) norm 138.564" in text
    assert max(map(len, text.splitlines())) < 160


def test_long_formulas_are_cut():
    x = tg.tensor(1.0, requires_grad=True)
    text = str(tg.show.sweep(tg.nn.functional.gelu(x), x=x))
    assert "0.5 + 0.5 * erf(0.707107 * x) + x * 0.3… = 1.0833" in text


def test_a_long_sweep_prints_its_two_ends():
    x = tg.tensor(0.5, requires_grad=True)
    y = x
    for _ in range(100):
        y = tg.sin(y)
    steps = tg.show.sweep(y, x=x)
    assert len(steps) == 100
    text = str(steps)
    assert "\n\n... (60 more)\n\n" in text
    assert "step 20:" in text
    assert "step 21:" not in text
    assert "step 81:" in text


def test_a_notebook_shows_the_page(steps):
    shown = steps._repr_html_()
    assert shown.startswith('<iframe srcdoc="&lt;!DOCTYPE html&gt;')
    assert html.unescape(shown).count("step 3: mul") == 1


def test_what_it_is_saved_as(steps, tmp_path):
    with pytest.raises(ValueError, match=r"`save` writes HTML: .* ends in \.html, got 'a\.svg'"):
        steps.save(tmp_path / "a.svg")

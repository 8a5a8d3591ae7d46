"""`tg.show.graph` and what notebooks show: which boxes and edges there are, and what they say."""

import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor

import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("about this project's pictures")

SVG = "{http://www.w3.org/2000/svg}"


class Drawn:
    """The boxes and edges of a picture, read from its SVG."""

    def __init__(self, picture):
        root = ET.fromstring(picture.svg)
        groups = [*root.iter(f"{SVG}g")]
        boxes = [g for g in groups if g.get("class", "").startswith("box ")]
        self.kinds = [g.get("class").split()[1] for g in boxes]
        self.roots = [g.get("class").endswith(" root") for g in boxes]
        self.texts = [tuple(t.text for t in g.iter(f"{SVG}text")) for g in boxes]
        self.titles = [title for title, _ in self.texts]
        self.tips = [g.find(f"{SVG}title").text for g in boxes]
        self.outlines = [
            [(e.tag.removeprefix(SVG), e.get("rx")) for e in g if e.get("class") == "shape"]
            for g in boxes
        ]
        numbers = [
            (int(g.get("data-from")), int(g.get("data-to"))) for g in groups if g.get("data-to")
        ]
        self.edges = [(self.titles[a], self.titles[b]) for a, b in numbers]
        self.key = [t.text for t in root.iter(f"{SVG}text") if t.get("class") == "key"]


def two_released():
    """The tutorial's example: y's sweep has released two records of three."""
    x = tg.tensor(1.5, requires_grad=True)
    p = 2 * x
    y = p + 3
    z = tg.exp(y)
    y.backward()
    return x, p, y, z


def test_boxes_and_edges():
    x = tg.ones(3, requires_grad=True)
    w = tg.ones(3, requires_grad=True)
    drawn = Drawn(tg.show.graph((x * w).sin().sum(), x=x, w=w))
    assert drawn.titles == ["x", "w", "mul", "sin", "sum"]
    assert drawn.edges == [("x", "mul"), ("w", "mul"), ("mul", "sin"), ("sin", "sum")]
    assert drawn.roots == [False, False, False, False, True]
    assert drawn.texts[2] == ("mul", "(3,)")


def test_kinds_differ_in_outline_and_class():
    x, p, y, z = two_released()
    drawn = Drawn(tg.show.graph(z, x=x, p=p, y=y))
    kinds = dict(zip(drawn.kinds, drawn.outlines, strict=True))
    assert kinds.keys() == {"leaf", "constant", "value", "released"}
    assert len({str(outline) for outline in kinds.values()}) >= 3
    corners = {
        kind: ET.fromstring(tg.show.graph(z).svg).find(f".//{SVG}g[@class='{kind}']/{SVG}polygon")
        for kind in ("constant", "released")
    }
    assert [len(c.get("points").split()) for c in corners.values()] == [6, 8]
    assert drawn.key == ["leaf", "constant", "intermediate value", "released by backward"]
    released = [t for t, kind in zip(drawn.texts, drawn.kinds, strict=True) if kind == "released"]
    assert released == [("mul", "p ()"), ("add", "y ()")]
    style = tg.show.graph(z).svg
    assert style.count(".leaf .shape { fill") == 2
    assert "prefers-color-scheme: dark" in style


def test_an_operand_read_twice_has_two_edges():
    x = tg.tensor(2.0, requires_grad=True)
    assert Drawn(tg.show.graph(x * x, x=x)).edges == [("x", "mul")] * 2


def test_numbers_are_written_and_arrays_by_their_shape():
    x = tg.tensor(2.5, requires_grad=True)
    c = tg.ones(4)
    drawn = Drawn(tg.show.graph(((x * c) / 8.0).sum(), x=x, c=c))
    assert drawn.texts[:3] == [("x", "2.5"), ("c", "(4,)"), ("8", "constant")]
    assert drawn.kinds[:3] == ["leaf", "constant", "constant"]


def test_another_dtype_than_the_default_is_named():
    x = tg.ones(2, requires_grad=True, dtype=tg.float32)
    assert Drawn(tg.show.graph(x.sin(), x=x)).texts == [
        ("x", "(2,) float32"), ("sin", "(2,) float32"),
    ]  # fmt: skip


def test_names_are_taken_from_a_dict_that_holds_other_things_too():
    x = tg.tensor(2.0, requires_grad=True)
    _alias, number, y = x, 5, tg.exp(x)
    drawn = Drawn(tg.show.graph(y, locals()))
    assert drawn.titles[0] == "x"
    assert drawn.texts[1] == ("exp", "y ()")
    assert (_alias is x, number) == (True, 5)


def test_names_may_hold_anything():
    x = tg.tensor(2.0, requires_grad=True)
    name = "<b>&\"'\x00 \N{GREEK SMALL LETTER ALPHA}"
    assert Drawn(tg.show.graph(tg.exp(x), {name: x})).titles[0] == name.replace("\x00", "\ufffd")
    long = Drawn(tg.show.graph(tg.exp(x), {"x" * 100: x}))
    assert len(long.titles[0]) == 30
    assert long.tips[0].startswith("x" * 100)


def test_a_long_loop_is_one_box():
    x = tg.tensor(0.5, requires_grad=True)
    y = x
    for _ in range(300):
        y = tg.sin(y) * x
    drawn = Drawn(tg.show.graph(tg.exp(y), x=x))
    assert drawn.texts == [
        ("x", "0.5"), ("sin, mul", "300 times, 600 records"), ("exp", "()"),
    ]  # fmt: skip
    assert drawn.edges == [("x", "sin, mul"), ("sin, mul", "exp")]
    assert len(drawn.outlines[1]) == 2


def test_a_named_value_in_a_long_loop_has_its_own_box():
    x = tg.tensor(0.5, requires_grad=True)
    y = x
    for k in range(200):
        y = tg.sin(y)
        if k == 100:
            middle = y
    assert ("sin", "middle ()") in Drawn(tg.show.graph(y, middle=middle)).texts


def test_many_leaves_of_one_record_are_one_box():
    leaves = [tg.tensor(float(k), requires_grad=True) for k in range(50)]
    drawn = Drawn(tg.show.graph(tg.stack(leaves), first=leaves[0]))
    assert drawn.titles == ["first", "49 leaves", "stack"]


def test_several_results_of_a_function():
    class Two(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone(), x.clone()

        @staticmethod
        def backward(ctx, g, h):
            return g + h

    x = tg.ones(2, requires_grad=True)
    a, b = Two.apply(x)
    assert Drawn(tg.show.graph(a * b, x=x)).edges == [
        ("x", "Two"), ("Two", "Two"), ("Two", "Two"), ("Two", "mul"), ("Two", "mul"),
    ]  # fmt: skip


def test_only_the_slice_is_shown_and_the_tape_is_left_as_it_is():
    x = tg.ones(3, requires_grad=True)
    y, z = tg.exp(x), tg.sin(x)
    before = y.tape.whole.words().tobytes(), y.tape.whole.sweeping
    picture = tg.show.graph(y, x=x)
    assert Drawn(picture).titles == ["x", "exp"]
    assert (y.tape.whole.words().tobytes(), y.tape.whole.sweeping) == before
    lines = str(picture).splitlines()
    assert [line.split()[:2] for line in lines] == [
        ["position", "operation"], [str(y.position), "exp"],
    ]  # fmt: skip
    assert z.position is not None


def test_save(tmp_path):
    y = tg.exp(tg.ones(3, requires_grad=True))
    picture = tg.show.graph(y)
    picture.save(tmp_path / "y.svg")
    assert (tmp_path / "y.svg").read_text(encoding="utf-8") == picture.svg == picture._repr_svg_()
    with pytest.raises(ValueError, match=r"`save` writes SVG: .* ends in \.svg, got 'y\.png'"):
        picture.save(tmp_path / "y.png")


def test_refusals():
    x = tg.ones(2, requires_grad=True)
    with pytest.raises(ValueError, match=r"`graph`: this Tensor of shape \(2,\) stands on no tape"):
        tg.show.graph(x)
    with pytest.raises(TypeError, match="`graph` takes a Tensor, got list"):
        tg.show.graph([x])
    with pytest.raises(
        TypeError, match="`graph`: `names` is a dict of names and Tensors, got list"
    ):
        tg.show.graph(x.sin(), [x])
    with pytest.raises(TypeError, match="`graph`: `n` names a Tensor, got int"):
        tg.show.graph(x.sin(), n=3)
    with pytest.raises(ValueError, match=r"`graph`: this .* stands for a value that a transform"):
        tg.jvp(lambda x: tg.show.graph(x.sin()), (x,), (x,))


def test_another_threads_graph_can_be_shown():
    def work():
        return tg.exp(tg.ones(2, requires_grad=True))

    with ThreadPoolExecutor(1) as thread:
        y = thread.submit(work).result()
        assert Drawn(tg.show.graph(y)).titles[1] == "exp"


# -- notebooks -----------------------------------------------------------------------------------


def test_a_notebook_shows_a_tensors_value():
    assert tg.tensor([1.0, 2.0])._repr_html_() == "<pre>tensor([1., 2.])</pre>"
    leaf = tg.tensor(1.0, requires_grad=True)
    assert leaf._repr_html_() == "<pre>tensor(1., requires_grad=True)</pre>"


def test_a_notebook_shows_the_graph_of_a_tensor_with_a_history():
    y = tg.exp(tg.tensor(0.0, requires_grad=True))
    shown = y._repr_html_()
    assert shown.startswith("<pre>tensor(1., grad_fn=&lt;ExpBackward0&gt;)</pre><svg")
    assert tg.show.graph(y).svg in shown


def test_a_notebook_does_not_draw_very_long_graphs_unasked(monkeypatch):
    monkeypatch.setattr("tapegrad.show.graph_picture.UNASKED", 5)
    x = tg.tensor(0.5, requires_grad=True)
    y = x
    for _ in range(5):
        y = tg.sin(y)
    assert "<svg" in y._repr_html_()
    assert "<svg" not in tg.sin(y)._repr_html_()


def test_a_notebook_shows_a_value_under_a_transform():
    shown = []
    tg.jvp(lambda x: (shown.append(x._repr_html_()), x)[1], (tg.ones(2),), (tg.ones(2),))
    assert shown[0].startswith("<pre>")
    assert "<svg" not in shown[0]

"""The drawing of a graph in layers: no boxes overlap, no edge runs through a box."""

from itertools import combinations, pairwise

import numpy as np
import pytest

from tapegrad.show.layered_layout import _crossings, _spread, layered

pytestmark = pytest.mark.tapegrad_only("about this project's pictures")


def random_graph(rng, count):
    """Boxes of random widths; each but the first few reads one to three earlier ones."""
    sizes = [(float(rng.integers(40, 200)), 42.0) for _ in range(count)]
    edges = [
        (int(a), b)
        for b in range(3, count)
        for a in rng.integers(max(0, b - 12), b, rng.integers(1, 4))
    ]
    return sizes, edges


def rectangle(size, centre):
    (w, h), (x, y) = size, centre
    return x - w / 2, y - h / 2, x + w / 2, y + h / 2


def overlap(a, b):
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


@pytest.mark.parametrize("count", [1, 2, 10, 40])
def test_boxes_do_not_overlap_and_lie_within(rng, count):
    sizes, edges = random_graph(rng, count)
    layout = layered(sizes, edges)
    boxes = [rectangle(*pair) for pair in zip(sizes, layout.centres, strict=True)]
    assert not any(overlap(a, b) for a, b in combinations(boxes, 2))
    assert all(a >= -1e-9 and b >= -1e-9 for a, b, _, _ in boxes)
    assert all(c <= layout.width + 1e-9 and d <= layout.height + 1e-9 for _, _, c, d in boxes)


def test_edges_lead_down_from_box_to_box_and_through_none(rng):
    sizes, edges = random_graph(rng, 40)
    layout = layered(sizes, edges)
    boxes = [rectangle(*pair) for pair in zip(sizes, layout.centres, strict=True)]
    for (a, b), route in zip(edges, layout.routes, strict=True):
        assert route[0] == (layout.centres[a][0], boxes[a][3])
        x, y = route[-1]
        assert boxes[b][0] < x < boxes[b][2]
        assert y == boxes[b][1]
        heights = [y for _, y in route]
        assert heights == sorted(heights)
        for (x0, y0), (x1, y1) in pairwise(route):
            if x0 == x1:
                others = (box for k, box in enumerate(boxes) if k not in (a, b))
                assert not any(overlap((x0 - 1, y0, x0 + 1, y1), box) for box in others)
            else:  # it bends between layers alone
                assert not any(overlap((x0 - 1e4, y0, x0 + 1e4, y1), box) for box in boxes)


def test_edges_that_need_not_cross_do_not():
    sizes = [(40.0, 20.0)] * 6
    layout = layered(sizes, [(0, 5), (1, 4), (2, 3)])
    for a, b in [(0, 5), (1, 4), (2, 3)]:
        assert layout.centres[a][0] == layout.centres[b][0]


def test_crossings_are_counted():
    layers = [[0, 1], [2, 3]]
    assert _crossings(layers, [[3], [2], [], []]) == 1
    assert _crossings(layers, [[2], [3], [], []]) == 0
    assert _crossings(layers, [[2, 3], [2, 3], [], []]) == 1


def test_what_reads_nothing_stands_above_its_reader():
    sizes = [(40.0, 20.0)] * 5
    layout = layered(sizes, [(0, 2), (2, 3), (3, 4), (1, 4)])
    assert layout.centres[1][1] == layout.centres[3][1]


def test_places_are_the_nearest_to_the_wishes():
    """Two that want to stand at one place share the distance to it."""
    places = _spread([0, 1, 2], [50.0, 50.0, 500.0], [1.0, 1.0, 1.0], [20.0, 20.0, 20.0])
    np.testing.assert_allclose(places, [29.0, 71.0, 500.0])


def test_nothing_to_draw():
    assert layered([], []) == ([], [], 0.0, 0.0)

"""The graphs that the documents show are those of today."""

import xml.etree.ElementTree as ET

import pytest

from tests.pictures import FOLDER, PICTURES, drawn

pytestmark = pytest.mark.tapegrad_only("about this project")


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.__name__)
def test_a_picture_is_current(picture):
    kept = (FOLDER / f"{picture.__name__}.svg").read_text(encoding="utf-8")
    assert drawn(picture) == kept, "python -m tests.pictures"
    assert ET.fromstring(kept).tag.endswith("svg")


def test_every_picture_is_drawn():
    assert {path.stem for path in FOLDER.iterdir()} == {p.__name__ for p in PICTURES}

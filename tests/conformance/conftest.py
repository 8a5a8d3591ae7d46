"""Each test of the conformance suite records on a tape of its own: what others left costs time."""

import pytest

from tapegrad.tape.tape import Tape, current


@pytest.fixture(autouse=True)
def _own_tape(monkeypatch):
    monkeypatch.setattr(current, "tape", Tape())

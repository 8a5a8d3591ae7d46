"""What the tests of the compiled sweep share."""

import pytest

from tapegrad.autograd import sweep


@pytest.fixture
def never_in_python(monkeypatch):
    """A record that the compiled sweep leaves is an error."""

    def refuse(swept, index):
        if swept.work is not None:
            raise AssertionError(f"`{swept.tape.record(index).op}` is left to Python")
        return step(swept, index)

    step = sweep.Sweep._step
    monkeypatch.setattr(sweep.Sweep, "_step", refuse)

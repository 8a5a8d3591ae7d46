"""Plans of adjoints of Fourier transforms, of which records hold the addresses."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.dispatch import fourier_adjoint_plans as plans

pytestmark = pytest.mark.tapegrad_only("PyTorch has no plans")


def test_threads_that_plan_alike_share_one_plan(monkeypatch):
    """While one thread plans an adjoint, another one plans the same, and records it."""
    monkeypatch.setattr(plans, "_adjoints", {})
    made, found = plans._planned, []

    def planned(*args):
        if not found:
            found.append(None)
            found[0] = plans.adjoint(*args)
        return made(*args)

    monkeypatch.setattr(plans, "_planned", planned)
    place = plans.adjoint

    def noted(*args):
        found.append(place(*args))
        return found[-1]

    monkeypatch.setattr(plans, "adjoint", noted)
    x = tg.tensor(np.cos(np.arange(35.0)), requires_grad=True)
    tg.fft.rfft(x).real.square().sum().backward()
    assert len(found) > 2  # of the other thread, too
    assert len(set(found)) == 1

"""A Fourier transform in compiled code leaves behind what one in Python does."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.dispatch import call_plans
from tapegrad.functions import fourier
from tests.native.test_install import placed

pytestmark = [
    pytest.mark.tapegrad_only("about two ways to the same results"),
    pytest.mark.usefixtures("native", "fresh_tape"),
]

OF_REAL, OF_COMPLEX = ("fft", "rfft"), ("fft", "ifft", "irfft")
CASES = [(name, dtype) for name in OF_REAL for dtype in ("f8", "f4")]
CASES += [(name, "c16") for name in OF_COMPLEX]


@pytest.fixture
def plans(native, monkeypatch):
    """The plans of transforms, which are made at the first call."""
    found = {}
    monkeypatch.setattr(fourier, "plans", found)
    monkeypatch.setattr(fourier, "add_plan", found.__setitem__)
    monkeypatch.setattr(fourier, "is_due", lambda times: times == 1)
    call_plans._calls.clear()
    return found


def operand(shape, dtype, how):
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape)
    if dtype[0] == "c":
        x = x + 1j * rng.standard_normal(shape)
    return placed(x.astype(dtype), how)


@pytest.mark.parametrize("how", ["leaf", "result", "constant"])
@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
@pytest.mark.parametrize("shape", [(9,), (8,), (2,), (3, 5), (2, 0, 4), (2, 3, 4), (1024,)])
@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_transforms_of_the_last_dimension(name, dtype, shape, norm, how, plans, native):
    transform, x = getattr(tg.fft, name), operand(shape, dtype, how)
    theirs, ours = transform(x, norm=norm), transform(x, norm=norm)
    assert len(plans) == (1 if ours.numel() else 0)
    assert all(native.planned(plan, x) is not None for plan in plans.values())
    assert ours._a.tobytes() == theirs._a.tobytes()
    assert (ours.shape, ours.dtype, ours._s) == (theirs.shape, theirs.dtype, theirs._s)
    if how == "constant":
        return
    tape = theirs.tape.whole
    first, second = tape.index(theirs._pos), tape.index(ours._pos)
    assert tape.words()[first, [0, 4, 5]].tolist() == tape.words()[second, [0, 4, 5]].tolist()
    assert tape.keep[first] == tape.keep[second]


def test_other_transforms_have_no_plan(plans):
    for transform in (
        lambda: tg.fft.fft(operand((9, 2), "f8", "leaf"), dim=0),  # of too few lines for loops
        lambda: tg.fft.fft(operand((20000,), "f8", "leaf")),
        lambda: tg.fft.ifft(operand((3,), "c8", "leaf")),
    ):
        np.testing.assert_array_equal(transform().detach(), transform().detach())
    assert not plans


@pytest.mark.parametrize("shape", [(4, 6), (32, 32), (5, 8, 6)])
def test_several_dimensions(shape, plans, native):
    x = operand(shape, "f8", "leaf")
    for transform in (tg.fft.fft2, tg.fft.rfft2, lambda x: tg.fft.fft(x, dim=0)):
        plans.clear()
        theirs, ours = transform(x), transform(x)
        assert len(plans) == 1
        assert ours._a.tobytes() == theirs._a.tobytes()

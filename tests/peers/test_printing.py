"""Tensors print as PyTorch's do, under the same options."""

import re

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="compares with PyTorch: `make peers` installs it")

import tapegrad as tg  # noqa: E402

pytestmark = [pytest.mark.peer, pytest.mark.tapegrad_only("runs both libraries itself")]

RNG = np.random.default_rng(5)
ARRAYS = {
    "number": np.array(2.5),
    "whole number": np.array(3.0),
    "none": np.zeros((0,)),
    "no rows": np.zeros((0, 3), np.float32),
    "no integers": np.zeros(0, np.int64),
    "whole": np.array([1.0, -20.0, 300.0]),
    "far apart": np.array([1e-3, 5.0, 2e6]),
    "whole and far apart": np.array([1.0, 1e10]),
    "tiny": np.array([1e-7, 2e-7]),
    "not finite": np.array([np.nan, np.inf, -np.inf, 0.0, 1.5]),
    "nothing finite": np.array([np.nan, np.inf, 0.0]),
    "negative zero": np.array([-0.0, 1.0]),
    "a long row": RNG.normal(size=40),
    "a matrix": RNG.normal(size=(4, 5)),
    "long rows": RNG.normal(size=(2, 30)),
    "a cube": RNG.normal(size=(2, 3, 4)),
    "summarised": RNG.normal(size=1200),
    "a summarised matrix": RNG.normal(size=(50, 60)),
    "a summarised cube": RNG.normal(size=(12, 2, 60)),
    "float32": np.array([0.1, 0.25], np.float32),
    "float16": np.array([0.1, 1000.0], np.float16),
    "integers": np.array([[1, -20], [300, 4]]),
    "int32": np.array([1, 2], np.int32),
    "booleans": np.array([True, False]),
    "complex": np.array([1 + 2j, -3.5 - 0.25j]),
    "complex and whole": np.array([1 + 2j, 30 - 4j]),
    "complex64": np.array([0.5 - 1j], np.complex64),
    "a complex number": np.array(1 - 2.5j),
    "a long complex row": RNG.normal(size=30) + 1j * RNG.normal(size=30),
}
OPTIONS = {
    "as by default": {},
    "precise": {"precision": 8},
    "rounded": {"precision": 0},
    "narrow": {"linewidth": 40},
    "narrower than a number": {"linewidth": 5},
    "low threshold": {"threshold": 3, "edgeitems": 1},
    "no edges": {"threshold": 3, "edgeitems": 0},
    "wide edges": {"threshold": 10, "edgeitems": 4},
    "never scientific": {"sci_mode": False},
    "always scientific": {"sci_mode": True, "precision": 2},
    "short": {"profile": "short"},
    "full": {"profile": "full"},
    "full, but": {"profile": "full", "precision": 2, "linewidth": 100},
}


@pytest.fixture(autouse=True)
def defaults():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)
    torch.set_printoptions(profile="default")


BREAK = re.compile(r",\n {7}(?=dtype=|requires_grad=|grad_fn=|size=)")


def shown(x):
    """What a Tensor prints, in PyTorch's words.

    The name of a dtype is not as long as PyTorch's: where one is shown, notes are taken to one
    line.
    """
    text = repr(x).replace("<AddBackward0 object>", "<AddBackward0>")
    if "dtype=" in text:
        text = BREAK.sub(", ", text).replace("tapegrad.", "torch.")
    return text


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_arrays(options):
    torch.set_printoptions(**options)
    with tg.printoptions(**options):
        for name, array in ARRAYS.items():
            assert shown(tg.from_numpy(array)) == shown(torch.from_numpy(array)), name


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_notes_of_tensors_that_require_grad(options):
    torch.set_printoptions(**options)
    with tg.printoptions(**options):
        for n in range(1, 12):
            for dtype in ("float64", "float32"):
                ours, theirs = (
                    torch_or_tg.full((n,), 0.1, dtype=getattr(torch_or_tg, dtype)).requires_grad_()
                    for torch_or_tg in (tg, torch)
                )
                assert shown(ours) == shown(theirs)
                assert shown(ours + ours) == shown(theirs + theirs)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_options_that_are_left_out(options):
    before = {"precision": 3, "linewidth": 70, "sci_mode": True}
    torch.set_printoptions(profile="default", **before)
    torch.set_printoptions(**options)
    with tg.printoptions(**before):
        tg.set_printoptions(**options)
        assert tg.get_printoptions() == torch._tensor_str.get_printoptions()

"""Elementwise functions: those of the library, with the standard's promotion."""

import inspect

import pytest

import tapegrad as tg
from tapegrad import array_api as xp
from tapegrad.array_api import elementwise

pytestmark = pytest.mark.tapegrad_only("PyTorch has no namespace of the standard")


@pytest.mark.parametrize("name", elementwise.__all__)
def test_names(name):
    function = getattr(xp, name)
    assert (function.__doc__ or "").strip()
    kinds = [p.kind for p in inspect.signature(function).parameters.values()]
    count = len(kinds) - kinds.count(inspect.Parameter.KEYWORD_ONLY)
    if name.startswith(("bitwise", "logical")):
        assert function(*[xp.asarray([1, 0])] * count).shape == (2,)
        return
    x = xp.full(2, 0.5 + 0.5j if name == "imag" else 0.5).requires_grad_()
    found = function(*[x] * min(count, 2))
    assert found.shape == (2,)
    if found.requires_grad and name not in {"ceil", "floor", "round", "sign", "trunc"}:
        assert tg.autograd.grad(found.sum(), x)[0].shape == (2,)


def test_operands_without_dimensions_are_promoted():
    x, y = xp.ones(2, dtype=xp.float32), xp.asarray(2.0, dtype=xp.float64).requires_grad_()
    found = xp.multiply(x, y)
    assert found.dtype == xp.float64
    xp.sum(found).backward()
    assert y.grad.item() == 2.0
    assert xp.multiply(x, 2.0).dtype == xp.float32
    assert bool(xp.all(xp.less(xp.asarray([255], dtype=xp.uint8), xp.asarray(256))))


def test_clip_keeps_the_type():
    x = xp.asarray([0.0, 5.0], dtype=xp.float32)
    assert xp.clip(x).tolist() == [0.0, 5.0]
    found = xp.clip(x, 1, xp.asarray(2.0, dtype=xp.float64))
    assert (found.dtype, found.tolist()) == (xp.float32, [1.0, 2.0])

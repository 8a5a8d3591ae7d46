"""Types: promotion, kinds, limits."""

import pytest

from tapegrad import array_api as xp

pytestmark = pytest.mark.tapegrad_only("PyTorch has no namespace of the standard")


@pytest.mark.parametrize(
    ("kind", "types"),
    [
        ("bool", {"bool"}),
        ("unsigned integer", {"uint8", "uint16", "uint32", "uint64"}),
        (("real floating", "complex floating"), {"float32", "float64", "complex64", "complex128"}),
        (xp.int8, {"int8"}),
    ],
)
def test_kinds(kind, types):
    known = xp.__array_namespace_info__().dtypes()
    assert {name for name, t in known.items() if xp.isdtype(t, kind)} == types
    if not isinstance(kind, xp.dtype):
        assert set(xp.__array_namespace_info__().dtypes(kind=kind)) == types


def test_promotion():
    assert xp.result_type(xp.float32, xp.asarray(1, dtype=xp.float64)) == xp.float64
    assert xp.result_type(xp.int8, xp.uint8) == xp.int16
    assert xp.result_type(xp.float32, 1.0, 2j) == xp.complex64
    assert xp.can_cast(xp.int8, xp.int16)
    assert not xp.can_cast(xp.asarray(1.0), xp.float32)
    with pytest.raises(ValueError, match="needs a Tensor or a type"):
        xp.result_type(1, 2)
    with pytest.raises(TypeError, match="a kind is a type or one of"):
        xp.isdtype(xp.int8, "whole")


def test_limits():
    assert isinstance(xp.finfo(xp.complex64).eps, float)
    assert xp.finfo(xp.asarray(1.0)).dtype == xp.float64
    assert xp.iinfo(xp.asarray(1, dtype=xp.uint16)).max == 65535


def test_astype():
    x = xp.ones(2).requires_grad_()
    xp.sum(xp.astype(x, xp.float32)).backward()
    assert x.grad.tolist() == [1.0, 1.0]
    assert xp.astype(x, xp.float64, copy=False) is x
    assert xp.astype(x, xp.float64) is not x
    with pytest.raises(TypeError, match="loses the imaginary part"):
        xp.astype(xp.asarray(1j), xp.float64)

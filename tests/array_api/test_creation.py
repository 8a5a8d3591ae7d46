"""New Tensors by the standard's arguments, and what crosses over from other libraries."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import array_api as xp

pytestmark = pytest.mark.tapegrad_only("PyTorch has no namespace of the standard")


def test_asarray_keeps_history_and_shares_memory():
    x = tg.ones(2, requires_grad=True)
    assert xp.asarray(x) is x
    assert xp.asarray(x, dtype=xp.float64) is x
    assert xp.asarray(x, copy=True) is not x
    xp.sum(xp.asarray([[x, 2 * x], [x, x]])).backward()
    assert x.grad.tolist() == [5.0, 5.0]
    array = np.zeros(2)
    xp.asarray(array)[0] = 1.0
    assert array[0] == 1.0
    xp.asarray(array, copy=True)[1] = 1.0
    assert array[1] == 0.0
    with pytest.raises(ValueError, match="without a copy"):
        xp.asarray([1.0, 2.0], copy=False)
    with pytest.raises(ValueError, match="without a copy"):
        xp.asarray(x, dtype=xp.float32, copy=False)


def test_default_types_follow_the_default():
    try:
        tg.set_default_dtype(tg.float32)
        assert xp.zeros(1).dtype == xp.linspace(0, 1, 2).dtype == xp.float32
        assert xp.linspace(0, 1j, 2).dtype == xp.complex64
        found = xp.__array_namespace_info__().default_dtypes()
        assert (found["real floating"], found["complex floating"]) == (xp.float32, xp.complex64)
    finally:
        tg.set_default_dtype(tg.float64)
    assert xp.arange(3).dtype == xp.int64
    assert xp.arange(0, 1, 0.5).dtype == xp.eye(2).dtype == xp.float64


def test_only_the_cpu_is_a_device():
    x = xp.ones(2, device="cpu")
    assert x.device == xp.__array_namespace_info__().default_device()
    assert x.to_device("cpu") is x
    for call in (
        lambda: xp.zeros(2, device="cuda"),
        lambda: xp.asarray(x, device="cuda"),
        lambda: x.to_device("cuda"),
    ):
        with pytest.raises(RuntimeError, match="no device 'cuda'"):
            call()
    with pytest.raises(ValueError, match="no streams"):
        x.to_device("cpu", stream=1)


def test_memory_crosses_over_by_dlpack():
    x = xp.arange(3.0)
    array = np.from_dlpack(x)
    array[0] = 5.0
    assert x.tolist() == [5.0, 1.0, 2.0]
    back = tg.from_dlpack(array)
    back[1] = 7.0
    assert x.tolist() == [5.0, 7.0, 2.0]
    assert x.__dlpack_device__() == (1, 0)
    with pytest.raises(BufferError, match=r"export `t\.detach\(\)`"):
        np.from_dlpack(tg.ones(2, requires_grad=True))
    frozen = np.ones(2)
    frozen.flags.writeable = False
    tg.from_dlpack(frozen)[0] = 3.0
    assert frozen[0] == 1.0


def test_namespaces_of_earlier_editions():
    x = xp.ones(1)
    for edition in (None, "2022.12", "2024.12"):
        assert x.__array_namespace__(api_version=edition) is xp
    with pytest.raises(ValueError, match=r"up to 2024\.12"):
        x.__array_namespace__(api_version="2031.12")

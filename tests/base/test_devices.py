"""`device`: the CPU is accepted wherever PyTorch takes one, and nothing else is."""

import copy
import pickle

import numpy as np
import pytest

CPU = ["cpu", "device", None]


def makers(tg):
    """Every function that takes a device, called with one."""
    x = tg.ones(2)
    return {
        "tensor": lambda d: tg.tensor([1.0], device=d),
        "as_tensor": lambda d: tg.as_tensor([1.0], device=d),
        "as_tensor of an array": lambda d: tg.as_tensor(np.ones(2), device=d),
        "asarray": lambda d: tg.asarray([1.0], device=d),
        "zeros": lambda d: tg.zeros(2, device=d),
        "ones": lambda d: tg.ones(2, device=d),
        "empty": lambda d: tg.empty(2, device=d),
        "full": lambda d: tg.full((2,), 1.0, device=d),
        "zeros_like": lambda d: tg.zeros_like(x, device=d),
        "ones_like": lambda d: tg.ones_like(x, device=d),
        "empty_like": lambda d: tg.empty_like(x, device=d),
        "full_like": lambda d: tg.full_like(x, 1.0, device=d),
        "arange": lambda d: tg.arange(3, device=d),
        "linspace": lambda d: tg.linspace(0, 1, 3, device=d),
        "eye": lambda d: tg.eye(2, device=d),
        "rand": lambda d: tg.rand(2, device=d),
        "randn": lambda d: tg.randn(2, device=d),
        "randint": lambda d: tg.randint(0, 3, (2,), device=d),
        "randperm": lambda d: tg.randperm(3, device=d),
        "normal": lambda d: tg.normal(0.0, 1.0, (2,), device=d),
        "rand_like": lambda d: tg.rand_like(x, device=d),
        "randn_like": lambda d: tg.randn_like(x, device=d),
        "randint_like": lambda d: tg.randint_like(x, 3, device=d),
        "new_zeros": lambda d: x.new_zeros(2, device=d),
        "new_ones": lambda d: x.new_ones(2, device=d),
        "new_empty": lambda d: x.new_empty(2, device=d),
        "new_full": lambda d: x.new_full((2,), 1.0, device=d),
        "new_tensor": lambda d: x.new_tensor([1.0], device=d),
        "to": lambda d: x.to(device=d),
    }


NAMES = [
    "tensor", "as_tensor", "as_tensor of an array", "asarray", "zeros", "ones", "empty", "full",
    "zeros_like", "ones_like", "empty_like", "full_like", "arange", "linspace", "eye", "rand",
    "randn", "randint", "randperm", "normal", "rand_like", "randn_like", "randint_like",
    "new_zeros", "new_ones", "new_empty", "new_full", "new_tensor", "to",
]  # fmt: skip


@pytest.mark.parametrize("given", CPU)
@pytest.mark.parametrize("name", NAMES)
def test_the_cpu_is_accepted(tg, name, given):
    made = makers(tg)[name](tg.device("cpu") if given == "device" else given)
    assert made.device == tg.device("cpu")


@pytest.mark.tapegrad_only("PyTorch may have been built with other devices")
@pytest.mark.parametrize("name", NAMES)
def test_another_is_refused(tg, name):
    for other in ("cuda", "mps", "cuda:0", "cpu:1", 0):
        with pytest.raises(RuntimeError, match="computes on the CPU, there is no device"):
            makers(tg)[name](other)


def test_every_maker_is_named(tg):
    assert set(makers(tg)) == set(NAMES)


def test_to_takes_devices_and_dtypes_in_pytorchs_orders(tg):
    x = tg.ones(2)
    cpu = tg.device("cpu")
    assert x.to("cpu") is x
    assert x.to(cpu) is x
    assert x.to(cpu, tg.float32).dtype == tg.float32
    assert x.to("cpu", tg.float32, True).dtype == tg.float32
    assert x.to(cpu, non_blocking=True) is x
    assert x.to(x.dtype, False, True) is not x
    assert x.to(x, copy=True) is not x
    assert x.cpu() is x


def test_what_a_device_is(tg):
    cpu = tg.device("cpu")
    assert cpu == tg.device("cpu")
    assert cpu != tg.device("cpu", 0)
    assert tg.device("cpu", 0) == tg.device("cpu:0") == tg.device(type="cpu", index=0)
    assert tg.device(cpu) == cpu
    assert len({cpu, tg.device("cpu"), tg.device("cpu:0")}) == 2
    assert (cpu.type, cpu.index, str(cpu), str(tg.device("cpu:0"))) == ("cpu", None, "cpu", "cpu:0")
    assert repr(cpu) == "device(type='cpu')"
    assert pickle.loads(pickle.dumps(tg.device("cpu:0"))) == tg.device("cpu:0")
    assert copy.deepcopy(cpu) == cpu


def test_a_tensor_says_where_it_is(tg, leaf):
    y = leaf([1.0]) * 2
    assert y.device == tg.device("cpu")
    assert y.is_cpu
    assert not y.is_cuda
    assert y.device.type == "cpu"


def test_the_stock_line_of_programs_finds_the_cpu(tg):
    device = tg.device("cuda" if tg.cuda.is_available() else "cpu")
    assert tg.ones(1, device=device).device.type == "cpu"
    assert tg.cuda.device_count() == 0


def test_the_device_of_what_a_transform_sees(tg):
    def f(x):
        return x * tg.ones(2, device=x.device)

    assert tg.func.grad(lambda x: f(x).sum())(tg.ones(2)).tolist() == [1.0, 1.0]
    assert tg.func.vmap(f)(tg.ones(3, 2)).shape == (3, 2)

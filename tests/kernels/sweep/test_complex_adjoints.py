"""The compiled sweep does with complex numbers what the rules in Python do."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.kernels.codegen import complex_rules
from tapegrad.ops.core import ELEMENTWISE, table
from tests.kernels.sweep.test_compiled_sweep import both

pytestmark = pytest.mark.tapegrad_only("compares the compiled sweep with the one in Python")


def numbers(*shape, dtype=tg.complex128):
    return (tg.randn(*shape, dtype=dtype) * 0.7).requires_grad_()


def weighed(y):
    """A number that depends on each part of each element in its own way."""
    pairs = tg.view_as_real(y) if y.is_complex() else y
    return (pairs * tg.linspace(0.5, 1.5, pairs.numel(), dtype=pairs.dtype).view_as(pairs)).sum()


WAYS = [
    pytest.param(op, mixed, id=f"{op.name}-{mixed:b}")
    for op in table.values()
    for mixed in complex_rules.mixtures(op)
]


@pytest.mark.parametrize(("op", "mixed"), WAYS)
def test_each_operation(op, mixed, never_in_python):
    def build():
        inputs = [
            tg.tensor([True, False, True]) if kind == "condition"
            else numbers(3, dtype=tg.complex128 if mixed >> k + 1 & 1 else tg.float64)
            for k, kind in enumerate(op.inputs)
        ]  # fmt: skip
        return weighed(op(*inputs)), [x for x in inputs if x.requires_grad]

    both(build, tolerance=1e-11)


def test_nearly_all_have_kernels():
    names = {
        op.name
        for op in table.values()
        if op.kind is ELEMENTWISE and op.complex and len(op.inputs) < 4
    }
    found = {param.values[0].name for param in WAYS}
    assert not names - found, names - found


CASES = {
    "sum": lambda z, w: z.sum(),
    "sum of rows": lambda z, w: z.sum(-1),
    "sum of columns": lambda z, w: z.sum(0),
    "mean": lambda z, w: z.mean(0),
    "views": lambda z, w: z.T[1:, ::2].reshape(-1).unsqueeze(0).expand(2, -1),
    "reversed": lambda z, w: z.flip(0),
    "joined": lambda z, w: tg.cat([z, w, z * w], 1),
    "stacked": lambda z, w: tg.stack([z, w], -1),
    "parts": lambda z, w: tg.complex(z.real, w.imag) * tg.view_as_complex(tg.view_as_real(z)),
    "products": lambda z, w: z @ w.T,
    "a matrix and a vector": lambda z, w: z @ w[0],
    "a vector and a matrix": lambda z, w: w[:, 0] @ z,
    "inner": lambda z, w: tg.vdot(z.reshape(-1), w.reshape(-1)),
    "a batch": lambda z, w: tg.stack([z, w]) @ z.conj().T,
    "one for all": lambda z, w: z @ tg.stack([w, z]).mT,
    "rows and columns": lambda z, w: z[:, None, :1] * w[0] - z[:1].real[:, None] + w[:, :1, None],
    "one number": lambda z, w: z * w[0, 0] + w[0, 1].real * 2j - 1 / z[1, 1],
    "numbers of Python": lambda z, w: (2 - z) * 1j / 3 + z**3,
    "phases": lambda z, w: tg.exp(1j * z.real) * tg.polar(w.real, z.angle()),
}


TRANSFORMS = {
    "rows": lambda z, w: tg.fft.fft(z) * tg.fft.ifft(w, norm="ortho"),
    "of real numbers": lambda z, w: tg.fft.rfft(z.real) * tg.fft.fft(w.imag)[:, :3],
    "to real numbers": lambda z, w: tg.fft.irfft(z, 6) * tg.fft.irfft(w, 7, norm="forward")[:, :6],
    "half of them": lambda z, w: tg.fft.hfft(z) + tg.fft.ihfft(w.real).abs().mean(),
    "one line": lambda z, w: tg.fft.fft(z[0]) * tg.fft.rfft(w[0].real, 7),
    "both dimensions": lambda z, w: tg.fft.fft2(z.tile(4, 4)) * tg.fft.ifft2(w.tile(4, 4)),
    "both of real numbers": lambda z, w: tg.fft.rfft2(z.tile(4, 4).real),
    "a filter": lambda z, w: tg.fft.irfft(tg.fft.rfft(z.real) * w[:, :3]),
}


@pytest.mark.parametrize("dtype", [tg.complex128, tg.complex64], ids=str)
@pytest.mark.parametrize("case", TRANSFORMS)
def test_fourier_transforms(case, dtype, never_in_python):
    def build():
        z, w = numbers(3, 4, dtype=dtype), numbers(3, 4, dtype=dtype)
        return weighed(TRANSFORMS[case](z * 1, w * 1)), [z, w]

    both(build, tolerance=1e-11 if dtype is tg.complex128 else 2e-5, allow_unused=True)


@pytest.mark.parametrize("dtype", [tg.complex128, tg.complex64], ids=str)
@pytest.mark.parametrize("case", CASES)
def test_what_moves_and_adds_up(case, dtype, never_in_python):
    def build():
        z, w = numbers(3, 4, dtype=dtype), numbers(3, 4, dtype=dtype)
        return weighed(CASES[case](z, w)), [z, w]

    both(build, tolerance=1e-11 if dtype is tg.complex128 else 2e-5, allow_unused=True)


@pytest.mark.parametrize("dtype", [tg.complex128, tg.complex64], ids=str)
@pytest.mark.parametrize("seed", range(6))
def test_random_graphs(seed, dtype):
    """Also with records between that Python does, and adjoints in both."""

    def build():
        rng = np.random.default_rng(seed)
        leaves = [numbers(3, 4, dtype=dtype), numbers(4, dtype=dtype), numbers(3, 1, dtype=dtype)]
        leaves.append(leaves[0].detach().real.clone().requires_grad_())
        pool = list(leaves)
        for _ in range(25):
            x, y = (pool[int(rng.integers(len(pool)))] for _ in range(2))
            kind = int(rng.integers(6))
            makes = (
                lambda x, y: tg.tanh(x * 0.3) * y,
                lambda x, y: x - y.conj(),
                lambda x, y: tg.fft.fft(x + y) / 4,
                lambda x, y: x.abs() + y,
                lambda x, y: x.real * y / 2,
                lambda x, y: x.mean(0, keepdim=True) * tg.exp(0.2j * y),
            )
            pool.append(makes[kind](x, y))
        return sum(weighed(x) for x in pool), leaves

    both(build, tolerance=1e-10 if dtype is tg.complex128 else 1e-3)


def test_zeros_are_strong():
    """A zero of an adjoint, or of a factor of a product of matrices, contributes zero."""
    z = tg.tensor([[1 + 1j, complex("inf")], [0, 2]], requires_grad=True)
    w = tg.tensor([[0j, 1], [1, 1]], requires_grad=True)
    both(lambda: (((z @ w) * tg.tensor([[1.0, 0.0], [0.0, 0.0]])).real[0, 0], [w]))


def test_what_is_too_large_for_it():
    both(lambda: (weighed((z := numbers(9000)) * z.conj()), [z]))
    both(lambda: (weighed((z := numbers(100, 60)) @ z.T), [z]))


def test_second_derivatives_through_real_operands():
    x, z = numbers(3, dtype=tg.float64), numbers(3)
    tg.autograd.gradgradcheck(lambda x, z: (tg.exp(1j * x) * z / (2 + x * z)).abs(), (x, z))


def test_gradients_accumulate():
    z = numbers(4)
    for times in range(1, 4):
        (z * z).real.sum().backward()
        np.testing.assert_allclose(z.grad.numpy(), times * 2 * z.conj().detach().numpy())
    assert z.grad.dtype == tg.complex128

"""Complex numbers: norms and variances are real, and what needs an order refuses them."""

import numpy as np
import pytest

Z = np.array([1 + 2j, -0.5 + 1j, 3 - 2j])
W = np.array([[1 + 2j, -0.5 + 1j, 3 - 2j], [2j, 1.5, -1 - 1j]])


@pytest.mark.parametrize("p", [2, 1, 0, 3, float("inf"), float("-inf")])
@pytest.mark.parametrize("dim", [None, 0, (0, 1)], ids=repr)
def test_norm(tg, p, dim):
    found = tg.tensor(W).norm(p, dim)
    expected = tg.tensor(np.abs(W)).norm(p, dim)
    assert found.dtype == tg.float64
    np.testing.assert_allclose(found.numpy(), expected.numpy())


@pytest.mark.parametrize("correction", [0, 1])
@pytest.mark.parametrize("dim", [None, 1], ids=repr)
def test_var_and_std(tg, dim, correction):
    z = tg.tensor(W)
    expected = np.var(W, dim, ddof=correction)
    np.testing.assert_allclose(tg.var(z, dim, correction=correction).numpy(), expected)
    np.testing.assert_allclose(z.std(dim, correction=correction).numpy(), np.sqrt(expected))
    assert z.var().dtype == tg.float64
    assert tg.tensor(W.astype(np.complex64)).std().dtype == tg.float32


def test_parts(tg):
    z = tg.tensor(Z)
    np.testing.assert_array_equal(z.real.numpy(), Z.real)
    np.testing.assert_array_equal(z.imag.numpy(), Z.imag)
    x = tg.tensor([1.0])
    assert x.real is x
    with pytest.raises(RuntimeError, match=r"imag.* is not"):
        x.imag  # noqa: B018
    z.mul_(2)
    np.testing.assert_array_equal(z.detach().real.numpy(), 2 * Z.real)


def test_a_part_is_a_view(tg):
    z, factor = tg.tensor(Z), tg.tensor(2.0, requires_grad=True)
    z.real.mul_(factor)
    np.testing.assert_array_equal(z.detach().numpy(), 2 * Z.real + 1j * Z.imag)
    (z.abs() ** 2).sum().backward()
    np.testing.assert_allclose(factor.grad.item(), np.sum(4 * Z.real**2))


def test_conventions_at_zero(tg):
    z = tg.tensor([0j, 3 + 4j], requires_grad=True)
    (z.abs().sum() + z.angle().sum()).backward()
    np.testing.assert_allclose(z.grad.numpy(), [0, 0.6 + 0.8j + (-0.16 + 0.12j)])


def test_a_gradient_is_dx_plus_i_dy(tg):
    z = tg.tensor(Z, requires_grad=True)
    (z * z).real.sum().backward()
    np.testing.assert_allclose(z.grad.numpy(), 2 * Z.conj())
    w = tg.tensor([1.0, 2.0, 3.0], dtype=tg.float64, requires_grad=True)
    (w * tg.tensor(Z)).imag.sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), Z.imag)


def test_a_complex_root_needs_a_weight(tg):
    z = tg.tensor(1 + 2j, requires_grad=True)
    with pytest.raises(RuntimeError, match="only for real scalar outputs but got"):
        (z * z).backward()
    (z * z).backward(tg.tensor(1 + 0j))
    assert z.grad.item() == 2 - 4j


def test_made_of_parts(tg):
    a, b = tg.tensor([3.0], requires_grad=True), tg.tensor([0.5], requires_grad=True)
    z = tg.polar(a, b)
    assert z.dtype == (tg.complex64 if a.dtype == tg.float32 else tg.complex128)
    (tg.complex(b, a) * z).abs().sum().backward()
    size = np.hypot(3.0, 0.5)
    np.testing.assert_allclose(a.grad.numpy(), [size + 9 / size], rtol=1e-6)
    np.testing.assert_allclose(b.grad.numpy(), [1.5 / size], rtol=1e-6)
    with pytest.raises(RuntimeError):
        tg.complex(a, a.int())
    with pytest.raises(RuntimeError):
        tg.view_as_complex(tg.zeros(3))
    with pytest.raises(RuntimeError):
        tg.view_as_real(tg.zeros(3))


@pytest.mark.parametrize(("shape", "dim"), [((4, 3, 2), 0), ((3, 4, 2), 1), ((2, 5, 4, 3, 2), 2)])
def test_pairs_as_complex_numbers_under_vmap(tg, shape, dim):
    x = tg.randn(*shape)
    found = tg.func.vmap(tg.view_as_complex, in_dims=dim)(x)
    assert tg.equal(tg.view_as_real(found), x.movedim(dim, 0))
    apart = tg.func.vmap(tg.view_as_complex, in_dims=1)
    with pytest.raises(RuntimeError):
        apart(tg.randn(2, 4))  # the parts of an example have the others' between them


def test_complex_powers_of_negative_numbers(tg):
    base = tg.tensor([-1.0, -2.0, 2.0]).double().requires_grad_()
    exponent = tg.tensor([0.3 + 0.2j, 1 - 0.5j, 2 + 0.1j]).to(tg.complex128).requires_grad_()
    assert tg.autograd.gradcheck(lambda b, e: b**e, (base, exponent))
    assert tg.autograd.gradcheck(lambda e: tg.pow(-2.0, e), (exponent,))


REFUSED = {
    "lt": lambda tg, z: z < z,
    "ge a number": lambda tg, z: z >= 0,
    "maximum": lambda tg, z: tg.maximum(z, z),
    "clamp": lambda tg, z: z.clamp(0, 1),
    "clamp_": lambda tg, z: z.clamp_(min=0),
    "relu": lambda tg, z: tg.relu(z),
    "sign": lambda tg, z: z.sign(),
    "floor": lambda tg, z: z.floor(),
    "floor_divide": lambda tg, z: z // z,
    "remainder": lambda tg, z: z % 2,
    "atan2": lambda tg, z: tg.atan2(z, z),
    "max": lambda tg, z: z.max(),
    "max along": lambda tg, z: z.max(0),
    "amax": lambda tg, z: z.amax(),
    "argmin": lambda tg, z: z.argmin(),
    "sort": lambda tg, z: z.sort(),
    "argsort": lambda tg, z: z.argsort(),
    "softmax": lambda tg, z: z.softmax(0),
    "mse_loss": lambda tg, z: tg.nn.functional.mse_loss(z, z),
}


@pytest.mark.parametrize("use", REFUSED.values(), ids=list(REFUSED))
def test_what_needs_an_order_refuses(tg, use):
    with pytest.raises(RuntimeError, match=r"not|complex|Complex"):
        use(tg, tg.tensor(Z))


BITS = {"&": lambda x: x & x, "|": lambda x: x | 1, "<<": lambda x: x << 1, "~": lambda x: ~x}


@pytest.mark.parametrize("use", [
    pytest.param(use, id=name,
                 marks=[pytest.mark.tapegrad_only("PyTorch raises a TypeError")] * (name == "~"))
    for name, use in BITS.items() if name != "<<"
])  # fmt: skip
def test_floats_have_no_bits(tg, use):
    with pytest.raises(RuntimeError, match="not"):
        use(tg.tensor([1.0, 2.0]))


@pytest.mark.parametrize("dtype", ["float64", "complex128", "bool"])
@pytest.mark.parametrize("name", ["H", "mT", "mH"])
def test_transposes_are_of_matrices(tg, name, dtype):
    kind = getattr(tg, dtype)
    assert getattr(tg.ones(2, 3, dtype=kind), name).shape == (3, 2)
    with pytest.raises(RuntimeError):
        getattr(tg.ones(2, dtype=kind), name)
    batch = tg.ones(4, 2, 3, dtype=kind)
    if name == "H":
        with pytest.raises(RuntimeError, match="H"):
            batch.H  # noqa: B018
    else:
        assert getattr(batch, name).shape == (4, 3, 2)

"""Numbers that make Tensors are plain: a gradient that would be lost is refused, or warned of."""

import numpy as np
import pytest

TAKE_NUMBERS = {
    "full": lambda tg, t: tg.full((2,), t),
    "full_like": lambda tg, t: tg.full_like(tg.ones(2), t),
    "new_full": lambda tg, t: tg.ones(1).new_full((2,), t),
    "scalar_tensor": lambda tg, t: tg.scalar_tensor(t),
    "arange": lambda tg, t: tg.arange(0, t),
    "range": lambda tg, t: tg.range(0, t),
    "logspace base": lambda tg, t: tg.logspace(0, 1, 3, base=t),
    "histc": lambda tg, t: tg.histc(tg.ones(3), 2, 0, t),
    "softplus": lambda tg, t: tg.nn.functional.softplus(tg.ones(2), t),
}


@pytest.mark.parametrize("name", TAKE_NUMBERS)
@pytest.mark.filterwarnings("ignore:torch.range is deprecated")
def test_a_number_with_a_gradient_is_refused(tg, name):
    t = tg.tensor(2.0, requires_grad=True)
    for given in (t, t * 1):
        with pytest.raises(TypeError):
            TAKE_NUMBERS[name](tg, given)
    found = TAKE_NUMBERS[name](tg, t.detach())
    assert found.tolist() == TAKE_NUMBERS[name](tg, 2.0).tolist()


@pytest.mark.tapegrad_only("PyTorch lets it pass")
def test_so_are_the_ends_of_a_range(tg):
    t = tg.tensor(2.0, requires_grad=True)
    for function in (tg.linspace, tg.logspace):
        with pytest.raises(TypeError, match="would lose its gradient"):
            function(0, t, 3)
        assert function(0, t.detach(), 3).tolist() == function(0, 2.0, 3).tolist()


@pytest.mark.tapegrad_only("PyTorch warns once in a program")
def test_a_copy_of_values_that_have_a_history_warns(tg):
    t = tg.tensor([1.0, 2.0], requires_grad=True)
    for data in (t, t * 1, [t[0], t[1]], [[t[0], 3.0], [4.0, t[1]]]):
        with pytest.warns(UserWarning, match="without its history: use `tapegrad.stack`"):
            assert not tg.tensor(data).requires_grad
    with tg.no_grad():
        assert tg.tensor(t).tolist() == tg.tensor([t[0], t[1]]).tolist() == [1.0, 2.0]
    assert tg.tensor([t[0].detach(), 5.0]).tolist() == [1.0, 5.0]


@pytest.mark.tapegrad_only("PyTorch refuses factors that require grad")
@pytest.mark.parametrize("value", [0.0, 1.0, 2.0])
def test_a_factor_has_a_gradient_whatever_it_is(tg, value):
    m = tg.ones(2, 2)
    for name in ("alpha", "beta"):
        t = tg.tensor(value, requires_grad=True)
        tg.addmm(m, m, m, **{name: t}).sum().backward()
        assert t.grad.item() == (8.0 if name == "alpha" else 4.0)


def test_powers_are_those_of_numpy(tg):
    found = tg.logspace(-1, 2, 7, base=3.0)
    np.testing.assert_allclose(found.numpy(), np.logspace(-1, 2, 7, base=3.0), rtol=1e-6)

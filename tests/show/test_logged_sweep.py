"""`tg.show.sweep`: the numbers are those of `autograd.grad`, and nothing is changed."""

import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("about the tape")


def leaf(rng, *shape, dtype=None):
    return tg.tensor(rng.uniform(0.5, 1.5, shape), requires_grad=True, dtype=dtype)


class Two(tg.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b, a + b

    @staticmethod
    def backward(ctx, g, h):
        a, b = ctx.saved_tensors
        return g * b + h, g * a + h


def product_and_sum(a, b):
    p, q = Two.apply(a, b)
    return (p * q).sum()


def in_place(a, b):
    y = a * b
    y[0].mul_(b[0])
    return (y * y).sum()


PROGRAMS = {
    "elementwise": lambda a, b: (tg.exp(a) * b / tg.sqrt(b) - a**3).sum(),
    "reused": lambda a, b: ((a * b) * (a * b) * a).sum(),
    "broadcast": lambda a, b: (a * b[0, 0] + b[:, :1]).mean(),
    "products": lambda a, b: tg.trace(a @ b @ a),
    "rows": lambda a, b: tg.log_softmax(a @ b, 1)[:, 0].sum() + tg.logsumexp(b, 0)[1],
    "choices": lambda a, b: tg.maximum(a, b).sum() + tg.where(a > 1, a, b).prod(),
    "lists": lambda a, b: tg.stack([a, b, a]).cumsum(0)[1:].sum(),
    "systems": lambda a, b: tg.linalg.solve(a + a.mT + a @ a, b).square().sum(),
    "function": product_and_sum,
    "in place": in_place,
    "checkpoint": lambda a, b: tg.checkpoint(lambda x: tg.sin(x) * b)(a).sum() * a[0, 0],
    "jit": lambda a, b: tg.jit(lambda x, y: (tg.sin(x) * y).sum())(a, b) * b[0, 0],
}


def state(y):
    tape = y.tape.whole
    return (
        tape.words().tobytes(), [id(entry) for entry in tape.keep[: len(tape)]], tape.sweeping,
        [id(t) for t in tape.leaves], tape.enabled, tape.mode,
    )  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("dtype", [tg.float64, tg.float32])
def test_adjoints_are_those_of_grad(name, dtype, rng):
    a, b = leaf(rng, 3, 3, dtype=dtype), leaf(rng, 3, 3, dtype=dtype)
    y = PROGRAMS[name](a, b)
    before = state(y)
    steps = tg.show.sweep(y, a=a, b=b)
    assert state(y) == before
    assert (a.grad, b.grad) == (None, None)
    wanted = tg.autograd.grad(y, (a, b), retain_graph=True)
    for found, g in zip((steps.gradients["a"], steps.gradients["b"]), wanted, strict=True):
        np.testing.assert_allclose(found, g.numpy(), rtol=1e-5 if dtype is tg.float32 else 1e-13)
        assert found.dtype == g.numpy().dtype
    y.backward()  # nothing was released


def test_every_step_is_consistent(rng):
    """The adjoint of a record is the sum of what its readers add, and that is a product."""
    a, b = leaf(rng), leaf(rng)
    y = tg.exp(a * b) * (a * b) - tg.sin(a) / b
    added = {str(y.position): 1.0}
    for step in tg.show.sweep(y, a=a, b=b):
        assert step.adjoint == pytest.approx(added[step.result])
        for c in step.operands:
            assert c.adds == pytest.approx(step.adjoint * c.derivative)
            added[c.source] = added.get(c.source, 0.0) + float(c.adds)
            assert c.total == pytest.approx(added[c.source])
    wanted = tg.autograd.grad(y, (a, b))
    assert [added["a"], added["b"]] == pytest.approx([g.item() for g in wanted])


def test_adjoints_of_intermediate_values(rng):
    x = leaf(rng, 3)
    h = tg.exp(x)
    u = h * h
    y = (u * h).sum()
    found = {s.result: s.adjoint for s in tg.show.sweep(y, h=h, u=u)}
    for name, g in zip("hu", tg.autograd.grad(y, (h, u)), strict=True):
        np.testing.assert_allclose(found[name], g.numpy(), rtol=1e-14)


def test_values_are_those_that_were_computed(rng):
    """Those that no record has kept are computed again."""
    x, w = leaf(rng, 2), leaf(rng, 2)
    values = {"p": x * w, "x": x}
    values["q"] = values["p"] - x
    values["r"] = tg.exp(values["q"])
    values["s"] = values["r"].sum(0)
    y = values["s"] * 2.0
    for step in tg.show.sweep(y, {"x": x}):
        names = [name for name, t in values.items() if t.position == step.position]
        if names:
            np.testing.assert_allclose(step.value, values[names[0]].detach().numpy(), rtol=1e-15)
        for c in step.operands:
            if c.source == "x":
                np.testing.assert_array_equal(c.value, x.detach().numpy())


def test_memory_that_was_changed_since_tells_no_value():
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    y = (x + 1.0).sum()
    with tg.no_grad():
        x.mul_(10.0)
    steps = tg.show.sweep(y, x=x)
    assert steps[1].operands[0].value is None
    assert "not kept" in str(steps[1])
    assert steps.gradients["x"].tolist() == [1.0, 1.0]


def test_formulas_and_local_derivatives():
    x, w = tg.tensor(2.0, requires_grad=True), tg.tensor([3.0, 4.0], requires_grad=True)
    y = (x / w).sum()
    total, quotient = tg.show.sweep(y, x=x, w=w)
    assert total.operands[0].formula == "transpose of sum"
    assert total.operands[0].derivative.tolist() == [1.0, 1.0]
    assert [c.formula for c in quotient.operands] == ["1 / b", "-(a / b) / b"]
    np.testing.assert_allclose(quotient.operands[1].derivative, [-2 / 9, -2 / 16])
    assert [c.operand for c in quotient.operands] == ["a", "b"]
    assert quotient.grad_name == "DivBackward0"


def test_a_constant_gets_nothing():
    x, c = tg.tensor(2.0, requires_grad=True), tg.tensor(5.0)
    (step,) = tg.show.sweep(x * c, x=x, c=c)
    assert [o.source for o in step.operands] == ["x", "c"]
    assert step.operands[1].value == 5.0
    assert step.operands[1].adds is None


def test_a_function_with_several_results():
    a, b = (tg.tensor(v, requires_grad=True) for v in (2.0, 3.0))
    p, q = Two.apply(a, b)
    steps = tg.show.sweep(p * q, a=a, b=b, p=p, q=q)
    assert [s.op for s in steps] == ["mul", "Two", "Two", "Two"]
    assert [g.item() for g in steps[3].adjoints] == [5.0, 6.0]
    assert [o.formula for o in steps[3].operands] == ["backward of Two"] * 2
    assert {s.result for s in steps[1:3]} == {"p", "q"}


def test_a_seed_for_what_is_no_number(rng):
    x = leaf(rng, 3)
    v = tg.tensor([1.0, 10.0, 100.0])
    steps = tg.show.sweep(x * x, gradient=v, x=x)
    assert steps.seed.tolist() == [1.0, 10.0, 100.0]
    np.testing.assert_allclose(steps.gradients["x"], 2 * v.numpy() * x.detach().numpy())
    with pytest.raises(RuntimeError, match=r"of `sweep` has the shape \(3,\).*pass `gradient`"):
        tg.show.sweep(x * x)


def test_complex_numbers():
    z = tg.tensor(1.0 + 2.0j, requires_grad=True)
    y = (z * z).abs()
    (wanted,) = tg.autograd.grad(y, z, retain_graph=True)
    found = tg.show.sweep(y, z=z)
    np.testing.assert_allclose(found.gradients["z"], wanted.numpy())
    assert "1+2j" in str(found)


def test_hooks_are_called_and_nothing_is_retained():
    x = tg.tensor(1.0, requires_grad=True)
    h = 2 * x
    y = h * h
    h.retain_grad()
    h.register_hook(lambda g: 10 * g)
    x.register_hook(lambda g: g + 1)
    ended = []
    tg.autograd.graph.register_multi_grad_hook((x, h), ended.append)
    steps = tg.show.sweep(y, x=x, h=h)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert (h.grad, x.grad) == (None, None)
    assert steps[1].adjoint == 40.0
    assert steps.gradients["x"] == 81.0
    assert len(ended) == 1
    y.backward()
    assert (h.grad.item(), x.grad.item()) == (40.0, 81.0)


def test_hooks_on_nodes_are_called():
    x = tg.tensor(1.0, requires_grad=True)
    y = tg.exp(3 * x)
    y.grad_fn.register_hook(lambda inputs, outputs: (100 * inputs[0],))
    (wanted,) = tg.autograd.grad(y, x, retain_graph=True)
    assert tg.show.sweep(y, x=x).gradients["x"] == pytest.approx(wanted.item())


def test_what_hooks_have_packed_stays_packed():
    x = tg.tensor(3.0, requires_grad=True)
    with tg.autograd.graph.saved_tensors_hooks(lambda t: t.numpy(force=True), tg.tensor):
        y = x * x
    before = state(y)
    assert tg.show.sweep(y, x=x).gradients["x"] == 6.0
    assert state(y) == before


def test_a_released_graph_is_refused():
    x = tg.tensor(1.0, requires_grad=True)
    y = tg.exp(x)
    y.backward()
    with pytest.raises(RuntimeError, match="show it before `backward`"):
        tg.show.sweep(y)
    assert y.tape.whole.sweeping == 0


def test_a_changed_value_is_refused_as_by_backward():
    x = tg.tensor([1.0], requires_grad=True)
    y = tg.exp(x)
    z = y.sum()
    y.add_(1.0)
    with pytest.raises(RuntimeError, match="has been modified by an inplace operation"):
        tg.show.sweep(z)


def test_another_threads_graph_is_refused():
    with ThreadPoolExecutor(1) as thread:
        y = thread.submit(lambda: tg.exp(tg.tensor(1.0, requires_grad=True))).result()
        with pytest.raises(RuntimeError, match="`sweep`: this graph was recorded by another"):
            tg.show.sweep(y)


def test_refusals():
    x = tg.tensor(1.0, requires_grad=True)
    with pytest.raises(ValueError, match=r"`sweep`: this Tensor of shape \(\) stands on no tape"):
        tg.show.sweep(x)
    with pytest.raises(TypeError, match="`sweep` takes a Tensor, got float"):
        tg.show.sweep(1.0)
    with pytest.raises(TypeError, match="`gradient` takes Tensors or None, got int"):
        tg.show.sweep(tg.exp(x), gradient=[1])

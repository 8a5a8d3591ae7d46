"""Gradients of many pieces that are taken from one array, or joined to one."""

import numpy as np
import pytest

from tapegrad.autograd.adjoints import Adjoints

X = np.linspace(-1.0, 2.0, 200_000).reshape(400, 500)


def rows(x):
    return x.unbind(0)


def parts(x):
    return x.split([150, 1, 49, 200])


def columns(x):
    return x.chunk(7, 1)


def overlapping(x):
    return [x[k : k + 30, ::3] for k in range(0, 370, 10)] + [x[5], x[..., 7], x.T[3]]


def of_a_result(x):
    return (x * 2.0).unbind(1)


@pytest.mark.parametrize("take", [rows, parts, columns, overlapping, of_a_result])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_gradients_of_pieces_add_up(tg, take, dtype):
    x = tg.tensor(X, dtype=getattr(tg, dtype)).requires_grad_()
    sum((k + 1) * (r * r).sum() for k, r in enumerate(take(x))).backward()
    y = tg.tensor(X, dtype=getattr(tg, dtype)).requires_grad_()
    expected = tg.zeros(X.shape, dtype=y.dtype)
    for k, r in enumerate(take(y)):
        expected += tg.autograd.grad((k + 1) * (r * r).sum(), y, retain_graph=True)[0]
    np.testing.assert_allclose(x.grad.numpy(), expected.numpy(), rtol=1e-5)


@pytest.mark.tapegrad_only("about the sweep")
def test_no_piece_makes_an_adjoint_of_the_whole(tg, monkeypatch):
    added, add = [], Adjoints.add

    def counted(self, key, found):
        added.append(found.shape)
        add(self, key, found)

    monkeypatch.setattr(Adjoints, "add", counted)
    x = tg.tensor(X, requires_grad=True)
    sum((r * r).sum() for r in x).backward()
    assert added.count(X.shape) <= 1


def test_gradients_of_what_many_pieces_are_joined_to(tg):
    xs = [tg.ones(k % 5 + 1, 3).requires_grad_() for k in range(2000)]
    weights = tg.arange(3.0 * sum(len(x) for x in xs)).reshape(-1, 3)
    (tg.cat(xs) * weights).sum().backward()
    start = 0
    for x in xs:
        assert x.grad.tolist() == weights[start : start + len(x)].tolist()
        start += len(x)


def test_gradients_of_many_inputs_have_their_order(tg):
    xs = [tg.full((3,), float(k)).requires_grad_() for k in range(500)]
    found = tg.autograd.grad(tg.stack([(x * x).sum() for x in xs]).sum(), xs[::-1])
    assert [g[0].item() for g in found] == [2.0 * k for k in range(499, -1, -1)]

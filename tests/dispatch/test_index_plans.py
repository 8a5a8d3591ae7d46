"""What reads and writes chosen places leaves behind the same by compiled code as by Python."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.dispatch.call_plans import TIMES
from tapegrad.dispatch.native_calls import native_calls
from tapegrad.tape.tape import Tape, current

pytestmark = [
    pytest.mark.tapegrad_only("about two ways to the same results"),
    pytest.mark.usefixtures("native", "fresh_tape"),
]


ROWS, PAIRS = tg.tensor([2, 0]), tg.tensor([[2, 0], [1, 1]])
MASK = tg.tensor([[True, False, True], [False, False, True], [True, True, False]])


def setting(x, key, v):
    x[key] = v
    return x


# Of a 3 by 3 matrix x, a vector v of two numbers and a 2 by 2 matrix m.
MADE = {
    "index": lambda x, v, m: x[ROWS],
    "index, from the end": lambda x, v, m: x[tg.tensor([-1, 1])],
    "index, by a matrix": lambda x, v, m: v[PAIRS % 2],
    "index, columns": lambda x, v, m: x[:, ROWS],
    "index, columns from the end": lambda x, v, m: x[..., tg.tensor([-1, 1])],
    "index, columns by a matrix": lambda x, v, m: x[:, PAIRS],
    "index_select, columns": lambda x, v, m: x.index_select(-1, ROWS),
    "index_add, columns": lambda x, v, m: m.clone().index_add(1, PAIRS[1], m),
    "=, columns": lambda x, v, m: setting(x.clone(), (slice(None, 2), ROWS), m),
    "index, by a mask": lambda x, v, m: x[MASK[0]],
    "take": lambda x, v, m: tg.take(x, PAIRS),
    "index_select": lambda x, v, m: tg.index_select(x, 0, ROWS),
    "gather": lambda x, v, m: x.gather(1, PAIRS[:, :1].expand(2, 1).contiguous().repeat(2, 1)[:3]),
    "gather, expanded": lambda x, v, m: m.gather(0, (PAIRS[:, 1:] % 2).expand(2, 2)),
    "gather, turned": lambda x, v, m: m.gather(1, (PAIRS % 2).t()),
    "scatter_add, expanded": lambda x, v, m: m.scatter_add(1, (PAIRS[1] % 2).expand(2, 2), m),
    "scatter_, turned": lambda x, v, m: m.clone().scatter_(0, (PAIRS % 2).t(), m * 2.0),
    "index_select, each second": lambda x, v, m: x.index_select(0, PAIRS[0].repeat(2)[::2]),
    "index, turned": lambda x, v, m: v[(PAIRS % 2).t()],
    "gather, rows": lambda x, v, m: m.gather(1, PAIRS % 2),
    "gather, columns": lambda x, v, m: m.gather(0, PAIRS % 2),
    "index_add": lambda x, v, m: x[0].clone().index_add(0, ROWS, v),
    "index_put": lambda x, v, m: x[0].clone().index_put((ROWS,), v),
    "index_put, added": lambda x, v, m: x[0].clone().index_put((ROWS % 1,), v, accumulate=True),
    "index_put, a number": lambda x, v, m: x.index_put((ROWS,), x.new_tensor(2.0)),
    "scatter": lambda x, v, m: m.clone().scatter(1, PAIRS % 2, m),
    "scatter, a number": lambda x, v, m: m.scatter(0, PAIRS % 2, 2.0),
    "scatter_add": lambda x, v, m: m.scatter_add(0, PAIRS % 2, m * 2.0),
    "masked_fill": lambda x, v, m: x.masked_fill(MASK, 7),
    "masked_fill, by a Tensor": lambda x, v, m: x.masked_fill(MASK, v.sum()),
    "tril": lambda x, v, m: x.tril(-1),
    "triu": lambda x, v, m: tg.triu(x),
    "flip": lambda x, v, m: tg.flip(x, (0, -1)),
    "repeat": lambda x, v, m: x.repeat(2, 1, 3),
    "tile": lambda x, v, m: tg.tile(x, (2,)),
    "pad": lambda x, v, m: tg.nn.functional.pad(x, (1, 2, 0, 3)),
    "flip, rows": lambda x, v, m: x.flip(0),
    "diag": lambda x, v, m: tg.diag(v, -1),
    "masked_select": lambda x, v, m: x.masked_select(MASK),
    "max": lambda x, v, m: tg.max(x, 1).values,
    "min": lambda x, v, m: tg.min(x, 0, keepdim=True).values,
    "=, whole": lambda x, v, m: setting(x.clone(), ..., v[0]),
    "=, a slice": lambda x, v, m: setting(x.clone(), (slice(None, 2), slice(1, None)), m),
    "=, a slice backwards": lambda x, v, m: setting(x.clone(), (0, slice(0, 2)), v),
    "=, a number": lambda x, v, m: setting(x.clone(), (1, 2), 5),
    "=, a row": lambda x, v, m: setting(x.clone(), 1, x[0]),
    "=, one to a column": lambda x, v, m: setting(x.clone(), (slice(None), 1), v[0]),
    "=, places": lambda x, v, m: setting(x[0].clone(), ROWS, v),
    "=, a number to places": lambda x, v, m: setting(x.clone(), ROWS, 1.5),
    "=, by a mask": lambda x, v, m: setting(x.clone(), MASK[0], 0.0),
    "copy_": lambda x, v, m: m.clone().copy_(m * 2.0),
    "copy_, to a constant": lambda x, v, m: tg.zeros(2, 2).copy_(m),
    "fill_": lambda x, v, m: x.clone().fill_(3),
    "fill_, by a Tensor": lambda x, v, m: x.clone().fill_(v[1]),
    "zero_": lambda x, v, m: x.clone().zero_(),
    "masked_fill_": lambda x, v, m: x.clone().masked_fill_(MASK, 0.5),
    "index_add_": lambda x, v, m: x[0].clone().index_add_(0, ROWS, v),
    "index_put_": lambda x, v, m: x[0].clone().index_put_((ROWS,), v, accumulate=True),
    "scatter_": lambda x, v, m: m.clone().scatter_(1, PAIRS % 2, m * 2.0),
    "scatter_, a number": lambda x, v, m: m.clone().scatter_(1, PAIRS % 2, value=2.0),
    "scatter_add_": lambda x, v, m: m.clone().scatter_add_(1, PAIRS % 2, m * 2.0),
    "tril_": lambda x, v, m: x.clone().tril_(),
    "triu_": lambda x, v, m: x.clone().triu_(1),
    "itself": lambda x, v, m: (lambda y: y.index_add_(0, tg.tensor([1, 0, 2]), y))(x.clone()),
}
MADE["gather"] = lambda x, v, m: x.gather(1, tg.tensor([[2, 0], [1, 1], [0, 0]]))


def plain(value):
    """Numbers as they are; of float32, where sums are of doubles, but for the last digits."""
    if not isinstance(value, np.ndarray):
        return value
    return (np.round(value, 4) + 0.0 if value.dtype == np.float32 else value).tolist()


def outcome(name, tracked="xvm", dtype=np.float64):
    """Values, version, records, what these keep, and gradients of one call."""
    rng = np.random.default_rng(5)
    leaves = [
        tg.tensor(rng.standard_normal(shape).astype(dtype), requires_grad=letter in tracked)
        for letter, shape in zip("xvm", ((3, 3), 2, (2, 2)), strict=True)
    ]
    tape = current.tape
    before = len(tape)
    y = MADE[name](*leaves)
    records = tape.words()[before:, 0].tolist(), tape.words()[before:, 4:].tolist()
    kept = [entry and list(map(plain, entry)) for entry in tape.keep[before : len(tape)]]
    inputs = [len(tape.inputs(k)) for k in range(before, len(tape))]
    gradients = None
    if y.requires_grad:
        (y * y).sum().backward()
        gradients = [t.grad if t.grad is None else plain(t.grad._a) for t in leaves]
    return plain(y._a), y._version, y._s, y.requires_grad, records, kept, inputs, gradients


@pytest.mark.parametrize("tracked", ["xvm", "x", "vm", ""])
@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_compiled_code_leaves_behind_the_same(name, tracked, dtype, monkeypatch):
    for _ in range(TIMES + 1):
        outcome(name, tracked, dtype)
    monkeypatch.setattr(current, "tape", Tape())
    found = outcome(name, tracked, dtype)
    monkeypatch.setattr(current, "tape", Tape())
    monkeypatch.setattr(native_calls, "planned", None)
    monkeypatch.setattr(native_calls, "change", None)
    assert str(found) == str(outcome(name, tracked, dtype))


CALLS = {
    "masked_select": lambda dtype: moves_of(lambda x: x.masked_select(MASK), dtype),
    "flip": lambda dtype: moves_of(lambda x: x.flip(0), dtype),
    "repeat": lambda dtype: moves_of(lambda x: x.repeat(2, 3), dtype),
    "pad": lambda dtype: moves_of(lambda x: tg.nn.functional.pad(x, (1, 2, 0, 3)), dtype),
    "index": lambda dtype: moves_of(lambda x: x[ROWS], dtype),
    "gather": lambda dtype: moves_of(lambda x: tg.gather(x, 1, MASK.to(tg.int64)), dtype),
    "gather, expanded": lambda dtype: moves_of(
        lambda x: tg.gather(x, 0, tg.tensor([[2], [0], [1]]).expand(3, 3)), dtype
    ),
    "scatter_add, turned": lambda dtype: moves_of(
        lambda x: tg.scatter_add(x, 1, MASK.to(tg.int64).t(), x), dtype
    ),
    "masked_fill": lambda dtype: moves_of(lambda x: x.masked_fill(MASK, 0.0), dtype),
    "tril": lambda dtype: moves_of(lambda x: x.tril(), dtype),
    "assign": lambda dtype: moves_of(lambda x: setting(x.clone(), 1, 2.0), dtype),
    "index_put": lambda dtype: moves_of(lambda x: setting(x.clone(), ROWS, 2.0), dtype),
}


def moves_of(function, dtype):
    """Whether compiled code has taken a call that has come before."""
    x = tg.tensor(np.ones((3, 3), dtype), requires_grad=True)
    for _ in range(TIMES + 1):
        function(x)
    found = []
    compiled = native_calls.planned
    try:
        native_calls.planned = lambda *args: found.append(compiled(*args)) or found[-1]
        function(x)
    finally:
        native_calls.planned = compiled
    return bool(found) and found[-1] is not None


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_compiled_code_is_used(name, dtype):
    assert CALLS[name](dtype)


def test_what_it_refuses_raises_as_ever():
    x = tg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    good, bad, negative = tg.tensor([0, 1]), tg.tensor([0, 3]), tg.tensor([0, -1])
    v = tg.ones(2)
    for _ in range(TIMES + 1):
        x[good], x.gather(0, good), x.index_select(0, good), x.index_add(0, good, v)
        x.clone().scatter_(0, good, v), x.index_put((good,), v)
    for call in (
        lambda: x[bad],
        lambda: x.gather(0, bad),
        lambda: x.gather(0, negative),
        lambda: x.index_select(0, negative),
        lambda: x.index_add(0, negative, v),
        lambda: x.scatter(0, negative, v),
        lambda: x.index_put((bad,), v),
        lambda: x.scatter_(0, good, v),
        lambda: setting(x, good, v),
    ):
        with pytest.raises((IndexError, RuntimeError)):
            call()
    assert x[negative].tolist() == [1.0, 3.0]
    assert x[good.to(tg.int32)].tolist() == [1.0, 2.0]
    assert x[tg.tensor([1, 2, 0, 1])[::2]].tolist() == [2.0, 1.0]
    assert x[tg.tensor([True, False, True])].tolist() == [1.0, 3.0]
    y = x.clone()
    y[good] = y[1:]
    assert y.tolist() == [2.0, 3.0, 3.0]
    with pytest.raises(RuntimeError, match="leaf that requires grad"):
        x.index_add_(0, good, v)
    with tg.no_grad():
        x[good] = v
    assert x.tolist() == [1.0, 1.0, 3.0]
    assert x._version == 1


def test_views_and_kept_places():
    x = tg.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    places = tg.tensor([1])
    for _ in range(TIMES + 2):
        y = x * 1.0
        y[0][places] = x[1][places]
        y.t()[0].zero_()
        (grad,) = tg.autograd.grad(y.sum(), x)
        assert grad.tolist() == [[0.0, 0.0], [0.0, 2.0]]
        y = x[places]
    places.add_(0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_other_modes():
    x = tg.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    k = tg.tensor([1, 0, 0])
    for _ in range(TIMES + 1):
        x[k]
    with tg.no_grad():
        assert not x[k].requires_grad
    with tg.inference_mode():
        assert x[k].is_inference()
    with tg.autograd.detect_anomaly(), pytest.raises(RuntimeError, match="test_index_plans"):
        (x[k] * 0.0).sqrt().mul(0.0).div(0.0).sum().backward()
    seen = []
    hooks = tg.autograd.graph.saved_tensors_hooks(lambda t: seen.append(t) or t, lambda t: t)
    with hooks:
        x[k]
    assert seen
    assert tg.vmap(lambda row: row[k % 2])(x.detach()).tolist() == [
        [2.0, 1.0, 1.0],
        [4.0, 3.0, 3.0],
    ]
    grad = tg.grad(lambda a: (a[k] ** 3).sum())
    assert tg.func.jvp(grad, (x.detach(),), (tg.ones(2, 2),))[1].tolist() == [
        [12.0, 24.0],
        [18.0, 24.0],
    ]


def test_no_references_are_lost_or_leaked(references_kept):
    x = tg.tensor(np.ones((3, 3)), requires_grad=True)
    v, m = tg.ones(2), tg.ones(2, 3)
    bad = tg.tensor([3, 0])

    def work():
        x[ROWS], x.masked_fill(MASK, 0.5), x.tril(), x.index_add(0, ROWS, m)
        y = x.clone()
        y[ROWS] = m
        y.fill_(v[0])
        y.index_add_(0, ROWS, m)
        y[1] = 0.0
        y.masked_fill_(MASK, x.sum())
        with pytest.raises(IndexError):
            x[bad]
        tg.max(x, 1)
        with tg.no_grad():
            v.zero_()
        tg.autograd.grad(y.sum(), x)

    shared = (x, v, m, x._a, v._a, m._a, ROWS, ROWS._a, MASK, MASK._a, bad._a, current.tape, 0.5)
    assert references_kept(work, shared)

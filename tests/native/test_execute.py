"""What the native path does for large arrays is what the functions in Python do."""

import gc
import sys
import threading
import time
import warnings
import weakref

import numpy as np
import pytest

import tapegrad
from tapegrad.dispatch import call_plans
from tapegrad.native import install
from tapegrad.native.abi import BY_PYTHON, LargeRow
from tapegrad.ops.families import table
from tapegrad.parallel import large_elementwise
from tapegrad.tape.debts import DROP_FLOOR
from tapegrad.tape.tape import current
from tapegrad.tensor import SHORT, Tensor
from tests.kernels.sweep.test_axis_adjoints import CALLS
from tests.native.test_install import (
    BINARY,
    PLACES,
    TERNARY,
    UNARY,
    assert_alike,
    outcome,
    placed,
    three,
    values,
)

pytestmark = [
    pytest.mark.tapegrad_only("about two ways to the same results"),
    pytest.mark.usefixtures("native", "fresh_tape"),
]

SHAPES = [(SHORT,), (2, SHORT // 2), (3, 1, SHORT // 3 + 5)]
LARGE = SHAPES[2]


@pytest.fixture(autouse=True)
def one_thread(native):
    before = tapegrad.get_num_threads()
    tapegrad.set_num_threads(1)
    yield
    tapegrad.set_num_threads(before)


@pytest.mark.parametrize("op", UNARY, ids=lambda op: op.name)
def test_unary_operations(op, dtype):
    for shape, how in zip([*SHAPES, *SHAPES[:1] * 2], [*PLACES, *PLACES[1:]], strict=True):
        assert_alike(op, (placed(values(op, shape, dtype=dtype), how),))
        assert_alike(
            op, (placed(values(op, shape, dtype=dtype), how),)
        )  # the shape has a number by now


@pytest.mark.parametrize("op", BINARY, ids=lambda op: op.name)
def test_binary_operations(op, dtype):
    for how in PLACES:
        for other in PLACES:
            a = placed(values(op, LARGE, dtype=dtype), how)
            assert_alike(op, (a, placed(values(op, LARGE, 1, dtype=dtype), other)))
            assert_alike(op, (a, placed(values(op, (), 1, dtype=dtype), other)))
            assert_alike(
                op,
                (
                    placed(values(op, (), dtype=dtype), how),
                    placed(values(op, LARGE, 1, dtype=dtype), other),
                ),
            )
    a = placed(values(op, LARGE, dtype=dtype), "leaf")
    assert_alike(op, (a, a))
    for number in (0.5, 2, True):
        assert_alike(op, (a, number))
        if number is not True:
            assert_alike(op, (number, a))


@pytest.mark.parametrize("op", TERNARY, ids=lambda op: op.name)
def test_ternary_operations(op):
    for how, other in zip(PLACES * 2, [*PLACES, *PLACES[1:], PLACES[0]], strict=True):
        hows = (how, other, how)
        for shapes in ((LARGE,) * 3, (LARGE, (), ()), ((), LARGE, ()), ((), (), LARGE)):
            operands = three(op, shapes, hows)
            for _ in range(2):
                assert_alike(op, operands)
            scalars = sum((shape == ()) << k for k, shape in enumerate(shapes))
            assert install.installed.bindings.large_rows[op.code, scalars] != BY_PYTHON
        a, b, c = three(op, (LARGE,) * 3, hows)
        for operands in ((a, b, 0.25), (a, 0.25, c), (a, 1, 2.0), (a, b, c)):
            assert_alike(op, operands)


def changed(name, make, others):
    """What an operation in place leaves behind, on a Tensor that is made for it."""
    x = make()
    before, version = len(current.tape), x._version
    getattr(x, name)(*others)
    made = current.tape.words()[before:].tolist()
    kept = current.tape.keep[before : len(current.tape)]
    return x, x._a.copy(), x._version - version, made, kept, x.requires_grad


def assert_changed_alike(name, make, *others):
    """An operation in place does by the native path what it does without it."""
    install.installed.close()
    try:
        x, values, versions, records, kept, tracked = changed(name, make, others)
    finally:
        install.installed.open()
    x_, values_, versions_, records_, kept_, tracked_ = changed(name, make, others)
    assert values_.tobytes() == values.tobytes()
    assert (versions_, tracked_, len(records_)) == (versions, tracked, len(records))
    for a, b in zip(records, records_, strict=True):
        assert (a[0], a[3:]) == (b[0], b[3:])
        assert [bool(code) for code in a[1:3]] == [bool(code) for code in b[1:3]]
    for entry, entry_ in zip(kept, kept_, strict=True):
        assert type(entry_) is type(entry)
        for a, b in zip(entry or (), entry_ or (), strict=True):
            assert (b is x_._a) == (a is x._a)
            assert (a is None) == (b is None)
            assert a is None or np.array_equal(a, b)
    if records:
        assert x_._pos is current.tape.tokens[len(current.tape) - 1]
        assert x_._home is current.tape


MAKERS = {
    "constant": lambda op, dtype: tapegrad.tensor(values(op, LARGE, dtype=dtype)),
    "array": lambda op, dtype: tapegrad.from_numpy(values(op, LARGE, dtype=dtype)),
    "result": lambda op, dtype: tapegrad.tensor(
        values(op, LARGE, dtype=dtype), requires_grad=True
    ).clone(),
}


@pytest.mark.parametrize("op", [op for op in UNARY if hasattr(Tensor, op.name + "_")], ids=str)
@pytest.mark.parametrize("kind", MAKERS)
def test_unary_operations_in_place(op, kind, dtype):
    for _ in range(2):
        assert_changed_alike(op.name + "_", lambda: MAKERS[kind](op, dtype))


@pytest.mark.parametrize("op", [op for op in BINARY if hasattr(Tensor, op.name + "_")], ids=str)
@pytest.mark.parametrize("kind", MAKERS)
def test_binary_operations_in_place(op, kind, dtype):
    for how in PLACES:
        for other in (
            placed(values(op, LARGE, 1, dtype=dtype), how),
            placed(values(op, (), 1, dtype=dtype), how),
            placed(values(op, LARGE[2:], 1, dtype=dtype), how),
            placed(values(op, (3, 1, 1), 1, dtype=dtype), how),
            0.5,
            2,
        ):
            assert_changed_alike(op.name + "_", lambda: MAKERS[kind](op, dtype), other)
    with tapegrad.no_grad():
        leaf = placed(values(op, LARGE, dtype=dtype), "leaf")
        assert_changed_alike(op.name + "_", lambda: leaf.clone(), 0.5)
        assert_changed_alike(
            op.name + "_", lambda: placed(values(op, LARGE, dtype=dtype), "leaf"), leaf
        )


@pytest.mark.parametrize("name", ["addcdiv", "addcmul", "clamp", "lerp"])
@pytest.mark.parametrize("shape", [(2, 3), LARGE], ids=["small", "large"])
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_ternary_operations_in_place(name, shape, kind):
    op, dtype = table[name], np.dtype(kind)
    for how in PLACES:
        for shapes in ((shape,) * 3, (shape, (), shape), (shape, (), ())):
            first, *others = three(op, shapes, (how,) * 3, dtype)
            numbers = [o.detach().item() if o.ndim == 0 else o for o in others]
            for _ in range(call_plans.TIMES):
                getattr(tapegrad, name)(first, *others)  # has its kernels looked for
            assert_changed_alike(name + "_", first.clone, *others)
            assert_changed_alike(name + "_", first.clone, *numbers)


ALONG = CALLS | {
    "clone": lambda x, d: tapegrad.clone(x),
    "norm of all": lambda x, d: tapegrad.norm(x),
    "var of all": lambda x, d: tapegrad.var(x, correction=0),
    "sum": lambda x, d: tapegrad.sum(x, d),
    "mean": lambda x, d: x.mean(dim=d, keepdim=True),
    "mean of two": lambda x, d: x.mean((d, x.ndim - 1) if d < x.ndim - 1 else d),
    "sum of two": lambda x, d: x.sum((0, d) if d else 0),
    "std, kept": lambda x, d: tapegrad.std(x, d, keepdim=True),
}


@pytest.mark.parametrize("name", sorted(ALONG))
@pytest.mark.parametrize("shape", [(SHORT,), (300, 61), (3, 70, 80), (17000, 2)])
@pytest.mark.parametrize("how", PLACES)
def test_operations_along_dimensions(name, shape, how, dtype, monkeypatch):
    monkeypatch.setattr(call_plans, "TIMES", 1)
    x = placed(np.random.default_rng(0).uniform(0.5, 1.5, shape).astype(dtype), how)
    for d in range(len(shape)):
        call_plans.plans.clear()
        call_plans._calls.clear()
        results = [outcome(lambda x, d=d: ALONG[name](x, d), (x,)) for _ in range(3)]
        (y, record, entry, debt), *others = results
        for y_, record_, entry_, debt_ in others:
            assert y_._a.tobytes() == y._a.tobytes()
            assert (y_.shape, y_._s, debt_, y_._pos > 0) == (y.shape, y._s, debt, y._pos > 0)
            assert (record is None) == (record_ is None)
            if record is not None:
                assert record_.tolist() == record.tolist()
                assert [b is y_._a for b in entry_] == [a is y._a for a in entry]
                assert [b is x._a for b in entry_] == [a is x._a for a in entry]
                assert entry_[2] == entry[2]


def test_what_the_tape_keeps_is_let_go_of():
    """As `Tape.drop_tail` does: a result that was dropped frees its memory for the next one."""
    x = tapegrad.tensor(np.ones(DROP_FLOOR // 8 + 1), requires_grad=True)
    tape = current.tape
    kept = x.exp()
    x.exp().sin()  # two records that nobody holds
    ghosts = [weakref.ref(entry[1]) for entry in tape.keep[1:2]]
    assert ghosts[0]() is not None
    y = x * kept
    assert ghosts[0]() is None
    assert tape.keep[1:3] == [None, None]
    assert tape.tail == (1, 3)
    assert tape.debt == kept._a.nbytes + y._a.nbytes
    for _ in range(200):
        x.exp()
    assert sum(entry is not None for entry in tape.keep) == 3
    y.sum().backward()
    np.testing.assert_allclose(x.grad._a, 2 * np.e)  # of exp too, which was recorded


@pytest.mark.parametrize("size", [SHORT, SHORT // 2])
def test_much_is_let_go_of_at_once(size):
    x = tapegrad.tensor(np.ones(size), requires_grad=True)
    held = [x * 2.0 for _ in range(200)]
    del held
    assert current.tape.debt > DROP_FLOOR
    y = x.exp()
    assert current.tape.debt <= DROP_FLOOR + y._a.nbytes
    for _ in range(300):
        (x * 2.0).exp()
    assert current.tape.debt < DROP_FLOOR + 5 * y._a.nbytes
    y.sum().backward()
    np.testing.assert_allclose(x.grad._a, np.e)


def test_exceptions_of_arithmetic():
    x = tapegrad.tensor(np.linspace(0.0, 1.0, SHORT), requires_grad=True)
    one = tapegrad.ones(SHORT)
    row = install.installed.bindings.large_rows[table["div"].code]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"tapegrad\.")
        for _ in range(40):
            assert (one / x)[0].item() == np.inf
    assert row[LargeRow.python_calls] > 0  # Python does it for a while, where it is computed once
    with np.errstate(all="raise"), pytest.raises(FloatingPointError, match="divide"):
        one / x
    row[LargeRow.python_calls] = 0
    assert (x / 2.0)[-1].item() == 0.5


@pytest.mark.parametrize(
    ("name", "operands", "text"),
    [
        ("add_", (1.7e308, 1.7e308), "overflow encountered in add"),
        ("sub_", (np.inf, np.inf), "invalid value encountered in subtract"),
        ("mul_", (1e300, 1e300), "overflow encountered in multiply"),
        ("mul_", (np.inf, 0.0), "invalid value encountered in multiply"),
        ("div_", (1.0, 0.0), "divide by zero encountered in divide"),
        ("div_", (0.0, 0.0), "invalid value encountered in divide"),
        ("square_", (1e300,), "overflow encountered in square"),
    ],
)
def test_exceptions_of_arithmetic_in_place(name, operands, text):
    first, *others = operands
    for closed in (True, False):
        (install.installed.close if closed else install.installed.open)()
        try:
            x = tapegrad.tensor(np.full(SHORT, first))
            with pytest.warns(RuntimeWarning, match=text):
                getattr(x, name)(*others)
            assert x._version == 1
            with np.errstate(all="raise"), pytest.raises(FloatingPointError, match=text):
                getattr(tapegrad.tensor(np.full(SHORT, first)), name)(*others)
        finally:
            install.installed.open()


def test_refusals_in_place():
    leaf = tapegrad.ones(SHORT).requires_grad_()
    with pytest.raises(RuntimeError, match="a leaf that requires grad"):
        leaf.add_(1.0)
    fixed = tapegrad.from_numpy(np.ones(SHORT))
    fixed._a.flags.writeable = False
    with pytest.raises(RuntimeError, match="read-only"):
        fixed.mul_(2.0)
    whole = leaf.clone()
    view = whole[:]
    view.mul_(2.0)  # takes its base along
    assert whole[0].item() == 2.0
    shifted = tapegrad.ones(SHORT + 1)
    shifted[1:].add_(shifted[:-1])
    assert shifted.sum().item() == 2 * SHORT + 1
    same = tapegrad.ones(SHORT)
    assert same.add_(same).sum().item() == 2 * SHORT
    with tapegrad.inference_mode():
        inside = tapegrad.ones(SHORT) * 2.0
    with pytest.raises(RuntimeError, match="made in inference mode"):
        inside.add_(1.0)
    y = leaf.exp()
    y.mul_(2.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_a_gradient_that_is_kept_follows():
    x = tapegrad.ones(SHORT).requires_grad_()
    y = x * 3.0
    y.retain_grad()
    y.mul_(y.detach() * 0 + 2.0)
    y.sum().backward()
    assert y.grad.sum().item() == SHORT
    assert x.grad.sum().item() == 6 * SHORT


def test_modes():
    x = tapegrad.tensor(np.ones(SHORT), requires_grad=True)
    mul = table["mul"]
    with tapegrad.no_grad():
        assert_alike(mul, (x, x))
        assert not (x * x).requires_grad
    with tapegrad.inference_mode():
        assert (x * x).is_inference()
    sent = []
    with tapegrad.autograd.graph.saved_tensors_hooks(lambda t: sent.append(t) or t, lambda t: t):
        x * x
    assert len(sent) == 2
    with tapegrad.autograd.detect_anomaly():
        y = x * x
    assert "test_execute" in current.tape.traces[y.position]
    assert tapegrad.grad(lambda x: (x * x).sum())(np.ones(SHORT)).sum() == 2 * SHORT
    assert tapegrad.vmap(lambda x: x * 2.0)(x.detach().reshape(128, -1)).sum() == 2 * SHORT


def test_layouts_and_dtypes_that_go_another_way():
    square = tapegrad.tensor(np.random.default_rng(0).uniform(size=(130, 130)))
    row = tapegrad.tensor(np.arange(130.0))
    for a, b in (
        (square.t(), square), (square, square.t()), (square, row), (row, square),
        (square.float(), square), (square, square.float()), (square, square[:, :1]),
        (square[:, ::2], square[:, ::2]), (square, tapegrad.ones(1)),
        (square, square.reshape(10, 13, 130)[:1, :1]),
    ):  # fmt: skip
        np.testing.assert_array_equal((a * b)._a, a._a * b._a)
    with pytest.raises(RuntimeError, match="broadcast"):
        square * tapegrad.ones(SHORT)


def test_several_threads_take_the_general_path_where_they_share_the_work():
    x = tapegrad.tensor(np.ones(1 << 18), requires_grad=True)
    tapegrad.set_num_threads(2)
    y = (x * 2.0).exp().sum()
    tapegrad.set_num_threads(1)
    np.testing.assert_allclose((x * 2.0).exp().sum().item(), y.item(), rtol=1e-12)
    tapegrad.set_num_threads(2)
    for n in (SHORT, 2 * large_elementwise.SPLIT - 1, 2 * large_elementwise.SPLIT):
        x = tapegrad.tensor(np.random.default_rng(0).uniform(size=n), requires_grad=True)
        for op in (table["exp"], table["neg"], table["sum"]):
            assert_alike(op, (x,))
        assert_alike(table["sub"], (x, x))
        assert_alike(table["clamp"], (x, 0.25, 0.75))


def test_no_references_are_lost_or_leaked(references_kept, monkeypatch):
    monkeypatch.setattr(call_plans, "TIMES", 1)
    x = tapegrad.tensor(np.ones((130, 130)), requires_grad=True)
    c = tapegrad.tensor(np.full((130, 130), 0.5))
    condition = c > 0.25
    shared = (Tensor, x._a, c._a, np.dtype("f8"), np.dtype("?"), x, c, x._s, condition._a, -1)

    def work():
        y = (2.0 * x * c + x).exp().clone()
        y.mul_(c).add_(1.0).exp_()
        tapegrad.where(condition, y, 0.0).clamp(0.0, 1.0).softmax(1).var(0).sum()
        (x < c, x.sum(), x.mean(), x.norm(), x.sum(1))
        with tapegrad.no_grad():
            c.mul_(1.0)
        with np.errstate(all="ignore"):
            c.div(0.0)
        with pytest.raises(RuntimeError):
            x.add_(1.0)

    assert references_kept(work, shared)
    ghost = weakref.ref((x * 2.0)._a)
    current.tape.reclaim()
    assert ghost() is None


@pytest.mark.parametrize("room", [0, 1, 2])
@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.exp_(),
        lambda x: x.mul_(2.0),
        lambda x: x.add_(x.exp()),
        lambda x: x.clamp_(0.0, 1.0),
        lambda x: x.exp(),
        lambda x: x * x.sum(),
        lambda x: x.view(2, -1),
        lambda x: x.softmax(0),
        lambda x: tapegrad.where(x > 0.0, x, 0.5),
    ],
)
def test_nothing_is_recorded_beyond_the_end_of_a_tape(change, room):
    def gradient(full):
        x = tapegrad.tensor(np.linspace(-1.0, 1.0, SHORT), requires_grad=True)
        y = x.clone()
        scalar = tapegrad.tensor(1.0, requires_grad=True)
        held = []
        while full and current.tape.used + room < current.tape.capacity:
            held.append(scalar * 2.0)
        change(y).sum().backward()
        tape = current.tape
        assert tape.used <= tape.capacity == len(tape.keep) == len(tape.tokens)
        return x.grad.numpy()

    change(tapegrad.ones(SHORT, requires_grad=True).clone())  # what is computed is known now
    np.testing.assert_array_equal(gradient(True), gradient(False))


def test_a_full_tape():
    x = tapegrad.tensor(np.ones(SHORT), requires_grad=True)
    y = x
    for _ in range(3000):
        y = (y * 1.0).add_(0.0)
        x * 2.0  # dropped at once
    y.sum().backward()
    assert x.grad.sum().item() == SHORT


def test_threads_at_once():
    """The lock is free while a loop runs, and what it reads and writes is held."""
    errors, ready = [], threading.Barrier(4)

    def work(k):
        leaf = tapegrad.tensor(np.full(SHORT, 0.1 * k + 0.1), requires_grad=True)
        other = tapegrad.tensor(np.full(SHORT, 0.5))
        ready.wait()
        for _ in range(60):
            y = (leaf * other).sin().clone().mul_(leaf).sum()
            (g,) = tapegrad.autograd.grad(y, leaf)
            inner = leaf._a * 0.5
            if not np.allclose(g._a, np.sin(inner) + 0.5 * leaf._a * np.cos(inner)):
                errors.append("a wrong gradient")
            other.data = tapegrad.tensor(np.full(SHORT, 0.5))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_the_lock_is_free_meanwhile():
    """A thread that wants it gets it although nobody is asked to give it up."""
    x = tapegrad.tensor(np.random.default_rng(0).uniform(size=1_000_000))
    ran, over = [], threading.Event()

    def wake():
        while not over.is_set():
            time.sleep(1e-4)
            ran.append(1)

    interval = sys.getswitchinterval()
    thread = threading.Thread(target=wake)
    thread.start()
    sys.setswitchinterval(1000.0)
    try:
        before = len(ran)
        for _ in range(50):
            x.exp()
        after = len(ran)
    finally:
        sys.setswitchinterval(interval)
        over.set()
        thread.join()
    assert after > before


def test_an_array_that_another_thread_takes_away_is_held():
    x = tapegrad.tensor(np.full(2_000_000, 0.25))
    over = threading.Event()

    def take():
        while not over.is_set():
            x.data = tapegrad.tensor(np.full(2_000_000, 0.25))

    thread = threading.Thread(target=take)
    thread.start()
    try:
        for _ in range(20):
            assert set(np.unique((x * 2.0)._a)) == {0.5}
    finally:
        over.set()
        thread.join()


def test_a_finaliser_that_records():
    class Loud:
        def __init__(self):
            self.me = self

        def __del__(self):
            z = tapegrad.tensor(np.ones(SHORT), requires_grad=True)
            (z * z).sum().backward()
            current.tape.reclaim()

    x = tapegrad.tensor(np.ones(DROP_FLOOR // 8 + 1), requires_grad=True)
    thresholds = gc.get_threshold()
    gc.set_threshold(3, 2, 2)
    try:
        y = x
        for _ in range(50):
            Loud()
            y = (y * 1.0).add_(0.0)
            x.exp()
        y.sum().backward()
    finally:
        gc.set_threshold(*thresholds)
    assert x.grad[0].item() == 1.0


def test_it_is_taken(native, monkeypatch):
    monkeypatch.setattr(call_plans, "TIMES", 1)
    call_plans.plans.clear()
    call_plans._calls.clear()
    x = tapegrad.tensor(np.ones(SHORT), requires_grad=True)
    x.norm()
    assert native.planned(*call_plans.plans.values(), x, None, None).item() == 128.0
    y = x.clone().mul_(1.0).exp_().clamp_(0.5, 2.0)  # by what is known now
    assert native.change(y, 2.0, None, table["mul"].code) is y
    assert native.change(y, None, None, table["exp"].code) is y
    assert native.change(y, 0.5, 2.0, table["clamp"].code) is y
    assert native.change(y, x[:10], None, table["mul"].code) is None
    for name, scalars in {"add": 0, "mul": 2, "exp": 0, "sum": 0, "lerp": 4}.items():
        for is_f4 in (0, 1):
            native.bindings.learn_large(table[name].code, scalars, is_f4)
            place = LargeRow.kernels_f4 if is_f4 else LargeRow.kernels
            assert native.bindings.large_rows[table[name].code, place + scalars] != BY_PYTHON
    y = x.detach().float().mul_(1.0)
    assert native.change(y, 2.0, None, table["mul"].code) is y

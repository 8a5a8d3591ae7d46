"""The native path does what the functions in Python do that it takes the place of."""

import gc
import inspect
import itertools
import subprocess
import sys
import threading
import warnings
import weakref

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import tapegrad
import tapegrad.nn.functional
from tapegrad.dispatch import call_plans, views
from tapegrad.dispatch.op_functions import reductions
from tapegrad.kernels.codegen import kernel_table as kernels
from tapegrad.native import install
from tapegrad.native.abi import OpRow, ShapeLine
from tapegrad.native.bindings import by_kernel, is_native
from tapegrad.ops.families import by_code, table
from tapegrad.tape.shape_table import LARGE
from tapegrad.tape.shape_table import shapes as shape_table
from tapegrad.tape.tape import MIN_CAPACITY, current
from tapegrad.tensor import Tensor
from tests.conformance.samples import domains

pytestmark = [
    pytest.mark.tapegrad_only("about two ways to the same results"),
    pytest.mark.usefixtures("native", "fresh_tape"),
]

OPS = [op for op in by_code if is_native(op) and op.name != "matmul"]
UNARY = [op for op in OPS if len(op.inputs) == 1]
BINARY = [op for op in OPS if len(op.inputs) == 2]
TERNARY = [op for op in OPS if len(op.inputs) == 3]


def values(op, shape, seed=0, dtype="f8"):
    low, high = domains(op, (0.1, 0.9))[-1]
    return np.random.default_rng(seed).uniform(low, high, shape).astype(dtype)


def outcome(function, args):
    """What a call leaves behind: the result, its record, and what that keeps."""
    tape = current.tape
    if len(tape) > MIN_CAPACITY - 100:
        tape.reclaim()  # or it comes in between
    before, tape.debt = len(tape), 0  # nothing that was made is let go of meanwhile
    result = function(*args)
    made = len(tape) - before
    assert made in (0, 1)
    record = tape.words()[-1].copy() if made else None
    return result, record, tape.keep[len(tape) - 1] if made else None, tape.debt


def assert_alike(op, args):
    """Both ways give the same, to the last bit if by NumPy's loops, and write and keep the same."""
    if len(current.tape) > MIN_CAPACITY - 200:
        current.tape.reclaim()  # or it comes between the two, and numbers the leaves anew
    ways = install.installed.python[op], op.entry_point
    (a, record, entry, debt), (b, record_, entry_, debt_) = (outcome(f, args) for f in ways)
    assert type(b) is Tensor
    letter, size = a._a.dtype.kind, a._a.size
    if letter == "c" or (letter == "f" and by_kernel(op)):  # whose loops depend on how elements lie
        near = 64 * np.finfo(a._a.dtype).eps
        np.testing.assert_allclose(b._a, a._a, near, near)
    elif a.dtype == tapegrad.float32 and size > LARGE:  # there by loops of the library's own
        np.testing.assert_array_max_ulp(b._a, a._a, 1)
    elif letter == "f" and (any(is_strided(x) for x in args) or "svml" in op.loop):
        np.testing.assert_array_max_ulp(b._a, a._a, 2)  # these depend on how elements lie in NumPy
    elif letter == "f" and op in reductions:  # by a loop of rows, once that is on disk
        np.testing.assert_array_max_ulp(b._a, a._a, 1)
    else:
        assert b._a.tobytes() == a._a.tobytes()
    assert (b.shape, b.dtype, b._s, debt_) == (a.shape, a.dtype, a._s, debt)
    assert b.requires_grad == a.requires_grad
    assert (record is None) == (record_ is None)
    if record is None:
        return
    assert record_.tolist() == record.tolist()
    assert current.tape.tokens[len(current.tape) - 1] is b._pos
    assert b._home is current.tape
    assert type(entry_) is type(entry)
    for kept, kept_ in zip(entry or (), entry_ or (), strict=True):
        if kept is a._a:
            assert kept_ is b._a
        else:
            assert kept_ is kept or same(kept_, kept)  # the general path makes it for each record


def is_strided(x):
    return isinstance(x, tapegrad.Tensor) and not x._a.flags.c_contiguous


def same(one, other):
    """Whether two numbers, or what a record keeps beside its values, are the same."""
    arrays = isinstance(one, np.ndarray) and isinstance(other, np.ndarray)
    return (one.tobytes(), one.dtype) == (other.tobytes(), other.dtype) if arrays else one == other


def placed(array, how):
    """A Tensor that is a constant, a leaf or the result of an operation."""
    if how == "constant":
        return tapegrad.tensor(array)
    leaf = tapegrad.tensor(array, requires_grad=True)
    return leaf if how == "leaf" else leaf.clone()


PLACES = ("constant", "leaf", "result")
SHAPES = [(), (1,), (3,), (2, 3), (0,), (2, 0, 3), (600,), (2, 1, 3)]
PAIRS = [
    ((3,), (3,)), ((), ()), ((2, 3), ()), ((), (2, 3)), ((2, 3), (3,)), ((3,), (2, 3)),
    ((2, 3), (2, 1)), ((2, 1), (2, 3)), ((4, 2, 3), (2, 3)), ((4, 2, 3), (4, 1, 1)),
    ((2, 1), (1, 3)), ((2, 3), (1, 1)), ((0, 3), (3,)), ((30, 40), (40,)), ((1, 3), (2, 3)),
    ((4, 2, 3), (2, 1)),
]  # fmt: skip


@pytest.mark.parametrize("op", UNARY, ids=lambda op: op.name)
def test_unary_operations(op, dtype):
    op.entry_point(tapegrad.tensor(0.5))  # whoever is first may go by SciPy's import
    loaded(op, dtype)
    for shape, how in itertools.product(SHAPES, PLACES):
        assert_alike(op, (placed(values(op, shape, 0, dtype), how),))


@pytest.mark.parametrize("op", BINARY, ids=lambda op: op.name)
def test_binary_operations(op, dtype):
    op.entry_point(tapegrad.tensor(0.5), tapegrad.tensor(0.5))
    loaded(op, dtype)
    for (first, second), hows in zip(PAIRS, itertools.cycle(itertools.product(PLACES, PLACES))):
        a = placed(values(op, first, 0, dtype), hows[0])
        assert_alike(op, (a, placed(values(op, second, 1, dtype), hows[1])))
    for hows in itertools.product(PLACES, PLACES):
        a = placed(values(op, (2, 3), 0, dtype), hows[0])
        assert_alike(op, (a, placed(values(op, (3,), 1, dtype), hows[1])))


@pytest.mark.parametrize("op", BINARY, ids=lambda op: op.name)
@pytest.mark.parametrize("number", [0.5, 1, 2.0, 3, -1.25, 0, -0.0, float("nan"), True, 2**70])
def test_numbers(op, number, dtype):
    for how, shape in itertools.product(PLACES, [(), (3,)]):
        x = placed(values(op, shape, 0, dtype), how)
        with np.errstate(all="ignore"):
            assert_alike(op, (x, number))
            if type(number) is not bool:
                assert_alike(op, (number, x))
            assert_alike(op, (x, number))


def loaded(op, dtype="f8"):
    """Have the kernels of an operation, which come when it was called often."""
    row = install.installed.bindings.op_rows[op.code]
    first = OpRow.kernels if dtype == "f8" else OpRow.kernels_f4
    for scalars in range(1 << len(op.inputs) if by_kernel(op) else 0):
        row[first + scalars] = kernels.forward(op, dtype, scalars).address


def three(op, shapes, hows, dtype="f8"):
    """Operands; of `where`, the first is a condition."""
    arrays = [values(op, shape, k, dtype) for k, shape in enumerate(shapes)]
    made = [placed(array, how) for array, how in zip(arrays, hows)]
    if op.inputs[0] == "condition":
        made[0] = made[0].detach() > 0.5
    return made


@pytest.mark.parametrize("op", TERNARY, ids=lambda op: op.name)
def test_ternary_operations(op, dtype):
    loaded(op, dtype)
    kinds = [((2, 3),) * 3, ((),) * 3, ((1,),) * 3, ((600,),) * 3, ((0, 2),) * 3]
    kinds += [((2, 3), (), ()), ((), (2, 3), ()), ((), (), (2, 3)), ((2, 3), (2, 3), ())]
    kinds += [((2, 3), (), (2, 3)), ((2, 3), (3,), ()), ((3,), (2, 3), (2, 1)), ((1,), (), ())]
    for shapes, hows in zip(kinds, itertools.cycle(itertools.product(PLACES, repeat=3))):
        assert_alike(op, three(op, shapes, hows, dtype))
    for hows in itertools.product(PLACES, repeat=3):
        assert_alike(op, three(op, ((2, 3),) * 3, hows, dtype))


@pytest.mark.parametrize("op", TERNARY, ids=lambda op: op.name)
def test_numbers_among_three(op, dtype):
    loaded(op, dtype)
    for how, shape in itertools.product(PLACES, [(), (1,), (2, 3)]):
        a, b, c = three(op, (shape,) * 3, (how,) * 3, dtype)
        for operands in ((a, b, 0.25), (a, 0.25, c), (a, 1, 2.0), (a, b, True)):
            assert_alike(op, operands)
            with tapegrad.no_grad():
                assert_alike(op, operands)


def test_conditions_that_the_native_path_does_not_take():
    where = table["where"]
    loaded(where)
    x = tapegrad.ones(2, 3).requires_grad_()
    for condition in (x.detach() > 0, (tapegrad.ones(3, 2) > 0).t(), tapegrad.tensor(True)):
        assert_alike(where, (condition, x, 0.0))
    assert_alike(where, (tapegrad.ones(2, 3).numpy() > 0, x, 0.0))
    with pytest.raises(RuntimeError, match="do not broadcast"):
        where.entry_point(tapegrad.ones(2) > 0, x, 0.0)
    with pytest.raises(RuntimeError, match="must be boolean"):
        tapegrad.where(tapegrad.ones(2, 3), x, 0.0)
    with pytest.raises(TypeError, match="an operand must be"):
        where.entry_point(x.detach() > 0, x, "a")


def test_loops_of_three_operands_come_when_they_were_called_for():
    clamp = table["clamp"]
    row = install.installed.bindings.op_rows[clamp.code]
    assert kernels.forward(clamp, "f8", 6)  # it is on disk
    install.installed.bindings.learn(clamp, install.installed.python[clamp])
    x = tapegrad.tensor([-1.0, 0.5, 2.0])
    for _ in range(call_plans.MANY):
        assert clamp.entry_point(x, 0.0, 1.0).tolist() == [0.0, 0.5, 1.0]
    assert row[OpRow.kernels + 6] > 0
    assert row[OpRow.kernels] < 0
    assert_alike(clamp, (x, 0.0, 1.0))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_two_shapes(data):
    shape = st.lists(st.integers(0, 4), max_size=3).map(tuple)
    a, b = data.draw(shape), data.draw(shape)
    op = data.draw(st.sampled_from([table[name] for name in ("mul", "sub", "div", "hypot")]))
    x, y = placed(values(op, a), "leaf"), placed(values(op, b, 1), "result")
    try:
        expected = np.broadcast_shapes(a, b)
    except ValueError:
        with pytest.raises(RuntimeError, match="do not broadcast"):
            op.entry_point(x, y)
    else:
        assert op.entry_point(x, y).shape == expected
        assert_alike(op, (x, y))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", ["mul", "sub", "lt"])
def test_a_column_and_a_row_are_neither_of_the_results_shape(name, dtype):
    op, rng = table[name], np.random.default_rng(0)
    column, row = [tapegrad.tensor(rng.random(n).astype(dtype)) for n in (3, 4)]
    column.requires_grad_()
    for x, y in ((column[:, None], row), (row, column[:, None]), (column[:, None], row[None])):
        assert op.entry_point(x, y).shape == (3, 4)
        assert_alike(op, (x, y))
    lines = install.installed.bindings.broadcasts
    known = shape_table.number((3, 4))
    assert any(line[ShapeLine.shape] == known and line[ShapeLine.extra] > 1 for line in lines)
    with pytest.raises(RuntimeError, match="the shape"):
        column.detach()[:, None].add_(row)


def test_layouts_and_dtypes_that_go_another_way():
    mul = table["mul"]
    whole = tapegrad.tensor(np.arange(12.0).reshape(3, 4), requires_grad=True)
    for x in (whole.t(), whole[:, ::2], whole[1:], whole.double(), whole.float(), whole.long()):
        assert_alike(mul, (x, x))
        assert_alike(mul, (x, 2.0))
        assert_alike(mul, (x, np.asarray(3.0)))
    with pytest.raises(TypeError, match="an operand must be a Tensor"):
        whole * "a"
    assert (whole.__eq__("a")) is NotImplemented


def test_a_view_whose_base_has_changed():
    base = tapegrad.tensor([1.0, 2.0, 3.0], requires_grad=True) * 1.0
    row = base[0:2]
    assert_alike(table["mul"], (row, 2.0))
    base.mul_(2.0)
    (row * 3.0).sum().backward()
    assert row.grad_fn is not None
    leaf = tapegrad.tensor([1.0, 2.0, 3.0], requires_grad=True)
    base = leaf * 1.0
    row = base[0:2]
    base.mul_(2.0)
    (row * 3.0).sum().backward()
    assert leaf.grad.tolist() == [6.0, 6.0, 0.0]


VIEWS = [
    lambda x: x.t(), lambda x: x[1], lambda x: x[:, 1:], lambda x: x[..., -1], lambda x: x[None],
    lambda x: x.unsqueeze(-1), lambda x: x.unsqueeze(1).squeeze(1), lambda x: x.reshape(-1),
    lambda x: x.reshape(3, 1, 3), lambda x: x.select(1, 2), lambda x: x.narrow(0, 1, 2),
    lambda x: x.diagonal(), lambda x: x.flatten(), lambda x: x.permute(1, 0), lambda x: x[::-1][0],
    lambda x: x.expand(2, 3, 3), lambda x: x.view_as(x), lambda x: x.unflatten(0, (1, 3)),
]  # fmt: skip
WHOLE = np.arange(36.0).reshape(6, 6)
LAYOUTS = [
    WHOLE[:3, :3].copy(), WHOLE[:3, :3], WHOLE[:3, :3].T.copy(), WHOLE[:3, :3].T, WHOLE[::2, ::-2],
    np.broadcast_to(WHOLE[0, :3], (3, 3)), WHOLE[:3, :3].astype("f4"), WHOLE[1:4, 2:5].copy(),
]  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(VIEWS), st.integers(0, 7)), min_size=2, max_size=6))
def test_views_are_seen_again(given):
    """What is remembered of a view of one array serves every other of its shape, or is not used."""
    views._plans.clear()
    for look, k in given:
        array = LAYOUTS[k]
        for x in (tapegrad.from_numpy(array), tapegrad.tensor(array, requires_grad=True)):
            found = look(x)
            expected = look(_Plain(array))
            np.testing.assert_array_equal(found.detach().numpy(), expected)
            assert np.shares_memory(found._a, x._a) or x._a.strides != x._a.copy().strides
            assert found.requires_grad == x.requires_grad
            found.sum()


class _Plain(np.ndarray):
    """An array with the methods of a Tensor that views are made by."""

    def __new__(cls, array):
        return array.copy().view(cls)

    def t(self):
        return self.T

    def unsqueeze(self, d):
        return np.expand_dims(self, d).view(_Plain)

    def squeeze(self, d):
        return np.squeeze(self.view(np.ndarray), d)

    def select(self, d, i):
        return self.take(i, d)

    def narrow(self, d, first, count):
        return self.take(range(first, first + count), d)

    def permute(self, *order):
        return self.transpose(order)

    def expand(self, *shape):
        return np.broadcast_to(self, shape)

    def view_as(self, other):
        return self

    def unflatten(self, d, sizes):
        return self.reshape(*sizes, 3)


def test_modes():
    x = tapegrad.tensor([1.0, 2.0], requires_grad=True)
    mul = table["mul"]
    with tapegrad.no_grad():
        assert_alike(mul, (x, x))
        assert not (x * x).requires_grad
    with tapegrad.inference_mode():
        y = x * x
    with pytest.raises(RuntimeError, match="inference"):
        y.mul_(2.0)
    sent = []
    with tapegrad.autograd.graph.saved_tensors_hooks(lambda t: sent.append(t) or t, lambda t: t):
        y = x * x
    assert len(sent) == 2
    with tapegrad.autograd.detect_anomaly():
        y = (x * 0.0) / (x * 0.0)
        with pytest.raises(RuntimeError, match="test_install"):
            y.sum().backward()


def test_exceptions_of_arithmetic():
    """They are no news here, as in PyTorch; but who asks NumPy to raise them is heard."""
    x = tapegrad.tensor([1.0, 0.0])
    assert (1.0 / x).tolist() == [1.0, float("inf")]
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        x.log()
    assert x.log().tolist() == [0.0, float("-inf")]
    infinite = tapegrad.tensor([[float("inf"), 1.0], [0.0, 1.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"tapegrad\.")
        assert (infinite @ tapegrad.tensor([0.0, 2.0])).isnan().tolist() == [True, False]
        assert (infinite - infinite).isnan().tolist() == [[True, False], [False, False]]


def test_no_references_are_lost_or_leaked(references_kept):
    x = tapegrad.tensor(np.ones((3, 2)), requires_grad=True)
    b = tapegrad.tensor(np.ones(2), requires_grad=True)
    shared = (Tensor, x._a, b._a, np.dtype("f8"), x, b, x._s, current, Tensor.__mul__)

    def work():
        y = (2.0 * x * b + 0.1).exp() @ b
        ((y - 1) ** 2).sum()
        with pytest.raises(RuntimeError):
            x + y
        with tapegrad.no_grad():
            x * b

    assert references_kept(work, shared)
    ghost = weakref.ref(x * 2.0)
    assert ghost() is None


def test_a_full_tape():
    """Records that find no room wait until the tape has made some."""
    outcomes = []

    def work():
        x = tapegrad.tensor([1.0, 2.0], requires_grad=True)
        y = x
        for _ in range(10_000):
            y = y * 1.0
        y.sum().backward()
        for _ in range(10_000):
            x * 2.0  # dropped at once
        outcomes.append((x.grad.tolist(), current.tape.capacity < 40_000))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert outcomes == [([1.0, 1.0], True)]


def test_large_results_are_accounted_for():
    x = tapegrad.tensor(np.ones(4096), requires_grad=True)
    current.tape.reclaim()
    assert_alike(table["mul"], (x, 2.0))
    kept = [x * 2.0 for _ in range(600)]  # 20 MB: more than may be owed
    assert current.tape.debt < current.tape.debt_limit
    assert all(t.requires_grad for t in kept)


def test_threads_have_their_own_tapes():
    x = tapegrad.tensor([1.0, 2.0])
    errors, ready = [], threading.Barrier(4)

    def work(k):
        leaf = tapegrad.tensor([float(k), 1.0], requires_grad=True)
        ready.wait()
        for _ in range(300):
            y = ((leaf * x + k).sin() * leaf).sum()
            if y._home is not current.tape:
                errors.append("another thread's tape")
            (g,) = tapegrad.autograd.grad(y, leaf)
            inner = leaf._a * x._a + k
            if not np.allclose(g._a, np.sin(inner) + leaf._a * np.cos(inner) * x._a):
                errors.append("a wrong gradient")

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert errors == []


def test_another_threads_tensor():
    made = []
    thread = threading.Thread(
        target=lambda: made.append(tapegrad.tensor([1.0], requires_grad=True) * 2.0)
    )
    thread.start()
    thread.join()
    with pytest.raises(RuntimeError, match="recorded by another thread"):
        made[0] * 2.0
    with pytest.raises(RuntimeError, match="recorded by another thread"):
        made[0].exp()


def test_a_finaliser_that_records():
    """Making an object may run the collector, and that the user's code, at any time."""

    class Loud:
        def __init__(self):
            self.me = self

        def __del__(self):
            with tapegrad.enable_grad():  # a sweep that it interrupts records nothing
                z = tapegrad.tensor([3.0], requires_grad=True)
                (z * z).sum().backward()
            current.tape.reclaim()

    x = tapegrad.tensor([2.0, 1.0], requires_grad=True)
    thresholds = gc.get_threshold()
    gc.set_threshold(3, 2, 2)
    try:
        y = x
        for k in range(300):
            Loud()
            y = y * 1.0 + 0.0 if k % 2 else (y * 1.0).reshape(2)
        y.sum().backward()
    finally:
        gc.set_threshold(*thresholds)
    assert x.grad.tolist() == [1.0, 1.0]


def test_operations_under_transforms():
    found = tapegrad.vmap(tapegrad.grad(lambda x: x * x.exp() + 2.0 * x))(np.arange(3.0))
    x = np.arange(3.0)
    np.testing.assert_allclose(found, (1 + x) * np.exp(x) + 2.0)


def test_opening_and_closing(native):
    x = tapegrad.tensor([1.0, 2.0], requires_grad=True)
    native.close()
    try:
        assert inspect.isfunction(Tensor.exp)
        assert inspect.isfunction(table["exp"].entry_point)
        by_python = (x.exp() * 2.0).tolist()
    finally:
        native.open()
    assert not inspect.isfunction(Tensor.exp)
    assert (x.exp() * 2.0).tolist() == by_python


def test_it_opens_where_many_records_are_made():
    """And not before, unless the machine has compiled it already."""
    code = """
import sys, tapegrad as tg, numpy as np
x = tg.tensor([1.0, 2.0], requires_grad=True)
y = x.exp().sum()
y.backward()
print(type(tg.Tensor.exp).__name__, "numba.core" in sys.modules)
for _ in range(40_000):
    x * 2.0
print(type(tg.Tensor.exp).__name__)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["method_descriptor", "False", "method_descriptor"]


@pytest.mark.parametrize(
    "call", ["x * 2.0", "tg.lerp(y, y, 0.5)", "y.zero_()", "y.sin()", "y * y", "y @ y"]
)
def test_it_opens_without_a_sweep(call):
    """Where a tape was full, or after many calls that leave no record."""
    code = f"""
import tapegrad as tg
x = tg.tensor([1.0, 2.0], requires_grad=True)
y = x.detach()
for _ in range(5_000):
    {call}
print(type(tg.Tensor.exp).__name__)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["method_descriptor"]


def test_it_is_asked_for_and_never_waited_for(monkeypatch):
    opened = []
    monkeypatch.setattr(
        install, "install", lambda *, compiling, asking: opened.append((compiling, asking))
    )
    install.when_full()
    assert opened == [(False, True)]


def test_an_interpreter_with_another_layout(monkeypatch):
    monkeypatch.setattr(install, "installed", None)
    monkeypatch.setattr(install, "as_expected", lambda frame: False)
    assert not install.install()
    monkeypatch.setattr(install.sweep_abi, "as_listed", lambda: False)
    assert not install.install()

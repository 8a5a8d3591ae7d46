"""The recipe of CONTRIBUTING.md, followed to the letter: the lines come from that page."""

import doctest
import functools
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.autograd import sweep
from tapegrad.dispatch import axis_plans, call_plans
from tapegrad.functions import axis, inplace_methods, shapes
from tapegrad.functions import elementwise as functions
from tapegrad.kernels.codegen import kernel_table as kernels
from tapegrad.kernels.large.pass_lists import passes
from tapegrad.kernels.sweep.sweep_abi import CAPACITY, PER_OP
from tapegrad.native import install
from tapegrad.ops import elementwise, reduce, shape
from tapegrad.ops.core import LINEAR
from tapegrad.ops.families import by_code, table
from tapegrad.tape.tape import Tape
from tapegrad.tensor import Tensor
from tests import public_names
from tests.conformance import checks, samples
from tests.conformance.checks import F4, F8, Case

pytestmark = pytest.mark.tapegrad_only("about this project")

PAGE = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
RECIPE = PAGE.split("<!-- recipe: begin -->")[1].split("<!-- recipe: end -->")[0]
STEP = re.compile(r"^```py\n# (.*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def steps(part):
    """The lines of one part of the recipe, by what the first of them says."""
    return dict(STEP.findall(RECIPE.split("### ")[part]))


def added(module, lines, **more):
    """The namespace of a module to which lines were added."""
    namespace = vars(module) | more
    exec(lines, namespace)
    return namespace


class Extended:
    """A module with one more name."""

    def __init__(self, module, **more):
        self.__dict__.update(vars(module) | more)


@pytest.fixture
def late_rows():
    """Rows come late, and afterwards they are gone."""
    count = len(by_code)
    kernels.learn()
    yield
    kernels.addresses.reshape(-1, CAPACITY, PER_OP)[:, count:] = 0
    kernels.known[0] = count
    while len(by_code) > count:
        name = by_code.pop().name
        Tape.op_names.pop()
        del table[name]
        samples.SAMPLES.pop(name, None)


def on_a_fresh_tape(test):
    """Run a test on a thread, and so on a tape, of its own."""

    @functools.wraps(test)
    def run(*args, **kwargs):
        with ThreadPoolExecutor(1) as fresh:
            fresh.submit(test, *args, **kwargs).result()

    return run


def check(op, sample, dtype):
    """What the conformance suite asks of every row."""
    case = Case(op, sample, dtype)
    checks.check_record(case)
    checks.check_kernels(case)
    checks.check_differences(case)
    if op.kind is LINEAR:
        checks.check_transpose(case)
    checks.check_recorded(case)
    checks.check_second_order(case)


def check_example(monkeypatch, function, name):
    """The example in the docstring is true."""
    monkeypatch.setattr(tg, name, function, raising=False)
    example = doctest.DocTestParser().get_doctest(function.__doc__, {}, name, None, 0)
    assert example.examples
    assert doctest.DocTestRunner().run(example).failed == 0


@on_a_fresh_tape
def test_an_elementwise_operation(late_rows, monkeypatch):
    lines = steps(1)
    assert list(lines) == ["tapegrad/ops/elementwise.py"]
    witch = added(elementwise, lines["tapegrad/ops/elementwise.py"])["witch"]

    assert table["witch"] is witch
    monkeypatch.setattr(elementwise, "witch", witch, raising=False)
    written = public_names.source_files()
    assert "    def witch_(self) -> Tensor: ...\n" in written[public_names.SIGNATURES]
    assert " witch," in written[public_names.NAMESPACES[""]]
    (line,) = re.findall(
        "^witch = .*", written[public_names.FUNCTIONS / "elementwise.py"], re.MULTILINE
    )
    function = added(functions, line)["witch"]
    check_example(monkeypatch, function, "witch")
    changed = tg.tensor([1.0, 3.0])
    assert inplace_methods.of_row(witch)(changed) is changed
    assert changed.tolist() == [0.5, 0.1]

    x = tg.tensor([-1.0, 0.0, 3.0], requires_grad=True)
    y = function(x)
    assert isinstance(y, Tensor)
    assert y.tape[-1].op == "witch"
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [0.5, 0.0, -0.06], rtol=1e-15)
    assert tg.autograd.gradcheck(function, (x,))
    assert tg.autograd.gradgradcheck(function, (x,))

    found = samples.samples_of(witch)
    assert found
    for sample in found:
        check(witch, sample, F8)
    check(witch, found[2], F4)
    check_kernel(witch)
    checks.check_kernels(Case(witch, samples.of_shapes(witch, [(3, 4001)]), F8))  # a large array

    def refuse(*_):
        raise AssertionError("handed back to Python")

    monkeypatch.setattr(sweep, "by_rule", refuse)  # the compiled sweep does it by itself
    Case(witch, found[1], F8).gradients()


def check_kernel(op):
    """The compiled forward and the compiled gradient agree with NumPy."""
    x = np.linspace(-2.0, 2.0, 101)
    out, seed = np.empty_like(x), np.ones_like(x)
    expected = op(x)
    forward = kernels.forward(op, "f8", 0)
    assert forward is not None
    forward.call(x.size, out.ctypes.data, x.ctypes.data, 0, 0, 0, 0, 0)
    np.testing.assert_allclose(out, expected, rtol=1e-15)
    pull = kernels.pullback(op, 0, "f8", 0)
    assert pull is not None
    at = (seed.ctypes.data, out.ctypes.data, x.ctypes.data, 0, 0, expected.ctypes.data)
    pull.call(x.size, 0, *at)
    np.testing.assert_allclose(out, -2 * x / (1 + x * x) ** 2, rtol=1e-14)


def test_the_files_are_written_for_a_row_that_is_new(tmp_path):
    root = Path(__file__).parents[1]
    shutil.copytree(root / "tapegrad", tmp_path / "tapegrad")
    shutil.copytree(root / "docs", tmp_path / "docs")
    shutil.copy(root / "README.md", tmp_path)
    for path in ("*.py", "conformance/*.py", "peers/*.py"):  # the calls of the page of operations
        for module in (root / "tests").glob(path):
            (tmp_path / module.parent.relative_to(root)).mkdir(exist_ok=True)
            shutil.copy(module, tmp_path / module.relative_to(root))
    for path, text in steps(1).items():
        with open(tmp_path / path, "a", encoding="utf-8") as module:
            module.write(text)
    program = "import tapegrad as tg; t = tg.tensor(1.0); print(t.witch(), t.witch_(), tg.witch(t))"
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    for line in (["-m", "tests.public_names"], ["-c", program]):
        done = subprocess.run(
            [sys.executable, *line], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
    assert done.stdout == "tensor(0.5000) tensor(0.5000) tensor(0.8000)\n"
    page = (tmp_path / "docs" / "operations.md").read_text("utf-8")
    assert "| `witch` |  | `torch.witch` | all |  | `witch_` | 1 / (1 + x * x). |" in page


@on_a_fresh_tape
def test_an_operation_along_a_dimension(late_rows, monkeypatch):
    lines = steps(2)
    assert list(lines) == ["tapegrad/ops/reduce.py"]
    sharpmax = added(reduce, lines["tapegrad/ops/reduce.py"])["sharpmax"]
    monkeypatch.setattr(reduce, "sharpmax", sharpmax, raising=False)
    written = public_names.source_files()
    assert "    def sharpmax(self, dim: _int, *" in written[public_names.SIGNATURES]
    assert " sharpmax" in written[public_names.NAMESPACES[""]]
    (line,) = re.findall(
        "^sharpmax = .*", written[public_names.FUNCTIONS / "axis.py"], re.MULTILINE
    )
    function = added(axis, line)["sharpmax"]
    check_example(monkeypatch, function, "sharpmax")

    found = samples.samples_of(sharpmax)
    assert len(found) == 4
    for sample in found:
        check(sharpmax, sample, F8)
    check(sharpmax, found[1], F4)

    install.install()
    assert kernels.small_axis_loop(
        sharpmax, compiling=True
    )  # before it is called: plans are made then
    x = tg.tensor(np.random.default_rng(0).standard_normal((2, 3, 4)), requires_grad=True)
    expected = tg.softmax(2 * x, 1).tolist()
    for made in (tg.jit(lambda t: function(t, 1))(x), tg.vmap(lambda t: function(t, 0))(x)):
        np.testing.assert_allclose(made.tolist(), expected, rtol=1e-14)
    assert tg.autograd.gradgradcheck(lambda t: function(t, 1), (x,))
    for _ in range(call_plans.TIMES + 1):
        y = function(x, 1)

    check_large(sharpmax, function, monkeypatch)

    def refuse(*_, **__):
        raise AssertionError("handed back to Python")

    monkeypatch.setattr(axis_plans, "run_one", refuse)  # compiled code runs it by itself,
    monkeypatch.setattr(sweep, "by_rule", refuse)  # forward and back
    y = function(x, 1)
    np.testing.assert_allclose(y.tolist(), expected, rtol=1e-14)
    (y * y).sum().backward()


def check_large(op, function, monkeypatch):
    """Large arrays go through generated loops, which take about as long as those of softmax.

    One thread runs them, since workers that wait for a busy machine's cores say nothing of loops.
    """
    threads = tg.get_num_threads()
    tg.set_num_threads(1)
    try:
        compare_large(op, function, monkeypatch)
    finally:
        tg.set_num_threads(threads)


def compare_large(op, function, monkeypatch):
    rng = np.random.default_rng(1)
    for array, dim in ((rng.standard_normal(10**6), 0), (rng.standard_normal((1000, 1000)), 1)):
        y = op(array, dim=(dim,))
        np.testing.assert_allclose(y, op.forward.plain(array, dim=(dim,)), rtol=1e-12)
        x = tg.tensor(array, requires_grad=True)
        weight = tg.tensor(rng.standard_normal(array.shape))
        expected = tg.autograd.grad(tg.softmax(2 * x, dim), x, weight)[0].numpy()
        with monkeypatch.context() as patch:
            patch.setattr(sweep, "by_rule", None)  # the rule is not called
            (found,) = tg.autograd.grad(function(x, dim), x, weight)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-9, atol=1e-18)
        native = passes(op, array, y, {"dim": (dim,)})
        assert bool(native)

        def forward_and_back(f, x=x, dim=dim, weight=weight):
            start = time.perf_counter()
            tg.autograd.grad(f(x, dim), x, weight)
            return time.perf_counter() - start

        # Whoever comes first may have to ask for the pages that the other one then finds.
        times = [[forward_and_back(f) for f in (function, tg.softmax)] for _ in range(15)]
        swapped = [[forward_and_back(f) for f in (tg.softmax, function)] for _ in range(15)]
        ours, softmax = np.min([*times, *np.flip(swapped, 1)], axis=0)
        assert ours <= 1.2 * softmax


@on_a_fresh_tape
def test_a_linear_operation(late_rows, monkeypatch):
    lines = steps(3)
    assert list(lines) == [
        "tapegrad/ops/shape.py",
        "tapegrad/functions/shapes.py",
        "tests/conformance/samples.py",
    ]
    cycle = added(shape, lines["tapegrad/ops/shape.py"])["cycle"]

    more = Extended(shape, cycle=cycle)
    function = added(shapes, lines["tapegrad/functions/shapes.py"], s=more)["cycle"]
    check_example(monkeypatch, function, "cycle")

    x = tg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    (function(x, 1, -1) * tg.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [10.0, 100.0, 1.0]
    with pytest.raises(IndexError, match="`cycle`: dimension 1 is out of range"):
        function(x, 1, 1)

    added(samples, lines["tests/conformance/samples.py"])
    found = samples.samples_of(cycle)
    assert len(found) == 3
    for sample in found:
        for dtype in (F8, F4):
            check(cycle, sample, dtype)


def test_a_row_without_samples_is_noticed():
    cycle = type("Row", (), {"kind": LINEAR, "name": "cycle", "axis": ""})
    assert not samples.samples_of(cycle)


def test_nothing_stays_behind():
    assert "witch" not in table
    assert "cycle" not in table
    assert "cycle" not in samples.SAMPLES

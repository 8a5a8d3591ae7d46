"""detect_anomaly: a NaN in backward is an error that says where it came from."""

import importlib
import warnings

import pytest


@pytest.fixture(autouse=True)
def quiet():
    """Anomaly mode may warn that it is slow, and print the forward traceback as a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def nan_gradient(tg):
    """sqrt at -1: value NaN, gradient NaN."""
    x = tg.tensor([-1.0, 4.0], requires_grad=True)
    return x, tg.sqrt(x * 1).sum()


def test_without_it_a_nan_passes(tg):
    x, y = nan_gradient(tg)
    y.backward()
    assert x.grad.isnan().tolist() == [True, False]


def test_detect_anomaly_raises_and_names_the_operation(tg):
    with tg.autograd.detect_anomaly():
        x, y = nan_gradient(tg)
        with pytest.raises(RuntimeError, match=r"(?i)sqrt.*nan"):
            y.backward()
    assert x.grad is None


@pytest.mark.parametrize("shape", [(20_000,), (150, 150)])
def test_large_arrays_are_looked_at_too(tg, shape):
    with tg.autograd.detect_anomaly():
        x = tg.ones(shape, requires_grad=True)
        with pytest.raises(RuntimeError, match=r"(?i)div.*nan"):
            ((x * 0) / (x * 0)).sum().backward()
        if len(shape) == 2:
            y = tg.full(shape, float("nan"))
            with pytest.raises(RuntimeError, match=r"(?i)(mm|mat).*nan"):
                (x @ y).sum().backward()


def test_autograd_grad_raises_too(tg):
    with tg.autograd.detect_anomaly():
        x, y = nan_gradient(tg)
        with pytest.raises(RuntimeError, match=r"(?i)nan"):
            tg.autograd.grad(y, x)


def test_a_good_gradient_is_the_same_with_it(tg, leaf):
    x = leaf([1.0, 4.0])
    with tg.autograd.detect_anomaly():
        tg.sqrt(x).sum().backward()
    assert x.grad.tolist() == [0.5, 0.25]


def test_infinity_is_not_an_anomaly(tg, leaf):
    x = leaf(0.0)
    with tg.autograd.detect_anomaly():
        tg.sqrt(x).backward()
    assert x.grad.item() == float("inf")


def test_check_nan_false_lets_nan_pass(tg):
    with tg.autograd.detect_anomaly(check_nan=False):
        x, y = nan_gradient(tg)
        y.backward()
    assert x.grad.isnan().tolist() == [True, False]


def test_it_ends_with_its_context(tg):
    with tg.autograd.detect_anomaly():
        pass
    x, y = nan_gradient(tg)
    y.backward()
    assert x.grad.isnan().any()


def test_set_detect_anomaly(tg):
    try:
        tg.autograd.set_detect_anomaly(True)
        _, y = nan_gradient(tg)
        with pytest.raises(RuntimeError, match=r"(?i)nan"):
            y.backward()
    finally:
        tg.autograd.set_detect_anomaly(False)
    x, y = nan_gradient(tg)
    y.backward()
    assert x.grad.isnan().any()


def test_set_detect_anomaly_as_a_context(tg):
    with tg.autograd.set_detect_anomaly(True):
        _, y = nan_gradient(tg)
        with pytest.raises(RuntimeError, match=r"(?i)nan"):
            y.backward()
    with tg.autograd.set_detect_anomaly(False):
        _, y = nan_gradient(tg)
        y.backward()


def test_a_function_that_returns_nan_is_named(tg, leaf):
    class Broken(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * float("nan")

    x = leaf(1.0)
    with tg.autograd.detect_anomaly():
        y = Broken.apply(x) * 3
        with pytest.raises(RuntimeError, match="Broken"):
            y.backward()
    assert x.grad is None


def test_an_error_of_a_function_keeps_its_type(tg, leaf):
    class Broken(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            raise ZeroDivisionError("in backward")

    with tg.autograd.detect_anomaly():
        y = Broken.apply(leaf(1.0))
        with pytest.raises(ZeroDivisionError, match="in backward"):
            y.backward()


@pytest.mark.tapegrad_only("PyTorch prints the forward traceback as a warning")
def test_the_line_that_recorded_the_operation_is_named(tg):
    with tg.autograd.detect_anomaly():
        x = tg.tensor([-1.0, 4.0], requires_grad=True)
        y = tg.sqrt(x * 1)  # the culprit
        z = y.sum()
        with pytest.raises(RuntimeError) as caught:
            z.backward()
    message = str(caught.value)
    with open(__file__) as source:
        lines = source.read().splitlines()
    number = next(i for i, text in enumerate(lines, 1) if text.endswith("  # the culprit"))
    assert f"test_anomaly.py:{number}" in message or f'test_anomaly.py", line {number}' in message


@pytest.mark.tapegrad_only("a masked NaN is no NaN")
def test_a_masked_nan_is_not_an_anomaly(tg, leaf):
    x = leaf([0.0, 4.0])
    with tg.autograd.detect_anomaly():
        tg.where(x > 0, tg.sqrt(x), tg.zeros(2)).sum().backward()
    assert x.grad.tolist() == [0.0, 0.25]


@pytest.mark.tapegrad_only("looks at the tape")
def test_lines_hold_no_record(tg, leaf, monkeypatch):
    tape = importlib.import_module("tapegrad.tape")
    monkeypatch.setattr(tape.current, "tape", tape.Tape())
    x = leaf([1.0, 2.0])
    with tg.autograd.set_detect_anomaly(True):
        for _ in range(6000):
            x * 1.0
    tape = (x * 1.0).tape
    assert len(tape) < 5000
    assert len(tape.traces) < 5000

"""NumPy's functions in a loop of Python: a call is traced twice, and then copied."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.compiler.trace import repeated_calls, traced
from tests.compiler.graphs import executed, same_bits
from tests.compiler.graphs import traced as traced_graph

pytestmark = pytest.mark.tapegrad_only("about tracing")
A = np.random.default_rng(0).standard_normal((3, 3)) + 4 * np.eye(3)
B = np.random.default_rng(1).standard_normal((3, 3))


@pytest.fixture
def run(monkeypatch):
    """The calls of NumPy's functions that were not copied, by name."""
    found = []
    real = repeated_calls.array_function

    def noted(t, func, types, args, kwargs):
        found.append(func.__name__)
        return real(t, func, types, args, kwargs)

    monkeypatch.setattr(repeated_calls, "array_function", noted)
    return found


def check(f, *args):
    """Check that a function traces to the same records, and values, as where nothing is copied."""
    graph = traced_graph(f, *args)

    def anew(trace, t, func, types, args, kwargs):
        return repeated_calls.array_function(t, func, types, args, kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(traced, "called_like", anew)
        plain = traced_graph(f, *args)
    assert str(graph) == str(plain)
    same_bits(executed(graph, *args), executed(plain, *args))
    found, expected = tg.jit(f)(*args), f(*args)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


def filtered(a, b):
    for _ in range(6):
        gain = np.linalg.solve(a, b).T
        b = np.concatenate([b[:, :1] * 0.5, (gain @ b)[:, 1:]], 1)
    return b


def test_a_call_is_run_twice_and_then_copied(run):
    check(filtered, A, B)
    run.clear()
    tg.jit(filtered).lower(A, B)
    assert run.count("solve") == run.count("concatenate") == 2


def test_what_differs_is_no_copy():
    def f(a, b):
        for k in range(8):
            axis = k % 2
            a = np.concatenate([a, b] if k < 3 else [b, b], axis)[:3, :3] * 0.5
            b = b.T + np.sum(a, axis, keepdims=k % 3 == 0)
            b = np.clip(b, -1, 1) if k % 2 else np.clip(b, -2.0, 1.5)
        return a + np.stack([b[0], b[1], b[1]])

    check(f, A, B)


def test_layouts_differ():
    def f(a, b):
        for k in range(8):
            b = np.linalg.solve(a.T if k % 2 else a, b) + np.sum(b.T, axis=0)
            b = np.cumsum(b.T if k % 3 else b, axis=1) * 0.1
        return b

    check(f, A, B)


def test_an_equal_record_from_before_is_no_part_of_a_call():
    """A weighted mean multiplies what the program has multiplied before, in some calls only."""

    def f(a, b):
        for k in range(8):
            product = a * b if k % 2 else a + b
            a = a + np.average(a, weights=b * b + 1.0) * product * 0.01
            c = b * b + 1.0
            b = b + np.average(c, weights=a * c) * 0.01
        return a + b

    found = tg.jit(f)(A, B)
    np.testing.assert_allclose(found, f(A, B), rtol=1e-12)
    slope = tg.grad(lambda a: np.sum(f(a, B)))
    np.testing.assert_allclose(tg.jit(slope)(A), slope(A), rtol=1e-11)


def test_gradients_pass_copies_and_stop_where_there_are_none():
    def f(a, b):
        for k in range(6):
            if k % 2:
                b = np.linalg.solve(a, b)
            else:
                with tg.no_grad():
                    b = np.linalg.solve(a, b) + b
        return np.sum(b**2)

    slope = tg.grad(f)
    np.testing.assert_allclose(tg.jit(slope)(A, B), slope(A, B), rtol=1e-11)


def test_results_are_tensors_of_their_own():
    def f(a):
        path = [np.sum(a, 0) for _ in range(5)]
        path[3] += 1.0
        path[4][0] = 7.0
        return np.stack(path)

    np.testing.assert_allclose(tg.jit(f)(A), f(tg.tensor(A)).numpy())


def test_a_written_operand_is_another_one():
    def f(a, b):
        total = 0.0
        c = a * 1.0
        row = c[0]
        for k in range(6):
            c[0] = b[k % 3] * k
            total = total + np.sum(row) + np.sum(np.linalg.solve(a, c))
        return total

    np.testing.assert_allclose(tg.jit(f)(A, B), f(tg.tensor(A), tg.tensor(B)).item())


def test_errors_are_those_of_the_function():
    def f(a):
        for k in range(5):
            a = np.concatenate([a, a[:, : 3 - (k > 3)]], 0)[:3]
        return a

    with pytest.raises((RuntimeError, ValueError)):
        tg.jit(f)(A)

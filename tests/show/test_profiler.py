"""`tg.profile` times operations, sweeps and compiling, and leaves nothing behind."""

import json
import os
import threading

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.autograd.sweep import Sweep
from tapegrad.base import compile_stages
from tapegrad.compiler.front.jitted import Jitted
from tapegrad.dispatch import dispatch, inplace, views
from tapegrad.dispatch.native_calls import NativeCalls, native_calls
from tapegrad.ops.families import by_code
from tapegrad.show.profiler import Event, _own_times
from tapegrad.tape.tape import current

pytestmark = pytest.mark.tapegrad_only("about this project's profiler")


def calls(p, phase):
    return {row.name: row.calls for row in p.rows if row.phase == phase}


def loss(x):
    return (tg.softmax(tg.exp(x) @ x, 1) * x[1]).sum(0).mean()


def test_each_operation_and_each_step_of_the_sweep_is_a_row():
    x = tg.ones(4, 4, requires_grad=True)
    with tg.profile() as p:
        loss(x).backward()
    operations = {
        "exp": 1, "matmul": 1, "softmax": 1, "getitem": 1, "mul": 1, "sum": 1, "mean": 1,
    }  # fmt: skip
    assert calls(p, "forward") == operations
    assert calls(p, "sweep") == operations


def test_operations_that_are_not_recorded_are_rows_too():
    x = tg.ones(4)
    with tg.profile() as p:
        tg.exp(x), x + 1.0, x.sum(), x.sum(0), tg.eye(2) @ tg.eye(2)
        x += 1
        x.mul_(2.0)
        x[0] = 5.0
    found = calls(p, "forward")
    assert found.items() >= {"exp": 1, "add": 2, "sum": 2, "matmul": 1, "mul": 1}.items()
    assert x.tolist() == [5.0, 4.0, 4.0, 4.0]


def test_gradients_are_the_same():
    values = np.linspace(-1, 1, 16).reshape(4, 4)
    found = []
    for timed in (False, True):
        x = tg.tensor(values, requires_grad=True)
        if timed:
            with tg.profile():
                loss(x).backward()
        else:
            loss(x).backward()
        found.append(x.grad.numpy())
    np.testing.assert_allclose(*found, rtol=1e-14)


def test_transforms_and_recorded_sweeps():
    with tg.profile() as p:
        assert tg.grad(tg.grad(lambda x: x**3))(2.0) == 12.0
    assert calls(p, "forward")["cube"] == 1
    assert calls(p, "sweep").keys() >= {"cube", "mul"}


def test_times_add_up_to_less_than_the_whole():
    x = tg.ones(300, 300, requires_grad=True)
    with tg.profile() as p:
        loss(x).backward()
    start, end = min(e.start for e in p.events), max(e.end for e in p.events)
    assert 0 < sum(row.total for row in p.rows) <= (end - start) / 1e9
    assert [row.total for row in p.rows] == sorted([row.total for row in p.rows], reverse=True)
    assert all(row.mean == row.total / row.calls for row in p.rows)


def test_what_lies_within_an_event_is_not_counted_twice():
    events = [
        Event("compile", "b", 20, 30), Event("forward", "a", 10, 50), Event("sweep", "c", 50, 60),
    ]  # fmt: skip
    assert {e.name: own for e, own in _own_times(events)} == {"a": 30, "b": 10, "c": 10}


def test_a_jitted_call_is_one_row_and_its_compiling_others():
    def cube(x):
        return x * x * x

    f = tg.jit(cube)
    with tg.profile() as p:
        assert f(2.0) == 8.0
        assert f(3.0) == 27.0
    assert calls(p, "forward") == {"jit cube": 2}
    assert calls(p, "compile").keys() >= {
        "jit cube: trace", "jit cube: passes", "jit cube: lower"
    }  # fmt: skip


def test_compiling_is_named_by_what_needs_it():
    def compile_something():
        with compile_stages.stage("kernel"):
            pass

    with tg.profile() as p:
        compile_something()
        p.timed("forward", "exp", compile_something)
    assert calls(p, "compile") == {"kernel": 1, "exp: kernel": 1}


def state():
    """Everything that a profile exchanges."""
    functions = dispatch.run, dispatch.run_constant, inplace.run_inplace, views.make_view
    return (
        [f.__code__ for f in functions],
        [op.entry_point for op in by_code],
        [getattr(native_calls, name, None) for name in NativeCalls.__slots__],
        [vars(Sweep)["_step"], vars(Sweep)["_run_compiled"], vars(Jitted)["__call__"]],
        [vars(tg.Tensor)[name] for name in ("exp", "__add__", "__mul__", "sum")],
        [compile_stages.listener, current.tape.mode, current.tape.careful],
    )


def test_nothing_is_left_behind():
    before = state()
    with tg.profile():
        assert all(now != then for now, then in zip(state()[:4], before[:4], strict=True))
    assert state() == before


def test_nothing_is_left_behind_after_an_error():
    before = state()
    with pytest.raises(RuntimeError, match="truth value"), tg.profile():
        bool(tg.exp(tg.ones(3)))
    assert state() == before


def test_the_native_path_is_not_opened_while_a_profile_is_active(monkeypatch):
    from tapegrad.native import install

    before = state()
    with tg.profile():
        assert not install.install(compiling=False)
        assert native_calls.sweep is None
    assert state() == before


def test_the_mode_stays_where_others_set_it():
    x = tg.ones(3, requires_grad=True)
    with tg.profile() as p, tg.autograd.set_detect_anomaly(True):
        pass
    with tg.profile() as p:
        with tg.autograd.set_detect_anomaly(True):
            pass
        tg.exp(x).sum().backward()
    assert calls(p, "sweep") == {"exp": 1, "sum": 1}


def test_another_thread_is_not_timed():
    found = []

    def work():
        x = tg.ones(3, requires_grad=True)
        tg.exp(x).sum().backward()
        found.append(x.grad.tolist())

    with tg.profile() as p:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    np.testing.assert_allclose(found, [np.exp(np.ones(3))])
    assert p.events == []


def test_only_one_can_be_active():
    with (
        tg.profile(),
        pytest.raises(RuntimeError, match="`profile` is active already"),
        tg.profile(),
    ):
        pass
    with tg.profile() as p:
        tg.exp(tg.ones(3))
    assert calls(p, "forward")["exp"] == 1


def test_the_trace_is_in_the_trace_event_format(tmp_path):
    x = tg.ones(3, requires_grad=True)
    with tg.profile() as p:
        tg.exp(x).sum().backward()
    p.save(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())
    assert trace["displayTimeUnit"] in ("ns", "ms")
    kinds = {"M": [], "X": []}
    for event in trace["traceEvents"]:
        kinds[event["ph"]].append(event)
        assert isinstance(event["name"], str)
        assert event["pid"] == os.getpid()
        assert isinstance(event["tid"], int)
    assert {(e["cat"], e["name"]) for e in kinds["X"]} >= {
        ("forward", "exp"), ("forward", "sum"), ("sweep", "sum"), ("sweep", "exp"),
    }  # fmt: skip
    assert all(e["ts"] >= 0 and e["dur"] >= 0 for e in kinds["X"])
    starts = [e["ts"] for e in kinds["X"]]
    assert starts == sorted(starts)
    assert starts[0] == 0
    assert kinds["M"][0]["args"] == {"name": "tapegrad"}


def test_printed_and_as_html():
    with tg.profile() as p:
        tg.exp(tg.ones(3))
    assert "forward" in str(p).splitlines()[0]
    assert str(p).splitlines()[1].split() == [
        "phase",
        "operation",
        "calls",
        "total",
        "mean",
        "share",
    ]
    assert "<td>exp</td>" in p._repr_html_()
    assert repr(p).startswith("<profile: ")


def test_an_empty_profile():
    with tg.profile() as p:
        pass
    assert p.rows == []
    assert "0 events" in str(p)
    assert len(p._trace()["traceEvents"]) == 1

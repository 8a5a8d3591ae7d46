"""A trace that gets long says so, once for each line of the user's program."""

import pytest

import tapegrad as tg
from tapegrad.compiler.trace.trace import Trace

pytestmark = pytest.mark.tapegrad_only("PyTorch has no `jit` of this kind")


def unrolled(x):
    for _ in range(100):
        x = x + 0.1 * x
    return x


def rolled(x):
    return tg.fori_loop(0, 100, lambda _, x: x + 0.1 * x, x)


def test_a_long_trace_says_what_to_write(monkeypatch, capsys):
    monkeypatch.setattr(Trace, "long", 50)
    assert tg.jit(rolled)(1.0) == pytest.approx(1.1**100)
    assert capsys.readouterr().err == ""
    assert tg.jit(unrolled)(1.0) == pytest.approx(1.1**100)
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert f"{__file__}:" in said
    assert "`tapegrad.scan`" in said
    assert tg.jit(unrolled)(2.0) == pytest.approx(2 * 1.1**100)
    assert capsys.readouterr().err == ""

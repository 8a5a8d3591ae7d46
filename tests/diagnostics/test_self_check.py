"""The self-check finds derivatives right here, and says what is wrong where something is."""

import sys

import numpy as np
import pytest

from tapegrad import __main__ as command
from tapegrad.diagnostics import self_check
from tapegrad.native import install

pytestmark = pytest.mark.tapegrad_only("about this installation")


def test_all_is_right_here(capsys):
    assert self_check.check() == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == list(self_check.CHECKS)
    native = install.possible()
    assert [": right (" in line for line in lines] == [True] * 4 + [native]


def failing(*results):
    return lambda: list(results)


def raising():
    raise ValueError("of no use")


@pytest.mark.parametrize(
    ("check", "said"),
    [
        (failing((1.0, 1.0), (1.0, 1.5)), "differs from the known values by 5.0e-01"),
        (failing((np.nan, 1.0)), "differs from the known values by nan"),
        (failing((np.ones(2), np.ones(3))), "got the shape (2,), expected (3,)"),
        (raising, "ValueError: of no use"),
    ],
)
def test_what_fails_is_named_and_the_rest_goes_on(check, said, capsys, monkeypatch):
    checks = {"first": check, "second": failing((1.0, 1.0))}
    monkeypatch.setattr(self_check, "CHECKS", checks)
    assert command.main(["check"]) == 1
    first, second = capsys.readouterr().out.splitlines()
    assert first == f"first: FAILED: {said}"
    assert second.startswith("second: right")


def test_native_code_that_is_not_there_is_no_fault(capsys, monkeypatch):
    checks = {"native": self_check.natively}
    monkeypatch.setattr(self_check, "CHECKS", checks)
    monkeypatch.setattr(install, "install", lambda *, compiling: False)
    assert self_check.check() == 0
    monkeypatch.setattr(install, "possible", lambda: False)
    assert self_check.check() == 0
    said = capsys.readouterr().out
    assert said.count("native: ") == 2
    assert "right" not in said


@pytest.mark.skipif(sys.platform == "win32", reason="stands a shell script in for Python")
def test_a_process_that_crashes_or_takes_too_long(tmp_path, capfd, monkeypatch):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nkill -SEGV $$\n")
    python.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(python))
    assert self_check.check_in_time() == 1
    assert "FAILED: the process ended with -11" in capfd.readouterr().out
    python.write_text("#!/bin/sh\nexec sleep 60\n")
    monkeypatch.setattr(self_check, "LIMIT", 0.2)
    assert self_check.check_in_time() == 1
    assert "ended after 0.2 s: `python -m tapegrad check`" in capfd.readouterr().out


def test_the_command(capfd, monkeypatch):
    monkeypatch.setattr(self_check, "LIMIT", 120)  # of what may be compiling beside others
    assert command.main([]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert lines[0].startswith("tapegrad ")
    assert [line.split(":")[0] for line in lines[-len(self_check.CHECKS) :]] == [*self_check.CHECKS]

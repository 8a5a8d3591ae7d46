"""The report names versions, processor, cache and threads, and what is missing."""

import os
import platform
from importlib import metadata

import llvmlite.binding as llvm
import pytest

import tapegrad as tg
from tapegrad.diagnostics.environment import environment
from tapegrad.native import install

pytestmark = pytest.mark.tapegrad_only("about this installation")


def test_versions_processor_and_threads():
    text = "\n".join(environment())
    assert text.startswith(f"tapegrad {tg.__version__} in {os.path.dirname(tg.__file__)}\n")
    assert f"{platform.python_version()}, NumPy {metadata.version('numpy')}, Numba " in text
    assert f"llvmlite {metadata.version('llvmlite')}, SciPy {metadata.version('scipy')}\n" in text
    assert f"\nthreads: {tg.get_num_threads()}, on " in text
    assert f"compiling for {llvm.get_host_cpu_name()} with " in text


def test_the_cache_is_named_and_measured(tmp_path, monkeypatch):
    monkeypatch.setenv("TAPEGRAD_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("TAPEGRAD_CACHE", raising=False)
    (tmp_path / "a.o").write_bytes(bytes(1_500_000))
    (tmp_path / "compiling-0.lock").write_bytes(b"")
    assert f"kernel cache: {tmp_path}, 1 files, 1.5 MB" in environment()
    monkeypatch.setenv("TAPEGRAD_CACHE_DIR", str(tmp_path / "missing"))
    assert f"kernel cache: {tmp_path / 'missing'}, 0 files, 0.0 MB" in environment()
    monkeypatch.setenv("TAPEGRAD_CACHE", "0")
    assert any(line.startswith("kernel cache: none") for line in environment())


def test_what_is_missing_is_said(monkeypatch):
    def version(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", version)
    assert "SciPy (not installed)" in list(environment())[1]


@pytest.mark.parametrize(
    ("possible", "opened", "said"),
    [(False, False, "off"), (True, True, "compiled"), (True, False, "not compiled yet")],
)
def test_native_code(possible, opened, said, monkeypatch):
    monkeypatch.setattr(install, "possible", lambda: possible)
    monkeypatch.setattr(install, "install", lambda *, compiling: opened)
    assert list(environment())[-1].startswith(f"native operations: {said}")

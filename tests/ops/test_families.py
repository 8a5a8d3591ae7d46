"""Families of operations that are loaded late."""

import subprocess
import sys
from pathlib import Path

import pytest

from tapegrad.ops import families

pytestmark = pytest.mark.tapegrad_only("about this project")


def run(code):
    """What a fresh Python prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_all_rows_are_in_families():
    modules = [f"tapegrad.ops.{path.stem}" for path in Path(families.__file__).parent.glob("*.py")]
    code = (
        "from importlib import import_module; from tapegrad.ops.families import by_code, table\n"
        f"rows = [*by_code]; [import_module(name) for name in {modules}]\n"
        "print(rows == by_code == [*table.values()])"
    )
    assert run(code) == ["True"]


def test_a_family_is_loaded_by_what_uses_it():
    code = (
        "import tapegrad as tg; from tapegrad.ops.core import table; print('fft_c2c' in table)\n"
        "x = tg.ones(4, requires_grad=True)\n"
        "tg.fft.fft(x).real.sum().backward(); print('fft_c2c' in table, x.grad.tolist())"
    )
    assert run(code) == ["False", "True", "[4.0,", "0.0,", "0.0,", "0.0]"]


def test_rows_that_come_after_native_code_was_installed_go_by_it():
    code = (
        "import tapegrad as tg; from tapegrad.native import install; install.install()\n"
        "from tapegrad.ops.core import table; print('silu' in table)\n"
        "x = tg.tensor([0.0], requires_grad=True)\n"
        "y = tg.nn.functional.silu(x); y.backward()\n"
        "print(type(table['silu'].entry_point).__name__, x.grad.item())"
    )
    assert run(code) == ["False", "builtin_function_or_method", "0.5"]


def test_threads_may_load_families_at_the_same_time():
    code = (
        "import sys, tapegrad; from concurrent.futures import ThreadPoolExecutor\n"
        "from importlib import import_module; from tapegrad.ops.core import by_code, table\n"
        "sys.setswitchinterval(1e-6)\n"
        "names = 'alignments convolution fourier losses lu scipy_special sparse windows'.split()\n"
        "with ThreadPoolExecutor(8) as threads:\n"
        "    list(threads.map(lambda name: import_module('tapegrad.ops.' + name), names))\n"
        "print([op.code for op in by_code] == [*range(len(table))])"
    )
    assert run(code) == ["True"]

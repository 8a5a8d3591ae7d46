"""Every row x every kind of array x every way to run it, each array right beside a closed page.

In processes of their own: what reads or writes beyond an array, which the allocator of `guarded`
makes a crash, is then a test that fails.
"""

import os
import subprocess
import sys

import pytest

from tests.conformance.input_arrays import MODES


def run(*arguments):
    # Memory that is not NumPy's is filled when it is freed, too.
    environment = os.environ | {"MALLOC_PERTURB_": "165"}
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-m", *arguments],
        capture_output=True, text=True, env=environment, check=False,
    )  # fmt: skip


def check(mode, *every):
    done = run("tests.conformance.input_arrays", mode, *every)
    assert done.returncode == 0, done.stderr[-3000:]
    summary, *wrong = done.stdout.splitlines()
    assert not wrong, "\n".join(wrong)
    cases, refused = (int(word) for word in summary.split() if word.isdigit())
    assert cases > 300
    assert refused * 50 < cases  # a walk of refusals would prove nothing


@pytest.mark.parametrize("mode", MODES)
def test_any_array_is_as_a_plain_one(mode, pytestconfig):
    """With --nightly every kind in every mode, else each kind in one of them."""
    check(mode, *["every"] * pytestconfig.getoption("--nightly"))


BEYOND = """
import ctypes, os, numpy as np
from tests.conformance import guarded
guarded.install()
arrays = [np.ones(512) for _ in range(9)]  # of just one page: both ends lie beside a closed one
ctypes.c_double.from_address(arrays[{k}].ctypes.data + {offset}).value {change}
os._exit(0)
"""


@pytest.mark.parametrize("change", ["", "= 1.0"], ids=["read", "write"])
@pytest.mark.parametrize("offset", [-8, 0, 8 * 511, 8 * 512])
def test_beyond_an_array_is_a_crash(offset, change):
    code = BEYOND.format(k=4, offset=offset, change=change)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    inside = 0 <= offset < 8 * 512
    assert (done.returncode == 0) == inside, done.stderr

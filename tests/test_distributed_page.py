"""The programs of docs/distributed.md do what the page says."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.tapegrad_only("about programs of several processes")

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "distributed.md").read_text(encoding="utf-8")
DASK, MPI = re.findall(r"^```py\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def run(program, folder, *before):
    path = folder / "fit.py"
    path.write_text(program)
    done = subprocess.run(
        [*before, sys.executable, str(path)], env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return np.array(done.stdout.strip(" []\n").split(), float)


def test_dask(tmp_path):
    pytest.importorskip("dask.array", reason="`make distributed` installs it")
    pytest.importorskip("distributed", reason="`make distributed` installs it")
    weights = run(DASK, tmp_path)
    np.testing.assert_allclose(weights / weights[0], [1.0, -2.0, 0.5], atol=0.2)


def test_mpi(tmp_path):
    pytest.importorskip("mpi4py", reason="`make distributed` installs it, if there is an MPI")
    if shutil.which("mpirun") is None:
        pytest.skip("there is no `mpirun` (Debian's package is openmpi-bin)")
    options = "--allow-run-as-root", "--oversubscribe"
    weights = run(MPI, tmp_path, "mpirun", *options, "-n", "2")
    assert weights.tolist() == [1.0, -2.0, 0.5]

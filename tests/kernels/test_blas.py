"""The routines of SciPy's BLAS, LAPACK and special functions, by address."""

import subprocess
import sys

import pytest

from tapegrad.kernels.blas import capsules, routine

pytestmark = pytest.mark.tapegrad_only("how SciPy's routines are found")


def test_addresses_are_found():
    addresses = [routine(name) for name in ("dgemm", "sgemm", "dgesv", "zgetrf")]
    assert len({*addresses}) == 4
    assert all(addresses)
    with pytest.raises(KeyError):
        routine("no such routine")


def test_a_matrix_product_imports_no_package_of_scipy():
    code = (
        "import sys; from tapegrad.kernels.blas import routine\n"
        "address = routine('dgemm')\n"
        "print('scipy.linalg' in sys.modules, 'scipy.linalg.cython_blas' in sys.modules)\n"
        "import scipy.linalg.cython_blas\n"  # as its users do, later
        "from tapegrad.kernels import blas; blas._capsules.cache_clear()\n"
        "print(scipy.linalg.cython_blas is not None, blas.routine('dgemm') == address)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False", "True", "True"]


def test_threads_load_them_once():
    code = (
        "import sys, threading; sys.setswitchinterval(1e-6)\n"
        "from tapegrad.kernels.blas import routine\n"
        "barrier, found = threading.Barrier(6), []\n"
        "def work(): barrier.wait(); found.append(routine('dgemm'))\n"
        "threads = [threading.Thread(target=work) for _ in range(6)]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]\n"
        "print(len(found), len({*found}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["6", "1"]


def test_signatures_come_with_them():
    signature, address = capsules("scipy.special.cython_special")["gammainc"]
    assert address
    assert signature

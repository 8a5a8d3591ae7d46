"""What the modules that stand for NumPy's and SciPy's show: the others' names, and no more."""

import importlib

import numpy as np
import pytest

pytestmark = pytest.mark.tapegrad_only("HIPS autograd's names")
# The module, the one that it stands for, and what is its own.
MODULES = {
    "numpy": (
        "numpy",
        "append array asarray asanyarray ascontiguousarray c_ full full_like make_diagonal mean r_ "
        "std var where",
    ),
    "numpy.linalg": ("numpy.linalg", "norm"),
    "numpy.fft": ("numpy.fft", ""),
    "numpy.random": ("numpy.random", ""),
    "scipy.special": ("scipy.special", "logsumexp multigammaln polygamma"),
}


@pytest.mark.parametrize("name", MODULES)
def test_no_name_leaks(name):
    module = importlib.import_module(f"tapegrad.compat.autograd.{name}")
    original = importlib.import_module(MODULES[name][0])
    submodules = {n.rpartition(".")[2] for n in MODULES if n.startswith(f"{name}.")}
    shown = {n for n in vars(module) if not n.startswith("_")} - submodules
    assert shown == set(MODULES[name][1].split())
    for n in dir(original):
        if not n.startswith("_") and n not in shown | submodules:
            assert getattr(module, n) is getattr(original, n)


def test_numpys_functions_are_numpys():
    anp = importlib.import_module("tapegrad.compat.autograd.numpy")
    assert type(anp.reshape(np.arange(4.0), (2, 2))) is np.ndarray
    np.testing.assert_array_equal(anp.reshape([1.0, 2.0], (2, 1)), [[1.0], [2.0]])
    for name in ("Tensor", "clone", "Any", "annotations"):
        assert not hasattr(anp, name)

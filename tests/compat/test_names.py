"""What the modules that stand for NumPy's and SciPy's show: the others' names, and no more."""

import importlib

import numpy as np
import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("HIPS autograd's names")
# The module, the one that it stands for, and what is its own.
MODULES = {
    "numpy": (
        "numpy",
        "amax amin any all append argmax argmin argsort array asanyarray asarray ascontiguousarray "
        "average clip cross cumprod cumsum diag diff dot full full_like inner kron make_diagonal "
        "matmul max mean median min outer percentile prod ptp quantile sort std sum trapezoid var "
        "where",
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


OF_LISTS = {
    "sum": lambda anp, x: anp.sum([x[0], x[1] * x[2]]),
    "mean of vectors": lambda anp, x: anp.mean([x, x * x], axis=0)[1],
    "max": lambda anp, x: anp.max([x[0], x[2]]) + anp.ptp([x[0] * x[0], 1.0]),
    "dot": lambda anp, x: anp.dot([x[0], 1.0], [x[1], x[2]]),
    "outer": lambda anp, x: anp.outer([x[0], x[1]], [x[2], 1.0])[1, 0],
    "quantile": lambda anp, x: anp.quantile([x[0], x[1], x[2]], 0.3),
    "r_": lambda anp, x: anp.r_[x, 1.0, x[0] * x].sum(),
    "c_": lambda anp, x: anp.c_[x, x * x][1, 1],
}


@pytest.mark.parametrize("name", OF_LISTS)
def test_functions_of_lists(name):
    anp = importlib.import_module("tapegrad.compat.autograd.numpy")
    f, x = OF_LISTS[name], np.array([1.5, 2.0, 4.0])
    wanted = [(f(np, x + s) - f(np, x - s)) / 2e-6 for s in 1e-6 * np.eye(3)]
    np.testing.assert_allclose(tg.grad(lambda x: f(anp, x))(x), wanted, rtol=1e-8, atol=1e-9)
    assert f(anp, x) == f(np, x)

"""nutpie, a sampler in Rust, runs on the compiled function itself."""

import importlib.util
import warnings

import numba
import numpy as np
import pytest

import tapegrad as tg

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("nutpie") is None, reason="`make peers` installs it"
)
T = numba.types


@pytest.fixture
def nutpie():
    """The sampler, imported by the one process that needs it.

    What it imports writes a file once a day, which two processes at once do not survive.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what it imports
        return pytest.importorskip("nutpie")


@numba.cfunc(T.int64(T.uint64, T.uint64, T.CPointer(T.double), T.CPointer(T.double), T.voidptr))
def unchanged(dim, expanded, x, out, user):
    """What is reported of a point: the point."""
    for i in range(expanded):
        out[i] = x[i]
    return 0


def model(target, names):
    """A compiled log-density of as many numbers, in the form of nutpie's own models."""
    from nutpie.compile_pymc import CompiledPyMCModel

    shapes, n = [()] * len(names), len(names)
    return CompiledPyMCModel(
        dims={}, _n_dim=n, _coords={}, _shapes=dict(zip(names, shapes, strict=True)),
        compiled_logp_func=target, compiled_expand_func=unchanged,
        initial_point_func=lambda seed: np.zeros(n), shared_data={}, user_data=np.zeros(0),
        n_expanded=n, shape_info=(names, [slice(i, i + 1) for i in range(n)], shapes),
        logp_func=None, expand_func=None,
    )  # fmt: skip


def test_nutpie_samples_from_several_threads(nutpie):
    y = np.random.default_rng(0).normal(2.0, 1.5, 200)

    def logp(x):
        mean, log_scale = x[0], x[1]
        z = (y - mean) / np.exp(log_scale)
        return -0.5 * np.sum(z * z) - len(y) * log_scale

    target = tg.jit(tg.value_and_grad(logp)).cfunc("logp", np.zeros(2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trace = nutpie.sample(
            model(target, ["mean", "log_scale"]), draws=500, tune=300, chains=2, cores=2, seed=1,
            progress_bar=False,
        )  # fmt: skip
    drawn = trace.posterior
    # The error of a mean of 1,000 draws is about a thirtieth of the spread of the posterior.
    spread = y.std() / np.sqrt(len(y))
    assert float(drawn["mean"].mean()) == pytest.approx(y.mean(), abs=0.25 * spread)
    assert float(drawn["mean"].std()) == pytest.approx(spread, rel=0.2)
    assert float(drawn["log_scale"].mean()) == pytest.approx(np.log(y.std()), abs=0.02)

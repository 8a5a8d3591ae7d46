"""Functions of arrays under the standard's names and arguments."""

import inspect
import math
import subprocess
import sys

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import array_api as xp

pytestmark = pytest.mark.tapegrad_only("PyTorch has no namespace of the standard")

X = np.random.default_rng(0).uniform(0.5, 1.5, (3, 4))
REDUCTIONS = [
    ("max", {}), ("mean", {}), ("min", {}), ("prod", {}), ("sum", {}),
    ("std", {"correction": 1}), ("var", {"correction": 0.5}),
]  # fmt: skip
SHAPES = [
    lambda x: xp.broadcast_to(x, (2, 3, 4)),
    lambda x: xp.concat([x, x], axis=None),
    lambda x: xp.cumulative_sum(x, axis=1, include_initial=True),
    lambda x: xp.cumulative_prod(x, axis=0, dtype=xp.float64),
    lambda x: xp.diff(x, axis=0, n=2),
    lambda x: xp.expand_dims(x, axis=-1),
    lambda x: xp.flip(x, axis=(0, 1)),
    lambda x: xp.moveaxis(x, 0, -1),
    lambda x: xp.permute_dims(x, (1, 0)),
    lambda x: xp.repeat(x, 2, axis=0),
    lambda x: xp.reshape(x, (4, 3)),
    lambda x: xp.roll(x, (1, 2), axis=(0, 1)),
    lambda x: xp.squeeze(x[None], axis=0),
    lambda x: xp.stack([x, x], axis=1),
    lambda x: xp.take(x, xp.asarray([2, 0]), axis=0),
    lambda x: xp.take_along_axis(x, xp.argsort(x, axis=1), axis=1),
    lambda x: xp.tile(x, (2, 1)),
    lambda x: xp.sort(x, axis=0, descending=True),
    lambda x: xp.tril(x, k=-1) + xp.triu(x, k=1),
    lambda x: xp.unstack(x, axis=1)[2],
    lambda x: xp.tensordot(x, x, axes=((0, 1), (0, 1))),
    lambda x: xp.vecdot(x, x, axis=0),
    lambda x: xp.matmul(x, xp.matrix_transpose(x)),
    lambda x: xp.where(x > 1, x, 0.0),
    lambda x: xp.meshgrid(x[0], x[1])[1],
    lambda x: xp.broadcast_arrays(x, x[0])[1],
]


CASES = [
    (name, options, axis)
    for name, options in REDUCTIONS
    for axis in (None, 0, (0, 1), *([] if options else [()]))
]


@pytest.mark.parametrize(("name", "options", "axis"), CASES)
def test_reductions(name, options, axis):
    function, numpys = getattr(xp, name), getattr(np, name)
    for keepdims in (False, True):
        found = function(xp.asarray(X), axis=axis, keepdims=keepdims, **options)
        expected = numpys(X, axis=axis, keepdims=keepdims, **options)
        assert found.shape == expected.shape
        assert np.allclose(found.numpy(), expected)
    tg.check_grads(lambda x: function(x, axis=axis, **options), (xp.asarray(X),), order=2)


@pytest.mark.parametrize("function", SHAPES, ids=lambda f: inspect.getsource(f).strip())
def test_functions_that_move_elements_are_differentiated(function):
    tg.check_grads(function, (xp.asarray(X),), order=2)


def test_unsigned_integers_are_summed_in_the_longest():
    x = xp.ones(3, dtype=xp.uint8)
    assert xp.sum(x).dtype == xp.prod(x).dtype == xp.uint64
    assert xp.sum(x, dtype=xp.uint8).dtype == xp.uint8
    assert xp.vecdot(x, x).dtype == xp.uint8


def test_sets_and_searches():
    x = xp.asarray([3, 1, 3])
    assert xp.unique_all(x).counts.tolist() == [1, 2]
    assert xp.searchsorted(xp.asarray([1, 3]), x, side="right").tolist() == [2, 1, 2]
    assert [part.tolist() for part in xp.nonzero(x > 1)] == [[0, 2]]
    assert int(xp.argmax(x)) == 0
    assert int(xp.count_nonzero(x)) == 3


def test_matrices_are_lists_of_the_standard():
    assert type(xp.meshgrid(xp.arange(2), xp.arange(3))) is list
    assert type(xp.broadcast_arrays(xp.arange(2), xp.arange(1))) is list
    assert math.isclose(xp.pi, math.pi)
    assert xp.newaxis is None


SCIPY = """
import os
os.environ["SCIPY_ARRAY_API"] = "1"
import numpy as np, tapegrad as tg
import scipy.integrate, scipy.special, scipy.stats
from scipy.optimize.elementwise import find_root
from scipy.spatial.transform import Rotation
x = tg.tensor(np.random.default_rng(0).uniform(0.5, 1.5, (4, 5)))
for f in (
    scipy.stats.zscore, scipy.stats.skew, scipy.stats.gmean, scipy.stats.variation,
    scipy.integrate.trapezoid, scipy.special.logsumexp, scipy.special.softmax,
    lambda x: Rotation.from_rotvec(x[:, :3]).as_matrix(),
):
    tg.check_grads(f, (x,))
a = tg.tensor([2.0, 3.0], requires_grad=True)
root = find_root(lambda t, a: t**3 - a, (0.0 * a, 2 + 0.0 * a), args=(a,)).x
assert np.allclose(root.detach().numpy() ** 3, [2, 3])
"""


def test_code_of_scipy_that_is_written_for_the_standard():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCIPY], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]

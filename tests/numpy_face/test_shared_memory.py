"""Which of NumPy's functions give a view inside of a transform: those that give one without it."""

import numpy as np
import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("the NumPy face, of which PyTorch has none")

# With arguments for which there is nothing to do, where a function might hand its operand on.
FUNCTIONS = {
    "pad": lambda x: np.pad(x, 0),
    "pad in a mode": lambda x: np.pad(x, 0, mode="reflect"),
    "roll": lambda x: np.roll(x, 0),
    "repeat": lambda x: np.repeat(x, 1, axis=0),
    "tile": lambda x: np.tile(x, 1),
    "delete": lambda x: np.delete(x, [], axis=0),
    "insert": lambda x: np.insert(x, [], 0.0, axis=0),
    "resize": lambda x: np.resize(x, x.shape),
    "flip": np.flip,
    "flip one": lambda x: np.flip(x, 0),
    "flipud": np.flipud,
    "fliplr": lambda x: np.fliplr(np.atleast_2d(x)),
    "rot90 0": lambda x: np.rot90(np.atleast_2d(x), 0),
    "rot90 1": lambda x: np.rot90(np.atleast_2d(x), 1),
    "rot90 2": lambda x: np.rot90(np.atleast_2d(x), 2),
    "rot90 3": lambda x: np.rot90(np.atleast_2d(x), 3),
    "clip": lambda x: np.clip(x, None, 9.0),
    "nan_to_num": np.nan_to_num,
    "real": np.real,
    "conj": np.conj,
    "x.conj": lambda x: x.conj(),
    "copy": np.copy,
    "+x": lambda x: +x,
    "positive": np.positive,
    "x * 1": lambda x: x * 1,
    "x ** 1": lambda x: x**1,
    "concatenate": lambda x: np.concatenate([x]),
    "stack": lambda x: np.stack([x]),
    "vstack": lambda x: np.vstack([x]),
    "hstack": lambda x: np.hstack([x]),
    "block": lambda x: np.block([x]),
    "append": lambda x: np.append(x, []),
    "sort": np.sort,
    "triu": lambda x: np.triu(np.atleast_2d(x), -9),
    "round": lambda x: np.round(x, 3),
    "real_if_close": np.real_if_close,
    "take": lambda x: np.take(x, range(len(x)), axis=0),
    "where": lambda x: np.where(True, x, x),
    "select": lambda x: np.select([True], [x], x),
    "sum over nothing": lambda x: np.sum(x, axis=()),
    "max over nothing": lambda x: np.max(x, axis=()),
    "diff 0": lambda x: np.diff(x, 0),
    "ravel": np.ravel,
    "x.ravel": lambda x: x.ravel(),
    "x.flatten": lambda x: x.flatten(),
    "reshape": lambda x: np.reshape(x, x.shape),
    "x.reshape": lambda x: x.reshape(-1),
    "squeeze": np.squeeze,
    "astype": lambda x: x.astype(float),
    "astype, no copy": lambda x: x.astype(float, copy=False),
    "transpose": np.transpose,
    "x.T": lambda x: x.T,
    "swapaxes": lambda x: np.swapaxes(x, 0, 0),
    "moveaxis": lambda x: np.moveaxis(x, 0, -1),
    "rollaxis": lambda x: np.rollaxis(x, 0),
    "expand_dims": lambda x: np.expand_dims(x, 0),
    "atleast_1d": np.atleast_1d,
    "atleast_3d": np.atleast_3d,
    "einsum": lambda x: np.einsum("ij->ji", np.atleast_2d(x)),
    "matrix_power": lambda x: np.linalg.matrix_power(np.outer(x, x), 1),
    "x[...]": lambda x: x[...],
    "x[:]": lambda x: x[:],
    "x[::-1]": lambda x: x[::-1],
    "x[list]": lambda x: x[[0, 1]],
    "x[mask]": lambda x: x[np.ones(x.shape, bool)],
    "compress": lambda x: np.compress([True] * len(x), x, axis=0),
    "maximum": lambda x: np.maximum(x, x),
    "apply_along_axis": lambda x: np.apply_along_axis(lambda row: row, 0, x),
    "unwrap": np.unwrap,
}
ARRAYS = [np.array([0.3, 0.1, 0.7]), np.array([[0.3, 0.1], [0.7, 0.2]])]
RUNS = {
    "vjp": lambda f, x: tg.vjp(f, x)[0],
    "jvp": lambda f, x: tg.jvp(f, (x,), (x,))[0],
    "jit": lambda f, x: tg.jit(f)(x),
}


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("x", ARRAYS, ids=["vector", "matrix"])
def test_writing_into_a_result_changes_what_it_changes_for_numpy(x, name, run):
    def f(x):
        y = x * 1.0
        seen = FUNCTIONS[name](y)
        seen[...] = 7.0
        return y

    np.testing.assert_array_equal(RUNS[run](f, x), f(x))

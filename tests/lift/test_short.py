"""The fast path under a transform gives what the general one gives, whatever the operands are."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.dispatch.dispatch import called as go
from tapegrad.dispatch.dispatch import run
from tapegrad.ops.core import ELEMENTWISE
from tapegrad.ops.families import table

pytestmark = pytest.mark.tapegrad_only("about the paths of this library")

OPS = [op for op in table.values() if op.kind is ELEMENTWISE and len(op.inputs) < 3]
OPERANDS = {
    "float64": (np.array([0.25, 0.5, 0.75]), np.array([0.5, 0.25, 0.125])),
    "float32": (np.array([0.25, 0.5], np.float32), np.array([0.5, 0.25], np.float32)),
    "0-d": (np.array(0.25), np.array(0.5)),
    "broadcast": (np.array([[0.25], [0.5]]), np.array([0.5, 0.25, 0.125])),
    "mixed": (np.array([0.25, 0.5]), np.array([0.5, 0.25], np.float32)),
    "integers": (np.array([1, 2]), np.array([2, 1])),
}


def outcome(path, op, args):
    """What comes of it: an array, or the error."""
    try:
        found = path(op, args, {})
    except Exception as error:
        return type(error), str(error)
    return found._a.dtype, found._a.shape, found.requires_grad, found._a


@pytest.mark.parametrize("kinds", OPERANDS)
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_the_fast_path_gives_the_same(op, kinds):
    arrays = OPERANDS[kinds][: len(op.inputs)]
    tensors = [tg.tensor(a, requires_grad=a.dtype.kind == "f") for a in arrays]
    cases = [tuple(tensors)]
    if len(arrays) == 2:
        cases += [(tensors[0], arrays[1]), (tensors[0], 2.0), (2, tensors[1])]
    for args in cases:
        *found, values = outcome(go, op, args)
        *expected, others = outcome(run, op, args)
        assert found == expected
        if isinstance(others, str):
            assert values == others
            continue
        # A kernel made from the rule, once it is there, need not round as NumPy does.
        near = 4 * np.finfo(others.dtype).eps if others.dtype.kind == "f" else 0
        np.testing.assert_allclose(values, others, near, 0)

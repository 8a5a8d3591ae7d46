"""The fast path under a transform gives what the general one gives, whatever the operands are."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.dispatch.dispatch import called as go
from tapegrad.dispatch.dispatch import run
from tapegrad.ops.core import ELEMENTWISE, table

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
    return found._a.dtype, found._a.shape, repr(found._a.tolist()), found.requires_grad


@pytest.mark.parametrize("kinds", OPERANDS)
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_the_fast_path_gives_the_same(op, kinds):
    arrays = OPERANDS[kinds][: len(op.inputs)]
    tensors = [tg.tensor(a, requires_grad=a.dtype.kind == "f") for a in arrays]
    cases = [tuple(tensors)]
    if len(arrays) == 2:
        cases += [(tensors[0], arrays[1]), (tensors[0], 2.0), (2, tensors[1])]
    for args in cases:
        assert outcome(go, op, args) == outcome(run, op, args)

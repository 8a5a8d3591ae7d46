"""What `strict` finds out: that a result does not depend on an argument."""

import numpy as np
import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("the NumPy face")


def test_an_argument_that_no_record_reads_is_unused():
    with pytest.raises(RuntimeError, match="does not depend on leaf 1"):
        tg.grad(lambda x, y: 2.0 * x, argnums=(0, 1), strict=True)(1.0, 1.0)
    assert tg.grad(lambda x, y: y * x, argnums=(0, 1), strict=True)(1.0, 2.0) == (2.0, 1.0)


def test_jvp_refuses_a_result_that_depends_on_nothing():
    with pytest.raises(RuntimeError, match=r"shape \(2,\), does not depend on the arguments"):
        tg.jvp(lambda x: (x, tg.ones(2)), (1.0,), (1.0,), strict=True)
    assert tg.jvp(np.sin, (0.0,), (1.0,), strict=True) == (0.0, 1.0)

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


def test_jacobians_and_pullbacks_refuse_an_argument_that_is_not_used():
    def f(x, y):
        return 2.0 * x

    for transform in (tg.jacobian, tg.jacrev):
        with pytest.raises(RuntimeError, match=rf"`{transform.__name__}` .*depend on leaf 1"):
            transform(f, (0, 1), strict=True)(np.ones(2), 1.0)
        assert transform(f, strict=True)(1.0, 1.0) == 2.0
    with pytest.raises(RuntimeError, match=r"`vjp` with `strict=True`: .* depend on leaf 1"):
        tg.vjp(f, 1.0, 1.0, strict=True)
    assert tg.vjp(lambda x, y: (x, y), 1.0, 2.0, strict=True)[1]((3.0, 4.0)) == (3.0, 4.0)
    inner = lambda q: np.sum(tg.jacobian(lambda x: x * q, strict=True)(q))
    np.testing.assert_array_equal(tg.grad(inner)(np.ones(2)), [1.0, 1.0])


def test_jacfwd_refuses_a_result_that_depends_on_nothing():
    with pytest.raises(RuntimeError, match=r"`jacfwd` .*shape \(2,\), does not depend"):
        tg.jacfwd(lambda x: (x, tg.ones(2)), strict=True)(1.0)
    assert tg.jacfwd(np.sin, strict=True)(0.0) == 1.0


def test_hessians_refuse_what_the_value_or_the_gradient_does_not_depend_on():
    x = np.array([1.0, 2.0])
    with pytest.raises(RuntimeError, match=r"`hessian` .* depend on leaf 1"):
        tg.hessian(lambda p: np.sum(p[0] ** 2), strict=True)([x, 1.0])
    with pytest.raises(RuntimeError, match=r"`hessian` .* depend on leaf 0"):
        tg.hessian(lambda x: 3.0 * np.sum(x), strict=True)(x)
    np.testing.assert_array_equal(tg.hessian(lambda x: np.sum(x**2), strict=True)(x), 2 * np.eye(2))

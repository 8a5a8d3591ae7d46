"""Every row of the table, compiled: its values and its gradients are those that it has eagerly.

The samples of a row are one program: of each its result, and the gradient of a weighted sum of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.ops.core import ELEMENTWISE, Op
from tapegrad.ops.families import table
from tests.compiler.programs import tier
from tests.conformance.checks import F4, F8, Case
from tests.conformance.samples import CHIEF, of_shapes, samples_of

# What the compiler calls back for: what SciPy computes, complex numbers, results whose shape
# depends on values, and what has no loop yet.  (Of Fourier transforms, those whose planes lie
# behind another dimension, or which make real numbers of real ones.)
COMPLEX = "fft_c2r fft_planes view_as_complex view_as_real"
NO_LOOP = "cofactor_slope ctc ctc_slope gcd lcm masked_embed masked_select nextafter pure_callback"
SCIPY = (
    "beta_logit_slope_a beta_logit_slope_b ellipeinc_slope ellipkinc_slope gamma_log_slope "
    "airy_ai airy_ai_slope airy_bi airy_bi_slope chebyshev_polynomial_t chebyshev_polynomial_u "
    "cosine_integral fresnel_cosine fresnel_sine gegenbauer hermite_polynomial_h "
    "hermite_polynomial_he hyperbolic_cosine_integral hyperbolic_sine_integral jacobi "
    "jacobi_amplitude lambertw laguerre laguerre_polynomial_l legendre_polynomial_p polygamma "
    "sine_integral sparse_solve spherical_in spherical_jn spherical_kn spherical_yn "
    "voigt_dispersion zeta"
)
CALLED_BACK = frozenset(f"{COMPLEX} {NO_LOOP} {SCIPY}".split())
TOLERANCE = {F8: 1e-12, F4: 3e-5}


def cases(op: Op, dtype: Any) -> list[Case]:
    """A row's samples; in float32 the chief ones."""
    samples = samples_of(op)
    if dtype == F4:
        if op.kind is ELEMENTWISE:
            samples = [of_shapes(op, shapes) for shapes in CHIEF[len(op.inputs)]]
        else:
            samples = samples[:2]
    return [Case(op, sample, dtype) for sample in samples]


def program(found: list[Case]) -> Any:
    """A function of the operands of all cases, giving every result and every gradient."""

    def one(case: Case, operands: Any) -> Any:
        moving = case.moving if case.floating else []

        def weighted(*variables: Any) -> Any:
            xs = list(operands)
            for i, x in zip(moving, variables, strict=True):
                xs[i] = x
            y = case.op(*xs, **case.sample.params)
            return (y * case.weight).sum(), y

        if not moving:
            return [weighted()[1]]
        variables = [operands[i] for i in moving]
        argnums = tuple(range(len(moving)))
        (_, y), grads = tg.value_and_grad(weighted, argnums, has_aux=True)(*variables)
        return [y, *grads]

    return lambda operands: [one(case, xs) for case, xs in zip(found, operands, strict=True)]


@pytest.mark.parametrize(
    ("dtype", "form"), [(F8, "compiled"), (F4, "compiled"), (F8, "interpreted")], ids=str
)
@pytest.mark.parametrize("name", sorted(table))
def test_a_compiled_row_is_the_eager_one(name: str, dtype: Any, form: str) -> None:
    found = cases(table[name], dtype)
    jitted = tg.jit(program(found))
    operands = [[np.asarray(x) for x in case.arrays] for case in found]
    with tier(form):
        results = jitted(operands)
    for case, (y, *gradients) in zip(found, results, strict=True):
        expected = [case.result]
        if gradients:
            expected += case.gradients()
        for got, wanted in zip([y, *gradients], expected, strict=True):
            assert np.shape(got) == wanted.shape, case.sample.name
            if np.ndim(got):
                assert got.dtype == wanted.dtype, case.sample.name
            scale = TOLERANCE[dtype] * max(1.0, float(np.abs(wanted).max(initial=0.0)))
            np.testing.assert_allclose(
                got, wanted, rtol=0, atol=10 * scale, err_msg=case.sample.name
            )
    assert jitted.cache_info().eager == 0
    called = {name.removesuffix(" of pairs") for name in jitted.lower(operands).callbacks}
    assert called <= CALLED_BACK, called - CALLED_BACK
    if dtype == F8:
        assert (name in called) == (name in CALLED_BACK)

"""Special functions under the names of `torch.special`.

>>> import tapegrad as tg
>>> tg.special.log_ndtr(tg.tensor(-100.0))
tensor(-5005.5242)
"""

from typing import Any

# fmt: off
# isort: off
from tapegrad.base.missing_names import missing
from tapegrad.base.public_names import dir_of as _dir_of
from tapegrad.functions.axis import log_softmax, logsumexp, softmax
from tapegrad.functions.elementwise import (
    airy_ai, bessel_j0, bessel_j1, bessel_y0, bessel_y1, digamma, entr, erf, erfc, erfcx, erfinv,
    exp2, expm1, i0, i0e, i1, i1e, log1p, log_ndtr, modified_bessel_k0, modified_bessel_k1, ndtr,
    ndtri, scaled_modified_bessel_k0, scaled_modified_bessel_k1, sinc, spherical_bessel_j0, xlog1py,
    xlogy, zeta,
)
from tapegrad.functions.elementwise import digamma as psi
from tapegrad.functions.elementwise import i0 as modified_bessel_i0
from tapegrad.functions.elementwise import i1 as modified_bessel_i1
from tapegrad.functions.elementwise import igamma as gammainc
from tapegrad.functions.elementwise import igammac as gammaincc
from tapegrad.functions.elementwise import lgamma as gammaln
from tapegrad.functions.elementwise import sigmoid as expit
from tapegrad.functions.orthogonal_polynomials import (
    chebyshev_polynomial_t, chebyshev_polynomial_u, chebyshev_polynomial_v, chebyshev_polynomial_w,
    hermite_polynomial_h, hermite_polynomial_he, laguerre_polynomial_l, legendre_polynomial_p,
    shifted_chebyshev_polynomial_t, shifted_chebyshev_polynomial_u, shifted_chebyshev_polynomial_v,
    shifted_chebyshev_polynomial_w,
)
from tapegrad.functions.rounding import round
from tapegrad.functions.special import logit, polygamma
from tapegrad.functions.special import mvlgamma as multigammaln
# isort: on
# fmt: on

__all__ = [
    "airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "chebyshev_polynomial_t",
    "chebyshev_polynomial_u", "chebyshev_polynomial_v", "chebyshev_polynomial_w", "digamma", "entr",
    "erf", "erfc", "erfcx", "erfinv", "exp2", "expit", "expm1", "gammainc", "gammaincc", "gammaln",
    "hermite_polynomial_h", "hermite_polynomial_he", "i0", "i0e", "i1", "i1e",
    "laguerre_polynomial_l", "legendre_polynomial_p", "log1p", "log_ndtr", "log_softmax", "logit",
    "logsumexp", "modified_bessel_i0", "modified_bessel_i1", "modified_bessel_k0",
    "modified_bessel_k1", "multigammaln", "ndtr", "ndtri", "polygamma", "psi", "round",
    "scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "shifted_chebyshev_polynomial_t",
    "shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_v",
    "shifted_chebyshev_polynomial_w", "sinc", "softmax", "spherical_bessel_j0", "xlog1py", "xlogy",
    "zeta",
]  # fmt: skip
__dir__ = _dir_of(globals())


def __getattr__(name: str) -> Any:
    raise missing("module 'tapegrad.special'", name, __all__)

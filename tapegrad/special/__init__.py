"""Special functions under the names of `torch.special`.

>>> import tapegrad as tg
>>> tg.special.log_ndtr(tg.tensor(-100.0))
tensor(-5005.5242)
"""

from typing import Any

from tapegrad.base.missing_names import missing
from tapegrad.functions.axis import log_softmax, logsumexp, softmax
from tapegrad.functions.elementwise import (
    digamma,
    entr,
    erf,
    erfc,
    erfcx,
    erfinv,
    exp2,
    expm1,
    i0,
    i0e,
    i1,
    i1e,
    log1p,
    log_ndtr,
    ndtr,
    sinc,
    xlog1py,
    xlogy,
)
from tapegrad.functions.elementwise import digamma as psi
from tapegrad.functions.elementwise import lgamma as gammaln
from tapegrad.functions.elementwise import sigmoid as expit
from tapegrad.functions.rounding import round
from tapegrad.functions.special import logit, polygamma

__all__ = [
    "digamma", "entr", "erf", "erfc", "erfcx", "erfinv", "exp2", "expit", "expm1", "gammaln", "i0",
    "i0e", "i1", "i1e", "log1p", "log_ndtr", "log_softmax", "logit", "logsumexp", "ndtr",
    "polygamma", "psi", "round", "sinc", "softmax", "xlog1py", "xlogy",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    raise missing("module 'tapegrad.special'", name, __all__)

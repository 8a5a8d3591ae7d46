"""Special functions under the names of `torch.special`.

>>> import tapegrad as tg
>>> tg.special.log_ndtr(tg.tensor(-100.0))
tensor(-5005.5242)
"""

from typing import Any

from tapegrad.base.missing_names import missing
from tapegrad.functions.arithmetic import erf, exp2, expm1, log1p
from tapegrad.functions.arithmetic import sigmoid as expit
from tapegrad.functions.reductions import log_softmax, logsumexp, softmax
from tapegrad.functions.rounding import round
from tapegrad.functions.special import (
    digamma,
    entr,
    erfc,
    erfcx,
    erfinv,
    i0,
    i0e,
    i1,
    i1e,
    log_ndtr,
    logit,
    ndtr,
    polygamma,
    sinc,
    xlog1py,
    xlogy,
)
from tapegrad.functions.special import digamma as psi
from tapegrad.functions.special import lgamma as gammaln

__all__ = [
    "digamma", "entr", "erf", "erfc", "erfcx", "erfinv", "exp2", "expit", "expm1", "gammaln", "i0",
    "i0e", "i1", "i1e", "log1p", "log_ndtr", "log_softmax", "logit", "logsumexp", "ndtr",
    "polygamma", "psi", "round", "sinc", "softmax", "xlog1py", "xlogy",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    raise missing("module 'tapegrad.special'", name, __all__)

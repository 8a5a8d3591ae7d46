"""`scipy.stats` for Tensors: distributions, statistics of samples, and tests.

The functions of distributions are differentiable in all arguments.  They take what SciPy's take:
parameters of shape, then `loc` and `scale`, by place or by name.

>>> import numpy as np, tapegrad as tg
>>> x = np.array([0.5, 1.5, 4.0])
>>> likelihood = lambda scale: np.sum(tg.scipy.stats.expon.logpdf(x, scale=scale))
>>> tg.grad(likelihood)(2.0)
0.0
>>> tg.jit(tg.grad(likelihood))(1.0)
3.0
"""

from typing import Any as _Any

from tapegrad.scipy.either import theirs as _theirs
from tapegrad.scipy.stats.continuous import (
    beta,
    cauchy,
    chi2,
    expon,
    f,
    gamma,
    gennorm,
    gumbel_l,
    gumbel_r,
    halfcauchy,
    halfnorm,
    invgamma,
    laplace,
    logistic,
    lognorm,
    norm,
    pareto,
    rayleigh,
    skewnorm,
    t,
    truncnorm,
    uniform,
    vonmises,
    weibull_min,
)
from tapegrad.scipy.stats.discrete import bernoulli, betabinom, binom, geom, nbinom, poisson
from tapegrad.scipy.stats.hypothesis_tests import (
    linregress,
    pearsonr,
    ttest_1samp,
    ttest_ind,
    ttest_rel,
)
from tapegrad.scipy.stats.kernel_density import gaussian_kde
from tapegrad.scipy.stats.lifetimes import (
    arcsine,
    betaprime,
    burr12,
    chi,
    exponnorm,
    exponweib,
    fisk,
    foldnorm,
    genextreme,
    genpareto,
    gompertz,
    hypsecant,
    invgauss,
    invweibull,
    johnsonsb,
    johnsonsu,
    levy,
    loggamma,
    loglaplace,
    loguniform,
    lomax,
    maxwell,
    moyal,
    nakagami,
    powerlaw,
    rice,
    triang,
    truncexpon,
    weibull_max,
)
from tapegrad.scipy.stats.multivariate import dirichlet, multinomial, multivariate_normal
from tapegrad.scipy.stats.sample_statistics import (
    entropy,
    gmean,
    hmean,
    iqr,
    kurtosis,
    moment,
    sem,
    skew,
    variation,
    zmap,
    zscore,
)

__all__ = [
    "arcsine", "bernoulli", "beta", "betabinom", "betaprime", "binom", "burr12", "cauchy",
    "chi", "chi2", "dirichlet", "entropy", "expon", "exponnorm", "exponweib", "f", "fisk",
    "foldnorm", "gamma", "gaussian_kde", "genextreme", "gennorm", "genpareto", "geom", "gmean",
    "gompertz", "gumbel_l", "gumbel_r", "halfcauchy", "halfnorm", "hmean", "hypsecant",
    "invgamma", "invgauss", "invweibull", "iqr", "johnsonsb", "johnsonsu", "kurtosis",
    "laplace", "levy", "linregress", "loggamma", "logistic", "loglaplace", "lognorm",
    "loguniform", "lomax", "maxwell", "moment", "moyal", "multinomial", "multivariate_normal",
    "nakagami", "nbinom", "norm", "pareto", "pearsonr", "poisson", "powerlaw", "rayleigh",
    "rice", "sem", "skew", "skewnorm", "t", "triang", "truncexpon", "truncnorm", "ttest_1samp",
    "ttest_ind", "ttest_rel", "uniform", "variation", "vonmises", "weibull_max", "weibull_min",
    "zmap", "zscore",
]  # fmt: skip


def __getattr__(name: str) -> _Any:
    return _theirs("scipy.stats", name)

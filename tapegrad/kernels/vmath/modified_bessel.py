"""Modified Bessel functions of the first kind (see `vmath`): in powers of x*x, and far out 1/x."""

import math
from typing import Any

from tapegrad.kernels.flags import scalar
from tapegrad.kernels.simd import copysign, horner, magnitude, narrow, select, widen
from tapegrad.kernels.vmath.exponential import exp_sum

FAR = 8.0  # from here on the second polynomial
EXP_FAR = math.exp(FAR)
# i0(sqrt(t)) and i1(sqrt(t)) / sqrt(t) for 0 <= t <= FAR**2; all terms are positive.
I0_NEAR = (
    1.0,
    0.25,
    0.015624999999999977,
    0.00043402777777779505,
    6.7816840277713035e-06,
    6.7816840279191e-08,
    4.709502795106817e-10,
    2.4028075678209966e-12,
    9.385965800277307e-15,
    2.8969089099240177e-17,
    7.24207407568966e-20,
    1.4967787401275086e-22,
    2.5901742394172805e-25,
    3.9335398022383302e-28,
    4.199264143504611e-31,
    8.566863237040476e-34,
)
I1_NEAR = (
    0.5,
    0.0625,
    0.0026041666666666665,
    5.425347222222222e-05,
    6.781684027777778e-07,
    5.651403356481481e-09,
    3.363930569334215e-11,
    1.5017547184527747e-13,
    5.214426105738801e-16,
    1.4484516960385557e-18,
    3.2919356728149003e-21,
    6.234726653058468e-24,
    9.991549123493946e-27,
    1.3724655389301024e-29,
    1.6338875467131346e-32,
    1.7019661849823282e-35,
    1.5643073513179175e-38,
    1.2780256880447261e-41,
    9.342698860289293e-45,
    6.142579172337263e-48,
    3.684362027756254e-51,
    1.8548229894415178e-54,
    1.3419191768523278e-57,
)
# exp(-1/t) * i0(1/t) / sqrt(t) and the same of i1 for 0 <= t <= 1/FAR.
I0_FAR = (
    0.39894228040143265,
    0.049867785050229665,
    0.028050629050705767,
    0.02921941472858511,
    0.0447424820706875,
    0.09008979400866148,
    0.33939218535964144,
    -12.537194269011321,
    1047.225969316562,
    -58943.43730376969,
    2474197.1252958863,
    -79144937.92197527,
    1959028509.3734086,
    -37840960652.23419,
    572256367981.9055,
    -6764527429251.378,
    62091734059070.65,
    -437014292303830.4,
    2309575616652961.0,
    -8857975667905112.0,
    2.3260093825630824e16,
    -3.739132614085813e16,
    2.774910822086166e16,
)
I1_FAR = (
    0.3989422804014327,
    -0.14960335515058729,
    -0.046751048447618265,
    -0.040907174385587046,
    -0.0575268352916047,
    -0.11005114837719294,
    -0.4031843556041493,
    14.420443696720604,
    -1176.4777044387172,
    65196.982726213246,
    -2706312.8461561776,
    85832350.00175174,
    -2110043665.456376,
    40527280502.02586,
    -609933225242.4873,
    7179854380636.551,
    -65662310697145.18,
    460633799465539.44,
    -2427234918436676.5,
    9284352740978072.0,
    -2.432015266875133e16,
    3.900763624719564e16,
    -2.8888625369310996e16,
)


@scalar
def _far(a: float, powers: tuple[float, ...]) -> float:
    """exp(-a) times i0 or i1 of a >= FAR."""
    t = 1.0 / select(a < FAR, FAR, a)
    return horner(t, powers) * math.sqrt(t)


@scalar
def _near(a: float, powers: tuple[float, ...]) -> float:
    """i0 of a <= FAR, or i1 divided by a."""
    a = select(a > FAR, FAR, a)
    return horner(a * a, powers)


@scalar
def _grown(a: float, powers: tuple[float, ...]) -> float:
    """i0 or i1 of a >= FAR."""
    # a - FAR is exact, and its exponential no sooner infinite than the result.
    return exp_sum(a - FAR, 0.0) * (EXP_FAR * _far(a, powers))


@scalar
def i0(x: float) -> Any:
    """Order 0."""
    a = magnitude(widen(x))
    return narrow(select(a < FAR, _near(a, I0_NEAR), _grown(a, I0_FAR)), x)


@scalar
def i1(x: float) -> Any:
    """Order 1."""
    w = widen(x)
    a = magnitude(w)
    return narrow(copysign(select(a < FAR, a * _near(a, I1_NEAR), _grown(a, I1_FAR)), w), x)


@scalar
def i0e(x: float) -> Any:
    """Order 0, times exp(-|x|)."""
    a = magnitude(widen(x))
    return narrow(select(a < FAR, exp_sum(-a, 0.0) * _near(a, I0_NEAR), _far(a, I0_FAR)), x)


@scalar
def i1e(x: float) -> Any:
    """Order 1, times exp(-|x|)."""
    w = widen(x)
    a = magnitude(w)
    near = exp_sum(-a, 0.0) * (a * _near(a, I1_NEAR))
    return narrow(copysign(select(a < FAR, near, _far(a, I1_FAR)), w), x)

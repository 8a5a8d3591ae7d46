"""What each row of the table of operations is tested on.

An elementwise row samples itself: from the number of its operands, and from its `domain`.  Every
other row has an entry in `SAMPLES`; a row without one fails `test_rules.py`.  Values lie on a
shuffled grid, so that no two are equal and none is near a kink: differences can be taken anywhere.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tapegrad.ops.core import ELEMENTWISE, LINEAR, Op
from tapegrad.ops.families import table
from tapegrad.ops.index import HOLE
from tests.conformance.image_samples import image_rows

REAL = (-2.0, 2.0)
GRAIN = 64.0  # linear rows get multiples of 1/64: all sums are exact, in float32 too


class Sample(NamedTuple):
    """Operands (float ones are differentiated if the row can), parameters, and what is known."""

    name: str
    operands: tuple[Any, ...]
    params: dict[str, Any] = {}  # noqa: RUF012 - never changed
    orders: int = 2  # how often it can be differentiated
    movable: bool = True  # whether its operands may lie in memory in other ways
    symmetric: bool = False  # a function of symmetric matrices: it is moved along such only


def domains(op: Op, default: Any = REAL) -> tuple[Any, ...]:
    """Where each operand of a row is sampled: an interval, a range of integers, or `bool`."""
    found = op.domain or default
    return (found,) * len(op.inputs) if isinstance(found[0], float) else found


def values(*shapes: tuple[int, ...], domain: Any = REAL, exact: bool = False) -> tuple[Any, ...]:
    """Distinct numbers of an interval, well apart from each other and from whole numbers."""
    low, high = domain
    rng = np.random.default_rng(7)
    k = len(shapes)
    out = []
    for i, shape in enumerate(shapes):
        n = int(np.prod(shape))
        places = (rng.permutation(n) + (i + 1) / (k + 1) - 0.07) / max(n, 1)
        found = low + (high - low) * places
        out.append((np.round(found * GRAIN) / GRAIN if exact else found).reshape(shape))
    return tuple(out)


def mask(*shape: int) -> Any:
    """Booleans, both kinds present in any array of more than one element."""
    n = int(np.prod(shape))
    return (np.arange(n) % 3 != 1).reshape(shape)


# -- elementwise rows ----------------------------------------------------------------------------

ONE = [(), (5,), (2, 3), (1,), (1, 1), (0, 3), (2, 1, 3)]
TWO = [
    [(2, 3), (2, 3)], [(), ()], [(1,), (1,)], [(2, 3), (3,)], [(3,), (2, 3)], [(2, 3), (2, 1)],
    [(2, 1), (2, 3)], [(2, 3), ()], [(), (2, 3)], [(2, 3), (1, 1)], [(1,), ()], [(1, 1), (3,)],
    [(2, 1), (1, 3)], [(2, 1, 3), (4, 1)], [(2, 4, 3), (4, 1)], [(0, 3), (3,)], [(), (0,)],
    [(1, 3), (0, 1)],
]  # fmt: skip
THREE = [
    [(2, 3), (2, 3), (2, 3)], [(), (), ()], [(2, 3), (3,), ()], [(), (2, 1), (3,)],
    [(2, 1), (2, 3), (2, 3)], [(3,), (2, 3), (2, 3)], [(2, 3), (2, 3), ()], [(0, 3), (3,), ()],
]  # fmt: skip
FOUR = [[*shapes, ()] for shapes in THREE]  # the last is a number
SHAPES = {1: [[shape] for shape in ONE], 2: TWO, 3: THREE, 4: FOUR}
CHIEF = {1: [[(2, 3)], [()]], 2: [TWO[0], TWO[7]], 3: [THREE[0]], 4: [FOUR[0]]}  # for float32


# Their first derivative in a parameter has none.
FIRST_ORDER = frozenset(
    "igamma igammac betainc betaincc betaincinv betainccinv gammaincinv gammainccinv stdtr stdtrit "
    "ellipkinc ellipeinc jacobi_amplitude elliprc elliprf elliprg chdtr chdtrc chdtri gdtr gdtrc "
    "fdtr fdtrc fdtri".split()
)


def of_shapes(op: Op, shapes: Any) -> Sample:
    """A sample of an elementwise row in given shapes."""
    shares = zip(domains(op), shapes, values(*shapes, domain=(0.0, 1.0)), strict=True)
    operands = tuple(placed(*share) for share in shares)
    orders = 1 if op.name in FIRST_ORDER else 2
    return Sample(" ".join(str(s).replace(" ", "") for s in shapes), operands, orders=orders)


def placed(domain: Any, shape: Any, shares: Any) -> Any:
    """Elements of a domain, by their shares of the way through it."""
    if domain is bool:
        return mask(*shape)
    if isinstance(domain, range):
        return np.asarray(domain[0] + np.floor(len(domain) * shares).astype(int))
    low, high = domain
    return np.asarray(low + (high - low) * shares)  # an array of no dimensions stays one


# -- linear and custom rows ------------------------------------------------------------------------

SAMPLES: dict[str, list[Sample]] = {}
OF_COMPLEX = {  # operands or results, always
    "view_as_real", "view_as_complex", "complex", "fft_c2c", "fft_r2c", "fft_c2r", "eig",
}  # fmt: skip


def row(name: str, *shapes: Any, orders: int = 2, movable: bool = True, symmetric: bool = False,
        **params: Any) -> None:  # fmt: skip
    """A sample: float operands by shape; matrices, index arrays and masks as they are."""
    exact = table[name].kind is LINEAR
    floats = iter(values(*[s for s in shapes if isinstance(s, tuple)], exact=exact))
    operands = tuple(next(floats) if isinstance(s, tuple) else s for s in shapes)
    text = " ".join(str(np.shape(x)).replace(" ", "") for x in operands)
    samples = SAMPLES.setdefault(name, [])
    samples.append(Sample(f"{len(samples)} {text}", operands, params, orders, movable, symmetric))


def whole(*numbers: Any) -> Any:
    """An index array."""
    return np.array(numbers, np.int64)


for shape in [(), (3,), (2, 3), (0, 3), (1, 1)]:
    for name in ("clone", "contiguous", "alias"):
        row(name, shape)
for dtype in (np.float64, np.float32):
    row("to", (2, 3), dtype=np.dtype(dtype))
    row("to", (), dtype=np.dtype(dtype))
row("reshape", (2, 3), shape=(3, 2))
row("reshape", (2, 3), shape=(6,))
row("reshape", (), shape=(1, 1))
row("reshape", (0, 3), shape=(3, 0, 2))
row("squeeze", (2, 1, 3, 1), dims=(1, 3))
row("squeeze", (1,), dims=(0,))
row("squeeze", (2,), dims=())
row("unsqueeze", (2, 3), dims=(0, 2))
row("unsqueeze", (), dims=(0,))
row("unsqueeze", (0,), dims=(1,))
row("permute", (2, 3, 4), dims=(2, 0, 1))
row("permute", (2, 3), dims=(1, 0))
row("permute", (), dims=())
row("permute", (0, 3), dims=(1, 0))
row("expand", (3,), shape=(2, 3))
row("expand", (2, 1), shape=(2, 3))
row("expand", (2, 1, 3), shape=(5, 2, 4, 3))
row("expand", (), shape=(2, 2))
row("expand", (1,), shape=(0,))
row("expand", (2, 1), shape=(2, 1))
row("sum_to", (2, 3), shape=(3,))
row("sum_to", (2, 3), shape=(2, 1))
row("sum_to", (2, 3), shape=())
row("sum_to", (4, 2, 3), shape=(2, 1))
row("sum_to", (0, 3), shape=(1, 3))
row("sum_to", (2, 3), shape=(2, 3))
row("getitem", (4, 3), index=(slice(1, 4, 2), ...))
row("getitem", (4, 3), index=(slice(None, None, -1), 1))
row("getitem", (4, 3), index=(2, 1, ...))
row("getitem", (4, 3), index=(None, ..., 0))
row("getitem", (4, 3), index=(slice(2, 2),))
row("getitem", (), index=(..., None))
row("embed", (2, 3), shape=(4, 3), index=(slice(1, 4, 2), ...))
row("embed", (), shape=(4, 3), index=(2, 1))
row("embed", (0, 3), shape=(4, 3), index=(slice(2, 2),))
row("flip", (2, 3), dims=(0,))
row("flip", (2, 3), dims=(0, 1))
row("flip", (), dims=())
row("unfold", (7,), dim=0, size=3, step=2)
row("unfold", (2, 5), dim=1, size=2, step=1)
row("unfold", (5, 2), dim=0, size=5, step=1)
row("unfold", (5, 2), dim=0, size=1, step=3)
row("fold", (3, 3), shape=(7,), dim=0, size=3, step=2)
row("fold", (2, 4, 2), shape=(2, 5), dim=1, size=2, step=1)
STRIDED = [
    ((6,), {"size": (2, 3), "stride": (1, 1), "offset": 0, "layout": ((6,), (1,), 0)}),
    ((2, 3), {"size": (3, 2), "stride": (1, 3), "offset": 0, "layout": ((2, 3), (3, 1), 0)}),
    ((6,), {"size": (2, 2), "stride": (0, 2), "offset": 1, "layout": ((6,), (1,), 0)}),
    ((2, 3), {"size": (), "stride": (), "offset": 4, "layout": ((2, 3), (3, 1), 0)}),
    ((6,), {"size": (0,), "stride": (1,), "offset": 0, "layout": ((6,), (1,), 0)}),
]
for shape, params in STRIDED:
    row("as_strided", shape, movable=False, **params)
    row("restride", shape, **params)
    row("unstride", params["size"], shape=shape, **params)
row("cat", (2, 3), (1, 3), (0, 3), dim=0)
row("cat", (2, 3), (2, 1), dim=1)
row("cat", (3,), dim=0)
row("stack", (2, 3), (2, 3), dim=1)
row("stack", (), (), (), dim=0)
row("stack", (3,), dim=1)
row("diagonal", (3, 4), offset=0, dim1=0, dim2=1)
row("diagonal", (3, 4), offset=1, dim1=0, dim2=1)
row("diagonal", (2, 3, 3), offset=-1, dim1=2, dim2=0)
row("diagonal", (2, 2), offset=5, dim1=0, dim2=1)
row("diagonal_embed", (3,), shape=(3, 4), offset=0, dim1=0, dim2=1)
row("diagonal_embed", (2,), shape=(3, 3), offset=-1, dim1=0, dim2=1)
for name in ("tril", "triu"):
    row(name, (3, 4), diagonal=0)
    row(name, (2, 3, 3), diagonal=-1)
    row(name, (3, 3), diagonal=5)
    row(name, (0, 3), diagonal=0)
CHAIN = ((table["getitem"], {"index": (slice(1, 4), ...)}), (table["permute"], {"dims": (1, 0)}))
DIAGONAL = ((table["diagonal"], {"offset": 0, "dim1": 0, "dim2": 1}),)
SPREAD = ((table["getitem"], {"index": (0, ...)}), (table["expand"], {"shape": (3, 4)}))
WINDOWS = ((table["unfold"], {"dim": 0, "size": 2, "step": 1}),)
row("replay", (4, 2), chain=CHAIN, movable=False)
row("replay", (2, 4), chain=SPREAD, movable=False)
row("replay", (4,), chain=WINDOWS, movable=False)
row("only_view", (3, 4), shape=(2, 4), chain=SPREAD)
row("only_view", (3, 2), shape=(4,), chain=WINDOWS)
row("replay", (3, 3), chain=DIAGONAL, movable=False)
row("only_view", (2, 3), shape=(4, 2), chain=CHAIN)
row("only_view", (3,), shape=(3, 3), chain=DIAGONAL)
row("write_view", (4, 2), (2, 3), chain=CHAIN)
row("write_view", (3, 3), (3,), chain=DIAGONAL)
row("zero_view", (4, 2), chain=CHAIN)
row("zero_view", (3, 3), chain=DIAGONAL)

AGAIN, PAIRS = whole(2, 0, 2), (whole([0], [2]), whole([1, 1, -1]))
row("index", (4, 3), AGAIN, plan=(HOLE,))
row("index", (4, 3), AGAIN, plan=(slice(None), HOLE))
row("index", (4, 3), *PAIRS, plan=(HOLE, HOLE))
row("index", (4, 2, 3), whole(3, 0), whole(1, 1), plan=(HOLE, slice(None), HOLE))
row("index", (5,), whole(-1, 0, -1), plan=(HOLE,))
row("index", (4, 3), whole(), plan=(HOLE, None))
row("index", (4, 3), *np.nonzero(mask(4, 3)), plan=(HOLE, HOLE))
row("unindex", (3, 3), AGAIN, shape=(4, 3), plan=(HOLE,))
row("unindex", (3,), whole(-1, 0, -1), shape=(5,), plan=(HOLE,))
row("unindex", (2, 3), *PAIRS, shape=(4, 3), plan=(HOLE, HOLE))
row("unindex", (0, 3), whole(), shape=(4, 3), plan=(HOLE,))
for accumulate in (False, True):
    once = whole(2, 0)
    row("index_put", (4, 3), (2, 3), once, plan=(HOLE,), accumulate=accumulate)
    row("index_put", (4, 3), (), once, plan=(HOLE,), accumulate=accumulate)
    row("index_put", (4, 3), (2, 1), whole([0], [2]), whole(1, 0), plan=(HOLE, HOLE),
        accumulate=accumulate)  # fmt: skip
row("index_put", (4, 3), (3, 3), AGAIN, plan=(HOLE,), accumulate=True)
row("cleared", (4, 3), AGAIN, plan=(HOLE,))
row("cleared", (4, 3), *PAIRS, plan=(HOLE, HOLE))
row("assign", (4, 3), (3,), index=(1, ...))
row("assign", (4, 3), (), index=(slice(None, None, 2), ...))
row("assign", (4, 3), (2, 1), index=(slice(0, 2), slice(1, 3)))
row("assign", (), (), index=(...,))
row("assign", (4, 3), (0, 3), index=(slice(1, 1), ...))
GRID = whole([2, 0, 1, 2], [1, 1, 0, 2])
row("gather", (2, 3), GRID, dim=1)
row("gather", (3, 4), GRID, dim=0)
row("gather", (5,), whole(4, 0, 4), dim=0)
row("gather", (), whole(0, 0), dim=0)
row("gather", (2, 3), np.zeros((0, 3), np.int64), dim=0)
row("ungather", (2, 4), GRID, shape=(2, 3), dim=1)
row("ungather", (3,), whole(4, 0, 4), shape=(5,), dim=0)
row("ungather", (2,), whole(0, 0), shape=(), dim=0)
ONCE = whole([2, 0], [1, 2])
row("scatter", (2, 3), ONCE, (2, 2), dim=1)
row("scatter", (2, 3), ONCE, (3, 4), dim=1)
row("scatter", (2, 3), ONCE, (), dim=1)
row("scatter", (5,), whole(4, 0), (2,), dim=0)
row("scattered", (2, 3), ONCE, dim=1)
row("scattered", (5,), whole(4, 0), dim=0)
row("scatter_add", (2, 3), GRID, (2, 4), dim=1)
row("scatter_add", (5,), whole(4, 0, 4), (3,), dim=0)
row("scatter_add", (5,), whole(4, 0, 4), (6,), dim=0)
row("scatter_add", (), whole(0, 0), (2,), dim=0)
row("scatter", (), whole(0), (1,), dim=0)
row("scattered", (), whole(0), dim=0)
row("scatter_add", (2, 3), GRID, (2, 5), dim=1)
for name in ("scatter_prod", "scatter_amax", "scatter_amin"):
    row(name, (2, 3), GRID, (2, 4), dim=1)
    row(name, (5,), whole(4, 0, 4), (3,), dim=0)
    row(name, (2, 3), np.zeros((0, 3), np.int64), (0, 3), dim=0)
row("beside_zero", (2, 3), (2, 3), np.array([[0.0, 1.0, 0.0], [1.0, 1.0, 0.0]]))
row("index_select", (4, 3), AGAIN, dim=0)
row("index_select", (4, 3), AGAIN, dim=1)
row("index_select", (5,), whole(4, 4), dim=0)
row("index_select", (4, 3), whole(), dim=0)
row("unselect", (3, 3), AGAIN, shape=(4, 3), dim=0)
row("unselect", (4, 3), AGAIN, shape=(4, 3), dim=1)
row("unselect", (2,), whole(4, 4), shape=(5,), dim=0)
row("index_add", (4, 3), AGAIN, (3, 3), dim=0)
row("index_add", (4, 3), AGAIN, (4, 3), dim=1)
row("index_add", (5,), whole(4, 4), (2,), dim=0)
row("masked_fill", (2, 3), mask(2, 3), ())
row("masked_fill", (2, 3), mask(3), ())
row("masked_fill", (3,), mask(2, 3), ())
row("masked_fill", (), mask(), ())
row("masked_select", (2, 3), mask(2, 3))
row("masked_select", (3,), mask(2, 3))
row("masked_select", (2, 3), mask(2, 1))
row("masked_select", (2, 3), np.zeros((2, 3), bool))
row("masked_embed", (4,), mask(2, 3), shape=(2, 3))
row("masked_embed", (4,), mask(2, 3), shape=(3,))

REDUCTIONS = [((2, 3), (0, 1)), ((2, 3), (0,)), ((2, 3), (1,)), ((2, 3, 4), (0, 2)), ((5,), (0,))]
for shape, dim in REDUCTIONS:
    for keepdim in (False, True):
        for name in ("sum", "mean", "amax", "amin", "logsumexp"):
            row(name, shape, dim=dim, keepdim=keepdim)
        for name in ("var", "std"):
            row(name, shape, dim=dim, correction=0.5 if keepdim else 1, keepdim=keepdim)
        row("norm", shape, p=2.0, dim=dim, keepdim=keepdim)
for p in (1.0, 3.0, 0.5, np.inf, -np.inf, 0.0):
    row("norm", (2, 3), p=p, dim=(1,), keepdim=False)
    row("norm", (2, 3, 4), p=p, dim=(0, 2), keepdim=True)
for name in ("sum", "mean", "amax", "amin", "logsumexp"):
    row(name, (), dim=(), keepdim=False)
for name in ("sum", "logsumexp"):
    row(name, (0, 3), dim=(1,), keepdim=False)
row("sum", (0, 3), dim=(0,), keepdim=False)
row("sum", (2, 3), dim=(), keepdim=False)
row("mean", (0, 3), dim=(1,), keepdim=True)
for shape in ((2, 3), ()):
    row("mse_loss", shape, shape, mean=True)
    row("mse_loss", shape, shape, mean=False)
row("mse_loss", (0, 3), (0, 3), mean=False)
row("norm", (), p=2.0, dim=(), keepdim=False)
row("norm", (0, 3), p=2.0, dim=(0,), keepdim=False)
row("var", (), dim=(), correction=0, keepdim=False)
for name in ("cumsum", "rcumsum"):
    row(name, (5,), dim=0)
    row(name, (2, 3), dim=1)
    row(name, (2, 3), dim=0)
    row(name, (), dim=0)
    row(name, (0, 3), dim=0)
for name in ("softmax", "log_softmax"):
    row(name, (5,), dim=(0,))
    row(name, (2, 3), dim=(0,))
    row(name, (2, 3, 4), dim=(1,))
    row(name, (), dim=())
    row(name, (0, 3), dim=(1,))
for shape, dim in [*REDUCTIONS, ((), ()), ((0, 3), (1,))]:
    row("standardize", shape, dim=dim, eps=0.01)
row("prod", (4,), dim=(0,), keepdim=False)
row("prod", (2, 3), dim=(1,), keepdim=True)
row("prod", (2, 3), dim=(0,), keepdim=False)
row("prod", (1,), dim=(0,), keepdim=False)
row("prod", (0, 2), dim=(0,), keepdim=False)
row("others_prod", (4,), dim=0, orders=1)
row("others_prod", (2, 3), dim=1, orders=1)
row("pair_prod", (4,), (4,), dim=0, orders=1)
row("pair_prod", (2, 3), (2, 3), dim=1, orders=1)

for name in ("cumprod", "logcumsumexp"):
    row(name, (5,), dim=0)
    row(name, (2, 3), dim=1)
    row(name, (2, 3), dim=0)
    row(name, (), dim=0)
    row(name, (0, 3), dim=0)
    row(name, (1, 3), dim=0)
for reverse in (False, True):
    row("decay", (5,), (5,), dim=0, reverse=reverse)
    row("decay", (2, 3), (2, 3), dim=1, reverse=reverse)
    row("decay", (4, 2), (4, 2), dim=0, reverse=reverse)
    row("decay", (0, 2), (0, 2), dim=0, reverse=reverse)
row("decay", (70,), (70,), dim=0, reverse=True)

PRODUCTS = [
    [(2, 3), (3, 4)], [(3,), (3, 4)], [(2, 3), (3,)], [(3,), (3,)], [(1, 3), (3, 1)],
    [(2, 1), (1, 4)],
    [(5, 2, 3), (5, 3, 4)], [(5, 2, 3), (3, 4)], [(2, 3), (5, 3, 4)], [(5, 2, 3), (3,)],
    [(3,), (5, 3, 4)], [(2, 1, 2, 3), (5, 3, 2)], [(0, 3), (3, 4)], [(2, 0), (0, 4)],
]  # fmt: skip
for shapes in PRODUCTS:
    row("matmul", *shapes)
    if min(map(len, shapes)) > 1:
        row("product", *shapes)

# -- matrices --------------------------------------------------------------------------------------


def regular(*shape: int) -> Any:
    """Matrices well away from singular ones, with singular values well apart."""
    (x,) = values(shape, domain=(-0.4, 0.4))
    return x + np.eye(*shape[-2:]) * np.arange(1.0, shape[-1] + 1)


def symmetric(*shape: int) -> Any:
    """Symmetric matrices that are positive definite, with eigenvalues well apart."""
    x = regular(*shape)
    return (x + x.mT) / 2


for shape in [(3, 3), (2, 2, 2), (1, 1), (2, 3, 1, 1), (0, 3, 3), (2, 0, 0)]:
    for name in (
        "inv",
        "det",
        "cofactor",
        "slogdet",
        "logdet_slope",
        "pinv",
        "matrix_exp",
        "qr",
        "svd",
    ):
        row(name, regular(*shape), **({"atol": 0.0, "rtol": 1e-6} if name == "pinv" else {}))
    row("cofactor_slope", shape, regular(*shape))
    row("eigh", symmetric(*shape), symmetric=True, upper=len(shape) > 2)
    row("cholesky", symmetric(*shape), symmetric=True)
LOW_RANK = np.array([[1.0, 2.0, 0.5], [2.0, 4.0, 1.0], [1.5, 3.0, 0.75]])  # of rank 1
RANK_TWO = LOW_RANK + np.diag([0.0, 1.0, 0.0])
for x in (LOW_RANK, RANK_TWO, np.stack([LOW_RANK, regular(3, 3)])):
    row("det", x)
    row("cofactor", x, orders=1)  # the next one has no formula there
for shape in [(4, 2), (2, 3, 2), (3, 0)]:
    row("qr", regular(*shape))
    row("svd", regular(*shape))
    row("svd", regular(*shape).mT)
    row("pinv", regular(*shape), atol=0.1, rtol=0.0)
    row("pinv", regular(*shape).mT, atol=0.0, rtol=1e-6)
for a, b in [((3, 3), (3, 2)), ((2, 3, 3), (3, 1)), ((3, 3), (2, 3, 2)), ((2, 1, 2, 2), (3, 2, 1)),
             ((0, 2, 2), (0, 2, 3)), ((2, 2), (2, 0)), ((0, 0), (0, 2)),
             ((5, 2, 2), (2, 1))]:  # fmt: skip
    row("solve", regular(*a), b)
    for n, (upper, unit) in enumerate([(True, False), (False, False), (True, True), (False, True)]):
        row("solve_triangular", regular(*a), b, upper=upper, unit=unit, strong=n % 2 == 0)
for a, b in [((3, 3), (3, 2)), ((2, 3, 3), (2, 3, 1)), ((0, 2, 2), (0, 2, 3)), ((2, 2), (2, 0))]:
    row("solve_ex", regular(*a), b)
    for driver in ("gelsy", "gels"):
        row("lstsq", regular(*a), b, rcond=1e-6, driver=driver)
for shape in [(3, 3), (2, 2, 2), (0, 3, 3), (2, 0, 0), (4, 2), (2, 4), (2, 3, 2)]:
    exchanged = regular(*shape)[..., ::-1, :].copy()
    row("lu", exchanged, check=False)
    row("geqrf", exchanged)
    if shape[-1] == shape[-2]:
        row("inv_ex", regular(*shape))
        row("cholesky_ex", symmetric(*shape), symmetric=True)
        row("ldl", symmetric(*shape), check=True, hermitian=False)
        row("eig", regular(*shape))
        for code in ("cholesky_code", "pivot_code"):
            row(code, -symmetric(*shape))
        row("block_code", -symmetric(*shape), hermitian=False)
for inverse in (False, True):
    row("swap_rows", (4, 2), whole(3, 3, 4), inverse=inverse)
    row("swap_rows", (2, 3, 2), whole([2, 2, 3], [3, 2, 3]), inverse=inverse)
    row("swap_rows", (3, 2), whole([2, 2, 3], [3, 2, 3]), inverse=inverse)
    row("swap_rows", (0, 2), whole(), inverse=inverse)
row("ldl_solve", (3, 2), np.tril(regular(3, 3)), whole(1, 2, 3), hermitian=False)
row("ldl_solve", (2, 2, 1), np.tril(regular(2, 2)), whole(2, 2), hermitian=False)
row("banded_solve", regular(3, 4) + 3.0 * np.eye(3)[1][:, None], (4, 2), below=1, above=1)
row("banded_solve", np.stack([regular(4, 5) + 4.0] * 2), (2, 5, 1), below=1, above=2)
row("banded_solve", regular(2, 3) + 2.0, (2, 3, 2), below=0, above=1)
row("banded_solve", regular(4, 2) + 2.0 * np.eye(4)[1][:, None], (2, 1), below=2, above=1)
row("sylvester", regular(3, 3), 4.0 * np.eye(2) + regular(2, 2), (3, 2))
row("sylvester", regular(2, 2), 4.0 * np.eye(3) + regular(2, 3, 3), (2, 2, 3))
row("lstsq", regular(4, 2), (4, 3), rcond=1e-6, driver="gelsy")
row("lstsq", regular(2, 3), (2, 2), rcond=1e-6, driver="gels")
row("lstsq", regular(2, 3, 2), (1, 3, 1), rcond=1e-6, driver="gels")
row("lstsq", np.stack([regular(3, 2), regular(3, 2)]), (2, 3, 1), rcond=1e-6, driver="gelsy")
BASIS = np.linalg.qr(regular(3, 2))[0]  # the formula holds of orthonormal columns, not beside them
row("completed", BASIS, orders=1)
row("completed", np.stack([BASIS, -BASIS]), orders=1)
row("any_basis", (3, 1), (3, 1))
row("same_phase", (3, 2), whole([0, 0], [0, 0], [0, 0]), of="eig")  # to which no adjoint leans
row("part", (3, 4), index=(..., -1))
row("part", (2, 3, 4), index=(..., slice(0, 2), slice(None)))
row("part", (2,), index=(..., 1))

# -- sums of products ------------------------------------------------------------------------------

EQUATIONS = {
    "ij,jk->ik": [(2, 3), (3, 4)],
    "ij,kj->ki": [(2, 3), (4, 3)],
    "bij,bjk->bik": [(2, 2, 3), (2, 3, 1)],
    "bij,jk->kbi": [(2, 2, 3), (3, 2)],
    "i,j->ij": [(2,), (3,)],
    "i,i->": [(3,), (3,)],
    "ij,ji->": [(2, 3), (3, 2)],
    "ij,i->ij": [(2, 3), (2,)],
    ",ij->ji": [(), (2, 3)],
    "i,i,i->i": [(3,), (3,), (3,)],
    "ij,jk,kl->il": [(2, 3), (3, 4), (4, 2)],
    "bi,oij,bj->bo": [(2, 3), (4, 3, 2), (2, 2)],
    "ij,jk->ik ": [(0, 3), (3, 2)],
    "ij,jk->ki": [(2, 0), (0, 3)],
}
for equation, shapes in EQUATIONS.items():
    left, out = equation.split("->")
    for name in ("einsum", "contraction"):
        row(name, *shapes, terms=tuple(left.split(",")), out=out.strip())
for name in ("logical_and", "logical_or", "logical_xor"):
    row(name, (2, 3), (3,))
for name in ("logical_not", "isnan", "isinf", "isfinite", "signbit"):
    row(name, (2, 3))
    row(name, ())
for name in (
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "bitwise_left_shift",
    "bitwise_right_shift",
):
    row(name, whole([1, 2], [0, 3]), whole(1, 2))
row("bitwise_not", whole(0, 1))
row("ldexp", (2, 3), whole(1, -2, 0))
row("ldexp", (), whole([3], [-3]))
row("ldexp", (3,), np.array(2))
for name in ("conj", "sgn"):
    row(name, (2, 3))
row("view_as_real", np.array([[1 + 2j, -0.5j, 3.0]]))
row("view_as_complex", (2, 3, 2))
row("complex", (2, 3), (2, 3))
for scale in ("", "ortho", "n"):
    for size in (5, 6):
        row("fft_r2c", (2, size), dims=(1,), scale=scale, half=True)
        row("fft_r2c", (size, 2), dims=(0,), scale=scale, half=False)
        row("fft_c2r", (3, size // 2 + 1), dims=(0, 1), scale=scale, size=size)
    row("fft_r2c", (2, 3, 4), dims=(0, 2), scale=scale, half=True)
    row("fft_c2c", (2, 3), dims=(0,), scale=scale, forward=True)
    row("fft_c2c", (2, 3, 4), dims=(2, 1), scale=scale, forward=False)
row("fft_planes", (2, 3, 4), dims=(0, 1))
row("fft_planes", (6, 2), dims=(1, 0))
for keepdim in (False, True):
    for name in ("argmax", "argmin"):
        row(name, (2, 3), dim=1, keepdim=keepdim)
        row(name, (5,), dim=0, keepdim=keepdim)
    for name in ("all", "any", "count_nonzero"):
        row(name, (2, 3), dim=(0, 1), keepdim=keepdim)
        row(name, (2, 3, 4), dim=(1,), keepdim=keepdim)
        row(name, (0, 3), dim=(0,), keepdim=keepdim)
for shape, d in [((2, 3), 1), ((5,), 0), ((4, 1, 2), 0)]:
    n = shape[d]
    row("argkth", shape, dim=d, k=n // 2)
    for flag in (False, True):
        row("argtopk", shape, dim=d, k=n - 1, largest=flag)
        row("argmedian", shape, dim=d, ignore_nan=flag)
        row("argcummax", shape, dim=d, largest=flag)
        row("median", shape, dim=(d,), keepdim=flag, ignore_nan=flag)
    row("argmode", np.round(values(shape)[0]), dim=d)
for descending in (False, True):
    row("argsort", (2, 3), dim=0, descending=descending)
    row("argsort", (0, 3), dim=1, descending=descending)
row("searchsorted", whole(-1, 0, 1), (2, 3), side="left")
row("searchsorted", whole(-1, 0, 1), (), side="right")
row("searchsorted", whole([-1, 0, 1], [0, 0, 1]), (2, 3), side="left")
row("searchsorted", whole([[-1, 0, 1]], [[0, 0, 1]]), (2, 1, 4), side="right")

row("pure_callback", (2, 3), (3,), function=np.add, shape=(2, 3), dtype=np.dtype(np.float64))
row("pure_callback", (0, 3), function=np.sort, shape=(0, 3), dtype=np.dtype(np.float32))

CTC = whole([1, 2, 2], [3, 0, 1]), whole(5, 4), whole(3, 1)
for flag in (False, True):
    row("ctc", (5, 2, 4), *CTC, orders=1, blank=0, zero_infinity=flag)
    row("ctc_slope", (5, 2, 4), *CTC, orders=0, blank=3, zero_infinity=flag)
row("ctc", (3, 0, 4), whole().reshape(0, 2), whole(), whole(), orders=1, blank=0,
    zero_infinity=False)  # fmt: skip

for name, shapes, params in image_rows():
    row(name, *shapes, **params)


def samples_of(op: Op) -> list[Sample]:
    """All samples of a row."""
    if op.kind is ELEMENTWISE:
        return [of_shapes(op, shapes) for shapes in SHAPES[len(op.inputs)]]
    if op.axis and op.doc and op.name not in SAMPLES:
        keep = {"keepdim": False} if op.axis == "reduce" else {}
        for shape, d in [((5,), 0), ((2, 3), 0), ((2, 3, 4), 1), ((0, 3), 1)]:
            row(op.name, shape, dim=(d,), **keep)
    return SAMPLES.get(op.name, [])


# -- memory ----------------------------------------------------------------------------------------

LAYOUTS = ("transposed", "strided", "reversed")


def laid_out(x: Any, how: str) -> Any:
    """The same elements elsewhere in memory; gaps hold NaN."""
    if how == "transposed":
        return x.T.copy().T
    if not x.ndim:
        return x.copy()
    if how == "strided":
        gaps = np.full((*x.shape[:-1], 2 * x.shape[-1]), np.nan if x.dtype.kind == "f" else 0)
        gaps = gaps.astype(x.dtype)
        gaps[..., ::2] = x
        return gaps[..., ::2]
    return x[..., ::-1].copy()[..., ::-1]


# Rows of what SciPy computes, and of repeats and borders.
from tests.conformance import called_samples, tiling_samples  # noqa: E402, F401

"""Every public operation gives what PyTorch gives: values, types, gradients, errors."""

# ruff: noqa: E501
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="compares with PyTorch: `make peers` installs it")

import tapegrad as tg  # noqa: E402
from tapegrad.functions import (  # noqa: E402
    added_products,
    arithmetic,
    axis,
    calculus,
    contractions,
    diagonals,
    distances,
    elementwise,
    exponents,
    factorizations,
    histograms,
    householder,
    indexing,
    inplace_methods,
    joining,
    least_squares,
    lu,
    masking,
    matrices,
    matrix_chains,
    matrix_methods,
    norms,
    order_statistics,
    orthogonal_polynomials,
    products,
    quantiles,
    queries,
    ranges,
    reductions,
    rounding,
    scans,
    scattering,
    sets,
    shapes,
    special,
    statistics,
    tiling,
    unchecked_solves,
)
from tapegrad.functions.method_decorators import methods_of  # noqa: E402
from tests import operations_page  # noqa: E402
from tests.conformance.conventions import CONVENTIONS  # noqa: E402
from tests.peers import (  # noqa: E402
    creation_cases,
    linalg_cases,
    loss_cases,
    nn_cases,
    order_cases,
    sampled_cases,
    scatter_cases,
    signal_cases,
)
from tests.peers.torch_cases import CASES, values_of  # noqa: E402
from tests.peers.torch_rows import names_in  # noqa: E402

pytestmark = [
    pytest.mark.peer,
    pytest.mark.tapegrad_only("runs both libraries itself"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::UserWarning"),
]

TOLERANCE = {"float64": 1e-10, "float32": 2e-4, "float16": 1e-2}


@pytest.fixture(autouse=True)
def _same_default_dtype():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


def flat(result):
    if isinstance(result, (tuple, list)):
        return [x for part in result for x in flat(part)]
    return [result]


def leaves_of(library, case, dtype):
    leaves = []
    for i, operand in enumerate(case.operands):
        array = values_of(operand, i + 1)
        if array.dtype.kind == "f":
            t = library.tensor(array, dtype=getattr(library, dtype))
            leaves.append(t.requires_grad_() if dtype.startswith("float") else t)
        else:
            leaves.append(library.tensor(array))
    return leaves


def name_of(dtype):
    return str(dtype).split(".")[1]


def same(mine, theirs, what):
    if not isinstance(theirs, torch.Tensor):
        assert mine == theirs, what
        return
    kind = name_of(theirs.dtype)
    assert name_of(mine.dtype) == kind, f"{what}: dtype"
    assert tuple(mine.shape) == tuple(theirs.shape), f"{what}: shape"
    tolerance = TOLERANCE.get(kind, 0)
    np.testing.assert_allclose(
        mine.detach().numpy(),
        theirs.detach().numpy(force=True),
        rtol=tolerance,
        atol=tolerance,
        err_msg=what,
    )


def weighted(library, outputs):
    """One number from all outputs that are differentiable, each element with its own weight."""
    total = 0.0
    for y in outputs:
        if isinstance(y, library.Tensor) and y.requires_grad:
            n = int(np.prod(tuple(y.shape)))
            weights = library.tensor(np.sin(np.arange(n) + 1.0).reshape(tuple(y.shape)))
            total = total + (y.double() * weights).sum()
    return total


def outcome(library, case, dtype, order):
    """Values, then gradients up to an order; None where there is no gradient."""
    leaves = leaves_of(library, case, dtype)
    outputs = flat(case.function(library, *leaves))
    inputs = [x for x in leaves if x.requires_grad]
    total = weighted(library, outputs)
    gradients = []
    for k in range(order):
        if not isinstance(total, library.Tensor) or not total.requires_grad:
            break
        found = library.autograd.grad(total, inputs, create_graph=k + 1 < order, allow_unused=True)
        gradients.append(found)
        total = weighted(library, [g for g in found if g is not None])
    return outputs, gradients


def compare(case, dtype, order):
    mine, my_gradients = outcome(tg, case, dtype, order)
    theirs, their_gradients = outcome(torch, case, dtype, order)
    assert len(mine) == len(theirs)
    for a, b in zip(mine, theirs, strict=True):
        same(a, b, "value")
        if isinstance(b, torch.Tensor):
            assert a.requires_grad == b.requires_grad
    for k in range(order):
        rows = [g[k] if k < len(g) else None for g in (my_gradients, their_gradients)]
        size = max((len(r) for r in rows if r is not None), default=0)
        for i in range(size):
            a, b = (r[i] if r is not None else None for r in rows)
            what = f"derivative {k + 1}, operand {i}"
            if a is None or b is None:  # nothing, and zeros, are one answer at higher orders
                found = b if a is None else a
                if k == 0:
                    assert a is None, f"{what}: PyTorch gives None"
                    assert b is None, f"{what}: tapegrad gives None"
                assert found is None or not np.asarray(found.tolist()).any(), what
            else:
                same(a, b, what)


every = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@every
def test_float64(case):
    compare(case, "float64", 2 if case.smooth else 1)


@every
def test_float32(case):
    compare(case, "float32", 1)


INTEGER = [
    c for c in CASES if c.integers and all(values_of(x, 1).dtype.kind == "f" for x in c.operands)
]


def run_both(call):
    outcomes = []
    for library in (tg, torch):
        try:
            outcomes.append(flat(call(library)))
        except Exception as problem:  # whatever it is, it is compared
            outcomes.append(problem)
    return outcomes


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "bool"])
@pytest.mark.parametrize("case", INTEGER, ids=lambda case: case.name)
def test_integers(case, dtype):
    """The result has PyTorch's type and value, or both refuse."""

    def call(library):
        kind = np.dtype(dtype)
        operands = []
        for i, x in enumerate(case.operands):
            array = values_of(x, i + 1)
            array = np.abs(np.round(array * 2)) + 1 if dtype != "bool" else array > 0
            operands.append(library.tensor(array.astype(kind)))
        return case.function(library, *operands)

    mine, theirs = run_both(call)
    if isinstance(theirs, Exception):
        if "not implemented for" in str(theirs):
            return  # a kernel that PyTorch lacks on this processor, not a rule
        if isinstance(mine, Exception):
            assert isinstance(mine, type(theirs)), f"PyTorch: {theirs!r}; tapegrad: {mine!r}"
        elif dtype != "bool":  # there we may be more generous
            pytest.fail(f"PyTorch refuses: {theirs}")
        return
    if isinstance(mine, Exception):
        raise mine
    for a, b in zip(mine, theirs, strict=True):
        same(a, b, "value")


@pytest.mark.parametrize("name", CONVENTIONS)
def test_singular_points(name):
    at = CONVENTIONS[name]
    x = [torch.tensor(v, requires_grad=True) for v in at.leaves]
    at.function(torch, *x).sum().backward()
    for leaf, expected in zip(x, at.gradients, strict=True):
        found = np.zeros(leaf.shape) if leaf.grad is None else leaf.grad.numpy()
        np.testing.assert_allclose(found, expected)


# -- mixing types ----------------------------------------------------------------------------------

KINDS = ["bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64"]
OPERATORS = {
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "pow": lambda a, b: a**b,
    "floor_divide": lambda a, b: a // b,
    "remainder": lambda a, b: a % b,
    "lt": lambda a, b: a < b,
}


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("shapes_", [((2,), (2,)), ((2,), ()), ((), (2,)), ((), ())], ids=str)
def test_result_types(operator, shapes_):
    for left in KINDS:
        for right in [*KINDS, bool, int, float]:

            def call(library, left=left, right=right):
                a = library.ones(shapes_[0], dtype=getattr(library, left))
                if isinstance(right, str):
                    b = library.ones(shapes_[1], dtype=getattr(library, right))
                else:
                    b = right(1)
                return OPERATORS[operator](a, b)

            mine, theirs = run_both(call)
            what = f"{left} {operator} {right}"
            if isinstance(theirs, Exception):
                assert isinstance(mine, Exception) or "not implemented for" in str(theirs), what
                continue
            assert not isinstance(mine, Exception), f"{what}: {mine!r}"
            assert name_of(mine[0].dtype) == name_of(theirs[0].dtype), what


# -- errors ----------------------------------------------------------------------------------------

M = ((2, 3),)
REFUSED = {
    "shapes that do not broadcast": (lambda t, a: a + t.ones(4), M),
    "unknown dimension of sum": (lambda t, a: a.sum(5), M),
    "a dimension twice": (lambda t, a: a.sum((0, 0)), M),
    "a dimension that is no number": (lambda t, a: t.softmax(a, "x"), M),
    "mean of integers": (lambda t, a: t.ones(3, dtype=t.int64).mean(), M),
    "impossible reshape": (lambda t, a: a.reshape(4), M),
    "two unknown sizes": (lambda t, a: a.reshape(-1, -1), M),
    "impossible view": (lambda t, a: a.t().view(6), M),
    "permute with too few": (lambda t, a: a.permute(0), M),
    "permute with one twice": (lambda t, a: a.permute(0, 0), M),
    "transpose out of range": (lambda t, a: a.transpose(0, 2), M),
    "t of three dimensions": (lambda t, a: a.unsqueeze(0).t(), M),
    "expand that does not fit": (lambda t, a: a.expand(4, 3), M),
    "expand to fewer dimensions": (lambda t, a: a.expand(3), M),
    "unsqueeze out of range": (lambda t, a: a.unsqueeze(4), M),
    "squeeze out of range": (lambda t, a: a.squeeze(4), M),
    "narrow too long": (lambda t, a: a.narrow(1, 2, 2), M),
    "select out of range": (lambda t, a: a.select(1, 3), M),
    "index out of range": (lambda t, a: a[2], M),
    "too many indices": (lambda t, a: a[0, 0, 0], M),
    "index that is a float": (lambda t, a: a[1.5], M),
    "index array out of range": (lambda t, a: a[[0, 2]], M),
    "index array of floats": (lambda t, a: a[t.tensor([0.5])], M),
    "a step of zero": (lambda t, a: a[::0], M),
    "mask of another shape": (lambda t, a: a[t.tensor([True])], M),
    "index of a number": (lambda t, a: a.sum()[0], M),
    "cat of nothing": (lambda t, a: t.cat([]), M),
    "cat of one Tensor": (lambda t, a: t.cat(a), M),
    "cat that does not fit": (lambda t, a: t.cat([a, t.ones(2, 2)]), M),
    "cat of different ranks": (lambda t, a: t.cat([a, t.ones(3)]), M),
    "stack that does not fit": (lambda t, a: t.stack([a, t.ones(2, 2)]), M),
    "split that does not add up": (lambda t, a: a.split([1, 3]), M),
    "split by nothing": (lambda t, a: a.split(0), M),
    "chunk by nothing": (lambda t, a: a.chunk(0), M),
    "matmul that does not fit": (lambda t, a: a @ a, M),
    "matmul of a number": (lambda t, a: a @ a.sum(), M),
    "matmul of two types": (lambda t, a: a @ t.ones(3, 2, dtype=t.float32), M),
    "mm of a vector": (lambda t, a: t.mm(a, t.ones(3)), M),
    "dot of matrices": (lambda t, a: t.dot(a, a), M),
    "dot of different lengths": (lambda t, a: t.dot(a[0], t.ones(2)), M),
    "mv of a matrix": (lambda t, a: t.mv(a, a), M),
    "outer of matrices": (lambda t, a: t.outer(a, a), M),
    "bmm of matrices": (lambda t, a: t.bmm(a, a), M),
    "bmm of one matrix and two": (lambda t, a: t.bmm(a[None], t.stack([a.T, a.T])), M),
    "gather with another rank": (lambda t, a: a.gather(0, t.tensor([0])), M),
    "gather out of range": (lambda t, a: a.gather(0, t.tensor([[5]])), M),
    "gather with floats": (lambda t, a: a.gather(0, t.tensor([[0.0]])), M),
    "index_select out of range": (lambda t, a: a.index_select(0, t.tensor([4])), M),
    "index_select with a matrix": (lambda t, a: a.index_select(0, t.tensor([[0]])), M),
    "index_add that does not fit": (lambda t, a: a.index_add(0, t.tensor([0]), a), M),
    "scatter of another type": (lambda t, a: a.scatter(0, t.tensor([[0]]), t.ones(1, 1, dtype=t.float32)), M),
    "take out of range": (lambda t, a: a.take(t.tensor([6])), M),
    "masked_fill without a mask": (lambda t, a: a.masked_fill(t.tensor([1, 0, 1]), 0.0), M),
    "masked_fill with a vector": (lambda t, a: a.masked_fill(a > 0, t.ones(3)), M),
    "where without a mask of booleans": (lambda t, a: t.where(a, a, a), M),
    "where that does not broadcast": (lambda t, a: t.where(a > 0, a, t.ones(4)), M),
    "argmax of nothing": (lambda t, a: t.ones(0).argmax(), M),
    "max of nothing": (lambda t, a: t.ones(0).max(), M),
    "amax of nothing": (lambda t, a: t.ones(0).amax(0), M),
    "max of nothing along a dimension": (lambda t, a: t.ones(0, 2).max(0), M),
    "clamp without bounds": (lambda t, a: t.clamp(a), M),
    "minus of booleans": (lambda t, a: (a > 0) - (a > 0), M),
    "negative power of integers": (lambda t, a: t.tensor([2]) ** -1, M),
    "diag of three dimensions": (lambda t, a: t.diag(a.unsqueeze(0)), M),
    "diagonal of one dimension": (lambda t, a: a.diagonal(0, 0, 0), M),
    "tril of a vector": (lambda t, a: a[0].tril(), M),
    "flip of a dimension twice": (lambda t, a: a.flip(0, 0), M),
    "unfold too large": (lambda t, a: a.unfold(0, 3, 1), M),
    "as_strided beyond the storage": (lambda t, a: a.as_strided((7,), (1,)), M),
    "movedim of different numbers": (lambda t, a: a.movedim((0, 1), 0), M),
    "flatten the wrong way": (lambda t, a: a.flatten(1, 0), M),
    "unflatten that does not fit": (lambda t, a: a.unflatten(1, (2, 2)), M),
    "unknown rounding": (lambda t, a: t.div(a, a, rounding_mode="up"), M),
    "assignment that does not fit": (lambda t, a: (a * 1).__setitem__(0, t.ones(2)), M),
    "assignment out of range": (lambda t, a: (a * 1).__setitem__(5, 0.0), M),
    "in place of another shape": (lambda t, a: (a * 1).add_(t.ones(4, 2, 3)), M),
    "in place of a higher type": (lambda t, a: t.ones(3, dtype=t.int64).add_(0.5), M),
    "in place of a quotient of integers": (lambda t, a: t.ones(3, dtype=t.int64).div_(2), M),
    "copy that does not fit": (lambda t, a: (a * 1).copy_(t.ones(4)), M),
    "in place of an expanded one": (lambda t, a: t.ones(1).expand(3).add_(1), M),
    "softmax out of range": (lambda t, a: a.softmax(2), M),
    "cumsum out of range": (lambda t, a: a.cumsum(2), M),
    "cumprod out of range": (lambda t, a: a.cumprod(2), M),
    "quantile out of range": (lambda t, a: t.quantile(a, 1.5), M),
    "quantile of a matrix": (lambda t, a: t.quantile(a, t.tensor([[0.5]])), M),
    "quantile of nothing": (lambda t, a: t.quantile(a[:0], 0.5), M),
    "quantile of integers": (lambda t, a: t.quantile(t.tensor([1, 2]), 0.5), M),
    "quantile of an unknown kind": (lambda t, a: t.quantile(a, 0.5, interpolation="x"), M),
    "nanquantile along no dimension": (lambda t, a: t.nanquantile(a, 0.5, 2), M),
    "cov of three dimensions": (lambda t, a: t.cov(a.unsqueeze(0)), M),
    "cov with too few weights": (lambda t, a: t.cov(a, aweights=t.ones(2)), M),
    "cov with fractions": (lambda t, a: t.cov(a, fweights=t.ones(3)), M),
    "corrcoef of three dimensions": (lambda t, a: t.corrcoef(a.unsqueeze(0)), M),
    "vander of a matrix": (lambda t, a: t.vander(a), M),
    "vander of a negative number": (lambda t, a: t.vander(a[0], -1), M),
    "sort out of range": (lambda t, a: a.sort(2), M),
    "argsort out of range": (lambda t, a: a.argsort(-3), M),
    "diff of a number": (lambda t, a: t.diff(a.sum()), M),
    "diff a negative number of times": (lambda t, a: t.diff(a, -1), M),
    "trace of three dimensions": (lambda t, a: t.trace(a.unsqueeze(0)), M),
    "roll without dimensions": (lambda t, a: a.roll((1, 2)), M),
    "roll by too few": (lambda t, a: a.roll((1,), (0, 1)), M),
    "roll out of range": (lambda t, a: a.roll(1, 2), M),
    "repeat of too few dimensions": (lambda t, a: a.repeat(2), M),
    "repeat a negative number of times": (lambda t, a: a.repeat(2, -1), M),
    "repeat_interleave of another length": (lambda t, a: a.repeat_interleave(t.tensor([1, 2]), 1), M),
    "repeat_interleave by a matrix": (lambda t, a: a.repeat_interleave(t.tensor([[1, 2]]), 0), M),
    "repeat_interleave by a negative number": (lambda t, a: a.repeat_interleave(t.tensor([1, -2]), 0), M),
    "pad by an odd number": (lambda t, a: t.nn.functional.pad(a, (1,)), M),
    "pad of too many dimensions": (lambda t, a: t.nn.functional.pad(a, (1,) * 6), M),
    "pad that takes too much": (lambda t, a: t.nn.functional.pad(a, (-2, -2)), M),
    "pad in an unknown mode": (lambda t, a: t.nn.functional.pad(a, (1, 1), mode="x"), M),
    "rot90 of one dimension": (lambda t, a: t.rot90(a[0]), M),
    "rot90 of a dimension twice": (lambda t, a: t.rot90(a, 1, (0, 0)), M),
    "rot90 of three dimensions": (lambda t, a: t.rot90(a, 1, (0, 1, 2)), M),
    "meshgrid of a matrix": (lambda t, a: t.meshgrid(a, indexing="ij"), M),
    "meshgrid of nothing": (lambda t, a: t.meshgrid([], indexing="ij"), M),
    "meshgrid of two types": (lambda t, a: t.meshgrid(a[0], t.tensor([1]), indexing="ij"), M),
    "meshgrid in an unknown order": (lambda t, a: t.meshgrid(a[0], indexing="x"), M),
    "hstack that does not fit": (lambda t, a: t.hstack([a, t.ones(3, 3)]), M),
    "vstack that does not fit": (lambda t, a: t.vstack([a, t.ones(2, 2)]), M),
    "column_stack of one Tensor": (lambda t, a: t.column_stack(a), M),
    "take_along_dim of another rank": (lambda t, a: t.take_along_dim(a, t.tensor([0]), 0), M),
    "take_along_dim that does not fit": (lambda t, a: t.take_along_dim(a, t.zeros(3, 1, dtype=t.int64), 1), M),
    "take_along_dim with floats": (lambda t, a: t.take_along_dim(a, t.zeros(2, 1), 1), M),
    "polygamma of a negative order": (lambda t, a: t.polygamma(-1, a), M),
    "polygamma of a fraction": (lambda t, a: t.polygamma(0.5, a), M),
    "mvlgamma of no dimension": (lambda t, a: t.mvlgamma(a, 0), M),
    "mvlgamma of a fraction": (lambda t, a: t.mvlgamma(a, 1.5), M),
    "mvlgamma in place of integers": (lambda t, a: t.tensor([3]).mvlgamma_(2), M),
    "a polynomial of two numbers": (lambda t, a: t.special.legendre_polynomial_p(0.5, 2), M),
    "the derivative of zeta in its first argument": (lambda t, a: t.special.zeta(a + 1, a).sum().backward(), M),
    "fmod of integers by zero": (lambda t, a: t.fmod(t.tensor([1]), 0), M),
    "an operand that is a string": (lambda t, a: a + "x", M),
    "an operand that is None": (lambda t, a: a * None, M),
    "mse_loss with an unknown reduction": (lambda t, a: t.nn.functional.mse_loss(a, a, reduction="x"), M),
    "item of many": (lambda t, a: a.item(), M),
    "truth of many": (lambda t, a: bool(a), M),
    "iteration over a number": (lambda t, a: list(a.sum()), M),
    "length of a number": (lambda t, a: len(a.sum()), M),
    "numpy of what requires grad": (lambda t, a: a.numpy(), M),
}  # fmt: skip


REFUSED |= (
    linalg_cases.REFUSED
    | nn_cases.REFUSED
    | loss_cases.REFUSED
    | order_cases.REFUSED
    | creation_cases.REFUSED
    | sampled_cases.REFUSED
    | scatter_cases.REFUSED
    | signal_cases.REFUSED
)


@pytest.mark.parametrize("name", REFUSED)
def test_both_refuse(name):
    function, shapes_ = REFUSED[name]

    def call(library):
        return function(library, *[library.ones(s, requires_grad=True) for s in shapes_])

    mine, theirs = run_both(call)
    assert isinstance(theirs, Exception), "PyTorch does not refuse"
    assert isinstance(mine, Exception), f"tapegrad does not refuse: {theirs}"
    assert isinstance(mine, type(theirs)), f"PyTorch: {theirs!r}; tapegrad: {mine!r}"
    assert str(mine)


# -- nothing is left out -------------------------------------------------------------------------------


def public_names():
    for module in (
        arithmetic, reductions, shapes, joining, indexing, products, rounding, scans, special, tiling,
        contractions, matrices, quantiles, statistics, elementwise, axis, diagonals, masking,
        added_products, factorizations, householder, least_squares, lu, matrix_chains, matrix_methods,
        norms, order_statistics, orthogonal_polynomials, calculus, distances, exponents, queries,
        ranges, histograms, scattering, sets, unchecked_solves,
    ):  # fmt: skip
        for name, value in vars(module).items():
            own = getattr(value, "__module__", None) == module.__name__
            if callable(value) and own and not name.startswith("_") and not isinstance(value, type):
                yield name
    yield from inplace_methods.OF_ROWS
    yield from methods_of(inplace_methods)
    yield from tg.nn.functional.__all__
    yield from tg.special.__all__


NOT_CALLED = {  # helpers of other modules, and names that only operators reach
    "parse", "index_add_parts", "index_put_parts", "fill_parts", "mask_of",
    "getitem", "concatenate", "clamping", "matrix_transpose", "result_type",
    "scaled", "numerator", "order", "replacement", "matrices", "crossed", "correlations", "in_front", "in_range",
    "index_and_mode", "places_of", "simple_index", "with_factors", "shaped", "squeezed", "swapped", "turned", "unsqueezed",
    "all_equal", "dims_of_both", "known", "part", "recorded", "same_dtype", "check_system", "tolerances",
    "values_beside_vectors", "without_front", "without_imaginary", "along_dims", "along_one",
    "triangular", "numbers", "order_statistic", "quantiles", "unless_nan", "finite", "parsed", "fitting", "diagonal_places", "near", "slope", "scaled_by_power",
    "bins_of", "bordered", "edges_of", "neutral", "stacked", "quotient_and_rest", "norm_of", "with_index_tensors",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(set(public_names()) - NOT_CALLED))
def test_every_public_name_is_compared(name):
    called = set().union(*(names_in(c.function.__code__) for c in CASES))
    assert name in called, f"give `{name}` a line in tests/peers/torch_cases.py"


@pytest.mark.parametrize("name", sorted({*tg.linalg.__all__} - {"LinAlgError"}))
def test_every_name_of_linalg_is_compared(name):
    codes = [c.function.__code__ for c in linalg_cases.LINALG_CASES]
    assert any({"linalg", name} <= names_in(code) for code in codes)


def test_the_page_of_operations_names_what_pytorch_has():
    for listed in operations_page.functions():
        home = torch
        for part in filter(None, listed.home.split(".")):
            home = getattr(home, part)
        for name in listed.names:
            assert hasattr(home, name) is (name not in operations_page.OWN), listed.path

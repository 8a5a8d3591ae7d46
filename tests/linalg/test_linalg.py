"""Linear algebra and sums of products: what the conformance suite and the peers do not look at."""

# ruff: noqa: E501
import random
import re

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.tape.debts import DROP_FLOOR
from tapegrad.tape.tape import current

pytestmark = pytest.mark.tapegrad_only("tests/peers compares these functions with PyTorch")

E2 = tg.eye(2)
nan = float("nan")


def leaf(rng, *shape):
    return tg.from_numpy(rng.standard_normal(shape)).requires_grad_()


# -- errors ----------------------------------------------------------------------------------------

REFUSED = {
    "`linalg.inv`: the matrix of shape (2, 2) is singular": lambda: tg.linalg.inv(tg.zeros(2, 2)),
    "the matrix at (1,) of the batch of shape (2, 2, 2) is singular": lambda: tg.inverse(tg.stack([E2, E2 * 0])),
    "use `linalg.pinv` for the others": lambda: tg.linalg.inv(tg.zeros(2, 2)),
    "`linalg.solve`: the matrix of shape": lambda: tg.linalg.solve(tg.zeros(2, 2), tg.ones(2)),
    "`linalg.cholesky`: the input of shape (2, 2) is not positive": lambda: tg.linalg.cholesky(-E2),
    "`linalg.cholesky`: the input of shape (2, 2) is not": lambda: tg.linalg.cholesky(E2 * nan),
    "`linalg.eigh`: the iteration did not converge": lambda: tg.linalg.eigh(tg.eye(3) * nan),
    "`linalg.svd`: the iteration did not converge": lambda: tg.linalg.svd(E2 * nan),
    "the iteration did not converge for the input of shape (3, 3)": lambda: tg.linalg.svdvals(tg.ones(3, 3) / 0),
    "the iteration did not converge for the input of shape (4, 4)": lambda: tg.linalg.eigvalsh(tg.ones(4, 4) / 0),
    "`linalg.svd`: the iteration did not converge for the input of shape (3, 2)": lambda: tg.linalg.svd(tg.ones(3, 2) * nan),
    "`linalg.pinv`: the iteration did not converge": lambda: tg.pinverse(E2 * nan),
}  # fmt: skip
MISUSED = {
    "`linalg.det` takes Tensors of float32 or float64, or of a complex type, got tapegrad.int64": lambda: tg.det(tg.ones(2, 2).long()),
    "`linalg.det` takes a matrix or a batch of matrices": lambda: tg.det(tg.ones(2)),
    "`linalg.det` takes square matrices, got the shape (2, 3): 2 rows and 3 columns": lambda: tg.det(tg.ones(2, 3)),
    "expected A and B of one dtype, got tapegrad.float64 and tapegrad.float32": lambda: tg.linalg.solve(E2, E2.float()),
    "A X = B: B needs 2 rows, got 3": lambda: tg.linalg.solve(E2, tg.ones(3, 2)),
    "X A = B: B needs 2 columns, got 3": lambda: tg.linalg.solve(E2, tg.ones(2, 3), left=False),
    "B needs at least one dimension": lambda: tg.linalg.solve(E2, tg.tensor(1.0)),
    "the batch dimensions of (2, 2, 2) and (3, 2, 1) do not broadcast": lambda: tg.linalg.solve(tg.ones(2, 2, 2), tg.ones(3, 2, 1)),
    "UPLO is 'L' or 'U'": lambda: tg.linalg.eigh(E2, "X"),
    "mode is 'reduced', 'complete' or 'r'": lambda: tg.linalg.qr(E2, "full"),
    "mode='r' cannot be differentiated": lambda: tg.linalg.qr(tg.ones(2, 2, requires_grad=True), "r"),
    "mode='complete' cannot be differentiated": lambda: tg.linalg.qr(tg.ones(3, 2, requires_grad=True), "complete"),
    "depends on the vectors by which full_matrices=True completes a basis of 5 dimensions": lambda: tg.linalg.svd(tg.eye(5, 3).requires_grad_()).U[3].sum().backward(),
    "completes a basis of 4 dimensions": lambda: tg.linalg.svd(tg.eye(2, 4).requires_grad_()).Vh[:, 3].sum().backward(),
    "needs at least 2 Tensors, got 1": lambda: tg.linalg.multi_dot([E2]),
    "got the shape (1, 2, 2) at place 1": lambda: tg.linalg.multi_dot([E2, tg.ones(1, 2, 2), E2]),
    "the shapes (2, 2) and (3, 2) at places 0 and 1 cannot": lambda: tg.linalg.multi_dot([E2, tg.ones(3, 2)]),
    "`linalg.vector_norm` takes Tensors of a floating-point or complex type": lambda: tg.linalg.vector_norm(tg.ones(2).long()),
    "ord=inf is not defined for no elements": lambda: tg.linalg.vector_norm(tg.ones(0), float("inf")),
    "`linalg.matrix_norm` takes at least 2 dimensions": lambda: tg.linalg.matrix_norm(tg.ones(2)),
    "dim is a tuple of two dimensions, got 1": lambda: tg.linalg.matrix_norm(E2, "fro", 1),
    "a tuple of two different dimensions": lambda: tg.linalg.matrix_norm(E2, "fro", (0, 0)),
    "for other norms of the elements use `vector_norm`": lambda: tg.linalg.matrix_norm(E2, 3),
    "dim is one dimension or two": lambda: tg.linalg.norm(tg.ones(1, 1, 1), 2, (0, 1, 2)),
    "it takes a vector or a matrix, got the shape (1, 1, 1)": lambda: tg.linalg.norm(tg.ones(1, 1, 1), 2),
    "has 2 operands, got 1": lambda: tg.einsum("ij,jk", E2),
    "'1' in the equation 'i1' is not understood": lambda: tg.einsum("i1", E2),
    "'ijk' in the equation 'ijk' does not fit operand 0 of shape (2, 2)": lambda: tg.einsum("ijk", E2),
    "operand 0 of shape (2, 3) has no diagonal 'ii'": lambda: tg.einsum("ii", tg.ones(2, 3)),
    "the dimension 'j' of operand 1 has size 3, in an operand before it 2": lambda: tg.einsum("ij,jk", E2, tg.ones(3, 2)),
    "'k' after '->' in 'ij->k' stands in no operand": lambda: tg.einsum("ij->k", E2),
    "'i' stands twice after '->' in 'i->ii'": lambda: tg.einsum("i->ii", tg.ones(2)),
    "`einsum`: expected operands of one dtype": lambda: tg.einsum("i,i", tg.ones(2), tg.ones(2).float()),
    "a list has numbers from 0 to 51 and `...`, got 52": lambda: tg.einsum(tg.ones(2), [52]),
    "more than 52 dimensions": lambda: tg.einsum("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwx...", tg.ones(*[1] * 53)),
    "dims=3 of the shapes (2, 2) and (2, 2): it is a number from 0 to 2": lambda: tg.tensordot(E2, E2, 3),
    "dimension 1 of the shape (2, 3) and dimension 0 of (2, 3)": lambda: tg.tensordot(tg.ones(2, 3), tg.ones(2, 3), 1),
    "must name as many dimensions": lambda: tg.tensordot(E2, E2, ([0, 1], [0])),
    "`trace` takes a matrix, got the shape (2,)": lambda: tg.trace(tg.ones(2)),
    "`diag_embed` needs two different dimensions": lambda: tg.diag_embed(E2, 0, 1, 1),
    "both operands need the same number of dimensions": lambda: tg.linalg.cross(tg.ones(2, 3), tg.ones(3)),
    "dimension -1 must have size 3 in both operands": lambda: tg.linalg.cross(E2, E2),
    "has no dimension of size 3": lambda: tg.cross(E2, E2),
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_what_has_no_result_is_refused(text):
    with pytest.raises(tg.linalg.LinAlgError, match=re.escape(text)):
        REFUSED[text]()


@pytest.mark.parametrize("text", MISUSED)
def test_misuse_is_explained(text):
    with pytest.raises(RuntimeError, match=re.escape(text)) as caught:
        MISUSED[text]()
    assert not isinstance(caught.value, tg.linalg.LinAlgError)


def test_other_errors():
    with pytest.raises(ValueError, match="an equation and at least one operand"):
        tg.einsum("ij")
    with pytest.raises(TypeError, match="an equation before its operands"):
        tg.einsum(E2, E2)
    with pytest.raises(TypeError, match="n is an int, got float"):
        tg.linalg.matrix_power(E2, 0.5)
    with pytest.raises(TypeError, match="ord is a number, got 'fro'"):
        tg.linalg.vector_norm(E2, "fro")


def test_the_error_is_also_that_of_numpy():
    assert issubclass(tg.linalg.LinAlgError, np.linalg.LinAlgError)
    assert issubclass(tg.linalg.LinAlgError, RuntimeError)


def test_a_refused_operation_records_nothing():
    a = tg.zeros(2, 2, requires_grad=True)
    before = current.tape.next
    with pytest.raises(tg.linalg.LinAlgError):
        tg.linalg.inv(a)
    assert current.tape.next == before


# -- decompositions --------------------------------------------------------------------------------


def test_results_have_names():
    assert tg.linalg.eigh(E2)._fields == ("eigenvalues", "eigenvectors")
    assert tg.linalg.slogdet(E2)._fields == ("sign", "logabsdet")
    assert tg.linalg.qr(E2)._fields == ("Q", "R")
    assert tg.linalg.svd(E2)._fields == ("U", "S", "Vh")


@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 4)])
def test_a_recomposed_matrix_has_the_gradient_of_the_matrix(rng, shape):
    a = leaf(rng, *shape)
    weight = tg.from_numpy(rng.standard_normal(shape))
    s = a + a.mT
    values, vectors = tg.linalg.eigh(s)
    u, sizes, vh = tg.linalg.svd(a)
    q, r = tg.linalg.qr(a)
    low = tg.linalg.cholesky(a @ a.mT + tg.eye(shape[-1]))
    for whole, same in [
        ((vectors * values.unsqueeze(-2)) @ vectors.mT, s),
        ((u * sizes.unsqueeze(-2)) @ vh, a * 1),
        (q @ r, a * 1),
        (low @ low.mT, a @ a.mT),
    ]:
        found, expected = (
            tg.autograd.grad(y, a, weight, retain_graph=True)[0].numpy() for y in (whole, same)
        )
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_a_part_is_an_array_of_its_own(rng):
    """The result of a decomposition may be changed in place; its rule does not read it."""
    a = leaf(rng, 3, 3)
    values, vectors = tg.linalg.eigh(a)
    (expected,) = tg.autograd.grad(values.sum() + vectors[0, 0] ** 2, a, retain_graph=True)
    assert not values._is_view()
    total = values.sum() + vectors[0, 0] ** 2
    values.mul_(3.0)
    (found,) = tg.autograd.grad(total, a)
    np.testing.assert_array_equal(found.numpy(), expected.numpy())


def test_one_triangle_is_read(rng):
    a = rng.standard_normal((3, 3))
    low = np.tril(a) + np.tril(a, -1).T
    upp = np.triu(a) + np.triu(a, 1).T
    for side, full in (("L", low), ("U", upp)):
        found = tg.linalg.eigvalsh(tg.from_numpy(a), side).numpy()
        np.testing.assert_allclose(found, np.linalg.eigvalsh(full), rtol=1e-12)
    b = a @ a.T + np.eye(3)
    for upper, part in ((False, np.tril(b)), (True, np.triu(b))):
        found = tg.linalg.cholesky(tg.from_numpy(part), upper=upper).numpy()
        expected = np.linalg.cholesky(b)
        np.testing.assert_allclose(found, expected.T if upper else expected, rtol=1e-12)


def test_unused_vectors_stay_out_of_it():
    """Equal eigenvalues: their sum can be differentiated twice, their vectors cannot."""
    a = tg.tensor([[2.0, 0.0], [0.0, 2.0]], requires_grad=True)
    values, vectors = tg.linalg.eigh(a)
    (g,) = tg.autograd.grad((values**2).sum(), a, create_graph=True)
    np.testing.assert_allclose(g.detach().numpy(), 4 * np.eye(2))
    (h,) = tg.autograd.grad(vectors[0, 0] + vectors[1, 0] * 2, a)
    assert not np.isfinite(h.numpy()).all()


# -- determinants ----------------------------------------------------------------------------------


@pytest.mark.parametrize("rank", [0, 1, 2, 3])
def test_det_at_any_rank(rng, rank):
    """Both derivatives are those of the sum of products, also at singular matrices."""
    a = tg.from_numpy(rng.standard_normal((3, rank)) @ rng.standard_normal((rank, 3)))
    a.requires_grad_()

    def by_hand(x):
        return sum(
            sign * x[0, i] * x[1, j] * x[2, k]
            for sign, i, j, k in [(1, 0, 1, 2), (1, 1, 2, 0), (1, 2, 0, 1), (-1, 2, 1, 0), (-1, 1, 0, 2), (-1, 0, 2, 1)]
        )  # fmt: skip

    weight = tg.from_numpy(rng.standard_normal((3, 3)))
    found = []
    for function in (tg.linalg.det, by_hand):
        (g,) = tg.autograd.grad(function(a), a, create_graph=True)
        (h,) = tg.autograd.grad((g * weight).sum(), a)
        found.append((g.detach().numpy(), h.numpy()))
    for mine, expected in zip(*found, strict=True):
        np.testing.assert_allclose(mine, expected, rtol=1e-10, atol=1e-12)


def test_the_third_derivative_of_det():
    def third(at):
        a = tg.tensor(at, requires_grad=True)
        (g,) = tg.autograd.grad(tg.linalg.det(a) ** 2, a, create_graph=True)
        (h,) = tg.autograd.grad(g[0, 0] * 2.0, a, create_graph=True)
        return tg.autograd.grad(h[0, 0], a)[0].numpy()

    a, b, c, d = 3.0, 1.0, 2.0, 5.0  # g00 = 2 d (a d - b c), its derivative in a: 2 d², twice
    np.testing.assert_allclose(third([[a, b], [c, d]]), [[0, 0], [0, 8 * d]], atol=1e-12)
    with pytest.raises(tg.linalg.LinAlgError, match=r"third derivative of `linalg\.det`"):
        third([[1.0, 2.0], [2.0, 4.0]])


def test_determinants_that_are_no_numbers():
    """Without a warning, as everywhere."""
    assert np.isnan(tg.linalg.det(E2 * nan).item())
    assert np.isnan(tg.linalg.slogdet(E2 * nan).logabsdet.item())
    assert tg.linalg.det(E2 * 1e200).item() == float("inf")


# -- sums of products ------------------------------------------------------------------------------


def random_equation(choose):
    letters = "abcdef"[: choose.randint(1, 6)]
    sizes = {i: choose.randint(1, 3) for i in letters}
    terms = [
        "".join(choose.choices(letters, k=choose.randint(0, 3)))
        for _ in range(choose.randint(1, 4))
    ]
    used = sorted(set("".join(terms)))
    out = "".join(choose.sample(used, choose.randint(0, len(used))))
    return f"{','.join(terms)}->{out}", [tuple(sizes[i] for i in term) for term in terms]


@pytest.mark.parametrize("seed", range(120))
def test_einsum_is_that_of_numpy(seed):
    """Its gradients g satisfy <g, x> = <weight, y> for each operand: it is linear in each."""
    equation, shapes = random_equation(random.Random(seed))
    rng = np.random.default_rng(seed)
    leaves = [leaf(rng, *shape) for shape in shapes]
    y = tg.einsum(equation, *leaves)
    np.testing.assert_allclose(
        y.detach().numpy(), np.einsum(equation, *[x._a for x in leaves]), rtol=1e-12, atol=1e-12
    )
    weight = tg.from_numpy(rng.standard_normal(y._a.shape))
    expected = float(np.sum(weight._a * y._a))
    for x, g in zip(leaves, tg.autograd.grad(y, leaves, weight), strict=True):
        assert g.shape == x.shape
        np.testing.assert_allclose(float(np.sum(g._a * x._a)), expected, rtol=1e-9, atol=1e-9)


def test_einsum_of_large_operands_is_one_record(rng):
    a, b, c = leaf(rng, 150, 140), leaf(rng, 140, 130), leaf(rng, 130)
    before = current.tape.next
    tg.einsum("ij,jk,k->i", a, b, c)
    assert current.tape.next == before + 1


def test_einsum_of_one_operand_is_a_view():
    a = tg.arange(4).reshape(2, 2)
    b = tg.einsum("ij->ji", a)
    b[0, 1] = 7
    assert a.tolist() == [[0, 1], [7, 3]]


def test_multi_dot_takes_the_cheap_order(rng):
    """A long chain that begins with a thin matrix is multiplied from the left."""
    parts = [leaf(rng, *shape) for shape in [(1, 30), (30, 30), (30, 30), (30, 30)]]
    tape = current.tape
    before = tape.next
    tg.linalg.multi_dot(parts)
    assert [record.shape for record in tape[before - tape.next :]] == [(1, 30)] * 3


def test_a_dropped_outer_product_frees_the_debt_of_its_record():
    """The record of the view by which the next one begins would stand above it."""
    x = tg.ones(600, requires_grad=True)
    for _ in range(3 * DROP_FLOOR // (8 * 600 * 600) + 3):
        tg.outer(x, x)
    assert current.tape.debt <= DROP_FLOOR + 8 * 600 * 600


PRODUCTS = (
    "ij,j->i ij,jk->ik ij,jk->ki ij,kj->ik ji,jk->ik i,i-> i,ij->j bij,bjk->bik bij,bkj->bik "
    "bij,bjk->bki bcij,bcjk->bcik ibj,bjk->bik i,j->ij i,j->ji bij,jk->bik bi,bi->b ij,ij->i"
).split()


@pytest.mark.parametrize("equation", PRODUCTS)
def test_einsum_of_two_matrices(equation):
    sizes, rng = dict(zip("ijkbc", (2, 3, 4, 5, 2), strict=True)), np.random.default_rng(0)
    operands, out = equation.split("->")
    terms = operands.split(",")
    given = [rng.normal(size=[sizes[i] for i in term]) for term in terms]
    leaves = [tg.tensor(x, requires_grad=True) for x in given]
    y = tg.einsum(equation, *leaves)
    np.testing.assert_allclose(y.detach().numpy(), np.einsum(equation, *given), rtol=1e-13)
    weight = rng.normal(size=y.shape)
    y.backward(tg.tensor(weight))
    for k, (leaf, term) in enumerate(zip(leaves, terms, strict=True)):
        adjoint = f"{out},{terms[1 - k]}->{term}"
        expected = np.einsum(adjoint, weight, given[1 - k])
        np.testing.assert_allclose(leaf.grad.numpy(), expected, rtol=1e-12, atol=1e-14)


def test_einsum_of_two_matrices_is_their_product():
    a, b = (tg.ones(3, 3, requires_grad=True) for _ in range(2))
    tg.einsum("ij,kj->ik", a, b)
    assert tg.einsum("ij,kj->ik", a, b).tape[-1].op == "matmul"
    assert tg.einsum("ij,ij->i", a, b).tape[-2].op == "matmul"


SMALL_SUMS = (
    "ijk,jl->ilk", "i,ij,j->", "bi,bj->bij", "bij,bj->bi", "ij,ij->", "ijk,kji->j", "ij,jk,kl->il",
    "ij,i,j->ji", "ijk->ki", "i,j,k->kij",
)  # fmt: skip


@pytest.mark.parametrize("dtype", [tg.float64, tg.float32])
@pytest.mark.parametrize("equation", SMALL_SUMS)
def test_einsum_of_small_operands_is_products_in_pairs(equation, dtype, rng):
    sizes = dict(zip("bijkl", (2, 3, 4, 3, 2), strict=True)) | {"i": 3, "j": 4, "k": 3}
    shapes = [[sizes[i] for i in term] for term in equation.split("->")[0].split(",")]
    xs = [leaf(rng, *shape).detach().to(dtype).requires_grad_() for shape in shapes]
    y = tg.einsum(equation, *xs)
    expected = np.einsum(equation, *[x.detach().numpy() for x in xs])
    rtol = 1e-12 if dtype is tg.float64 else 1e-5
    np.testing.assert_allclose(y.detach().numpy(), expected, rtol, 1e-6)
    assert y.dtype is dtype
    if dtype is tg.float64:
        assert tg.autograd.gradcheck(lambda *xs: tg.einsum(equation, *xs), tuple(xs))
        assert tg.autograd.gradgradcheck(lambda *xs: tg.einsum(equation, *xs), tuple(xs))


def test_tensordot_of_more_dimensions_than_there_are_letters(rng):
    x = tg.from_numpy(rng.standard_normal((2, 3))).reshape(2, *[1] * 28, 3)
    y = tg.from_numpy(rng.standard_normal((3, 2))).reshape(3, *[1] * 28, 2)
    found = tg.tensordot(x, y, dims=1)
    assert found.shape == (2, *[1] * 56, 2)
    np.testing.assert_allclose(
        found.reshape(2, 2).numpy(), (x.reshape(2, 3) @ y.reshape(3, 2)).numpy()
    )

"""Linear algebra and sums of products, as calls that PyTorch understands too."""

# ruff: noqa: E501
from __future__ import annotations

from functools import partial
from typing import Any

from tests.peers.torch_cases import C3, CASES, COL, SQ, M, R, S, case

FIRST = len(CASES)
B3 = (2, 3, 3)
inf = float("inf")

floats = partial(case, integers=False)  # PyTorch computes some of these with integers, in vain


def eye(t: Any, a: Any, scale: float = 1.0) -> Any:
    return t.eye(a.shape[-1], dtype=a.dtype) * scale


def good(t: Any, a: Any) -> Any:
    """A matrix that is far from singular."""
    return a + eye(t, a, 5.0)


def good_any(t: Any, a: Any) -> Any:
    """The same of a matrix that is not square."""
    return a + t.eye(*a.shape[-2:], dtype=a.dtype) * 5


def factor(t: Any, a: Any, upper: bool) -> Any:
    """A triangular matrix that is far from singular."""
    return good(t, a).triu() if upper else good(t, a).tril()


def by_det(t: Any, a: Any) -> Any:
    """PyTorch's `det` of float32 has no gradient while the default is float64: it raises."""
    return a if a.dtype is t.float64 else a.detach()


def spd(t: Any, a: Any) -> Any:
    """A symmetric matrix that is positive definite, with eigenvalues well apart."""
    return a @ a.mT * 0.25 + t.diag(t.arange(1, a.shape[-1] + 1).to(a.dtype) * 2)


# -- solving ---------------------------------------------------------------------------------------
for a, b in [(SQ, (3,)), (SQ, (3, 2)), (B3, (2, 3)), (B3, (2, 3, 1)), (B3, (3, 2)), (SQ, (2, 3, 2)), ((1, 1), (1,)),
             ((2, 1, 3, 3), (4, 3, 1)), ((0, 2, 2), (0, 2)), ((0, 0), (0, 2))]:  # fmt: skip
    floats(lambda t, a, b: t.linalg.solve(good(t, a), b), a, b)
for b in [(2, 3), (5, 2, 3)]:
    floats(lambda t, a, b: t.linalg.solve(good(t, a), b, left=False), SQ, b)
for upper in (False, True):
    for unit in (False, True):
        floats(
            lambda t, a, b, u=upper, n=unit: t.linalg.solve_triangular(good(t, a), b, upper=u, unitriangular=n),
            B3, (3, 2),
        )  # fmt: skip
        floats(
            lambda t, a, b, u=upper, n=unit: t.linalg.solve_triangular(good(t, a), b, upper=u, left=False, unitriangular=n),
            SQ, (2, 2, 3),
        )  # fmt: skip
    floats(
        lambda t, a, b, u=upper: (
            t.cholesky_solve(b, factor(t, a, u), u) + b.cholesky_solve(factor(t, a, u), upper=u)
        ),
        SQ, (3, 2),
    )  # fmt: skip
for shape in [SQ, B3, (1, 1), (0, 2, 2), (2, 0, 0)]:
    floats(
        lambda t, a: (t.linalg.inv(good(t, a)), t.inverse(good(t, a)), good(t, a).inverse()), shape
    )
    floats(
        lambda t, a: (t.linalg.det(by_det(t, good(t, a))), t.det(by_det(t, a)), by_det(t, a).det()),
        shape,
    )
    floats(
        lambda t, a: (t.linalg.slogdet(a), t.slogdet(good(t, a)).logabsdet, a.slogdet()[1]), shape
    )
    floats(
        lambda t, a: (t.logdet(spd(t, a)), spd(t, a).logdet(), t.logdet(-eye(t, a) + a * 0)), shape
    )
    floats(lambda t, a: (t.linalg.matrix_exp(a), t.matrix_exp(a * 0.1), a.matrix_exp()), shape)
    for n in (0, 1, 2, 3, 5, -1, -2):
        case(lambda t, a, n=n: t.linalg.matrix_power(good(t, a), n), shape)
case(lambda t, a: (t.matrix_power(a, 3), a.matrix_power(2)), SQ)
for shape in [SQ, (4, 2), (2, 2, 3), (0, 3)]:
    floats(lambda t, a: (t.linalg.pinv(a), t.pinverse(a), a.pinverse(1e-3)), shape)
floats(
    lambda t, a: (
        t.linalg.pinv(a, atol=0.1),
        t.linalg.pinv(a, rtol=0.9),
        t.linalg.pinv(a, atol=1, rtol=0.1),
    ),
    (3, 2),
)
floats(lambda t, a: t.linalg.pinv(spd(t, a), hermitian=True), SQ)

# -- decompositions (a vector's sign is each library's own) ----------------------------------------
for shape in [SQ, B3, (1, 1), (0, 2, 2), (2, 0, 0)]:
    floats(
        lambda t, a: (t.linalg.cholesky(spd(t, a)), t.linalg.cholesky(spd(t, a), upper=True)), shape
    )
    floats(lambda t, a: t.linalg.eigvalsh(a), shape)
    floats(lambda t, a: t.linalg.eigvalsh(a + a.mT, UPLO="U"), shape)
    floats(
        lambda t, a: (
            t.linalg.eigh(spd(t, a)).eigenvalues,
            t.linalg.eigh(spd(t, a)).eigenvectors ** 2,
        ),
        shape,
    )
floats(lambda t, a: (t.linalg.eigh(a, "U")[0], t.linalg.eigh(a, UPLO="L")[1] ** 2), SQ)
for shape in [SQ, B3, (4, 2), (2, 4), (2, 3, 2), (2, 0, 2), (0, 3)]:
    floats(lambda t, a: tuple(t.linalg.lu(a)), shape)
    floats(lambda t, a: tuple(t.linalg.lu_factor(good_any(t, a))), shape)
    floats(lambda t, a: tuple(t.linalg.lu_factor_ex(good_any(t, a))), shape)
    floats(lambda t, a: tuple(t.lu_unpack(*good_any(t, a).lu())), shape)
    floats(lambda t, a: t.geqrf(a.detach())[0] ** 2 + a.detach().geqrf().a ** 2, shape)
floats(
    lambda t, a: (
        *t.lu(good(t, a)),
        *t.lu(good(t, a), get_infos=True),
        t.lu_unpack(*t.lu(good(t, a)), unpack_data=False).P,
        t.lu_unpack(*t.lu(good(t, a)), unpack_pivots=False).U,
    ),
    B3,
)
for a, b in [(SQ, (3, 2)), (B3, (3, 1)), (SQ, (2, 3, 2)), (B3, (2, 3, 3)), ((0, 0), (0, 2))]:
    for adjoint in (False, True):
        floats(
            lambda t, a, b, j=adjoint: t.linalg.lu_solve(*t.linalg.lu_factor(good(t, a.flip(-2))), b, adjoint=j),
            a, b,
        )  # fmt: skip
        floats(
            lambda t, a, b, j=adjoint: t.linalg.lu_solve(
                *t.linalg.lu_factor(good(t, a)), b.mT, left=False, adjoint=j
            ),
            a, b,
        )  # fmt: skip
    floats(
        lambda t, a, b: (
            t.lu_solve(b, *t.linalg.lu_factor(good(t, a))) + b.lu_solve(*good(t, a).lu())
        ),
        a,
        b if len(a) <= len(b) else (2, 3, 1),
    )
    floats(
        lambda t, a, b: t.linalg.ldl_solve(
            *t.linalg.ldl_factor((a + a.mT).detach()), b.detach(), hermitian=True
        ),
        a, b,
    )  # fmt: skip
floats(lambda t, a: (*t.linalg.ldl_factor(a.detach()), *t.linalg.ldl_factor_ex(a.detach())), B3)
floats(
    lambda t, a: (
        t.cholesky(spd(t, a)) + spd(t, a).cholesky(upper=True),
        t.cholesky_inverse(factor(t, a, False)) + factor(t, a, True).cholesky_inverse(upper=True),
        *t.linalg.cholesky_ex(spd(t, a)),
        *t.linalg.cholesky_ex(spd(t, a), upper=True, check_errors=True),
        *t.linalg.inv_ex(good(t, a)),
        *t.linalg.solve_ex(good(t, a), a),
        *t.linalg.solve_ex(good(t, a), a, left=False, check_errors=True),
    ),
    B3,
)
floats(
    lambda t, a: (
        t.linalg.cholesky_ex(-spd(t, a).detach()).info,
        t.linalg.inv_ex(a.detach() * 0).info,
        t.linalg.solve_ex(a.detach() * 0, a.detach()[..., 0]).info,
        t.linalg.lu_factor_ex(a.detach() * 0).info,
        t.linalg.ldl_factor_ex(a.detach() * 0).info,
        *t.linalg.lu(a.detach() * 0),
    ),
    B3,
)
floats(lambda t, a: abs(t.linalg.eigvals(a.detach())).sort()[0], B3)
floats(lambda t, a: abs(t.linalg.eig(a.detach()).eigenvectors).sum((-2, -1)), B3)
floats(lambda t, a: t.linalg.eigvals(a.detach()), (2, 0, 0))
for shape in [SQ, B3, (0, 2, 2), (2, 0, 0)]:
    for p in (None, 2, -2):
        floats(lambda t, a, p=p: t.linalg.cond(good(t, a), p), shape)
    for p in ("fro", "nuc", 1, -1, inf, -inf):  # PyTorch overwrites what its own gradient needs
        floats(lambda t, a, p=p: t.linalg.cond(good(t, a.detach()), p), shape)
singular = lambda t, a: t.diag(t.arange(3, dtype=a.dtype))  # without rounding
for p in (None, 2, -2, "fro", "nuc", 1, -1, inf, -inf):
    floats(lambda t, a, p=p: t.linalg.cond(t.stack([singular(t, a), good(t, a)]).detach(), p), SQ)
for shape in [(4, 2), (2, 2, 3)]:
    floats(lambda t, a: (t.linalg.cond(a), t.linalg.cond(a, -2)), shape)
for shape in [SQ, B3, (4, 2), (2, 3, 0), (0, 2, 2)]:
    floats(
        lambda t, a: (
            t.linalg.matrix_rank(a),
            t.linalg.matrix_rank(a, tol=1.0),
            t.linalg.matrix_rank(a, 2.0),
            t.linalg.matrix_rank(a, atol=0.5, rtol=0.1),
            t.linalg.matrix_rank(a, atol=0.0),
            t.linalg.matrix_rank(a, rtol=0.5),
            t.linalg.matrix_rank(a, atol=t.tensor(1.0, dtype=a.dtype)),
            t.linalg.matrix_rank(a @ a.mT, hermitian=True),
        ),
        shape,
        smooth=False,
    )
floats(lambda t, a: t.linalg.pinv(a, rtol=t.tensor([0.1, 0.9], dtype=a.dtype)), (2, 3, 2))
floats(lambda t, a: t.linalg.pinv(a, atol=0.0), (3, 2))
for a, b in [((4, 2), (4, 3)), ((2, 4), (2, 3)), (SQ, SQ), ((4, 2), (4,)), ((2, 3, 2), (2, 3)), ((2, 3, 2), (2, 3, 1)),
             ((1, 3, 2), (4, 3, 1)), ((2, 0, 3), (2, 0, 2)), ((3, 0), (3, 2)), ((0, 3, 2), (0, 3, 1))]:  # fmt: skip
    for driver in (None, "gels", "gelsd", "gelss"):
        floats(lambda t, a, b, d=driver: t.linalg.lstsq(a, b, driver=d).solution, a, b)
        if 0 not in a:
            floats(
                lambda t, a, b, d=driver: [x for x in t.linalg.lstsq(a, b, driver=d)[1:2] if x.numel()],
                a, b,
            )  # fmt: skip
            floats(lambda t, a, b, d=driver: tuple(t.linalg.lstsq(a, b, driver=d))[2:], a, b)
floats(
    lambda t, a, b: (
        # Not by gelsy: PyTorch leaves its pivots as they happen to stand in memory, and finds
        # another solution now and then where the rank is not full.
        t.linalg.lstsq(t.cat([a, a], -1), b, driver="gelss").solution,
        t.linalg.lstsq(t.cat([a, a], -1), b, rcond=0.5, driver="gelsd").solution,
        t.linalg.lstsq(t.cat([a, a], -1), b, driver="gelsd")[2],
    ),
    (5, 2), (5, 2),
)  # fmt: skip
floats(
    lambda t, a: (
        (t.linalg.tensorinv(a.reshape(2, 3, 6)), t.linalg.tensorinv(a.reshape(6, 3, 2), ind=1))
    ),
    (6, 6),
)
floats(lambda t, a, b: t.linalg.tensorsolve(a.reshape(2, 3, 6), b), (6, 6), M)
floats(lambda t, a, b: t.linalg.tensorsolve(a.reshape(2, 6, 3), b, dims=(1,)), (6, 6), M)
for shape, k in [((4, 2), 2), ((3, 3), 1), ((2, 4, 3), 2), (SQ, 3)]:
    floats(
        lambda t, a, b: t.linalg.householder_product(a, b) + t.orgqr(a, b), shape, (*shape[:-2], k)
    )
    floats(lambda t, a, b: a.orgqr(b), shape, (*shape[:-2], k))
for left in (False, True):
    for turned in (False, True):
        floats(
            lambda t, a, b, c, e=left, u=turned: t.ormqr(a, b, c if e else c.mT, e, u),
            (4, 2), (2,), (4, 3),
        )  # fmt: skip
        floats(
            lambda t, a, b, c, e=left, u=turned: a.ormqr(
                b, c if e else c.mT, left=e, transpose=u
            ).mT,
            (2, 3, 3), (2, 3), (2, 3, 2),
        )  # fmt: skip
        floats(
            lambda t, a, b, c, e=left, u=turned: t.ormqr(a, b, c if e else c.mT, e, u),
            (2, 4), (2,), (2, 3),
        )  # fmt: skip
floats(lambda t, a: (t.linalg.vander(a), t.linalg.vander(a, N=2), t.linalg.vander(a[0], N=5)), M)
case(lambda t, a: t.linalg.vander(a.detach()), M)
floats(lambda t, a, b: t.linalg.vecdot(a, b) + t.linalg.vecdot(a, b[0]), M, M)
floats(lambda t, a, b: t.linalg.vecdot(a, b, dim=0), M, M)
case(lambda t, a, b: t.linalg.matmul(a, b), M, (3, 2))
case(lambda t, a: (t.linalg.diagonal(a), t.linalg.diagonal(a, offset=1, dim1=0)), C3)
floats(lambda t, a: (*t.qr(a), *a.qr(), t.qr(a.detach(), some=False)[1] ** 2), (4, 2))
floats(
    lambda t, a: (
        t.svd(a).S,
        t.svd(a)[2] ** 2,
        a.svd().U ** 2,
        *t.svd(a.detach(), compute_uv=False),
    ),
    (4, 2),
)
floats(lambda t, a: (t.linalg.svd(a).S, t.svd(a, some=False).S), (4, 2))
floats(
    lambda t, a: (t.linalg.svd(a).S, t.linalg.svd(a).U ** 2, t.svd(a, False)[2][:, :2] ** 2), (2, 4)
)
for transposed in (False, True):
    floats(
        lambda t, a, b, u=transposed: (
            *t.triangular_solve(b, good(t, a), transpose=u),
            *b.triangular_solve(good(t, a), upper=False, transpose=u, unitriangular=True),
        ),
        B3, (2, 3, 2),
    )  # fmt: skip
floats(
    lambda t, a: (t.nuclear_norm(a), t.nuclear_norm(a, keepdim=True), t.frobenius_norm(a, (0, 1))),
    M,
)
floats(lambda t, a: (t.nuclear_norm(a, (0, 2)), t.frobenius_norm(a, (0,), keepdim=True)), C3)
floats(lambda t, a: (t.norm(a, "nuc", (0, 2)), a[0].norm("nuc", keepdim=True)), C3)
floats(lambda t, a: t.linalg.vander(a[0, 0], N=3), M)

for shape in [(0, 0), (0, 3), (3, 0), (2, 0, 3), (0, 2, 2)]:
    for p in (1, 2, inf, "nuc", "fro"):
        floats(lambda t, a, p=p: t.linalg.matrix_norm(a, p), shape)
floats(lambda t, a: t.linalg.pinv(a.detach(), hermitian=True), SQ, smooth=False)

# -- products that are added -----------------------------------------------------------------------
for beta, alpha in [(1, 1), (2, 1), (1, 3), (0, 2), (3, 0)]:
    case(
        lambda t, a, b, c, x=beta, y=alpha: (
            t.addmm(a, b, c, beta=x, alpha=y) + a.expand(2, 4).addmm(b, c, beta=x, alpha=y)
        ),
        (4,), M, (3, 4),
    )  # fmt: skip
    case(
        lambda t, a, b, c, x=beta, y=alpha: (
            t.addmv(a, b, c, beta=x, alpha=y) + a.addmv(b, c, beta=x, alpha=y)
        ),
        (2,), M, R,
    )  # fmt: skip
    case(
        lambda t, a, b, c, x=beta, y=alpha: (
            t.addr(a, b, c, beta=x, alpha=y) + a.addr(b, c, beta=x, alpha=y)
        ),
        M, (2,), R,
    )  # fmt: skip
    case(
        lambda t, a, b, c, x=beta, y=alpha: (
            t.baddbmm(a, b, c, beta=x, alpha=y) + a.baddbmm(b, c, beta=x, alpha=y)
        ),
        (2, 2, 2), (2, 2, 3), (2, 3, 2),
    )  # fmt: skip
    case(
        lambda t, a, b, c, x=beta, y=alpha: (
            t.addbmm(a, b, c, beta=x, alpha=y) + a.addbmm(b, c, beta=x, alpha=y)
        ),
        (2, 2), (2, 2, 3), (2, 3, 2),
    )  # fmt: skip
floats(
    lambda t, a, b, c: (
        (a * 1).addmm_(b, c, beta=0.5),
        (a * 1).addbmm_(b[None], c[None]),
        (a * 1)[None].baddbmm_(b[None], c[None], alpha=2),
        (a[:, 0] * 1).addmv_(b, c[:, 1]),
        (a * 1).addr_(b[:, 0], c[0]),
        t.addmm(a * float("nan"), b, c, beta=0).detach(),
    ),
    (2, 4), M, (3, 4),
)  # fmt: skip
case(lambda t, a, b: (t.inner(a, b), b.inner(a[0])), M, (4, 3))
case(lambda t, a, b: (t.inner(a, b), b.inner(a), t.inner(a, a)), S, M)
case(lambda t, a, b: (t.inner(a, b), t.vdot(a, b), a.vdot(b), a.inner(b)), R, R)
case(lambda t, a, b: (t.ger(a, b), a.ger(b)), R, (2,))
case(lambda t, a, b, c: (t.chain_matmul(a, b, c), t.chain_matmul(a)), M, (3, 5), (5, 2))

for shape in [SQ, (4, 2), (2, 2, 4), (2, 3, 2), (3, 0), (0, 3), (2, 0, 3, 2)]:
    floats(lambda t, a: tuple(t.linalg.qr(a)), shape)
    floats(lambda t, a: t.linalg.svd(a, full_matrices=False).S, shape)
    floats(lambda t, a: t.linalg.svdvals(a), shape)
    floats(lambda t, a: [x**2 for x in t.linalg.svd(a, full_matrices=False)], shape)
floats(lambda t, a: tuple(t.linalg.qr(a, mode="complete")), M)
floats(
    lambda t, a: (
        abs(t.linalg.qr(a.detach(), mode="complete").R),
        t.linalg.qr(a.detach(), mode="r")[1],
    ),
    (4, 2),
)
floats(lambda t, a: [abs(x) for x in t.linalg.svd(a)], SQ)
floats(lambda t, a: (t.linalg.svd(a.detach()).S, t.linalg.svd(a.detach())[0] ** 2), M, smooth=False)

# -- norms -----------------------------------------------------------------------------------------
for p in (2, 1, 3, 0.5, inf, -inf, -1):
    case(
        lambda t, a, p=p: (
            t.linalg.vector_norm(a, p),
            t.linalg.vector_norm(a, ord=p, dim=1),
            t.linalg.vector_norm(a, p, (0, 2), keepdim=True),
            t.linalg.norm(a, p, dim=-1, keepdim=True),
        ),
        C3,
    )
case(lambda t, a: (t.linalg.vector_norm(a.detach(), 0), t.linalg.norm(a)), C3)
case(lambda t, a: t.linalg.vector_norm(a, dtype=t.float64) + t.linalg.norm(a, dtype=t.float64), M)
for p in ("fro", "nuc", 1, -1, 2, -2, inf, -inf):
    case(lambda t, a, p=p: (t.linalg.matrix_norm(a, p), t.linalg.norm(a, p)), M)
    case(
        lambda t, a, p=p: (
            t.linalg.matrix_norm(a, p, (0, 2)),
            t.linalg.matrix_norm(a, ord=p, keepdim=True),
            t.linalg.norm(a, p, dim=(2, 0), keepdim=True),
        ),
        C3,
    )
case(
    lambda t, a: (
        t.linalg.norm(a, None, (0, 1)),
        t.linalg.norm(a, 2, 1),
        t.linalg.norm(a[0, 0], 3),
    ),
    C3,
)

# -- sums of products ------------------------------------------------------------------------------
EINSUMS = [
    ("ij,jk", M, (3, 4)), ("ij,jk->ki", M, (3, 4)), ("ij,j", M, R), ("i,j->ji", R, (4,)), ("ij,ij->", M, M), ("ij,ij->ij", M, M),
    ("ij->ji", M), ("ba", M), ("ij->", M), ("ij->j", M), ("ij", M), ("ii", SQ), ("ii->i", SQ), ("iij->ji", (2, 2, 3)), ("iii->i", (2, 2, 2)),
    ("ii,i->i", SQ, R), ("ii,jj->ij", SQ, (2, 2)), ("ij,kl->", M, COL), ("...ij,...jk->...ik", C3, (4, 2)),
    ("...ij,...jk", (2, 1, 2, 3), (3, 3, 2)), ("i...,i...->...", C3, (2, 4)), ("...i->...", C3), ("...i->i", C3), ("...,...", C3, (4,)),
    ("i...->...i", C3), (" ij , jk -> ik ", M, (3, 2)), ("bij,bjk->bik", C3, (2, 4, 2)), ("bij,bjk->ki", C3, (2, 4, 2)),
    ("Ba,aB->", M, (3, 2)), ("aB,bA", M, SQ), (",ij->ij", S, M), (",", S, S), ("i,i,i->i", R, R, R), ("ij,jk,kl->il", M, (3, 4), (4, 2)),
    ("ij,jk,kl,lm->im", M, SQ, (3, 4), (4, 2)), ("bi,oij,bj->bo", M, (4, 3, 2), (2, 2)), ("i,j,k->kji", (2,), R, (4,)),
    ("ij,jk->ik", (2, 1), (3, 4)), ("ij,ij->ij", M, (1, 3)), ("i,i->i", (1,), R), ("ii->", (1, 1)), ("ij,jk->ik", (0, 3), (3, 2)),
    ("ij,jk->ik", (2, 0), (0, 2)), ("abc,cd,def->abef", (2, 2, 3), (3, 2), (2, 3, 2)), ("ij,ik,il->jkl", M, (2, 2), (2, 2)),
]  # fmt: skip
for equation, *shapes in EINSUMS:
    case(lambda t, *xs, e=equation: t.einsum(e, *xs), *shapes)
case(lambda t, a, b: t.einsum("ij,jk->ik", [a, b]) + t.einsum(a, [0, 1], b, [1, 2]), M, (3, 4))
case(
    lambda t, a, b: (t.einsum(a, [0, 1], b, [1, 30], [30, 0]), t.einsum(a, [..., 1], [1, ...])),
    M,
    (3, 4),
)
for dims in (0, 1, 2, [[1, 2], [0, 1]], ([2], [1]), ([2, 0], [1, 2])):
    case(
        lambda t, a, b, d=dims: t.tensordot(a, b, dims=d),
        C3,
        (3, 4, 2) if dims in (2, [[1, 2], [0, 1]]) else (4, 4, 2),
    )
case(lambda t, a, b: t.tensordot(a, b), C3, (3, 4))
case(lambda t, a, b: t.tensordot(a, b, ([1], [0])), COL, (3, 2))
for a, b in [(M, SQ), ((2,), R), (S, M), (C3, (2, 2)), ((2,), (2, 1, 2)), ((0, 2), M)]:
    case(lambda t, a, b: t.kron(a, b) + a.kron(b), a, b)
case(
    lambda t, a, b, c: (t.linalg.multi_dot([a, b, c]), t.linalg.multi_dot((b, c))),
    M,
    (3, 5),
    (5, 2),
)
case(lambda t, a, b, c, d: t.linalg.multi_dot([a, b, c, d]), (2,), (2, 4), (4, 3), R)
case(lambda t, a, b: (t.linalg.multi_dot([a, b]), t.linalg.multi_dot([b, a.t()[:, 0]])), M, SQ)
case(lambda t, a: (t.trace(a), a.trace()), M)
case(lambda t, a: t.trace(a), (0, 3))
case(
    lambda t, a: (
        t.diag_embed(a),
        a.diag_embed(1),
        t.diag_embed(a, -2, 0, 2),
        a.diag_embed(offset=1, dim1=-1, dim2=0),
    ),
    M,
)
case(
    lambda t, a, b: (t.cross(a, b, dim=0), a.cross(b, 0), t.linalg.cross(a, b, dim=-2)),
    (3, 2),
    (3, 2),
)
case(
    lambda t, a, b: (t.linalg.cross(a, b), t.cross(a, b), t.linalg.cross(a[:1], b)), (2, 3), (2, 3)
)

LINALG_CASES = CASES[FIRST:]

REFUSED: dict[str, Any] = {
    "inv of no square matrix": (lambda t, a: t.linalg.inv(a), M),
    "inv of a vector": (lambda t, a: t.linalg.inv(a), R),
    "inv of a singular matrix": (lambda t, a: t.linalg.inv(a), SQ),
    "inv of integers": (lambda t, a: t.linalg.inv(a.detach().long()), SQ),
    "negative power of a singular matrix": (lambda t, a: t.linalg.matrix_power(a, -1), SQ),
    "power that is no int": (lambda t, a: t.linalg.matrix_power(a, 0.5), SQ),
    "solve with a singular matrix": (lambda t, a: t.linalg.solve(a, a), SQ),
    "solve that does not fit": (lambda t, a: t.linalg.solve(a, t.ones(2)), SQ),
    "solve of batches that do not fit": (lambda t, a: t.linalg.solve(a, t.ones(3, 3, 1)), B3),
    "solve of two types": (lambda t, a: t.linalg.solve(a, a.float()), SQ),
    "solve from the right for a vector": (lambda t, a: t.linalg.solve(a, t.ones(3), left=False), SQ),
    "triangular solve for a vector": (lambda t, a: t.linalg.solve_triangular(a, t.ones(3), upper=True), SQ),
    "triangular solve that does not fit": (lambda t, a: t.linalg.solve_triangular(a, t.ones(2, 2), upper=True), SQ),
    "triangular solve without a side": (lambda t, a: t.linalg.solve_triangular(a, a), SQ),
    "cholesky_solve that does not fit": (lambda t, a: t.cholesky_solve(t.ones(2, 2), a), SQ),
    "cholesky of an indefinite matrix": (lambda t, a: t.linalg.cholesky(-a), SQ),
    "det of no square matrix": (lambda t, a: t.det(a), M),
    "slogdet of a vector": (lambda t, a: t.slogdet(a), R),
    "eigh of no square matrix": (lambda t, a: t.linalg.eigh(a), M),
    "eigh of neither side": (lambda t, a: t.linalg.eigh(a, "X"), SQ),
    "eigh of NaN": (lambda t, a: t.linalg.eigh(a.detach() * float("nan")), SQ),
    "svd of NaN": (lambda t, a: t.linalg.svd(a.detach() * float("nan")), SQ),
    "qr of a vector": (lambda t, a: t.linalg.qr(a), R),
    "qr of an unknown mode": (lambda t, a: t.linalg.qr(a, "x"), SQ),
    "svd of a vector": (lambda t, a: t.linalg.svd(a), R),
    "pinv of a vector": (lambda t, a: t.linalg.pinv(a), R),
    "matrix_exp of no square matrix": (lambda t, a: t.matrix_exp(a), M),
    "matrix_norm of a vector": (lambda t, a: t.linalg.matrix_norm(a), R),
    "matrix_norm of an unknown order": (lambda t, a: t.linalg.matrix_norm(a, 3), M),
    "matrix_norm of one dimension twice": (lambda t, a: t.linalg.matrix_norm(a, "fro", (0, 0)), M),
    "vector_norm of a text": (lambda t, a: t.linalg.vector_norm(a, "fro"), M),
    "norm of three dimensions": (lambda t, a: t.linalg.norm(a, 2), C3),
    "norm over three dimensions": (lambda t, a: t.linalg.norm(a, 2, (0, 1, 2)), C3),
    "norm of integers": (lambda t, a: t.linalg.norm(a.detach().long()), M),
    "norm of nothing": (lambda t, a: t.linalg.vector_norm(a, inf), (0,)),
    "multi_dot of one": (lambda t, a: t.linalg.multi_dot([a]), M),
    "multi_dot of batches": (lambda t, a: t.linalg.multi_dot([a, a]), C3),
    "multi_dot that does not fit": (lambda t, a: t.linalg.multi_dot([a, a]), M),
    "lu of a vector": (lambda t, a: t.linalg.lu(a), R),
    "lu without exchanges": (lambda t, a: t.linalg.lu(a, pivot=False), M),
    "lu_factor of a singular matrix": (lambda t, a: t.linalg.lu_factor(a), SQ),
    "lu_solve of another type": (lambda t, a: t.linalg.lu_solve(a, t.tensor([1, 2, 3]), a), SQ),
    "lu_solve of a vector": (lambda t, a: t.linalg.lu_solve(a, t.tensor([1, 2, 3]).int(), a[0]), SQ),
    "lu_solve that does not fit": (lambda t, a: t.linalg.lu_solve(a, t.tensor([1, 2, 3]).int(), a[:2]), SQ),
    "lu_unpack of too few pivots": (lambda t, a: t.lu_unpack(a, t.tensor([1, 2]).int()), SQ),
    "ldl of no square matrix": (lambda t, a: t.linalg.ldl_factor(a), M),
    "ldl_factor of zeros": (lambda t, a: t.linalg.ldl_factor(a.detach() * 0), SQ),
    "eig of no square matrix": (lambda t, a: t.linalg.eig(a.detach()), M),
    "eig of NaN": (lambda t, a: t.linalg.eigvals(a.detach() * float("nan")), SQ),
    "cond of a vector": (lambda t, a: t.linalg.cond(a), R),
    "cond of an unknown norm": (lambda t, a: t.linalg.cond(a, 3), SQ),
    "cond of no square matrix": (lambda t, a: t.linalg.cond(a, 1), M),
    "rank of a vector": (lambda t, a: t.linalg.matrix_rank(a), R),
    "lstsq that does not fit": (lambda t, a: t.linalg.lstsq(a, t.ones(3, 2)), M),
    "lstsq of more dimensions": (lambda t, a: t.linalg.lstsq(a, t.ones(2, 2, 3)), M),
    "lstsq by an unknown driver": (lambda t, a: t.linalg.lstsq(a, a, driver="x"), M),
    "lstsq of two types": (lambda t, a: t.linalg.lstsq(a, a.float()), M),
    "tensorinv that is not square": (lambda t, a: t.linalg.tensorinv(a, 1), M),
    "tensorinv of nothing": (lambda t, a: t.linalg.tensorinv(a, 0), M),
    "tensorsolve that is not square": (lambda t, a: t.linalg.tensorsolve(a, a), M),
    "householder of a wide matrix": (lambda t, a: t.linalg.householder_product(a, a[:, 0]), M),
    "householder of too many": (lambda t, a: t.linalg.householder_product(a, t.ones(4)), SQ),
    "ormqr that does not fit": (lambda t, a: t.ormqr(a, a[0], a[:2]), SQ),
    "vander of a number": (lambda t, a: t.linalg.vander(a), S),
    "vander of one power": (lambda t, a: t.linalg.vander(a, N=1), R),
    "vecdot of integers": (lambda t, a: t.linalg.vecdot(a.detach().long(), a.detach().long()), M),
    "vecdot that does not fit": (lambda t, a: t.linalg.vecdot(a, t.ones(2)), M),
    "svd by a driver": (lambda t, a: t.linalg.svd(a, driver="gesvd"), M),
    "cholesky_inverse of no square matrix": (lambda t, a: t.cholesky_inverse(a), M),
    "addmm that does not fit": (lambda t, a: t.addmm(t.ones(2), a, t.ones(3, 3)), M),
    "addmm of two types": (lambda t, a: t.addmm(a.float(), a, t.ones(3, 3)), M),
    "addmm of vectors": (lambda t, a: t.addmm(a, a[0], a), M),
    "addbmm of matrices": (lambda t, a: t.addbmm(a, a, a), M),
    "addr of matrices": (lambda t, a: t.addr(a, a, a), M),
    "addmm_ of another shape": (lambda t, a: t.ones(3).addmm_(a, t.ones(3, 3)), M),
    "inner that does not fit": (lambda t, a: t.inner(a, t.ones(2)), M),
    "vdot of different lengths": (lambda t, a: t.vdot(a[0], t.ones(2)), M),
    "chain_matmul of vectors": (lambda t, a: t.chain_matmul(a, a[0]), M),
    "nuclear_norm of a vector": (lambda t, a: t.nuclear_norm(a), R),
    "einsum without operands": (lambda t, a: t.einsum("i"), M),
    "einsum of too few": (lambda t, a: t.einsum("ij,jk", a), M),
    "einsum of another rank": (lambda t, a: t.einsum("ijk", a), M),
    "einsum of different sizes": (lambda t, a: t.einsum("ij,jk", a, a), M),
    "einsum of an uneven diagonal": (lambda t, a: t.einsum("ii", a), M),
    "einsum with a new letter": (lambda t, a: t.einsum("ij->ijk", a), M),
    "einsum with a letter twice": (lambda t, a: t.einsum("ij->ii", a), M),
    "einsum with a digit": (lambda t, a: t.einsum("i1", a), M),
    "einsum with two points": (lambda t, a: t.einsum("..i", a), M),
    "einsum with dots twice": (lambda t, a: t.einsum("...i...", a), M),
    "einsum with two arrows": (lambda t, a: t.einsum("ij->->ij", a), M),
    "einsum of a number": (lambda t, a: t.einsum("i", 3), M),
    "einsum of two types": (lambda t, a: t.einsum("ij,kj", a, a.float()), M),
    "tensordot that does not fit": (lambda t, a: t.tensordot(a, a, 1), M),
    "tensordot of too many": (lambda t, a: t.tensordot(a, a, 5), M),
    "tensordot of a negative number": (lambda t, a: t.tensordot(a, a, -1), M),
    "trace of a vector": (lambda t, a: t.trace(a), R),
    "trace of a batch": (lambda t, a: t.trace(a), B3),
    "diag_embed of a number": (lambda t, a: t.diag_embed(a), S),
    "diag_embed of one dimension twice": (lambda t, a: t.diag_embed(a, 0, 0, 0), M),
    "cross of two components": (lambda t, a: t.cross(a, a, dim=0), M),
    "cross of different ranks": (lambda t, a: t.linalg.cross(a, a[0]), M),
    "cross of nothing": (lambda t, a: t.cross(a, a), (2, 2)),
}  # fmt: skip

"""NumPy functions on Tensors: each case is a function of arrays that is also one of Tensors.

A case that needs a public function of tapegrad names it.  While tapegrad does not have it the case
is in `AWAITED` and the test holds it to being refused; the list is empty as soon as all exist.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import tapegrad


@dataclass(frozen=True)
class Case:
    """A function, the shapes of its operands (values are between 0.15 and 0.85), what it needs."""

    function: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    needs: str = ""


def exists(path: str) -> bool:
    thing: Any = tapegrad
    for step in path.split(".") if path else ():
        thing = getattr(thing, step, None)
    return thing is not None


V, M, C = (4,), (2, 3), (2, 3, 4)
CASES: dict[str, Case] = {}


def case(
    name: str, function: Callable[..., Any], *shapes: tuple[int, ...], needs: str = ""
) -> None:
    assert name not in CASES
    CASES[name] = Case(function, shapes or (M,), needs)


def cases(module: Any, names: str, *shapes: tuple[int, ...]) -> None:
    for name in names.split():
        case(f"{module.__name__}.{name}", getattr(module, name), *shapes)


# -- ufuncs ------------------------------------------------------------------------------
cases(
    np,
    "negative positive absolute fabs sign square reciprocal sqrt cbrt conjugate exp expm1 log "
    "log1p sin cos tan arcsin arccos arctan sinh cosh tanh deg2rad radians rad2deg degrees floor",
)
cases(np, "add subtract multiply true_divide power arctan2 maximum minimum fmax fmin", M, M)
cases(np, "remainder floor_divide copysign divmod float_power", M, (3,))
cases(np, "matmul", M, (3, 2))
cases(np, "vecdot", C, (4,))
cases(np, "matvec", C, (4,))
cases(np, "vecmat", (3,), C)
for name, needs in {
    "exp2": "exp2", "log2": "log2", "log10": "log10", "arcsinh": "asinh", "arctanh": "atanh",
    "ceil": "ceil", "trunc": "trunc", "rint": "round", "fix": "trunc", "sinc": "sinc", "i0": "i0",
}.items():  # fmt: skip
    case(f"numpy.{name}", getattr(np, name), needs=needs)
for name, needs in {
    "fmod": "fmod", "hypot": "hypot", "logaddexp": "logaddexp", "logaddexp2": "logaddexp",
}.items():  # fmt: skip
    case(f"numpy.{name}", getattr(np, name), M, (3,), needs=needs)
case("arccosh", lambda x: np.arccosh(1 + x), needs="acosh")
case("cbrt of negatives", lambda x: np.cbrt(-x))
case("copysign of negatives", lambda x, y: np.copysign(-x, -y), M, M)

# -- operators and methods of ufuncs -------------------------------------------------------
A = np.array([[0.5, 1.5, 2.5], [3.5, 4.5, 5.5]])
case("array * t", lambda t: A * t)
case("array - t", lambda t: A - t)
case("array / t", lambda t: A / t)
case("array ** t", lambda t: A**t)
case("array @ t", lambda t: A @ t, (3,))
case("scalar * t", lambda t: np.float64(2) * t)
case("scalar of no dimensions - t", lambda t: np.array(2.0) - t)
case("list + t", lambda t: np.add([1.0, 2.0, 3.0], t))
case("add.reduce", lambda t: np.add.reduce(t))
case("add.reduce axis=None", lambda t: np.add.reduce(t, axis=None, keepdims=True))
case("multiply.reduce", lambda t: np.multiply.reduce(t, axis=1))
case("maximum.reduce", lambda t: np.maximum.reduce(t, axis=-1))
case("minimum.reduce", lambda t: np.minimum.reduce(t))
case("logaddexp.reduce", lambda t: np.logaddexp.reduce(t, axis=1))
case("add.accumulate", lambda t: np.add.accumulate(t))
case("multiply.accumulate", lambda t: np.multiply.accumulate(t, axis=1), needs="cumprod")
case("multiply.outer", np.multiply.outer, M, V)
case("subtract.outer", lambda t: np.subtract.outer(t, [1.0, 2.0]))

# -- choosing ------------------------------------------------------------------------------
case("where", lambda a, b: np.where(A > 3, a, b), M, M)
case("where of numbers", lambda a, b: np.where([1, 0, 2], a, b), M, M)
case("where with a list", lambda a: np.where(A > 3, a, [1.0, 2.0, 3.0]))
case("select", lambda a, b: np.select([A < 1, A > 3], [a, b], default=0.25), M, M)
case("clip", lambda t: np.clip(t, 0.3, 0.6))
case("clip below", lambda t: np.clip(t, 0.3, None))
case("clip by name", lambda t: np.clip(t, min=[0.3, 0.4, 0.5], max=0.6))
case("clip not at all", lambda t: np.clip(t, None, None))
case("clip an array", lambda lo: np.clip(A, lo * 5, 4.0))
case("nan_to_num", lambda t: np.nan_to_num(np.where(A > 3, np.nan, t), nan=2.0))
case("nan_to_num of infinities", lambda t: np.nan_to_num(np.where(A > 3, np.inf, -t)))
case("real", np.real)
case("copy", np.copy)
case("astype", lambda t: np.astype(t, np.float64))
case("round", lambda t: np.round(t, 1), needs="round")
case("extract", lambda t: np.extract(A > 2, t))
case("compress", lambda t: np.compress([True, False, True], t, axis=1))
case("compress all", lambda t: np.compress([0, 1, 1], t))
case("take", lambda t: np.take(t, [[0, 5], [-1, 2]]))
case("take axis", lambda t: np.take(t, [[0, 2], [1, 1]], axis=-1))
case("take wrap", lambda t: np.take(t, [-4, 7], axis=1, mode="wrap"))
case("take clip", lambda t: np.take(t, [-4, 7], axis=1, mode="clip"))
case("take a number", lambda t: np.take(t, 1, axis=0))
case("take_along_axis", lambda t: np.take_along_axis(t, np.array([[2, 0], [1, 1]]), axis=1))
case("take_along_axis broadcast", lambda t: np.take_along_axis(t, np.array([[2, 0]]), axis=1))
case("take_along_axis all", lambda t: np.take_along_axis(t, np.array([3, 0]), axis=None))
case("delete", lambda t: np.delete(t, [0, 2], axis=1))
case("delete all", lambda t: np.delete(t, slice(1, 4)))
case("sort", np.sort)
case("sort axis", lambda t: np.sort(t, axis=0, kind="stable"), C)
case("sort all", lambda t: np.sort(t, axis=None))
case("sort of a number", np.sort, (1,))
case("median", np.median)
case("median axis", lambda t: np.median(t, axis=1, keepdims=True), C)
case("median axis even", lambda t: np.median(t, axis=-1), C)
case("polyval", lambda p, x: np.polyval(p, x), V, M)

# -- reductions ----------------------------------------------------------------------------
for name in "sum mean prod max min ptp nansum nanprod nanmean var std".split():
    f = getattr(np, name)
    case(name, f)
    case(f"{name} axis", lambda t, f=f: f(t, axis=1), C)
    case(f"{name} negative axes", lambda t, f=f: f(t, axis=(-1, 0), keepdims=True), C)
    case(f"{name} of a number", f, ())
for name in "sum mean prod max min var".split():
    f = getattr(np, name)
    case(f"{name} of no axes", lambda t, f=f: f(t, axis=()))
case("amax", lambda t: np.amax(t, 0))
case("amin", lambda t: np.amin(t, 0))
case("nansum of NaNs", lambda t: np.nansum(np.where(A > 3, np.nan, t), axis=1))
case("nanmean of NaNs", lambda t: np.nanmean(np.where(A > 5, np.nan, t), axis=1))
case("var ddof", lambda t: np.var(t, axis=0, ddof=1))
case("std ddof", lambda t: np.std(t, ddof=2))
case("std correction", lambda t: np.std(t, correction=1))
case("sum dtype", lambda t: np.sum(t, dtype=np.float64))
case("average", lambda t: np.average(t, axis=1))
case("average weights", lambda t, w: np.average(t, axis=1, weights=w), M, (3,))
case("average all", lambda t, w: np.average(t, weights=w, returned=True), M, M)
case("average keepdims", lambda t, w: np.average(t, 0, w, keepdims=True), M, (2,))
case("cumsum", np.cumsum)
case("cumsum axis", lambda t: np.cumsum(t, axis=-2), C)
case("cumprod", np.cumprod, needs="cumprod")
case("cumprod axis", lambda t: np.cumprod(t, 1), needs="cumprod")
case("cumulative_sum", lambda t: np.cumulative_sum(t, axis=1))
case("cumulative_prod", np.cumulative_prod, V, needs="cumprod")
case("diff", np.diff)
case("diff twice", lambda t: np.diff(t, 2, axis=1), C)
case("diff with ends", lambda t: np.diff(t, axis=0, prepend=0.0, append=A))
case("ediff1d", lambda t: np.ediff1d(t, to_end=[1.0, 2.0], to_begin=0.0))
case("trapezoid", lambda t: np.trapezoid(t, dx=0.5))
case("trapezoid x", lambda t, x: np.trapezoid(t, x, axis=0), M, (2,))
case("trapezoid all x", lambda t, x: np.trapezoid(t, x, axis=1), C, C)
case("gradient", np.gradient, C)
case("gradient axis", lambda t: np.gradient(t, 0.5, axis=-1))
case("gradient spacings", lambda t: np.gradient(t, 0.5, [0.0, 1.0, 3.0], axis=(0, 1)))
case("gradient coordinates", lambda t, x: np.gradient(t, x + np.array([0, 1, 2, 4]), axis=-1), C, V)
case("gradient of two", np.gradient, (2,))
P = np.array([0.2, 0.4, 0.7])
case("interp", lambda x, y: np.interp(x, P, y), M, (3,))
case("interp points", lambda x, y: np.interp(P, x + 0.75 * np.arange(4) - 0.6, y), V, V)
case("interp ends", lambda x: np.interp(x, P, P**2, left=-1.0, right=3), V)
case("interp a number", lambda x, y: np.interp(x, P, y), (), (3,))
case("interp one point", lambda x, y: np.interp(x, [0.5], y), V, (1,))

# -- shapes --------------------------------------------------------------------------------
case("reshape", lambda t: np.reshape(t, (3, -1)))
case("reshape F", lambda t: np.reshape(t, (4, -1), order="F"), C)
case("reshape number", lambda t: np.reshape(t, 6))
case("ravel", np.ravel, C)
case("ravel F", lambda t: np.ravel(t, "F"), C)
case("transpose", np.transpose, C)
case("transpose axes", lambda t: np.transpose(t, (1, -1, 0)), C)
case("matrix_transpose", np.matrix_transpose, C)
case("moveaxis", lambda t: np.moveaxis(t, 0, -1), C)
case("moveaxis several", lambda t: np.moveaxis(t, [0, 1], [-1, -2]), C)
case("rollaxis", lambda t: np.rollaxis(t, 2), C)
case("rollaxis start", lambda t: np.rollaxis(t, 0, -1), C)
case("swapaxes", lambda t: np.swapaxes(t, 0, -1), C)
case("squeeze", np.squeeze, (1, 3, 1))
case("squeeze axis", lambda t: np.squeeze(t, axis=-1), (1, 3, 1))
case("expand_dims", lambda t: np.expand_dims(t, 1))
case("expand_dims several", lambda t: np.expand_dims(t, (0, -1)))
case("broadcast_to", lambda t: np.broadcast_to(t, (2, 2, 3)))
case("broadcast_arrays", lambda a, b: np.broadcast_arrays(a, b), (3, 1), (2,))
case("flip", np.flip, C)
case("flip axes", lambda t: np.flip(t, (0, -1)), C)
cases(np, "flipud fliplr tril triu atleast_1d atleast_2d atleast_3d", M)
cases(np, "diagflat", V)
for k in (-1, 0, 1, 2):
    case(f"rot90 {k}", lambda t, k=k: np.rot90(t, k, axes=(1, 2)), C)
case("diag", np.diag, V)
case("diag of a matrix", lambda t: np.diag(t, 1))
case("diag k", lambda t: np.diag(t, -2), V)
case("diagonal", lambda t: np.diagonal(t, 1, 0, 2), C)
case("trace", np.trace, C)
case("trace offset", lambda t: np.trace(t, offset=1, axis1=1, axis2=2), C)
case("tril k", lambda t: np.tril(t, -1))
case("triu k", lambda t: np.triu(t, k=1), C)
case("atleast_2d of a number", np.atleast_2d, ())
case("atleast_3d of a vector", np.atleast_3d, V)
case("atleast_1d of several", np.atleast_1d, (), V)
case("repeat", lambda t: np.repeat(t, 2))
case("repeat axis", lambda t: np.repeat(t, [1, 0, 2], axis=1))
case("tile", lambda t: np.tile(t, (2, 1, 2)), needs="tile")
case("tile number", lambda t: np.tile(t, 2), needs="tile")
case("roll", lambda t: np.roll(t, 2), needs="roll")
case("roll axes", lambda t: np.roll(t, 1, axis=(0, 1)), needs="roll")
case("pad", lambda t: np.pad(t, 1))
case("pad constant", lambda t: np.pad(t, ((0, 1), (2, 0)), constant_values=((1, 2), (3, 4))))
case("pad dictionary", lambda t: np.pad(t, {-1: (1, 2)}))
for mode in "edge reflect symmetric wrap".split():
    case(f"pad {mode}", lambda t, mode=mode: np.pad(t, (1, 2), mode=mode), (3, 4))
for mode in ("reflect", "symmetric"):
    for widths in ((1, 2), ((0, 9), (7, 3)), ((13, 1), (0, 0))):
        case(
            f"pad odd {mode} {widths}",
            lambda t, mode=mode, w=widths: np.pad(t, w, mode=mode, reflect_type="odd"),
            (3, 4),
        )
    case(f"pad odd {mode} one", lambda t, mode=mode: np.pad(t, 3, mode, reflect_type="odd"), (1,))
case("meshgrid", np.meshgrid, V, (3,))
case("meshgrid ij", lambda a, b: np.meshgrid(a, b, sparse=True, indexing="ij"), V, (3,))
case("sliding_window_view", lambda t: np.lib.stride_tricks.sliding_window_view(t, 2, 1), C)
case("sliding_window_view both", lambda t: np.lib.stride_tricks.sliding_window_view(t, (2, 2)))
case("full like", lambda t, v: np.full((2, 3), v, like=t) * t + np.full(3, v[0], like=v), M, (3,))
case("divmod operators", lambda a, b: (*divmod(a, b), *divmod(5.0, b), *divmod(A, b)), M, (3,))
case("full_like", lambda t: np.full_like(A, 0) + np.full_like(np.ones_like(t), 0) + t)

# -- joining -------------------------------------------------------------------------------
case("concatenate", lambda a, b: np.concatenate([a, A, b], axis=-1), M, (2, 1))
case("concatenate all", lambda a, b: np.concatenate((a, b), axis=None), M, V)
case("concatenate one", np.concatenate, C)
case("stack", lambda a, b: np.stack([a, b, A], axis=1), M, M)
case("stack of numbers", lambda a, b: np.stack([a, b]), (), ())
for name in "vstack hstack dstack column_stack".split():
    f = getattr(np, name)
    case(name, lambda a, b, f=f: f([a, b]), M, M)
    case(f"{name} of vectors", lambda a, b, f=f: f((a, b)), V, V)
case("append", lambda a: np.append(a, [1.0, 2.0]))
case("append axis", lambda a: np.append(a, A, axis=0))
case("block", lambda a, b: np.block([[a, np.zeros((2, 2))], [b, 1.0, 2.0]]), M, (3,))
case("block of a list", lambda a, b: np.block([a, b]), V, (2,))
case("split", lambda t: np.split(t, 3, axis=1))
case("split at", lambda t: np.split(t, [1, 2], axis=-1), C)
case("array_split", lambda t: np.array_split(t, 3), V)
case("vsplit", lambda t: np.vsplit(t, 2))
case("hsplit", lambda t: np.hsplit(t, [1]))
case("hsplit of a vector", lambda t: np.hsplit(t, 2), V)
case("dsplit", lambda t: np.dsplit(t, 2), C)
case("unstack", lambda t: np.unstack(t, axis=1))

# -- products ------------------------------------------------------------------------------
for name, shapes in {
    "numbers": ((), ()), "number": ((), M), "vectors": (V, V), "matrices": (M, (3, 2)),
    "matrix and vector": (M, (3,)), "cube and vector": (C, V), "vector and cube": ((3,), C),
    "cubes": (C, (3, 4, 2)), "matrix and cube": (M, C),
}.items():  # fmt: skip
    case(f"dot of {name}", np.dot, *shapes)
case("dot with an array", lambda t: np.dot(A, t), (3,))
case("inner", np.inner, V, V)
case("inner of matrices", np.inner, M, (4, 3))
case("inner of cubes", np.inner, C, C)
case("inner of a number", np.inner, (), V)
case("vdot", np.vdot, M, M)
case("outer", np.outer, M, V)
for mode in "full same valid".split():
    case(f"convolve {mode}", lambda a, b, mode=mode: np.convolve(a, b, mode), (5,), (3,))
    case(f"convolve {mode} even", lambda a, b, mode=mode: np.convolve(a, b, mode), (2,), (5,))
    case(f"convolve {mode} long", lambda a, b, mode=mode: np.convolve(a, b, mode), (19,), (16,))
    case(f"correlate {mode}", lambda a, b, mode=mode: np.correlate(a, b, mode), (5,), (3,))
    case(f"correlate {mode} even", lambda a, b, mode=mode: np.correlate(a, b, mode), (2,), (5,))
case("einsum", lambda a, b: np.einsum("ij,jk->ik", a, b), M, (3, 2), needs="einsum")
case("einsum optimize", lambda a: np.einsum("ij->j", a, optimize=True), needs="einsum")
case("tensordot", lambda a, b: np.tensordot(a, b, 1), C, V, needs="tensordot")
case("tensordot axes", lambda a, b: np.tensordot(a, b, ([0, 1], [0, 1])), C, M, needs="tensordot")
case("kron", np.kron, M, (2, 2), needs="kron")
case("cross", np.cross, M, (3,), needs="linalg.cross")
case("cross axis", lambda a, b: np.cross(a, b, axis=0), (3, 2), (3, 2), needs="linalg.cross")

# -- np.linalg -----------------------------------------------------------------------------
L = np.linalg
I3 = 2 * np.eye(3)
S = (3, 3)
case("linalg.norm", L.norm)
case("linalg.norm of a cube", L.norm, C)
case("linalg.norm axis", lambda t: L.norm(t, axis=1, keepdims=True), C)
case("linalg.norm axes", lambda t: L.norm(t, axis=(0, 2)), C)
for p in (1, 3, 0.5, np.inf, -np.inf):
    case(f"linalg.norm {p}", lambda t, p=p: L.norm(t, p), V)
    case(f"linalg.norm {p} axis", lambda t, p=p: L.norm(t, p, axis=-1), C)
case("linalg.norm fro", lambda t: L.norm(t, "fro"))
for p in (1, -1, 2, -2, np.inf, -np.inf, "nuc"):
    case(f"linalg.norm matrix {p}", lambda t, p=p: L.norm(t, p), needs="linalg.matrix_norm")
case("linalg.norm matrices", lambda t: L.norm(t, 1, (0, 2), True), C, needs="linalg.matrix_norm")
case("linalg.vector_norm", lambda t: L.vector_norm(t, axis=1, ord=3))
case("linalg.matrix_norm", L.matrix_norm, C)
case("linalg.matrix_norm 1", lambda t: L.matrix_norm(t, ord=1), C, needs="linalg.matrix_norm")
case("linalg.diagonal", lambda t: L.diagonal(t, offset=1), C)
case("linalg.trace", L.trace, C)
case("linalg.outer", L.outer, V, (3,))
case("linalg.cross", L.cross, M, M, needs="linalg.cross")
case("linalg.matmul", L.matmul, M, (3, 2))
case("linalg.vecdot", lambda a, b: L.vecdot(a, b, axis=0), M, M)
case("linalg.matrix_transpose", L.matrix_transpose, C)
case("linalg.tensordot", L.tensordot, M, M, needs="tensordot")
case("linalg.inv", lambda a: L.inv(a + I3), S, needs="linalg.inv")
case("linalg.det", lambda a: L.det(a + I3), (2, 3, 3), needs="linalg.det")
case("linalg.slogdet", lambda a: L.slogdet(a + I3)[1], S, needs="linalg.slogdet")
case("linalg.solve", lambda a, b: L.solve(a + I3, b), S, (3,), needs="linalg.solve")
case("linalg.solve batch", lambda a, b: L.solve(a + I3, b), (3, 3, 3), S, needs="linalg.solve")
case("linalg.solve vector", lambda a, b: L.solve(a + I3, b), (2, 3, 3), (3,), needs="linalg.solve")
case("linalg.cholesky", lambda a: L.cholesky(a @ a.T + I3), S, needs="linalg.cholesky")
case("linalg.eigh", lambda a: L.eigh(a + a.T)[0], S, needs="linalg.eigh")
case("linalg.eigvalsh", lambda a: L.eigvalsh(a + a.T, "U"), S, needs="linalg.eigvalsh")
case("linalg.svd", lambda a: L.svd(a, full_matrices=False)[1], needs="linalg.svd")
case("linalg.svd values", lambda a: L.svd(a, compute_uv=False), needs="linalg.svdvals")
case("linalg.svdvals", L.svdvals, needs="linalg.svdvals")
case("linalg.qr", lambda a: np.matmul(*L.qr(a + I3)), S, needs="linalg.qr")
case("linalg.qr r", lambda a: np.square(L.qr(a + I3, mode="r")), S, needs="linalg.qr")
case("linalg.pinv", L.pinv, needs="linalg.pinv")
case("linalg.matrix_power", lambda a: L.matrix_power(a + I3, -2), S, needs="linalg.matrix_power")
case("linalg.multi_dot", lambda a, b: L.multi_dot([a, b, A]), V, (4, 2), needs="linalg.multi_dot")

NEEDS = sorted({c.needs for c in CASES.values()} - {""})
AWAITED = [name for name in NEEDS if not exists(name)]

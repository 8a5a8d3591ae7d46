"""What to write instead of a function that is not supported, and who made an array of a Tensor."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from tapegrad.base.call_site import explain

_INTO_TENSOR = "a Tensor to add into, `x = tapegrad.zeros(n)`, or `np.bincount(index, weights=t)`"
_WRITTEN = "a Tensor to write into, `np.zeros_like(x)` of an argument `x`, or `tapegrad.zeros(n)`"

# By the name that an error gives the function.
NEAREST: dict[str, str] = {
    "np.add.at": _INTO_TENSOR,
    "np.subtract.at": _INTO_TENSOR,
    **dict.fromkeys(
        "np.multiply.at np.maximum.at np.minimum.at np.put np.putmask np.place "
        "np.put_along_axis np.fill_diagonal".split(),
        _WRITTEN,
    ),
    "np.copyto": f"{_WRITTEN}, and `np.broadcast_to(t, shape)` for `np.full_like(array, t)`",
    "np.full": "`np.full(shape, t, like=t)`, or `np.full_like(x, t)` of an argument `x`",
    "np.ndenumerate": "`np.ndindex(t.shape)`, and `t[index]`",
    "np.subtract.reduce": "`t[0] - np.sum(t[1:], axis=0)`",
    "np.hypot.reduce": "`np.linalg.norm(t, axis=0)`",
    "np.linalg.eig": "`np.linalg.eigh(t)`, if the matrix is symmetric, or "
    "`tapegrad.linalg.eig(t)`, whose results are complex",
    "np.linalg.eigvals": "`np.linalg.eigvalsh(t)`, if the matrix is symmetric, or "
    "`tapegrad.linalg.eigvals(t)`, which is complex",
    "np.sort_complex": "`np.sort(t)`",
    "np.select": "`np.where`, or a choice that is a Tensor",
    "np.pad": "`tapegrad.tensor(array)` as what is padded",
    "np.take": "`tapegrad.tensor(array)[index]`",
    "np.vectorize": "the function itself, on the whole Tensor, or `tapegrad.vmap` of it",
    "np.frompyfunc": "the Python function itself, on the whole Tensor, or `tapegrad.vmap` of it",
    "np.polynomial.polynomial.polyval": "`np.polyval(c[::-1], x)`",
    **{
        f"np.polynomial.{module}.{short}val": f"`{short}vander(x, len(c) - 1) @ c` for an array "
        "`x`: it is linear in the coefficients"
        for module, short in (
            ("chebyshev", "cheb"),
            ("legendre", "leg"),
            ("hermite", "herm"),
            ("laguerre", "lag"),
            ("hermite_e", "herme"),
        )
    },
    "scipy.fft": "`tapegrad.scipy.fft`",
    "scipy.linalg.eig": "`np.linalg.eigh(t)`, if the matrix is symmetric, or "
    "`tapegrad.linalg.eig(t)`, whose results are complex",
    "scipy.linalg.eigvals": "`np.linalg.eigvalsh(t)`, if the matrix is symmetric, or "
    "`tapegrad.linalg.eigvals(t)`, which is complex",
    "scipy.linalg.schur": "`np.linalg.eigh(t)`, if the matrix is symmetric, or "
    "`tapegrad.linalg.eig(t)`: the factors of others are not unique",
    "scipy.linalg.cosm": "`tapegrad.scipy.linalg.expm(1j * t).real`",
    "scipy.linalg.sinm": "`tapegrad.scipy.linalg.expm(1j * t).imag`",
    "scipy.linalg.fractional_matrix_power": "`expm(p * logm(t))` of `tapegrad.scipy.linalg`",
    "scipy.linalg.signm": "`t @ np.linalg.inv(tapegrad.scipy.linalg.sqrtm(t @ t))`",
    "scipy.linalg.eigh_tridiagonal": "`np.linalg.eigh(np.diag(d) + np.diag(e, 1) + "
    "np.diag(e, -1))`",
    "scipy.linalg.expm_frechet": "`tapegrad.jvp(tapegrad.scipy.linalg.expm, (A,), (E,))`",
    "scipy.linalg.matmul_toeplitz": "`tapegrad.scipy.linalg.toeplitz(c, r) @ x`",
    "scipy.sparse": "`A @ t`, `A * t`, `tapegrad.scipy.sparse.csr_array((t, indices, indptr))`",
    "scipy.stats.wasserstein_distance": "`np.mean(np.abs(np.sort(t) - np.sort(u)))`, of as many",
    "scipy.stats.boxcox": "`scipy.special.boxcox(t, lmbda)`",
    "scipy.stats": "`tapegrad.scipy.stats`, which has densities, distribution functions and "
    "quantiles, or the formula in NumPy's functions,",
    **{f"scipy.{m}": f"what is in `tapegrad.scipy.{m}.__all__`" for m in ("linalg", "special")},
    "scipy.spatial": "`tapegrad.scipy.spatial.distance`, or for rotations set `SCIPY_ARRAY_API=1` "
    "before SciPy is imported,",
    "scipy.interpolate.interp1d": "`np.interp(t, x, y)`",
    "scipy.interpolate": "`tapegrad.scipy.interpolate.CubicSpline`, or of another spline "
    "`spline(x, np.eye(len(x)))(s) @ t` for `spline(x, t)(s)`: they are linear in the values",
}


# What is called by brackets, by the name of its class.
_BRACKETS = {"RClass": "np.r_", "CClass": "np.c_"}


# What decorators of SciPy's call the function within.
_INNER = ("f", "fun", "hypotest_fun_in")


def nearest(name: str) -> str | None:
    """What works and is nearest to a function, or to those of its module, by an error's name."""
    return NEAREST.get(name) or _of_that_name(name) or NEAREST.get(name.rpartition(".")[0])


def _of_that_name(name: str) -> str | None:
    """The function for Tensors, if `tapegrad.scipy` has one under SciPy's name."""
    home: Any = sys.modules["tapegrad"]
    *modules, function = name.split(".")
    for module in modules:
        home = getattr(home, module, None) if modules[0] == "scipy" else None
    return f"`tapegrad.{name}`" if function in getattr(home, "__all__", ()) else None


def no_array(why: RuntimeError, kind: str) -> RuntimeError:
    """The refusal to make an array of a Tensor, with the name of the function that wanted one."""
    name = _caller()
    if name is None:
        explain(why, sys._getframe(2), kind)
    else:
        advice = nearest(name)
        instead = f": use {advice} instead" if advice else ""
        why.args = (f"`{name}` makes an array of what it is given{instead}; {why}",)
    return why


def no_number(name: str, line: tuple[str, int] | None = None) -> RuntimeError:
    """The refusal to make a Python number of a value whose gradient would be lost, here, or at a
    line of a function that was traced before.
    """
    caller = None if line else _caller()
    what = f"`{caller}`" if caller else f"`{name}()`, or a conversion to a Python number,"
    instead = nearest(caller) if caller else None
    advice = instead or "the Tensor itself (`np.sin(t)` instead of `math.sin(t)`)"
    there = f" (at {line[0]}:{line[1]})" if line else ""
    return RuntimeError(
        f"{what} of a value that a gradient passes would lose its gradient: use {advice}, or "
        f"`tapegrad.stop_gradient(t).{name}()` where no gradient is wanted{there}"
    )


def _caller() -> str | None:
    """The public function of SciPy or NumPy that the user called, if one is under way."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _package(frame) == "tapegrad":
        frame = frame.f_back
    found = None
    while frame is not None:
        if _package(frame) not in ("scipy", "numpy"):
            break
        found = _public(frame, frame.f_globals["__name__"]) or found
        frame = frame.f_back
    return found


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _public(frame: FrameType, module: str) -> str | None:
    """The name of the function that a frame runs, or of the package that keeps it to itself."""
    name = frame.f_code.co_name
    if name in ("__call__", "__getitem__", "__init__"):
        name = type(frame.f_locals.get("self")).__name__
        if name in _BRACKETS:
            return _BRACKETS[name]
    inner = next((frame.f_locals[k] for k in _INNER if frame.f_locals.get(k)), None)
    if name.endswith("wrapper") and callable(inner):  # a decorator of SciPy's asks for the array
        name, module = inner.__name__, inner.__module__
    parts = module.split(".")
    public = [p for k, p in enumerate(parts) if not any(q.startswith("_") for q in parts[: k + 1])]
    for steps in (public[:2], public, public[:1]):
        home: Any = sys.modules.get(".".join(steps))
        if not name.startswith("_") and callable(getattr(home, name, None)):
            return ".".join(["np" if steps[0] == "numpy" else steps[0], *steps[1:], name])
    return ".".join(public[:2]) if len(public) > 1 and public[0] == "scipy" else None

"""Plan the adjoints of small Fourier transforms, for the compiled sweep: transforms back."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tapegrad.base.compile_stages import NotCompiled
from tapegrad.base.cpython import ufunc_loop
from tapegrad.dispatch.operand_layout import address
from tapegrad.kernels.fourier_abi import FourierAdjoint
from tapegrad.kernels.sweep.sweep_abi import SMALL
from tapegrad.ops import fourier as f
from tapegrad.ops.core import Op

PLANNED = 4096  # adjoints that are kept, for good: records name them
_adjoints: dict[Any, tuple[np.ndarray, Any] | None] = {}  # None: there is none


class RowLoop(NamedTuple):
    """NumPy's loop over the last dimension."""

    loop: int
    data: int
    factor: np.ndarray  # by which results are multiplied
    kind: np.dtype[Any]  # of the result
    widens: bool  # the operand is real, and the loop takes complex numbers


def row_loop(op: Op, x: np.ndarray, y: np.ndarray, params: dict[str, Any]) -> RowLoop | None:
    """By what NumPy computes a transform; None if it is not of the last dimension alone."""
    if f.loops is None or params["dims"] != (x.ndim - 1,):
        return None
    widens = op is f.fft_r2c and not params["half"]
    if op is f.fft_c2r:
        name = "irfft"
    elif op is f.fft_r2c and not widens:
        name = "rfft"
    else:
        name = "fft" if params.get("forward", True) else "ifft"
    n = y.shape[-1] if name == "irfft" else x.shape[-1]
    ufunc, factor, _, kind = f.plan(name, n, x.ndim - 1, params["scale"], x.dtype)
    operand = np.result_type(x.dtype, np.complex64).char if widens else x.dtype.char
    found = ufunc_loop(ufunc, f"{operand}{factor.dtype.char}->{kind.char}")
    return None if found is None else RowLoop(*found, factor, kind, widens)


def adjoint(op: Op, x: np.ndarray, y: np.ndarray, params: dict[str, Any]) -> int:
    """Where the adjoint of a transform is planned; 0: the compiled sweep leaves it to the rule."""
    key = (op, x.shape, x.dtype.char, *params.values())
    if key not in _adjoints:
        if len(_adjoints) >= PLANNED:
            return 0
        try:
            made = _planned(op, x, y, params)
        except NotCompiled:
            return 0
        _adjoints.setdefault(key, made)  # a record of another thread's may name what is there
    found = _adjoints[key]
    return 0 if found is None else address(found[0])


def _planned(
    op: Op, x: np.ndarray, y: np.ndarray, params: dict[str, Any]
) -> tuple[np.ndarray, Any] | None:
    """A `FourierAdjoint`, and what it names; None where there is no loop for it."""
    from tapegrad.kernels.large import fourier_transforms

    dims, scale = params["dims"], params["scale"]
    if not dims or not y.size:
        return None
    before = after = none = np.empty(0)
    keeps_real = op is f.fft_r2c and not params["half"]
    if op is f.fft_c2c or keeps_real:
        back = f.fft_c2c
        how = {"dims": dims, "scale": scale, "forward": not params.get("forward", True)}
        made = np.empty(y.shape, y.dtype)
    elif op is f.fft_r2c:
        back, how = f.fft_c2r, {"dims": dims, "scale": scale, "size": x.shape[dims[-1]]}
        before, made = f.inner_weights(y, dims, x.shape[dims[-1]], 0.5), np.empty_like(x)
    else:
        back, how = f.fft_r2c, {"dims": dims, "scale": scale, "half": True}
        after, made = f.inner_weights(x, dims, params["size"], 2.0), np.empty_like(x)
    before, after = (np.broadcast_to(w, z.shape).copy() if w is not none else w
                     for w, z in ((before, y), (after, made)))  # fmt: skip
    g = np.empty(y.shape, y.dtype)
    form, loop = fourier_transforms.form_of(back, g, how)
    rows = None if form is not None else row_loop(back, g, made, how)
    if rows is None if form is None else form.room > 8 * SMALL:
        return None
    words = FourierAdjoint.words(
        loop=rows.loop if rows is not None else loop.address,
        form=address(form.words) if form is not None else 0,
        units=form.units[0] if form is not None else 0,
        room=form.room if form is not None else 0,
        data=rows.data if rows is not None else 0,
        factor=address(rows.factor) if rows is not None else 0,
        lines=g.size // g.shape[-1], length=g.shape[-1], made_length=made.shape[-1],
        given=g.nbytes, made=made.nbytes, itemsize=g.itemsize, made_itemsize=made.itemsize,
        before=address(before) if before.size else 0, after=address(after) if after.size else 0,
        keeps_real=int(keeps_real),
    )  # fmt: skip
    return np.array(words, np.int64), (form, loop, rows, before, after)

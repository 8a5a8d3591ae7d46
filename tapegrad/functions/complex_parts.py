"""Complex numbers: their parts, made of parts, conjugated."""

from __future__ import annotations

import numpy as np

from tapegrad.base.abstract_array import lying
from tapegrad.dispatch.call_plans import add_plan, join_plan, plans
from tapegrad.dispatch.dispatch import run
from tapegrad.dispatch.inplace import run_inplace
from tapegrad.dispatch.native_calls import native_calls
from tapegrad.dispatch.numpy_semantics import numpys
from tapegrad.dispatch.one_operand import run_one
from tapegrad.dispatch.record_layout import layout_of
from tapegrad.dispatch.views import ViewRequest, view_of
from tapegrad.functions import elementwise as ew
from tapegrad.functions.arguments import as_input
from tapegrad.functions.arithmetic import sign
from tapegrad.functions.indexing import getitem
from tapegrad.functions.inplace_methods import sign_
from tapegrad.functions.method_decorators import method
from tapegrad.functions.shapes import matrix_transpose
from tapegrad.ops import complex_parts as c
from tapegrad.ops import shape as s
from tapegrad.tape.record_format import GENERAL
from tapegrad.tensor import Tensor, wrap


def real(input: Tensor) -> Tensor:
    """The real part: of a complex Tensor a view, else itself.

    >>> import tapegrad as tg
    >>> tg.real(tg.tensor([1 + 2j]))
    tensor([1.])
    """
    x = as_input(input, "real")
    return _part(x, 0) if x._a.dtype.kind == "c" else x


def imag(input: Tensor) -> Tensor:
    """The imaginary part, a view; a real Tensor has none, but zeros where NumPy's rules hold.

    >>> import tapegrad as tg
    >>> tg.imag(tg.tensor([1 + 2j]))
    tensor([2.])
    """
    x = as_input(input, "imag")
    if x._a.dtype.kind != "c":
        if numpys():
            return wrap(np.zeros(x._a.shape, x._a.dtype))
        raise RuntimeError("`imag` is not defined for a Tensor with real elements")
    return _part(x, 1)


def _part(x: Tensor, which: int) -> Tensor:
    """A view; where NumPy's rules hold, that of a number is a number."""
    return getitem(view_as_real(x), (Ellipsis, which) if x._a.ndim else which)


@method
@view_of
def view_as_real(input: Tensor) -> ViewRequest:
    """Complex numbers as pairs along a new last dimension, a view.

    >>> import tapegrad as tg
    >>> tg.view_as_real(tg.tensor([1 + 2j]))
    tensor([[1., 2.]])
    """
    x = as_input(input, "view_as_real")
    if x._a.dtype.kind != "c":
        raise RuntimeError(f"`view_as_real` takes a complex Tensor, got {x.dtype}")
    return ViewRequest(s.view_as_real, x, {}, s.view_as_real.forward(x._a), ())


@method
@view_of
def view_as_complex(input: Tensor) -> ViewRequest:
    """Pairs along the last dimension as complex numbers, a view.

    >>> import tapegrad as tg
    >>> tg.view_as_complex(tg.tensor([[1.0, 2.0]]))
    tensor([1.+2.j])
    """
    x = as_input(input, "view_as_complex")
    a = x._a
    if a.dtype.char not in "fd":
        raise RuntimeError(
            f"`view_as_complex` takes a Tensor of float32 or float64, got {x.dtype}: convert it "
            "with `.to`"
        )
    if not a.ndim or a.shape[-1] != 2:
        raise RuntimeError(f"`view_as_complex`: the last dimension has size 2, got {a.shape}")
    strides = lying(a).strides
    if a.size and (strides[-1] != a.itemsize or any(s % (2 * a.itemsize) for s in strides[:-1])):
        raise RuntimeError(
            "`view_as_complex`: the two parts of a number lie side by side in memory, here the "
            f"strides are {x.stride()}: use `contiguous()`"
        )
    return ViewRequest(s.view_as_complex, x, {}, s.view_as_complex.forward(a))


def complex(real: Tensor, imag: Tensor) -> Tensor:
    """Complex numbers of these parts.

    >>> import tapegrad as tg
    >>> tg.complex(tg.tensor([1.0]), tg.tensor([2.0]))
    tensor([1.+2.j])
    """
    a, b = _alike("complex", as_input(real, "complex"), as_input(imag, "complex"))
    compiled, key = native_calls.planned, (c.complex_, a._s, b._s)
    plan = plans.get(key)
    found = None if plan is None or compiled is None else compiled(plan, a, b)
    if found is None:
        found = run(c.complex_, (a, b), {})
        if plan is None and type(found) is Tensor and a._s == b._s != -1:
            arrays, y = [a._a, b._a], found._a
            layout = layout_of(c.complex_, arrays, y, {}) or (GENERAL, 0)
            add_plan(key, join_plan(c.complex_, arrays, y, layout, {}, y.size))
    return found


def polar(abs: Tensor, angle: Tensor) -> Tensor:
    """Complex numbers of these lengths and angles.

    >>> import tapegrad as tg
    >>> tg.polar(tg.tensor([2.0]), tg.tensor([0.0]))
    tensor([2.+0.j])
    """
    r, phi = _alike("polar", as_input(abs, "polar"), as_input(angle, "polar"))
    return complex(ew.mul(r, ew.cos(phi)), ew.mul(r, ew.sin(phi)))


def _alike(name: str, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    if a._a.dtype != b._a.dtype or a._a.dtype.char not in "fd":
        raise RuntimeError(
            f"`{name}` takes two Tensors of float32 or two of float64, got {a.dtype} and {b.dtype}"
        )
    return a, b


@method
def conj(input: Tensor) -> Tensor:
    """The complex conjugate, a new Tensor; a real Tensor is its own.

    >>> import tapegrad as tg
    >>> tg.conj(tg.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    x = as_input(input, "conj")
    return run_one(c.conj, x, {}) if x._a.dtype.kind == "c" else x


conj_physical = method(conj, "conj_physical")


@method
def sgn(input: Tensor) -> Tensor:
    """Complex numbers divided by their absolute value, 0 where they are 0; of real ones the sign.

    >>> import tapegrad as tg
    >>> tg.sgn(tg.tensor([3 + 4j]))
    tensor([0.6000+0.8000j])
    """
    x = as_input(input, "sgn")
    return run(c.sgn, (x,), {}) if x._a.dtype.kind == "c" else sign(x)


@method
def conj_physical_(self: Tensor) -> Tensor:
    """`conj_physical` in place."""
    return run_inplace(c.conj, (self,), {}, self) if self._a.dtype.kind == "c" else self


@method
def sgn_(self: Tensor) -> Tensor:
    """`sgn` in place."""
    if self._a.dtype.kind == "c":
        return run_inplace(c.sgn, (self,), {}, self)
    return sign_(self)


@method
def adjoint(input: Tensor) -> Tensor:
    """The conjugate of the transposed matrix, or of a batch of them.

    >>> import tapegrad as tg
    >>> tg.adjoint(tg.tensor([[1.0, 2.0]])).shape
    tapegrad.Size([2, 1])
    """
    x = as_input(input, "adjoint")
    if x._a.ndim < 2:
        raise RuntimeError(f"`adjoint` takes at least two dimensions, got {x._a.ndim}")
    return conj(matrix_transpose(x))


def hermitian(input: Tensor) -> Tensor:
    """The conjugate of one transposed matrix; `mH` takes batches."""
    if input._a.ndim > 2:
        raise RuntimeError(
            f"`H` takes one matrix, got the shape {input._a.shape}: use `mH` for a batch of them"
        )
    return adjoint(input)


@method
def isreal(input: Tensor) -> Tensor:
    """Whether elements are real numbers, or complex ones whose imaginary part is zero.

    >>> import tapegrad as tg
    >>> tg.isreal(tg.tensor([1j, 1.0]))
    tensor([False,  True])
    """
    x = as_input(input, "isreal").detach()
    return ew.eq(imag(x), 0) if x._a.dtype.kind == "c" else wrap(np.ones(x._a.shape, bool))

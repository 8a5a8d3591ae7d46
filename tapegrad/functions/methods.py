"""Every operation as a method and as an operator of the Tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapegrad.base.dtypes import NAMES
from tapegrad.dispatch.fast_path import flipped
from tapegrad.dispatch.numpy_semantics import numpys
from tapegrad.dispatch.views import view_of
from tapegrad.functions import arithmetic as a
from tapegrad.functions import (
    compositions,
    contractions,
    creation,
    dtype_parts,
    indexing,
    inplace_methods,
    inplace_view_methods,
    joining,
    matrices,
    products,
    quantiles,
    random,
    reductions,
    rounding,
    scans,
    shapes,
    special,
    statistics,
    strided_views,
    tensor_pickling,
    tiling,
)
from tapegrad.functions.arguments import numpy_names
from tapegrad.ops import elementwise as e
from tapegrad.tape.tape import Tape
from tapegrad.tensor import Tensor

_ARITHMETIC = (
    "add sub mul div pow floor_divide remainder neg abs sign floor square reciprocal exp log log1p "
    "expm1 sqrt rsqrt sin cos tan asin acos atan atan2 sinh cosh tanh sigmoid relu erf minimum "
    "maximum clamp addcmul addcdiv lerp eq ne lt le gt ge logical_and logical_or logical_xor "
    "logical_not bitwise_and bitwise_or bitwise_xor bitwise_not bitwise_left_shift "
    "bitwise_right_shift isnan isinf isfinite equal allclose log2 log10 exp2 asinh acosh atanh "
    "hypot logaddexp"
).split()
_ROUNDING = "ceil trunc fix round frac fmod nan_to_num heaviside".split()
_SPECIAL = "erfc erfinv lgamma digamma sinc i0 logit xlogy".split()
_SHAPES = (
    "reshape view view_as reshape_as flatten ravel unflatten contiguous clone permute transpose "
    "swapaxes swapdims t movedim moveaxis squeeze unsqueeze expand expand_as broadcast_to narrow "
    "select diagonal diag tril triu flip to"
).split()
_JOINING = (
    "split split_with_sizes chunk tensor_split unbind unsafe_split unsafe_split_with_sizes "
    "unsafe_chunk"
).split()
_REDUCTIONS = (
    "sum mean prod var std amax amin max min argmax argmin all any count_nonzero logsumexp softmax "
    "log_softmax cumsum norm"
).split()
_SCANS = "cumprod logcumsumexp sort argsort diff".split()
_QUANTILES = "quantile nanquantile".split()
_STATISTICS = "cov corrcoef".split()
_TILING = "roll repeat tile repeat_interleave rot90".split()
_INDEXING = (
    "index_select gather scatter scatter_add index_add index_put masked_fill masked_select take "
    "nonzero take_along_dim"
).split()
# Those that users of NumPy call with `axis`, `keepdims` and `ddof`.
_ALONG = frozenset((*_REDUCTIONS, *_SCANS, *_QUANTILES)) - {"sum", "mean"}  # which know them
_VIEWS = ("squeeze", "unsqueeze", "unbind")  # and these, which are views
_PRODUCTS = "matmul mm mv dot bmm outer".split()
_CONTRACTIONS = "kron trace diag_embed cross".split()
_MATRICES = "cholesky_solve det inverse logdet matrix_exp matrix_power pinverse slogdet".split()

ALIASES = {
    "subtract": a.sub, "multiply": a.mul, "divide": a.div, "true_divide": a.div, "negative": a.neg,
    "absolute": a.abs, "clip": a.clamp, "arcsin": a.asin, "arccos": a.acos, "arctan": a.atan,
    "arctan2": a.atan2, "arcsinh": a.asinh, "arccosh": a.acosh, "arctanh": a.atanh,
    "greater": a.gt, "less": a.lt,
}  # fmt: skip


def _dtype_method(name: str) -> Callable[[Tensor], Tensor]:
    def method(self: Tensor) -> Tensor:
        return shapes.to(self, NAMES[name])

    method.__name__ = name
    method.__doc__ = f"The Tensor in the dtype `{name}`."
    return method


def _where(self: Tensor, condition: Any, other: Any) -> Tensor:
    """This Tensor where the condition holds, else `other`."""
    return a.where(condition, self, other)


def _polygamma(self: Tensor, n: int) -> Tensor:
    """The n-th derivative of `digamma`."""
    return special.polygamma(n, self)


def _contains(self: Tensor, element: Any) -> bool:
    if type(self) is not Tensor or (isinstance(element, Tensor) and type(element) is not Tensor):
        return bool(reductions.any(a.eq(self, element)))
    return bool((self._a == (element._a if isinstance(element, Tensor) else element)).any())


def _full() -> None:
    from tapegrad.native.install import when_full

    when_full()


def install() -> None:
    """Attach the methods; the Tensor itself knows no operation.

    Compiled code takes the place of some of them later, where it pays.
    """
    Tape.full = staticmethod(_full)
    families = (
        (a, _ARITHMETIC),
        (rounding, _ROUNDING),
        (special, _SPECIAL),
        (shapes, _SHAPES),
        (dtype_parts, ["type", "type_as"]),
        (joining, _JOINING),
        (reductions, _REDUCTIONS),
        (scans, _SCANS),
        (quantiles, _QUANTILES),
        (statistics, _STATISTICS),
        (tiling, _TILING),
        (strided_views, ["as_strided", "unfold"]),
        (indexing, _INDEXING),
        (products, _PRODUCTS),
        (contractions, _CONTRACTIONS),
        (matrices, _MATRICES),
    )
    for module, names in families:
        for name in names:
            method = getattr(module, name)
            if name in _VIEWS:
                method = view_of(numpy_names(method.__wrapped__))
            setattr(Tensor, name, numpy_names(method) if name in _ALONG else method)
    for name, function in (
        ALIASES
        | inplace_methods.METHODS
        | inplace_view_methods.METHODS
        | compositions.METHODS
        | random.METHODS
        | {"where": _where, "polygamma": _polygamma}
    ).items():
        setattr(Tensor, name, function)
    for name in ("float", "double", "half", "long", "int", "short", "bool"):
        setattr(Tensor, name, _dtype_method(name))
    for name in ("new_zeros", "new_ones", "new_empty", "new_full", "new_tensor"):
        setattr(Tensor, name, getattr(creation, name))
    _install_operators()
    for name, view in {
        "T": shapes._reversed,
        "mT": shapes.matrix_transpose,
        "H": dtype_parts.hermitian,
        "mH": dtype_parts.adjoint,
    }.items():
        setattr(Tensor, name, property(view, doc=f"The Tensor transposed (`{name}`)."))
    for name, question in compositions.PROPERTIES.items():
        setattr(Tensor, name, property(question, doc=question.__doc__))
    for part in (dtype_parts.real, dtype_parts.imag):
        setattr(Tensor, part.__name__, property(part))


def _pos(self: Tensor) -> Tensor:
    """``+x``: to PyTorch the Tensor itself, to NumPy a copy."""
    return shapes.clone(self) if numpys() else self


def _install_operators() -> None:
    two = {
        "add": a._add, "sub": a._sub, "mul": a.mul, "truediv": a._div, "floordiv": a.floor_divide,
        "mod": a.remainder, "pow": a.pow, "matmul": products.matmul, "and": a.bitwise_and,
        "or": a.bitwise_or, "xor": a.bitwise_xor, "lshift": a.bitwise_left_shift,
        "rshift": a.bitwise_right_shift,
    }  # fmt: skip
    for name, function in two.items():
        setattr(Tensor, f"__{name}__", function)
        setattr(Tensor, f"__r{name}__", flipped(function))
    changes = inplace_methods.METHODS
    quick = {"add": e.add, "sub": e.sub, "mul": e.mul, "truediv": e.div}
    for name, changing in {
        "add": inplace_methods.iadd, "sub": inplace_methods.isub, "mul": changes["mul_"],
        "truediv": inplace_methods.idiv, "pow": inplace_methods.pow_,
        "floordiv": changes["floor_divide_"], "mod": changes["remainder_"],
        "and": changes["bitwise_and_"], "or": changes["bitwise_or_"],
        "xor": changes["bitwise_xor_"], "lshift": changes["bitwise_left_shift_"],
        "rshift": changes["bitwise_right_shift_"],
    }.items():  # fmt: skip
        setattr(
            Tensor, f"__i{name}__", inplace_methods.augmented(changing, two[name], quick.get(name))
        )
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        setattr(Tensor, f"__{name}__", _comparison(getattr(a, name), name))
    others: dict[str, Any] = {
        "neg": a.neg, "pos": _pos, "abs": a.abs, "invert": a.bitwise_not,
        "copy": tensor_pickling.copied, "deepcopy": tensor_pickling.deeply_copied,
        "reduce": tensor_pickling.reduced,
        "format": tensor_pickling.formatted,
        "getitem": indexing.getitem, "setitem": inplace_methods.setitem, "contains": _contains,
    }  # fmt: skip
    for name, function in others.items():
        setattr(Tensor, f"__{name}__", function)


def _comparison(function: Any, name: str) -> Any:
    def operator(self: Tensor, other: Any) -> Any:
        if other is None or isinstance(other, (str, bytes, dict)):
            return NotImplemented
        if isinstance(other, (tuple, list)) and not numpys():
            return NotImplemented
        return function(self, other)

    return operator

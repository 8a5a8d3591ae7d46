"""Element types: PyTorch's names over NumPy's types, and PyTorch's rules for mixing them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


class dtype:
    """The type of a Tensor's elements.

    >>> import tapegrad as tg
    >>> tg.float32, tg.tensor([1, 2]).dtype
    (tapegrad.float32, tapegrad.int64)
    """

    __slots__ = ("name", "numpy")

    def __init__(self, name: str) -> None:
        self.name = name
        self.numpy = np.dtype(name)
        _by_numpy[self.numpy] = self

    @property
    def is_floating_point(self) -> bool:
        """Whether elements are floating-point numbers."""
        return self.numpy.kind == "f"

    @property
    def is_complex(self) -> bool:
        """Whether elements are complex numbers."""
        return self.numpy.kind == "c"

    @property
    def itemsize(self) -> int:
        """The bytes of one element."""
        return self.numpy.itemsize

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's type; where NumPy takes a type it looks here: ``np.zeros(2, t.dtype)``."""
        return self.numpy

    @property
    def kind(self) -> str:
        """NumPy's letter for the kind of the type: ``"f"``, ``"i"``, ..."""
        return self.numpy.kind

    @property
    def char(self) -> str:
        """NumPy's letter for the type."""
        return self.numpy.char

    def __eq__(self, other: object) -> bool:
        """Whether it is the same type, by our name or by NumPy's (`np.float64`, `float`)."""
        if isinstance(other, dtype):
            return self is other
        return isinstance(other, (type, np.dtype, str)) and bool(self.numpy == other)

    def __hash__(self) -> int:
        return hash(self.numpy)

    def __repr__(self) -> str:
        return f"tapegrad.{self.name}"

    def __reduce__(self) -> str:
        return "bool" if self.name == "bool" else self.name


_by_numpy: dict[np.dtype[Any], dtype] = {}

float16, float32, float64 = dtype("float16"), dtype("float32"), dtype("float64")
complex64, complex128 = dtype("complex64"), dtype("complex128")
int8, int16, int32, int64 = dtype("int8"), dtype("int16"), dtype("int32"), dtype("int64")
uint8, uint16, uint32, uint64 = dtype("uint8"), dtype("uint16"), dtype("uint32"), dtype("uint64")
bool_ = dtype("bool")
float_, double, half = float32, float64, float16
long, int_, short = int64, int32, int16
cfloat, cdouble = complex64, complex128

NAMES = {
    "float16": float16, "float32": float32, "float64": float64, "complex64": complex64,
    "complex128": complex128, "int8": int8, "int16": int16, "int32": int32, "int64": int64,
    "uint8": uint8, "uint16": uint16, "uint32": uint32, "uint64": uint64, "bool": bool_,
    "float": float32, "double": float64, "half": float16, "long": int64, "int": int32,
    "short": int16, "cfloat": complex64, "cdouble": complex128,
}  # fmt: skip


# By NumPy's number of a type, of which several have one form (C's `long` and `long long`).
_by_number = {
    np.dtype(letter).num: _by_numpy[np.dtype(letter)].numpy
    for letter in np.typecodes["All"]
    if np.dtype(letter) in _by_numpy
}


def canonical(numpy_dtype: np.dtype[Any]) -> np.dtype[Any] | None:
    """The one object that stands for a type, whatever its byte order; None: no Tensor holds it."""
    return _by_number.get(numpy_dtype.num)


def of_numpy(numpy_dtype: np.dtype[Any]) -> dtype:
    """Our name for a NumPy type."""
    found = _by_numpy.get(numpy_dtype)
    if found is None:
        raise TypeError(f"a Tensor cannot hold NumPy's `{numpy_dtype}`")
    return found


def to_numpy(given: Any) -> np.dtype[Any]:
    """The NumPy type that a user means: ours, NumPy's, or one of Python's number types."""
    if isinstance(given, dtype):
        return given.numpy
    if given is int:
        return int64.numpy
    return of_numpy(np.dtype(given)).numpy


_default = [float64]
followers: list[Callable[[], None]] = []  # called when it has changed


def set_default_dtype(d: Any) -> None:
    """Choose the floating-point type of new Tensors made from Python numbers.

    >>> import tapegrad as tg
    >>> tg.set_default_dtype(tg.float32); tg.tensor(1.0).dtype
    tapegrad.float32
    >>> tg.set_default_dtype(tg.float64)
    """
    chosen = of_numpy(to_numpy(d))
    if not chosen.is_floating_point:
        raise TypeError(f"`set_default_dtype` takes a floating-point type, got {chosen}")
    _default[0] = chosen
    for follow in followers:
        follow()


def get_default_dtype() -> dtype:
    """The floating-point type of new Tensors made from Python numbers.

    >>> import tapegrad as tg
    >>> tg.get_default_dtype()
    tapegrad.float64
    """
    return _default[0]


_CATEGORY = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}


def category(numpy_dtype: np.dtype[Any]) -> int:
    """0 for booleans, 1 for integers, 2 for floats, 3 for complex numbers."""
    found = _CATEGORY.get(numpy_dtype.kind)
    if found is None:
        raise TypeError(f"a Tensor cannot hold NumPy's `{numpy_dtype}`")
    return found


def fitted(value: Any, kind: np.dtype[Any], name: str) -> np.ndarray:
    """A number as an array of a type, in which it must have a place.

    Fractions are cut off, and below zero an unsigned type wraps around, as in PyTorch.
    """
    number = value.item() if isinstance(value, (np.generic, np.ndarray)) else value
    if kind.kind in "iu":
        top = int(np.iinfo(kind).max)
        low = -top if kind.kind == "u" else -top - 1
        fits = np.isfinite(number) if isinstance(number, float) else not isinstance(number, complex)
        if fits and low <= int(number) <= top:
            return np.asarray(int(number) % (top + 1) if kind.kind == "u" else int(number), kind)
    elif not (kind.kind == "f" and isinstance(number, complex)):
        real = kind.kind == "f" and isinstance(number, (int, float))
        if not real or not np.isfinite(number) or abs(number) <= float(np.finfo(kind).max):
            return np.asarray(number, kind)
    raise RuntimeError(
        f"`{name}`: the number {number} cannot be converted to {kind} without overflow"
    )


def _join(a: np.dtype[Any] | None, b: np.dtype[Any]) -> np.dtype[Any]:
    """The smallest type of PyTorch's lattice above both: an integer never widens a float."""
    if a is None or a == b:
        return b
    low, high = sorted((a, b), key=category)
    if category(low) < category(high) and high.kind in "fc":
        if high.kind == "c" and low.kind == "f" and low.itemsize * 2 > high.itemsize:
            return complex128.numpy
        return high
    return np.promote_types(a, b)


def result_type(operands: list[Any]) -> np.dtype[Any]:
    """PyTorch's result type: dimensioned arrays first, then 0-d ones, then Python numbers.

    An operand of a lower rank matters only when it is of a higher category.
    """
    ranks: list[np.dtype[Any] | None] = [None, None, None]
    for x in operands:
        if isinstance(x, np.ndarray):
            rank, kind = (0 if x.ndim else 1), x.dtype
        elif isinstance(x, np.generic):
            rank, kind = 1, x.dtype
        elif isinstance(x, bool):
            rank, kind = 2, bool_.numpy
        elif isinstance(x, int):
            rank, kind = 2, int64.numpy
        elif isinstance(x, complex):
            rank, kind = 2, (complex64 if _default[0] is float32 else complex128).numpy
        else:
            rank, kind = 2, _default[0].numpy
        ranks[rank] = _join(ranks[rank], kind)
    result: np.dtype[Any] | None = None
    for kind_or_none in ranks:
        if kind_or_none is None:
            continue
        if result is None or category(kind_or_none) > category(result):
            if result is not None and result.kind == "f" and kind_or_none.kind == "c":
                result = (complex64 if result.itemsize < 8 else complex128).numpy
            else:
                result = kind_or_none
    assert result is not None
    return result


def promote_types(type1: Any, type2: Any) -> dtype:
    """The type in which two types meet.

    >>> import tapegrad as tg
    >>> tg.promote_types(tg.int64, tg.float32)
    tapegrad.float32
    """
    return of_numpy(_join(to_numpy(type1), to_numpy(type2)))


def can_cast(from_: Any, to: Any) -> bool:
    """Whether a type may become another by an operation: no fraction is lost, no sign of truth.

    >>> import tapegrad as tg
    >>> tg.can_cast(tg.float64, tg.float32), tg.can_cast(tg.float32, tg.int64)
    (True, False)
    """
    low, high = to_numpy(from_), to_numpy(to)
    return category(low) <= category(high)


def finfo(type: Any = None) -> np.finfo[Any]:
    """The limits of a floating-point type: `eps`, `max`, `min`, `tiny`, `bits`, `resolution`.

    >>> import tapegrad as tg
    >>> tg.finfo(tg.float32).bits
    32
    """
    kind = get_default_dtype().numpy if type is None else to_numpy(type)
    if kind.kind not in "fc":
        raise TypeError(f"`finfo` takes a floating-point type, got {of_numpy(kind)}: use `iinfo`")
    return np.finfo(kind)


def iinfo(type: Any) -> np.iinfo[Any]:
    """The limits of an integer type: `max`, `min`, `bits`.

    >>> import tapegrad as tg
    >>> tg.iinfo(tg.int8).max
    127
    """
    kind = to_numpy(type)
    if kind.kind not in "iu":
        raise TypeError(f"`iinfo` takes an integer type, got {of_numpy(kind)}: use `finfo`")
    return np.iinfo(kind)

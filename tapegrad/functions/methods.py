"""Every operation as a method and as an operator of the Tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.base.devices import CPU, device
from tapegrad.base.dtypes import NAMES
from tapegrad.dispatch.dispatch import regenerate
from tapegrad.dispatch.native_calls import native_calls
from tapegrad.dispatch.numpy_semantics import numpys
from tapegrad.dispatch.op_functions import flipped
from tapegrad.dispatch.views import viewed
from tapegrad.functions import arithmetic as a
from tapegrad.functions import (
    axis,
    complex_parts,
    creation,
    indexing,
    inplace_methods,
    masking,
    products,
    reductions,
    rounding,
    scans,
    shapes,
    tensor_pickling,
)
from tapegrad.functions import elementwise as ew
from tapegrad.functions.arguments import Operand
from tapegrad.functions.deferred import deferred_methods
from tapegrad.functions.method_decorators import methods_of
from tapegrad.functions.rule_calls import called_by_rule
from tapegrad.ops import elementwise as e
from tapegrad.ops.core import by_code
from tapegrad.tape.tape import Tape
from tapegrad.tensor import Tensor

# Modules some of whose functions are methods, too (see `method_decorators`); others: `deferred`.
FAMILIES = (
    a, complex_parts, creation, indexing, inplace_methods, masking, products, reductions,
    rounding, scans, shapes,
)  # fmt: skip


def _dtype_method(name: str) -> Callable[[Tensor], Tensor]:
    def method(self: Tensor) -> Tensor:
        return shapes.to(self, NAMES[name])

    method.__name__ = name
    method.__doc__ = f"The Tensor in the dtype `{name}`."
    return method


def _where(self: Tensor, condition: Tensor | np.ndarray, other: Operand) -> Tensor:
    """This Tensor where the condition holds, else `other`."""
    return a.where(condition, self, other)


def _polygamma(self: Tensor, n: int) -> Tensor:
    """The n-th derivative of `digamma`."""
    from tapegrad.functions import special

    return special.polygamma(n, self)


def _contains(self: Tensor, element: Any) -> bool:
    if type(self) is not Tensor or (isinstance(element, Tensor) and type(element) is not Tensor):
        return bool(reductions.any(ew.eq(self, element)))
    return bool((self._a == (element._a if isinstance(element, Tensor) else element)).any())


def _device(self: Tensor) -> device:
    """Where the elements are: on the CPU."""
    return CPU


def _is_cpu(self: Tensor) -> bool:
    """Whether the elements are on the CPU: they are."""
    return True


def _is_cuda(self: Tensor) -> bool:
    """Whether the elements are on a graphics processor: they are not."""
    return False


def _full() -> None:
    from tapegrad.native.install import when_full

    when_full()


def install() -> None:
    """Attach the methods; the Tensor itself knows no operation.

    Compiled code takes the place of some of them later, where it pays.
    """
    Tensor._tapegrad_run, Tensor._regenerate = (
        staticmethod(called_by_rule),
        staticmethod(regenerate),
    )
    Tape.on_full = staticmethod(_full)
    native_calls.view = viewed
    for op in by_code:
        if op.doc and not op.namespace:
            for name in op.names:
                setattr(Tensor, name, getattr(axis if op.axis else ew, name))
    found = (
        deferred_methods() | inplace_methods.OF_ROWS | {"where": _where, "polygamma": _polygamma}
    )
    for module in FAMILIES:
        found |= methods_of(module)
    for name, function in found.items():
        setattr(Tensor, name, function)
    for name in ("float", "double", "half", "long", "int", "short", "bool"):
        setattr(Tensor, name, _dtype_method(name))
    _install_operators()
    for name, view in {
        "T": shapes._reversed,
        "mT": shapes.matrix_transpose,
        "H": complex_parts.hermitian,
        "mH": complex_parts.adjoint,
    }.items():
        setattr(Tensor, name, property(view, doc=f"The Tensor transposed (`{name}`)."))
    for name, question in {"device": _device, "is_cpu": _is_cpu, "is_cuda": _is_cuda}.items():
        setattr(Tensor, name, property(question, doc=question.__doc__))
    for part in (complex_parts.real, complex_parts.imag):
        setattr(Tensor, part.__name__, property(part, _written(part), doc=part.__doc__))


def _written(part: Callable[[Tensor], Tensor]) -> Callable[[Tensor, Any], None]:
    """The setter of a part of complex numbers."""

    def write(self: Tensor, value: Any) -> None:
        seen = part(self)
        if value is not seen:  # as after `z.real += 1`, which has written already
            seen.copy_(creation.as_tensor(value))

    return write


def _pos(self: Tensor) -> Tensor:
    """``+x``: to PyTorch the Tensor itself, to NumPy a copy."""
    return shapes.clone(self) if numpys() else self


def _install_operators() -> None:
    two = {
        "add": a._add, "sub": a._sub, "mul": ew.mul, "truediv": a._div, "floordiv": ew.floor_divide,
        "mod": ew.remainder, "pow": a.pow, "matmul": products.matmul, "and": ew.bitwise_and,
        "or": ew.bitwise_or, "xor": ew.bitwise_xor, "lshift": ew.bitwise_left_shift,
        "rshift": ew.bitwise_right_shift, "divmod": a.quotient_and_rest,
    }  # fmt: skip
    for name, function in two.items():
        setattr(Tensor, f"__{name}__", function)
        setattr(Tensor, f"__r{name}__", flipped(function))
    changes = inplace_methods.OF_ROWS
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
        setattr(Tensor, f"__{name}__", _comparison(getattr(ew, name), name))
    others: dict[str, Any] = {
        "neg": ew.neg, "pos": _pos, "abs": ew.abs, "invert": ew.bitwise_not,
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

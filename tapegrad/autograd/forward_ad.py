"""Forward mode by dual Tensors, under the names of `torch.autograd.forward_ad`.

>>> import tapegrad as tg
>>> from tapegrad.autograd import forward_ad
>>> with forward_ad.dual_level():
...     x = forward_ad.make_dual(tg.tensor(3.0), tg.tensor(1.0))
...     forward_ad.unpack_dual(x * x).tangent
tensor(6.)
"""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple

from tapegrad.base.public_names import dir_of
from tapegrad.dispatch.dispatch import run
from tapegrad.lift.dual import Dual, dual
from tapegrad.lift.levels import Level
from tapegrad.lift.lifted_tensor import plain_again
from tapegrad.ops.shape import alias
from tapegrad.tape.tape import current
from tapegrad.tensor import Tensor, place

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]
__dir__ = dir_of(globals())


class UnpackedDualTensor(NamedTuple):
    """What `unpack_dual` returns: the value, and its tangent or None.

    >>> import tapegrad as tg
    >>> tg.autograd.forward_ad.unpack_dual(tg.tensor(3.0))
    UnpackedDualTensor(primal=tensor(3.), tangent=None)
    """

    primal: Tensor
    tangent: Tensor | None


def _entered() -> Level | None:
    """The level that this thread has entered; there is one at most."""
    return next((at for at in current.tape.levels if at.members is not None), None)


def _checked(level: int | None, name: str) -> None:
    if level not in (None, 0):
        raise RuntimeError(f"`{name}`: there is one level only, number 0, got level={level!r}")


def enter_dual_level() -> int:
    """Begin forward mode; Tensors made by `make_dual` carry tangents until `exit_dual_level`.

    >>> import tapegrad as tg
    >>> level = tg.autograd.forward_ad.enter_dual_level()
    >>> tg.autograd.forward_ad.exit_dual_level(level=level)
    """
    if _entered() is not None:
        raise RuntimeError(
            "`enter_dual_level`: nested forward mode is not supported here; `tapegrad.jvp` nests"
        )
    made = Level()
    made.members = weakref.WeakSet()
    current.tape.levels.append(made)
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """End forward mode: duals that are left over become ordinary Tensors, without tangents.

    >>> import tapegrad as tg
    >>> from tapegrad.autograd import forward_ad
    >>> level = forward_ad.enter_dual_level()
    >>> x = forward_ad.make_dual(tg.tensor(3.0), tg.tensor(1.0))
    >>> forward_ad.exit_dual_level()
    >>> forward_ad.unpack_dual(x)
    UnpackedDualTensor(primal=tensor(3.), tangent=None)
    """
    at = _entered()
    if at is None:
        raise RuntimeError("`exit_dual_level`: no level was entered")
    _checked(level, "exit_dual_level")
    current.tape.levels.remove(at)
    for t in list(at.members or ()):
        if isinstance(t, Dual) and t._lift.at is at:
            plain_again(t)


class dual_level:
    """The context in which Tensors can carry tangents.

    >>> import tapegrad as tg
    >>> from tapegrad.autograd import forward_ad
    >>> with forward_ad.dual_level():
    ...     x = forward_ad.make_dual(tg.tensor([1.0, 2.0]), tg.tensor([1.0, 0.0]))
    ...     value, tangent = forward_ad.unpack_dual(x.prod())
    >>> value, tangent
    (tensor(2.), tensor(2.))
    """

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exception: object) -> None:
        exit_dual_level()


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A view of a Tensor that carries a tangent, which operations on it carry on.

    Parameters
    ----------
    tensor : the value; if it requires grad, values and tangents are recorded.
    tangent : of the same shape; an in-place operation on the result changes it as well.

    >>> import tapegrad as tg
    >>> from tapegrad.autograd import forward_ad
    >>> with forward_ad.dual_level():
    ...     x = forward_ad.make_dual(tg.tensor(0.0), tg.tensor(5.0))
    ...     forward_ad.unpack_dual(tg.sin(x))
    UnpackedDualTensor(primal=tensor(0.), tangent=tensor(5.))
    """
    at = _entered()
    if at is None:
        raise RuntimeError(
            "`make_dual` outside of a level: use it inside `with forward_ad.dual_level():`"
        )
    _checked(level, "make_dual")
    for what, t in (("tensor", tensor), ("tangent", tangent)):
        if not isinstance(t, Tensor):
            raise TypeError(f"`make_dual`: `{what}` is a Tensor, got {type(t).__name__}")
        if t._a.dtype.kind not in "fc":
            raise ValueError(f"`make_dual`: `{what}` must be floating-point, got {t.dtype}")
    if tangent._a.shape != tensor._a.shape:
        raise RuntimeError(
            f"`make_dual`: a tangent of shape {tangent._a.shape} was given for a Tensor of shape "
            f"{tensor._a.shape}"
        )
    if isinstance(tensor, Dual) and tensor._lift.at is at:
        raise RuntimeError("`make_dual`: this Tensor has a tangent already")
    if isinstance(tangent, Dual) and tangent._lift.at is at:
        raise RuntimeError(
            "`make_dual`: the tangent has a tangent itself, at the same level: pass "
            "`unpack_dual(tangent).primal`"
        )
    if tangent._a.dtype != tensor._a.dtype:
        tangent = tangent.to(tensor.dtype)
    alike = tangent._a.strides == tensor._a.strides  # then what is changed in place is this tangent
    return dual(run(alias, (tensor,), {}), tangent, at, owned=alike)


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The value, as a new view, and the tangent of a Tensor; None of what does not have one.

    >>> import tapegrad as tg
    >>> from tapegrad.autograd import forward_ad
    >>> with forward_ad.dual_level():
    ...     x = forward_ad.make_dual(tg.tensor(3.0), tg.tensor(1.0))
    ...     forward_ad.unpack_dual(tg.tensor(1.0)).tangent is None
    True
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"`unpack_dual` takes a Tensor, got {type(tensor).__name__}")
    at = _entered()
    if at is None:
        return UnpackedDualTensor(tensor, None)
    _checked(level, "unpack_dual")
    lifted: Any = tensor
    if isinstance(tensor, Dual) and tensor._lift.at is at:
        place(tensor)
        primal, tangent = lifted.parts()
        return UnpackedDualTensor(run(alias, (primal,), {}), tangent)
    return UnpackedDualTensor(tensor, None)

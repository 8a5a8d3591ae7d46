"""The Tensor: a NumPy array and its place on a tape.

``_a``     the array
``_pos``   0: a constant; < 0: a leaf that requires grad (a key of its own); > 0: a position
``_s``     the number of its shape where native code takes it (of float32 `F4_SHAPE` less it), or -1
``_home``  None: neither on a tape nor a view; a `Tape`: where `_pos` counts; see `View`, `Shared`

Everything that only some Tensors have (a gradient, hooks) stands in slots that stay empty.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from sys import _getframe
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from tapegrad.base.abstract_array import lying
from tapegrad.base.call_site import explain
from tapegrad.base.dtypes import dtype as DType
from tapegrad.base.dtypes import of_numpy
from tapegrad.base.native_arrays import native_array
from tapegrad.base.public_names import is_public
from tapegrad.base.size import ElementCount, Size
from tapegrad.ops.core import Op
from tapegrad.ops.graph_nodes import GradFn, node, output
from tapegrad.tape import versions
from tapegrad.tape.copy_on_use import Shared, own
from tapegrad.tape.record_format import DTYPE_BITS, F4_SHAPE, HOOKED
from tapegrad.tape.shape_table import shapes
from tapegrad.tape.tape import Ended, Tape, current, leaf_keys
from tapegrad.tape.tape_slice import TapeSlice

if TYPE_CHECKING:
    from tapegrad.functions.signatures import Operations
else:  # `tapegrad.functions.methods` attaches them
    Operations = object

F8, F4 = np.dtype(np.float64), np.dtype(np.float32)
SHORT = 1 << 14  # elements from which the general path, with its threads, is worth its overhead
Chain = tuple[tuple[Op, dict[str, Any]], ...]


class View:
    """What a Tensor that shares another's memory knows about it.

    The base is never itself a view; the chain of view operations leads from it to here.  `stamp` is
    the base's position at which this view's own was made: when an in-place operation has moved the
    base on, they differ, and the view's place on the tape is made anew before use.  Without a base
    nothing is followed: `frozen` says why, or it is an element of NumPy's, a number.
    """

    __slots__ = ("base", "chain", "frozen", "several", "stamp", "tape")

    def __init__(
        self, base: Tensor | None, chain: Chain, tape: Tape | None, *, frozen: str = ""
    ) -> None:
        self.base = base
        self.chain = chain
        self.stamp = 0 if base is None else base._pos
        self.tape = tape
        self.several = False  # one of several views that a single call made
        self.frozen = frozen  # why this view does not follow its base and may not be changed

    @property
    def element(self) -> bool:
        """Whether an element was read where NumPy's rules hold, and this sees it."""
        return self.base is None and not self.frozen

    @property
    def opaque(self) -> bool:
        """Whether a Function made it of its argument: only the user's rule leads to it."""
        return bool(self.chain) and not self.chain[0][0].view


class Tensor(Operations):
    """A NumPy array that operations on it are recorded for.

    Made by `tapegrad.tensor`, `tapegrad.zeros` and the like, or by an operation.

    >>> import tapegrad as tg
    >>> x = tg.tensor([1.0, 2.0], requires_grad=True)
    >>> y = (x * x).sum()
    >>> y.backward()
    >>> x.grad
    tensor([2., 4.])
    """

    __slots__ = ("__weakref__", "_a", "_extra", "_grad", "_home", "_lift", "_pos", "_s")

    __pandas_priority__ = 10_000  # over its tables, which leave operators to the Tensor
    _a: np.ndarray
    _pos: int
    _s: int
    _home: Tape | View | Ended | Shared | None
    _grad: Tensor | None
    _extra: dict[str, Any]
    # `rule_calls.called_by_rule`, `dispatch.regenerate`: see `functions.methods.install`.
    _tapegrad_run: Callable[..., Any]
    _regenerate: Callable[[Tensor, View], None]
    # A subclass is a Tensor under a transform: what it stands for, and how operations run on it.
    _lift: Any
    _run: Callable[..., Tensor]
    _run_inplace: Callable[..., Tensor]
    _apply_view: Callable[..., None]
    _lift_view: Callable[..., None]
    _apply: Callable[..., Any]
    _separated: Callable[..., Tensor]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise TypeError(
            "make a Tensor with `tapegrad.tensor(data)`, one of a shape with `tapegrad.empty(2, 3)`"
        )

    # -- the array -------------------------------------------------------------------------

    @property
    def shape(self) -> Size:
        """The shape, a tuple."""
        return Size(self._a.shape)

    @property
    def size(self) -> ElementCount:
        """The number of elements; called, the shape, or one entry of it."""
        count = ElementCount(self._a.size)
        count.shape = Size(self._a.shape)
        return count

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return of_numpy(self._a.dtype)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._a.ndim

    def dim(self) -> int:
        """The number of dimensions."""
        return self._a.ndim

    def numel(self) -> int:
        """The number of elements."""
        return self._a.size

    nelement = numel

    @property
    def nbytes(self) -> int:
        """The bytes that the elements take."""
        return self._a.nbytes

    @property
    def itemsize(self) -> int:
        """The bytes of one element."""
        return self._a.itemsize

    def element_size(self) -> int:
        """The bytes of one element."""
        return self._a.itemsize

    @overload
    def stride(self, dim: None = None) -> tuple[int, ...]: ...
    @overload
    def stride(self, dim: int) -> int: ...
    def stride(self, dim: int | None = None) -> tuple[int, ...] | int:
        """The steps between neighbours along each dimension, in elements."""
        step = self._a.itemsize
        strides = tuple([s // step for s in lying(self._a).strides])
        return strides if dim is None else strides[dim]

    def storage_offset(self) -> int:
        """How many elements into its storage this Tensor begins."""
        return versions.offset(lying(self._a))

    def data_ptr(self) -> int:
        """The address of the first element."""
        return int(self._a.__array_interface__["data"][0])

    def is_contiguous(self) -> bool:
        """Whether the elements lie in memory in C order without gaps."""
        return bool(lying(self._a).flags.c_contiguous)

    def is_floating_point(self) -> bool:
        """Whether the elements are floating-point numbers."""
        return self._a.dtype.kind == "f"

    def is_complex(self) -> bool:
        """Whether the elements are complex numbers."""
        return self._a.dtype.kind == "c"

    def numpy(self, *, force: bool = False) -> np.ndarray:
        """An array that shares memory; with `force` of a Tensor whose history it loses, too."""
        if follows_lifted(self):
            return self.numpy(force=force)
        placed = self._home is not None or self._pos
        if placed and not force and place(self) and current.tape.enabled:
            raise RuntimeError(
                "an array of a Tensor that requires grad would lose its history: use "
                "`t.detach().numpy()` where no gradient is wanted, else the Tensor itself, and "
                "`np.stack([a, b])` for `np.array([a, b])`, `np.array(rows, like=a)` for lists"
            )
        return self._a[...]  # with a header of its own: ours is read by compiled code

    def item(self) -> Any:
        """The one element as a Python number."""
        if self._a.size != 1:
            raise RuntimeError(
                f"`item()` needs exactly one element, this Tensor has the shape {self._a.shape}; "
                "use `tolist()` or index it first"
            )
        check_readable(self, "item")
        return self._a.item()

    def tolist(self) -> Any:
        """The elements as nested Python lists."""
        check_readable(self, "tolist")
        return self._a.tolist()

    def _number(self) -> Any:
        """The one element, for a conversion to a type of Python's."""
        if self._a.size != 1:
            raise ValueError(f"a Tensor of shape {self._a.shape} is not one number")
        try:
            return self.item()
        except RuntimeError as why:
            explain(why, _getframe(2), self._a.dtype.kind)
            raise

    def __float__(self) -> float:
        return float(self._number())

    def __int__(self) -> int:
        return int(self._number())

    def __index__(self) -> int:
        if self._a.dtype.kind not in "iub":
            raise TypeError(f"only an integer Tensor can be an index, this one is {self.dtype}")
        if self._a.size != 1:
            raise TypeError(f"a Tensor of shape {self._a.shape} is not one index")
        return int(self._number())

    def __complex__(self) -> complex:
        return complex(self._number())

    def __bool__(self) -> bool:
        if self._a.size != 1:
            raise RuntimeError(
                f"the truth value of a Tensor of shape {self._a.shape} is ambiguous: "
                "use `.any()` or `.all()`"
            )
        return bool(self._a.item())

    def __len__(self) -> int:
        if not self._a.ndim:
            raise TypeError("`len()` of a 0-d Tensor")
        return len(self._a)

    def __iter__(self) -> Iterator[Tensor]:
        if not self._a.ndim:
            raise TypeError("iteration over a 0-d Tensor")
        return (self[i] for i in range(len(self._a)))

    def __hash__(self) -> int:
        return id(self)

    def __dir__(self) -> list[str]:
        return [n for n in super().__dir__() if is_public(n) and n != "extra"]

    def __repr__(self) -> str:
        from tapegrad.base.printing import describe

        if follows_lifted(self):
            return repr(self)
        if self.is_leaf:
            note = "requires_grad=True" if self.requires_grad else ""
        else:
            note = f"grad_fn={self.grad_fn!r}"
        return describe(self._a, note)

    def _repr_html_(self) -> str:
        from tapegrad.show.graph_picture import tensor_html

        return tensor_html(self)

    # -- the graph -------------------------------------------------------------------------

    @property
    def requires_grad(self) -> bool:
        """Whether operations on this Tensor are recorded."""
        placed = place(self) != 0
        return placed if type(self) is Tensor else self.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Make this leaf one that gradients are collected for (or stop that)."""
        own(self)
        position = place(self)
        if position > 0:
            if not requires_grad:
                raise RuntimeError(
                    "`requires_grad` can be switched off for a leaf only, this Tensor comes from "
                    f"{self.grad_fn!r}: use `detach()`"
                )
            return self
        if not requires_grad:
            self._pos = 0
        elif position == 0:
            if self._a.dtype.kind not in "fc":
                raise RuntimeError(
                    f"only floating-point and complex Tensors can require grad, this one is "
                    f"{self.dtype}: convert it with `.to(tapegrad.float64)`"
                )
            if self._a.dtype not in DTYPE_BITS:
                raise NotImplementedError(
                    f"there are no gradients in {self.dtype}: use float32 or float64"
                )
            if self.is_inference() and not current.tape.inference:
                raise RuntimeError(
                    "`requires_grad_`: this Tensor was made in inference mode and cannot start to "
                    "require grad outside of it: use `clone()`"
                )
            self._pos = -leaf_keys()
            _ = self.extra  # every sweep asks it for hooks: an empty slot answers slowly
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether this Tensor was made by the user and not by a recorded operation."""
        return place(self) <= 0

    @property
    def grad_fn(self) -> GradFn | None:
        """The record that made this Tensor, or None for a leaf."""
        if isinstance(self._home, View) and self._home.frozen == NO_GRAD:
            self._regenerate(self, self._home)  # which raises where that is not known
        position, tape = place(self), tape_of(self)
        return node(tape, position) if tape is not None else None

    @property
    def output_nr(self) -> int:
        """Which of the several results of a Function this Tensor is; else 0."""
        position, tape = place(self), tape_of(self)
        return output(tape, position) if tape is not None else 0

    @property
    def tape(self) -> TapeSlice | None:
        """The slice of the tape under this Tensor, see `TapeSlice`; None for a leaf."""
        position, tape = place(self), tape_of(self)
        return None if tape is None else TapeSlice(tape, position, self)

    @property
    def position(self) -> int | None:
        """The position of this Tensor's record on its tape; None for a leaf."""
        return position if (position := place(self)) > 0 else None

    @property
    def grad(self) -> Tensor | None:
        """The gradient that backward sweeps have added up here."""
        found = getattr(self, "_grad", None)
        if found is None and place(self) > 0 and noted(self, "retained_by") is None:
            warnings.warn("`grad` of a non-leaf stays None without `retain_grad()`", stacklevel=2)
        return found

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            if not isinstance(value, Tensor):
                raise TypeError(f"`grad` takes a Tensor or None, got {type(value).__name__}")
            if value is self:
                raise RuntimeError("a Tensor cannot be its own gradient: use `t.detach().clone()`")
            if value._a.shape != self._a.shape or value._a.dtype != self._a.dtype:
                raise RuntimeError(
                    f"`grad` must have the Tensor's shape {self._a.shape} and dtype {self.dtype}, "
                    f"got {value._a.shape} and {value.dtype}"
                )
        self._grad = value

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    @property
    def extra(self) -> dict[str, Any]:
        """What only few Tensors have (hooks); made when first asked for."""
        try:
            return self._extra
        except AttributeError:
            self._extra = {}
            return self._extra

    @property
    def data(self) -> Tensor:
        """The same memory without history and with a version counter of its own."""
        return self.data if follows_lifted(self) else self._alias(versions.detached(self._a))

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise TypeError(f"`data` takes a Tensor, got {type(value).__name__}")
        if value._a.dtype != self._a.dtype:
            raise RuntimeError(f"`data` must keep the dtype {self.dtype}, got {value.dtype}")
        own(self)
        own(value)
        self._a = value._a
        self._s = number(value._a)

    @property
    def _version(self) -> int:
        """How often the memory was changed in place."""
        return versions.version(versions.root(self._a))

    def detach(self) -> Tensor:
        """The same memory and version counter, without history."""
        return self.detach() if follows_lifted(self) else self._alias(self._a)

    def _alias(self, array: np.ndarray) -> Tensor:
        alias = wrap(array)
        if self.is_inference() and current.tape.inference:
            alias._home = View(None, (), None, frozen=INFERENCE)
        return alias

    def detach_(self) -> Tensor:
        """Forget the history of this Tensor; records that used it keep it."""
        if isinstance(self._home, View) and self._home.base is not None and place(self) > 0:
            raise RuntimeError("a view cannot be detached in place: use `detach()`")
        self._pos = 0
        if isinstance(self._home, Tape):
            self._home = None
        return self

    def is_inference(self) -> bool:
        """Whether this Tensor was made in inference mode."""
        return isinstance(self._home, View) and self._home.frozen == INFERENCE

    def _is_view(self) -> bool:
        return self._base is not None

    @property
    def _base(self) -> Tensor | None:
        """The Tensor that this one is a view of."""
        return self._home.base if isinstance(self._home, View) else None

    def _listen(self) -> tuple[Tape, int]:
        """Mark the record of this non-leaf as having hooks."""
        position, tape = place(self), tape_of(self)
        assert tape is not None
        tape.flag(position, HOOKED)
        return tape, position


NOWHERE = 1 << 62  # the place of a Tensor that a transform has taken over from its older views
INFERENCE = "it was made in inference mode"
NO_GRAD = "it was made under `no_grad`"
COPY = "the index that chose it is known later, so it is a copy"
_new, _numbers = Tensor.__new__, shapes.ids


def number(array: np.ndarray) -> int:
    """What a Tensor of an array says in `_s`."""
    kind = array.dtype
    if (kind is not F8 and kind is not F4) or array.size >= SHORT:
        return -1
    found = _numbers.get(array.shape)
    if found is None:
        found = shapes.number(array.shape)
    return found if kind is F8 else F4_SHAPE - found


def wrap(array: np.ndarray | np.generic) -> Tensor:
    """A Tensor around an array, without history.

    NumPy gives a scalar where an array would have no dimensions: the compiled sweep must never see
    one.
    """
    t = _new(Tensor)
    if not isinstance(array, np.ndarray):
        array = np.asarray(array)
    t._a = array
    t._pos = 0
    t._home = None
    t._s = number(array)
    return t


def wrap_as(array: np.ndarray, short: int) -> Tensor:
    """`wrap` of an array of which `_s` is known, from a Tensor of that shape and dtype, say."""
    t = _new(Tensor)
    t._a, t._pos, t._home, t._s = array, 0, None, short
    return t


def tensor_of(x: Any, name: str) -> Tensor:
    """A Tensor as it is; one without history around an array, or a number, from outside."""
    return x if isinstance(x, Tensor) else wrap(native_array(x, name))


def fresh(array: np.ndarray) -> Tensor:
    """A Tensor without history, which inference mode marks as its own."""
    t = wrap(array)
    tape = current.tape
    if tape.inference:
        t._home = View(None, (), tape, frozen=INFERENCE)
    return t


def placed(array: np.ndarray, tape: Tape, position: int) -> Tensor:
    """A Tensor around an array with a place on a tape."""
    t = _new(Tensor)
    t._a = array
    t._pos = position
    t._home = tape
    t._s = number(array)
    return t


def place(t: Tensor) -> int:
    """The Tensor's place, made anew when it is a view and its base has moved on."""
    home = t._home
    if type(home) is View and home.base is not None and not home.frozen:
        base = home.base
        if (place(base) if type(base._home) is View else base._pos) != home.stamp:
            t._regenerate(t, home)
    return t._pos


def follows_lifted(t: Tensor) -> bool:
    """Whether a transform has lifted the base of this view since; then the view is lifted now.

    It is asked before the memory is shown: shared memory is copied.
    """
    own(t)
    base: Any = t
    while type(base) is Tensor and type(base._home) is View:
        base = base._home.base
    lifted = base is not None and base is not t and type(base) is not Tensor
    return lifted and place(t) != 0 and type(t) is not Tensor


def tape_of(t: Tensor) -> Tape | None:
    """The tape that a Tensor stands on; None for a leaf."""
    if place(t) <= 0:
        return None
    home = t._home.tape if isinstance(t._home, View) else t._home
    return home if isinstance(home, Tape) else None


# Of leaves that got another shape in place, by the key of each: the keys that it had before.
former: dict[int, list[int]] = {}


def renew(leaf: Tensor) -> None:
    """Make a leaf that is about to get another shape a new one to every tape.

    Records that have read it lead to what stands in for it there, and a sweep down to that raises.
    """
    key, shape = leaf._pos, leaf._a.shape
    leaf._pos = -leaf_keys()

    def refuse(gradient: Tensor) -> None:
        raise RuntimeError(
            f"a gradient of shape {shape} leads to a leaf that an in-place operation has given the "
            f"shape {leaf._a.shape} since: reshape the leaf before it is computed with"
        )

    tapes = Tape.all()
    for tape in tapes:
        code = tape.slots.get(key)
        if code is not None:
            stand_in = tape.leaves[-code - 1] = wrap(leaf._a)
            stand_in._pos = key
            stand_in.extra["hooks"] = {0: refuse}
    former[leaf._pos] = [*former.pop(key, ()), key]
    for new, keys in tuple(former.items()):
        former[new] = [k for k in keys if any(k in tape.slots for tape in tapes)]
        if not former[new]:
            del former[new]


def check_readable(t: Tensor, name: str) -> None:
    """Refuse to make a number of a value that a transform follows: a gradient would be lost."""
    if type(t._home) is View:
        place(t)
    if type(t) is not Tensor:
        t.numpy()  # says what a lifted Tensor stands for
    if current.tape.depth and current.tape.enabled and place(t):
        from tapegrad.base.nearest import no_number

        raise no_number(name)


def noted(t: Tensor, name: str) -> Any:
    """What only some Tensors have (see `extra`), or None, without making a place for it."""
    return t._extra.get(name) if hasattr(t, "_extra") else None

"""Making Tensors from chance: the numbers are those of NumPy's generators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from tapegrad.base.devices import CPU, check_device, device
from tapegrad.base.dtypes import get_default_dtype, to_numpy
from tapegrad.base.locks import lock
from tapegrad.functions.creation import shape_of
from tapegrad.functions.method_decorators import method
from tapegrad.tape.tape import current
from tapegrad.tensor import Tensor, fresh, wrap

# The class is named in a text: its module is loaded when numbers are drawn.
Draw = Callable[["np.random.Generator", Any], Any]


class Generator:
    """A source of random numbers of its own: pass it as `generator`.

    >>> import tapegrad as tg
    >>> g = tg.Generator().manual_seed(0)
    >>> a = tg.rand(2, generator=g)
    >>> g = g.manual_seed(0); bool((a == tg.rand(2, generator=g)).all())
    True
    """

    __slots__ = ("_first", "_lock", "_source")

    def __init__(self, device: Any = None) -> None:
        check_device(device)
        self._source: np.random.Generator | None = None  # NumPy's module is loaded when needed
        self._first = 0
        self._lock = lock()

    @property
    def device(self) -> device:
        """Where it draws: on the CPU."""
        return CPU

    def manual_seed(self, seed: int) -> Generator:
        """Start anew from a seed."""
        self._first = _seed(seed, "Generator.manual_seed")
        with self._lock:
            self._source = np.random.default_rng(self._first % (1 << 64))
        return self

    def seed(self) -> int:
        """Start anew from a seed that the operating system gives, and say which."""
        self.manual_seed(int(np.random.SeedSequence().generate_state(1, np.uint64)[0]) >> 1)
        return self._first

    def initial_seed(self) -> int:
        """The seed from which it started."""
        if self._source is None:
            self.seed()
        return self._first

    def draw(self, draw: Draw, shape: Any) -> Any:
        """What a function draws of NumPy's generator."""
        source = self._started()
        with self._lock:
            return draw(source, shape)

    def _started(self) -> np.random.Generator:
        if self._source is None:
            self.seed()
        return cast(np.random.Generator, self._source)

    def state(self, new: dict[str, Any] | None = None) -> dict[str, Any]:
        """NumPy's state of the generator; a new one is set."""
        bits = self._started().bit_generator
        with self._lock:
            if new is not None:
                bits.state = new
            return dict(bits.state)

    def get_state(self) -> Tensor:
        """The state as a Tensor of bytes, for `set_state`."""
        inner = self.state()["state"]
        words = [inner["state"], inner["inc"]]
        rest = self.state()
        data = b"".join(int(n).to_bytes(16, "little") for n in words)
        data += bytes([rest["has_uint32"]]) + int(rest["uinteger"]).to_bytes(4, "little")
        return wrap(np.frombuffer(data, np.uint8).copy())

    def set_state(self, new_state: Any) -> Generator:
        """Go on from what `get_state` gave."""
        data = new_state._a.tobytes() if isinstance(new_state, Tensor) else b""
        if len(data) != 37 or new_state._a.dtype != np.uint8:
            raise TypeError("a state of random numbers is the Tensor that `get_state` gave")
        state = self.state()
        state["state"] = {
            "state": int.from_bytes(data[:16], "little"),
            "inc": int.from_bytes(data[16:32], "little"),
        }
        state["has_uint32"], state["uinteger"] = data[32], int.from_bytes(data[33:], "little")
        self.state(state)
        return self

    def clone_state(self) -> Generator:
        """Another generator that gives the same numbers from here on."""
        other = Generator()
        other.state(self.state())
        other._first = self._first
        return other


def _seed(seed: Any, name: str) -> int:
    number = seed.item() if isinstance(seed, Tensor) else seed
    if isinstance(number, bool) or not isinstance(number, (int, np.integer)):
        raise TypeError(f"`{name}`: a seed is an int, got {type(seed).__name__}")
    if not -(1 << 63) <= number < 1 << 64:
        raise RuntimeError(f"`{name}`: a seed is an int of at most 64 bits, got {number}")
    return int(number)


default_generator = Generator()


def manual_seed(seed: int) -> Generator:
    """Start the random numbers anew from a seed; they are NumPy's, not PyTorch's.

    >>> import tapegrad as tg
    >>> _ = tg.manual_seed(0); a = tg.rand(2); _ = tg.manual_seed(0); bool((a == tg.rand(2)).all())
    True
    """
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Start the random numbers anew from a seed that is none of ours, and say which.

    >>> import tapegrad as tg
    >>> tg.seed() == tg.initial_seed()
    True
    """
    return default_generator.seed()


def initial_seed() -> int:
    """The seed from which the random numbers started.

    >>> import tapegrad as tg
    >>> _ = tg.manual_seed(7); tg.initial_seed()
    7
    """
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The state of the random numbers as a Tensor of bytes.

    >>> import tapegrad as tg
    >>> state = tg.get_rng_state(); a = tg.rand(2)
    >>> tg.set_rng_state(state); bool((a == tg.rand(2)).all())
    True
    """
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Go on from what `get_rng_state` gave."""
    default_generator.set_state(new_state)


def _drawn(
    draw: Draw, shape: tuple[int, ...], dtype: Any, device: Any = None, generator: Any = None,
    requires_grad: bool = False, operands: Sequence[Any] = (),
) -> Tensor:  # fmt: skip
    """Random numbers; under a map they may have to differ from example to example.

    `operands` are the parameters of their distribution.
    """
    check_device(device)
    kind = get_default_dtype().numpy if dtype is None else to_numpy(dtype)
    many = _varying(operands) if current.tape.levels else ()
    source = default_generator if generator is None else generator
    if not isinstance(source, Generator):
        raise TypeError(
            f"`generator` is a tapegrad.Generator or None, got {type(generator).__name__}"
        )
    if many:
        shape = (*[at.size for at in many], *shape)
    drawn: Tensor = fresh(np.asarray(source.draw(draw, shape), kind))
    for at in many:
        drawn = at.batch(drawn)
    return drawn.requires_grad_() if requires_grad else drawn


def _varying(operands: Sequence[Any]) -> Sequence[Any]:
    """The maps under way whose examples get numbers of their own."""
    levels = current.tape.levels
    if any(at.traces for at in levels):
        raise RuntimeError(
            "random numbers were asked for inside `tapegrad.jit`: every call of the compiled "
            "program would get the same ones; draw them outside and pass them as an argument"
        )
    return [at for at in levels if at.size is not None and at.varies(operands)]


def _uniform(source: np.random.Generator, shape: Any) -> Any:
    return source.random(shape)


def _normal(source: np.random.Generator, shape: Any) -> Any:
    return source.standard_normal(shape)


def rand(
    *sizes: Any, size: Any = None, generator: Any = None, dtype: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Uniform numbers between 0 and 1.

    >>> import tapegrad as tg
    >>> tg.rand(2, 3).shape
    tapegrad.Size([2, 3])
    """
    shape = shape_of(sizes, size)
    return _drawn(_uniform, shape, dtype, device, generator, requires_grad)


def randn(
    *sizes: Any, size: Any = None, generator: Any = None, dtype: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Standard normal numbers.

    >>> import tapegrad as tg
    >>> tg.randn(2, 3).shape, tg.randn(size=(2,), generator=tg.Generator()).shape
    (tapegrad.Size([2, 3]), tapegrad.Size([2]))
    """
    shape = shape_of(sizes, size)
    return _drawn(_normal, shape, dtype, device, generator, requires_grad)


def randint(
    low: int = 0, high: Any = None, size: Any = None, *, generator: Any = None, dtype: Any = None,
    device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Whole numbers from `low` to `high` (left out).

    >>> import tapegrad as tg
    >>> bool((tg.randint(0, 5, (10,)) < 5).all())
    True
    """
    if size is None:
        if not np.iterable(high):
            raise TypeError("`randint` needs the argument `size`")
        low, high, size = 0, low, high
    elif high is None:
        low, high = 0, low
    if low >= high:
        raise RuntimeError(f"`randint` draws from `low` up to `high`, got {low} and {high}")
    kind = np.int64 if dtype is None else dtype
    shape = shape_of((), size)
    return _drawn(
        lambda source, shape: source.integers(low, high, shape), shape, kind, device, generator,
        requires_grad,
    )  # fmt: skip


def randperm(
    n: int, *, generator: Any = None, dtype: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """The whole numbers below `n` in an order of chance.

    >>> import tapegrad as tg
    >>> tg.randperm(4).sort()[0]
    tensor([0, 1, 2, 3])
    """

    def draw(source: np.random.Generator, shape: tuple[int, ...]) -> Any:
        rows = np.broadcast_to(np.arange(n), shape)
        return source.permuted(rows, axis=-1) if n else rows

    kind = np.int64 if dtype is None else dtype
    return _drawn(draw, (int(n),), kind, device, generator, requires_grad)


def normal(
    mean: Any = 0.0, std: Any = 1.0, size: Any = None, *, generator: Any = None, dtype: Any = None,
    device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Normal numbers with given means and standard deviations, one for each pair of these.

    >>> import tapegrad as tg
    >>> tg.normal(tg.zeros(3), 0.1).shape, tg.normal(0.0, 1.0, (2, 2)).shape
    (tapegrad.Size([3]), tapegrad.Size([2, 2]))
    """
    mean, std = (t.detach() if isinstance(t, Tensor) else t for t in (mean, std))
    tensors = [t for t in (mean, std) if isinstance(t, Tensor)]
    if not tensors and size is None:
        raise TypeError("`normal` of two numbers needs the argument `size`")
    known = type(std) is Tensor  # under a transform nobody can look
    if bool((std._a < 0).any()) if known else not isinstance(std, Tensor) and std < 0:
        raise RuntimeError("`normal`: the standard deviation must not be negative")
    if not tensors:
        shape = shape_of((), size)
    elif size is not None:
        raise TypeError("`normal` takes `size` with numbers only: Tensors have shapes of their own")
    else:
        shape = np.broadcast_shapes(*(t._a.shape for t in tensors))
        dtype = tensors[0].dtype if dtype is None else dtype
    drawn = _drawn(_normal, shape, dtype, device, generator, operands=tensors)
    shifted: Tensor = drawn * std + mean
    return shifted.requires_grad_() if requires_grad else shifted


@method
def bernoulli(
    input: Tensor, p: Tensor | float | None = None, *, generator: Generator | None = None
) -> Tensor:
    """0 or 1, with the probabilities of the input, or `p`.

    >>> import tapegrad as tg
    >>> tg.bernoulli(tg.tensor([0.0, 1.0]))
    tensor([0., 1.])
    """
    return _bernoulli(input, input if p is None else p, generator)


def _bernoulli(input: Any, p: Any, generator: Any) -> Tensor:
    chances = p.detach() if isinstance(p, Tensor) else p
    known = type(chances) is Tensor  # under a transform nobody can look
    if known and bool(((chances._a < 0) | (chances._a > 1)).any()):
        raise RuntimeError("`bernoulli`: probabilities must lie between 0 and 1")
    drawn = _drawn(_uniform, input._a.shape, None, None, generator, operands=(chances,))
    return (drawn < chances).to(input.dtype)


def rand_like(
    input: Tensor, *, generator: Any = None, dtype: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Uniform numbers in the shape and type of another Tensor.

    >>> import tapegrad as tg
    >>> tg.rand_like(tg.zeros(2)).shape
    tapegrad.Size([2])
    """
    kind = dtype or input.dtype
    return _drawn(_uniform, input._a.shape, kind, device, generator, requires_grad)


def randn_like(
    input: Tensor, *, generator: Any = None, dtype: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Standard normal numbers in the shape and type of another Tensor.

    >>> import tapegrad as tg
    >>> tg.randn_like(tg.zeros(2)).shape
    tapegrad.Size([2])
    """
    kind = dtype or input.dtype
    return _drawn(_normal, input._a.shape, kind, device, generator, requires_grad)


def randint_like(
    input: Tensor, low: int = 0, high: Any = None, *, dtype: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Whole numbers in the shape and type of another Tensor.

    >>> import tapegrad as tg
    >>> tg.randint_like(tg.zeros(2), 1, 2)
    tensor([1., 1.])
    """
    kind = dtype or input.dtype
    low, high = (0, low) if high is None else (low, high)
    return randint(
        low, high, input._a.shape, dtype=kind, device=device, requires_grad=requires_grad
    )


def _filled(self: Tensor, draw: Draw, generator: Any) -> Tensor:
    return self.copy_(_drawn(draw, self._a.shape, self.dtype, None, generator))


@method
def uniform_(
    self: Tensor, a: float = 0.0, b: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Uniform numbers from `a` to `b`, in place."""
    return _filled(self, lambda source, shape: source.uniform(a, b, shape), generator)


@method
def normal_(
    self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Normal numbers, in place."""
    return _filled(self, lambda source, shape: source.normal(mean, std, shape), generator)


@method
def exponential_(self: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Exponentially distributed numbers of the rate `lambd`, in place."""
    return _filled(self, lambda source, shape: source.exponential(1 / lambd, shape), generator)


@method
def random_(
    self: Tensor, low: int = 0, high: int | None = None, *, generator: Generator | None = None
) -> Tensor:
    """Whole numbers from `low` to `high` (left out), or below `low`, in place."""
    bounds = (0, low) if high is None else (low, high)
    if bounds == (0, 0):
        bounds = (0, 2 if self._a.dtype.kind == "b" else 1 << min(8 * self._a.itemsize - 1, 24))
    return _filled(self, lambda source, shape: source.integers(*bounds, shape), generator)


@method
def bernoulli_(
    self: Tensor, p: Tensor | float = 0.5, *, generator: Generator | None = None
) -> Tensor:
    """0 or 1 with the probability `p`, in place."""
    return self.copy_(_bernoulli(self, p, generator))

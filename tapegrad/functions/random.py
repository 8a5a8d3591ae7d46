"""Making Tensors from chance: the numbers are those of NumPy's generators."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from tapegrad.base.devices import CPU, check_device, device
from tapegrad.base.dtypes import get_default_dtype, to_numpy
from tapegrad.base.locks import lock
from tapegrad.functions.creation import shape_of
from tapegrad.tape.tape import current
from tapegrad.tensor import Tensor, fresh, wrap

# The class is named in a text: its module is loaded when numbers are drawn.
Draw = Callable[["np.random.Generator", Any], Any]


_BITS = {"e": 11, "f": 24, "d": 53}  # of the significands of floating-point types


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


def drawn(
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
    found: Tensor = fresh(np.asarray(source.draw(draw, shape), kind))
    for at in many:
        found = at.batch(found)
    return found.requires_grad_() if requires_grad else found


def drawn_for(
    draw: Callable[..., Any], parameters: Sequence[Tensor], shape: tuple[int, ...], dtype: Any,
    generator: Any = None,
) -> Tensor:  # fmt: skip
    """Numbers of distributions whose parameters are Tensors.

    `draw` gets NumPy's generator and the parameters as arrays, those of all examples under a map.
    """
    given = [t.detach() for t in parameters]
    for at in reversed(_varying(given) if current.tape.levels else ()):
        given = [at.all_of(t) for t in given]
    arrays = [t._a for t in given]
    return drawn(
        lambda source, shape: draw(source, *arrays), shape, dtype, None, generator,
        operands=[t.detach() for t in parameters],
    )  # fmt: skip


def _varying(operands: Sequence[Any]) -> Sequence[Any]:
    """The maps under way whose examples get numbers of their own."""
    levels = current.tape.levels
    if any(at.traces for at in levels):
        raise RuntimeError(
            "random numbers were asked for inside `tapegrad.jit`: every call of the compiled "
            "program would get the same ones; draw them outside and pass them as an argument"
        )
    return [at for at in levels if at.size is not None and at.varies(operands)]


def uniform(kind: np.dtype[Any]) -> Draw:
    """Uniform numbers from 0 up to 1, which is left out, in a type."""
    if kind.kind == "c":
        return _of_parts(uniform(_real(kind)))
    if kind.char == "e":  # rounded down: none becomes 1
        return lambda source, shape: source.integers(0, 1 << 11, shape) * 2.0**-11
    return lambda source, shape: source.random(shape, kind.type)


def standard_normal(kind: np.dtype[Any]) -> Draw:
    """Standard normal numbers in a type; the two parts of complex ones have half the variance."""
    if kind.kind == "c":
        half = _of_parts(standard_normal(_real(kind)))
        return lambda source, shape: half(source, shape) * kind.type(math.sqrt(0.5))
    if kind.char == "f":
        return lambda source, shape: source.standard_normal(shape, np.float32)
    return lambda source, shape: source.standard_normal(shape)


def _real(kind: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(f"f{kind.itemsize // 2}")


def _of_parts(draw: Draw) -> Draw:
    """Complex numbers whose two parts are drawn by themselves."""

    def both(source: np.random.Generator, shape: tuple[int, ...]) -> Any:
        parts = np.asarray(draw(source, (*shape, 2)))
        return parts.view(np.result_type(parts, np.complex64))[..., 0]

    return both


def check_continuous(kind: np.dtype[Any], name: str) -> None:
    """Refuse integers where the numbers are none."""
    if kind.kind not in "fc":
        raise NotImplementedError(
            f"`{name}` draws floating-point numbers, got {kind}: draw in another dtype, and "
            "convert what was drawn"
        )


def largest_whole(kind: np.dtype[Any]) -> int:
    """How far a type counts without a gap."""
    if kind.kind == "b":
        return 1
    return int(np.iinfo(kind).max) if kind.kind in "iu" else 1 << _BITS[kind.char]


def whole_numbers(low: Any, high: Any, kind: np.dtype[Any], name: str) -> Draw:
    """Whole numbers from `low` up to `high`, which is left out, that a type can hold."""
    first, end = (operator.index(n.item() if isinstance(n, Tensor) else n) for n in (low, high))
    if first >= end:
        raise RuntimeError(
            f"`{name}` draws from `low` up to `high`, which is left out, got {first} and {end}"
        )
    if kind.kind in "biu":
        least = int(np.iinfo(kind).min) if kind.kind == "i" else 0
        if first < least or end - 1 > largest_whole(kind):
            raise RuntimeError(
                f"`{name}`: {kind} holds {least} to {largest_whole(kind)}, got {first} up to {end}"
            )
    return lambda source, shape: source.integers(first, end, shape, np.int64)


def _kind(dtype: Any, name: str) -> np.dtype[Any]:
    kind: np.dtype[Any] = get_default_dtype().numpy if dtype is None else to_numpy(dtype)
    check_continuous(kind, name)
    return kind


def rand(
    *sizes: Any, size: Any = None, generator: Any = None, dtype: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Uniform numbers between 0 and 1.

    >>> import tapegrad as tg
    >>> tg.rand(2, 3).shape
    tapegrad.Size([2, 3])
    """
    kind = _kind(dtype, "rand")
    shape = shape_of(sizes, size)
    return drawn(uniform(kind), shape, kind, device, generator, requires_grad)


def randn(
    *sizes: Any, size: Any = None, generator: Any = None, dtype: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Standard normal numbers.

    >>> import tapegrad as tg
    >>> tg.randn(2, 3).shape, tg.randn(size=(2,), generator=tg.Generator()).shape
    (tapegrad.Size([2, 3]), tapegrad.Size([2]))
    """
    kind = _kind(dtype, "randn")
    shape = shape_of(sizes, size)
    return drawn(standard_normal(kind), shape, kind, device, generator, requires_grad)


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
    kind = np.dtype(np.int64) if dtype is None else to_numpy(dtype)
    draw = whole_numbers(low, high, kind, "randint")
    return drawn(draw, shape_of((), size), kind, device, generator, requires_grad)


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

    kind = np.dtype(np.int64) if dtype is None else to_numpy(dtype)
    if kind.kind in "bc":
        raise NotImplementedError(f"`randperm` numbers elements, which {kind} cannot")
    shape = shape_of((operator.index(n),))
    if n - 1 > largest_whole(kind):
        raise RuntimeError(f"`randperm`: {kind} cannot hold the numbers below {n}")
    return drawn(draw, shape, kind, device, generator, requires_grad)


def rand_like(
    input: Tensor, *, generator: Any = None, dtype: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Uniform numbers in the shape and type of another Tensor.

    >>> import tapegrad as tg
    >>> tg.rand_like(tg.zeros(2)).shape
    tapegrad.Size([2])
    """
    kind = _kind(dtype or input.dtype, "rand_like")
    return drawn(uniform(kind), input._a.shape, kind, device, generator, requires_grad)


def randn_like(
    input: Tensor, *, generator: Any = None, dtype: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Standard normal numbers in the shape and type of another Tensor.

    >>> import tapegrad as tg
    >>> tg.randn_like(tg.zeros(2)).shape
    tapegrad.Size([2])
    """
    kind = _kind(dtype or input.dtype, "randn_like")
    return drawn(standard_normal(kind), input._a.shape, kind, device, generator, requires_grad)


def randint_like(
    input: Tensor, low: int = 0, high: Any = None, *, generator: Any = None, dtype: Any = None,
    device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Whole numbers in the shape and type of another Tensor.

    >>> import tapegrad as tg
    >>> tg.randint_like(tg.zeros(2), 1, 2)
    tensor([1., 1.])
    """
    kind = dtype or input.dtype
    low, high = (0, low) if high is None else (low, high)
    return randint(
        low, high, input._a.shape, generator=generator, dtype=kind, device=device,
        requires_grad=requires_grad,
    )  # fmt: skip

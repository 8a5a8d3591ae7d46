"""Fourier transforms of many lines side by side, and of long lines in two stages.

The forms of `ops.fourier`: complex numbers along dimensions one after the other, of which the last
one is between real numbers and half the frequencies.  A long line is a matrix, whose columns are
transformed, multiplied by roots of unity, and then its rows (Bailey's algorithm).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, cached_property, lru_cache, partial
from itertools import product
from math import isqrt, prod
from typing import Any, NamedTuple

import numpy as np

from tapegrad.kernels.fourier_abi import (
    FINE_BITS,
    MIDDLE,
    OPERAND,
    RESULT,
    FourierForm,
    FourierPass,
    FourierStage,
    Lines,
)
from tapegrad.ops.fourier_forms import factor_of, factors, roots_of_unity
from tapegrad.parallel import large_elementwise
from tapegrad.parallel.large_elementwise import address

Shape = tuple[int, ...]
_DTYPES = {kind: np.dtype(kind) for kind in "df"}
GAP = 64  # bytes between planes: at a power of two apart they would displace each other
PLANES = 1 << 15  # bytes that four planes take, if the lines are short
ALIGNED = 64  # bytes of the longest vector
# The same where elements of a line lie on pages of their own, which are to be visited rarely.
FAR, PLANES_OF_PAGES = 2048, 1 << 20
WIDEST = 64  # lines of a block
LEAST_LINES = 4  # lines that a block is worth, where NumPy's loop over single ones would do
LONG = 4096  # elements of a line from which its stages are two
LONG_ALONE = 512  # the same of a single one


class Plan(NamedTuple):
    """What the loops are told of a transform: all stages at once, and each by itself."""

    words: np.ndarray  # a `FourierForm`
    stages: list[np.ndarray]  # the same
    units: list[int]  # of each stage
    keeps: list[Any]  # arrays that they name
    planes: int  # bytes
    room: int  # bytes of the planes and of an array between stages
    dtype: np.dtype[Any]  # of parts
    kind: np.dtype[Any]  # of the result
    shape: Shape


@cache
def kernel(name: str, *how: Any, **more: Any) -> int:
    """The address of a loop of `fourier_codegen`, which is imported where a plan is made."""
    from tapegrad.kernels import build
    from tapegrad.kernels.codegen import fourier_codegen as codegen

    return build.assemble(getattr(codegen, name)(*how, **more))


def loop(dtype: np.dtype[Any]) -> Any:
    """The loop of all forms, `fourier_loops.fourier`."""
    from tapegrad.kernels.codegen import kernel_table

    return kernel_table.loop("fourier", f"f{dtype.itemsize}", "fourier_loops")


def lanes_of(dtype: np.dtype[Any]) -> int:
    """The elements of the widest vector."""
    from tapegrad.kernels.codegen.vector_function import lanes

    return lanes(dtype)


@lru_cache(64)
def factors_between(n: int, dtype: np.dtype[Any]) -> list[np.ndarray]:
    """The factors of each pass: the powers of one element after those of the other."""
    found, left = [], n
    for radix in factors(n):
        rest = left // radix
        roots = roots_of_unity(-np.outer(np.arange(rest), np.arange(1, radix)), left)
        found.append(np.stack([roots.real, roots.imag], -1).astype(dtype))
        left = rest
    return found


@lru_cache(64)
def looked_up(whole: int, size: int, width: int, dtype: np.dtype[Any]) -> list[np.ndarray]:
    """Roots of unity: for the lines of a block, and a fine and a coarse table of all powers."""
    count = lanes_of(dtype)
    places = roots_of_unity(-np.outer(np.arange(size), np.arange(width)), whole)
    vectors = np.stack([places.real, places.imag]).reshape(2, -1, count).swapaxes(0, 1)
    powers = np.arange(1 << FINE_BITS), np.arange((whole >> FINE_BITS) + 1) << FINE_BITS
    table = roots_of_unity(-np.concatenate(powers), whole)
    found = vectors, np.stack([table.real, table.imag], -1)
    return [np.ascontiguousarray(x, dtype) for x in found]


class _Stages:
    """The stages of a transform: first which they are, and code is loaded when the plan is made."""

    def __init__(self, dtype: np.dtype[Any], inverse: bool, factor: float) -> None:
        self.dtype, self.inverse = dtype, inverse
        self.required: list[Callable[[], None]] = []
        self.whole: tuple[Shape, np.dtype[Any], int]  # the result, and numbers between stages
        self.scales = np.array([1.0, factor]).astype(dtype)
        self.keeps: list[Any] = [self.scales]
        self.words: list[list[int]] = []
        self.units: list[int] = []
        self.gap = 0

    def kept(self, array: np.ndarray) -> int:
        """The address of an array, for good."""
        self.keeps.append(array)
        return address(array)

    def add(self, *args: Any, **how: Any) -> None:
        """Add a stage, see `_build`."""
        self.required.append(partial(self._build, *args, **how))

    def _build(
        self, size: int, lines: int, source: dict[str, int], target: dict[str, int],
        whole: int = 0, last: bool = False, paired: str = "",
    ) -> None:  # fmt: skip
        """The transforms of so many lines; `paired` says that they are real at one end."""
        dtype, itemsize, lanes = self.dtype, self.dtype.itemsize, lanes_of(self.dtype)
        group = source["run"] if source["run"] >= lanes else lines
        twice = 2 if paired else 1
        far = max(source["step"], target["step"]) * itemsize >= FAR
        planes = PLANES_OF_PAGES if far else PLANES
        most = min(planes // (4 * size * itemsize), -(-group // twice) + lanes - 1, WIDEST)
        width = max(most // lanes, 1) * lanes
        blocks = -(-group // (width * twice))
        units = -(-lines // group) * blocks
        passes, rest = [], size
        radices, between = factors(size), factors_between(size, dtype)
        for k, radix in enumerate(radices):
            inner, rest = size // rest, rest // radix
            passes += FourierPass.words(
                kernel=kernel("butterfly_pass", radix, dtype, last=k == len(radices) - 1),
                factors=self.kept(between[k]), rest=rest, vectors=inner * width // lanes,
            )  # fmt: skip
        roots = dict.fromkeys(("roots", "places", "tables"), 0)
        if whole:
            places, tables = looked_up(whole, size, width, dtype)
            roots = {
                "roots": kernel("roots", dtype), "places": self.kept(places),
                "tables": self.kept(tables),
            }  # fmt: skip
        halves = {
            name: kernel("halves", dtype, stores=name == "parts") if paired == name else 0
            for name in ("joins", "parts")
        }
        self.words.append(FourierStage.words(
            source=self.lines(source, group, False), target=self.lines(target, group, True),
            size=size, lines=lines, group=group, blocks=blocks, units=units, width=width,
            lanes=lanes, paired=int(bool(paired)), inverse=int(self.inverse),
            scale=address(self.scales) + int(last) * itemsize, passes=len(radices),
            passes_at=self.kept(np.array(passes, np.int64)), whole=whole, **roots, **halves,
        ))  # fmt: skip
        self.units.append(units)
        self.gap = max(self.gap, max(size, (size // 2 + 1) * twice) * width * itemsize + GAP)

    def lines(self, given: dict[str, int], group: int, stores: bool) -> list[int]:
        """How lines lie, and what moves blocks of them."""
        whole, kernel_at, tile = given["run"] == group, 0, 0
        if whole and given["pace"] == 1:
            kernel_at = kernel("rows", self.dtype, given["parts"], stores=stores)
        elif whole and given["step"] == 1:
            kernel_at = kernel("tiles", self.dtype, given["parts"], stores=stores)
            tile = lanes_of(self.dtype)
        return Lines.words(**given, kernel=kernel_at, tile=tile)

    def along(
        self, shape: Shape, dim: int, source: int, target: int, last: bool, parts: int = 2,
        alone: bool = False,
    ) -> bool:  # fmt: skip
        """A transform along a dimension, maybe alone, to complex numbers; whether there is one."""
        n, after, lines = shape[dim], prod(shape[dim + 1 :]), prod(shape) // shape[dim]
        if n < (LONG if lines >= LEAST_LINES else LONG_ALONE):
            if alone and lines < LEAST_LINES:
                return False
            here = lines_of(shape, dim)
            where = {"array": source, "parts": parts, **here}, {"array": target, "parts": 2, **here}
            self.add(n, lines, *where, last=last)
            return True
        split = divided(n) if after == 1 and target != MIDDLE else None
        if split is None:
            return False
        rows, columns = split
        down = {"step": columns, "run": columns, "pace": 1, "jump": n}
        across = {"parts": 2, "step": rows, "run": rows, "pace": 1, "jump": n}
        middle = {"array": MIDDLE, "parts": 2}
        self.add(
            rows, lines * columns, {"array": source, "parts": parts, **down}, middle | down,
            whole=n,
        )  # fmt: skip
        middle |= {"step": 1, "run": rows, "pace": columns, "jump": n}
        self.add(columns, lines * rows, middle, {"array": target, **across}, last=last)
        return True

    def of(self, shape: Shape, kind: np.dtype[Any], between: int) -> _Stages:
        """The whole, with so many complex numbers between stages, if there are any."""
        self.whole = shape, kind, between
        return self

    @cached_property
    def plan(self) -> Plan:
        """What the loops are told."""
        shape, kind, between = self.whole
        self.words, self.units = [], []  # a try before may have ended half-way
        for build_one in self.required:
            build_one()
        planes, room, forms = 4 * self.gap + ALIGNED, 0, []
        if any(words[FourierStage.target + Lines.array] == MIDDLE for words in self.words):
            room = 2 * between * self.dtype.itemsize
        for words in ([word for stage in self.words for word in stage], *self.words):
            form = FourierForm.words(
                stages=len(words) // FourierStage.SIZE, gap=self.gap, middle=4 * self.gap,
                stages_at=self.kept(np.array(words, np.int64)),
            )  # fmt: skip
            forms.append(np.array(form, np.int64))
        return Plan(
            forms[0], forms[1:], self.units, self.keeps, planes, planes + room, self.dtype, kind,
            shape,
        )  # fmt: skip


def lines_of(shape: Shape, dim: int) -> dict[str, int]:
    """The lines along a dimension of an array in C order."""
    n, after = shape[dim], prod(shape[dim + 1 :])
    if after == 1:
        return {"step": 1, "run": prod(shape[:dim]), "pace": n, "jump": 0}
    return {"step": after, "run": after, "pace": 1, "jump": n * after}


@cache
def divided(n: int) -> tuple[int, int] | None:
    """A size as rows and columns, about as many; columns fill registers if they can."""
    pairs = [(n // k, k) for k in range(16, isqrt(n) + 1) if n % k == 0]
    pairs += [(k, j) for j, k in pairs]

    def cost(pair: tuple[int, int]) -> float:
        return max(pair) / min(pair) * (1.0 if pair[1] % 16 == 0 else 2.0)

    return min(pairs, key=cost, default=None)


@lru_cache(512)
def complex_plan(
    shape: Shape, dims: Shape, scale: str, forward: bool, dtype: np.dtype[Any], parts: int = 2
) -> _Stages | None:
    """The transform of an array of complex numbers, or of real ones, of one part."""
    if not served(shape, [shape[d] for d in dims]):
        return None
    stages = _Stages(dtype, not forward, factor_of(prod([shape[d] for d in dims]), scale))
    for k, dim in enumerate(reversed(dims)):
        source, first = (RESULT, 2) if k else (OPERAND, parts)
        if not stages.along(shape, dim, source, RESULT, k == len(dims) - 1, first, len(dims) == 1):
            return None
    return stages.of(shape, np.result_type(dtype, np.complex64), prod(shape))


def real_plan(shape: Shape, dims: Shape, scale: str, dtype: np.dtype[Any]) -> _Stages | None:
    """The whole transform of real numbers."""
    return complex_plan(shape, dims, scale, True, dtype, 1)


@lru_cache(512)
def to_half_plan(shape: Shape, dims: Shape, scale: str, dtype: np.dtype[Any]) -> _Stages | None:
    """Half the frequencies of real numbers."""
    *others, last = dims
    result = (*shape[:last], shape[last] // 2 + 1, *shape[last + 1 :])
    if not served(shape, [shape[d] for d in dims]) or not _worth(shape, dims):
        return None
    stages = _Stages(dtype, False, factor_of(prod([shape[d] for d in dims]), scale))
    stages.add(
        shape[last], prod(shape) // shape[last],
        {"array": OPERAND, "parts": 1, **lines_of(shape, last)},
        {"array": RESULT, "parts": 2, **lines_of(result, last)}, last=not others, paired="parts",
    )  # fmt: skip
    for k, dim in enumerate(others, 1):
        if not stages.along(result, dim, RESULT, RESULT, k == len(others)):
            return None
    return stages.of(result, np.result_type(dtype, np.complex64), prod(result))


@lru_cache(512)
def from_half_plan(
    shape: Shape, dims: Shape, scale: str, size: int, dtype: np.dtype[Any]
) -> _Stages | None:
    """So many real numbers of half their frequencies."""
    *others, last = dims
    result = (*shape[:last], size, *shape[last + 1 :])
    sizes = [*[shape[d] for d in others], size]
    if not served(result, sizes) or not _worth(result, dims):
        return None
    stages = _Stages(dtype, True, factor_of(prod(sizes), scale))
    for k, dim in enumerate(others):
        if not stages.along(shape, dim, MIDDLE if k else OPERAND, MIDDLE, False):
            return None
    stages.add(
        size, prod(shape) // shape[last],
        {"array": MIDDLE if others else OPERAND, "parts": 2, **lines_of(shape, last)},
        {"array": RESULT, "parts": 1, **lines_of(result, last)}, last=True, paired="joins",
    )  # fmt: skip
    return stages.of(result, dtype, prod(shape))


def _worth(shape: Shape, dims: Shape) -> bool:
    """Whether lines of real numbers, along the last of dimensions, are worth a block."""
    size = shape[dims[-1]]
    return size <= LONG and (len(dims) > 1 or LEAST_LINES * size <= prod(shape))


def served(shape: Shape, sizes: Sequence[int]) -> bool:
    """Whether there are passes for all sizes, of which there are some."""
    return bool(sizes) and bool(prod(shape)) and all(map(factors, sizes))


_MAKERS: dict[str, Callable[..., _Stages | None]] = {
    "c2c": complex_plan, "half": to_half_plan, "r2c": real_plan, "c2r": from_half_plan
}  # fmt: skip


def form_of(op: Any, x: np.ndarray, params: dict[str, Any]) -> tuple[Plan | None, Any]:
    """How an operation, whose forward names it, is computed, or None; and the loop."""
    how = dict(params)
    name = "half" if how.pop("half", False) else op.forward.loop.split(".")[1]
    return _form(name, x, *how.values())


def _form(name: str, x: Any, *how: Any) -> tuple[Plan | None, Any]:
    dtype = _DTYPES.get(x.dtype.char.lower())
    if dtype is None or not x.dtype.isnative or (name == "c2r" and x.dtype.kind != "c"):
        return None, None
    parts = {"parts": 1} if name == "c2c" and x.dtype.kind != "c" else {}
    stages = _MAKERS[name](x.shape, *how, dtype, **parts)
    if stages is None:
        return None, None
    run = loop(dtype)  # before much else is compiled
    return stages.plan, run


def _computed(name: str, x: Any, *how: Any) -> Any:
    found, run = _form(name, x, *how)
    if found is None:
        return None
    call, x, y = run.call, np.ascontiguousarray(x), np.empty(found.shape, found.kind)
    ends = address(x), address(y)
    if large_elementwise.get_num_threads() == 1 or not large_elementwise.divides(y.size, 1):
        room = np.empty(found.room, np.uint8)
        call(address(found.words), ends[0], 0, ends[1], address(room), 0, found.units[0], 0)
        return y
    middle = np.empty(found.room - found.planes, np.uint8)
    for words, units in zip(found.stages, found.units, strict=True):
        given = address(words), ends[0], address(middle), ends[1]

        def work(start: int, stop: int, given: Any = given) -> None:
            room = np.empty(found.planes, np.uint8)
            call(*given, address(room), start, stop, 0)

        large_elementwise.split(units, work, y.size // units)
    return y


def c2c(x: Any, *, dims: Shape, scale: str, forward: bool) -> Any:
    """The transform of complex numbers, or None."""
    return _computed("c2c", x, dims, scale, forward)


def r2c(x: Any, *, dims: Shape, scale: str, half: bool) -> Any:
    """The transform of real numbers, or the half that says all; or None."""
    return _computed("half" if half else "r2c", x, dims, scale)


def c2r(x: Any, *, dims: Shape, scale: str, size: int) -> Any:
    """The real numbers of half their frequencies, or None."""
    return _computed("c2r", x, dims, scale, size)


def compile_ahead(dtype: np.dtype[Any]) -> None:
    """Compile the loops of sizes without large factors."""
    loop(dtype)
    kernel("roots", dtype)
    for radix, last in product((2, 3, 4, 5), (False, True)):
        kernel("butterfly_pass", radix, dtype, last=last)
    for stores in (False, True):
        kernel("halves", dtype, stores=stores)
        for name, parts in product(("rows", "tiles"), (1, 2)):
            kernel(name, dtype, parts, stores=stores)

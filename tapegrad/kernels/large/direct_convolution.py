"""Convolutions, their transposes and gradients of filters, without a matrix of patches.

Images are packed row by row with zeros around them, one plane for every remainder of places by the
stride, so that what a tap reads lies equally far behind every position.  The positions of some
images follow each other without a break: what is computed between rows and images is not kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tapegrad.kernels import build
from tapegrad.kernels.codegen import convolution_codegen as codegen
from tapegrad.kernels.codegen import kernel_table
from tapegrad.kernels.convolution_abi import (
    ADJOINT,
    CONVOLVE,
    CORRELATE,
    AdjointForm,
    Convolution,
    Correlation,
    Form,
    Packing,
    Pass,
)
from tapegrad.kernels.sweep.sweep_abi import ROOM as ARENA
from tapegrad.kernels.sweep.sweep_abi import SMALL
from tapegrad.ops.core import Spec
from tapegrad.parallel import large_elementwise
from tapegrad.parallel.large_elementwise import address

Sizes = tuple[int, ...]
POSITIONS = 2048  # of small images that are taken together
ROOM = 1 << 17  # elements that they may take, packed
SPARSE = 4  # positions for one that is wanted, at most


class Lattice(NamedTuple):
    """Positions of a packed plane, by dimension, and where those of images lie among them."""

    extent: Sizes
    beyond: int = 0  # positions behind the plane that taps read

    @property
    def pitch(self) -> Sizes:
        """By how many positions each dimension moves."""
        return tuple([prod(self.extent[d + 1 :]) for d in range(len(self.extent))])

    @property
    def plane(self) -> int:
        """How many positions there are."""
        return prod(self.extent)

    def runs(self, axes: list[tuple[int, int, int, int]], size: Sizes, begin: int = 0) -> list[Any]:
        """Words of runs: by dimension the first position, its place, their step, and how many."""
        pitch, places = self.pitch, Lattice(size).pitch
        found = []
        for at in product(*[range(count) for *_, count in axes[:-1]], (0,)):
            start, place = begin, 0
            for (first, there, step, _), i, p, q in zip(axes, at, pitch, places, strict=True):
                start += (first + i) * p
                place += (there + i * step) * q
            found += [start, place, axes[-1][3]]
        return found if axes[-1][3] else []


def along(first: int, last: int, step: int, shift: int, size: int) -> tuple[int, int, int, int]:
    """The positions u from first to last whose place `step * u + shift` is one of an image."""
    begin = max(first, -(shift // step))
    end = min(last, (size - 1 - shift) // step)
    return begin, step * begin + shift, step, max(end - begin + 1, 0)


def tight(
    results: Sizes, reach: Sizes, held: Sequence[Sequence[tuple[int, int, int, int]]]
) -> Lattice:
    """As few positions as there can be for so many results, which read that far behind themselves.

    What the planes have `held` begins behind some zeros, along each dimension: these are as well
    the zeros behind the row before.
    """
    extent = []
    for n, e, planes in zip(results, reach, held, strict=True):
        places = [(begin, begin + count) for begin, _, _, count in planes if count] or [(0, 0)]
        before, end = min(p[0] for p in places), max(p[1] for p in places)
        extent.append(max(n, n + e - before, min(n + e, end)))
    lattice = Lattice(tuple(extent))
    last = sum((n - 1 + e) * p for n, e, p in zip(results, reach, lattice.pitch, strict=True))
    return lattice._replace(beyond=max(last + 1 - lattice.plane, 0))


class Geometry(NamedTuple):
    """Images and outputs of a convolution, whichever of the three is computed."""

    dtype: str
    images: int
    inputs: int  # channels of a group
    outputs: int
    size: Sizes
    kernel: Sizes
    places: Sizes
    stride: Sizes
    padding: Sizes
    dilation: Sizes
    groups: int

    def taps(self) -> list[list[tuple[int, int]]]:
        """By dimension, for each tap: how many positions behind it reads, in which plane."""
        return [
            [divmod(d * k, s) for k in range(n)]
            for d, n, s in zip(self.dilation, self.kernel, self.stride, strict=True)
        ]

    def phases(self) -> list[tuple[int, ...]]:
        """The planes that taps read."""
        return list(product(*[sorted({r for _, r in taps}) for taps in self.taps()]))

    def together(self, channels: int, plane: int) -> int:
        """How many images are packed together."""
        least = -(-POSITIONS // plane)
        return max(1, min(self.images, least, ROOM // (channels * plane)))


class Plan(NamedTuple):
    """What the loops are told of a form, the arrays that this names, and how it may be divided."""

    words: np.ndarray  # a `Form`
    keeps: list[np.ndarray]
    shape: Sizes  # of the result
    room: int  # elements
    units: int
    work: int  # elements of one

    @property
    def adds(self) -> bool:
        """Whether each unit adds to all of the result."""
        return bool(self.words[Form.loop] == CORRELATE)


def _kept(keeps: list[np.ndarray], words: Any) -> int:
    keeps.append(np.array(words, np.int64))
    return address(keeps[-1])


def _packing(keeps: list[np.ndarray], itemsize: int, runs: list[int], **lengths: int) -> list[int]:
    return Packing.words(
        itemsize=itemsize, runs=len(runs) // 3, runs_at=_kept(keeps, runs), **lengths
    )


def _images(of: Geometry, together: int, lattice: Lattice, keeps: list[np.ndarray]) -> list[int]:
    """How the images of a convolution are packed: see `of.phases`."""
    phases, runs = of.phases(), []
    for k, phase in enumerate(phases):
        axes = [
            along(0, extent - 1, s, r - p, size)
            for extent, s, r, p, size in zip(
                lattice.extent, of.stride, phase, of.padding, of.size, strict=True
            )
        ]
        runs += lattice.runs(axes, of.size, k * together * lattice.plane)
    return _packing(
        keeps, int(of.dtype[1]), runs, step=of.stride[-1], plane=prod(of.size),
        whole=prod(of.size) * of.inputs * of.groups, image=lattice.plane,
        channel=len(phases) * together * lattice.plane,
    )  # fmt: skip


def _outputs(of: Geometry, lattice: Lattice, keeps: list[np.ndarray], channel: int) -> list[int]:
    """How outputs of a convolution lie among the positions."""
    axes = [(0, 0, 1, n) for n in of.places]
    return _packing(
        keeps, int(of.dtype[1]), lattice.runs(axes, of.places), step=1, plane=prod(of.places),
        whole=prod(of.places) * of.outputs * of.groups, image=lattice.plane, channel=channel,
    )  # fmt: skip


def _forward_lattice(of: Geometry) -> Lattice:
    reach, held = [], []
    for taps, places, s, p, size in zip(
        of.taps(), of.places, of.stride, of.padding, of.size, strict=True
    ):
        reach.append(max(e for e, _ in taps))
        held.append([along(0, places + reach[-1] - 1, s, r - p, size) for _, r in taps])
    return tight(of.places, tuple(reach), held)


def _offsets(of: Geometry, together: int, lattice: Lattice) -> np.ndarray:
    """How many elements behind a position each tap of each channel reads."""
    phases = {phase: k for k, phase in enumerate(of.phases())}
    taps = []
    for tap in product(*of.taps()):
        behind = sum(e * p for (e, _), p in zip(tap, lattice.pitch, strict=True))
        taps.append(phases[tuple([r for _, r in tap])] * together * lattice.plane + behind)
    channels = np.arange(of.inputs) * (len(phases) * together * lattice.plane)
    return (channels[:, None] + np.array(taps)).ravel()


def forward_plan(of: Geometry, threads: int) -> Plan | None:
    """How a convolution is computed."""
    lattice = _forward_lattice(of)
    together = of.together(of.inputs * len(of.phases()), lattice.plane)
    if lattice.plane > SPARSE * prod(of.places):
        return None
    keeps: list[np.ndarray] = []
    offsets = _offsets(of, together, lattice)
    passes = [(_outputs(of, lattice, keeps, 0), offsets, np.arange(len(offsets)))]
    packing = _images(of, together, lattice, keeps)
    taps = prod(of.kernel) * of.inputs
    return _convolution(
        of, (of.images, of.outputs * of.groups, *of.places), together, lattice, packing, passes,
        keeps, of.inputs, of.outputs, (taps, taps * of.outputs), threads,
    )  # fmt: skip


def transposed_plan(of: Geometry, threads: int) -> Plan | None:
    """How the transpose of a convolution is computed: each remainder of places by itself."""
    itemsize, dims = int(of.dtype[1]), range(len(of.size))
    taps = of.taps()
    reach = tuple([max(e for e, _ in here) for here in taps])
    # The place of position q is stride * (q + first) + remainder - padding.
    first = [p // s for p, s in zip(of.padding, of.stride, strict=True)]
    counts = tuple([
        (n - 1 + p) // s - a + 1
        for n, p, s, a in zip(of.size, of.padding, of.stride, first, strict=True)
    ])  # fmt: skip
    held = [along(0, counts[d] + reach[d] - 1, 1, first[d] - reach[d], of.places[d]) for d in dims]
    lattice = tight(counts, reach, [[h] for h in held])
    together = of.together(of.outputs, lattice.plane)
    if lattice.plane > SPARSE * prod([-(-n // s) for n, s in zip(of.size, of.stride, strict=True)]):
        return None
    keeps: list[np.ndarray] = []
    axes = [along(0, lattice.extent[d] - 1, 1, first[d] - reach[d], of.places[d]) for d in dims]
    channel = together * lattice.plane
    packing = _packing(
        keeps, itemsize, lattice.runs(axes, of.places), step=1, plane=prod(of.places),
        whole=prod(of.places) * of.outputs * of.groups, image=lattice.plane, channel=channel,
    )  # fmt: skip
    passes = []
    flat = np.arange(prod(of.kernel)).reshape(of.kernel)
    for phase in product(*[range(s) for s in of.stride]):
        chosen = [[k for k, (_, r) in enumerate(taps[d]) if r == phase[d]] for d in dims]
        shifts = [of.stride[d] * first[d] + phase[d] - of.padding[d] for d in dims]
        axes = [along(0, counts[d] - 1, of.stride[d], shifts[d], of.size[d]) for d in dims]
        results = _packing(
            keeps, itemsize, lattice.runs(axes, of.size), step=of.stride[-1], plane=prod(of.size),
            whole=prod(of.size) * of.inputs * of.groups, image=lattice.plane, channel=0,
        )  # fmt: skip
        behind = [
            sum((reach[d] - taps[d][k][0]) * lattice.pitch[d] for d, k in enumerate(tap))
            for tap in product(*chosen)
        ]
        weights = flat[np.ix_(*chosen)].ravel() if behind else flat.ravel()[:0]
        outputs = np.arange(of.outputs)[:, None]
        filters = outputs * (of.inputs * flat.size) + weights
        offsets = outputs * channel + np.array(behind, np.int64)
        passes.append((results, offsets.ravel(), filters.ravel()))
    steps = flat.size, flat.size * of.inputs * of.outputs
    return _convolution(
        of, (of.images, of.inputs * of.groups, *of.size), together, lattice, packing, passes, keeps,
        of.outputs, of.inputs, steps, threads,
    )  # fmt: skip


def _convolution(
    of: Geometry, shape: Sizes, together: int, lattice: Lattice, packing: list[int],
    passes: list[Any], keeps: list[np.ndarray], inputs: int, outputs: int, steps: tuple[int, int],
    threads: int,
) -> Plan | None:  # fmt: skip
    if any(not len(offsets) for _, offsets, _ in passes):
        return None  # places that no tap reads
    kind = codegen.vectors(of.dtype)
    rows, width = codegen.tile_shape(outputs, kind)
    blocks, tile, itemsize = -(-outputs // rows), width * kind.lanes, kind.itemsize
    words: list[int] = []
    for results, offsets, weights in passes:
        words += Pass.words(
            results=results, depth=len(offsets), offsets=_kept(keeps, offsets * itemsize),
            weights=_kept(keeps, weights),
        )  # fmt: skip
    chunks = -(-of.images // together)
    parts = max(1, min(threads // chunks, blocks))
    work = Convolution.words(
        images=of.images, together=together, channel_groups=of.groups, inputs=inputs,
        outputs=outputs, packing=packing, passes=len(passes), passes_at=_kept(keeps, words),
        filter=steps[0], filter_group=steps[1], parts=parts,
        kernel=tile_kernel(of.dtype, rows, width), rows=rows, tile=tile,
    )  # fmt: skip
    depth = sum(len(offsets) for _, offsets, _ in passes)
    packed = inputs * packing[Packing.channel] + lattice.beyond + tile
    room = of.groups * blocks * rows * depth + rows * tile + packed
    return _plan(
        of, keeps, work, CONVOLVE, shape, (room, 0, 0), chunks * parts,
        depth * outputs * together * lattice.plane // (4 * parts),
    )  # fmt: skip


def correlation_plan(of: Geometry, threads: int) -> Plan | None:
    """How the gradient of the filters is computed."""
    lattice = _forward_lattice(of)
    phases = len(of.phases())
    together = of.together(max(of.inputs * phases, of.outputs), lattice.plane)
    if lattice.plane > SPARSE * prod(of.places):
        return None
    kind, keeps = codegen.vectors(of.dtype), []  # type: tuple[codegen.Vectors, list[np.ndarray]]
    rows, columns = codegen.block_shape(of.outputs, kind)
    offsets = _offsets(of, together, lattice) * kind.itemsize
    row_blocks, column_blocks = -(-of.outputs // rows), -(-len(offsets) // columns)
    more = column_blocks * columns - len(offsets)
    channel = together * lattice.plane + kind.lanes
    packing = _images(of, together, lattice, keeps)
    end = sum((p - 1) * q for p, q in zip(of.places, lattice.pitch, strict=True)) + 1
    work = Correlation.words(
        images=of.images, together=together, channel_groups=of.groups, inputs=of.inputs,
        outputs=of.outputs, packing=packing, results=_outputs(of, lattice, keeps, channel), end=end,
        depth=len(offsets), offsets=_kept(keeps, np.append(offsets, np.zeros(more, np.int64))),
        kernel=block_kernel(of.dtype, rows, columns), rows=rows, row_blocks=row_blocks,
        columns=columns, column_blocks=column_blocks, lanes=kind.lanes,
    )  # fmt: skip
    weights = row_blocks * rows * channel
    packed = of.inputs * packing[Packing.channel] + lattice.beyond + kind.lanes
    sums = of.groups * row_blocks * rows * column_blocks * columns
    return _plan(
        of, keeps, work, CORRELATE, (of.outputs * of.groups, of.inputs, *of.kernel),
        (weights + packed + sums, weights, weights + packed), -(-of.images // together),
        len(offsets) * of.outputs * together * lattice.plane // 4,
    )  # fmt: skip


def _plan(
    of: Geometry, keeps: list[np.ndarray], work: list[int], loop: int, shape: Sizes,
    places: tuple[int, int, int], units: int, each: int,
) -> Plan:  # fmt: skip
    room, packed, sums = places
    room += room % 2  # whole words
    words = Form.words(
        loop=loop, work=_kept(keeps, work), units=units, itemsize=int(of.dtype[1]),
        size=prod(shape), room=room, packed=packed, sums=sums,
    )  # fmt: skip
    return Plan(np.array(words, np.int64), keeps, shape, room, units, each)


@cache
def tile_kernel(dtype: str, rows: int, width: int) -> int:
    """The address of the loop of a tile."""
    return build.assemble(codegen.tile(codegen.vectors(dtype), rows, width))


@cache
def block_kernel(dtype: str, rows: int, columns: int) -> int:
    """The address of the loop of a block of a correlation."""
    return build.assemble(codegen.correlation(codegen.vectors(dtype), rows, columns))


# -- the three forms -------------------------------------------------------------------------------


@lru_cache(1024)
def plan(
    form: str, a: Sizes, b: Sizes, size: Sizes, at: Any, dtype: str, threads: int
) -> Plan | None:
    """How a form of arrays of two shapes is computed, or None."""
    if not prod((*a, *b, *size)):
        return None
    if form == "convolution":
        x, v, kernel = a, (a[0], b[0], *size), b[2:]
    elif form == "transposed":
        x, v, kernel = (a[0], b[1] * at[3], *size), a, b[2:]
    else:
        x, v, kernel = b, a, size
    stride, padding, dilation, groups = at
    of = Geometry(
        "f8" if dtype == "d" else "f4", x[0], x[1] // groups, v[1] // groups, x[2:], kernel, v[2:],
        stride, padding, dilation, groups,
    )  # fmt: skip
    return _PLANS[form](of, threads)


_PLANS = {
    "convolution": forward_plan, "transposed": transposed_plan, "correlation": correlation_plan
}  # fmt: skip


def plan_of(op: Any, *given: Any) -> Plan | None:
    """The plan of an operation, whose forward names the form."""
    return plan(op.forward.loop.split(".")[1], *given)


def loop() -> Any:
    """The loop of all forms, `convolution_loops.form`."""
    return kernel_table.loop("form", source="convolution_loops")


def _computed(form: str, a: Any, b: Any, size: Sizes, at: Any) -> Any:
    kind = a.dtype
    if kind.char not in "df" or b.dtype is not kind or not kind.isnative:
        return None
    threads = large_elementwise.get_num_threads()
    found = plan(form, a.shape, b.shape, size, at, kind.char, threads)
    if found is None:
        return None
    words, call = address(found.words), loop().call
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    first, second, y = address(a), address(b), np.empty(found.shape, kind)
    parts = [y]

    def work(start: int, stop: int) -> None:
        room = np.empty(found.room, kind)
        out = y
        if found.adds and stop - start < found.units:
            out = np.empty(found.shape, kind)
            parts.append(out)
        call(words, first, second, address(out), address(room), start, stop, 0)

    large_elementwise.split(found.units, work, found.work)
    return y if len(parts) == 1 else np.add.reduce(parts[1:])


def convolution(x: Any, w: Any, places: Sizes, at: Any) -> Any:
    """The outputs of images and filters, or None."""
    return _computed("convolution", x, w, places, at)


def transposed(v: Any, w: Any, size: Sizes, at: Any) -> Any:
    """The images that outputs are spread over, or None."""
    return _computed("transposed", v, w, size, at)


def correlation(v: Any, x: Any, kernel: Sizes, at: Any) -> Any:
    """The sums for every filter, or None."""
    return _computed("correlation", v, x, kernel, at)


# -- their adjoints in the compiled sweep ----------------------------------------------------------

PLANNED = 4096  # rows of words for records, which are kept for good
_adjoints: list[Any] = []


class _Operand(NamedTuple):
    """An operand of a form: what a rule makes of it is read off, and not computed."""

    number: int
    shape: Sizes

    def _tapegrad_run(self, op: Any, args: Any, params: dict[str, Any]) -> Any:
        return op, args, params


def adjoints(op: Any, result: np.ndarray, arrays: Sequence[np.ndarray], at: Any) -> int:
    """Where the forms stand that the adjoints of a form's operands are; 0: the sweep has no room.

    The operation's rule says which.
    """
    values: dict[str, Any] = {"g": _Operand(ADJOINT, result.shape), "geometry": at}
    for k, (name, a) in enumerate(zip(op.inputs, arrays, strict=True)):
        values[name], values[f"{name}_spec"] = _Operand(k, a.shape), Spec(a.shape, a.dtype)
    plans, words, nbytes = [], [], []
    for formula in op.formulas:
        row, (a, b), params = formula.function(*[values[name] for name in formula.reads])
        found = plan_of(row, a.shape, b.shape, params["size"], at, result.dtype.char, 1)
        if found is None or max(prod(a.shape), prod(b.shape), prod(found.shape)) > SMALL:
            return 0
        plans.append(found)
        words += AdjointForm.words(form=address(found.words), first=a.number, second=b.number)
        nbytes += [prod(found.shape) * result.itemsize, found.room * result.itemsize]
    if sum(1 << n.bit_length() for n in nbytes) > ARENA or len(_adjoints) == PLANNED:
        return 0
    row = np.array(words, np.int64)
    _adjoints.append((row, plans))
    return address(row)

"""A loop nest over a domain, with fused operations as its body.

A nest loads elements of its operands through windows, computes, and stores or reduces results.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import prod
from typing import NamedTuple

import numpy as np

from tapegrad.compiler.ir.buffers import Place
from tapegrad.compiler.ir.graph import Node
from tapegrad.compiler.llvm.scalar_ops import supports
from tapegrad.kernels.codegen.rule_codegen import scalar_form
from tapegrad.ops import reduce as r
from tapegrad.ops.core import ELEMENTWISE, table
from tapegrad.tape.shape_table import Shape

# dtypes that loops compute with: in memory, and as a value.
MEMORY = {"float64": "double", "float32": "float", "int64": "i64", "int32": "i32", "bool": "i8"}
REGISTER = {**MEMORY, "bool": "i1"}
# The mode of a store: overwrite, accumulate, or the reduction.
SET, ADD = "set", "accumulate"
SUM, PROD, MAX, MIN = [op.reduces for op in (r.sum, r.prod, r.amax, r.amin)]


class Term(NamedTuple):
    """One operation of a nest: operands are terms (>= 0) or loads (~k)."""

    name: str
    args: tuple[int, ...]
    dtype: np.dtype
    constant: object = None


class Store(NamedTuple):
    """A store of a nest: a term, the window (strides over the domain), and the mode."""

    source: int
    place: Place
    mode: str


Gathers = tuple[tuple[int, int, int], ...]  # the load of an index, its stride, the extent


class Nest(NamedTuple):
    """A loop nest: windows (strides over the domain), operations and stores.

    `gathers` lists, for each load and then each store, the loaded indices added to it.
    """

    domain: Shape
    loads: tuple[Place, ...]
    terms: tuple[Term, ...]
    stores: tuple[Store, ...]
    gathers: tuple[Gathers, ...] = ()


def nest_of(
    domain: Shape, loads: list[Place], terms: tuple[Term, ...], stores: tuple[Store, ...]
) -> Nest:
    """A nest whose windows may have gathers: their index arrays become loads."""
    places = [*loads, *[s.place for s in stores]]
    if not any(p.gathers for p in places):
        return Nest(domain, tuple(loads), terms, stores)
    where: dict[tuple[int, int, Shape], int] = {}
    more = list(loads)
    gathers = []
    for place in places:
        found = []
        for gather in place.gathers:
            key = (id(gather.index.buffer), gather.index.offset, gather.index.strides)
            if key not in where:
                where[key] = len(more)
                more.append(gather.index)
            found.append((where[key], gather.stride, gather.extent))
        gathers.append(tuple(found))
    gathers[len(loads) : len(loads)] = [()] * (len(more) - len(loads))
    plain = [p._replace(gathers=()) for p in more]
    bare = tuple([s._replace(place=s.place._replace(gathers=())) for s in stores])
    return Nest(domain, tuple(plain), terms, bare, tuple(gathers))


@cache
def memory(dtype: np.dtype) -> str:
    """The LLVM type of an element in memory; of dtypes that are only moved, one of its size."""
    return MEMORY.get(dtype.name, f"i{8 * dtype.itemsize}")


@cache
def register(dtype: np.dtype) -> str:
    """The LLVM type of a value."""
    return REGISTER[dtype.name]


@cache
def supported(dtype: np.dtype) -> bool:
    """Whether loops compute with a dtype."""
    return dtype.name in MEMORY and dtype.isnative


def computes(node: Node, operands: Sequence[Node]) -> bool:
    """Whether loops compute an operation element by element."""
    op = node.op
    return op is not None and _computed(op.name, op.kind, node.dtype, *[x.dtype for x in operands])


@cache
def _computed(name: str, kind: str, dtype: np.dtype, *dtypes: np.dtype) -> bool:
    if not all(map(supported, (dtype, *dtypes))):
        return False
    if kind is not ELEMENTWISE and not scalar_form(name):
        return name == "to"
    return supports(name, [register(d) for d in dtypes])


def start_value(mode: str, dtype: np.dtype) -> object:
    """The neutral element of a reduction."""
    neutral = 0.0 if mode == ADD else table[mode].neutral
    if dtype.kind == "f" or np.isfinite(neutral):
        return dtype.type(neutral)
    bounds = np.iinfo(dtype)
    return bounds.min if neutral < 0 else bounds.max


def collapsed(nest: Nest) -> Nest:
    """Collapse adjacent dimensions wherever every window allows it."""
    rank = len(nest.domain)
    if rank == 1 and nest.domain != (1,):
        return nest
    windows = [*nest.loads, *[s.place for s in nest.stores]]
    keep = [d for d in range(rank) if nest.domain[d] != 1]
    runs: list[list[int]] = []
    for d in keep:
        if runs and all(w.strides[runs[-1][-1]] == w.strides[d] * nest.domain[d] for w in windows):
            runs[-1].append(d)
        else:
            runs.append([d])
    shape = tuple([prod([nest.domain[d] for d in run]) for run in runs])

    def turned(w: Place) -> Place:
        return w._replace(shape=shape, strides=tuple([w.strides[run[-1]] for run in runs]))

    return Nest(
        shape,
        tuple([turned(w) for w in nest.loads]),
        nest.terms,
        tuple([s._replace(place=turned(s.place)) for s in nest.stores]),
        nest.gathers,
    )

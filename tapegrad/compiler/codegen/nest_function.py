"""Write the function of one loop nest.

It is a function over pointers, so that equal nests in a program share one.  `noalias` on the
pointers lets LLVM vectorise: except for scans, a nest never writes what it reads.

Where an operation has a fast form that serves most arguments, the loop that uses it notes others,
and all is then done again in the form that serves all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tapegrad.compiler.codegen.loop_order import loop_order_of
from tapegrad.compiler.codegen.nest_writer import NestWriter, Tiling, plain_order
from tapegrad.compiler.codegen.vector_lines import COLD
from tapegrad.compiler.ir.loop_nest import SET, Nest, collapsed, memory
from tapegrad.compiler.llvm.widen import has_vector_form


class Written(NamedTuple):
    """A nest as text; `{name}` stands for the function's name."""

    text: str
    functions: frozenset[tuple[int, str]]  # that are called, with the width of their vectors
    declared: frozenset[str] = frozenset()
    ready: bool = False  # whether it needs none of LLVM's passes

    @property
    def used(self) -> set[str]:
        """The functions that are called on single elements."""
        return {name for width, name in self.functions if width == 1}


def written(
    nest: Nest, part: bool = False, tiles: Tiling | None = None, redo: Tiling | None = None
) -> Written:
    """The function of a nest, or of a part of its outermost loop, for LLVM to optimise.

    The part goes from `%from` to `%to`.  With `tiles` the nest is written in these; with `redo`
    fast forms are used wherever there are some, and all is done again in tiles.
    """
    nest = collapsed(nest)
    instruction = None if part else memory_intrinsic(nest)
    if instruction:
        text = "\n".join([_heading(nest, part, "internal"), instruction, "ret void", "}"])
        return Written(text, frozenset())
    guarded = bool(nest.domain) and tiles is None
    first = NestWriter(nest, plain_order(nest), guarded, part, tiles)
    first.uniform.short = "none" if redo is None else "all"

    def again() -> NestWriter:
        second = NestWriter(nest, plain_order(nest), False, part, redo)
        second.hint = COLD if redo is not None else ""
        return second

    return _function(nest, part, first, again, "internal", "#1" if redo is None else "#4")


def vectorised(nest: Nest, part: bool) -> Written | None:
    """The function of a nest with vectors, which is ready; None if there is none."""
    nest = collapsed(nest)
    loops = loop_order_of(nest, part)
    if loops is None:
        return None
    first = NestWriter(nest, loops, True, part)

    def again() -> NestWriter:
        return NestWriter(nest, plain_order(nest), False, part)

    found = _function(nest, part, first, again, "hidden", "#1")
    if any(width > 1 and not has_vector_form(name) for width, name in found.functions):
        return None
    return found._replace(ready=True)


def _function(
    nest: Nest, part: bool, first: NestWriter, again: Callable[[], NestWriter], linkage: str,
    attribute: str,
) -> Written:  # fmt: skip
    """The function that one writer writes, and another one where arguments are out of a domain."""
    heading = _heading(nest, part, linkage)
    first.write()
    functions, declared = first.functions(), set(first.declared)
    lines = [heading, *first.allocas]
    if first.noted:
        second = again()
        second.write()
        functions |= second.functions()
        declared |= second.declared
        names = ", ".join([f"{kind} {name}" for kind, name in _parameters(nest, part)])
        lines += [
            "%unsafe = alloca i1", "store i1 false, ptr %unsafe", *first.lines,
            "%again = load i1, ptr %unsafe", "br i1 %again, label %repeat, label %done",
            "repeat:", f"call void @{{name}}.any({names})", "br label %done",
            "done:", "ret void", "}",
            heading.replace("{name}", "{name}.any").replace("#0", attribute),
            *second.allocas, *second.lines, "ret void", "}",
        ]  # fmt: skip
    else:
        lines += [*first.lines, "ret void", "}"]
    return Written("\n".join(lines), frozenset(functions), frozenset(declared))


def _parameters(nest: Nest, part: bool) -> list[tuple[str, str]]:
    loads = [("ptr", f"%l{k}") for k in range(len(nest.loads))]
    stores = [("ptr", f"%s{k}") for k in range(len(nest.stores))]
    return [*loads, *stores, *([("i64", "%from"), ("i64", "%to")] if part else [])]


def _heading(nest: Nest, part: bool, linkage: str) -> str:
    """The head of the function.

    A load from a store's buffer is at an offset from the store: LLVM sees the distance of the
    dependence.  Only a scan has such loads.
    """
    words = {"%l": " noalias readonly", "%s": " noalias"}
    params = [f"{kind}{words.get(name[:2], '')} {name}" for kind, name in _parameters(nest, part)]
    lines = []
    for k, place in enumerate(nest.loads):
        for j, store in enumerate(nest.stores):
            if store.place.buffer is place.buffer:
                params[k] = f"ptr %given{k}"
                off = place.offset - store.place.offset
                kind = memory(place.buffer.dtype)
                lines.append(f"%l{k} = getelementptr {kind}, ptr %s{j}, i64 {off}")
    return "\n".join([f"define {linkage} void @{{name}}({', '.join(params)}) #0 {{", *lines])


def memory_intrinsic(nest: Nest) -> str | None:
    """The memcpy or memset equal to a collapsed nest, if there is one."""
    if len(nest.domain) != 1 or len(nest.stores) != 1 or any(nest.gathers):
        return None
    source, place, mode = nest.stores[0]
    if mode != SET or place.strides != (1,):
        return None
    dtype = place.buffer.dtype
    size = nest.domain[0] * dtype.itemsize
    if source < 0:
        load = nest.loads[~source]
        if load.strides != (1,) or load.buffer.dtype != dtype or load.buffer is place.buffer:
            return None
        return f"call void @llvm.memcpy.p0.p0.i64(ptr %s0, ptr %l{~source}, i64 {size}, i1 false)"
    term = nest.terms[source]
    if term.name != "constant" or any(np.asarray(term.constant, dtype).tobytes()):
        return None
    return f"call void @llvm.memset.p0.i64(ptr %s0, i8 0, i64 {size}, i1 false)"

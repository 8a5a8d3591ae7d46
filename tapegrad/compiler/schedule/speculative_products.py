"""Speculate on plain products in long straight code; deoptimise on NaN.

A strong product differs from a plain one only where zero times a non-finite number is NaN.  So
scalar code uses plain products and checks for NaN at its end.  If there is one, it is run again
with strong products, by code compiled on first use: mostly never.  The sign of a zero may differ.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.compiler.codegen.nest_function import written
from tapegrad.compiler.ir.buffers import INPUT, OUTPUT, SCRATCH, Buffer, Place, whole
from tapegrad.compiler.ir.loop_nest import SET, Nest, Store, Term
from tapegrad.compiler.llvm.elementary import definitions
from tapegrad.kernels import build
from tapegrad.kernels.codegen.rule_codegen import scalar_form

LEAST = 64  # strong products from which on it pays
STRONG = ("strong", "exact")
DOUBLE, TRUTH = np.dtype(np.float64), np.dtype(np.bool_)
ARITHMETIC = re.compile(r"[-+*/ (){}0-3]+")  # such scalar forms propagate NaN


def speculated(nest: Nest, room: Callable[[np.dtype[Any], int], Buffer]) -> Nest | None:
    """The nest with plain products, whose last store says whether to deoptimise."""
    strong = {t for t, term in enumerate(nest.terms) if term.name in STRONG and _double(nest, term)}
    if nest.domain or len(strong) < LEAST:
        return None
    terms = [t._replace(name="mul") if k in strong else t for k, t in enumerate(nest.terms)]
    watched = _watched(nest, strong)
    while len(watched) > 1:
        pairs = zip(watched[::2], watched[1::2], strict=False)
        rest = watched[-1:] if len(watched) % 2 else []
        start = len(terms)
        terms += [Term("add", pair, DOUBLE) for pair in pairs]
        watched = [*range(start, len(terms)), *rest]
    terms.append(Term("ne", (watched[0], watched[0]), TRUTH))
    store = Store(len(terms) - 1, whole(room(TRUTH, 1), ()), SET)
    gathers = (*nest.gathers, ()) if nest.gathers else ()
    return nest._replace(terms=tuple(terms), stores=(*nest.stores, store), gathers=gathers)


def _double(nest: Nest, term: Term) -> bool:
    """Whether doubles are multiplied."""
    dtypes = [nest.terms[a].dtype if a >= 0 else nest.loads[~a].buffer.dtype for a in term.args]
    return all(dtype == DOUBLE for dtype in (term.dtype, *dtypes))


def _watched(nest: Nest, strong: set[int]) -> list[int]:
    """Terms of which at least one is NaN if a product is."""
    reached, passed = set(strong), set()
    for k, term in enumerate(nest.terms):
        given = reached.intersection(term.args)
        plain = term.name in STRONG or ARITHMETIC.fullmatch(scalar_form(term.name))
        if given and plain and term.dtype == DOUBLE:
            reached.add(k)
            passed |= given
    return sorted(reached - passed)


class ExactNest:
    """A scalar nest with strong products, compiled when it is first run."""

    __slots__ = ("_code", "_constants", "_places", "_text")

    def __init__(self, nest: Nest, constants: list[np.ndarray]) -> None:
        self._places = [*nest.loads, *[s.place for s in nest.stores]]
        self._constants = constants
        made = written(nest)
        lines = [made.text.replace("{name}", "exact"), f"define void @{build.SYMBOL}(ptr %at) {{"]
        for k in range(len(self._places)):
            lines.append(f"%a{k} = getelementptr inbounds ptr, ptr %at, i64 {k}")
            lines.append(f"%p{k} = load ptr, ptr %a{k}")
        given = ", ".join(f"ptr %p{k}" for k in range(len(self._places)))
        lines += [f"call void @exact({given})", "ret void", "}", "attributes #0 = { nounwind }"]
        self._text = "\n".join([*lines, definitions(made.used)])
        self._code: Any = None

    def run(self, given: int, out: int, scratch: int) -> None:
        """Run it on a program's tables of inputs and results, and its scratch memory."""
        if self._code is None:
            engine = build.assembled(self._text, 1)
            address = engine[0].get_function_address(build.SYMBOL)
            self._code = engine, ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)
        tables = {INPUT: given, OUTPUT: out, SCRATCH: scratch}
        found = [self._address(place, tables) for place in self._places]
        table = (ctypes.c_void_p * len(found))(*found)
        self._code[1](ctypes.addressof(table))

    def _address(self, place: Place, tables: dict[str, int]) -> int:
        buffer = place.buffer
        if buffer.kind == SCRATCH:
            base = tables[SCRATCH] + buffer.offset
        elif buffer.kind in tables:
            base = ctypes.c_size_t.from_address(tables[buffer.kind] + 8 * buffer.number).value
        else:
            base = self._constants[buffer.number].ctypes.data
        return base + place.offset * buffer.dtype.itemsize

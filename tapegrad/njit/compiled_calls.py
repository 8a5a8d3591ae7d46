"""How a compiled program calls a function's sweeps itself: machine code packs their words.

Where a sweep does not come to its end, and where a shape differs or a gradient is NaN, the program
asks Python, which does it all again.
"""

from __future__ import annotations

import hashlib
import itertools
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.compiler.llvm.function_builder import FunctionBuilder, Routine
from tapegrad.kernels import build
from tapegrad.njit import marshalling
from tapegrad.njit.derivative_program import DerivativeProgram, default_limit
from tapegrad.njit.numba_front.objects import types
from tapegrad.njit.recorded_call import RecordedCall
from tapegrad.ops.core import Spec

_offered: dict[str, DerivativeProgram] = {}  # programs by their symbols


def routine_of(
    call: RecordedCall, wanted: Sequence[int] | None, specs: Sequence[Spec], places: Sequence[int]
) -> Routine | None:
    """The code that fills memory with some results: values, or the gradients `wanted`.

    None where only Python can: it knows constant arrays, and complex numbers.
    """
    kinds = (*call.types, *(spec.dtype for spec in call.outputs), *(spec.dtype for spec in specs))
    if any(dtype.kind == "c" for dtype in kinds):
        return None
    if wanted is not None and len(places) < len(specs):
        return None
    return _Packing(call.program(wanted), call, wanted, specs, places).routine()


class _Packing:
    """The code of one call."""

    def __init__(
        self, program: DerivativeProgram, call: RecordedCall, wanted: Sequence[int] | None,
        specs: Sequence[Spec], places: Sequence[int],
    ) -> None:  # fmt: skip
        self.program, self.call, self.wanted = program, call, wanted
        self.specs = [specs[k] for k in places]
        self.places = places
        self.text = FunctionBuilder(self.specs[0].dtype)
        sizes = [int(np.prod(spec.shape)) for spec in self.specs]
        self.offsets = [0, *itertools.accumulate(sizes)]  # in elements
        self.size = self.specs[0].dtype.itemsize
        self.results = f"%a{len(call.types) + (0 if wanted is None else len(call.float_outputs))}"
        # By the numbers that the program has for leaves: the Tensors, of others their values.
        self.leaves = call.numbers()
        self.tensors = {call.places[k]: k for k in range(len(call.places))}

    def routine(self) -> Routine | None:
        """The whole, if it can be written."""
        text, words = self.text, self.program.words
        given, out = (
            text.room(f"[{len(part) + 1} x i64]") for part in (words.inputs, words.outputs)
        )
        whole = self.offsets[-1] * self.size
        text.lines.append(
            f"call void @llvm.memset.p0.i64(ptr {self.results}, i8 0, i64 {whole}, i1 false)"
        )
        leaf = 0
        for at, (kind, p) in enumerate(words.inputs):
            if kind == "value" and not p.attribute.is_length:
                leaf = self.program.leaf_of[p]
            word = self._seed(p) if kind == "seed" else self._word(kind, p, leaf)
            if word is None:
                return None
            text.store(word, text.at(given, at, "i64"), "i64")
        symbol = self._symbol()
        status = text.emit(f"call i64 @{symbol}(ptr {given}, ptr {out}, i64 {default_limit()})")
        text.fail(text.emit(f"icmp ne i64 {status}, 0"))
        bad = self._values(out) if self.wanted is None else "false"
        if self.program.owns:
            owner = text.load(text.at(out, self.program.owner_word, "i64"), "ptr")
            text.lines.append(f"call void @{symbol}_release(ptr {owner})")
        text.fail(bad)
        if self.wanted is not None:
            self._gradients(out)
        text.declared |= {
            f"declare i64 @{symbol}(ptr, ptr, i64)", f"declare void @{symbol}_release(ptr)",
        }  # fmt: skip
        return text.routine([""] * (int(self.results[2:]) + 1))

    def _symbol(self) -> str:
        """What the program is called in text; a program lives as long as what calls it may."""
        program = self.program
        symbol = "tapegrad_njit_" + hashlib.sha256(program.text.encode()).hexdigest()[:24]
        if _offered.setdefault(symbol, program) is program:
            build.binding().add_symbol(symbol, program.address)
            build.binding().add_symbol(symbol + "_release", program.release_address)
        return symbol

    def _word(self, kind: str, p: Any, leaf: int) -> str | None:
        """A word of an argument, or the address of the adjoint of an array."""
        text = self.text
        if kind == "shadow":
            place, _ = self.leaves[self.program.leaf_of[p]]
            k = self.tensors.get(place)
            if k is None or self.wanted is None or k not in self.wanted:
                return None
            at = text.at(self.results, self.offsets[list(self.wanted).index(k)])
            return text.emit(f"ptrtoint ptr {at} to i64")
        place, value = self.leaves[leaf]
        k = self.tensors.get(place)
        if p.attribute.is_length:
            d = int(p.attribute.suffix.rpartition(".n")[2])
            return None if k is None else str(self.call.shapes[k][d])
        if p.type == "ptr":
            return None if k is None else text.emit(f"ptrtoint ptr %a{k} to i64")
        if k is None:
            packed = struct.pack("=" + marshalling.FORMAT[p.type], value)
            return str(int.from_bytes(packed, "little", signed=True))
        return self._number(f"%a{k}", self.call.types[k])

    def _number(self, address: str, dtype: np.dtype[Any]) -> str | None:
        """The word of a number in memory."""
        bits = 8 * dtype.itemsize
        if dtype.kind not in "fb" and bits < 64:
            return None
        found = self.text.load(address, f"i{bits}")
        return found if bits == 64 else self.text.emit(f"zext i{bits} {found} to i64")

    def _seed(self, place: int) -> str | None:
        """The word of an adjoint of a result."""
        j, t, _ = self.program.result_leaves[place]
        spec = self.call.outputs[j]
        if spec.dtype.kind != "f":
            return None
        before = sum(other.dtype.kind == "f" for other in self.call.outputs[:j])
        address = f"%a{len(self.call.types) + before}"
        if isinstance(t, types.Array):
            return self.text.emit(f"ptrtoint ptr {address} to i64")
        return self._number(address, spec.dtype)

    def _values(self, out: str) -> str:
        """Copy results; returns whether one has another shape than was announced."""
        text, bad = self.text, "false"
        where = {j: (place, t) for place, (j, t, _) in self.program.result_leaves.items()}
        arrays = []
        for spec, k, offset in zip(self.specs, self.places, self.offsets):
            place, t = where[k]
            target = text.at(self.results, offset * self.size, "i8")
            if not isinstance(t, types.Array):
                self._store(text.load(text.at(out, place, "i64"), "i64"), target)
                continue
            for d, n in enumerate(spec.shape):
                length = text.load(text.at(out, place + 1 + d, "i64"), "i64")
                bad = text.emit(f"or i1 {bad}, {text.emit(f'icmp ne i64 {length}, {n}')}")
            arrays.append((target, place, int(np.prod(spec.shape)) * self.size))
        with text.where(text.emit(f"xor i1 {bad}, true")):
            for target, place, size in arrays:
                source = text.load(text.at(out, place, "i64"), "ptr")
                text.lines.append(
                    f"call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {size}, "
                    "i1 false)"
                )
        return bad

    def _store(self, word: str, target: str) -> None:
        """Put a number into memory."""
        bits = 8 * self.size
        if bits < 64:
            word = self.text.emit(f"trunc i64 {word} to i{bits}")
        if self.specs[0].dtype.kind == "b":
            word = self.text.emit(f"and i8 {word}, 1")
        self.text.store(word, target, f"i{bits}")

    def _gradients(self, out: str) -> None:
        """Put the gradients in numbers into memory, and fail where one is NaN."""
        text, wanted = self.text, list(self.wanted or ())
        for (kind, p), at in self.program.words.output.items():
            place, _ = self.leaves[self.program.leaf_of[p]] if kind == "gradient" else (-1, None)
            k = self.tensors.get(place)
            if k is not None and k in wanted:
                offset = self.offsets[wanted.index(k)] * self.size
                target = text.at(self.results, offset, "i8")
                self._store(text.load(text.at(out, at, "i64"), "i64"), target)
        with text.loop(self.offsets[-1]) as i:
            x = text.load(text.at(self.results, i))
            text.fail(text.emit(f"fcmp uno {text.kind} {x}, {x}"))

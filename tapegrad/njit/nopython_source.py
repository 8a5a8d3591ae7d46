"""The source, in Numba's own language, of functions that call a program.

It packs the arguments, calls the machine code, and gives back the gradients.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np

from tapegrad.kernels.build import c_library
from tapegrad.kernels.flags import from_python
from tapegrad.njit.derivative_program import Request
from tapegrad.njit.evaluation import program_of
from tapegrad.njit.numba_front.components import COMPLEX, components, is_opaque, scalar
from tapegrad.njit.numba_front.handles import drop, put, size_of
from tapegrad.njit.numba_front.objects import Kinds, NumbaType, types
from tapegrad.njit.runtime_text import NO_MEMORY, RAISED
from tapegrad.njit.three_address_code import Unsupported
from tapegrad.transforms.call_arguments import checked_argnums, name_of

WORD = ctypes.c_int64


def _memmove() -> int:
    """The address of `memmove`."""
    return int(ctypes.cast(c_library().memmove, ctypes.c_void_p).value or 0)


class Source:
    """The source of a function that calls a program, for arguments of given types."""

    def __init__(self, derivative: Any, kinds: Kinds) -> None:
        self.made: list[str] = []  # more arrays whose addresses are handed on
        self.with_value, self.has_aux = derivative.with_value, derivative.has_aux
        self.inplace = derivative.inplace
        self.single, self.limit = derivative.single, derivative.evaluator.limit
        f = derivative.function
        self.chosen = checked_argnums(derivative.argnums, len(kinds), derivative.name, f)
        for k in self.chosen:
            if not all(t in (*COMPLEX, *COMPLEX.values()) for t in elements(kinds[k])):
                raise TypeError(
                    f"`{derivative.name}` needs floating-point arguments, got {kinds[k]} as "
                    f"argument {k} of `{name_of(f)}`"
                )
        self.kinds = kinds
        normal = tuple([_in_order(t) for t in kinds])
        chosen = tuple(sorted(self.chosen))
        request = self.request(normal, chosen, derivative.needs_value)
        # The first is run; where a derivative is NaN then, the second.  Where that takes more
        # memory than it was given, it is the third and fourth, with checkpoints.
        sparing = (False, True)[: 1 + (derivative.max_memory is not None)]
        self.programs = [
            program_of(f, request._replace(strong=strong, checkpoints=checkpoints))
            for checkpoints in sparing for strong in (False, True)
        ]  # fmt: skip
        if not self.programs[-1].has_checkpoints:
            del self.programs[2:]
        self.program = self.programs[0]
        self.check(derivative)
        derivative.evaluator.refuse_draws(self.program.draws)
        self.count = len(self.program.words.outputs)  # of results; their tangents follow
        prototype = ctypes.CFUNCTYPE(WORD, WORD, WORD, WORD)
        message = f"`{derivative.name}` of `{name_of(f)}` "
        self.space: dict[str, Any] = {
            "np": np, "f": f, "move": prototype(_memmove()), "put": put, "drop": drop,
            **{f"program{k}": prototype(p.address) for k, p in enumerate(self.programs)},
            "no_memory": message + "takes more memory than it may",
            "raised": message + "raised, and the function did not when it was called to see what",
            "overlap": message + "got arrays that overlap, into one of which the function writes",
        }  # fmt: skip

    @property
    def extra(self) -> str:
        """The names of arguments after those of the function."""
        return ""

    def request(self, kinds: Kinds, chosen: tuple[int, ...], value: bool) -> Request:
        """What is wanted of the program."""
        return Request(kinds, chosen, False, value=value)

    def check(self, derivative: Any) -> None:
        """Refuse what a program shows to have no derivative."""
        derivative.check_program(self.program)

    def compiled(self) -> Any:
        """The function, for Numba to compile."""
        names = ", ".join([*(f"a{k}" for k in range(len(self.kinds))), self.extra]).rstrip(", ")
        lines = [f"def call({names}):", *(" " + line for line in self.lines())]
        exec("\n".join(lines), self.space)
        made = from_python(self.space["call"])
        made.tapegrad_programs = self.programs  # which own the code that is called
        return made

    def lines(self) -> Iterator[str]:
        """The lines of the function."""
        shadows: dict[Any, str] = {}
        arrays: dict[int, Any] = {}
        yield "attempt = 0"
        yield "while True:"
        for line in self.attempt(arrays, shadows):
            yield " " + line.replace("\n", "\n ")
        if self.inplace:
            yield f"f({', '.join(f'a{k}' for k in range(len(self.kinds)))})"
        yield f"return {self.result(arrays, shadows)}"

    def attempt(self, arrays: dict[int, Any], shadows: dict[Any, str]) -> Iterator[str]:
        """The lines of one call of a program; `arrays` and `shadows` get the names of arrays."""
        program = self.program
        # `arrays` are by the component: the name in C order, the text, the argument, the type.
        values: list[str] = []
        handles: dict[str, str] = {}  # by the name of their memory: what is in it
        for k, t in enumerate(self.kinds):
            for text, part in _parts(f"a{k}", t):
                if is_opaque(part):
                    self._check_handle(k, part)
                    name = f"h{len(values)}"
                    handles[name] = text
                    yield f"{name} = np.zeros({size_of(part) // 8 + 1}, np.int64)"
                    values.append(f"put({text}, {name}.ctypes.data)")
                    continue
                if not isinstance(part, types.Array):
                    parts = [f"{text}.real", f"{text}.imag"] if part in COMPLEX else [text]
                    values += parts
                    continue
                name = f"c{len(values)}"
                arrays[len(values)] = (name, text, k, part)
                if k in program.written:
                    text = f"{text}.copy()"
                elif part.layout != "C":
                    text = f"np.ascontiguousarray({text})"
                yield f"{name} = {text}"
                values += [f"{name}.ctypes.data", *(f"{name}.shape[{d}]" for d in range(part.ndim))]
        yield from self.checks(arrays)
        copies = 1 if program.request.moved is None else 2
        yield f"words = np.zeros({copies * len(program.words.inputs)}, np.int64)"
        yield f"out = np.zeros({copies * self.count + 1}, np.int64)"
        yield "words64, out64 = words.view(np.float64), out.view(np.float64)"
        singles = types.float32, types.complex64
        if any(t in singles for kind in self.kinds for t in elements(kind)):
            yield "words32, out32 = words.view(np.float32), out.view(np.float32)"
        for at, (kind, p) in enumerate(program.words.inputs):
            if kind == "value":
                yield written(at, p.type, values[at])
            elif kind == "shadow":
                name = arrays[program.words.input["value", p]][0]
                shadows[p] = f"g{name}"
                yield f"g{name} = np.zeros_like({name})"
                yield f"words[{at}] = g{name}.ctypes.data"
            else:
                yield self.seed(at, program.result_leaves[p].type)
        yield from self.tangents(arrays)
        given = f"(words.ctypes.data, out.ctypes.data, {self.limit})"
        *others, last = [f"program{k}{given}" for k in range(len(self.programs))]
        cases = "".join(f"{text} if attempt == {k} else " for k, text in enumerate(others))
        yield f"status = {cases}{last}"
        # What is read here is not freed before.
        kept = (*(a[0] for a in arrays.values()), *handles, *self.made)
        alive = " + ".join(["words[0] * 0", *(f"{name}.size" for name in kept)])
        yield f"if {alive} < 0:\n  raise RuntimeError"
        for name, text in handles.items():
            yield f"drop({text}, {name}.ctypes.data)"
        yield f"if status == {RAISED}:"
        yield f" f({', '.join(self.copies())})"
        yield " raise RuntimeError(raised)"
        if len(self.programs) > 2:
            yield f"if status == {NO_MEMORY} and attempt < 2:\n  attempt += 2\n  continue"
        yield "if status != 0:\n  raise MemoryError(no_memory)"
        if program.owns:
            yield from self.copied_results()
            self.space["release"] = ctypes.CFUNCTYPE(None, WORD)(program.release_address)
            yield f"release(out[{program.owner_word}])"
        yield "total = 0.0"
        yield from self.sums(shadows)
        once = "True" if program.draws else "attempt % 2 == 1"
        yield f"if total == total or {once}:\n  break"
        yield "attempt += 1"

    def _check_handle(self, k: int, t: NumbaType) -> None:
        """Refuse what would have to be copied before the function writes into it."""
        if k in self.program.written:
            raise Unsupported(f"in nopython code, a function that writes into its argument, a {t}")
        if isinstance(t, types.Array) and t.layout != "C":
            raise Unsupported(f"in nopython code, a {t}, which is not in C order")

    def seed(self, at: int, t: NumbaType) -> str:
        """A line that writes the adjoint of the result."""
        return written(at, "f32" if t == types.float32 else "f64", "1.0")

    def tangents(self, arrays: dict[int, Any]) -> Iterator[str]:
        """Lines that write tangents: there are none."""
        return iter(())

    @property
    def first_result(self) -> int:
        """Where the results stand that are given back."""
        return 0

    def copied_results(self) -> Iterator[str]:
        """Lines that copy the arrays of the result, before these are freed."""
        for at, (_, t, _) in self.program.result_leaves.items():
            if isinstance(t, types.Array):
                shape = "".join(f"out[{at + 1 + d}], " for d in range(t.ndim))
                yield f"r{at} = np.empty(({shape}), np.{t.dtype})"
                yield f"move(r{at}.ctypes.data, out[{self.first_result + at}], r{at}.nbytes)"

    def sums(self, shadows: dict[Any, str]) -> Iterator[str]:
        """Lines that add up what is NaN where a derivative is."""
        for name in dict.fromkeys(n for s in shadows.values() for n in (s, self.moved(s))):
            yield f"for g in {name}.flat:\n  total += g * 0.0"
        for at, (kind, p) in enumerate(self.program.words.outputs):
            for first in {0, self.first_result} if kind == "gradient" else ():
                yield f"total += {read(first + at, p.type)} * 0.0"

    def checks(self, arrays: dict[int, Any]) -> Iterator[str]:
        """Refuse arrays that overlap, if the function writes into one."""
        every = list(arrays.values())
        for i, (_, a, k, s) in enumerate(every):
            for j, (_, b, other, t) in enumerate(every):
                writes = k in self.program.written or other in self.program.written
                if i < j and writes:
                    yield f"if {_ends(a, s)[0]} < {_ends(b, t)[1]}:"
                    yield f" if {_ends(b, t)[0]} < {_ends(a, s)[1]}:\n   raise ValueError(overlap)"

    def copies(self) -> list[str]:
        """Copies of the arguments, for the function to write into."""
        return [
            f"a{k}.copy()" if isinstance(t, types.Array) else f"a{k}"
            for k, t in enumerate(self.kinds)
        ]

    def result(self, arrays: dict[int, Any], shadows: dict[Any, str]) -> str:
        """The text of what is returned."""
        words = self.program.words
        leaves: dict[int, list[str]] = {}
        for kind, p in words.inputs:
            if kind != "value" or p.attribute.is_length:
                continue
            argument = p.attribute.argument
            if argument in self.chosen:
                if p.type == "ptr":
                    name = arrays[words.input["value", p]][0]
                    text = self.moved(shadows[p]) if p in shadows else f"np.zeros_like({name})"
                else:
                    text = read(self.first_result + words.output["gradient", p], p.type)
                if p.attribute.is_imaginary:
                    text = f"complex({leaves[argument].pop()}, {text})"
                leaves.setdefault(argument, []).append(text)
        found = [self.formed(self.kinds[k], iter(leaves[k]), f"T{k}") for k in self.chosen]
        gradient = found[0] if self.single else f"({', '.join(found)},)"
        value, _ = self.value(self.program.result, 0)
        if self.with_value:
            return f"({value}, {gradient})"
        return f"({gradient}, {value}[1])" if self.has_aux else gradient

    def moved(self, shadow: str) -> str:
        """What is given back for the adjoint of an array."""
        return shadow

    def formed(self, t: NumbaType, rest: Iterator[str], name: str) -> str:
        """The text of a gradient in the form of an argument."""
        if not isinstance(t, types.BaseTuple):
            return next(rest)
        parts = [self.formed(part, rest, f"{name}_{k}") for k, part in enumerate(t)]
        if (cls := getattr(t, "instance_class", None)) is not None:
            self.space[name] = cls
            return f"{name}({', '.join(parts)})"
        return f"({', '.join(parts)},)"

    def value(self, t: NumbaType, at: int) -> tuple[str, int]:
        """The text of the function's own result, and where the next one stands."""
        if isinstance(t, types.BaseTuple):
            parts = []
            for part in t:
                text, at = self.value(part, at)
                parts.append(text)
            return f"({', '.join(parts)},)", at
        if isinstance(t, types.Array):
            return f"r{at}", at + len(components(t))
        if t in COMPLEX:
            (_, part), _ = components(t)
            return f"complex({read(at, part)}, {read(at + 1, part)})", at + 2
        kind = scalar(t)
        if kind is None and not components(t):
            return "None", at
        if kind is None:
            raise Unsupported(f"`has_aux` with {t} in nopython code")
        text = read(at, kind)
        return f"np.uint64({text})" if t == types.uint64 else text, at + 1


def written(at: int, kind: str, text: str) -> str:
    """A line that writes a word of the arguments."""
    if kind == "f64":
        return f"words64[{at}] = {text}"
    if kind == "f32":
        return f"words32[{2 * at}] = {text}"
    return f"words[{at}] = {text}"


def read(at: int, kind: str) -> str:
    """The text of a word of the results."""
    if kind == "f64":
        return f"out64[{at}]"
    if kind == "f32":
        return f"out32[{2 * at}]"
    return f"(out[{at}] & 1 != 0)" if kind == "i1" else f"out[{at}]"


def _parts(text: str, t: NumbaType) -> Iterator[tuple[str, NumbaType]]:
    """The numbers and arrays of an argument."""
    if isinstance(t, types.BaseTuple):
        for k, part in enumerate(t):
            yield from _parts(f"{text}[{k}]", part)
    elif components(_in_order(t)):
        yield text, t


def elements(t: NumbaType) -> Iterator[NumbaType]:
    """The types of the numbers in an argument."""
    if isinstance(t, types.BaseTuple):
        for part in t:
            yield from elements(part)
    else:
        yield t.dtype if isinstance(t, types.Array) else t


def _in_order(t: NumbaType) -> NumbaType:
    """A type whose arrays are writable and in C order."""
    if isinstance(t, types.Array):
        return types.Array(t.dtype, t.ndim, "C")
    if isinstance(t, types.BaseTuple) and not hasattr(t, "instance_class"):
        return types.BaseTuple.from_types([_in_order(part) for part in t])
    return t


def _ends(name: str, t: NumbaType) -> tuple[str, str]:
    """The addresses between which the elements of an array lie."""
    steps = [f"({name}.shape[{d}] - 1) * {name}.strides[{d}]" for d in range(t.ndim)]
    low = "".join(f" + min(0, {s})" for s in steps)
    high = "".join(f" + max(0, {s})" for s in steps)
    return f"{name}.ctypes.data{low}", f"{name}.ctypes.data{high} + {name}.itemsize"

"""Call a derivative from Numba's nopython code: `g.njit`, or `g` itself.

For each combination of argument types a function is written in Numba's own language, which packs
the arguments, calls the program, and gives back the gradients.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np
from numba.core import errors

from tapegrad.base.locks import lock
from tapegrad.kernels.flags import from_python
from tapegrad.kernels.numba_callable import CallableType, registered
from tapegrad.njit.derivative_program import Request
from tapegrad.njit.evaluation import program_of
from tapegrad.njit.numba_front.components import components, scalar
from tapegrad.njit.numba_front.objects import Kinds, NumbaType, types
from tapegrad.njit.runtime_text import RAISED
from tapegrad.njit.three_address_code import Unsupported
from tapegrad.transforms.call_arguments import checked_argnums, name_of

WORD = ctypes.c_int64


class Face:
    """`g.njit`: callable in nopython code and from Python, and passable as an argument.

    >>> import numba, numpy as np, tapegrad as tg
    >>> @numba.njit
    ... def f(x):
    ...     return np.sum(x * x)
    >>> g = tg.grad(f)
    >>> @numba.njit
    ... def descend(x, steps):
    ...     for _ in range(steps):
    ...         x = x - 0.25 * g.njit(x)
    ...     return x
    >>> descend(np.array([4.0, 8.0]), 3)
    array([0.5, 1. ])
    """

    def __init__(self, derivative: Any, with_value: bool) -> None:
        self.derivative, self.with_value = derivative, with_value  # a `NumbaDerivative`
        self._lock = lock()
        self._compiled: dict[Kinds, Any] = {}
        self._numba_type_ = DerivativeType(self)

    def __call__(self, *args: Any) -> Any:
        """The same in Python, for Numba code that runs uncompiled."""
        return self.derivative(*args)

    def __repr__(self) -> str:
        return f"{self.derivative!r} for Numba"

    def __reduce__(self) -> Any:
        return getattr, (self.derivative, "njit")

    def dispatcher(self, args: tuple[NumbaType, ...], kws: dict[str, NumbaType]) -> Any:
        """The function that is called with arguments of these types."""
        if kws:
            raise errors.TypingError(
                f"{self.derivative!r} was called with {', '.join(kws)} by name: in nopython code "
                "its arguments are positional"
            )
        kinds = tuple(map(types.unliteral, args))
        with self._lock:
            if kinds not in self._compiled:
                try:
                    self._compiled[kinds] = _Source(self, kinds).compiled()
                except (TypeError, ValueError, Unsupported) as error:
                    raise errors.TypingError(str(error)) from error
            return self._compiled[kinds]


@registered
class DerivativeType(CallableType):
    """Numba's type of one derivative."""

    refusal = (
        "a gradient that is called in it: call it from Python, or take `tapegrad.hessian` or `hvp`"
    )

    def __init__(self, face: Face) -> None:
        self.face = face
        super().__init__(f"{face.derivative!r}({id(face):#x})")

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        """The signature of a call."""
        return types.Dispatcher(self.face.dispatcher(args, kws)).get_call_type(context, args, kws)

    def get_impl_key(self, signature: Any) -> Any:
        """The key that the code of a call is registered under."""
        return types.Dispatcher(self.face.dispatcher(signature.args, {})).get_impl_key(signature)


class _Source:
    """The source of the function for arguments of given types."""

    def __init__(self, face: Face, kinds: Kinds) -> None:
        derivative = face.derivative
        self.with_value, self.has_aux = face.with_value, derivative.has_aux
        self.inplace = derivative.inplace
        self.single, self.limit = derivative.single, derivative.evaluator.limit
        f = derivative.function
        self.chosen = checked_argnums(derivative.argnums, len(kinds), derivative.name, f)
        for k in self.chosen:
            if not all(t in (types.float64, types.float32) for t in _elements(kinds[k])):
                raise TypeError(
                    f"`{derivative.name}` needs floating-point arguments, got {kinds[k]} as "
                    f"argument {k} of `{name_of(f)}`"
                )
        self.kinds = kinds
        normal = tuple([_in_order(t) for t in kinds])
        chosen = tuple(sorted(self.chosen))
        request = Request(normal, chosen, False, value=derivative.needs_value)
        # The first is run; where a derivative is NaN then, the second.
        self.programs = [program_of(f, request._replace(strong=strong)) for strong in (False, True)]
        self.program = self.programs[0]
        derivative.check_program(self.program)
        prototype = ctypes.CFUNCTYPE(WORD, WORD, WORD, WORD)
        message = f"`{derivative.name}` of `{name_of(f)}` "
        self.space: dict[str, Any] = {
            "np": np, "f": f, "plain": prototype(self.programs[0].address),
            "strong": prototype(self.programs[1].address),
            "no_memory": message + "takes more memory than it may",
            "raised": message + "raised, and the function did not when it was called to see what",
            "overlap": message + "got arrays that overlap, into one of which the function writes",
        }  # fmt: skip

    def compiled(self) -> Any:
        """The function, for Numba to compile."""
        names = ", ".join(f"a{k}" for k in range(len(self.kinds)))
        lines = [f"def call({names}):", *(" " + line for line in self.lines())]
        exec("\n".join(lines), self.space)
        made = from_python(self.space["call"])
        made.tapegrad_programs = self.programs  # which own the code that is called
        return made

    def lines(self) -> Iterator[str]:
        """The lines of the function."""
        shadows: dict[Any, str] = {}
        arrays: dict[int, Any] = {}
        yield "for attempt in range(2):"
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
        for k, t in enumerate(self.kinds):
            for text, part in _parts(f"a{k}", t):
                if not isinstance(part, types.Array):
                    values.append(text)
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
        yield f"words = np.zeros({len(program.words.inputs)}, np.int64)"
        yield f"out = np.zeros({len(program.words.outputs) + 1}, np.int64)"
        yield "words64, out64 = words.view(np.float64), out.view(np.float64)"
        if any(t == types.float32 for kind in self.kinds for t in _elements(kind)):
            yield "words32, out32 = words.view(np.float32), out.view(np.float32)"
        for at, (kind, p) in enumerate(program.words.inputs):
            if kind == "value":
                yield _written(at, p.type, values[at])
            elif kind == "shadow":
                name = arrays[program.words.input["value", p]][0]
                shadows[p] = f"g{name}"
                yield f"g{name} = np.zeros_like({name})"
                yield f"words[{at}] = g{name}.ctypes.data"
            else:
                kind = "f32" if program.result_leaves[p][1] == types.float32 else "f64"
                yield _written(at, kind, "1.0")
        given = f"(words.ctypes.data, out.ctypes.data, {self.limit})"
        yield f"status = plain{given} if attempt == 0 else strong{given}"
        # What is read here is not freed before.
        alive = " + ".join(["words[0] * 0", *(f"{a[0]}.size" for a in arrays.values())])
        yield f"if {alive} < 0:\n  raise RuntimeError"
        yield f"if status == {RAISED}:"
        yield f" f({', '.join(self.copies())})"
        yield " raise RuntimeError(raised)"
        yield "if status != 0:\n  raise MemoryError(no_memory)"
        yield "total = 0.0"
        for name in shadows.values():
            yield f"for g in {name}.flat:\n  total += g * 0.0"
        for at, (kind, p) in enumerate(program.words.outputs):
            if kind == "gradient":
                yield f"total += {_read(at, p.type)} * 0.0"
        yield "if total == total:\n  break"

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
                    text = shadows.get(p, f"np.zeros_like({name})")
                else:
                    text = _read(words.output["gradient", p], p.type)
                leaves.setdefault(argument, []).append(text)
        found = [self.formed(self.kinds[k], iter(leaves[k]), f"T{k}") for k in self.chosen]
        gradient = found[0] if self.single else f"({', '.join(found)},)"
        value, _ = self.value(self.program.result, 0)
        if self.with_value:
            return f"({value}, {gradient})"
        return f"({gradient}, {value}[1])" if self.has_aux else gradient

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
        kind = scalar(t)
        if kind is None and not components(t):
            return "None", at
        if kind is None:
            raise Unsupported(f"`has_aux` with {t} in nopython code")
        text = _read(at, kind)
        return f"np.uint64({text})" if t == types.uint64 else text, at + 1


def _written(at: int, kind: str, text: str) -> str:
    if kind == "f64":
        return f"words64[{at}] = {text}"
    if kind == "f32":
        return f"words32[{2 * at}] = {text}"
    return f"words[{at}] = {text}"


def _read(at: int, kind: str) -> str:
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


def _elements(t: NumbaType) -> Iterator[NumbaType]:
    if isinstance(t, types.BaseTuple):
        for part in t:
            yield from _elements(part)
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

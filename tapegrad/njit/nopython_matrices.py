"""Jacobians, Hessians and their products with vectors, as source in Numba's own language.

The arguments that they differentiate in are arrays and numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tapegrad.kernels.flags import from_python
from tapegrad.njit.derivative_program import Request
from tapegrad.njit.nopython_source import Source, read, written
from tapegrad.njit.numba_front.components import scalar
from tapegrad.njit.numba_front.objects import Kinds, NumbaType, types
from tapegrad.njit.three_address_code import FLOATS
from tapegrad.transforms.call_arguments import checked_argnums


class _Along(Source):
    """A program with tangents of some arguments, whose directions are `v<k>`."""

    @property
    def extra(self) -> str:
        """The names of arguments after those of the function."""
        return ", ".join(map(_direction, sorted(self.chosen)))

    @property
    def first_result(self) -> int:
        """The tangents of results stand after these."""
        return self.count

    def tangents(self, arrays: dict[int, Any]) -> Iterator[str]:
        """Lines that write tangents: directions, and zero of all else."""
        words = self.program.words
        count = len(words.inputs)
        self.space["unlike"] = "a tangent has another shape than the argument that it is of"
        for at, (kind, p) in enumerate(words.inputs):
            if kind == "shadow":
                name = arrays[words.input["value", p]][0]
                self.made.append(f"mg{name}")
                yield f"mg{name} = np.zeros_like({name})"
                yield f"words[{count + at}] = mg{name}.ctypes.data"
            elif kind == "value" and p.type == "ptr" and p.attribute.element in FLOATS:
                name = arrays[at][0]
                self.made.append(f"d{name}")
                yield f"d{name} = np.zeros_like({name})"
                if (k := p.attribute.argument) in self.chosen:
                    v = _direction(k)
                    yield f"if {v}.shape != {name}.shape:\n  raise ValueError(unlike)"
                    yield f"d{name}[...] = {v}"
                yield f"words[{count + at}] = d{name}.ctypes.data"
            elif kind == "value" and p.attribute.argument in self.chosen and p.type in FLOATS:
                yield written(count + at, p.type, _direction(p.attribute.argument))


class Product(_Along):
    """The Hessian times a direction."""

    def request(self, kinds: Kinds, chosen: tuple[int, ...], value: bool) -> Request:
        """The gradient and its tangent."""
        return Request(kinds, chosen, False, moved=chosen, value=False)

    def moved(self, shadow: str) -> str:
        """The tangent of an adjoint."""
        return f"m{shadow}"


class _Push(_Along):
    """The Jacobian times a direction."""

    def request(self, kinds: Kinds, chosen: tuple[int, ...], value: bool) -> Request:
        """The function and its tangent."""
        return Request(kinds, (), moved=chosen)

    def check(self, derivative: Any) -> None:
        """Refuse results that are neither an array nor a number."""
        float_of(self.program.result, derivative)

    def sums(self, shadows: dict[Any, str]) -> Iterator[str]:
        """Lines that add up what is NaN where a derivative is."""
        if isinstance(self.program.result, types.Array):
            yield "for g in r0.flat:\n  total += g * 0.0"
        else:
            yield f"total += {self.result({}, shadows)} * 0.0"

    def result(self, arrays: dict[int, Any], shadows: dict[Any, str]) -> str:
        """The text of what is returned."""
        t = self.program.result
        return "r0" if isinstance(t, types.Array) else read(self.count, scalar(t) or "")


class _Pull(Source):
    """`seed` times the Jacobian."""

    @property
    def extra(self) -> str:
        """The name of an argument after those of the function."""
        return "seed"

    def request(self, kinds: Kinds, chosen: tuple[int, ...], value: bool) -> Request:
        """The gradients."""
        return Request(kinds, chosen, value=False)

    def check(self, derivative: Any) -> None:
        """Refuse results that are neither an array nor a number."""
        float_of(self.program.result, derivative)

    def seed(self, at: int, t: NumbaType) -> str:
        """A line that writes the adjoint of the result."""
        if isinstance(t, types.Array):
            return f"words[{at}] = seed.ctypes.data"
        return written(at, scalar(t) or "", "seed")


def float_of(t: NumbaType, derivative: Any) -> NumbaType:
    """The type of the elements of a result or an argument, an array or a number."""
    found = t.dtype if isinstance(t, types.Array) else t
    if found not in (types.float64, types.float32):
        raise TypeError(
            f"{derivative!r} in nopython code takes and gives one array, or number, of floats, "
            f"got {t}: call it from Python"
        )
    return found


def product(derivative: Any, kinds: Kinds) -> Any:
    """`hvp(f)` for arguments of given types."""
    if len(kinds) < 2:
        raise TypeError(f"{derivative!r} takes an argument and a vector, got {len(kinds)}")
    float_of(kinds[0], derivative)
    return Product(derivative, kinds[:-1]).compiled()


class _Matrix:
    """The source of a function that fills blocks: of a Jacobian, or of a Hessian."""

    def __init__(self, derivative: Any, kinds: Kinds) -> None:
        if derivative.has_aux:
            raise TypeError(
                f"{derivative!r} in nopython code takes no `has_aux`: call it from Python"
            )
        f, name = derivative.function, derivative.name
        self.chosen = checked_argnums(derivative.argnums, len(kinds), name, f)
        self.floats = {k: str(float_of(kinds[k], derivative)) for k in self.chosen}
        self.arrays = {k for k in self.chosen if isinstance(kinds[k], types.Array)}
        self.single, self.kinds = derivative.single, kinds
        self.args = ", ".join(f"a{k}" for k in range(len(kinds)))

    def directions(self) -> Iterator[str]:
        """Lines that make directions of zeros, and count elements."""
        for k in self.chosen:
            array = k in self.arrays
            yield f"n{k} = a{k}.size" if array else f"n{k} = 1"
            yield f"v{k} = np.zeros(a{k}.shape, a{k}.dtype)" if array else f"v{k} = 0.0"

    def columns(self, fill: Callable[[int], list[str]]) -> Iterator[str]:
        """Lines that call `push` along each element; `fill` puts `g` into column `e` of blocks."""
        along = ", ".join(map(_direction, sorted(self.chosen)))
        for k in self.chosen:
            call = [f"g = push({self.args}, {along})", *fill(k)]
            if k in self.arrays:
                yield f"unit = v{k}.reshape(n{k})\nfor e in range(n{k}):\n unit[e] = 1.0"
                yield _indented("\n".join([*call, "unit[e] = 0.0"]))
            else:
                yield "\n".join([f"e, v{k} = 0, 1.0", *call, f"v{k} = 0.0"])

    def part(self, k: int) -> str:
        """The part of a gradient `g` that belongs to an argument, as a row."""
        text = "g" if self.single else f"g[{self.chosen.index(k)}]"
        return f"{text}.reshape(n{k})" if k in self.arrays else text

    def shape(self, k: int) -> str:
        """The text of an argument's shape."""
        return f"a{k}.shape" if k in self.arrays else "()"

    def formed(self, parts: list[str]) -> str:
        """The text of what belongs to each argument."""
        return parts[0] if self.single else f"({', '.join(parts)},)"

    def defined(self, space: dict[str, Any], *body: str) -> Any:
        """A function for Numba to compile."""
        text = _indented("\n".join(body))
        exec(f"def call({self.args}):\n{text}", space := {"np": np, **space})
        return from_python(space["call"])


def hessian(derivative: Any, kinds: Kinds) -> Any:
    """`hessian(f)` for arguments of given types."""
    one = _Matrix(derivative, kinds)
    blocks, rows = list[str](), list[str]()
    for i in one.chosen:
        row = []
        for j in one.chosen:
            dtype = np.result_type(one.floats[i], one.floats[j])
            blocks.append(f"j{i}_{j} = np.empty((n{i}, n{j}), np.{dtype})")
            shaped = f".reshape({one.shape(i)} + {one.shape(j)})"
            row.append(f"j{i}_{j}{shaped if {i, j} & one.arrays else '[0, 0]'}")
        rows.append(one.formed(row))

    def fill(j: int) -> list[str]:
        return [f"j{i}_{j}[:, e] = {one.part(i)}" for i in one.chosen]

    space = {"push": Product(derivative, kinds).compiled()}
    lines = (*one.directions(), *blocks, *one.columns(fill))
    return one.defined(space, *lines, f"return {one.formed(rows)}")


def jacobian(derivative: Any, kinds: Kinds) -> Any:
    """`jacobian(f)`, `jacfwd` and `jacrev` for arguments of given types."""
    one = _Matrix(derivative, kinds)
    push = _Push(derivative, kinds)
    space, t = {"push": push.compiled(), "f": derivative.function}, push.program.result
    if not one.arrays:
        lines = (*one.directions(), *one.columns(lambda k: [f"j{k} = g"]))
        return one.defined(space, *lines, f"return {one.formed([f'j{k}' for k in one.chosen])}")
    space["pull"] = _Pull(derivative, kinds).compiled()
    if not isinstance(t, types.Array):
        return one.defined(space, f"return pull({one.args}, 1.0)")
    copies = [
        f"a{i}.copy()" if isinstance(s, types.Array) else f"a{i}" for i, s in enumerate(kinds)
    ]
    dtypes = {k: np.result_type(str(float_of(t, derivative)), one.floats[k]) for k in one.chosen}
    count = " + ".join(f"n{k}" for k in one.chosen)
    forward = {"jacfwd": "True", "jacrev": "False"}.get(derivative.name, f"{count} < m")
    rows = ["seed = np.zeros(y.shape, y.dtype)", "unit = seed.reshape(m)", "for e in range(m):"]
    rows += [" unit[e] = 1.0", f" g = pull({one.args}, seed)"]
    rows += [*(f" j{k}[e, :] = {one.part(k)}" for k in one.chosen), " unit[e] = 0.0"]
    return one.defined(
        space, f"y = f({', '.join(copies)})\nm = y.size", *one.directions(),
        *(f"j{k} = np.empty((m, n{k}), np.{dtypes[k]})" for k in one.chosen),
        f"if {forward}:",
        *map(_indented, one.columns(lambda k: [f"j{k}[:, e] = g.reshape(m)"])),
        "else:", *map(_indented, rows),
        f"return {one.formed([f'j{k}.reshape(y.shape + {one.shape(k)})' for k in one.chosen])}",
    )  # fmt: skip


def _direction(k: int) -> str:
    """The name of an argument's direction."""
    return f"v{k}"


def _indented(text: str) -> str:
    return "\n".join(" " + line for line in text.split("\n"))

"""Jacobians, Hessians and their products with vectors, as source in Numba's own language.

They take one argument to differentiate in, an array or a number.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tapegrad.kernels.flags import from_python
from tapegrad.njit.derivative_program import Request
from tapegrad.njit.nopython_source import Source, read, written
from tapegrad.njit.numba_front.components import scalar
from tapegrad.njit.numba_front.objects import Kinds, NumbaType, types
from tapegrad.njit.three_address_code import FLOATS


class _Along(Source):
    """A program with tangents of one argument, whose direction is `v`."""

    extra = "v"

    @property
    def first_result(self) -> int:
        """The tangents of results stand after these."""
        return self.count

    def tangents(self, arrays: dict[int, Any]) -> Iterator[str]:
        """Lines that write tangents: of the one argument, `v`; zero of all else."""
        (k,), words = self.chosen, self.program.words
        count = len(words.inputs)
        self.space["unlike"] = "a tangent has another shape than the argument that it is of"
        for at, (kind, p) in enumerate(words.inputs):
            if kind == "shadow":
                name = arrays[words.input["value", p]][0]
                yield f"mg{name} = np.zeros_like({name})"
                yield f"words[{count + at}] = mg{name}.ctypes.data"
            elif kind == "value" and p.type == "ptr" and p.attribute.element in FLOATS:
                name = arrays[at][0]
                yield f"d{name} = np.zeros_like({name})"
                if p.attribute.argument == k:
                    yield f"if v.shape != {name}.shape:\n  raise ValueError(unlike)"
                    yield f"d{name}[...] = v"
                yield f"words[{count + at}] = d{name}.ctypes.data"
            elif kind == "value" and p.attribute.argument == k and p.type in FLOATS:
                yield written(count + at, p.type, "v")


class Product(_Along):
    """The Hessian times `v`."""

    def request(self, kinds: Kinds, chosen: tuple[int, ...], value: bool) -> Request:
        """The gradient and its tangent."""
        return Request(kinds, chosen, False, moved=chosen, value=False)

    def moved(self, shadow: str) -> str:
        """The tangent of an adjoint."""
        return f"m{shadow}"


class _Push(_Along):
    """The Jacobian times `v`."""

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

    extra = "seed"

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
    if len(kinds) != 2:
        raise TypeError(f"{derivative!r} takes an argument and a vector, got {len(kinds)}")
    float_of(kinds[0], derivative)
    return Product(derivative, kinds[:1]).compiled()


# In `x` what is differentiated in, of `n` elements; `j` is filled by columns or by rows.
_COLUMNS = """\
v = np.zeros(x.shape, x.dtype)
unit = v.reshape(n)
for e in range(n):
 unit[e] = 1.0
 j[:, e] = push({args}, v).reshape(m)
 unit[e] = 0.0"""
_ROWS = """\
seed = np.zeros(y.shape, y.dtype)
unit = seed.reshape(m)
for e in range(m):
 unit[e] = 1.0
 j[e] = pull({args}, seed).reshape(n)
 unit[e] = 0.0"""


def hessian(derivative: Any, kinds: Kinds) -> Any:
    """`hessian(f)` for arguments of given types."""
    k = _argument(derivative, kinds)
    space = {"push": Product(derivative, kinds).compiled()}
    if not isinstance(kinds[k], types.Array):
        return _defined(space, len(kinds), f"return push({_names(kinds)}, 1.0)")
    return _defined(
        space, len(kinds), f"x = a{k}\nm = n = x.size\nj = np.empty((n, n), x.dtype)",
        _COLUMNS, "return j.reshape(x.shape + x.shape)",
    )  # fmt: skip


def jacobian(derivative: Any, kinds: Kinds) -> Any:
    """`jacobian(f)`, `jacfwd` and `jacrev` for arguments of given types."""
    k = _argument(derivative, kinds)
    push = _Push(derivative, kinds)
    t, of_array = push.program.result, isinstance(kinds[k], types.Array)
    space = {"push": push.compiled(), "f": derivative.function}
    if not of_array:
        return _defined(space, len(kinds), f"return push({_names(kinds)}, 1.0)")
    space["pull"] = _Pull(derivative, kinds).compiled()
    if not isinstance(t, types.Array):
        return _defined(space, len(kinds), f"return pull({_names(kinds)}, 1.0)")
    dtype = np.result_type(*[str(float_of(kind, derivative)) for kind in (t, kinds[k])])
    copies = [
        f"a{i}.copy()" if isinstance(s, types.Array) else f"a{i}" for i, s in enumerate(kinds)
    ]
    forward = {"jacfwd": "True", "jacrev": "False"}.get(derivative.name, "n < m")
    return _defined(
        space, len(kinds),
        f"x, y = a{k}, f({', '.join(copies)})\nm, n = y.size, x.size",
        f"j = np.empty((m, n), np.{dtype})", f"if {forward}:", _indented(_COLUMNS),
        "else:", _indented(_ROWS), "return j.reshape(y.shape + x.shape)",
    )  # fmt: skip


def _argument(derivative: Any, kinds: Kinds) -> int:
    """The number of the argument that is differentiated in."""
    if not derivative.single or derivative.has_aux:
        raise TypeError(
            f"{derivative!r} in nopython code takes one `argnums` and no `has_aux`: call it from "
            "Python"
        )
    k = int(range(len(kinds))[derivative.argnums])
    float_of(kinds[k], derivative)
    return k


def _names(kinds: Kinds) -> str:
    return ", ".join(f"a{k}" for k in range(len(kinds)))


def _indented(text: str) -> str:
    return "\n".join(" " + line for line in text.split("\n"))


def _defined(space: dict[str, Any], count: int, *body: str) -> Any:
    """A function for Numba to compile."""
    names = ", ".join(f"a{k}" for k in range(count))
    text = "\n".join(body).replace("{args}", names)
    exec(f"def call({names}):\n{_indented(text)}", space := {"np": np, **space})
    return from_python(space["call"])

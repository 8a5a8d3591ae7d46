"""Programs and result types of a jitted function, for callers outside Python."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from tapegrad.base.dtypes import get_default_dtype
from tapegrad.compiler.front.signature import Compilation
from tapegrad.compiler.front.specialization import (
    ARRAY,
    FLOAT,
    SCALAR,
    STATIC,
    Leaf,
    Specialization,
)
from tapegrad.compiler.front.static_args import NONE
from tapegrad.compiler.trace.trace import Untraceable
from tapegrad.tape.shape_table import Shape
from tapegrad.transforms.call_arguments import name_of
from tapegrad.transforms.pytree import flatten, unflatten

DOUBLE = np.dtype(np.float64)
# Sizes that a function is tried with before its first call.
PROBES = (3, 2, 4, 1)


class Input(NamedTuple):
    """The static type of an input; `kind` is `ARRAY` or `FLOAT`."""

    kind: str
    rank: int
    dtype: np.dtype[Any]


NUMBER = Input(FLOAT, 0, DOUBLE)


class Join(NamedTuple):
    """A tuple in the result."""

    parts: tuple[Form, ...]


Form: TypeAlias = "Leaf | Join"


class Returned(NamedTuple):
    """The static type of the result: its structure, rank and dtype of each output."""

    form: Form
    outputs: tuple[tuple[int, np.dtype[Any]], ...]


class Source:
    """The source of a jitted function's programs."""

    def __init__(self, jitted: Compilation) -> None:
        self.jitted = jitted
        self.name = name_of(jitted.function)

    def __call__(self, *values: Any) -> Any:
        return self.jitted(*values)

    def specialization(self, *values: Any) -> Specialization | None:
        """The specialization for these values, made on demand; None: it is not compiled."""
        if self.jitted.statics is not NONE:
            raise TypeError(
                f"`{self.name}` has static arguments, which compiled code cannot pass: use a "
                "function without, `tapegrad.jit(lambda x: f(x, 3))`, say"
            )
        signature, leaves, arrays = self.jitted.signature(values, {})
        if signature in self.jitted._eager:
            return None
        try:
            return self.jitted.outputs(signature, leaves, arrays)[0]
        except Untraceable:
            return None

    def compiled(self, *values: Any) -> Specialization:
        """The program for these values; raises RuntimeError if it is not compiled."""
        specialization = self.specialization(*values)
        if specialization is None:
            raise RuntimeError(
                f"`{self.name}` is not compiled for arguments like these: what it does depends on "
                "their values in a way that a compiled program cannot follow"
            )
        return specialization

    def example(self, inputs: tuple[Input, ...]) -> Specialization:
        """A specialization for some shapes of these ranks: an earlier call's, or arrays of ones."""
        _, tree = flatten(((0.0,) * len(inputs), {}))
        met: list[tuple[Shape, ...]] = []  # in earlier calls, with other dtypes
        for signature, specializations in list(self.jitted._specializations.items()):
            known = signature.tree == tree and signature.default is get_default_dtype()
            if known and STATIC not in signature.kinds and specializations:
                shapes = tuple([shape for shape, _ in signature.keys])
                ranks = zip(signature.kinds, map(len, shapes), strict=True)
                if [(i.kind, i.rank) for i in inputs] == [*ranks]:
                    if [i.dtype.str for i in inputs] == [dtype for _, dtype in signature.keys]:
                        return specializations[0]
                    met.append(shapes)
        return self._probed(inputs, met)

    def _probed(self, inputs: tuple[Input, ...], met: list[tuple[Shape, ...]]) -> Specialization:
        said: Exception | None = None
        for shapes in (*met, *[tuple([(n,) * i.rank for i in inputs]) for n in PROBES]):
            try:
                return self.compiled(*[
                    np.ones(shape, i.dtype) if i.kind == ARRAY else 1.0
                    for i, shape in zip(inputs, shapes, strict=True)
                ])  # fmt: skip
            except Exception as error:
                said = said or error
        raise TypeError(
            f"`{self.name}` could not be run with arguments of these types, to find out what it "
            f"returns: {type(said).__name__}: {said}. If this is about shapes, which were made up: "
            "call it once from Python, with arguments as they will be, and then define the `@njit` "
            "function that uses it (again), since Numba keeps this failure"
        )

    def returned(self, specialization: Specialization) -> Returned:
        """The static type of its result, for code without Python objects."""
        outputs = tuple([(len(spec.shape), spec.dtype) for spec in specialization.program.outputs])
        return Returned(self._form(unflatten(specialization.tree, specialization.leaves)), outputs)

    def _form(self, found: Any) -> Form:
        if found is None:
            return Leaf(-1, STATIC)
        if isinstance(found, Leaf):
            if found.form == STATIC and not isinstance(found.value, bool | int | float):
                value = found.value
                dtype = f" of {value.dtype}" if hasattr(value, "dtype") else ""
                raise self._unfit(f"a constant of the type {type(value).__name__}{dtype}")
            if found.form not in (ARRAY, FLOAT, SCALAR, STATIC):
                raise self._unfit(f"a {found.form}")
            return found
        if not isinstance(found, tuple):
            raise self._unfit(f"a {type(found).__name__}")
        return Join(tuple([self._form(part) for part in found]))

    def _unfit(self, what: str) -> TypeError:
        return TypeError(
            f"`{self.name}` returns {what}. Called from compiled code it may return arrays, "
            "numbers, None and tuples (not lists) of them; those that do not depend on its "
            "arguments are of the dtypes float64, float32, int64, int32 or bool"
        )


def leaves(form: Form) -> list[Leaf]:
    """All leaves, in order."""
    return [leaf for leaf, _ in paired(form, None)]


def paired(form: Form, result: Any) -> list[tuple[Leaf, Any]]:
    """The leaves of a form with those of a result, or with None."""
    if isinstance(form, Leaf):
        return [(form, result)]
    results = [None] * len(form.parts) if result is None else result
    return [pair for part, value in zip(form.parts, results) for pair in paired(part, value)]

"""Matrices of derivatives of functions that Numba compiles, one column or one row at a time."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tapegrad.njit import marshalling
from tapegrad.njit.derivative_program import Request
from tapegrad.njit.evaluation import Evaluator, program_of
from tapegrad.njit.gradients import NumbaDerivative
from tapegrad.njit.marshalling import Array
from tapegrad.njit.numba_front.objects import Kinds
from tapegrad.transforms.call_arguments import name_of, paired, refuse_complex_matrix
from tapegrad.transforms.pytree import flatten, unflatten

Blocks = list[list[Array]]  # of the leaf of the result and the leaf of the arguments


def unit_directions(
    args: Sequence[Any], chosen: Sequence[int]
) -> Iterator[tuple[int, int, list[Any]]]:
    """For each element of the chosen arguments: its leaf among these, its place, and tangents."""
    leaves = [(k, leaf) for k, x in enumerate(args) for leaf in marshalling.leaves(x)]
    number = 0
    for at, (k, leaf) in enumerate(leaves):
        if k not in chosen:
            continue
        for e in range(np.size(leaf)):
            unit = np.zeros(np.shape(leaf))
            unit.flat[e] = 1.0
            directions: list[Any] = [None] * len(leaves)
            directions[at] = unit[()]
            yield number, e, directions
        number += 1


def number_of(x: Array) -> Any:
    """An array, or the number that one without dimensions holds."""
    return x if x.ndim else float(x) if x.dtype == np.float64 else x[()]


class _Matrix(NumbaDerivative):
    """A transform whose results are blocks."""

    def prepared(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], tuple[int, ...]]:
        """All arguments, and the numbers of those that are differentiated in: real ones."""
        given, chosen = super().prepared(args, kwargs)
        for leaf in (leaf for k in chosen for leaf in marshalling.leaves(given[k])):
            refuse_complex_matrix(self.name, np.asarray(leaf))
        return given, chosen

    def check_strict(self, given: tuple[Any, ...], chosen: tuple[int, ...]) -> None:
        """With `strict`, refuse an argument that no result depends on."""
        if not self.strict:
            return
        kinds = marshalling.kinds_of([marshalling.contiguous(x) for x in given])
        unused = set(chosen) - program_of(self.function, Request(kinds, chosen)).depends
        if unused:
            raise RuntimeError(
                f"`{self.name}` with `strict=True`: the value of {name_of(self.function)} does not "
                f"depend on argument {min(unused)}"
            )

    def in_form(
        self, blocks: Blocks, given: Sequence[Any], chosen: tuple[int, ...], count: int
    ) -> list[Any]:
        """For each leaf of the result its blocks in the form of the arguments."""
        return [
            self.as_arguments(list(map(number_of, row)), given, chosen, count) for row in blocks
        ]


class Jacobian(_Matrix):
    """`jacfwd`, `jacrev`, or `jacobian`, which takes what is fewer."""

    def nopython(self, kinds: Kinds) -> Any:
        """The function that nopython code calls with arguments of given types."""
        from tapegrad.njit.nopython_matrices import jacobian

        return jacobian(self, kinds)

    def evaluated(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The matrix."""
        given, chosen = self.prepared(args, kwargs)
        self.check_strict(given, chosen)
        value = self.evaluator.run(given, ()).value
        main, aux = paired(value, self.name, self.function, self.has_aux)
        results, tree = flatten(main)
        inputs = [leaf for k in chosen for leaf in marshalling.leaves(given[k])]
        blocks: Blocks = [
            [np.zeros((*np.shape(r), *np.shape(x)), np.result_type(r, x)) for x in inputs]
            for r in results
        ]
        rows, columns = (sum(map(np.size, part)) for part in (results, inputs))
        forward = self.name == "jacfwd" or (self.name == "jacobian" and columns < rows)
        fill: Callable[..., None] = self._columns if forward else self._rows
        fill(blocks, given, chosen, value, results)
        found = unflatten(tree, self.in_form(blocks, given, chosen, len(args)))
        return (found, aux) if self.has_aux else found

    def _columns(
        self, blocks: Blocks, given: Sequence[Any], chosen: tuple[int, ...], value: Any,
        results: list[Any],
    ) -> None:  # fmt: skip
        for j, e, directions in unit_directions(given, chosen):
            tangent = self.evaluator.run(given, (), directions=directions, moved=chosen).tangent
            for row, t in zip(blocks, flatten(tangent[0] if self.has_aux else tangent)[0]):
                _matrix(row[j], t)[:, e] = np.ravel(t)

    def _rows(
        self, blocks: Blocks, given: Sequence[Any], chosen: tuple[int, ...], value: Any,
        results: list[Any],
    ) -> None:  # fmt: skip
        leaves = flatten(value)[0]
        for r, result in enumerate(results):
            kind = np.asarray(result).dtype.kind
            # Of a complex result both parts have a row.
            units = {"f": (1.0,), "c": (1.0, 1j)}.get(kind, ())
            for e, unit in itertools.product(range(np.size(result)), units):
                seeds = zero_seeds(leaves)
                np.reshape(seeds[r], -1)[e] = unit
                found = self.evaluator.run(given, chosen, seeds=seeds, value=False).gradients
                for block, g in zip(blocks[r], found, strict=True):
                    _matrix(block, result)[e] += unit * np.ravel(g)


def _matrix(block: Array, x: Any) -> Array:
    """A block with a row for each element of the result `x`; either may have none."""
    return block.reshape(np.size(x), math.prod(block.shape[np.ndim(x) :]))


def zero_seeds(leaves: Sequence[Any]) -> list[Array]:
    """An adjoint of zero for each leaf of a result."""
    kinds = [np.asarray(x).dtype for x in leaves]
    return [np.zeros(np.shape(x), t if t.kind in "fc" else float) for x, t in zip(leaves, kinds)]


class Hessian(_Matrix):
    """`hessian`, one column at a time, forward over reverse."""

    def nopython(self, kinds: Kinds) -> Any:
        """The function that nopython code calls with arguments of given types."""
        from tapegrad.njit.nopython_matrices import hessian

        return hessian(self, kinds)

    def evaluated(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The matrix."""
        given, chosen = self.prepared(args, kwargs)
        inputs = [leaf for k in chosen for leaf in marshalling.leaves(given[k])]
        value: Any = None
        blocks: Blocks = [
            [np.zeros((*np.shape(x), *np.shape(y)), np.result_type(x, y)) for y in inputs]
            for x in inputs
        ]
        for j, e, directions in unit_directions(given, chosen):
            found = self.evaluator.run(
                given,
                chosen,
                whole=False,
                directions=directions,
                moved=chosen,
                check=self.check_program,
                value=self.has_aux,
            )
            value = found.value
            assert found.gradient_tangents is not None
            for row, t in zip(blocks, found.gradient_tangents, strict=True):
                _matrix(row[j], t)[:, e] = np.ravel(t)
        rows = self.in_form(blocks, given, chosen, len(args))
        matrix = self.as_arguments(rows, given, chosen, len(args))
        if not self.has_aux:
            return matrix
        if value is None:
            value = self.evaluator.run(given, ()).value
        return matrix, value[1]


class HessianProduct(NumbaDerivative):
    """`hvp` of a function of one argument."""

    directions = 1

    def nopython(self, kinds: Kinds) -> Any:
        """The function that nopython code calls with arguments of given types."""
        from tapegrad.njit.nopython_matrices import product

        return product(self, kinds)

    def __call__(self, x: Any, v: Any) -> Any:
        """The Hessian at `x` times `v`."""
        return super().__call__(x, v)

    def evaluated(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The product, of an array or a number."""
        x, v = args
        given, chosen = self.prepared((x,), {})
        directions = tangents_of(self.evaluator, given, (v,), chosen)
        found = self.evaluator.run(
            given, chosen, whole=False, directions=directions, check=self.check_program, value=False
        )
        assert found.gradient_tangents is not None
        self.offer_fast_call((x,), given, chosen, (v,))
        return self.as_arguments(found.gradient_tangents, given, chosen, 1)


def tangents_of(
    evaluator: Evaluator, args: Sequence[Any], tangents: Sequence[Any], chosen: Sequence[int]
) -> list[Any]:
    """The tangents of the leaves of all arguments; None for those that are not moved."""
    name = evaluator.name
    found: list[Any] = []
    for k, x in enumerate(args):
        leaves = marshalling.leaves(x)
        if k not in chosen:
            found += [None] * len(leaves)
            continue
        given = marshalling.leaves(tangents[k])
        if len(given) != len(leaves):
            raise ValueError(f"`{name}`: the tangent of argument {k} has another structure than it")
        for leaf, t in zip(leaves, given):
            if t is None:
                raise TypeError(
                    f"`{name}`: the tangent of argument {k} is None: pass zeros where it stays"
                )
            t = np.asarray(t)
            kinds, dtype = ("fciu", complex) if np.iscomplexobj(leaf) else ("fiu", float)
            if t.dtype.kind not in kinds:
                raise TypeError(f"`{name}` needs floating-point tangents, got {t.dtype}")
            if t.shape != np.shape(leaf):
                raise ValueError(
                    f"`{name}`: a tangent of shape {t.shape} was given for an argument of shape "
                    f"{np.shape(leaf)}"
                )
            found.append(t.astype(dtype, copy=False)[()])
    return found

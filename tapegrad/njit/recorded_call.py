"""One call, with Tensors, of a function that Numba compiles: its value and its sweeps on arrays."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numba.core.dispatcher import Dispatcher
from numba.np.numpy_support import as_dtype

from tapegrad.njit import marshalling
from tapegrad.njit.derivative_program import DerivativeProgram, Request, effects_of
from tapegrad.njit.evaluation import Evaluator, argument_name, program_of
from tapegrad.njit.gradients import like
from tapegrad.njit.marshalling import Array
from tapegrad.njit.numba_front.components import components
from tapegrad.njit.numba_front.objects import NumbaType, types
from tapegrad.ops.core import Spec
from tapegrad.tensor import Tensor
from tapegrad.transforms.call_arguments import name_of


class Signature(NamedTuple):
    """What is known of a function for arguments of given types."""

    written: frozenset[int]  # the arguments whose arrays it writes into
    form: Any  # its result, with anything for the leaves
    dtypes: tuple[np.dtype[Any] | None, ...]  # of the leaves; None for what is no number


class Callee:
    """A function that is called with Tensors, and what is known of it."""

    def __init__(self, f: Dispatcher) -> None:
        self.f, self.name = f, name_of(f)
        self.evaluator = Evaluator(f, "NumbaCall")
        self._signatures: dict[Any, Signature] = {}
        self._packs = bool(f.py_func.__code__.co_flags & inspect.CO_VARARGS)

    def run(self, args: Sequence[Any]) -> Any:
        """Call the function; of `*args` Numba has made the last argument."""
        return self.f(*args[:-1], *args[-1]) if self._packs else self.f(*args)

    def signature(self, args: tuple[Any, ...], chosen: tuple[int, ...]) -> Signature:
        """What is known for arguments like these, of which the `chosen` may have derivatives."""
        types_key = marshalling.type_fingerprint(args)
        key = None if types_key is None else (types_key, chosen)
        found = None if key is None else self._signatures.get(key)
        if found is None:
            effects = effects_of(self.f, marshalling.kinds_of(args), chosen)
            self.evaluator.refuse_draws(effects.draws)
            result = effects.result
            found = Signature(effects.written, _form(result), tuple(_dtypes(result)))
            if key is not None:
                self._signatures[key] = found
        return found


class RecordedCall:
    """The arguments of a call, with places for the Tensors among their leaves.

    `outputs` are the shapes and types of the leaves of its result, once these are known.
    """

    def __init__(self, callee: Callee, args: tuple[Any, ...], tensors: Sequence[Tensor]) -> None:
        self.callee, self.name = callee, callee.name
        self.form = [like(x, itertools.repeat(None)) for x in args]
        self.leaves: list[Any] = []
        self.owners: list[int] = []  # the numbers of the arguments that they belong to
        self.places: list[int] = []  # of the Tensors among the leaves
        self.types = [t._a.dtype for t in tensors]
        self.shapes = [t._a.shape for t in tensors]
        self.outputs: list[Spec] = []
        # Before a derivative reads an array again the caller may have changed it.
        copies = any(type(t) is not Tensor or t.requires_grad for t in tensors)
        for k, x in enumerate(args):
            for leaf in marshalling.leaves(x):
                self._add(k, leaf, copies)
        floats = [k for k in range(len(tensors)) if self.is_float(k)]
        self.signature = callee.signature(self._stand_ins(), self._chosen_arguments(floats))
        if self.signature.written:
            raise self._writes(min(self.signature.written))

    def _writes(self, k: int) -> NotImplementedError:
        """The error of a call whose writes nobody would see: sweeps run on copies."""
        name = argument_name(self.callee.f, k)
        return NotImplementedError(
            f"`{self.name}`, which Numba compiles, writes into its argument `{name}`; called with "
            "Tensors, what it writes would be lost: let it write into an array that it makes "
            f"(`{name} = {name}.copy()` in a function around it, if need be), and return that"
        )

    def _add(self, k: int, leaf: Any, copies: bool) -> None:
        if isinstance(leaf, list) and any(isinstance(x, Tensor) for x in leaf):
            raise TypeError(
                f"`{self.name}`, which Numba compiles, got a list with Tensors as argument {k}: "
                "pass a tuple, or `tapegrad.stack` of them"
            )
        if isinstance(leaf, Tensor):
            self.places.append(len(self.leaves))
            leaf = 0.0  # in its place
        self.leaves.append(marshalling.copied(leaf) if copies else leaf)
        self.owners.append(k)

    def _arguments(self, arrays: Sequence[Array]) -> tuple[Any, ...]:
        """All arguments, with arrays, or numbers, for the Tensors."""
        leaves = list(self.leaves)
        for place, a in zip(self.places, arrays, strict=True):
            leaves[place] = _argument(a)
        rest = iter(leaves)
        return tuple([like(x, rest) for x in self.form])

    def _stand_ins(self) -> tuple[Any, ...]:
        """Arguments of the same types."""
        pairs = zip(self.shapes, self.types, strict=True)
        return self._arguments([np.zeros((0,) * len(shape), dtype) for shape, dtype in pairs])

    def in_form(self, leaves: Sequence[Any]) -> Any:
        """Leaves of the result in its form."""
        rest = iter(leaves)
        dtypes = self.signature.dtypes
        return like(self.signature.form, iter([t if t is None else next(rest) for t in dtypes]))

    def is_float(self, k: int) -> bool:
        """Whether a Tensor among the arguments can have a derivative."""
        return self.types[k].kind in "fc"

    def numbers(self) -> list[tuple[int, Any]]:
        """The leaves of the arguments that have components, and their places among all."""
        return [(p, x) for p, x in enumerate(self.leaves) if marshalling.has_components(x)]

    def program(self, wanted: Sequence[int] | None) -> DerivativeProgram:
        """The program of the function, or of the gradients in some of the Tensors."""
        kinds = marshalling.kinds_of(self._stand_ins())
        chosen = self._chosen_arguments(wanted or ())
        request = Request(kinds, chosen, strong=False, value=wanted is None)
        return program_of(self.callee.f, request)

    def _chosen_arguments(self, wanted: Sequence[int]) -> tuple[int, ...]:
        """The arguments that some of the Tensors stand in."""
        return tuple(sorted({self.owners[self.places[k]] for k in wanted}))

    @property
    def float_outputs(self) -> list[Spec]:
        """The shapes and types of those leaves of the result that have a derivative."""
        return [spec for spec in self.outputs if spec.dtype.kind in "fc"]

    # -- on arrays, one for each Tensor ---------------------------------------------------------

    def value(self, *arrays: Array) -> list[Array]:
        """The leaves of the result, by the function itself."""
        given = self._arguments(arrays)
        found: list[Array] = []
        taken = [leaf for x in given for leaf in marshalling.leaves(x)]
        for leaf, dtype in self._numbers(self.callee.run(given)):
            if leaf is None:
                raise TypeError(f"`{self.callee.name}` returned None")
            shared = any(isinstance(a, np.ndarray) and np.may_share_memory(a, leaf) for a in taken)
            found.append(np.array(leaf, dtype, copy=shared or None))
            taken.append(leaf)
        return found

    def _numbers(self, result: Any) -> list[tuple[Any, np.dtype[Any]]]:
        """The numbers and arrays of a result, or of its tangent, and their types."""
        pairs = zip(marshalling.leaves(result), self.signature.dtypes, strict=True)
        return [(leaf, dtype) for leaf, dtype in pairs if dtype is not None]

    def gradients(self, wanted: Sequence[int], *arrays: Array) -> list[Array]:
        """The gradients in some of the Tensors; adjoints of the result follow these."""
        return self._derivatives(wanted, (), arrays)[1]

    def tangents(self, moved: Sequence[int], *arrays: Array) -> list[Array]:
        """The tangents of the result; those of some of the Tensors follow these."""
        return self._derivatives((), moved, arrays)[0]

    def second(self, wanted: Sequence[int], moved: Sequence[int], *arrays: Array) -> list[Array]:
        """The tangents of the result, then of the gradients in some of the Tensors.

        After the Tensors come adjoints of the result and tangents of some of the Tensors.
        """
        tangents, _, gradient_tangents = self._derivatives(wanted, moved, arrays)
        return tangents + gradient_tangents

    def _derivatives(
        self, wanted: Sequence[int], moved: Sequence[int], arrays: Sequence[Array]
    ) -> tuple[list[Array], list[Array], list[Array]]:
        count = len(self.places)
        args = self._arguments(arrays[:count])
        rest = iter(arrays[count:])
        seeds = self._seeds(rest) if wanted else None
        directions: list[Any] | None = None
        if moved:
            along = dict(zip([self.places[k] for k in moved], rest, strict=True))
            directions = [along.get(p) for p in range(len(self.leaves))]
        chosen = self._chosen_arguments(wanted)
        found = self.callee.evaluator.run(
            args, chosen, seeds=seeds, directions=directions, value=bool(moved)
        )
        tangents = self._numbers(found.tangent) if moved else []
        return (
            [np.asarray(x, t) for x, t in tangents if t.kind in "fc"],
            self._chosen(wanted, chosen, found.gradients),
            self._chosen(wanted, chosen, found.gradient_tangents or []),
        )

    def _seeds(self, adjoints: Iterator[Array]) -> list[Array]:
        """An adjoint for each number or array of the result, the next ones for those of floats."""
        return [
            np.array(next(adjoints), dtype, order="C") if dtype.kind in "fc" else np.zeros(shape)
            for shape, dtype in self.outputs
        ]

    def _chosen(
        self, wanted: Sequence[int], chosen: Sequence[int], found: Sequence[Any]
    ) -> list[Array]:
        """What was found for some of the Tensors, of what was for the leaves of arguments."""
        places = [p for p, _ in self.numbers() if self.owners[p] in chosen]
        of = dict(zip(places, found, strict=False))
        return [np.asarray(of[self.places[k]], self.types[k]) for k in wanted if found]


def _argument(a: Array) -> Any:
    """An array for a function that Numba compiles; a number, if it has no dimensions."""
    if a.ndim == 0:
        return a.item() if a.dtype.str[1:] in ("f8", "c16", "i8", "b1") else a[()]
    a = marshalling.contiguous(a)
    return a if a.flags.writeable else a.copy()


def _dtypes(t: NumbaType) -> Iterator[np.dtype[Any] | None]:
    """The types of the leaves of a result."""
    if isinstance(t, types.BaseTuple):
        for part in t:
            yield from _dtypes(part)
    else:
        yield as_dtype(types.unliteral(getattr(t, "dtype", t))) if components(t) else None


def _form(t: NumbaType) -> Any:
    """A result of a type, with None for the leaves."""
    if not isinstance(t, types.BaseTuple):
        return None
    parts = map(_form, t)
    cls = getattr(t, "instance_class", None)
    return tuple(parts) if cls is None else cls(*parts)

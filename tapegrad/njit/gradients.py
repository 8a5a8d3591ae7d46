"""Gradients of functions that Numba compiles: callables for Python and, as `.njit`, for Numba."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numba.core.dispatcher import Dispatcher

from tapegrad.compiler.front.jit import jit
from tapegrad.njit import marshalling
from tapegrad.njit.derivative_program import DerivativeProgram, Request
from tapegrad.njit.evaluation import Evaluator, all_positional, program_of
from tapegrad.njit.fast_calls import fast_call
from tapegrad.njit.numba_front.objects import Kinds, NumbaType, types
from tapegrad.transforms.call_arguments import Argnums, any_tensor, checked_argnums, name_of
from tapegrad.transforms.hessian_products import hvp
from tapegrad.transforms.jacobians import hessian, jacfwd, jacobian, jacrev
from tapegrad.transforms.pickling import reduced
from tapegrad.transforms.reverse import grad, value_and_grad

if TYPE_CHECKING:
    from tapegrad.compiler.front.cfunc import CFunction
    from tapegrad.njit.nopython_calls import Face

TRANSFORMS: dict[str, Callable[..., Any]] = {
    f.__name__: f for f in (grad, value_and_grad, jacobian, jacfwd, jacrev, hessian)
}


FAST_CALLS = 16  # kinds of arguments that have one
PATIENCE = 16  # calls that fast calls left NaN in, until these are given up


class NumbaDerivative:
    """What a transform returns for a function that Numba compiles."""

    pickles_itself = True
    directions = 0  # how many arguments follow those of the function

    def __init__(
        self, f: Dispatcher, name: str, argnums: Argnums = 0, has_aux: bool = False,
        strict: bool = False, max_memory: int | None = None, inplace: bool = False,
    ) -> None:  # fmt: skip
        functools.update_wrapper(self, f.py_func, updated=())
        self.function, self.name = f, name
        self.argnums, self.has_aux, self.strict = argnums, has_aux, strict
        self.single = isinstance(argnums, int | np.integer)
        self.max_memory, self.inplace = max_memory, inplace
        self.evaluator = Evaluator(f, name, checked_limit(max_memory, name))
        self._call: Callable[..., Any] = self._general
        self._fast_kinds: set[Any] = set()  # of arguments for which there is a fast call, or none
        self._repeats = 0  # of the evaluator, when a fast call was last made

    def __repr__(self) -> str:
        return f"<{self.name} of {name_of(self.function)}>"

    def __reduce__(self) -> Any:
        options = (self.name, self.argnums, self.has_aux, self.strict)
        limits = (self.max_memory, self.inplace)
        return reduced(self, type(self), self.function, *options, *limits)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The derivative: by machine code, or through a record if there are Tensors."""
        return self._call(*args, **kwargs)

    def _general(self, *args: Any, **kwargs: Any) -> Any:
        if any_tensor(*args, *kwargs.values()):
            return self.of_tensors(*args, **kwargs)
        return self.evaluated(args, kwargs)

    @functools.cached_property
    def of_tensors(self) -> Callable[..., Any]:
        """The same derivative of a function in Python that calls this one."""
        f = self.function

        @functools.wraps(f.py_func)
        def function(*args: Any, **kwargs: Any) -> Any:
            return f(*args, **kwargs)

        if self.name == "hvp":
            return hvp(function)
        transform: Callable[..., Callable[..., Any]] = TRANSFORMS[self.name]
        return transform(function, self.argnums, self.has_aux, strict=self.strict)

    def evaluated(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The derivative at arrays and numbers."""
        raise NotImplementedError

    def offer_fast_call(
        self, args: tuple[Any, ...], given: tuple[Any, ...], chosen: tuple[int, ...],
        directions: tuple[Any, ...] = (),
    ) -> None:  # fmt: skip
        """Put a fast call for arguments like these first, after they went the general way.

        With defaults they are those that are `given` to the function.  Where that had to multiply
        by strong products, as plain ones gave NaN, so does a second fast call, after the first.
        If even these go on giving NaN, the general way is the shorter one.
        """
        repeated, self._repeats = self.evaluator.repeats > self._repeats, self.evaluator.repeats
        if self.evaluator.large or self._repeats > PATIENCE:
            self._call = self._general
            return
        constants = given[len(args) :]
        args, given, directions = (
            tuple(map(marshalling.contiguous, part)) for part in (args, given, directions)
        )
        types_key = marshalling.type_fingerprint((*args, *directions))
        key = types_key, repeated
        if types_key is None or key in self._fast_kinds or len(self._fast_kinds) >= FAST_CALLS:
            return
        self._fast_kinds.add(key)
        order = checked_argnums(self.argnums, len(args), self.name, self.function)
        for strong in (True, False)[not repeated :]:
            request = Request(
                marshalling.kinds_of(given), chosen, False, chosen if directions else None,
                strong=strong, value=self.with_value,
            )  # fmt: skip
            made = fast_call(
                program_of(self.function, request), self.evaluator.limit, args, constants, order,
                self.single, directions, self._call, self.name,
            )  # fmt: skip
            self._call = self._call if made is None else made

    @functools.cached_property
    def njit(self) -> Face:
        """The same in nopython code, where arguments are positional."""
        from tapegrad.njit.nopython_calls import Face

        return Face(self)

    @property
    def _numba_type_(self) -> Any:
        """By this Numba knows the derivative itself."""
        return self.njit._numba_type_

    def nopython(self, kinds: Kinds) -> Any:
        """The function that nopython code calls with arguments of given types."""
        raise NotImplementedError

    def cfunc(self, kind: str, *examples: Any) -> CFunction:
        """The derivative as a C function pointer, as `cfunc` of a jitted function gives it.

        >>> import numba, tapegrad as tg
        >>> slope = tg.grad(numba.njit(lambda x: x**3))
        >>> made = slope.cfunc("scipy", 0.0)
        >>> made.ctypes(1, (made.ctypes.argtypes[1]._type_ * 1)(2.0), None)
        12.0
        """

        @functools.wraps(self.function.py_func)
        def derivative(*args: Any) -> Any:
            return self.of_tensors(*args)

        return jit(derivative).cfunc(kind, *examples)

    def prepared(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], tuple[int, ...]]:
        """All arguments, and the numbers of those that are differentiated in."""
        chosen = checked_argnums(self.argnums, len(args), self.name, self.function)
        given = all_positional(self.function, args, kwargs)
        self.evaluator.check(given, chosen)
        return given, tuple(sorted(chosen))

    def check_scalar(self, t: NumbaType) -> None:
        """Refuse a function that does not return what has a gradient."""
        f = name_of(self.function)
        if self.has_aux:
            if not isinstance(t, types.BaseTuple) or len(t) != 2:
                raise TypeError(
                    f"`{self.name}` with `has_aux=True`: {f} must return a pair (value, anything), "
                    f"got {t}"
                )
            t = next(iter(t))
        if not isinstance(t, types.Float):
            raise TypeError(
                f"`{self.name}`: {f} must return a floating-point scalar, got {t}; with "
                "`has_aux=True` it may return a pair of a scalar and anything else; "
                "`tapegrad.jacobian` differentiates arrays"
            )

    with_value = False

    def gradient(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
        """What the function returns, if that is wanted, and the gradient like the arguments."""
        given, chosen = self.prepared(args, kwargs)
        found = self.evaluator.run(
            given, chosen, whole=False, check=self.check_program, value=self.needs_value
        )
        if not (kwargs or self.has_aux or self.inplace):
            self.offer_fast_call(args, given, chosen)
        if self.inplace:  # sweeps put back what they overwrite, and ran on copies
            self.function(*given)
        return found.value, self.as_arguments(found.gradients, given, chosen, len(args))

    @property
    def needs_value(self) -> bool:
        """Whether what the function returns is a part of the result."""
        return self.with_value or self.has_aux

    def check_program(self, program: DerivativeProgram) -> None:
        """Refuse what a program shows to have no gradient."""
        self.check_scalar(program.result)
        if self.inplace and program.draws is not None:
            raise NotImplementedError(
                f"`{self.name}` with `inplace=True` runs {name_of(self.function)} twice, which may "
                "draw other random numbers each time"
            )
        if self.strict:
            unused = set(program.request.arguments) - program.depends
            if unused:
                raise RuntimeError(
                    f"`{self.name}` with `strict=True`: the value of {name_of(self.function)} does "
                    f"not depend on argument {min(unused)}"
                )

    def as_arguments(
        self, leaves: Sequence[Any], args: Sequence[Any], chosen: tuple[int, ...], count: int
    ) -> Any:
        """Gradients of leaves in the form of the arguments, in the order of `argnums`."""
        rest = iter(leaves)
        parts = {k: like(args[k], rest) for k in chosen}
        order = checked_argnums(self.argnums, count, self.name, self.function)
        found = tuple([parts[k] for k in order])
        return found[0] if self.single else found


def checked_limit(max_memory: Any, name: str) -> int | None:
    """How many bytes a call may take, if that is given."""
    if max_memory is None:
        return None
    if not isinstance(max_memory, int | np.integer) or isinstance(max_memory, bool):
        kind = type(max_memory).__name__
        raise TypeError(f"`{name}`: `max_memory` is a number of bytes, an integer, got {kind}")
    if not 0 < max_memory < 1 << 63:
        raise ValueError(f"`{name}`: `max_memory` is a positive number of bytes, got {max_memory}")
    return int(max_memory)


def like(x: Any, rest: Any) -> Any:
    """The next leaves in the form of an argument."""
    if not isinstance(x, tuple):
        return next(rest)
    parts = [like(part, rest) for part in x]
    return x._make(parts) if hasattr(x, "_make") else tuple(parts)


class Gradient(NumbaDerivative):
    """`grad` of a function that Numba compiles."""

    def evaluated(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The gradient."""
        value, gradient = self.gradient(args, kwargs)
        return (gradient, value[1]) if self.has_aux else gradient

    def nopython(self, kinds: Kinds) -> Any:
        """The function that nopython code calls with arguments of given types."""
        from tapegrad.njit.nopython_source import Source

        return Source(self, kinds).compiled()


class ValueAndGradient(Gradient):
    """`value_and_grad` of a function that Numba compiles."""

    with_value = True

    def evaluated(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The value and the gradient."""
        return self.gradient(args, kwargs)

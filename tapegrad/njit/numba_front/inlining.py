"""Calls of functions that are known as source: their code, in the place of the call."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from numba import typeof

from tapegrad.njit.numba_front.components import components, constants
from tapegrad.njit.numba_front.iteration import Iteration
from tapegrad.njit.numba_front.objects import NumbaIR, NumbaType, types
from tapegrad.njit.numba_front.typed_ir import RECURSION, Stencil, TypedFunction, overload_of
from tapegrad.njit.numba_front.writer import Found, Operands
from tapegrad.njit.three_address_code import Unsupported

DEEPEST = 40  # functions that are inlined in one another


def plain_type(t: NumbaType) -> NumbaType:
    """A type without the value that Numba may know; text is only that."""
    return t if isinstance(t, types.StringLiteral) else types.unliteral(t)


def _constant_type(x: Any) -> NumbaType:
    """The type of a default; of text, that of what it says."""
    if isinstance(x, str):
        return types.literal(x)
    if type(x) is tuple and x:
        return types.BaseTuple.from_types([_constant_type(part) for part in x])
    return typeof(x)


class Inlining(Iteration):
    """Writes the code of other functions."""

    translate: Callable[..., Any]  # the function `translation.translate`, which this is a part of
    depth = 0  # how many functions this one is inlined in

    def given_to(self, e: NumbaIR) -> tuple[list[Found], dict[str, Found]]:
        """The arguments of a call: by position and by name."""
        args = [self.known(a) for a in e.args]
        if e.vararg is not None:
            args += self.parts(*self.known(e.vararg))
        return args, {name: self.known(a) for name, a in e.kws}

    @staticmethod
    def bound(
        function: Callable[..., Any], args: list[Found], keywords: dict[str, Found]
    ) -> list[Found]:
        """The arguments of a call in the order of a function's parameters, with defaults."""
        signature = inspect.signature(function)
        try:
            given = signature.bind(*args, **keywords)
        except TypeError as error:
            raise Unsupported(str(error)) from error
        found: list[Found] = []
        for name, parameter in signature.parameters.items():
            if parameter.kind is parameter.VAR_POSITIONAL:
                rest = given.arguments.get(name, ())
                kind = types.StarArgTuple.from_types([t for _, t in rest])
                found.append(([x for ops, _ in rest for x in ops], kind))
            elif name in given.arguments:
                found.append(given.arguments[name])
            else:
                kind = _constant_type(parameter.default)
                found.append((constants(parameter.default, kind), kind))
        return found

    def known(self, var: NumbaIR) -> Found:
        """The components of a variable, and its type; of text that is what it says."""
        t = plain_type(self.type(var))
        return self.get(var, t), t

    def overloaded(self, e: NumbaIR, t: NumbaType, otherwise: str) -> Found:
        """A function that is written in Numba's language (`numba.extending.overload`).

        Numba has many of NumPy's functions that way, and users have their own.  `otherwise` says
        what is refused if it is none of these.
        """
        f = self.type(e.func)
        args, keywords = self.given_to(e)
        if isinstance(f, types.BoundFunction):
            args.insert(0, (self.names(e.func), f.this))
        source = overload_of(f, [k for _, k in args], {n: k for n, (_, k) in keywords.items()})
        if source is None:
            raise Unsupported(otherwise)
        given = self.bound(source, args, keywords)
        try:
            return self.inline(source, given, self.typed.options)
        except Unsupported as error:
            raise error if error.located else Unsupported(otherwise) from error

    def stencil(self, f: Any, e: NumbaIR) -> Found:
        """A stencil of a user: the loops that Numba makes of it, in the place of the call."""
        args, keywords = self.given_to(e)
        more = [keywords[name] for name in ("out", "neighborhood") if name in keywords]
        return self.inline(Stencil(f, "out" in keywords), [*args, *more], {})

    def inline(
        self, f: Callable[..., Any] | Stencil, args: list[Found],
        options: dict[str, Any] | None = None,
    ) -> Found:  # fmt: skip
        """The code of another function in the place of its call."""
        kinds = tuple([plain_type(t) for _, t in args])
        if self.depth >= DEEPEST:
            raise Unsupported(RECURSION)
        args = [(self.cast(ops, t, kind), kind) for (ops, t), kind in zip(args, kinds)]
        typed = TypedFunction(f, kinds, options)
        entry, after = self.current, self.code.block()
        found: list[Found] = []

        def done(inner: Inlining, result: Found) -> None:
            ops, t = result
            if not found:
                names: Operands = [self.code.name(kind, "r") for _, kind in components(t)]
                found.append((names, t))
            names, kind = found[0]
            for name, value in zip(names, inner.cast(ops, t, kind), strict=True):
                assert isinstance(name, str)
                inner.copy(value, name)
            inner.current.end("jump", (), after.label)

        start = self.translate(self.code, typed, args, done, self.depth + 1, self.unwind)
        entry.end("jump", (), start.label)
        self.current = after
        if not found:
            raise Unsupported("a function that never returns")
        return found[0]

"""Call a derivative from Numba's nopython code: `g.njit`, or `g` itself.

For each combination of argument types a function is written in Numba's own language, see
`nopython_source`.
"""

from __future__ import annotations

from typing import Any

from numba.core import errors

from tapegrad.base.locks import lock
from tapegrad.kernels.flags import from_python
from tapegrad.kernels.numba_callable import CallableType, registered
from tapegrad.njit import marshalling
from tapegrad.njit.evaluation import omitted
from tapegrad.njit.numba_front.objects import Kinds, NumbaType, types
from tapegrad.njit.three_address_code import Unsupported


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

    def __init__(self, derivative: Any) -> None:
        self.derivative = derivative  # a `NumbaDerivative`
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
                count = len(kinds) - self.derivative.directions
                rest = omitted(self.derivative.function, count) or ()
                every = *kinds[:count], *marshalling.kinds_of(rest), *kinds[count:]
                try:
                    made = self.derivative.nopython(every)
                except (TypeError, ValueError, Unsupported) as error:
                    raise errors.TypingError(str(error)) from error
                self._compiled[kinds] = _completed(made, len(kinds), count, rest) if rest else made
            return self._compiled[kinds]


def _completed(whole: Any, given: int, count: int, rest: tuple[Any, ...]) -> Any:
    """A function of so many arguments that calls another one with more, after the first few."""
    names = [f"a{k}" for k in range(given)]
    more = [f"b{k}" for k in range(len(rest))]
    every = ", ".join([*names[:count], *more, *names[count:]])
    exec(
        f"def call({', '.join(names)}):\n return whole({every})",
        space := {"whole": whole, **dict(zip(more, rest))},
    )
    return from_python(space["call"])


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

"""Call a derivative from Numba's nopython code: `g.njit`, or `g` itself.

For each combination of argument types a function is written in Numba's own language, see
`nopython_source`.
"""

from __future__ import annotations

import inspect
from typing import Any

from numba.core import errors

from tapegrad.base.locks import lock
from tapegrad.kernels.flags import from_python
from tapegrad.kernels.numba_callable import CallableType, registered
from tapegrad.njit import marshalling
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
        self._compiled: dict[tuple[Kinds, tuple[str, ...]], Any] = {}  # the second: names given
        self._called: dict[tuple[Kinds, tuple[str, ...]], Any] = {}  # the second: all parameters
        self._numba_type_ = DerivativeType(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The same in Python, for Numba code that runs uncompiled."""
        return self.derivative(*args, **kwargs)

    def __repr__(self) -> str:
        return f"{self.derivative!r} for Numba"

    def __reduce__(self) -> Any:
        return getattr, (self.derivative, "njit")

    def dispatcher(self, args: Kinds, named: dict[str, NumbaType]) -> Any:
        """The function that is called with arguments of these types, the last of them by name."""
        kinds = tuple(map(types.unliteral, (*args, *named.values())))
        key = kinds, tuple(named)
        with self._lock:
            if key not in self._compiled:
                try:
                    made = self._made(*key)
                except (TypeError, ValueError, Unsupported) as error:
                    raise errors.TypingError(str(error)) from error
                self._compiled[key] = self._called[kinds, _parameters(made.py_func)] = made
            return self._compiled[key]

    def called(self, signature: Any) -> Any:
        """The function that a call with this signature is resolved to."""
        names = tuple(signature.pysig.parameters)
        return self._called[tuple(map(types.unliteral, signature.args)), names]

    def _made(self, kinds: Kinds, named: tuple[str, ...]) -> Any:
        derivative = self.derivative
        if named and derivative.directions:
            raise TypeError(f"{derivative!r} was called with {', '.join(named)} by name: not here")
        if any(map(_holds_list, kinds)):
            raise TypeError(f"{derivative!r} was called with a list: pass an array or a tuple here")
        names = [f"_given{k}" for k in range(len(kinds) - len(named))] + [*named]
        count = len(names) - derivative.directions
        places = {name: _Place(name) for name in names}
        own = [places[name] for name in names[: count - len(named)]]
        bound = inspect.signature(derivative.function.py_func).bind(
            *own, **{name: places[name] for name in named}
        )
        bound.apply_defaults()
        # Defaults are constants here, in the order of elements of which `kind_of` speaks.
        every = [x if isinstance(x, _Place) else marshalling.contiguous(x) for x in bound.args]
        every += [places[name] for name in names[count:]]
        known = dict(zip(places.values(), kinds))
        made = derivative.nopython(
            tuple([known[x] if isinstance(x, _Place) else marshalling.kind_of(x) for x in every])
        )
        return made if every == [*places.values()] and not named else _arranged(made, names, every)


def _holds_list(t: NumbaType) -> bool:
    if isinstance(t, types.BaseTuple):
        return any(map(_holds_list, t))
    return isinstance(t, types.List)


class _Place(str):
    """The name of an argument that is given, where it is handed on."""

    __slots__ = ()


def _parameters(function: Any) -> tuple[str, ...]:
    """The names of a function's parameters."""
    return tuple(inspect.signature(function).parameters)


def _arranged(whole: Any, names: list[str], every: list[Any]) -> Any:
    """A function of some arguments that calls another one with these and with constants."""
    constants = {f"_default{k}": x for k, x in enumerate(every) if not isinstance(x, _Place)}
    texts = [x if isinstance(x, _Place) else f"_default{k}" for k, x in enumerate(every)]
    source = f"def call({', '.join(names)}):\n return whole({', '.join(texts)})"
    exec(source, space := {"whole": whole, **constants})
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
        return types.Dispatcher(self.face.called(signature)).get_impl_key(signature)

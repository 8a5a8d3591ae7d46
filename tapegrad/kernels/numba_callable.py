"""Objects that nopython code calls, by their name or their `njit`: what their types share."""

from __future__ import annotations

from typing import Any, TypeVar

from numba.core import types
from numba.core.registry import cpu_target
from numba.core.typing.templates import AttributeTemplate
from numba.extending import NativeValue, infer_getattr, lower_getattr, models, register_model, unbox


class CallableType(types.Callable, types.Opaque):
    """Numba's type of one object: each has its own."""

    def get_call_signatures(self) -> tuple[list[Any], bool]:
        """None: there is one for any arguments that the object takes."""
        return [], True


T = TypeVar("T", bound=type[CallableType])


def registered(cls: T) -> T:
    """Tell Numba of a type: nothing is known of its objects at run time, and `njit` gives them."""
    register_model(cls)(models.OpaqueModel)
    unbox(cls)(_unboxed)

    @infer_getattr
    class _Attributes(AttributeTemplate):
        key = cls

        def resolve_njit(self, found: Any) -> Any:
            return found

    lower_getattr(cls, "njit")(_njit)
    # Numba may be compiling already when a first `f.njit` in the source makes it load the module.
    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()
    return cls


def _unboxed(typ: Any, obj: Any, c: Any) -> Any:
    return NativeValue(c.context.get_dummy_value())


def _njit(context: Any, builder: Any, typ: Any, value: Any) -> Any:
    return context.get_dummy_value()

"""Calls, in Python code, of functions that Numba compiles with Tensors among the arguments.

Numba asks a Tensor for its type by `_numba_type_`, and gets `TENSOR`.  When it sets out to compile
a function for that, its event "numba:compile" tells which dispatcher does, and `TensorCalls` takes
the place of `_compile_for_args` in this one dispatcher: by that name Numba's C code asks what to
call with arguments of types that nothing is compiled for yet.  What is compiled goes as ever.

A dispatcher whose types are declared compiles nothing more and asks nobody.  It is found when it
asks a Tensor for its type, and may compile for the rest of this call: so it asks `TensorCalls`.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any, NoReturn

from numba.core import errors, event
from numba.core.dispatcher import OmittedArg
from numba.core.imputils import lower_constant
from numba.core.registry import CPUDispatcher, cpu_target
from numba.extending import models, register_model
from numba.stencils.stencil import StencilFunc

from tapegrad.njit import marshalling
from tapegrad.njit.call_records import NumbaCall
from tapegrad.njit.numba_front.objects import NumbaType, types
from tapegrad.njit.recorded_call import Callee, RecordedCall
from tapegrad.tensor import Tensor
from tapegrad.transforms.call_arguments import any_tensor


class TensorType(types.Opaque):  # type: ignore[misc]
    """Numba's type of a Tensor: nothing is compiled for it."""


# Numba names the type where it refuses one that the function reads from outside, or that comes to a
# function whose types are declared.
TENSOR = TensorType(
    "Tensor (which compiled code takes only as an argument, of a function without declared types)"
)
register_model(TensorType)(models.OpaqueModel)


@lower_constant(TensorType)  # type: ignore[no-untyped-call, untyped-decorator]
def _constant(context: Any, builder: Any, typ: Any, value: Any) -> NoReturn:
    raise TypeError(
        "a function that Numba compiles reads a Tensor that it was not given: pass it as an "
        "argument"
    )


cpu_target.target_context.refresh()  # Numba may be compiling what reads one


class _CompileListener(event.Listener):
    """Finds the dispatchers that are called with Tensors."""

    def on_start(self, event: Any) -> None:
        """Have a dispatcher ask `TensorCalls`, if it is about to compile for Tensors."""
        f = event.data["dispatcher"]
        if (
            isinstance(f, CPUDispatcher)
            and not f.targetoptions.get("forceobj")
            and any(map(_mentions_tensor, event.data["args"]))
            and "_compile_for_args" not in vars(f)
        ):
            vars(f)["_compile_for_args"] = TensorCalls(f)
            raise errors.ForceLiteralArg(())  # Numba begins anew, by `_compile_for_args`

    def on_end(self, event: Any) -> None:
        """Nothing: only beginnings are of interest."""


event.register("numba:compile", _CompileListener())  # type: ignore[no-untyped-call]


def type_of_tensor() -> TensorType:
    """`TENSOR`; a dispatcher of declared types that asks for it is to ask `TensorCalls` next."""
    frame: FrameType | None = sys._getframe(1)
    for _ in range(DEEPEST):
        if frame is None or frame.f_code is _ASKS:
            break
        if frame.f_code is _STENCIL:
            raise TypeError(
                "a stencil that is called from Python takes no Tensors: call it in a function that "
                "Numba compiles (`@njit`)"
            )
        frame = frame.f_back
    f: Any = None if frame is None else frame.f_locals.get("self")
    if isinstance(f, CPUDispatcher) and not getattr(f, "_can_compile", True):
        vars(f).setdefault("_compile_for_args", TensorCalls(f, declared=True))
        f.disable_compile(False)
    return TENSOR


_ASKS, _STENCIL = CPUDispatcher.typeof_pyval.__code__, StencilFunc.__call__.__code__
DEEPEST = 24  # calls between a dispatcher that asks for a type and a Tensor in tuples


def _mentions_tensor(t: NumbaType) -> bool:
    """Whether a type is that of a Tensor, or of a tuple or list of some."""
    if isinstance(t, types.BaseTuple):
        return any(map(_mentions_tensor, t))
    return t is TENSOR or (isinstance(t, types.List) and _mentions_tensor(t.dtype))


class TensorCalls:
    """What a dispatcher is to call with arguments that nothing is compiled for."""

    def __init__(self, f: CPUDispatcher, declared: bool = False) -> None:
        self.callee, self.declared = Callee(f), declared
        # Records bear the function's name, in pictures of the tape and in errors.
        self.record: Any = type(f.py_func.__name__, (NumbaCall,), {})

    def __call__(self, *args: Any, **kws: Any) -> Any:
        """What to call: compiled code; or, with Tensors, `called`."""
        f: Any = self.callee.f
        if self.declared:
            f.disable_compile()
        if any_tensor(*args):
            return self.called
        if self.declared:
            return f._explain_matching_error(*args, **kws)  # which raises
        return type(f)._compile_for_args(f, *args, **kws)

    def called(self, *args: Any) -> Any:
        """Call the function, as one record."""
        given = tuple([x.value if isinstance(x, OmittedArg) else x for x in args])
        tensors = [t for x in given for t in marshalling.leaves(x) if isinstance(t, Tensor)]
        call = RecordedCall(self.callee, given, tensors)
        return call.in_form(self.record.apply(call, *tensors))

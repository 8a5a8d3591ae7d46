"""Functions that Numba compiles, which transforms differentiate by machine code."""

from __future__ import annotations

import sys
from typing import Any

from tapegrad.transforms.call_arguments import any_tensor


def numba_derivatives(f: Any, args: Any = ()) -> Any:
    """The module with the transforms of functions that Numba compiles, if this is one; or None.

    With Tensors among the arguments such a function is as any other, see `njit.tensor_calls`.
    Numba is not imported for it: who has such a function has imported Numba.
    """
    dispatchers = sys.modules.get("numba.core.dispatcher")
    if dispatchers is None or not isinstance(f, dispatchers.Dispatcher) or any_tensor(args):
        return None
    from tapegrad.njit import derivatives

    return derivatives

"""The names of `autograd.extend`: functions whose derivatives the user defines."""

from tapegrad.transforms.primitives import (
    def_linear,
    defjvp,
    defjvp_argnum,
    defvjp,
    defvjp_argnum,
    notrace_primitive,
    primitive,
)

__all__ = [
    "def_linear", "defjvp", "defjvp_argnum", "defvjp", "defvjp_argnum", "notrace_primitive",
    "primitive",
]  # fmt: skip

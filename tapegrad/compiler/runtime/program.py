"""A compiled program: machine code for one trace, and its calling convention.

The machine code is a C function ``int64_t program(void **inputs, void **outputs, void *scratch)``:

=============  ================================================================================
``inputs[k]``  the first element of input k, an array in C order of `Program.inputs[k]`
``outputs[k]`` where output k is written, in C order; it must overlap no input
``scratch``    `Program.scratch` bytes at a multiple of 64 that nobody else uses meanwhile, or
               null: then the program takes them from its stack, or from the heap if they are many
result         0: done; k > 0: guard k - 1 does not hold, the outputs mean nothing and another
               trace has to serve; -1: a call back into Python raised, see `failure`
=============  ================================================================================

Several threads may run it at once.  It needs the GIL only in its calls back
into Python, which take it themselves: those of `Program.callbacks`, and of linear algebra that has
no result (a singular matrix) and has to say so.
"""

from __future__ import annotations

from typing import Any

from tapegrad.ops.core import Spec


class Program:
    """Machine code for one trace."""

    __slots__ = ("address", "callbacks", "inputs", "kept", "outputs", "scratch")

    def __init__(
        self, address: int, inputs: tuple[Spec, ...], outputs: tuple[Spec, ...], scratch: int,
        callbacks: tuple[str, ...] = (), kept: Any = None,
    ) -> None:  # fmt: skip
        self.address = address
        self.inputs = inputs
        self.outputs = outputs
        self.scratch = scratch
        self.callbacks = callbacks  # the operations that it calls back into Python for
        self.kept = kept  # what must live as long as the machine code

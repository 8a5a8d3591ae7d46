"""How long people wait: for the first gradient, for programs, for long loops; and their memory."""

from __future__ import annotations

from bench import libraries, sides
from bench.long_loops import long_loops
from bench.processes import fresh, starts
from bench.programs import NAMES, programs
from bench.python_loops import loops

# The first gradient is an eager one; the other groups compile.
ADAPTERS = libraries.ADAPTERS | {name: sides.ADAPTERS[name] for name in NAMES}
GROUPS = ("loops",)
PROCESS_GROUPS = {"start": starts, "fresh": fresh, "programs": programs, "memory": long_loops}

__all__ = ["ADAPTERS", "GROUPS", "PROCESS_GROUPS", "loops"]

"""The groups of functions that Numba compiles: the functions and their derivatives, a call."""

from bench.njit.measure import call, functions
from bench.sides import ADAPTERS as SIDES

ADAPTERS = {name: SIDES[name] for name in ("tapegrad", "jax")}
GROUPS = ("functions", "call")
PROCESS_GROUPS: dict[str, object] = {}

__all__ = ["ADAPTERS", "GROUPS", "PROCESS_GROUPS", "call", "functions"]

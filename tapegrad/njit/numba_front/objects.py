"""Numba's types and its intermediate representation, as objects of which no checker knows.

Numba's annotations say too little of what its own objects have.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from numba.core import ir as _ir
from numba.core import types as _types

ir: Any = _ir
types: Any = _types
NumbaType: TypeAlias = Any  # what Numba knows of a value
NumbaIR: TypeAlias = Any  # a statement, an expression or a variable
Kinds: TypeAlias = tuple[NumbaType, ...]  # of arguments

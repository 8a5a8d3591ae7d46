"""`scatter` that adds to what stands at a place, or multiplies it."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.dispatch.dispatch import run
from tapegrad.ops import index as i
from tapegrad.ops import scatter_reduce as sr
from tapegrad.ops import shape as s
from tapegrad.tensor import Tensor, wrap

ROWS = {"add": i.scatter_add, "multiply": sr.scatter_prod}


def combined(x: Tensor, dim: int, index: Tensor, src: Any, reduce: str) -> Tensor:
    """The elements of a source, or a number, combined with those at the places of an index."""
    if reduce not in ROWS:
        raise RuntimeError(f"`scatter`: reduce is 'add' or 'multiply', got {reduce!r}")
    given = src if isinstance(src, Tensor) else wrap(np.asarray(src, x._a.dtype))
    if not x._a.ndim:
        x, index, given = (run(s.reshape, (t,), {"shape": (1,)}) for t in (x, index, given))
        return run(s.reshape, (combined(x, dim, index, given, reduce),), {"shape": ()})
    shape = index._a.shape
    if not given._a.ndim:
        given = run(s.expand, (given,), {"shape": shape})
    elif given._a.shape != shape:
        given = run(s.getitem, (given,), {"index": tuple([slice(n) for n in shape])})
    return run(ROWS[reduce], (x, index, given), {"dim": dim})

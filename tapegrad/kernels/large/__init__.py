"""Large arrays: compiled loops beside the NumPy forwards of operations that are not elementwise.

Each function here computes what the forward of a row of the table computes, for the layouts that it
knows, and gives None for all others; then the forward does it.  Importing this package puts the two
together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapegrad.kernels.large import gather_scatter, reduce_loops, row_loops
from tapegrad.ops.core import table
from tapegrad.ops.index import WRITES
from tapegrad.parallel.large_elementwise import COMPILED


def beside(plain: Callable[..., Any], fast: Callable[..., Any], least: int = COMPILED) -> Any:
    """A function that tries a compiled loop before the plain forward, from a size on."""

    def function(x: Any, *args: Any, **params: Any) -> Any:
        if x.size >= least:
            found = fast(x, *args, **params)
            if found is not None:
                return found
        return plain(x, *args, **params)

    function.plain = plain  # type: ignore[attr-defined]
    return function


FORWARDS: dict[str, Callable[..., Any]] = {
    "clone": row_loops.clone,
    "cumsum": row_loops.cumsum,
    "decay": row_loops.decay,
    "exact": gather_scatter.exact,
    "flip": row_loops.flip,
    "gather": gather_scatter.gather,
    "index": gather_scatter.index,
    "index_select": gather_scatter.select_rows,
    "log_softmax": row_loops.log_softmax,
    "logsumexp": row_loops.logsumexp,
    "masked_fill": gather_scatter.masked_fill,
    "mean": reduce_loops.mean,
    "mse_loss": reduce_loops.mse_loss,
    "norm": reduce_loops.norm,
    "others_prod": reduce_loops.others_prod,
    "prod": reduce_loops.prod,
    "rcumsum": row_loops.rcumsum,
    "scatter": gather_scatter.scatter,
    "scatter_add": gather_scatter.scatter_add,
    "scattered": gather_scatter.scattered,
    "softmax": row_loops.softmax,
    "std": reduce_loops.std,
    "strong": gather_scatter.strong,
    "sum": reduce_loops.sum,
    "sum_to": reduce_loops.sum_to,
    "tril": row_loops.tril,
    "triu": row_loops.triu,
    "ungather": gather_scatter.ungather,
    "unindex": gather_scatter.unindex,
    "unselect": gather_scatter.unselect,
    "var": reduce_loops.var,
    "where": gather_scatter.where,
}
WRITERS: dict[str, Callable[..., Any]] = {
    "assign": row_loops.assign,
    "index_add": gather_scatter.add_rows,
    "scatter": gather_scatter.put_along,
    "scatter_add": gather_scatter.add_along,
}
for _name, _fast in FORWARDS.items():
    table[_name].forward = beside(table[_name].forward, _fast)
for _name, _fast in WRITERS.items():
    WRITES[_name] = beside(WRITES[_name], _fast)
table["product"].forward = beside(
    table["product"].forward, gather_scatter.outer, 1
)  # of any two vectors

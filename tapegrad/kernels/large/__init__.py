"""Large arrays: compiled loops beside the NumPy forwards of operations that are not elementwise.

Each function here computes what the forward of a row of the table computes, for the layouts that it
knows, and gives None for all others; then the forward does it.  Importing this package puts the two
together.  `dispatch` and `autograd` import it; it imports `ops` and `parallel`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapegrad.kernels.large import indexed_loops, reduce_loops, row_loops
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
    "exact": indexed_loops.exact,
    "flip": row_loops.flip,
    "gather": indexed_loops.gather,
    "index": indexed_loops.index,
    "index_select": indexed_loops.select_rows,
    "log_softmax": row_loops.log_softmax,
    "logsumexp": row_loops.logsumexp,
    "masked_fill": indexed_loops.masked_fill,
    "mean": reduce_loops.mean,
    "mse_loss": reduce_loops.mse_loss,
    "norm": reduce_loops.norm,
    "others_prod": reduce_loops.others_prod,
    "prod": reduce_loops.prod,
    "rcumsum": row_loops.rcumsum,
    "scatter": indexed_loops.scatter,
    "scatter_add": indexed_loops.scatter_add,
    "scattered": indexed_loops.scattered,
    "softmax": row_loops.softmax,
    "std": reduce_loops.std,
    "strong": indexed_loops.strong,
    "sum": reduce_loops.sum,
    "sum_to": reduce_loops.sum_to,
    "tril": row_loops.tril,
    "triu": row_loops.triu,
    "ungather": indexed_loops.ungather,
    "unindex": indexed_loops.unindex,
    "unselect": indexed_loops.unselect,
    "var": reduce_loops.var,
    "where": indexed_loops.where,
}
WRITERS: dict[str, Callable[..., Any]] = {
    "assign": row_loops.assign,
    "index_add": indexed_loops.add_rows,
    "scatter": indexed_loops.put_along,
    "scatter_add": indexed_loops.add_along,
}
for _name, _fast in FORWARDS.items():
    table[_name].forward = beside(table[_name].forward, _fast)
for _name, _fast in WRITERS.items():
    WRITES[_name] = beside(WRITES[_name], _fast)
table["product"].forward = beside(
    table["product"].forward, indexed_loops.outer, 1
)  # of any two vectors

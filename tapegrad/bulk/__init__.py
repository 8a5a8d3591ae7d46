"""Large arrays: compiled loops beside the NumPy forwards of operations that are not elementwise.

Each function here computes what the forward of a row of the table computes, for the layouts that it
knows, and gives None for all others; then the forward does it.  Importing this package puts the two
together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapegrad.bulk import places, reductions, rows
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
    "clone": rows.clone,
    "cumsum": rows.cumsum,
    "decay": rows.decay,
    "exact": places.exact,
    "flip": rows.flip,
    "gather": places.gather,
    "index": places.index,
    "index_select": places.select_rows,
    "log_softmax": rows.log_softmax,
    "logsumexp": rows.logsumexp,
    "masked_fill": places.masked_fill,
    "mean": reductions.mean,
    "mse_loss": reductions.mse_loss,
    "norm": reductions.norm,
    "others_prod": reductions.others_prod,
    "prod": reductions.prod,
    "rcumsum": rows.rcumsum,
    "scatter": places.scatter,
    "scatter_add": places.scatter_add,
    "scattered": places.scattered,
    "softmax": rows.softmax,
    "std": reductions.std,
    "strong": places.strong,
    "sum": reductions.sum,
    "sum_to": reductions.sum_to,
    "tril": rows.tril,
    "triu": rows.triu,
    "ungather": places.ungather,
    "unindex": places.unindex,
    "unselect": places.unselect,
    "var": reductions.var,
    "where": places.where,
}
WRITERS: dict[str, Callable[..., Any]] = {
    "assign": rows.assign,
    "index_add": places.add_rows,
    "scatter": places.put_along,
    "scatter_add": places.add_along,
}
for _name, _fast in FORWARDS.items():
    table[_name].forward = beside(table[_name].forward, _fast)
for _name, _fast in WRITERS.items():
    WRITES[_name] = beside(WRITES[_name], _fast)
table["product"].forward = beside(table["product"].forward, places.outer, 1)  # of any two vectors

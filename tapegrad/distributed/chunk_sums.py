"""`value_and_grad` of a sum over chunks that lie on the workers of a Dask cluster.

What a worker that dies takes along can be computed again, since all of it is the result of a task:
the function and the parameters, too, which would be lost if they were scattered.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from concurrent.futures import CancelledError
from functools import reduce
from typing import Any

from tapegrad.transforms import reverse
from tapegrad.transforms.call_arguments import name_of, require_function
from tapegrad.transforms.pytree import flatten, unflatten

NAME = "distributed.value_and_grad"
FAN_IN = 8  # results that one task adds up


def value_and_grad(f: Callable[..., Any], client: Any) -> Callable[..., Any]:
    """The value of the sum of `f` over distributed chunks, and its gradient, as a function.

    It is called as ``total(params, *data)``, and differentiates in `params`, a pytree. Each of
    `data` is a Dask array, bag or other collection, or a list of futures; `f` gets a block of
    each array, a list of the items of each bag's partition, what each future stands for.

    The chunks stay on their workers, where values and gradients are computed and added up, in an
    order that depends on their number alone. Persist a collection before: what is not in memory is
    computed in each call. When a worker dies, Dask computes its part again on another one, which it
    cannot do with data that were scattered.

    Parameters
    ----------
    f : called as ``f(params, *chunks)`` on the workers, to which cloudpickle takes it; returns a
        scalar. What `jit` returned is compiled once by each worker.
    client : a `distributed.Client`, not an asynchronous one.

    >>> import dask.array as da, numpy as np, tapegrad as tg
    >>> from distributed import Client
    >>> x = da.arange(8.0, chunks=2)
    >>> with Client(processes=False, dashboard_address=None) as client:
    ...     total = tg.distributed.value_and_grad(lambda w, x: np.sum((w * x) ** 2), client)
    ...     total(0.5, client.persist(x))
    (35.0, 140.0)
    """
    require_function(f, NAME)
    _check_client(client)
    return ChunkSum(f, client)


class ChunkSum:
    """The sum of a function over chunks, with its gradient."""

    def __init__(self, f: Callable[..., Any], client: Any) -> None:
        self.f = f
        self.client = client
        # Kept on the workers from call to call, with what it has compiled there.
        self.on_chunk: Any = None

    def __repr__(self) -> str:
        return f"<sum of {name_of(self.f)} over chunks, and its gradient>"

    def __call__(self, params: Any, *data: Any) -> Any:
        """The value and the gradient in `params`."""
        submit = self.client.submit
        chunks = self._zipped(data)
        if self.on_chunk is None or self.on_chunk.cancelled():  # by a restart of the cluster
            self.on_chunk = submit(reverse.value_and_grad, self.f, pure=False)
        at = submit(_same, params, pure=False)
        places = self.client.who_has([chunk for group in chunks for chunk in group])
        parts = []
        for group in chunks:
            # Who has all of them; without one Dask decides, by what it would have to move.
            near = set.intersection(*[set(places.get(chunk.key, ())) for chunk in group])
            where = {"workers": sorted(near), "allow_other_workers": True} if near else {}
            parts.append(submit(_call, self.on_chunk, at, *group, pure=False, **where))
        while len(parts) > 1:
            groups = [parts[k : k + FAN_IN] for k in range(0, len(parts), FAN_IN)]
            parts = [submit(_sum, group, pure=False) for group in groups]
        try:
            return parts[0].result()
        except CancelledError as error:
            raise RuntimeError(
                f"`{NAME}` of {name_of(self.f)}: a chunk was cancelled, or was scattered and is "
                "lost with its worker: hold its future, and make chunks by `persist`, `submit` or "
                "`map`, which Dask can repeat"
            ) from error

    def _zipped(self, data: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """The futures of the chunks that `f` gets in one call."""
        columns = [self._chunks(x) for x in data]
        counts = sorted({len(column) for column in columns})
        if not counts or counts[0] == 0:
            raise ValueError(
                f"`{NAME}` of {name_of(self.f)} got no chunks: it is called with parameters and at "
                "least one collection or list of futures"
            )
        if len(counts) > 1:
            raise ValueError(
                f"`{NAME}` of {name_of(self.f)} got data of {' and '.join(map(str, counts))} "
                "chunks: chunk them alike (`rechunk`, `repartition`)"
            )
        return list(zip(*columns, strict=True))

    def _chunks(self, x: Any) -> list[Any]:
        """The futures of a collection's chunks."""
        from dask.base import is_dask_collection
        from dask.core import flatten as flat
        from distributed import Future, futures_of

        if isinstance(x, (list, tuple)) and all(isinstance(each, Future) for each in x):
            return list(x)
        if not is_dask_collection(x):
            raise TypeError(
                f"`{NAME}` of {name_of(self.f)} takes Dask collections and lists of futures after "
                f"the parameters, got {type(x).__name__}: what each chunk needs whole goes with "
                "the parameters, or into the function"
            )
        held = self.client.persist(x)
        found = {future.key: future for future in futures_of(held)}
        return [found[key] for key in flat(held.__dask_keys__())]


def _check_client(client: Any) -> None:
    try:
        from distributed import Client
    except ImportError as error:
        raise ImportError(f"`{NAME}` needs Dask: pip install 'tapegrad[distributed]'") from error
    if not isinstance(client, Client) or client.asynchronous:
        kind = type(client).__name__
        got = f"an asynchronous {kind}" if isinstance(client, Client) else kind
        raise TypeError(f"`{NAME}` takes a synchronous `distributed.Client`, got {got}")


def _same(params: Any) -> Any:
    return params


def _call(f: Callable[..., Any], *args: Any) -> Any:
    return f(*args)


def _sum(parts: list[Any]) -> Any:
    """The sum of pytrees, leaf by leaf."""
    tree = flatten(parts[0])[1]
    rows = zip(*[flatten(part)[0] for part in parts], strict=True)
    return unflatten(tree, [reduce(operator.add, row) for row in rows])

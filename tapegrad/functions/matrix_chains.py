"""Products of several matrices, in the order that needs the fewest multiplications."""

from __future__ import annotations

from collections.abc import Sequence

from tapegrad.dispatch.dispatch import run
from tapegrad.functions.arguments import as_input
from tapegrad.functions.products import matmul
from tapegrad.functions.shapes import select
from tapegrad.ops.shape import unsqueeze
from tapegrad.tensor import Tensor


def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """The product of several matrices, in the order that needs the fewest multiplications.

    The first and the last may be vectors: a row and a column.

    >>> import tapegrad as tg
    >>> tg.linalg.multi_dot([tg.ones(2, 3), tg.ones(3, 4), tg.ones(4)])
    tensor([12., 12.])
    """
    parts = [as_input(x, "linalg.multi_dot") for x in tensors]
    if len(parts) < 2:
        raise RuntimeError(f"`linalg.multi_dot` needs at least 2 Tensors, got {len(parts)}")
    for k, x in enumerate(parts):
        ranks = (1, 2) if k in (0, len(parts) - 1) else (2,)
        if x._a.ndim not in ranks:
            raise RuntimeError(
                "`linalg.multi_dot` takes matrices (the first and the last may be vectors), got "
                f"the shape {x._a.shape} at place {k}"
            )
    row, column = parts[0]._a.ndim == 1, parts[-1]._a.ndim == 1
    if row:
        parts[0] = run(unsqueeze, (parts[0],), {"dims": (0,)})
    if column:
        parts[-1] = run(unsqueeze, (parts[-1],), {"dims": (1,)})
    for k in range(len(parts) - 1):
        a, b = parts[k]._a.shape, parts[k + 1]._a.shape
        if a[1] != b[0]:
            raise RuntimeError(
                f"`linalg.multi_dot`: the shapes {a} and {b} at places {k} and {k + 1} cannot be "
                f"multiplied: the inner dimensions {a[1]} and {b[0]} differ"
            )
    out = _chain(parts, _splits([x._a.shape[0] for x in parts] + [parts[-1]._a.shape[1]]))
    out = select(out, 1, 0) if column else out
    return select(out, 0, 0) if row else out


def chain_matmul(*matrices: Tensor) -> Tensor:
    """The product of several matrices, none of them a vector; of one it is that one.

    >>> import tapegrad as tg
    >>> tg.chain_matmul(tg.ones(1, 2), tg.ones(2, 3), tg.ones(3, 1))
    tensor([[6.]])
    """
    parts = [as_input(x, "chain_matmul") for x in matrices]
    for x in parts:
        if x._a.ndim != 2:
            raise RuntimeError(f"`chain_matmul` takes matrices, got the shape {x._a.shape}")
    if not parts:
        raise RuntimeError("`chain_matmul` needs at least one matrix, got none")
    return multi_dot(parts) if len(parts) > 1 else parts[0]


def _splits(sizes: list[int]) -> dict[tuple[int, int], int]:
    """Where to split each run of matrices, for the fewest multiplications."""
    n = len(sizes) - 1
    cost = {(i, i + 1): 0 for i in range(n)}
    best = {}
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            j = i + length
            cost[i, j], best[i, j] = min(
                (cost[i, k] + cost[k, j] + sizes[i] * sizes[k] * sizes[j], k)
                for k in range(i + 1, j)
            )
    return best


def _chain(parts: list[Tensor], best: dict[tuple[int, int], int]) -> Tensor:
    def product(i: int, j: int) -> Tensor:
        if j - i == 1:
            return parts[i]
        k = best[i, j]
        found: Tensor = matmul(product(i, k), product(k, j))
        return found

    return product(0, len(parts))

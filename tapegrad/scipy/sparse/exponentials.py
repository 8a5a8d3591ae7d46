"""The exponential of a matrix times a vector, by Taylor's series of matrices of small norm."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.functions.joining import stack
from tapegrad.functions.sparse import SparseTensor, alike, is_sparse, matrix_of
from tapegrad.scipy.either import for_tensors
from tapegrad.scipy.sparse.construction import csr_array, diags_array
from tapegrad.tensor import Tensor, tensor_of
from tapegrad.transforms.control import fori_loop
from tapegrad.transforms.custom import stop_gradient

# So many terms give all digits of float64 if the norm is no larger: Al-Mohy and Higham, 2011.
TERMS, NORM = 55, 9.9


@for_tensors("scipy.sparse.linalg")
def expm_multiply(
    A: Any, B: Any, start: float | None = None, stop: float | None = None, num: int | None = None,
    endpoint: bool | None = None, traceA: Any = None,
) -> Tensor:  # fmt: skip
    """The product ``expm(A) @ B``, without the exponential itself.

    With `start` and `stop` it is that of ``t * A`` at `num` times between these, 50 unless it is
    said. `traceA` has no effect.

    >>> import tapegrad as tg
    >>> A = tg.scipy.sparse.csr_array((tg.tensor([2.0]), ([0], [1])), shape=(2, 2))
    >>> tg.scipy.sparse.linalg.expm_multiply(A, tg.tensor([1.0, 3.0]))
    tensor([7., 3.])
    """
    a = matrix_of(A, "expm_multiply") if is_sparse(A) else csr_array(tensor_of(A, "expm_multiply"))
    b = tensor_of(B, "expm_multiply")
    if len({*a.shape, b._a.shape[0] if b._a.ndim in (1, 2) else -1}) != 1:
        raise ValueError(
            f"`expm_multiply`: a matrix of shape {a.shape} and a Tensor of shape {b._a.shape} do "
            "not fit together"
        )
    values, b = alike(a.data, b)
    a = SparseTensor(values, a.pattern)
    if start is None and stop is None and num is None:
        return _multiplied(a, b)
    times, step = np.linspace(
        start or 0.0, 1.0 if stop is None else stop, 50 if num is None else num,
        endpoint=endpoint is None or endpoint, retstep=True,
    )  # fmt: skip
    found = [_multiplied(a * float(times[0]), b)]
    for _ in times[1:]:
        found.append(_multiplied(a * float(step), found[-1]))
    return stack(found)


def _multiplied(a: SparseTensor, b: Tensor) -> Tensor:
    mean = a.trace() / a.shape[0]  # without it the norm is smaller
    a = a - mean * diags_array(np.ones(a.shape[0], b._a.dtype), format="csr")
    norm = stop_gradient(abs(a).sum(0).max())
    steps = np.maximum(np.ceil(norm / NORM), 1.0)

    def step(_: Any, b: Any) -> Any:
        def term(k: Any, both: Any) -> Any:
            power, total = both
            power = a @ power / (steps * (k + 1))
            return power, total + power

        return fori_loop(0, TERMS, term, (b, b))[1] * np.exp(mean / steps)

    found: Tensor = fori_loop(0, steps.to(np.int64), step, b)
    return found

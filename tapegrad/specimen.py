"""What a Tensor under a map shows instead of an array."""

from __future__ import annotations

from typing import Any

import numpy as np


class Specimen(np.ndarray):
    """Stands where the array of a batched Tensor would: shape and dtype of one example.

    There is no one value, so what would compute with it raises; `owner` is the Tensor itself.
    """

    owner: Any

    def __array_ufunc__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "the values of a Tensor under `vmap` cannot be read as an array: use an operation of "
            "tapegrad, or compute outside of the mapped function"
        )

    def __array_function__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__array_ufunc__()

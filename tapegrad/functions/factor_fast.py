"""The parts of results of operations on one matrix, or on a batch of them.

`decomposed` takes what `dispatch.run` would, and writes the same records; those of parts follow
from the operation and the shape of its operand, and are worked out once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tapegrad.dispatch.dispatch import run
from tapegrad.dispatch.one_operand import KNOWN, record_word, recorded
from tapegrad.ops.core import Op
from tapegrad.ops.factorizations import part
from tapegrad.tape.shape_table import LARGE
from tapegrad.tape.tape import current
from tapegrad.tensor import Tensor, placed

Index = tuple[Any, ...]
Parts = Callable[[int], tuple[Index, ...]]  # by the number of rows of the operand


class _Record(NamedTuple):
    """What the record of a part holds, and the index of the part."""

    at: Index
    word: int
    aux: int
    entry: Any


_records: dict[Any, list[_Record]] = {}


def decomposed(op: Op, x: Tensor, params: dict[str, Any], parts: Parts) -> list[Tensor]:
    """The parts of a result; imaginary parts are not taken off."""
    whole = recorded(op, x, params)
    if whole is None:
        whole = run(op, (x,), params)
        return [run(part, (whole,), {"index": index}) for index in parts(x._a.shape[-2])]
    tape, y = current.tape, whole._a
    key = op, x._a.shape, y.dtype, y.flags.c_contiguous, parts, *params.values()
    records = _records.get(key)
    if records is None:
        if len(_records) >= KNOWN:
            _records.clear()
        records = _records[key] = [_record(y, index) for index in parts(x._a.shape[-2])]
    found = []
    for index, word, aux, entry in records:
        r = np.array(y[index])
        if r.size > LARGE:
            tape.add_debt(r.nbytes)
        found.append(placed(r, tape, tape.append(word, (whole._pos,), r.shape, aux, entry)))
    return found


def _record(y: np.ndarray, index: Index) -> _Record:
    params = {"index": index}
    entry = (None, None, (params, ((y.shape, y.dtype),)))
    return _Record(index, *record_word(part, y, np.array(y[index]), params), entry)

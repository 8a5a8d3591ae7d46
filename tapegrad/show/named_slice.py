"""The slice of a tape under a Tensor: the records that it was computed by, and what they read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tapegrad.ops.core import ELEMENTWISE, Op, by_code
from tapegrad.tape.record_format import CODE_MASK, PACKED, RELEASED, SPENT, WORD
from tapegrad.tape.tape import Tape
from tapegrad.tape.tape_slice import beneath
from tapegrad.tensor import Tensor, place, tape_of

NUMBERS = (bool, int, float, complex, np.generic)
SMALL = 6  # elements up to which an array is written in full
Names = Mapping[str, Any] | None


class Operand(NamedTuple):
    """What a record reads at one place: `code` is a position, that of a leaf, or 0: a constant."""

    place: int
    name: str
    code: int
    constant: np.ndarray | None  # if its value was kept


def root_of(y: Any, caller: str) -> tuple[Tape, int]:
    """The tape of a Tensor, and the index of its record."""
    if not isinstance(y, Tensor):
        raise TypeError(f"`{caller}` takes a Tensor, got {type(y).__name__}")
    if type(y) is not Tensor:
        raise ValueError(
            f"`{caller}`: this {type(y).__name__} stands for a value that a transform follows: "
            "show what is computed outside of the transform"
        )
    tape = tape_of(y)
    if tape is None:
        raise ValueError(
            f"`{caller}`: this Tensor of shape {tuple(y.shape)} stands on no tape, it is a leaf "
            "or was not recorded: pass what is computed of it"
        )
    index = tape.index(place(y))
    if index < 0:
        raise ValueError(f"`{caller}`: the record at position {place(y)} was reclaimed")
    return tape, index


class NamedSlice:
    """The records under a Tensor, their operands, and the names that the caller gives to values."""

    def __init__(self, y: Tensor, caller: str, names: Names, tensors: dict[str, Any]) -> None:
        self.tape, self.top = root_of(y, caller)
        self.indices = beneath(self.tape, self.top)
        self.names: dict[int, str] = {}  # of positions and leaf codes
        self.named: dict[str, Tensor] = {}
        self._constants: dict[tuple[Any, ...], str] = {}
        for name, t in _given(caller, names, tensors).items():
            self._name(name, t)

    def _name(self, name: str, t: Tensor) -> None:
        at = place(t)
        if at == 0:
            self._constants.setdefault(_memory(t._a), name)
            return
        if at > 0 and tape_of(t) is not self.tape:
            return
        code = at if at > 0 else self.tape.slots.get(at, 0)
        if code and code not in self.names:
            self.names[code] = name
            self.named[name] = t

    def label(self, code: int) -> str:
        """The name of a value: the caller's, or that in a printed tape."""
        return self.names.get(code) or (f"leaf{-code - 1}" if code < 0 else str(code))

    def constant_name(self, array: np.ndarray) -> str:
        """The caller's name for a constant, or nothing."""
        return self._constants.get(_memory(array), "")

    def op(self, index: int) -> Op:
        """The row of a record's operation."""
        return by_code[int(self.tape.words()[index, WORD]) & CODE_MASK]

    def released(self, index: int) -> bool:
        """Whether a sweep has released a record."""
        return bool(self.tape.words()[index, WORD] & RELEASED)

    def entry(self, index: int) -> tuple[Any, ...] | None:
        """What a record of the table's operations keeps, if that can be read without calling."""
        entry = self.tape.keep[index]
        if type(entry) is not tuple or self.tape.words()[index, WORD] & (PACKED | SPENT):
            return None
        return entry

    def operands(self, index: int) -> list[Operand]:
        """What a record reads, in order."""
        codes, entry, op = self.tape.inputs(index), self.entry(index), self.op(index)
        if getattr(self.tape.keep[index], "pull", None) is not None:  # a Function's
            return [Operand(k, f"input {k}", code, None) for k, code in enumerate(codes) if code]
        specs = entry[-1][1] if entry and isinstance(entry[-1], tuple) else None
        count = len(codes) if op.variadic else len(op.inputs)
        found = []
        for k, code in enumerate((*codes, *[0] * count)[:count]):
            kept = entry[k] if entry is not None and code == 0 and k < len(entry) else None
            array = np.asarray(kept) if isinstance(kept, (np.ndarray, *NUMBERS)) else None
            no_array = specs is not None and (k >= len(specs) or specs[k] is None)
            if code == 0 and array is None and no_array and op.kind is not ELEMENTWISE:
                continue  # it was left out
            name = op.inputs[min(k, len(op.inputs) - 1)]
            found.append(Operand(k, f"{name}[{k}]" if op.variadic else name, code, array))
        return found


def _given(caller: str, names: Names, tensors: dict[str, Any]) -> dict[str, Tensor]:
    """The Tensors that have names; of one with several the first without an underscore counts."""
    if names is not None and not isinstance(names, Mapping):
        raise TypeError(
            f"`{caller}`: `names` is a dict of names and Tensors, got {type(names).__name__}"
        )
    for name, t in tensors.items():
        if not isinstance(t, Tensor):
            raise TypeError(f"`{caller}`: `{name}` names a Tensor, got {type(t).__name__}")
    every = {**(names or {}), **tensors}
    ordered = sorted(every, key=lambda name: name.startswith("_"))
    return {name: every[name] for name in ordered if type(every[name]) is Tensor}


def _memory(array: np.ndarray) -> tuple[Any, ...]:
    at = array.__array_interface__["data"][0]
    return at, array.shape, array.strides, array.dtype.str


def value_text(array: np.ndarray | None) -> str:
    """An array in one line: its elements, or, if these are many, its shape and norm."""
    if array is None:
        return "not kept"
    array = np.asarray(array)
    if array.size > SMALL:
        with np.errstate(all="ignore"):
            norm = np.linalg.norm(array.ravel().astype(np.result_type(array, np.float64)))
        return f"{array.shape} norm {norm:.6g}"
    return _elements(array.tolist()) if array.size else f"{array.shape}"


def _elements(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_elements, value)) + "]"
    return f"{value:.6g}" if isinstance(value, (float, complex)) else str(value)

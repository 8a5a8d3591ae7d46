"""The values of a tape's slice, as far as they are kept or can be computed from those."""

from __future__ import annotations

import numpy as np

from tapegrad.autograd.pullback import spec_at
from tapegrad.ops.core import CUSTOM
from tapegrad.show.named_slice import NamedSlice
from tapegrad.tape import versions
from tapegrad.tensor import Tensor


def known_values(part: NamedSlice, y: Tensor) -> dict[int, np.ndarray]:
    """The values of leaves and records, by their codes; memory that was changed since tells none.

    What no record has saved is computed from its operands, if the operation is elementwise, linear
    or a product.
    """
    return _Values(part, y).found


class _Values:
    def __init__(self, part: NamedSlice, y: Tensor) -> None:
        self.part, tape = part, part.tape
        self.found: dict[int, np.ndarray] = {}
        first = tape.tokens[part.indices[0]]
        changed = tape.last_mutation > first
        self.changed = versions.changed_at(tape, first) if changed else {}
        for t in (y, *part.named.values()):
            if t.position is not None:
                self._note(t.position, t._a, t.position)
        for index in part.indices:
            self._read(index)

    def _note(self, code: int, array: np.ndarray, position: int) -> None:
        """A value that was right at a position."""
        if code not in self.found and not any(
            self.changed.get(id(root), 0) > position for root in versions.roots(array)
        ):
            self.found[code] = array

    def _read(self, index: int) -> None:
        """What a record knows of its operands and its result."""
        part, tape = self.part, self.part.tape
        position, entry = tape.tokens[index], part.entry(index)
        for operand in part.operands(index):
            if operand.code < 0:
                self._note(operand.code, tape.leaves[-operand.code - 1]._a, position)
            elif operand.code and entry is not None and operand.place < len(entry):
                kept = entry[operand.place]
                if isinstance(kept, np.ndarray):
                    self._note(operand.code, kept, position)
        if entry is not None:
            values = entry[:-1] if isinstance(entry[-1], tuple) else entry
            if values and isinstance(values[-1], np.ndarray):
                self._note(position, values[-1], position)
        if position not in self.found:
            computed = self._computed(index)
            if computed is not None:
                self.found[position] = computed

    def _computed(self, index: int) -> np.ndarray | None:
        """A result, computed again."""
        part, tape = self.part, self.part.tape
        op, entry = part.op(index), part.entry(index)
        own = getattr(tape.keep[index], "pull", None) is not None
        if own or (op.kind == CUSTOM and not op.multilinear):
            return None
        operands = part.operands(index)
        values = [self.found.get(o.code) if o.code else o.constant for o in operands]
        known = values and all(value is not None for value in values)
        if not known or (len(values) < len(op.inputs) and not op.variadic):
            return None
        params = entry[-1][0] if entry and isinstance(entry[-1], tuple) else {}
        spec = spec_at(tape, index)
        found = np.asarray(op.forward(*values, **params))
        return found.astype(spec.dtype, copy=False) if found.shape == spec.shape else None

"""Adjoints of casts between float32 and float64: casts back."""

from tapegrad.kernels.memory import f4, f8, i8
from tapegrad.kernels.sweep.arena import hand_on, take, wanted, widened
from tapegrad.kernels.sweep.reachability import input_at
from tapegrad.kernels.sweep.sweep_abi import SweepFrame
from tapegrad.tape.record_format import FIELDS, SHAPE


def cast_back(frame_at, index, kind, g, itemsize, p5, p6, p7):
    """Hand on the adjoint of one record, of which each element takes so many bytes."""
    frame = SweepFrame(frame_at)
    record = i8(frame.records + index * FIELDS * 8)
    code, count = input_at(frame, record, 0), i8(frame.sizes)[record[SHAPE]]
    if not wanted(frame, code):
        return 1
    if itemsize == 4:
        hand_on(frame, code, widened(frame, g, 1, count, 0, 1), count, 8)
    else:
        out = take(frame, count * 4)
        for i in range(count):
            f4(out)[i] = f8(g)[i]
        hand_on(frame, code, out, count, 4)
    return 1

"""Adjoints of sums over windows of small volumes, which are sums over windows, too.

Which ones is said by `kernels.large.volume_windows.adjoint`.
"""

from tapegrad.kernels.memory import call8, i8
from tapegrad.kernels.sweep.arena import give_back, hand_on, take, wanted
from tapegrad.kernels.sweep.reachability import input_at
from tapegrad.kernels.sweep.sweep_abi import SweepFrame
from tapegrad.kernels.windows_abi import WindowAdjoint
from tapegrad.tape.record_format import AUX, FIELDS


def windowed(frame_at, index, kind, g, p4, p5, p6, p7):
    """Hand on the adjoint of one record."""
    frame = SweepFrame(frame_at)
    record = i8(frame.records + index * FIELDS * 8)
    code, this = input_at(frame, record, 0), WindowAdjoint(record[AUX])
    if wanted(frame, code):
        out, room = take(frame, this.size * this.itemsize), take(frame, this.room)
        call8(this.loop, this.table, g, 0, out, room, 0, this.volumes, 0)
        give_back(frame, room, this.room)
        hand_on(frame, code, out, this.size, this.itemsize)
    return 1

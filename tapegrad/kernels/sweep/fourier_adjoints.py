"""Adjoints of small Fourier transforms: transforms back, of which `FourierAdjoint` tells.

Frequencies that stand for two, themselves and their conjugates, are weighed before or after.
"""

from tapegrad.kernels.flags import typed, typed_with
from tapegrad.kernels.fourier_abi import FourierAdjoint
from tapegrad.kernels.memory import address, call4, call8, f4, f8, i8, room_i8
from tapegrad.kernels.sweep.arena import give_back, hand_on, take, wanted
from tapegrad.kernels.sweep.reachability import input_at
from tapegrad.kernels.sweep.sweep_abi import SweepFrame
from tapegrad.tape.record_format import AUX, DTYPE_SHIFT, FIELDS, WORD


@typed
def weigh(single, weights, count, source, target):
    """Multiply complex numbers by real ones."""
    for i in range(count):
        for k in range(2):
            if single:
                f4(target)[2 * i + k] = f4(source)[2 * i + k] * f4(weights)[i]
            else:
                f8(target)[2 * i + k] = f8(source)[2 * i + k] * f8(weights)[i]


@typed
def keep_real(single, count, source, target):
    """Copy the real parts of complex numbers."""
    for i in range(count):
        if single:
            f4(target)[i] = f4(source)[2 * i]
        else:
            f8(target)[i] = f8(source)[2 * i]


@typed_with(this=FourierAdjoint)
def transform(frame, this, source, made):
    """Compute the transform."""
    if this.form:
        room = take(frame, this.room)
        call8(this.loop, this.form, source, 0, made, room, 0, this.units, 0)
        give_back(frame, room, this.room)
        return
    arguments, sizes, paces = room_i8(3), room_i8(3), room_i8(5)
    arguments[0], arguments[1], arguments[2] = source, this.factor, made
    sizes[0], sizes[1], sizes[2] = this.lines, this.length, this.made_length
    paces[0], paces[2] = this.length * this.itemsize, this.made_length * this.made_itemsize
    paces[3], paces[4] = this.itemsize, this.made_itemsize
    call4(this.loop, address(arguments), address(sizes), address(paces), this.data)


def transformed(frame_at, index, kind, g, p4, p5, p6, p7):
    """Hand on the adjoint of one record."""
    frame = SweepFrame(frame_at)
    record = i8(frame.records + index * FIELDS * 8)
    code, this = input_at(frame, record, 0), FourierAdjoint(record[AUX])
    if not wanted(frame, code):
        return 1
    single = (record[WORD] >> DTYPE_SHIFT) & 1
    part, source, made = 4 if single else 8, g, take(frame, this.made)
    if this.before:
        source = take(frame, this.given)
        weigh(single, this.before, this.given // this.itemsize, g, source)
    transform(frame, this, source, made)
    if this.before:
        give_back(frame, source, this.given)
    if this.after:
        weigh(single, this.after, this.made // this.made_itemsize, made, made)
    if this.keeps_real:
        count = this.made // this.made_itemsize
        out = take(frame, this.made >> 1)
        keep_real(single, count, made, out)
        give_back(frame, made, this.made)
        hand_on(frame, code, out, count, part)
    else:
        hand_on(frame, code, made, this.made // part, part)
    return 1

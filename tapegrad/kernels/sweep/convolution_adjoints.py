"""Adjoints of convolutions of small images, which are convolutions, too.

Which ones the rule says: see `kernels.large.direct_convolution.adjoints`.  Nothing is handed on
where a number is NaN: what a zero gives against that, or an infinity, only the rule knows.
"""

from tapegrad.kernels.convolution_abi import ADJOINT, AdjointForm, Form
from tapegrad.kernels.convolution_loops import run_form
from tapegrad.kernels.flags import typed
from tapegrad.kernels.memory import i4, i8, room_i8
from tapegrad.kernels.sweep.arena import data, give_back, hand_on, has_nan, saved, take, wanted
from tapegrad.kernels.sweep.reachability import input_at
from tapegrad.kernels.sweep.sweep_abi import ALIGNED_IN_C_ORDER, SweepFrame
from tapegrad.tape.record_format import AUX, FIELDS


@typed
def operand(frame, index, k, g):
    """Where an operand of a form begins; 0 where it does not lie in C order."""
    if k == ADJOINT:
        return g
    header = saved(frame, index, k)
    if i4(header + frame.array_flags)[0] & ALIGNED_IN_C_ORDER != ALIGNED_IN_C_ORDER:
        return 0
    return data(frame, header)


@typed
def computed(frame, record, index, k, g):
    """A buffer with the adjoint of an input, or 0."""
    this = AdjointForm(record[AUX])[k]
    form = Form(this.form)
    a, b = operand(frame, index, this.first, g), operand(frame, index, this.second, g)
    if a == 0 or b == 0:
        return 0
    nbytes, room_nbytes = form.size * form.itemsize, form.room * form.itemsize
    out, room = take(frame, nbytes), take(frame, room_nbytes)
    run_form(this.form, a, b, out, room, 0, form.units)
    give_back(frame, room, room_nbytes)
    if has_nan(out, form.size, form.itemsize):
        give_back(frame, out, nbytes)
        return 0
    return out


def convolved(frame_at, index, kind, g, p4, p5, p6, p7):
    """Hand on the adjoint of one record; 0, with nothing handed on, if the rule has to."""
    frame, made = SweepFrame(frame_at), room_i8(2)
    record = i8(frame.records + index * FIELDS * 8)
    for k in range(2):
        if wanted(frame, input_at(frame, record, k)):
            made[k] = computed(frame, record, index, k, g)
            if made[k] == 0:
                if made[0] != 0:
                    form = Form(AdjointForm(record[AUX])[0].form)
                    give_back(frame, made[0], form.size * form.itemsize)
                return 0
    for k in range(2):
        if made[k] != 0:
            form = Form(AdjointForm(record[AUX])[k].form)
            hand_on(frame, input_at(frame, record, k), made[k], form.size, form.itemsize)
    return 1

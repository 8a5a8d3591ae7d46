"""Calling a kernel row by row: for operands that are broadcast along rows or columns."""

from tapegrad.kernels.memory import call8, i8


def rows(frame_at):
    """Call frame[0] frame[1] times with the arguments frame[2:10], which move by frame[10:18]."""
    frame = i8(frame_at)
    kernel = frame[0]
    a, b, c, d = frame[2], frame[3], frame[4], frame[5]
    e, f, g, h = frame[6], frame[7], frame[8], frame[9]
    for _ in range(frame[1]):
        call8(kernel, a, b, c, d, e, f, g, h)
        a += frame[10]
        b += frame[11]
        c += frame[12]
        d += frame[13]
        e += frame[14]
        f += frame[15]
        g += frame[16]
        h += frame[17]
    return 0

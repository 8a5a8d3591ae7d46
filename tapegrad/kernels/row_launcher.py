"""Launch a kernel row by row, on one thread or on several that wait for it.

A frame says what is called: frame[0] is the kernel, which is called frame[1] times with the
arguments frame[2:10], which move by frame[10:18].

A waiting thread has a mailbox: its first word is one of the states below, and from `FRAME` on it
holds a frame.  The thread watches it for a while, `patience` times, since waking a thread that
sleeps takes longer than many an operation; then it parks itself, and whoever posts must wake it.
"""

from tapegrad.kernels.flags import typed
from tapegrad.kernels.memory import call8, exchange, exchange_if, i8, load, pause

IDLE, POSTED, ASKED, PARKED = 0, 1, 2, 3  # ASKED: a function of Python, which the caller runs
FRAME = 64  # bytes
WORDS = 32  # of a mailbox


@typed
def call(frame_at):
    """Do what a frame says."""
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


def rows(frame_at):
    """Do what a frame says, on this thread."""
    return call(frame_at)


def serve(mail_at, patience):
    """Do what is posted, until a function of Python is asked for or nothing comes any more."""
    waited = 0
    while True:
        state = load(mail_at)
        if state == POSTED:
            call(mail_at + FRAME)
            exchange(mail_at, IDLE)
            waited = 0
        elif state == ASKED:
            return ASKED
        elif waited < patience:
            pause()
            waited += 1
        elif exchange_if(mail_at, IDLE, PARKED) == IDLE:
            return PARKED


def post(mail_at, state):
    """Change the state of a mailbox, and return the one before."""
    return exchange(mail_at, state)


def finish(frame_at, mail_at, count, patience):
    """Do what a frame says, then wait for some mailboxes; how many are still at work."""
    if frame_at:
        call(frame_at)
    busy = 0
    for k in range(count):
        at = mail_at + k * WORDS * 8
        state = load(at)
        while (state == POSTED or state == ASKED) and patience > 0:
            pause()
            patience -= 1
            state = load(at)
        if state == POSTED or state == ASKED:
            busy += 1
    return busy

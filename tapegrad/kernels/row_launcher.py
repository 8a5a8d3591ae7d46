"""Launch a kernel row by row, on one thread or on several that wait for it: see `launch_abi`.

A waiting thread watches its mailbox for a while, `patience` times, since waking a thread that
sleeps takes longer than many an operation; then it parks itself, and whoever posts must wake it.
Who posts takes back what nobody has begun when its own part is done: where other programs have the
processors, a thread may not come for milliseconds.
"""

from tapegrad.kernels.flags import typed
from tapegrad.kernels.launch_abi import BEGUN, CALLBACK, IDLE, PARKED, POSTED, Launch, Mailbox
from tapegrad.kernels.memory import address, call8, exchange, exchange_if, load, pause


@typed
def call(launch_at):
    """Call a kernel for each row."""
    kernel, step = Launch(launch_at).kernel, Launch(launch_at).steps
    given = Launch(launch_at).arguments
    a, b, c, d = given[0], given[1], given[2], given[3]
    e, f, g, h = given[4], given[5], given[6], given[7]
    for _ in range(Launch(launch_at).calls):
        call8(kernel, a, b, c, d, e, f, g, h)
        a += step[0]
        b += step[1]
        c += step[2]
        d += step[3]
        e += step[4]
        f += step[5]
        g += step[6]
        h += step[7]
    return 0


def rows(launch_at):
    """Launch on this thread."""
    return call(launch_at)


def serve(mail_at, patience):
    """Do what is posted, until a function of Python is asked for or nothing comes any more."""
    waited, state_at = 0, address(Mailbox(mail_at).state)
    while True:
        state = load(state_at)
        if state == POSTED:
            if exchange_if(state_at, POSTED, BEGUN) == POSTED:
                call(address(Mailbox(mail_at).launch))
                exchange(state_at, IDLE)
            waited = 0
        elif state == CALLBACK:
            return CALLBACK
        elif state == PARKED:  # it was woken in vain
            return PARKED
        elif waited < patience:
            pause()
            waited += 1
        elif exchange_if(state_at, IDLE, PARKED) == IDLE:
            return PARKED


def post(mail_at, state):
    """Change the state of a mailbox, and return the one before."""
    return exchange(address(Mailbox(mail_at).state), state)


def finish(launch_at, mail_at, count, patience):
    """Launch, also what nobody has begun, then wait; how many threads are still at work."""
    if launch_at:
        call(launch_at)
    for k in range(count):
        if exchange_if(address(Mailbox(mail_at)[k].state), POSTED, IDLE) == POSTED:
            call(address(Mailbox(mail_at)[k].launch))
    busy = 0
    for k in range(count):
        at = address(Mailbox(mail_at)[k].state)
        state = load(at)
        while (state == BEGUN or state == CALLBACK) and patience > 0:
            pause()
            patience -= 1
            state = load(at)
        if state == BEGUN or state == CALLBACK:
            busy += 1
    return busy

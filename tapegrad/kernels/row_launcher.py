"""Launch a kernel row by row, on one thread or on several that wait for it: see `launch_abi`.

A waiting thread watches its mailbox for a while, `patience` times, since waking a thread that
sleeps takes longer than many an operation; then it parks itself, and whoever posts must wake it.
Each thread begins with calls of its own, and goes on with those of others that nobody has taken:
where other programs have the processors, or a thread has to wake, it may come late.
"""

from tapegrad.kernels.flags import typed
from tapegrad.kernels.launch_abi import BEGUN, CALLBACK, IDLE, PARKED, POSTED, Launch, Mailbox
from tapegrad.kernels.memory import address, call8, exchange, exchange_if, load, pause

SHARES = 8  # in which threads take the calls of a launch, if these are many


@typed
def some(launch_at, first, last):
    """Call a kernel for some of the rows."""
    kernel, step = Launch(launch_at).kernel, Launch(launch_at).steps
    given = Launch(launch_at).arguments
    a, b = given[0] + first * step[0], given[1] + first * step[1]
    c, d = given[2] + first * step[2], given[3] + first * step[3]
    e, f = given[4] + first * step[4], given[5] + first * step[5]
    g, h = given[6] + first * step[6], given[7] + first * step[7]
    for _ in range(first, last):
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


@typed
def share(launch_at):
    """Call a kernel for the rows that no other thread has taken."""
    calls, taken = Launch(launch_at).calls, address(Launch(launch_at).taken)
    share_of = max(calls // SHARES, 1)
    first = load(taken)
    while first < calls:
        last = min(first + share_of, calls)
        if exchange_if(taken, first, last) == first:
            some(launch_at, first, last)
        first = load(taken)
    return 0


@typed
def share_all(launches_at, count, own):
    """Do so much of some launches as others leave, beginning with one's own."""
    for i in range(count):
        share(launches_at + (own + i) % count * (8 * Launch.SIZE))
    return 0


def rows(launch_at):
    """Launch on this thread."""
    return some(launch_at, 0, Launch(launch_at).calls)


def serve(mail_at, patience):
    """Do what is posted, until a function of Python is asked for or nothing comes any more."""
    waited, state_at = 0, address(Mailbox(mail_at).state)
    while True:
        state = load(state_at)
        if state == POSTED:
            if exchange_if(state_at, POSTED, BEGUN) == POSTED:
                mail = Mailbox(mail_at)
                share_all(mail.launches, mail.count, mail.own)
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


def finish(launches_at, launches, mail_at, count, patience):
    """Launch, with some helpers, then wait for them; how many threads are still at work."""
    if launches_at:
        share_all(launches_at, launches, 0)
    for k in range(count):
        exchange_if(address(Mailbox(mail_at)[k].state), POSTED, IDLE)  # it comes too late
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

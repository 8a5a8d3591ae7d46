"""What `sys.getrefcount` says of an object that only known places refer to.

The tape, sweeps and traces ask it whether somebody else holds a value.  What the question itself
adds depends on CPython: up to 3.13 each local variable that is given to a function is counted once
more there; from 3.14 on it lends its reference, and an object has as many as it is kept by.
"""

from sys import getrefcount


def _given(thing: object) -> int:
    return getrefcount(thing)


def _probe() -> tuple[int, int, int]:
    """Count a new object in a list, in a local variable, and in the parameter of a function.

    The bounds are for debuggers of 3.11 and 3.12, whose look at local variables is counted too.
    """
    thing, things = object(), [object()]
    return getrefcount(things[0]) - 1, min(getrefcount(thing), 2), min(_given(thing), 3)


_COUNTED = _probe()


def expected_count(variables: int, holders: int = 0) -> int:
    """What `getrefcount` says of an object that so many holders, and nobody else, refer to.

    `variables` are the local ones on its way: none when it is counted where it lies in a list or by
    `map`, one when that variable is counted, two when a variable was given to a function which
    counts its parameter.  What is made or taken out in the call itself is in the parameter alone.
    Where variables lend, it cannot be told how many there are on the way: whoever gives away an
    object that is counted so must have no more use for it.
    """
    return _COUNTED[variables] + holders

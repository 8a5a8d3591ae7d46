"""Structures by which Python launches a kernel row by row, here or on a thread of the pool."""

from typing import Annotated, Any

from tapegrad.base.word_struct import WordStruct


class Launch(WordStruct):
    """Calls of a kernel, whose arguments move from one to the next."""

    kernel: int  # its address
    calls: int
    arguments: Annotated[Any, 8]
    steps: Annotated[Any, 8]  # by how much each argument moves
    taken: Annotated[Any, 1]  # how many calls threads have taken


class Mailbox(WordStruct):
    """What a thread of the pool watches; its state stands in a cache line of its own."""

    state: Annotated[Any, 8]
    launches: int  # the address of what all threads do together
    count: int
    own: int  # the launch to begin with
    unused: Annotated[Any, 5]


# States: nothing to do, launches to do, a function of Python to call, nobody watches, launches that
# the thread has begun.
IDLE, POSTED, CALLBACK, PARKED, BEGUN = range(5)

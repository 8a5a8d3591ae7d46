"""Let Python's garbage collector run seldom where many objects are made that all stay."""

from __future__ import annotations

import gc

SELDOM = 100_000  # objects after which it runs, in place of some hundreds


class seldom_collected:
    """A context in which the garbage collector runs after many more objects than usual.

    Each time it goes through all that was made lately, which costs a third of a long trace.
    """

    def __enter__(self) -> None:
        self.before = gc.get_threshold()
        if 0 < self.before[0] < SELDOM:
            gc.set_threshold(SELDOM, *self.before[1:])

    def __exit__(self, *exception: object) -> None:
        # Another thread's context, or the user, may have changed it meanwhile.
        if gc.get_threshold()[0] == SELDOM:
            gc.set_threshold(*self.before)

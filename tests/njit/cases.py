"""Arguments for small functions, and how a file of these is collected."""

import numpy as np
from numba import njit

rng = np.random.default_rng(0)
A1, B1 = rng.normal(size=7), rng.normal(size=7)
A2, B2 = rng.normal(size=(4, 5)), rng.normal(size=(5, 3))
A40 = rng.normal(size=40)
IDX = np.array([2, 0, 5, 2, 6])


def collected_in(cases):
    """A decorator that notes a function with arguments and what `check` is told."""

    def case(*args, **options):
        def keep(f):
            cases.append((njit(f), args, options))
            return f

        return keep

    return case


def name_of(x):
    """What a case is called: by its function."""
    return getattr(x, "__name__", "")

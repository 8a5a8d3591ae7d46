"""Look for disagreements in many programs, and say each shrunk."""

from collections import Counter

from tests.fuzz import checks, shrink
from tests.fuzz.control import Plain
from tests.fuzz.programs import program


def searched(seeds, peers=(), often=4, tally=None, told=None):
    """Of each program that disagrees: its seed, the check, and a program that shows it."""
    for seed in seeds:
        if told is not None:
            told(seed)
        p = program(seed, Plain)
        chosen = checks.checks_of(seed, peers, often)
        failed = checks.run(p, chosen, tally)
        if failed is not None:
            name, error = failed
            small = shrink.shrunk(p, name, dict(chosen)[name], error)
            found = checks.run(small, [(name, dict(chosen)[name])], Counter())
            yield seed, name, shrink.text(small, *(found or failed))

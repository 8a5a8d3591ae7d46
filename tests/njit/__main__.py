"""Run many random programs in processes of their own: `python -m tests.njit 20000 --jobs 2`.

Each disagreement is printed with the program's number, its text and what was found.  With
NUMBA_BOUNDSCHECK=1 indices are checked in the programs and in their adjoints.
"""

import argparse
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

CHUNK = 100  # programs to a process: what it has compiled goes with it
PART = 25  # programs until garbage is collected


def numbered(seeds):
    """The numbers of programs; which one it was is known after a crash."""
    for seed in seeds:
        print(f"program {seed}", file=sys.stderr, flush=True)
        yield seed


def chunk(first, stop):
    """Check some programs; returns how many disagree."""
    from tests.njit.random_checks import check_programs, report

    bad = 0
    for start in range(first, stop, PART):
        for seed, error in check_programs(numbered(range(start, min(start + PART, stop)))):
            if error is not None:
                bad += 1
                print(report(seed, error))
    return bad


def in_process(first, stop):
    """Check some programs in another process; returns how many disagree or crash, and the text."""
    words = [sys.executable, "-m", "tests.njit", "0", "--chunk", str(first), str(stop)]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode >= 0 and done.stdout.rpartition("disagree: ")[1]:
        text, _, bad = done.stdout.rpartition("disagree: ")
        return int(bad), text
    return 1, f"# The process ended: {done.stderr[-2000:]}\n"


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.njit", description=__doc__)
    parser.add_argument("count", type=int, help="how many programs")
    parser.add_argument("--first", type=int, default=10_000, help="the first one's number")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--chunk", type=int, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.chunk:
        print("disagree:", chunk(*options.chunk))
        return 0
    stop = options.first + options.count
    edges = [*range(options.first, stop, CHUNK), stop]
    bad = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        for k, (found, text) in enumerate(pool.map(in_process, edges[:-1], edges[1:])):
            bad += found
            print(text, end="")
            print(f"{edges[k + 1] - options.first} programs, {bad} disagree", flush=True)
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())

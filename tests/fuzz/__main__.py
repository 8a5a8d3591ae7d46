"""Run many random programs in several processes: `python -m tests.fuzz 100000 --jobs 2`.

Where it stands is kept in a file, so that the next call goes on with other programs.  Each
disagreement is printed as a program that runs alone.  A process runs a few hundred programs: what
it has compiled goes with it, and if it crashes the next one goes on behind the program.
"""

import argparse
import importlib
import json
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

CHUNK = 250


def chunk(first, stop, peers, often):
    """Run some programs, with a line of JSON about each, each disagreement, and all."""
    from tests.fuzz.search import searched

    importlib.import_module("tapegrad.native.install").install()
    say = lambda *what: print(json.dumps(what), flush=True)
    tally = Counter()
    told = lambda seed: say("seed", seed)
    for found in searched(range(first, stop), peers, often, tally, told):
        say("found", *found)
    say("tally", [[*key, count] for key, count in tally.items()])


def in_process(first, stop, options):
    """What a chunk says; after a crash it goes on behind the program that crashed."""
    found, tally = [], Counter()
    while first < stop:
        words = [sys.executable, "-m", "tests.fuzz", "0", "--chunk", str(first), str(stop)]
        words += ["--often", str(options.often), *(f"--peer={p}" for p in options.peer)]
        done = subprocess.run(words, capture_output=True, text=True)
        last = first
        for line in done.stdout.splitlines():
            kind, *rest = json.loads(line)
            if kind == "seed":
                last = rest[0]
            elif kind == "found":
                found.append(rest)
            else:
                tally.update({(check, how): count for check, how, count in rest[0]})
        if not done.returncode:
            return found, tally
        found.append([last, "crash", f"# Program {last} ended the process: {done.stderr[-2000:]}"])
        tally["crash", "DISAGREES"] += 1
        first = last + 1
    return found, tally


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("count", type=int, help="how many programs")
    parser.add_argument("--first", type=int, help="the first one's number; else where it stopped")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--often", type=int, default=4, help="compile every so manieth program")
    parser.add_argument("--peer", action="append", default=[], choices=["torch", "jax"])
    parser.add_argument("--state", type=Path, default=Path(".fuzz.json"))
    parser.add_argument("--chunk", type=int, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.chunk:
        chunk(*options.chunk, options.peer, options.often)
        return 0
    state = json.loads(options.state.read_text()) if options.state.exists() else {}
    first = options.first if options.first is not None else state.get("next", 10_000)
    stop, total, bad, started = first + options.count, Counter(), 0, time.time()
    edges = [*range(first, stop, CHUNK), stop]
    with ThreadPoolExecutor(options.jobs) as pool:
        work = lambda k: in_process(edges[k], edges[k + 1], options)
        for k, (found, tally) in enumerate(pool.map(work, range(len(edges) - 1))):
            total += tally
            bad += len(found)
            for _, _, text in found:
                print(text, end="\n\n", flush=True)
            options.state.write_text(json.dumps({"next": edges[k + 1]}))
            seconds = time.time() - started
            print(f"{edges[k + 1] - first} programs, {bad} disagree, {seconds:.0f} s", flush=True)
    for (check, how), count in sorted(total.items()):
        print(f"{count:9d}  {check}: {how}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

"""The first tier of a program: code that is there soon, and asks for better code when that pays.

Its entry counts the nanoseconds that its calls take, roughly: what is known beforehand, and what
the trips of its loops took.  After some it tells that compiling pays, and from when the better code
is there it passes calls on.  A single call that takes as long as compiling is given up: it waits
for the better code and begins anew, so that no program takes more than twice the least time.
"""

from __future__ import annotations

import re
from typing import NamedTuple

ENTRY, FIRST = "tapegrad_program", "tapegrad_first_tier"
PAYS, NOW = -1, -2  # numbers of callbacks: compiling pays; a call waits for it
GIVEN_UP = 1 << 42  # the status of a call that is given up
WITHOUT_END = (1 << 63) - 1
# Part of the time that compiling takes after which it pays to begin: it does not disturb.
PART = 0.2
COUNTERS = "pays", "cost", "limit", "left"

TEXT = "\n".join([
    "@tapegrad_compiled = global ptr null",
    *(f"@tapegrad_{name} = global i64 0" for name in COUNTERS),
    f"""\
define i64 @{ENTRY}(ptr %in, ptr %out, ptr %given) #0 {{
%program = load i64, ptr @tapegrad_number
br label %look
look:
%compiled = load atomic ptr, ptr @tapegrad_compiled acquire, align 8
%is.compiled = icmp ne ptr %compiled, null
br i1 %is.compiled, label %pass, label %run
pass:
%status = call i64 %compiled(ptr %in, ptr %out, ptr %given)
ret i64 %status
run:
%limit = load i64, ptr @tapegrad_limit
store i64 %limit, ptr @tapegrad_left
%found = call i64 @{FIRST}(ptr %in, ptr %out, ptr %given)
%given.up = icmp eq i64 %found, {GIVEN_UP}
br i1 %given.up, label %again, label %count
again:
%compiles = call i64 @tapegrad_callback(i64 %program, i64 {NOW}, ptr null, ptr null)
%interrupted = icmp ne i64 %compiles, 0
br i1 %interrupted, label %stop, label %look
stop:
ret i64 %compiles
count:
%left = load i64, ptr @tapegrad_left
%trips = sub i64 %limit, %left
%known = load i64, ptr @tapegrad_cost
%cost = add i64 %known, %trips
%before = load i64, ptr @tapegrad_pays
%after = sub i64 %before, %cost
store i64 %after, ptr @tapegrad_pays
%waiting = icmp sgt i64 %before, 0
%enough = icmp sle i64 %after, 0
%tells = and i1 %waiting, %enough
br i1 %tells, label %tell, label %end
tell:
%ignored = call i64 @tapegrad_callback(i64 %program, i64 {PAYS}, ptr null, ptr null)
br label %end
end:
ret i64 %found
}}"""])  # fmt: skip

_MARK = re.compile(r"^; a trip of (\d+) ns$", re.MULTILINE)
_TRIP = rf"""%left.before = load i64, ptr @tapegrad_left
%left.after = sub i64 %left.before, \1
store i64 %left.after, ptr @tapegrad_left
%over = icmp slt i64 %left.after, 0
br i1 %over, label %give.up, label %go.on
give.up:
ret i64 {GIVEN_UP}
go.on:"""


def mark(nanoseconds: float) -> str:
    """What stands in a trip of a loop, and says how long it takes: a comment, until it is counted.

    >>> from tapegrad.compiler.lower.first_tier import mark
    >>> mark(12.4)
    '; a trip of 12 ns'
    """
    return f"; a trip of {nanoseconds:.0f} ns"


class Counts(NamedTuple):
    """Nanoseconds: of calls until compiling pays, of a call but for trips, and of its trips."""

    pays: int
    cost: int
    limit: int


# Nanoseconds that LLVM takes for a line of text, by the level, and for an operation of what is
# interpreted; and those from which on compiling takes long enough for a first tier.
OF_LINE, OF_OPERATION, LONG_TO_COMPILE = (8_000, 25_000, 100_000), 700_000, 20e6


def compile_time(text: str, level: int) -> float:
    """Roughly what LLVM takes, in nanoseconds."""
    return float(OF_LINE[level] * text.count("\n"))


def counts(compiling: float, call: float) -> Counts:
    """What to count, given the nanoseconds of compiling and of a call."""
    return Counts(1 + int(PART * compiling), 1 + int(call), int(compiling))


def counted(text: str) -> str:
    """The text of a program with the entry of a first tier, and with trips that are counted."""
    head = f"define i64 @{ENTRY}("
    text = _MARK.sub(_TRIP, text).replace(head, f"define internal i64 @{FIRST}(", 1)
    return f"{text}\n{TEXT}\n"

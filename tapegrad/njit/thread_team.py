"""Threads that share the trips of a loop, as LLVM text: Numba's own, which run `prange`.

Each thread has a frame of words for the whole call: which trips are its own, the arrays and stacks
that it makes in them, what it has summed up.  The threads call a routine, a function of its frame
alone; variables of the function that it reads lie in one structure for all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from tapegrad.njit.arena_text import MARK_WORDS, WORDS

# Words of every frame; the levels of stacks follow, then what routines put there.
STATUS, SHARED, FIRST, LAST, LEFT, NUMBER, ARENA = range(7)
MARK = ARENA + WORDS
LEVELS = MARK + MARK_WORDS
SYMBOLS = ("numba_parallel_for", "get_num_threads")
_VARIABLE = re.compile(r"%c\d+\b")


class Routine:
    """A function that threads call; `shared` are the variables that it reads, with their types."""

    def __init__(self, name: str, blocks: list[tuple[str, Any]]) -> None:
        self.name, self.blocks = name, blocks
        self.shared: dict[str, str] = {}

    def variables(self) -> list[str]:
        """The variables that occur in it, by name."""
        lines = [line for _, code in self.blocks for line in code.lines]
        return list(dict.fromkeys(_VARIABLE.findall("\n".join(lines))))

    @property
    def structure(self) -> str:
        """The type of the structure that the shared variables lie in."""
        return f"{{ {', '.join(self.shared.values())} }}"

    def places(self, structure: str) -> Iterable[tuple[str, str, str]]:
        """A variable, its type, and the line that finds its place in the structure."""
        for k, (name, type) in enumerate(self.shared.items()):
            at = f"getelementptr {self.structure}, ptr {structure}, i32 0, i32 {k}"
            yield name, type, at


class Team:
    """The layout of the frames, and the routines."""

    def __init__(self, levels: Iterable[int]) -> None:
        self.levels = {k: LEVELS + 2 * j for j, k in enumerate(levels)}
        self.words = LEVELS + 2 * len(self.levels)
        self.routines: list[Routine] = []
        self.totals: dict[str, None] = {}  # types of words that are added up
        self.copies: dict[str, str] = {}  # functions that add arrays, by the functions for copies

    def word(self) -> int:
        """A new word of the frames."""
        self.words += 1
        return self.words - 1

    def head(self) -> list[str]:
        """What the function itself begins with."""
        rooms = [f"%shared.{r.name} = alloca {r.structure}" for r in self.routines]
        return ["%team = alloca [2 x i64]", "store [2 x i64] zeroinitializer, ptr %team", *rooms]

    def text(self, variables: dict[str, list[str]]) -> str:
        """The runtime, and the routines, which make the variables that they use."""
        return "\n".join([
            _runtime(self.words), _freeing_copies(self.words),
            _disbanding(self.words, len(self.levels)),
            *[_totalling(kind, self.words) for kind in self.totals],
            *[_adding_copies(name, add, self.words) for name, add in self.copies.items()],
            *[self._routine(routine, variables) for routine in self.routines],
        ])  # fmt: skip

    def _routine(self, routine: Routine, variables: dict[str, list[str]]) -> str:
        lines = [
            f"define internal i64 @{routine.name}(ptr noalias %thread) noinline #0 {{",
            "start:",
        ]
        words = {"%arena": ARENA, "%left": LEFT}
        for k, word in self.levels.items():
            words |= {f"%level{k}": word, f"%level{k}.cap": word + 1}
        lines += [f"{name} = getelementptr i64, ptr %thread, i64 {k}" for name, k in words.items()]
        for name in routine.variables():
            lines += variables[name]
        lines += [
            f"%shared.at = getelementptr i64, ptr %thread, i64 {SHARED}",
            "%shared = load ptr, ptr %shared.at",
        ]
        for k, (name, type, at) in enumerate(routine.places("%shared")):
            lines += [f"%s{k}.at = {at}", f"%s{k} = load {type}, ptr %s{k}.at"]
            lines.append(f"store {type} %s{k}, ptr {name}")
        lines.append(f"br label %{routine.blocks[0][0]}")
        for label, code in routine.blocks:
            lines += [f"{label}:", *code.lines]
        return "\n".join([*lines, "}"])


def _runtime(words: int) -> str:
    """What the frames are for, of so many words."""
    size = 8 * words
    return f"""\
declare void @numba_parallel_for(ptr, ptr, ptr, ptr, ptr, i64, i64, i64)
declare i32 @get_num_threads()

define internal i1 @assemble(ptr %team) noinline {{
  %asked = call i32 @get_num_threads()
  %some = icmp sgt i32 %asked, 1
  %n = select i1 %some, i32 %asked, i32 1
  %count = sext i32 %n to i64
  %frames = call ptr @calloc(i64 %count, i64 {size})
  store ptr %frames, ptr %team
  %ok = icmp ne ptr %frames, null
  %made = select i1 %ok, i64 %count, i64 0
  %count.at = getelementptr i64, ptr %team, i64 1
  store i64 %made, ptr %count.at
  ret i1 %ok
}}

define internal void @work(ptr %args, ptr %counts, ptr %steps, ptr %body) {{
  %frames = load ptr, ptr %args
  %count = load i64, ptr %counts
  br label %head
head:
  %k = phi i64 [0, %0], [%k1, %next]
  %goes = icmp ult i64 %k, %count
  br i1 %goes, label %next, label %done
next:
  %frame = getelementptr [{size} x i8], ptr %frames, i64 %k
  %status = call i64 %body(ptr %frame)
  store i64 %status, ptr %frame
  %k1 = add i64 %k, 1
  br label %head
done:
  ret void
}}

define internal i64 @on_threads(ptr %body, ptr %team, i64 %trips, ptr %shared,
                               ptr %left) noinline {{
  %args = alloca ptr
  %counts = alloca [2 x i64]
  %steps = alloca [2 x i64]
  %frames = load ptr, ptr %team
  %count.at = getelementptr i64, ptr %team, i64 1
  %count = load i64, ptr %count.at
  %all = load i64, ptr %left
  %part = udiv i64 %all, %count
  br label %head
head:
  %k = phi i64 [0, %0], [%k1, %head]
  %begin = phi i64 [0, %0], [%end, %head]
  %k1 = add i64 %k, 1
  %product = mul i64 %trips, %k1
  %end = udiv i64 %product, %count
  %frame = getelementptr [{size} x i8], ptr %frames, i64 %k
  %shared.at = getelementptr i64, ptr %frame, i64 {SHARED}
  store ptr %shared, ptr %shared.at
  %first.at = getelementptr i64, ptr %frame, i64 {FIRST}
  store i64 %begin, ptr %first.at
  %last.at = getelementptr i64, ptr %frame, i64 {LAST}
  store i64 %end, ptr %last.at
  %left.at = getelementptr i64, ptr %frame, i64 {LEFT}
  store i64 %part, ptr %left.at
  %number.at = getelementptr i64, ptr %frame, i64 {NUMBER}
  store i64 %k, ptr %number.at
  %more = icmp ult i64 %k1, %count
  br i1 %more, label %head, label %launch
launch:
  store ptr %frames, ptr %args
  store i64 %count, ptr %counts
  %counts.1 = getelementptr i64, ptr %counts, i64 1
  store i64 1, ptr %counts.1
  store i64 {size}, ptr %steps
  %steps.1 = getelementptr i64, ptr %steps, i64 1
  store i64 0, ptr %steps.1
  %several = icmp ugt i64 %trips, 1
  %threads = icmp ugt i64 %count, 1
  %both = and i1 %several, %threads
  br i1 %both, label %wide, label %alone
wide:
  call void @numba_parallel_for(ptr @work, ptr %args, ptr %counts, ptr %steps, ptr %body, i64 1,
                                i64 1, i64 %count)
  br label %gather
alone:
  call void @work(ptr %args, ptr %counts, ptr %steps, ptr %body)
  br label %gather
gather:
  br label %each
each:
  %m = phi i64 [0, %gather], [%m1, %each]
  %sum = phi i64 [0, %gather], [%sum1, %each]
  %worst = phi i64 [0, %gather], [%worst1, %each]
  %that = getelementptr [{size} x i8], ptr %frames, i64 %m
  %status = load i64, ptr %that
  %beyond = icmp ugt i64 %status, %worst
  %worst1 = select i1 %beyond, i64 %status, i64 %worst
  %rest.at = getelementptr i64, ptr %that, i64 {LEFT}
  %rest = load i64, ptr %rest.at
  %sum1 = add i64 %sum, %rest
  %m1 = add i64 %m, 1
  %again = icmp ult i64 %m1, %count
  br i1 %again, label %each, label %done
done:
  store i64 %sum1, ptr %left
  ret i64 %worst1
}}
"""


def _freeing_copies(words: int) -> str:
    """A function that gives back the arrays that threads have made since they were marked."""
    return _of_frames("void @free_copies(ptr %team, ptr %left)", words, f"""\
  %arena = getelementptr i64, ptr %frame, i64 {ARENA}
  %mark = getelementptr i64, ptr %frame, i64 {MARK}
  call void @release_to(ptr %arena, ptr %left, ptr %mark)""")  # fmt: skip


def _disbanding(words: int, levels: int) -> str:
    """A function that gives back the arrays and the stacks of all frames, and these."""
    lines = [
        f"%arena = getelementptr i64, ptr %frame, i64 {ARENA}",
        "call void @release_arena(ptr %arena)",
    ]  # fmt: skip
    for j in range(levels):
        lines += [
            f"%stack{j}.at = getelementptr i64, ptr %frame, i64 {LEVELS + 2 * j}",
            f"%stack{j} = load ptr, ptr %stack{j}.at", f"call void @free_aligned(ptr %stack{j})",
        ]  # fmt: skip
    body = "\n".join([f"  {line}" for line in lines])
    freed = "\n  call void @free(ptr %frames)"
    return _of_frames("void @disband(ptr %team)", words, body, after=freed)


def _of_frames(
    signature: str, words: int, body: str, first: int = 0, sum: str = "", after: str = ""
) -> str:
    """A function that does something with the frame of each thread, or with all but the first.

    If it has a `sum`, of a type, this begins with `%start`, and the body makes `%sum1` of `%sum`.
    """
    added = f"\n  %sum = phi {sum} [%start, %0], [%sum1, %next]" if sum else ""
    return f"""\
define internal {signature} noinline {{
  %frames = load ptr, ptr %team
  %count.at = getelementptr i64, ptr %team, i64 1
  %count = load i64, ptr %count.at
  br label %head
head:
  %k = phi i64 [{first}, %0], [%k1, %next]{added}
  %goes = icmp ult i64 %k, %count
  br i1 %goes, label %next, label %done
next:
  %frame = getelementptr [{8 * words} x i8], ptr %frames, i64 %k
{body}
  %k1 = add i64 %k, 1
  br label %head
done:{after}
  ret {f"{sum} %sum" if sum else "void"}
}}
"""


def _totalling(kind: str, words: int) -> str:
    """A function that adds a word of all frames to a number, thread by thread."""
    signature = f"{kind} @total.{kind}(ptr %team, i64 %word, {kind} %start)"
    return _of_frames(signature, words, f"""\
  %at = getelementptr i64, ptr %frame, i64 %word
  %x = load {kind}, ptr %at
  %sum1 = {"add" if kind == "i64" else "fadd"} {kind} %sum, %x""", sum=kind)  # fmt: skip


def _adding_copies(name: str, add: str, words: int) -> str:
    """A function that adds the threads' copies of an array to it; the first one has none."""
    return _of_frames(f"void @{name}(ptr %team, i64 %word, ptr %to, i64 %n)", words, f"""\
  %at = getelementptr i64, ptr %frame, i64 %word
  %copy = load ptr, ptr %at
  call void @{add}(ptr %to, ptr %copy, i64 %n)""", first=1)  # fmt: skip

"""Memory for compiled sweeps, as LLVM text: stacks that grow, beside the arrays of `arena_text`.

It is a module of its own, which is compiled once: sweeps call its functions.

All of it belongs to one call.  A level is a loop's stack: a buffer and its capacity in slots, for
columns of eight bytes a slot, one column after another, or slot after slot.  `%left` is how many
bytes the call may still take.  What stays from call to call is a stack in `@level.kept`, with its
capacity in its first word; or, of one that is too large for that, twice its capacity and one.  The
next call begins with that, if it is a small part of what may be taken, and need not grow again.

Columns begin at a cache line, so that no vector of theirs lies in two.
"""

import re

from tapegrad.njit.arena_text import ARENA, LINE

RAISED, NO_MEMORY = 1, 2  # what a sweep returns where it does not come to its end
MOST = 1 << 45  # elements of an array, slots of a stack
KEPT = 1 << 23  # bytes of a stack that stays
FETCHED = 1024  # words that are fetched ahead
SYMBOLS = ("malloc", "calloc", "realloc", "free")

_STACKS = f"""\
declare ptr @malloc(i64)
declare ptr @calloc(i64, i64)
declare ptr @realloc(ptr, i64)
declare void @free(ptr)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)

define internal i1 @charge(ptr %left, i64 %count, i64 %size) alwaysinline {{
  %fits = icmp ult i64 %count, {MOST}
  %bytes = mul i64 %count, %size
  %old = load i64, ptr %left
  %enough = icmp ule i64 %bytes, %old
  %ok = and i1 %fits, %enough
  %new = sub i64 %old, %bytes
  %kept = select i1 %ok, i64 %new, i64 %old
  store i64 %kept, ptr %left
  ret i1 %ok
}}

define internal ptr @aligned(ptr %raw) alwaysinline {{
  %address = ptrtoint ptr %raw to i64
  %above = add i64 %address, {LINE + 7}
  %at = and i64 %above, -{LINE}
  %p = inttoptr i64 %at to ptr
  ret ptr %p
}}

define internal void @note_raw(ptr %p, ptr %raw) alwaysinline {{
  %raw.at = getelementptr i64, ptr %p, i64 -1
  store ptr %raw, ptr %raw.at
  ret void
}}

define internal ptr @raw(ptr %p) alwaysinline {{
  %none = icmp eq ptr %p, null
  br i1 %none, label %done, label %some
some:
  %raw.at = getelementptr i64, ptr %p, i64 -1
  %raw = load ptr, ptr %raw.at
  br label %done
done:
  %found = phi ptr [null, %0], [%raw, %some]
  ret ptr %found
}}

define void @free_aligned(ptr %p) nounwind {{
  %raw = call ptr @raw(ptr %p)
  call void @free(ptr %raw)
  ret void
}}

define i64 @room(i64 %capacity, ptr nocapture %left, i64 %need, i64 %columns) nounwind cold {{
  %twice = mul i64 %capacity, 2
  %more = icmp ugt i64 %need, %twice
  %least = select i1 %more, i64 %need, i64 %twice
  %above = add i64 %least, 64
  %slots = and i64 %above, -8
  %added = sub i64 %slots, %capacity
  %row = mul i64 %columns, 8
  %ok = call i1 @charge(ptr %left, i64 %added, i64 %row)
  %found = select i1 %ok, i64 %slots, i64 0
  ret i64 %found
}}

define internal i64 @room_as_before(i64 %before, i64 %capacity, ptr %left, i64 %need,
                                    i64 %columns) alwaysinline {{
  %new = icmp eq i64 %capacity, 0
  %more = icmp ugt i64 %before, %need
  %wanted = and i1 %new, %more
  br i1 %wanted, label %look, label %otherwise
look:
  %row = mul i64 %columns, 8
  %bytes = mul i64 %before, %row
  %all = load i64, ptr %left
  %part = lshr i64 %all, 6
  %small = icmp ult i64 %bytes, %part
  br i1 %small, label %take, label %otherwise
take:
  %ok = call i1 @charge(ptr %left, i64 %before, i64 %row)
  ret i64 %before
otherwise:
  %slots = call i64 @room(i64 %capacity, ptr %left, i64 %need, i64 %columns)
  ret i64 %slots
}}

define i1 @grow(ptr nocapture %level, ptr nocapture %kept, ptr nocapture %left, i64 %need,
                i64 %columns, i64 %blocks) nounwind cold {{
  %capacity.at = getelementptr i64, ptr %level, i64 1
  %capacity = load i64, ptr %capacity.at
  %first = icmp eq i64 %capacity, 0
  br i1 %first, label %look, label %more
look:
  %word = atomicrmw xchg ptr %kept, i64 0 acq_rel
  %tag = and i64 %word, 1
  %is.number = icmp ne i64 %tag, 0
  %is.zero = icmp eq i64 %word, 0
  %none.kept = or i1 %is.number, %is.zero
  br i1 %none.kept, label %more, label %try
try:
  %stack = inttoptr i64 %word to ptr
  %slots.kept = load i64, ptr %stack
  %enough = icmp uge i64 %slots.kept, %need
  br i1 %enough, label %large, label %drop
large:
  %row = mul i64 %columns, 8
  %bytes.kept = mul i64 %slots.kept, %row
  %all = load i64, ptr %left
  %part = lshr i64 %all, 6
  %small = icmp ult i64 %bytes.kept, %part
  br i1 %small, label %use, label %drop
use:
  %charged = call i1 @charge(ptr %left, i64 %slots.kept, i64 %row)
  store ptr %stack, ptr %level
  store i64 %slots.kept, ptr %capacity.at
  ret i1 true
drop:
  call void @free_aligned(ptr %stack)
  br label %more
more:
  %number = phi i64 [0, %0], [%word, %look], [0, %drop]
  %before = lshr i64 %number, 1
  %slots = call i64 @room_as_before(i64 %before, i64 %capacity, ptr %left, i64 %need,
                                    i64 %columns)
  %ok = icmp ne i64 %slots, 0
  br i1 %ok, label %some, label %none
some:
  %old = load ptr, ptr %level
  %block = call ptr @raw(ptr %old)
  %a = ptrtoint ptr %old to i64
  %b = ptrtoint ptr %block to i64
  %shift = sub i64 %a, %b
  %per = mul i64 %slots, 8
  %bytes = mul i64 %per, %columns
  %room = add i64 %bytes, {2 * LINE}
  %grown = call ptr @realloc(ptr %block, i64 %room)
  %failed = icmp eq ptr %grown, null
  br i1 %failed, label %none, label %got
got:
  %start = getelementptr i8, ptr %grown, i64 %shift
  %new = call ptr @aligned(ptr %grown)
  store ptr %new, ptr %level
  store i64 %slots, ptr %capacity.at
  %one = icmp eq i64 %blocks, 1
  %words = select i1 %one, i64 %columns, i64 1
  %slot = mul i64 %words, 8
  %used = mul i64 %capacity, %slot
  %stays = icmp eq ptr %start, %new
  %first.moved = zext i1 %stays to i64
  br label %head
head:
  %k = phi i64 [%blocks, %got], [%k1, %body]
  %k1 = sub i64 %k, 1
  %goes = icmp sgt i64 %k, %first.moved
  br i1 %goes, label %body, label %done
body:
  %o1 = mul i64 %k1, %per
  %o2 = mul i64 %k1, %used
  %to = getelementptr i8, ptr %new, i64 %o1
  %from = getelementptr i8, ptr %start, i64 %o2
  call void @llvm.memmove.p0.p0.i64(ptr %to, ptr %from, i64 %used, i1 false)
  br label %head
done:
  call void @note_raw(ptr %new, ptr %grown)
  ret i1 true
none:
  ret i1 false
}}

define void @drop(ptr nocapture %kept, i64 %word) nounwind {{
  %old = atomicrmw xchg ptr %kept, i64 %word acq_rel
  %tag = and i64 %old, 1
  %is.stack = icmp eq i64 %tag, 0
  br i1 %is.stack, label %stack, label %done
stack:
  %p = inttoptr i64 %old to ptr
  call void @free_aligned(ptr %p)
  br label %done
done:
  ret void
}}

define void @keep(ptr nocapture %level, ptr nocapture %kept, i64 %columns) nounwind {{
  %p = load ptr, ptr %level
  %empty = icmp eq ptr %p, null
  br i1 %empty, label %done, label %some
some:
  %capacity.at = getelementptr i64, ptr %level, i64 1
  %capacity = load i64, ptr %capacity.at
  %slots = mul i64 %capacity, 8
  %bytes = mul i64 %slots, %columns
  %small = icmp ule i64 %bytes, {KEPT}
  br i1 %small, label %stays, label %goes
stays:
  store i64 %capacity, ptr %p
  %address = ptrtoint ptr %p to i64
  call void @drop(ptr %kept, i64 %address)
  br label %done
goes:
  call void @free_aligned(ptr %p)
  %twice = shl i64 %capacity, 1
  %number = or i64 %twice, 1
  call void @drop(ptr %kept, i64 %number)
  br label %done
done:
  ret void
}}
"""

# What sweeps with checkpoints call: how many trips a segment has, for states of `%size` bytes of
# which half of what is left has to hold all.
_SEGMENTS = """\
define i64 @segment(i64 %count, i64 %size, ptr nocapture %left) nounwind {
  br label %head
head:
  %r = phi i64 [1, %0], [%r1, %head]
  %eighth = lshr i64 %r, 3
  %more = add i64 %eighth, 1
  %r1 = add i64 %r, %more
  %square = mul i64 %r, %r
  %goes = icmp ult i64 %square, %count
  br i1 %goes, label %head, label %done
done:
  %old = load i64, ptr %left
  %half = lshr i64 %old, 1
  %fit = udiv i64 %half, %size
  %some = icmp ugt i64 %fit, 2
  %states = select i1 %some, i64 %fit, i64 2
  %most = sub i64 %states, 1
  %trips = udiv i64 %count, %most
  %least = add i64 %trips, 1
  %short = icmp ult i64 %r, %least
  %length = select i1 %short, i64 %least, i64 %r
  ret i64 %length
}
"""

# Has so many words fetched into the cache, as long as they are few.
_FETCHING = f"""\
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)

define void @fetch(ptr nocapture %at, i64 %count) nounwind {{
  %most = icmp ult i64 %count, {FETCHED}
  br i1 %most, label %head, label %done
head:
  %k = phi i64 [0, %0], [%k1, %body]
  %goes = icmp slt i64 %k, %count
  br i1 %goes, label %body, label %done
body:
  %p = getelementptr i64, ptr %at, i64 %k
  call void @llvm.prefetch.p0(ptr %p, i32 0, i32 3, i32 1)
  %k1 = add i64 %k, {LINE // 8}
  br label %head
done:
  ret void
}}
"""


def _adding(kind: str, name: str) -> str:
    """A function that adds numbers in memory to others."""
    return f"""\
define void @{name}(ptr nocapture %a, ptr nocapture %b, i64 %n) nounwind {{
  br label %head
head:
  %k = phi i64 [0, %0], [%k1, %body]
  %goes = icmp slt i64 %k, %n
  br i1 %goes, label %body, label %done
body:
  %pa = getelementptr {kind}, ptr %a, i64 %k
  %pb = getelementptr {kind}, ptr %b, i64 %k
  %x = load {kind}, ptr %pa
  %y = load {kind}, ptr %pb
  %z = fadd {kind} %x, %y
  store {kind} %z, ptr %pa
  %k1 = add i64 %k, 1
  br label %head
done:
  ret void
}}
"""


RUNTIME = "\n".join([
    _STACKS, ARENA, _SEGMENTS, _FETCHING,
    _adding("double", "add.f64"), _adding("float", "add.f32"),
])  # fmt: skip
DECLARATIONS = "\n".join([
    "declare ptr @calloc(i64, i64)", "declare void @free(ptr)",
    "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
    *[f"declare {one}" for one in re.findall(r"^define (?!internal)([^{]*) \{", RUNTIME, re.M)],
])  # fmt: skip

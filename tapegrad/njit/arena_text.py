"""Memory for the arrays of a call, as LLVM text: small ones in chunks, others in blocks.

An arena is some words of the call: the newest block, what is free in the newest chunk, which is a
block too, and what has been taken.  A block begins with a line that says which one came before, how
many bytes it has, and how the arena was before.  Of the chunks the largest stays for the next call,
whose arrays then take no page that the system has to give.
"""

LINE = 64  # bytes of a cache line, at which arrays begin
WORDS = 6  # of an arena: the newest block, what is free of its chunk, and these
TAKEN, SIZE, KEPT = 3, 4, 5  # bytes of arrays; those of the newest chunk; where one is kept
MARK_WORDS = 3  # the newest block, the beginning of what is free, and TAKEN
SMALL = 8192  # bytes of an array in a chunk
FIRST, LARGEST = 1 << 14, 1 << 23  # bytes of chunks


def _word(name: str, base: str, k: int, kind: str = "i64") -> str:
    """The lines that load a word."""
    return (
        f"  %{name}.at = getelementptr i64, ptr %{base}, i64 {k}\n"
        f"  %{name} = load {kind}, ptr %{name}.at"
    )


def _copy(source: str, i: int, target: str, k: int, name: str) -> str:
    """The lines that copy a word."""
    return (
        f"{_word(name, source, i)}\n"
        f"  %{name}.to = getelementptr i64, ptr %{target}, i64 {k}\n"
        f"  store i64 %{name}, ptr %{name}.to"
    )


_BLOCKS = f"""\
define internal ptr @block(i64 %bytes, i1 %zero) {{
  %all = add i64 %bytes, {3 * LINE}
  br i1 %zero, label %zeroed, label %raw
zeroed:
  %a = call ptr @calloc(i64 %all, i64 1)
  br label %got
raw:
  %b = call ptr @malloc(i64 %all)
  br label %got
got:
  %memory = phi ptr [%a, %zeroed], [%b, %raw]
  %failed = icmp eq ptr %memory, null
  br i1 %failed, label %none, label %some
some:
  %p = call ptr @aligned(ptr %memory)
  call void @note_raw(ptr %p, ptr %memory)
  %size.at = getelementptr i64, ptr %p, i64 1
  store i64 %bytes, ptr %size.at
  ret ptr %p
none:
  ret ptr null
}}

define internal void @push(ptr %arena, ptr %p) alwaysinline {{
{_copy("arena", 0, "p", 0, "newest")}
{_copy("arena", 1, "p", 2, "next")}
{_copy("arena", 2, "p", 3, "end")}
{_copy("arena", SIZE, "p", 4, "size")}
  store ptr %p, ptr %arena
  ret void
}}

define internal void @let_go(ptr %kept, i64 %size, ptr %p) {{
{_word("bytes", "p", 1)}
  %is.chunk = icmp eq i64 %bytes, %size
  %some = icmp ne ptr %kept, null
  %both = and i1 %is.chunk, %some
  br i1 %both, label %keep, label %free
keep:
  %word = ptrtoint ptr %p to i64
  %pair = cmpxchg ptr %kept, i64 0, i64 %word acq_rel monotonic
  %stays = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %stays, label %done, label %free
free:
  call void @free_aligned(ptr %p)
  br label %done
done:
  ret void
}}

define internal i64 @chunk(ptr %arena) noinline cold {{
{_word("kept", "arena", KEPT, "ptr")}
{_word("size", "arena", SIZE)}
  %some = icmp ne ptr %kept, null
  br i1 %some, label %look, label %make
look:
  %word = atomicrmw xchg ptr %kept, i64 0 acq_rel
  %found = inttoptr i64 %word to ptr
  %any = icmp ne i64 %word, 0
  br i1 %any, label %have, label %make
make:
  %twice = shl i64 %size, 1
  %is.first = icmp ult i64 %twice, {FIRST}
  %least = select i1 %is.first, i64 {FIRST}, i64 %twice
  %is.large = icmp ugt i64 %least, {LARGEST}
  %bytes = select i1 %is.large, i64 {LARGEST}, i64 %least
  %made = call ptr @block(i64 %bytes, i1 false)
  %failed = icmp eq ptr %made, null
  br i1 %failed, label %none, label %have
have:
  %p = phi ptr [%found, %look], [%made, %make]
  call void @push(ptr %arena, ptr %p)
{_copy("p", 1, "arena", SIZE, "room")}
  %start = getelementptr i8, ptr %p, i64 {LINE}
  %first = ptrtoint ptr %start to i64
  %last = add i64 %first, %room
  %end.at = getelementptr i64, ptr %arena, i64 2
  store i64 %last, ptr %end.at
  ret i64 %first
none:
  ret i64 0
}}
"""

_ARRAYS = f"""\
define noalias ptr @take(ptr nocapture %arena, ptr nocapture %left, i64 %count, i64 %size,
                         i1 %zero) nounwind {{
  %ok = call i1 @charge(ptr %left, i64 %count, i64 %size)
  br i1 %ok, label %some, label %none
some:
  %bytes = mul i64 %count, %size
{_word("taken", "arena", TAKEN)}
  %taken.now = add i64 %taken, %bytes
  store i64 %taken.now, ptr %taken.at
  %small = icmp ule i64 %bytes, {SMALL}
  br i1 %small, label %look, label %alone
look:
  %empty = icmp eq i64 %bytes, 0
  %least = select i1 %empty, i64 1, i64 %bytes
  %above = add i64 %least, {LINE - 1}
  %room = and i64 %above, -{LINE}
{_word("next", "arena", 1)}
{_word("end", "arena", 2)}
  %after = add i64 %next, %room
  %fits = icmp ule i64 %after, %end
  br i1 %fits, label %cut, label %more
more:
  %first = call i64 @chunk(ptr %arena)
  %failed = icmp eq i64 %first, 0
  br i1 %failed, label %none, label %cut
cut:
  %start = phi i64 [%next, %look], [%first, %more]
  %rest = add i64 %start, %room
  store i64 %rest, ptr %next.at
  %p = inttoptr i64 %start to ptr
  br i1 %zero, label %clear, label %done
clear:
  %k = phi i64 [0, %cut], [%k1, %clear]
  %line = getelementptr i8, ptr %p, i64 %k
  store <8 x i64> zeroinitializer, ptr %line, align {LINE}
  %k1 = add i64 %k, {LINE}
  %goes = icmp ult i64 %k1, %room
  br i1 %goes, label %clear, label %done
done:
  ret ptr %p
alone:
  %block = call ptr @block(i64 %bytes, i1 %zero)
  %missing = icmp eq ptr %block, null
  br i1 %missing, label %none, label %link
link:
  call void @push(ptr %arena, ptr %block)
  %q = getelementptr i8, ptr %block, i64 {LINE}
  ret ptr %q
none:
  ret ptr null
}}

define void @mark(ptr nocapture %arena, ptr nocapture %mark) nounwind {{
{_copy("arena", 0, "mark", 0, "newest")}
{_copy("arena", 1, "mark", 1, "next")}
{_copy("arena", TAKEN, "mark", 2, "taken")}
  ret void
}}

define void @release_to(ptr nocapture %arena, ptr nocapture %left, ptr nocapture %mark) nounwind {{
{_word("before", "mark", 0, "ptr")}
{_word("kept", "arena", KEPT, "ptr")}
  br label %next
next:
  %p = load ptr, ptr %arena
  %end = icmp eq ptr %p, %before
  br i1 %end, label %done, label %body
body:
  %older = load ptr, ptr %p
  store ptr %older, ptr %arena
{_copy("p", 3, "arena", 2, "end.before")}
{_word("size", "arena", SIZE)}
{_copy("p", 4, "arena", SIZE, "size.before")}
  call void @let_go(ptr %kept, i64 %size, ptr %p)
  br label %next
done:
{_copy("mark", 1, "arena", 1, "at")}
{_word("taken", "arena", TAKEN)}
{_copy("mark", 2, "arena", TAKEN, "taken.before")}
  %bytes.freed = sub i64 %taken, %taken.before
  %old = load i64, ptr %left
  %new = add i64 %old, %bytes.freed
  store i64 %new, ptr %left
  ret void
}}

define internal void @let_all_go(ptr %kept, i64 %size, ptr %first) {{
  br label %head
head:
  %p = phi ptr [%first, %0], [%older, %body]
  %end = icmp eq ptr %p, null
  br i1 %end, label %done, label %body
body:
  %older = load ptr, ptr %p
  call void @let_go(ptr %kept, i64 %size, ptr %p)
  br label %head
done:
  ret void
}}

define void @release(ptr %first) nounwind {{
  call void @let_all_go(ptr null, i64 0, ptr %first)
  ret void
}}

define void @release_arena(ptr nocapture %arena) nounwind {{
{_word("kept", "arena", KEPT, "ptr")}
{_word("size", "arena", SIZE)}
  %newest = load ptr, ptr %arena
  call void @let_all_go(ptr %kept, i64 %size, ptr %newest)
  ret void
}}
"""

# Memory for results of calls: it hangs in a list of its own, with the function that drops the
# references in it.
_BOXES = f"""\
define ptr @box(ptr nocapture %boxes, ptr nocapture %left, i64 %size) nounwind {{
  %ok = call i1 @charge(ptr %left, i64 1, i64 %size)
  br i1 %ok, label %some, label %none
some:
  %p = call ptr @block(i64 %size, i1 false)
  %failed = icmp eq ptr %p, null
  br i1 %failed, label %none, label %link
link:
{_copy("boxes", 0, "p", 0, "newest")}
  store ptr %p, ptr %boxes
  %q = getelementptr i8, ptr %p, i64 {LINE}
  %drop.at = getelementptr i64, ptr %q, i64 -1
  store ptr null, ptr %drop.at
  ret ptr %q
none:
  ret ptr null
}}

define void @drop_boxes(ptr nocapture %boxes) nounwind {{
  br label %head
head:
  %p = load ptr, ptr %boxes
  %end = icmp eq ptr %p, null
  br i1 %end, label %done, label %body
body:
  %next = load ptr, ptr %p
  store ptr %next, ptr %boxes
  %q = getelementptr i8, ptr %p, i64 {LINE}
  %drop.at = getelementptr i64, ptr %q, i64 -1
  %drop = load ptr, ptr %drop.at
  %nothing = icmp eq ptr %drop, null
  br i1 %nothing, label %free, label %some
some:
  call void %drop(ptr %q)
  br label %free
free:
  call void @free_aligned(ptr %p)
  br label %head
done:
  ret void
}}
"""

ARENA = "\n".join([_BLOCKS, _ARRAYS, _BOXES])


def beginning(name: str, kept: str) -> list[str]:
    """The lines that make an empty arena."""
    return [
        f"{name} = alloca [{WORDS} x i64]",
        f"store [{WORDS} x i64] zeroinitializer, ptr {name}",
        f"{name}.kept = getelementptr i64, ptr {name}, i64 {KEPT}",
        f"store ptr {kept}, ptr {name}.kept",
    ]

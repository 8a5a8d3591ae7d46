"""Call Python for operations that it computes: always, or where a routine fails."""

from __future__ import annotations

from tapegrad.compiler.llvm.function_builder import Routine


def by_python(count: int) -> Routine:
    """A callback into Python with the addresses of the operands and of the result."""
    names = [f"%a{k}" for k in range(count + 1)]
    head = f"define internal i64 @{{name}}(i64 %number, {', '.join(f'ptr {a}' for a in names)})"
    lines = [f"{head} #2 {{", *_asking(names), "ret i64 %answer", "}"]
    return Routine("\n".join(lines), frozenset(), frozenset())


def or_python(tried: str, names: list[str], given: int) -> Routine:
    """Call a routine, and Python where it fails: with the names after the given ones."""
    params = ", ".join(f"ptr {a}" for a in dict.fromkeys(names))
    passed = ", ".join(f"ptr {a}" for a in names[:given])
    lines = [
        f"define internal i64 @{{name}}(i64 %number, {params}) #0 {{",
        f"%status = call i64 @{tried}({passed})",
        "%bad = icmp ne i64 %status, 0",
        "br i1 %bad, label %failing, label %solved",
        "failing:", *_asking(names[given:]), "ret i64 %answer", "solved:", "ret i64 0", "}",
    ]  # fmt: skip
    return Routine("\n".join(lines), frozenset(), frozenset())


def _asking(names: list[str]) -> list[str]:
    """The code of a callback; `%number` is the operation's, `%answer` the status."""
    *args, out = names
    lines = [f"%table = alloca [{max(len(args), 1)} x ptr]"]
    for k, name in enumerate(args):
        lines.append(f"%slot{k} = getelementptr inbounds i8, ptr %table, i64 {8 * k}")
        lines.append(f"store ptr {name}, ptr %slot{k}")
    return [
        *lines, "%program = load i64, ptr @tapegrad_number",
        "%answer = call i64 @tapegrad_callback(i64 %program, i64 %number, ptr %table, "
        f"ptr {out})",
    ]  # fmt: skip

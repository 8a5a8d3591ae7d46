"""Random programs: loops in loops, branches, breaks, writes in place, swaps, slices, calls."""

import linecache
import math
import random

import numpy as np
from numba import njit

HEAD = """\
def program(u, v, p, idx):
    a, b, c = p, 0.3, -0.2
    m = 1
    u = u.copy()
"""
TAIL = """\
    s = a * b + c
    for q in range(6):
        s += u[q] * v[5 - q]
    return s
"""


@njit
def helper(x, w, k):
    s = x
    for i in range(k, 4):
        if w[i] > s:
            s = s * 0.5 + w[i]
        else:
            w[i] = w[i] * math.cos(s)
    return s, s * w[0]


class RandomProgram:
    """Writes one program."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines = []
        self.loops = []
        self.count = 0

    def pick(self, *choices):
        return self.random.choice(choices)

    def expression(self, depth=0):
        if depth > 2 or self.random.random() < 0.35:
            numbers = ["a", "b", "c", "p", self.element("u"), self.element("v")]
            numbers += [f"{self.random.uniform(-1, 1):.2f}", *(f"(0.1 * {i})" for i in self.loops)]
            return self.pick(*numbers)
        x, y = self.expression(depth + 1), self.expression(depth + 1)
        return self.pick(
            f"({x} + {y})", f"({x} - {y})", f"({x} * {y})", f"math.sin({x})", f"math.tanh({x})",
            f"({x} / (1.0 + {y} * {y}))", f"math.sqrt(1.0 + {x} * {x})", f"math.exp(-{x} * {x})",
            f"max({x}, {y})", f"abs({x})", f"({x} if {self.condition(depth + 1)} else {y})",
            f"({x}) ** 2", "np.sum(u[1:4] * v[2:5])", "np.max(v)", "np.dot(u, v)",
        )  # fmt: skip

    def condition(self, depth=1):
        if self.loops and self.random.random() < 0.4:
            return f"({self.pick(*self.loops)} + m) % {self.pick(2, 3)} == 0"
        return f"{self.expression(depth + 1)} {self.pick('<', '>')} {self.expression(depth + 1)}"

    def index(self):
        choices = [str(self.random.randint(-2, 5)), "m % 6", "idx[m % 4]"]
        if self.loops:
            i = self.pick(*self.loops)
            near = [i, f"{i} - 1", i] if i[0] == "i" else []
            choices += 2 * [f"{i} % 6", f"({i} + 1) % 6", f"idx[{i} % 4]", f"({i} - 2)", *near]
        return self.pick(*choices)

    def element(self, array):
        return f"{array}[{self.index()}]"

    def statement(self, depth, pad):
        simple = [
            (25, lambda: f"{self.pick(*'abc')} = math.sin({self.expression()})"),
            (20, self.element_write),
            (5, lambda: "u, v = v, u"),
            (4, lambda: "a, b, c = b, c, 0.5 * a"),
            (3, self.call),
            (2, lambda: f"{self.pick(*'uv')} = {self.pick(*'uv')}.copy()"),
            (2, lambda: f"m = (m * 3 + {self.random.randint(1, 5)}) % 7"),
            (6, self.slice_write),
        ]
        nested = [(16, self.branch), (10, self.for_loop), (5, self.each), (7, self.while_loop)]
        leaving = [(4, self.leave)] if depth else []
        choices = simple + leaving + (nested if depth < 3 else [])
        (chosen,) = self.random.choices([f for _, f in choices], [w for w, _ in choices])
        if any(chosen is f for _, f in simple):
            self.lines.append(pad + chosen())
        else:
            chosen(depth, pad)

    def element_write(self):
        sign = self.pick("=", "=", "+=")
        return f"{self.element(self.pick(*'uv'))} {sign} 0.5 * math.tanh({self.expression()})"

    def slice_write(self):
        to, source = self.pick(*"uv"), self.pick(*"uv")
        k = self.random.randint(0, 3)
        return self.pick(
            f"{to}[{k}:{k + 3}] = {source}[1:4] * 0.5 * math.tanh({self.expression(1)})",
            f"{to}[1:4] = {source}[{k}:{k + 3}]", f"{to}[2:] *= 0.5", f"{to}[::2] = math.sin(a)",
            f"{to} = np.sin({source} * {self.expression(2)})", f"{to}[:] = {source}[::-1]",
        )  # fmt: skip

    def call(self):
        argument = f"math.sin({self.expression(1)})"
        return f"a, b = helper({argument}, {self.pick(*'uv')}, {self.random.randint(0, 2)})"

    def leave(self, depth, pad):
        inside = self.loops and self.random.random() < 0.7
        self.lines.append(f"{pad}if {self.condition()}:")
        what = self.pick("break", "continue") if inside else "return a + u[1] * v[2]"
        self.lines.append(f"{pad}    {what}")

    def branch(self, depth, pad):
        self.lines.append(f"{pad}if {self.condition()}:")
        self.block(depth + 1, pad)
        if self.random.random() < 0.6:
            self.lines.append(f"{pad}else:")
            self.block(depth + 1, pad)

    def looped(self, name, depth, pad):
        self.loops.append(name)
        self.block(depth + 1, pad)
        self.loops.pop()

    def fresh(self, letter):
        self.count += 1
        return f"{letter}{self.count}"

    def for_loop(self, depth, pad):
        i = self.fresh("i")
        last = f"1, {self.loops[-1]} % 4 + 2" if self.loops else "4"
        span = self.pick("3", "6", "1, 5", "2, 6", "5, 0, -1", "m % 4", last)
        self.lines.append(f"{pad}for {i} in range({span}):")
        self.looped(i, depth, pad)

    def each(self, depth, pad):
        i, x = self.fresh("i"), self.pick(*"abc")
        self.lines.append(f"{pad}for {i}, {x} in enumerate({self.pick('u', 'v', 'u[1:5]')}):")
        self.looped(i, depth, pad)

    def while_loop(self, depth, pad):
        w = self.fresh("w")
        self.lines.append(f"{pad}{w} = 0")
        self.lines.append(f"{pad}while {w} < {self.random.randint(2, 5)} and {self.condition()}:")
        self.lines.append(f"{pad}    {w} += 1")
        self.looped(w, depth, pad)

    def block(self, depth, pad):
        for _ in range(self.random.randint(1, 4)):
            self.statement(depth, pad + "    ")

    def source(self):
        """The program's text."""
        if self.random.random() < 0.5:
            self.lines.append("    v = v.copy()")
        for _ in range(self.random.randint(4, 8)):
            self.statement(0, "    ")
        return HEAD + "\n".join(self.lines) + "\n" + TAIL


def program(seed):
    """A program that Numba compiles, and its arguments."""
    text, name = RandomProgram(seed).source(), f"<program {seed}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space = {"math": math, "np": np, "helper": helper}
    exec(compile(text, name, "exec"), space)
    n = np.random.default_rng(seed).normal
    return njit(space["program"]), (n(size=6), n(size=6), 0.7, np.array([3, 1, 4, 0]))

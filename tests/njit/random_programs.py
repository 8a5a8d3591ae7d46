"""Random programs: loops in loops, branches, breaks, writes in place, views, swaps, calls.

Some of them compute with complex numbers, too.
"""

import cmath
import linecache
import math
import random

import numpy as np
from numba import njit

HEAD = """\
def program(u, v, p, idx, w, h):
    a, b, c = p, 0.3, -0.2
    m = 1
"""
TAIL = """\
    s = a * b + c + w[1, 2] * w[2, 1] + float(h[1])
    for q in range(6):
        s += u[q] * v[5 - q]
    return s
"""
COMPLEX_HEAD = """\
    z = complex(p, 0.4)
    q = u + 1j * v[::-1]
"""
COMPLEX_TAIL = """\
    a += abs(z) + z.imag + np.sum(q.real * q.imag)
"""
# Lines from which on a program ends; those that all tests run are short.
SIZES, SHORT, SHORT_ONES = (5, 8, 13, 21, 34), (2, 3, 5, 8, 13), 1_000


@njit
def helper(x, w, k):
    s = x
    for i in range(k, 4):
        if w[i] > s:
            s = s * 0.5 + w[i]
        else:
            w[i] = w[i] * math.cos(s)
    return s, s * w[0]


@njit
def nested(pair, w, k):
    """Calls the other one, of a view, and returns early."""
    x, y = pair
    if x < -0.8:
        return y, x * w[k]
    s, t = helper(x, w[1:], k % 2)
    if t > s:
        s, t = helper(y, w, 1)
    return s - y, math.sin(t)


class RandomProgram:
    """Writes one program."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines = []
        self.loops = []
        self.views = {}  # names that stand for a part of an array here, and their lengths
        self.count = 0
        self.is_complex = seed % 10 == 2
        self.size = self.pick(*(SHORT if seed < SHORT_ONES else SIZES))

    def pick(self, *choices):
        return self.random.choice(choices)

    def expression(self, depth=0):
        if depth > 2 or self.random.random() < 0.35:
            numbers = ["a", "b", "c", "p", self.element("u"), self.element("v"), self.cell()]
            numbers += [f"{self.random.uniform(-1, 1):.2f}", *(f"(0.1 * {i})" for i in self.loops)]
            numbers += [self.element(name) for name in self.views]
            # It may be in float32, where Python would not compute what Numba does.
            numbers.append(f"float({self.element('h')})")
            if self.is_complex:
                numbers += [self.size_or_part(depth) for _ in range(4)]
            return self.pick(*numbers)
        x, y = self.expression(depth + 1), self.expression(depth + 1)
        if self.random.random() < 0.12:
            return self.reduction()
        return self.pick(
            f"({x} + {y})", f"({x} - {y})", f"({x} * {y})", f"math.sin({x})", f"math.tanh({x})",
            f"({x} / (1.0 + {y} * {y}))", f"math.sqrt(1.0 + {x} * {x})", f"math.exp(-{x} * {x})",
            f"max({x}, {y})", f"abs({x})", f"({x} if {self.condition(depth + 1)} else {y})",
            f"({x}) ** 2",
        )  # fmt: skip

    def size_or_part(self, depth):
        """A real number of a complex one."""
        x = self.complex_expression(max(depth, 1))
        return self.pick(f"abs({x})", f"({x}).real", f"({x}).imag", f"abs({x}) ** 2")

    def complex_expression(self, depth=0):
        element = f"q[{self.index()}]"
        if depth > 2 or self.random.random() < 0.35:
            # A program calls itself no deeper than this: the parts are plain numbers.
            parts = f"complex({self.pick(*'abcp')}, {self.element('u')})"
            return self.pick("z", element, element, parts, f"np.exp(1j * {self.pick(*'abc')})")
        x, y = (self.complex_expression(depth + 1) for _ in range(2))
        real = self.expression(depth + 1)
        # Far from where roots and logarithms are not continuous.
        near = f"2.0 + {x} / (1.0 + abs({x}))"
        return self.pick(
            f"({x} + {y})", f"({x} - {y})", f"({x} * {y})", f"({x} / (3.0 + abs({y})))",
            f"({x} / ({y} * np.conj({y}) + 1.0))", f"({x} * {real})", f"({x} ** 2)",
            f"({x}).conjugate()", f"np.sqrt({near})", f"cmath.log({near})",
            f"np.exp(-{x} * np.conj({x}))", f"np.sin({x} / (1.0 + abs({x})))", f"(-{x} + 1j)",
            f"({near}) ** 1.5", "np.vdot(q[:4], q[2:])", "np.sum(q)",
            f"({x} if {real} > 0.0 else {y})",
        )  # fmt: skip

    def complex_write(self):
        x, k = self.complex_expression(1), self.random.randint(0, 3)
        bounded = f"{x} / (1.0 + abs({x}))"
        return self.pick(
            f"z = {bounded}", f"z = {bounded}", f"q[{self.index()}] = {bounded}",
            f"q[{self.index()}] += {bounded}", f"q[{k}:{k + 3}] = q[1:4] * ({bounded})",
            f"q = np.exp(1j * {self.pick(*'uv')}) * z", "q[:] = np.conj(q)[::-1]",
            f"{self.pick(*'uv')}[:] = np.sin(q.{self.pick('real', 'imag')})", "q[::2] = u[:3]",
            f"q.imag[{k}] = {self.pick(*'abc')}", f"z, q[{k}] = q[{k + 1}], 0.5 * z",
            "q = q / (1.0 + np.abs(q))", f"q *= {bounded}",
        )  # fmt: skip

    def reduction(self):
        k = self.random.randint(0, 2)
        return self.pick(
            "np.sum(u[1:4] * v[2:5])", "np.max(v)", "np.dot(u, v)", "np.sum(u[idx])",
            "np.sum(v[idx])", f"np.sum(w, axis=0)[{k}]", f"w.sum(axis=1)[{k}]",
            f"np.mean(w[:, {k}])", "np.min(w)", f"np.dot(w[{k}], u[{k}:{k + 4}])",
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
        if array in self.views:
            return f"{array}[{self.pick('m', *self.loops, *'0123')} % {self.views[array]}]"
        return f"{array}[{self.index()}]"

    def cell(self):
        i, j = (self.pick("m", *self.loops, *"012") for _ in range(2))
        return f"w[{i} % 3, ({j} + {self.random.randint(0, 3)}) % 4]"

    def statement(self, depth, pad):
        simple = [
            (25, lambda: f"{self.pick(*'abc')} = math.sin({self.expression()})"),
            (20, self.element_write),
            (5, lambda: "u, v = v, u"),
            (4, lambda: "a, b, c = b, c, 0.5 * a"),
            (4, self.call),
            (2, lambda: f"{self.pick(*'uv')} = {self.pick(*'uv')}.copy()"),
            (2, lambda: f"m = (m * 3 + {self.random.randint(1, 5)}) % 7"),
            (6, self.slice_write),
            (5, self.matrix_write),
            (2, self.index_write),
            (3, self.mixed_write),
        ]
        if self.is_complex:
            simple.append((30, self.complex_write))
        nested = [(16, self.branch), (10, self.for_loop), (5, self.each), (7, self.while_loop)]
        nested += [(5, self.view), (2, self.made)]
        leaving = [(4, self.leave)] if depth else []
        choices = simple + leaving + (nested if depth < 3 else [])
        (chosen,) = self.random.choices([f for _, f in choices], [w for w, _ in choices])
        if any(chosen is f for _, f in simple):
            self.lines.append(pad + chosen())
        else:
            chosen(depth, pad)

    def element_write(self):
        sign = self.pick("=", "=", "+=", "-=", "*=")
        name = self.pick("u", "v", *self.views)
        return f"{self.element(name)} {sign} 0.5 * math.tanh({self.expression()})"

    def slice_write(self):
        to, source = self.pick(*"uv"), self.pick(*"uv")
        k = self.random.randint(0, 3)
        return self.pick(
            f"{to}[{k}:{k + 3}] = {source}[1:4] * 0.5 * math.tanh({self.expression(1)})",
            f"{to}[1:4] = {source}[{k}:{k + 3}]", f"{to}[2:] *= 0.5", f"{to}[::2] = math.sin(a)",
            f"{to} = np.sin({source} * {self.expression(2)})", f"{to}[:] = {source}[::-1]",
            f"{to}[:3] += {to}[1:4]", f"{to}[:4] = w[{k % 3}]", f"{to}[::2] = w[:, {k}]",
            f"{to}[:3] = np.tanh(w.sum(axis=1))", f"{to}[2:] = 0.2 * np.sum(w, axis=0)",
            f"{to}[:4] = {source}[idx] * {self.expression(2)}",
        )  # fmt: skip

    def matrix_write(self):
        k, j = self.random.randint(0, 2), self.random.randint(0, 3)
        x = f"0.5 * math.tanh({self.expression(1)})"
        return self.pick(
            f"{self.cell()} = {x}", f"{self.cell()} += {x}", f"w[{k}] = u[{k}:{k + 4}]",
            f"w[:, {j}] *= {x}", f"w[{k}, 1:] = w[{k}, :3]",
            f"w[{k}, :3] = w[{(k + 1) % 3}, 1:] * {x}", f"w[{k}] = v[{k}:{k + 4}]",
            f"w[1:] = w[:2] * {x}", "w = np.sin(w) * b", f"w[{k}] -= w[:, {j}].mean()",
            f"w[:] = w + {self.pick(*'uv')}[:4] * 0.1",
        )  # fmt: skip

    def index_write(self):
        k = self.random.randint(0, 3)
        return self.pick(
            f"idx[{k}] = (idx[{k}] + m) % 6", "idx[:2] = idx[2:]",
            f"{self.pick(*'uv')}[idx] = 0.5 * math.tanh({self.expression(1)})",
        )  # fmt: skip

    def mixed_write(self):
        k, j = self.random.randint(0, 3), self.random.randint(0, 3)
        return self.pick(
            f"{self.element('h')} = 0.5 * math.tanh({self.expression(1)})",
            f"h[{k}:{k + 3}] = h[{j}:{j + 3}]", f"h[{k}:{k + 3}] = {self.pick(*'uv')}[2:5]",
            f"{self.pick(*'uv')}[{k}:{k + 3}] = h[2:5]", "h[:] = h[::-1]",
        )  # fmt: skip

    def call(self):
        argument = f"math.sin({self.expression(1)})"
        array, k = self.pick("u", "v", "u[1:]", "v[2:]", "w[1]"), self.random.randint(0, 2)
        short = array in ("v[2:]", "w[1]")
        if self.random.random() < 0.4 and not short:
            return f"a, b = nested(({argument}, c), {array}, {k})"
        return f"a, b = helper({argument}, {array}, {k})"

    def view(self, depth, pad):
        """A part of an array under a name of its own, for some statements."""
        t = self.fresh("t")
        text, length = self.pick(
            ("u[1:5]", 4), ("v[2:]", 4), ("u[::2]", 3), ("v[::-1]", 6), ("w[1]", 4), ("w[:, 2]", 3),
            ("w.T[3]", 3), ("u", 6),
        )  # fmt: skip
        self.lines.append(f"{pad}{t} = {text}")
        self.views[t] = length
        for _ in range(self.random.randint(1, 3)):
            self.statement(depth + 1, pad)
        del self.views[t]

    def made(self, depth, pad):
        """An array or a tuple that the program makes."""
        t = self.fresh("t")
        x, y = self.expression(1), self.expression(1)
        if self.random.random() < 0.5:
            self.lines.append(f"{pad}{t} = ({x}, {y}, m)")
            self.lines.append(f"{pad}a, b, m = {t}[1], math.sin({t}[0]), ({t}[2] + 1) % 7")
            return
        self.lines.append(f"{pad}{t} = np.{self.pick('zeros', 'ones')}(3)")
        self.lines.append(f"{pad}{t}[m % 3] = {x}")
        self.views[t] = 3
        for _ in range(self.random.randint(1, 2)):
            self.statement(depth + 1, pad)
        del self.views[t]

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
        for k in range(self.random.randint(1, 4)):
            if k and len(self.lines) > self.size:
                break
            self.statement(depth, pad + "    ")

    def source(self):
        """The program's text."""
        for name in "u", "v", "w", "h", "idx":  # the others are written into where they are
            if self.random.random() < 0.6:
                self.lines.append(f"    {name} = {name}.copy()")
        start = len(self.lines)
        while len(self.lines) - start < self.size:
            self.statement(0, "    ")
        head, tail = (COMPLEX_HEAD, COMPLEX_TAIL) if self.is_complex else ("", "")
        return HEAD + head + "\n".join(self.lines) + "\n" + tail + TAIL


def program(seed):
    """A program that Numba compiles, and its arguments."""
    text, name = RandomProgram(seed).source(), f"<program {seed}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space = {"cmath": cmath, "math": math, "np": np, "helper": helper, "nested": nested}
    exec(compile(text, name, "exec"), space)
    n = np.random.default_rng(seed).normal
    narrow = np.float64 if seed % 6 else np.float32
    arrays = np.array([3, 1, 4, 0]), n(size=(3, 4)), n(size=6).astype(narrow)
    return njit(space["program"]), (n(size=6), n(size=6), 0.7153, *arrays)

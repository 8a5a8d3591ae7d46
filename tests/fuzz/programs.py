"""Random programs over arrays: straight text, of which each line makes a value, a view, or writes.

A number gives a program; the same text runs on NumPy, on Tensors and, through `Cells`, on libraries
whose arrays do not change.
"""

import random
from dataclasses import dataclass

import numpy as np

from tests.fuzz import forms

SHAPES = (
    (), (1,), (3,), (4,), (17,), (2, 3), (3, 3), (3, 1), (1, 4), (2, 1, 3), (2, 2, 2), (0,), (2, 0),
)  # fmt: skip
# Other code computes products of matrices of some size, and from 16,384 elements on all else.
MEDIUM = ((37,), (6, 40), (40, 40), (5, 8, 9), (1_000,), (3, 4, 5, 6))
LARGE = ((130, 128), (16_500,), (2, 8_200), (17, 31, 33), (129, 129))
NEAR = 4e-3  # nearer to a kink than this differences do not tell the derivative
HIGHEST = 30.0


@dataclass(frozen=True)
class Step:
    """A line: its form, the names of its operands, and what it makes ("" where it writes)."""

    kind: str  # "value", "element", "view", "write" or "number"
    form: forms.Form
    args: tuple[str, ...]
    made: str
    place: str = ""  # of a write: the view that is written, and what it becomes; `P` is what it was
    becomes: str = ""

    def line(self, torch=False):
        text = (self.form.torch if torch else self.form.text).format(*self.args)
        return f"{self.made} = {text}" if self.made else text


@dataclass(frozen=True)
class Program:
    """Steps over inputs `x0`, `x1`, ..., and the names of the results."""

    inputs: tuple[np.ndarray, ...]
    steps: tuple[Step, ...]
    outs: tuple[str, ...]
    seed: int = -1

    @property
    def arguments(self):
        return [f"x{k}" for k in range(len(self.inputs))]

    def source(self, torch=False):
        lines = [f"def f({', '.join(self.arguments)}):"]
        lines += [f"    {step.line(torch)}" for step in self.steps]
        return "\n".join([*lines, f"    return {', '.join(self.outs)},", ""])

    def function(self, torch=False, **names):
        """The program over the given `np`, `C` or `T`."""
        space = dict(names)
        exec(compile(self.source(torch), f"<program {self.seed}>", "exec"), space)
        return space["f"]

    @property
    def in_torch(self):
        return all(step.form.torch is not None for step in self.steps)

    @property
    def smooth(self):
        return all(step.form.smooth for step in self.steps)

    @property
    def numbers(self):
        """Whether NumPy's numbers count: outside of transforms elements are views of Tensors.

        A name of a number gets another one, or an array is changed of which an element was read.
        """
        roots, read = {}, set()
        for step in self.steps:
            root = roots.get(step.args[0], step.args[0])
            if step.kind == "view":
                roots[step.made] = root
            elif step.kind == "element":
                read.add(root)
            elif step.kind == "number" or (step.kind == "write" and root in read):
                return True
        return False


class _Constant:
    """A library whose `array` makes NumPy's: indices are constants where arrays are traced."""

    array = staticmethod(np.array)

    def __init__(self, library):
        self.library = library

    def __getattr__(self, name):
        return getattr(self.library, name)


class Cells:
    """Runs a program without changing an array: a view is where its elements stand in a cell."""

    def __init__(self, np, control, put):
        self.np, self.control, self.put = np, control, put
        self.namespace = _Constant(np)

    def run(self, program, *inputs):
        self.flat, self.places = {}, {}
        for name, x in zip(program.arguments, inputs):
            self._new(name, x)
        for step in program.steps:
            space = {"np": self.namespace, "C": self.control}
            space |= {name: self.read(name) for name in step.args}
            if step.kind in ("value", "element"):
                self._new(step.made, self._eval(step.form.text, step, space))
                continue
            if step.kind == "number":
                self._new(step.args[0], self._eval(step.becomes, step, space))
                continue
            cell, at = self.places[step.args[0]]
            text = step.place or step.form.text
            at = np.asarray(self._eval(text, step, {"np": np, step.args[0]: at}))
            if step.kind == "view":
                self.places[step.made] = cell, at
                continue
            old = self.flat[cell]
            new = self._eval(step.becomes, step, {**space, "P": old[at]})
            self.flat[cell] = self.put(old, at, self.np.broadcast_to(new, at.shape))
        return tuple(self.read(name) for name in program.outs)

    def _eval(self, text, step, space):
        return eval(text.format(*step.args), space)

    def _new(self, name, value):
        value = self.np.asarray(value)
        cell = len(self.flat)
        self.flat[cell] = self.np.reshape(value, (-1,))
        self.places[name] = cell, np.arange(value.size).reshape(value.shape)

    def read(self, name):
        cell, at = self.places[name]
        return self.flat[cell][at]


class Builder:
    """Draws steps one after the other, and computes them to see that values stay moderate."""

    def __init__(self, seed, control):
        self.rng, self.seed = random.Random(seed), seed
        self.draw = np.random.default_rng(seed)
        self.space = {"np": np, "C": control}
        self.root, self.frozen, self.steps = {}, set(), []
        self.numbers = []  # what NumPy gives as a scalar, not as an array
        self.most = forms.MOST
        self.both = self.rng.random() < 0.4  # only what PyTorch has, too
        self.inputs = self._inputs()
        self.order = list(self.root)

    def _inputs(self):
        rng = self.rng
        shapes = [rng.choice(SHAPES) for _ in range(rng.randint(1, 3))]
        if rng.random() < 0.3:
            shapes[-1] = shapes[0]
        size = rng.random()
        if size < 0.04:
            shapes = [rng.choice(LARGE)]
            self.most = 40_000
        elif size < 0.12:
            shapes = [rng.choice(MEDIUM)] * rng.randint(1, 2)
            self.most = 4_000
        arrays = []
        for k, shape in enumerate(shapes):
            arrays.append(np.asarray(self.draw.uniform(-1.5, 1.5, shape)))
            self.space[f"x{k}"], self.root[f"x{k}"] = arrays[-1].copy(), f"x{k}"
        self.frozen |= set(self.root)
        return tuple(arrays)

    def build(self):
        for _ in range(self.rng.randint(3, 6) if self.most > 1000 else self.rng.randint(3, 16)):
            for _ in range(20):
                if self._step():
                    break
        made = [name for name in self.order if name not in self._arguments()]
        outs = made[-1:] + self.rng.sample(made, min(len(made), self.rng.randrange(3)))
        outs = tuple(dict.fromkeys(outs or ["x0"]))
        return Program(self.inputs, tuple(self.steps), outs, self.seed)

    def _arguments(self):
        return {f"x{k}" for k in range(len(self.inputs))}

    def _pick(self):
        """A value, a recent one more often."""
        last = self.order[-4:] if self.rng.random() < 0.6 else self.order
        return self.rng.choice(last)

    def _shape(self, name):
        return np.shape(self.space[name])

    def _fitting(self, name):
        shape = self._shape(name)

        def fits(other):
            try:
                return forms.of(np.broadcast_shapes(shape, self._shape(other))) <= self.most
            except ValueError:
                return False

        return self.rng.choice([other for other in self.order if fits(other)])

    def _step(self):
        rng, a = self.rng, self._pick()
        shape, kind = self._shape(a), rng.random()
        if kind < 0.18:
            return self._value(rng.choice(forms.UNARY), a)
        if kind < 0.32:
            return self._value(rng.choice(forms.BINARY), a, self._fitting(a))
        if kind < 0.40:
            return self._value(forms.reduced(rng, shape), a)
        if kind < 0.50:
            return self._value(forms.along(rng, shape), a)
        if kind < 0.58:
            return self._value(forms.moved(rng, shape), a)
        if kind < 0.66:
            b = self._pick()
            return self._value(forms.joined(rng, shape, self._shape(b)), a, b)
        if kind < 0.72:
            b = self._pick()
            return self._value(forms.controlled(rng, shape, self._shape(b)), a, b)
        if kind < 0.84:
            return self._view(a)
        if kind < 0.87:
            return self._number()
        return self._write()

    def _tried(self, text, args):
        """The value of an expression, or None where it is none that a program shall have."""
        try:
            with np.errstate(all="raise"):
                y = eval(text.format(*args), dict(self.space))
        except (ValueError, IndexError, FloatingPointError, np.linalg.LinAlgError):
            return None
        self.scalar = isinstance(y, np.generic)
        y = np.asarray(y)
        moderate = y.dtype == np.float64 and y.size <= self.most and np.all(np.isfinite(y))
        return y if moderate and (not y.size or np.max(np.abs(y)) < HIGHEST) else None

    def _near_kink(self, form, args):
        return form.kink and kink_of(form, args, self.space) < NEAR and self.rng.random() < 0.8

    def _value(self, form, *args):
        if form is None or (self.both and form.torch is None):
            return False
        y = self._tried(form.text, args)
        if y is None or self._near_kink(form, args):
            return False
        name = f"v{len(self.order)}"
        shared = [a for a in args if not y.size or np.shares_memory(y, self.space[a])]
        self._made(Step("value", form, args, name), y, name)
        if shared or "unstack" in form.text:  # a view or a copy, as it comes: nobody writes
            self.frozen |= {name, *(self.root[a] for a in shared or args)}
        return True

    def _made(self, step, value, root):
        self.steps.append(step)
        self.space[step.made], self.root[step.made] = value, root
        self.order.append(step.made)
        if self.scalar:
            self.numbers.append(step.made)

    def _view(self, a):
        text, torch = forms.viewed(self.rng, self._shape(a))
        y = self._tried(text, (a,))
        if y is None or (self.both and torch is None):
            return False
        root, name = self.root[a], f"v{len(self.order)}"
        element = not y.ndim and self.scalar  # a number to NumPy, and a view to PyTorch
        kind = "element" if element else "view"
        step = Step(kind, forms.Form("view", text, torch), (a,), name)
        self._made(step, y, name if element else root)
        if (not y.ndim and (self.both or not element)) or not self._shape(a):
            self.frozen |= {root, name}
        return True

    def _number(self):
        """A second name of a number, and `+=`, which gives only one of them the new one."""
        if self.both or not self.numbers:
            return False
        rng = self.rng
        a = rng.choice(self.numbers)
        b = rng.choice([name for name in self.order if not self._shape(name)])
        sign = rng.choice("+-*")
        y = self._tried(f"{{0}} {sign} {{1}}", (a, b))
        if y is None:
            return False
        other = f"v{len(self.order)}"
        same = Step("view", forms.Form("name", "{0}"), (a,), other)
        self._made(same, self.space[a].copy(), self.root[a])
        text = f"{{0}} {sign}= {{1}}"
        form = forms.Form(f"number {sign}=", text)
        self.steps.append(Step("number", form, (a, b), "", "", f"{{0}} {sign} {{1}}"))
        self.space[a] = y
        return True

    def _write(self):
        rng = self.rng
        targets = [
            name for name in self.order
            if self.root[name] not in self.frozen and self._shape(name)
            and self.space[name].flags.writeable
        ]  # fmt: skip
        if not targets:
            return False
        t = rng.choice(targets)
        text, torch = ("{0}",) * 2 if rng.random() < 0.4 else forms.viewed(rng, self._shape(t))
        part = self._tried(text, (t,))
        if part is None or not text.startswith("{0}") or ".T" in text:
            return False
        if self.both and torch is None:
            return False
        names = [n for n in self.order if _goes_into(self._shape(n), part.shape)]
        value = rng.choice(["0.5", "np.sin({1})", "{1}", "np.cos({1}) * 0.7", "np.tanh({0}.sum())"])
        name = rng.choice(names) if names else t
        if not names and "{1}" in value:
            value = "0.25"
        sign, becomes = rng.choice(
            [("=", "{v}"), ("+=", "P + {v}"), ("*=", "P * ({v})"), ("-=", "P - ({v})"),
             ("/=", "P / (2.0 + ({v}) ** 2)"), ("mask", "")]
        )  # fmt: skip
        kink, place = "", text
        if sign == "mask":
            text = f"{{0}}[{{0}} > 0.3] {rng.choice(['= 0.5', '*= 0.5'])}"
            new = "0.5" if " = " in text else "0.5 * P"
            becomes, kink, place, torch = f"np.where(P > 0.3, {new}, P)", "{0} - 0.3", "{0}", text
        else:
            if sign == "=" and text == "{0}":
                text = "{0}[...]"
            given = "2.0 + ({v}) ** 2" if sign == "/=" else "{v}"
            becomes = becomes.replace("{v}", value)
            torch = torch and f"{text} {sign} {given.replace('{v}', value)}".replace("np.", "T.")
            text = f"{text} {sign} {given.replace('{v}', value)}"
        form = forms.Form(f"write {sign}", text, torch, kink)
        step = Step("write", form, (t, name), "", place, becomes)
        before = {n: np.copy(v) for n, v in self.space.items() if isinstance(v, np.ndarray)}
        if self._near_kink(form, step.args):
            return False
        try:
            with np.errstate(all="raise"):
                exec(text.format(*step.args), dict(self.space))
            fine = np.all(np.abs(self.space[t]) < HIGHEST)
        except (ValueError, IndexError, FloatingPointError):
            fine = False
        if not fine:
            for n, v in before.items():
                if self.root[n] == self.root[t]:
                    self.space[n][...] = v
            return False
        self.steps.append(step)
        return True


def _goes_into(shape, whole):
    try:
        return np.broadcast_shapes(shape, whole) == whole
    except ValueError:
        return False


def kink_of(form, args, space):
    """How near the operands are to where the form is not smooth."""
    far = np.abs(eval(form.kink.format(*args), dict(space)))
    return float(np.min(far)) if np.size(far) else np.inf


def nearest_kink(program, control):
    """How near a program comes to a kink, at its inputs."""
    space = {"np": np, "C": control}
    space |= {name: x.copy() for name, x in zip(program.arguments, program.inputs)}
    nearest = np.inf
    for step in program.steps:
        if step.form.kink:
            nearest = min(nearest, kink_of(step.form, step.args, space))
        exec(step.line(), space)
    return nearest


def program(seed, control):
    """The program of a number."""
    return Builder(seed, control).build()


def sign_pattern(program, control, inputs):
    """On which side of each of its kinks a program is at a point."""
    space = {"np": np, "C": control}
    space |= {name: np.copy(x) for name, x in zip(program.arguments, inputs)}
    signs = []
    for step in program.steps:
        if step.form.kink:
            far = eval(step.form.kink.format(*step.args), dict(space))
            signs.append(np.sign(far).tobytes())
        exec(step.line(), space)
    return b"|".join(signs)

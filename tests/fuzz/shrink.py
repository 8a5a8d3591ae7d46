"""Smaller programs that disagree in the same way, and what to run to see it."""

import inspect
import re
import warnings
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tests.fuzz import checks, control, forms
from tests.fuzz.programs import Program, Step

PATIENCE = 400  # candidates


def shrunk(program, name, check, error):
    """The smallest program found on which the check fails with an error of the same kind."""
    left = PATIENCE

    def fails(candidate):
        if not _valid(candidate):
            return False
        found = checks.run(candidate, [(name, check)])
        return found is not None and _kind(found[1]) == _kind(error)

    smaller = True
    while smaller and left > 0:
        smaller = False
        for candidate in _smaller(program):
            left -= 1
            if left < 0:
                break
            if fails(candidate):
                program, smaller = candidate, True
                break
    return program


def _kind(error):
    words = "" if isinstance(error, AssertionError) else re.sub(r"[\d(),]", "", str(error))[:60]
    return type(error), words


def _valid(program):
    """Whether NumPy runs it, without a write to what is not the program's own."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            inputs = [x.copy() for x in program.inputs]
            for x in inputs:
                x.flags.writeable = False
            program.function(np=np, C=control.Plain)(*inputs)
            checks.immutable(checks.Case(program))
    except Exception:  # whatever it is: this is no program
        return False
    return True


def _smaller(program) -> Iterator[Program]:
    for name in program.outs:
        if len(program.outs) > 1:
            yield replace(program, outs=tuple(n for n in program.outs if n != name))
    if program.steps and program.steps[-1].made in program.outs[-1:]:
        for name in [s.made for s in program.steps[:-1] if s.made][::-1]:
            yield replace(program, steps=program.steps[:-1], outs=(name,))
    shapes = _shapes(program)
    for k in range(len(program.steps) - 1, -1, -1):
        step = program.steps[k]
        rest = program.steps[:k] + program.steps[k + 1 :]
        if not step.made or not any(step.made in s.args for s in rest):
            if step.made not in program.outs:
                yield replace(program, steps=rest)
            continue
        earlier = [*step.args, *program.arguments, *(s.made for s in program.steps[:k] if s.made)]
        for other in dict.fromkeys(earlier):
            if shapes[other] == shapes[step.made]:
                yield _renamed(replace(program, steps=rest), step.made, other)
    for k, step in enumerate(program.steps):
        for form in (forms.Form("times", "{0} * 1.0", "{0} * 1.0"), forms.UNARY[0]):
            if step.kind == "value" and len(step.form.text) > len(form.text):
                for arg in dict.fromkeys(step.args):
                    if shapes[arg] == shapes[step.made]:
                        made = Step("value", form, (arg,), step.made)
                        yield replace(
                            program, steps=(*program.steps[:k], made, *program.steps[k + 1 :])
                        )
    for k, name in enumerate(program.arguments):
        x = program.inputs[k]
        if len(program.inputs) > 1 and not any(name in s.args for s in program.steps):
            names = [a for a in program.arguments if a != name]
            fewer = replace(program, inputs=program.inputs[:k] + program.inputs[k + 1 :])
            if name not in program.outs:
                for old, new in zip(names, fewer.arguments):
                    fewer = _renamed(fewer, old, new)
                yield fewer
        if x.size and not np.array_equal(x, np.round(x, 1)):
            rounded = (*program.inputs[:k], np.round(x, 1), *program.inputs[k + 1 :])
            yield replace(program, inputs=rounded)


def _renamed(program, old, new):
    names = lambda given: tuple(new if n == old else n for n in given)
    steps = tuple(replace(s, args=names(s.args)) for s in program.steps)
    return replace(program, steps=steps, outs=tuple(dict.fromkeys(names(program.outs))))


def _shapes(program):
    space = {"np": np, "C": control.Plain}
    space |= {name: x.copy() for name, x in zip(program.arguments, program.inputs)}
    for step in program.steps:
        exec(step.line(), space)
    return {
        name: np.shape(x) for name, x in space.items() if isinstance(x, np.ndarray | np.generic)
    }


WAYS = """
loss = lambda f: lambda *xs: sum(np.sum(w * y) for w, y in zip(weights, f(*xs)))
every = tuple(range(len(inputs)))
slope = tg.grad(loss(f), argnums=every)
moved = lambda h: loss(f_of_numpy)(*(x + h * d for x, d in zip(inputs, directions)))
ways = {
    "NumPy": lambda: f_of_numpy(*map(np.copy, inputs)),
    "Tensors": lambda: f(*map(tg.tensor, inputs)),
    "float32": lambda: f(*(tg.tensor(x.astype(np.float32)) for x in inputs)),
    "gradient": lambda: slope(*inputs),
    "along the directions": lambda: sum(np.vdot(g, d) for g, d in zip(slope(*inputs), directions)),
    "jvp": lambda: tg.jvp(loss(f), inputs, directions)[1],
    "differences": lambda: (moved(1e-5) - moved(-1e-5)) / 2e-5,
    "forward over reverse": lambda: tg.jvp(slope, inputs, directions)[1],
    "reverse over reverse": lambda: tg.grad(
        lambda *xs: sum(np.sum(g * d) for g, d in zip(slope(*xs), directions)), argnums=every
    )(*inputs),
    "vmap": lambda: tg.vmap(f)(*(np.stack([x, x]) for x in inputs)),
    "jit": lambda: tg.jit(f)(*inputs),
    "jit of the gradient": lambda: tg.jit(slope)(*inputs),
    "gradient of the jit": lambda: tg.grad(loss(tg.jit(f)), argnums=every)(*inputs),
}
for name, way in ways.items():
    try:
        print(name, way(), sep=": ")
    except Exception as problem:
        print(name, repr(problem), sep=": ")
"""


def text(program, name, error):
    """A program that runs alone and prints what comes in each way."""
    case = checks.Case(program)
    said = str(error).strip().replace("\n", "\n# ")[:600]
    arrays = lambda xs: f"({''.join(f'np.array({np.asarray(x).tolist()}), ' for x in xs)})"
    lines = [
        f'# Program {program.seed}, "{name}": {type(error).__name__}',
        f"# {said}",
        "import numpy as np",
        "import tapegrad as tg",
    ]
    source = program.source()
    if "C." in source:
        lines += ["", *(inspect.getsource(c) for c in (control.Plain, control.Transformed))]
        lines += ["Ours = Transformed(tg, np)"]
    made = f"{source}    # in PyTorch's words:\n" if program.in_torch else source
    if program.in_torch:
        words = program.source(torch=True).splitlines()[1:-1]
        made += "".join(f"    # {line.strip()}\n" for line in words)
    if "C." in source:
        lines += ["", "def over(C):", *("    " + line for line in made.splitlines())]
        lines += ["    return f", "", "f_of_numpy, f = over(Plain), over(Ours)"]
    else:
        lines += ["", made, "f_of_numpy = f"]
    for what in ("inputs", "weights", "directions"):
        lines.append(f"{what} = {arrays(getattr(case, what))}")
    return "\n".join([*lines, WAYS])

"""What a program must agree in: values, first and second derivatives, maps, and compiled code.

A check takes a `Case` and raises `AssertionError` where two ways to compute differ.  What a program
asks of a library that it refuses out loud is `Refused`, and is counted; so are kinks.
"""

import contextlib
import functools
import warnings
from collections import Counter

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.compiler.lower import lower
from tapegrad.parallel import large_elementwise
from tests.fuzz import forms, programs
from tests.fuzz.control import Plain, Transformed

OURS = Transformed(tg, np)
TIGHT, LOOSE, SINGLE = 1e-9, 1e-6, 3e-3

# What may be refused, and is: said aloud, with the way out.
REFUSALS = (
    "saved has been modified by an inplace operation",
    "is a view made together with others",
    "that the function read has been modified by an inplace operation since",
    "`nonzero` under `vmap` finds another number of elements",
    "known when the compiled program runs, so `nonzero` cannot read them",
    "under `vmap` a condition can differ from example to example",
    "asked for a value that only the program knows when it runs (a condition",
)  # fmt: skip


class Skipped(Exception):
    """A check that says nothing about this program, and why."""


class Case:
    """A program with what it is compared by: weights of its results, and directions."""

    def __init__(self, program):
        self.program = program
        rng = np.random.default_rng(program.seed + 1)
        self.inputs = program.inputs
        self.directions = tuple(rng.uniform(-1.0, 1.0, x.shape) for x in self.inputs)
        self.others = tuple(rng.uniform(-1.0, 1.0, x.shape) for x in self.inputs)
        self.plain = program.function(np=np, C=Plain)
        self.wanted = self.plain(*map(np.copy, self.inputs))
        self.weights = tuple(rng.uniform(0.5, 1.0, np.shape(y)) for y in self.wanted)
        self.ours = program.function(np=np, C=OURS)
        self.every = tuple(range(len(self.inputs)))
        self.all_float = all(np.ndim(x) == 0 for x in self.inputs)

    def loss(self, f, xp=np):
        return lambda *xs: sum(xp.sum(w * y) for w, y in zip(self.weights, f(*xs)))

    @functools.cached_property
    def nearest(self):
        return programs.nearest_kink(self.program, Plain)

    @property
    def points(self):
        """Two examples."""
        return self.inputs, tuple(x + 0.01 * d for x, d in zip(self.inputs, self.directions))

    @property
    def stacked(self):
        return [np.stack(x) for x in zip(*self.points)]

    @property
    def small(self):
        """A function of the first input alone, whose Jacobian is no large matrix."""
        if self.inputs[0].size > 40 or sum(np.size(y) for y in self.wanted) > 200:
            raise Skipped("too large")
        return lambda x: self.ours(x, *map(tg.tensor, self.inputs[1:]))

    @property
    def slope(self):
        return tg.grad(self.loss(self.ours), argnums=self.every)

    def along(self, *xs):
        """The Hessian there times the directions."""
        return tg.jvp(self.slope, xs, self.directions)[1]

    @functools.cached_property
    def gradient(self):
        """Of our NumPy face, in reverse."""
        return self.slope(*self.inputs)

    @functools.cached_property
    def curved(self):
        """The Hessian times the directions."""
        return self.along(*self.inputs)


def near(found, wanted, tolerance=TIGHT):
    """Equal shapes, dtypes and values, the latter by the measure of the largest."""
    assert len(found) == len(wanted)
    size = max([1.0, *(float(np.max(np.abs(w))) for w in map(np.asarray, wanted) if w.size)])
    for a, b in zip(found, wanted):
        a, b = as_array(a), as_array(b)
        assert a.shape == b.shape, f"shape {a.shape}, wanted {b.shape}"
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * size)


def as_array(x):
    if hasattr(x, "detach"):
        x = x.detach().numpy()
    return np.asarray(x)


def value(case):
    """NumPy's values: of functions of arrays, and of Tensors with and without a graph."""
    near(tg.vjp(case.ours, *case.inputs)[0], case.wanted)
    near(tg.jvp(case.ours, case.inputs, case.directions)[0], case.wanted)
    if not case.program.numbers:
        near(case.ours(*map(tg.tensor, case.inputs)), case.wanted)
        near(case.ours(*(tg.tensor(x, requires_grad=True) for x in case.inputs)), case.wanted)


def immutable(case):
    """The emulation that JAX is compared by computes what NumPy does."""

    def put(old, at, new):
        old = old.copy()
        old[at] = new
        return old

    near(programs.Cells(np, Plain, put).run(case.program, *case.inputs), case.wanted, 1e-12)


def difference(case):
    """Reverse and forward mode, and differences, along a direction."""
    _, pushed = tg.jvp(case.loss(case.ours), case.inputs, case.directions)
    near([sum(np.vdot(g, d) for g, d in zip(case.gradient, case.directions))], [pushed])
    if not case.program.smooth:
        raise Skipped("stop_gradient")
    if case.nearest < programs.NEAR:
        raise Skipped("kink")
    loss = case.loss(case.plain)
    at = lambda h: loss(*(x + h * d for x, d in zip(case.inputs, case.directions)))
    coarse, fine = [(at(h) - at(-h)) / (2 * h) for h in (4e-4, 2e-4)]
    if abs(coarse - fine) > 1e-4 * max(1.0, abs(fine)):
        raise Skipped("unsteady differences")
    near([pushed], [(4 * fine - coarse) / 3], LOOSE)


def face_of_numpy(case):
    """`backward` and `autograd.grad` of Tensors give what `grad` of the function gives."""
    if case.program.numbers:
        raise Skipped("numbers")
    leaves = [tg.tensor(x, requires_grad=True) for x in case.inputs]
    total = case.loss(case.ours)(*leaves)
    if not getattr(total, "requires_grad", False):
        near(case.gradient, [np.zeros_like(x) for x in case.inputs])
        return
    for kept in (True, False):
        found = tg.autograd.grad(total, leaves, retain_graph=kept, allow_unused=True)
        near(_filled(found, leaves), case.gradient)
    case.loss(case.ours)(*leaves).backward()
    near(_filled([x.grad for x in leaves], leaves), case.gradient)


def _filled(found, leaves):
    return [np.zeros(tuple(x.shape)) if g is None else g for g, x in zip(found, leaves)]


def second_order(case):
    """Hessian-vector products: forward over reverse, reverse over reverse, recorded, `hvp`."""
    loss = case.loss(case.ours)
    slope = tg.grad(loss, argnums=case.every)
    inner = lambda *xs: sum(np.sum(g * d) for g, d in zip(slope(*xs), case.directions))
    near(tg.grad(inner, argnums=case.every)(*case.inputs), case.curved)
    held = [tg.tensor(x) for x in case.inputs]  # what is written to has to be a Tensor
    for k in case.every:
        alone = lambda x, k=k: loss(*held[:k], x, *held[k + 1 :])
        x, d = case.inputs[k], case.directions[k]
        near([tg.hvp(alone)(x, d)], [tg.jvp(tg.grad(alone), (x,), (d,))[1]])
    leaves = [tg.tensor(x, requires_grad=True) for x in case.inputs]
    total = None if case.program.numbers else loss(*leaves)
    if not getattr(total, "requires_grad", False):
        return
    first = tg.autograd.grad(total, leaves, create_graph=True, allow_unused=True)
    along = sum((g * tg.tensor(d)).sum() for g, d in zip(first, case.directions) if g is not None)
    if not getattr(along, "requires_grad", False):
        near(case.curved, [np.zeros_like(x) for x in case.inputs])
        return
    second = tg.autograd.grad(along, leaves, allow_unused=True)
    near(_filled(second, leaves), case.curved)


def matrices(case):
    """Jacobians and Hessians of the first input, both ways."""
    f, x, rest = case.small, case.inputs[0], [tg.tensor(x) for x in case.inputs[1:]]
    forward, backward = tg.jacfwd(f)(x), tg.jacrev(f)(x)
    near(forward, backward)
    loss = lambda x: case.loss(case.ours)(x, *rest)
    near([tg.hessian(loss)(x)], [tg.jacrev(tg.grad(loss))(x)])


def mapped(case):
    """`vmap` of values, gradients and products against a loop."""
    points = case.points
    if len({programs.sign_pattern(case.program, Plain, p) for p in points}) > 1:
        raise Skipped("kink")
    stacked = case.stacked
    slope = tg.grad(case.loss(case.ours), argnums=case.every)
    pushed = lambda *xs: tg.jvp(case.ours, xs, case.directions)[1]
    for f, alone in ((case.ours, case.plain), (slope, slope), (pushed, pushed)):
        wanted = [np.stack(y) for y in zip(*(alone(*map(np.copy, p)) for p in points))]
        near(tg.vmap(f)(*stacked), wanted)
    over = lambda *xs: np.sum(tg.vmap(case.loss(case.ours))(*xs) ** 2)
    twice = lambda x: np.stack([x, x * 1.0])
    g = tg.grad(over, argnums=case.every)(*map(twice, case.inputs))
    loss = case.loss(case.plain)(*map(np.copy, case.inputs))
    near([a[0] for a in g], [2 * loss * b for b in case.gradient])


# Transforms of transforms, as functions of the stacked examples.
COMPOSED = {
    "gradient of scan": lambda c: tg.grad(
        lambda *xs: tg.scan(lambda total, x: (total + c.loss(c.ours)(*x), ()), 0.0, xs)[0],
        argnums=c.every,
    ),
    "scan of gradient": lambda c: lambda *xs: tg.scan(lambda n, x: (n, c.slope(*x)), 0, xs)[1],
    "gradient of vmap of checkpoint": lambda c: tg.grad(
        lambda *xs: np.sum(tg.vmap(tg.checkpoint(c.loss(c.ours)))(*xs)), argnums=c.every
    ),
    "vmap of hvp": lambda c: tg.vmap(c.along),
    "jvp of vmap of gradient": lambda c: (
        lambda *xs: tg.jvp(tg.vmap(c.slope), xs, tuple(np.stack([d, d]) for d in c.directions))[1]
    ),
    "jvp of gradient of scan": lambda c: (
        lambda *xs: tg.jvp(
            COMPOSED["gradient of scan"](c), xs, tuple(np.stack([d, d]) for d in c.directions)
        )[1]
    ),
}  # fmt: skip


def composed(case):
    """Transforms of transforms against each example by itself."""
    if len({programs.sign_pattern(case.program, Plain, p) for p in case.points}) > 1:
        raise Skipped("kink")
    first = [np.stack(y) for y in zip(*(case.slope(*p) for p in case.points))]
    second = [np.stack(y) for y in zip(*(case.along(*p) for p in case.points))]
    for name in list(COMPOSED)[case.program.seed % 2 :: 2]:
        found = COMPOSED[name](case)(*case.stacked)
        near(found, second if "jvp" in name or "hvp" in name else first)


def single(case):
    """float32: the same but for rounding, in NumPy's dtypes."""
    if case.program.numbers:
        raise Skipped("numbers")
    low = [x.astype(np.float32) for x in case.inputs]
    if any(step.form.name in forms.WIDENING for step in case.program.steps):
        raise Skipped("mixed dtypes")
    found = case.ours(*map(tg.tensor, low))
    assert all(as_array(y).dtype == np.float32 for y in found)
    if case.nearest < programs.NEAR:
        raise Skipped("kink")
    near(found, case.wanted, SINGLE)
    g = tg.grad(case.loss(case.ours), argnums=case.every)(*low)
    near(g, case.gradient, SINGLE * 10)


@contextlib.contextmanager
def as_if_large(case):
    """Of some programs even short loops are divided among threads; of some all are interpreted."""
    kind, threads = case.program.seed % 3, tg.get_num_threads()
    with pytest.MonkeyPatch.context() as patch:
        if kind == 1:
            patch.setattr(large_elementwise, "SPLIT", 24)
            tg.set_num_threads(3)
        if kind == 2:
            patch.setattr(lower, "LONG", 1)
        yield
        tg.set_num_threads(threads)


def _compiled(make, tolerance=TIGHT):
    def check(case):
        f, arguments = make(case)
        compiled = tg.jit(f)
        for sign in (1.0, -1.0, 1.0):  # elsewhere what was seen here is not to be kept
            point = [x * sign for x in arguments]
            wanted = _flat(f(*point))
            if all(np.all(np.abs(as_array(y)) < 1e6) for y in wanted):
                with as_if_large(case):
                    near(_flat(compiled(*point)), wanted, tolerance)

    return check


def _flat(tree):
    return [y for t in tree for y in _flat(t)] if isinstance(tree, tuple) else [tree]


COMPILED = {
    "values": lambda c: (c.ours, c.inputs),
    "value and gradient": lambda c: (
        tg.value_and_grad(c.loss(c.ours), argnums=c.every), c.inputs
    ),
    "jvp": lambda c: (lambda *xs: tg.jvp(c.ours, xs, c.directions), c.inputs),
    "vjp": lambda c: (lambda *xs: tg.vjp(c.ours, *xs)[1](c.weights), c.inputs),
    "hvp": lambda c: (
        lambda *xs: tg.jvp(tg.grad(c.loss(c.ours), argnums=c.every), xs, c.directions)[1],
        c.inputs,
    ),
    "vmap": lambda c: (tg.vmap(c.ours), [np.stack([x, x]) for x in c.inputs]),
    "vmap of gradient": lambda c: (
        tg.vmap(tg.grad(c.loss(c.ours), argnums=c.every)), [np.stack([x, x]) for x in c.inputs]
    ),
    "checkpoint": lambda c: (
        tg.grad(tg.checkpoint(c.loss(c.ours)), argnums=c.every), c.inputs
    ),
    "vmap of jacrev": lambda c: (tg.vmap(tg.jacrev(c.small)), [np.stack([c.inputs[0]] * 2)]),
    **{name: lambda c, made=made: (made(c), c.stacked) for name, made in COMPOSED.items()},
}  # fmt: skip


def inner_jit(case):
    """Transforms of a compiled function."""
    f = tg.jit(case.ours)
    near(tg.grad(case.loss(f), argnums=case.every)(*case.inputs), case.gradient)
    near(
        tg.jvp(f, case.inputs, case.directions)[1],
        tg.jvp(case.ours, case.inputs, case.directions)[1],
    )
    twice = [np.stack([x, x]) for x in case.inputs]
    near(tg.vmap(f)(*twice), [np.stack([y, y]) for y in case.wanted])


def checkpointed(case):
    """Recomputation gives the same."""
    f = tg.checkpoint(case.loss(case.ours))
    near(tg.grad(f, argnums=case.every)(*case.inputs), case.gradient)
    near(tg.jvp(tg.grad(f, argnums=case.every), case.inputs, case.directions)[1], case.curved)


def face_of_torch(case, library=tg):
    """The same program in PyTorch's words, values and gradient."""
    if not case.program.in_torch:
        raise Skipped("not in PyTorch's words")
    if case.program.numbers:  # which are views in PyTorch
        raise Skipped("numbers")
    f = case.program.function(torch=True, T=library)
    leaves = [library.tensor(x, requires_grad=True) for x in case.inputs]
    found = f(*leaves)
    near(found, case.wanted)
    total = sum((y * library.tensor(w)).sum() for y, w in zip(found, case.weights))
    if total.requires_grad:
        g = _filled(library.autograd.grad(total, leaves, allow_unused=True), leaves)
        if library is not tg and any(np.isnan(as_array(a)).any() for a in g):
            raise Skipped("zero times infinity, which is zero here")
        near(g, case.gradient)


def torch(case):
    """PyTorch itself."""
    import torch as library

    before = library.get_default_dtype()
    library.set_default_dtype(library.float64)
    try:
        face_of_torch(case, library)
    except RuntimeError as refused:
        raise Skipped("refused by PyTorch: " + str(refused)[:60]) from None
    finally:
        library.set_default_dtype(before)


def jax(case):
    """JAX: values, gradient, a Hessian-vector product."""
    import jax as library
    import jax.numpy as jnp

    from tests.fuzz.control import of_jax

    put = lambda old, at, new: old.at[at].set(new)
    cells = programs.Cells(jnp, of_jax(), put)
    f = lambda *xs: cells.run(case.program, *xs)
    slope = library.grad(case.loss(f, jnp), argnums=case.every)
    directions = tuple(map(jnp.asarray, case.directions))
    all_of_it = library.jit(lambda *xs: (f(*xs), *library.jvp(slope, xs, directions)))
    try:
        y, g, h = all_of_it(*map(jnp.asarray, case.inputs))
    except (TypeError, AttributeError, NotImplementedError, library.errors.JAXTypeError) as refused:
        raise Skipped(f"refused by JAX: {type(refused).__name__} {refused}"[:80]) from None
    near(y, case.wanted, 1e-8)
    if case.nearest == 0 or not all(np.all(np.isfinite(a)) for a in (*g, *h)):
        raise Skipped("a tie, or no derivative in JAX")
    near(case.gradient, g, 1e-8)
    near(case.curved, h, 1e-7)


EAGER = [value, immutable, difference, face_of_numpy, face_of_torch]
EXTRA = [second_order, matrices, mapped, single, checkpointed, composed]
JIT = [
    *((f"jit of {name}", _compiled(make)) for name, make in COMPILED.items()),
    ("jit inside", inner_jit),
]


JAX_EVERY = 25  # it takes as long as all the rest of so many


def checks_of(seed, peers=(), often=4):
    """The checks that a program gets: some always, others by turns; peers as they are asked for."""
    chosen = [(check.__name__, check) for check in EAGER]
    chosen += [(EXTRA[k].__name__, EXTRA[k]) for k in {seed % 6, (seed // 6 + 2) % 6}]
    if seed % often == 0:
        chosen.append(JIT[seed // often % len(JIT)])
    chosen += [("torch", torch)] if "torch" in peers else []
    return chosen + ([("jax", jax)] if "jax" in peers and seed % JAX_EVERY == 0 else [])


def run(program, chosen, tally=None):
    """The first disagreement of a program: the check's name and the error, or None."""
    tally = Counter() if tally is None else tally
    tally["programs", "run"] += 1
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        case = Case(program)
        for name, check in chosen:
            try:
                check(case)
                tally[name, "right"] += 1
            except Skipped as why:
                tally[name, f"skipped: {why}"] += 1
            except Exception as problem:
                if not isinstance(problem, AssertionError) and any(
                    s in str(problem) for s in REFUSALS
                ):
                    tally[name, "refused aloud"] += 1
                    continue
                tally[name, "DISAGREES"] += 1
                return name, problem
    return None

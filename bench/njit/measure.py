"""Time derivatives of functions that Numba compiles, beside the functions and other gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import median
from time import process_time
from typing import Any

import numba
import numpy as np

from bench.check import DIFFERENCE_TOLERANCE, GRADIENT_TOLERANCE, VALUE_TOLERANCE, Disagreement
from bench.gradbench.evaluation import Call, as_numpy, largest_difference
from bench.njit.problems import Problem, problems
from bench.patience import environment
from bench.problem import SEED
from bench.report import Row
from bench.sides.side import Side
from bench.timing import QUICK, Effort, Figure, interleave

PRIMAL, GRADIENT, PRODUCT, BY_HAND = "primal", "gradient", "Hessian-vector", "by hand"
ARRAYS = {"tapegrad": "tg.jit of arrays", "jax": "jax of arrays"}
# As multiples of the primal: the gradient in the median and at most, a Hessian-vector product; as
# multiples of other gradients of the same: that by hand, that of arrays by `tg.jit`.
OFTEN, MOST, MOST_PRODUCT, MOST_BY_HAND, MOST_OF_ARRAYS = 2.0, 4.0, 4.0, 1.2, 1.5
COMPILE_OFTEN, COMPILE_MOST = 150.0, 500.0  # ms
COMPILED = 3  # times
STEP = 1e-6
Samples = dict[str, list[float]]


def functions(libraries: list[Side], threads: int, quick: bool) -> Iterator[Row]:
    """Time every function and its derivatives; then what the times are multiples of."""
    ad = next(side.ad for side in libraries if side.name == "tapegrad")
    effort = QUICK if quick else Effort(rounds=(5, 31), budget=2.0)
    samples: dict[str, Samples] = {}
    compiling: dict[str, list[float]] = {}
    for problem in problems(quick):
        calls = checked(problem, libraries, ad)
        samples[problem.name] = taken = interleave(calls, effort)
        figures = {name: Figure.of(x, 1e6) for name, x in taken.items()}
        yield Row("Functions that Numba compiles", problem.name, threads, "µs", figures)
        compiling[problem.name] = compiled(problem, ad, 1 if quick else COMPILED)
    yield from multiples(samples, threads)
    yield from others(samples, threads)
    yield from until(compiling, threads)


def call(libraries: list[Side], threads: int, quick: bool) -> Iterator[Row]:
    """Time calls of a function that does almost nothing, and of its gradient."""
    ad = next(side.ad for side in libraries if side.name == "tapegrad")

    @numba.njit
    def f(x):
        return x[0] * x[1]

    gradient = ad.grad(f)
    inner = gradient.njit
    count = 1000

    @numba.njit
    def primals(x):
        s = 0.0
        for _ in range(count):
            s += f(x)
            x[0] += 1e-9
        return s

    @numba.njit
    def gradients(x):
        s = 0.0
        for _ in range(count):
            s += inner(x)[0]
            x[0] += 1e-9
        return s

    x = np.array([3.0, 4.0])
    if not np.array_equal(gradient(x), x[::-1]):
        raise Disagreement("the gradient of a product of two numbers")
    effort = QUICK if quick else Effort()
    calls: dict[str, dict[str, Call]] = {
        "from Python": {PRIMAL: lambda: f(x), GRADIENT: lambda: gradient(x)},
        "from Numba": {PRIMAL: lambda: primals(x), GRADIENT: lambda: gradients(x)},
    }
    for name, pair in calls.items():
        scale = 1e6 if name == "from Python" else 1e6 / count
        figures = {which: Figure.of(t, scale) for which, t in interleave(pair, effort).items()}
        yield Row("call of a function of 2 doubles", name, threads, "µs", figures)


# -- what is called ------------------------------------------------------------------------------


def checked(problem: Problem, libraries: list[Side], ad: Any) -> dict[str, Call]:
    """Return what is timed, after comparing it: by other gradients, and by differences."""
    f, args, count = problem.function, problem.arguments, problem.count
    gradient = ad.grad(f, tuple(range(count)))
    product = product_of(problem, ad)
    calls: dict[str, Call] = {
        PRIMAL: lambda: f(*args), GRADIENT: lambda: gradient(*args), PRODUCT: product
    }  # fmt: skip
    found = as_numpy(gradient(*args))
    check_slopes(problem, gradient, found, as_numpy(product()))
    by_hand, given = problem.by_hand, problem.given
    if by_hand is not None:
        calls[BY_HAND] = lambda: by_hand(*given)
        hold(problem, BY_HAND, as_numpy(by_hand(*given))[-count:], found)
    for side in libraries if problem.arrays is not None else []:
        name = ARRAYS[side.name]
        calls[name], value = over_arrays(problem, side)
        scale = max(1.0, abs(value))
        if not abs(value - f(*args)) <= VALUE_TOLERANCE * scale:
            raise Disagreement(f"{problem.name}: the value of {name} is {value}, not {f(*args)}")
        hold(problem, name, as_numpy(calls[name]()), found)
    return calls


def hold(problem: Problem, name: str, found: Any, expected: Any) -> None:
    """Compare gradients."""
    if (off := largest_difference(found, expected)) > GRADIENT_TOLERANCE:
        raise Disagreement(f"{problem.name}: the gradient {name} is off by {off}")


def over_arrays(problem: Problem, side: Side) -> tuple[Call, float]:
    """The call of the gradient of the function over arrays, and that function's value."""
    arrays, count = problem.arrays, problem.count
    assert arrays is not None
    given = [x for k, x in enumerate(problem.given) if k < count or isinstance(x, np.ndarray)]
    own = [side.array(x) for x in given]
    f = lambda *arguments: arrays(side.xp, *arguments)
    gradient = side.compile(side.ad.grad(f, argnums=tuple(range(count))))
    return lambda: gradient(*own), float(as_numpy(side.compile(f)(*own)))


def product_of(problem: Problem, ad: Any) -> Call:
    """The call of the Hessian's product with `directions`; all arguments as one tuple."""
    count = problem.count
    names = [f"a{k}" for k in range(count, len(problem.arguments))]
    inputs = [f"p[{k}]" for k in range(count)]
    space = {"f": problem.function}
    exec(f"def packed({', '.join(['p', *names])}): return f({', '.join(inputs + names)})", space)
    packed: Any = space["packed"]
    packed.__defaults__ = problem.arguments[count:]
    product = ad.hvp(numba.njit(packed))
    point, along = problem.arguments[:count], tuple(directions(problem))
    return lambda: product(point, along)


def directions(problem: Problem) -> list[Any]:
    """A direction for each argument that is differentiated in."""
    rng = np.random.default_rng(SEED + 1)
    given = problem.arguments[: problem.count]
    return [rng.normal(size=np.shape(x)) if np.ndim(x) else float(rng.normal()) for x in given]


def check_slopes(problem: Problem, gradient: Any, found: Any, product: Any) -> None:
    """Compare a gradient with differences of values, a product with differences of gradients."""
    along = directions(problem)
    terms = max(np.size(d) for d in along)  # of a sum, whose rounding the step brings out
    step = STEP / np.sqrt(terms)

    def moved(t: float) -> list[Any]:
        inputs = [x + t * d for x, d in zip(problem.arguments, along)]
        return [*inputs, *problem.arguments[problem.count :]]

    def off(f: Callable[..., Any], slopes: Any) -> None:
        high, low = as_numpy(f(*moved(step))), as_numpy(f(*moved(-step)))
        parts = zip(*(x if isinstance(x, tuple) else (x,) for x in (high, low, slopes)))
        for up, down, slope in parts:
            size = np.max(np.abs(slope), initial=1e-3)
            most = np.max(np.abs(up), initial=0.0)
            rounding = np.finfo(float).eps * most * (100 + terms) / step
            error = np.max(np.abs((up - down) / (2 * step) - slope), initial=0.0)
            if not error <= DIFFERENCE_TOLERANCE * size + rounding:
                raise Disagreement(f"{problem.name}: off by {error} from differences of {f}")

    off(problem.function, np.asarray(sum(np.sum(g * d) for g, d in zip(found, along))))
    off(gradient, product)


def compiled(problem: Problem, ad: Any, times: int) -> list[float]:
    """The processor's seconds until a gradient is there.

    Numba has compiled the function itself before.
    """
    seconds = []
    for _ in range(times):
        f = numba.njit(problem.function.py_func)
        f(*problem.arguments)
        gradient = ad.grad(f, tuple(range(problem.count)))
        with environment(TAPEGRAD_CACHE="0", TAPEGRAD_TIERED="0"):
            start = process_time()
            gradient(*problem.arguments)
            first = process_time() - start
        start = process_time()
        gradient(*problem.arguments)
        seconds.append(first - (process_time() - start))
    return seconds


# -- rows ----------------------------------------------------------------------------------------


def divided(samples: Samples, above: str, below: str) -> Figure:
    """One time by another, round by round."""
    return Figure.of([x / y for x, y in zip(samples[above], samples[below])])


def middle(name: str, rows: list[Row], which: str, reach: str, most: float) -> Row:
    """The median of a column."""
    figures = [row.figures[which] for row in rows if which in row.figures]
    found = Figure(median(x.median for x in figures), median(x.minimum for x in figures))
    row, met = rows[0], found.median <= most
    return Row(row.group, name, row.threads, row.unit, {which: found}, {}, reach, met)


def multiples(samples: dict[str, Samples], threads: int) -> Iterator[Row]:
    """Derivatives as multiples of the primal."""
    rows = []
    for name, taken in samples.items():
        figures = {which: divided(taken, which, PRIMAL) for which in (GRADIENT, PRODUCT)}
        met, reach = figures[GRADIENT].median <= MOST, f"gradient ≤ {MOST:g}"
        if name.startswith("stencil"):  # whose primal is nothing but vectors
            met = divided(taken, GRADIENT, BY_HAND).median <= 1.0
            reach = "gradient ≤ that by hand"
        group = "derivative by primal"
        rows.append(Row(group, name, threads, "×", figures, {}, reach, met))
    yield from rows
    yield middle("median of all gradients", rows, GRADIENT, f"≤ {OFTEN:g}", OFTEN)
    yield middle("median of all products", rows, PRODUCT, f"≤ {MOST_PRODUCT:g}", MOST_PRODUCT)


def others(samples: dict[str, Samples], threads: int) -> Iterator[Row]:
    """The gradient as a multiple of other gradients of the same."""
    for name, taken in samples.items():
        figures = {
            which: divided(taken, GRADIENT, which)
            for which in (BY_HAND, *ARRAYS.values())
            if which in taken
        }
        if not figures:
            continue
        limits = {BY_HAND: MOST_BY_HAND, ARRAYS["tapegrad"]: MOST_OF_ARRAYS}
        known = {which: most for which, most in limits.items() if which in figures}
        met = all(figures[which].median <= most for which, most in known.items())
        reach = ", ".join(f"{which} ≤ {most:g}" for which, most in known.items())
        yield Row("gradient by that", name, threads, "×", figures, {}, reach, met)


def until(compiling: dict[str, list[float]], threads: int) -> Iterator[Row]:
    """The time that compiling a gradient takes."""
    rows = []
    for name, seconds in compiling.items():
        found = Figure.of(seconds, 1e3)
        group, reach = "until a gradient is there", f"≤ {COMPILE_MOST:g} ms"
        met = found.median <= COMPILE_MOST
        rows.append(Row(group, name, threads, "ms", {GRADIENT: found}, {}, reach, met))
    yield from rows
    yield middle("median of all", rows, GRADIENT, f"≤ {COMPILE_OFTEN:g} ms", COMPILE_OFTEN)

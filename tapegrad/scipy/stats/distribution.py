"""What the functions of a distribution have in common: location and scale, support, parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy import greater, greater_equal, less, less_equal

from tapegrad.numpy_face.common import operand, tensor
from tapegrad.scipy.either import among, theirs
from tapegrad.scipy.stats.sampling import probabilities
from tapegrad.tensor import Tensor
from tapegrad.transforms.custom import stop_gradient

Function = Callable[..., Any]


class Family:
    """A distribution of `scipy.stats`, some functions of which are here for Tensors.

    What is not here (`moment`, `fit`, ...), and what is called with arrays alone, is SciPy's.

    >>> import tapegrad as tg
    >>> tg.scipy.stats.norm.rvs(size=3, random_state=0).shape
    (3,)
    """

    def __init__(self, name: str, known: Sequence[str], summaries: Sequence[str] = ()) -> None:
        self.name, self.known, self.summaries = name, list(known), list(summaries)
        functions = ", ".join(f"`{function}`" for function in (*known, *summaries))
        self.__doc__ = f"`scipy.stats.{name}` for Tensors: {functions}; the rest is SciPy's."

    def __repr__(self) -> str:
        return f"tapegrad.scipy.stats.{self.name}"

    def __call__(self, *args: Any, **kwargs: Any) -> Frozen:
        """The distribution with its parameters fixed, whose functions take the value alone."""
        return Frozen(self, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in self.known or name in self.summaries:
            return partial(self._either, name)
        return getattr(theirs("scipy.stats", self.name), name)

    def _either(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """A function for Tensors, or SciPy's if there are none."""
        if among((*args, *kwargs.values())):
            return self._of_tensors(name, *args, **kwargs)
        return getattr(theirs("scipy.stats", self.name), name)(*args, **kwargs)

    def _of_tensors(self, name: str, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


def _positive(*shapes: Any) -> list[Any]:
    return [shape > 0 for shape in shapes]


class Distribution(Family):
    """A distribution of one number, with a location and perhaps a scale.

    >>> import tapegrad as tg
    >>> scale = tg.tensor(2.0, requires_grad=True)
    >>> tg.scipy.stats.norm(0.0, scale).logpdf(1.0).backward(); scale.grad
    tensor(-0.3750)
    """

    places: tuple[str, ...] = ("loc",)

    def __init__(
        self,
        name: str,
        shapes: str = "",
        *,
        support: tuple[float, float] | Function = (-np.inf, np.inf),
        inside: float | Function = 0.0,
        ends_within: bool = True,
        valid: Function = _positive,
        **functions: Function,
    ) -> None:
        known = [f for f in COMPUTED if _source(f, functions)]
        super().__init__(
            name, known, [f for f, (source, _) in SUMMARIES.items() if source in functions]
        )
        self.shapes, self.valid, self.functions = tuple(shapes.split()), valid, functions
        self.support = support if callable(support) else lambda *shapes: support
        self.inside = inside if callable(inside) else lambda *shapes: inside
        self.beyond: tuple[Function, Function] = (
            (less, greater) if ends_within else (less_equal, greater_equal)
        )

    def _of_tensors(self, name: str, *args: Any, **kwargs: Any) -> Any:
        if name in SUMMARIES:
            return self._summary(name, *args, **kwargs)
        x, *args = args  # type: ignore[assignment]
        shapes, loc, scale = self._parameters(name, args, kwargs)
        found = COMPUTED[name](self, _source(name, self.functions), operand(x), shapes, loc, scale)
        return where_all([scale > 0, *self.valid(*shapes)], found)

    def _summary(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """A number, or two, that say what the distribution is like."""
        source, then = SUMMARIES[name]
        if source == "ppf":
            return then(self.ppf, *args, **kwargs)
        shapes, loc, scale = self._parameters(name, args, kwargs)
        found = then(self.functions[source](*shapes), loc, scale)
        return tensor(where_all([scale > 0, *self.valid(*shapes)], found))

    def _parameters(
        self, name: str, args: Sequence[Any], named: dict[str, Any]
    ) -> tuple[list[Any], Any, Any]:
        """The parameters of shape, the location and the scale among the arguments of a call."""
        order = (*self.shapes, *self.places)
        call = f"`scipy.stats.{self.name}.{name}`"
        if len(args) > len(order):
            raise TypeError(f"{call} takes {', '.join(order)} after the value, got {len(args)}")
        values = {"loc": 0.0, "scale": 1.0, **dict(zip(order, map(operand, args), strict=False))}
        for key, value in named.items():
            if key not in order or key in order[: len(args)]:
                known = "twice" if key in order else f"which it does not take ({', '.join(order)})"
                raise TypeError(f"{call} was given {key}, {known}")
            values[key] = operand(value)
        missing = [shape for shape in self.shapes if shape not in values]
        if missing:
            raise TypeError(f"{call} needs {', '.join(missing)}")
        return [values[shape] for shape in self.shapes], values["loc"], values["scale"]

    def within(self, f: Function, z: Any, shapes: Sequence[Any], below: Any, above: Any) -> Any:
        """A function of the support, continued by a constant at each end.

        Beyond the ends it is computed of a number within, so that no derivative there is NaN.
        """
        (low, high), (under, over) = self.support(*shapes), self.beyond
        ends = [
            (beyond(z, end), constant)
            for beyond, end, constant in ((under, low, below), (over, high, above))
            if among(end) or not np.all(np.isinf(end))
        ]
        if not ends:
            return f(z, *shapes)
        outside = ends[0][0] if len(ends) == 1 else np.logical_or(ends[0][0], ends[1][0])
        value = f(np.where(outside, self.inside(*shapes), z), *shapes)
        for where, constant in ends:
            value = np.where(where, constant, value)
        return value


class Continuous(Distribution):
    """A distribution with a density, which its functions describe at location 0 and scale 1.

    Samples of Tensors are quantiles of uniform numbers: they are differentiable, too.

    >>> import tapegrad as tg
    >>> tg.scipy.stats.gamma.known
    ['logpdf', 'pdf', 'cdf', 'logcdf', 'sf', 'logsf', 'ppf', 'isf']
    >>> tg.scipy.stats.gamma.summaries
    ['mean', 'var', 'std', 'entropy', 'median', 'interval']
    >>> scale = tg.tensor(2.0, requires_grad=True)
    >>> x = tg.scipy.stats.gamma.rvs(1.5, scale=scale, random_state=0)
    >>> x.backward(); bool(scale.grad == x / 2)
    True
    """

    places = ("loc", "scale")

    def rvs(self, *args: Any, size: Any = None, random_state: Any = None, **kwargs: Any) -> Any:
        """Samples; of Tensors they are differentiable."""
        if "ppf" not in self.functions or not among((*args, *kwargs.values())):
            rvs = theirs("scipy.stats", self.name).rvs
            return rvs(*args, size=size, random_state=random_state, **kwargs)
        if len(args) > len(self.shapes) + len(self.places):
            *args, size = args  # type: ignore[assignment]
        shapes, loc, scale = self._parameters("rvs", args, kwargs)
        q = probabilities((*shapes, loc, scale), size, random_state, self.name)
        found = loc + scale * self.functions["ppf"](q, *shapes)
        return where_all([scale > 0, *self.valid(*shapes)], found)


class Discrete(Distribution):
    """A distribution of whole numbers.

    >>> import tapegrad as tg
    >>> tg.scipy.stats.poisson.logpmf(2, tg.tensor(1.0))
    tensor(-1.6931)
    """


class Frozen:
    """A distribution whose parameters are given.

    >>> import tapegrad as tg
    >>> tg.scipy.stats.expon(scale=tg.tensor(2.0)).cdf(0.0)
    tensor(0.)
    """

    def __init__(self, of: Family, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        self.of, self.args, self.kwargs = of, args, kwargs

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        function = getattr(self.of, name)
        if name in COMPUTED or name == "interval":
            return lambda x: function(x, *self.args, **self.kwargs)
        if name == "rvs":
            return partial(self._sample, function)
        return lambda *args, **kwargs: function(*self.args, *args, **self.kwargs, **kwargs)

    def _sample(self, rvs: Function, size: Any = None, random_state: Any = None) -> Any:
        given = {"random_state": random_state} | ({} if size is None else {"size": size})
        return rvs(*self.args, **self.kwargs, **given)


def where_all(conditions: Sequence[Any], value: Any) -> Any:
    """A value, and NaN where a condition does not hold."""
    for condition in conditions:
        if isinstance(condition, Tensor) or not np.all(condition):
            value = np.where(condition, value, np.nan)
    return value


# By the name of a function: which ones of a distribution's it can be computed from, best first.
_SOURCES: dict[str, tuple[tuple[str, Function | None], ...]] = {
    "logpdf": (("logpdf", None),),
    "pdf": (("logpdf", np.exp),),
    "logpmf": (("logpmf", None),),
    "pmf": (("logpmf", np.exp),),
    "cdf": (("cdf", None),),
    "logcdf": (("logcdf", None), ("cdf", np.log)),
    "sf": (("sf", None), ("cdf", lambda p: 1 - p)),
    "logsf": (("logsf", None), ("sf", np.log), ("cdf", lambda p: np.log1p(-p))),
    "ppf": (("ppf", None),),
    "isf": (("isf", None),),
}


def _chained(f: Function, then: Function) -> Function:
    return lambda *args: then(f(*args))


def _log_of(share: Function, rest: Function) -> Function:
    """The logarithm of a share of all, by the rest where that is the smaller one."""

    def f(*args: Any) -> Any:
        p, q = share(*args), rest(*args)
        most = q < 0.5
        return np.where(most, np.log1p(-np.where(most, q, 0.0)), np.log(np.where(most, 1.0, p)))

    return f


def _source(name: str, functions: dict[str, Function]) -> Function | None:
    """How a function is computed from those that a distribution has."""
    if name in ("logcdf", "logsf") and name not in functions and {"cdf", "sf"} <= {*functions}:
        tails = functions["cdf"], functions["sf"]
        return _log_of(*(tails if name == "logcdf" else tails[::-1]))
    for source, then in _SOURCES[name]:
        if source in functions:
            f = functions[source]
            return f if then is None else _chained(f, then)
    if name == "isf" and "ppf" in functions:
        upper = functions["ppf"]
        return lambda q, *shapes: upper(1 - q, *shapes)
    return None


def _log_density(dist: Distribution, f: Function, x: Any, shapes: Any, loc: Any, scale: Any) -> Any:
    return dist.within(f, (x - loc) / scale, shapes, -np.inf, -np.inf) - np.log(scale)


def _density(dist: Distribution, f: Function, x: Any, shapes: Any, loc: Any, scale: Any) -> Any:
    return dist.within(f, (x - loc) / scale, shapes, 0.0, 0.0) / scale


def _mass(outside: float) -> Function:
    def of(dist: Distribution, f: Function, x: Any, shapes: Any, loc: Any, scale: Any) -> Any:
        k = stop_gradient(x - loc)
        return np.where(k > np.floor(k), outside, dist.within(f, k, shapes, outside, outside))

    return of


def _cumulative(below: float, above: float) -> Function:
    def of(dist: Distribution, f: Function, x: Any, shapes: Any, loc: Any, scale: Any) -> Any:
        z = (x - loc) / scale if "scale" in dist.places else np.floor(stop_gradient(x - loc))
        return dist.within(f, z, shapes, below, above)

    return of


def _quantile(upper: bool) -> Function:
    def of(dist: Distribution, f: Function, q: Any, shapes: Any, loc: Any, scale: Any) -> Any:
        low, high = dist.support(*shapes)
        first, last = (high, low) if upper else (low, high)
        nothing, all_ = q == 0, q == 1
        z = f(np.where(np.logical_or(nothing, all_), 0.5, q), *shapes)
        z = np.where(nothing, first, np.where(all_, last, z))
        return where_all([q >= 0, q <= 1], loc + scale * z)

    return of


# By its name: how a function takes location, scale and the ends of the support.
COMPUTED: dict[str, Function] = {
    "logpdf": _log_density,
    "pdf": _density,
    "logpmf": _mass(-np.inf),
    "pmf": _mass(0.0),
    "cdf": _cumulative(0.0, 1.0),
    "logcdf": _cumulative(-np.inf, 0.0),
    "sf": _cumulative(1.0, 0.0),
    "logsf": _cumulative(0.0, -np.inf),
    "ppf": _quantile(upper=False),
    "isf": _quantile(upper=True),
}


def _interval(ppf: Function, confidence: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
    rest = (1 - confidence) / 2
    return ppf(rest, *args, **kwargs), ppf(1 - rest, *args, **kwargs)


# By its name: from which function it is computed, and how.
SUMMARIES: dict[str, tuple[str, Function]] = {
    "mean": ("mean", lambda mean, loc, scale: loc + scale * mean),
    "var": ("variance", lambda variance, loc, scale: scale * scale * variance),
    "std": ("variance", lambda variance, loc, scale: scale * np.sqrt(variance)),
    "entropy": ("entropy", lambda entropy, loc, scale: entropy + np.log(scale)),
    "median": ("ppf", lambda ppf, *args, **kwargs: ppf(0.5, *args, **kwargs)),
    "interval": ("ppf", _interval),
}

"""Differential equations and integrals of `scipy.integrate`, differentiable in all they read.

>>> import numpy as np, tapegrad as tg
>>> def end(rate):
...     return tg.scipy.integrate.solve_ivp(lambda t, y: -rate * y, (0.0, 1.0), [1.0]).y[0, -1]
>>> round(tg.grad(end)(0.5), 4)
-0.6065
"""

import warnings as _warnings
from collections.abc import Callable as _Callable
from typing import Any as _Any

import numpy as _np

from tapegrad.functions.calculus import cumulative_trapezoid as _cumulative_trapezoid
from tapegrad.functions.contractions import tensordot as _tensordot
from tapegrad.functions.joining import cat as _cat
from tapegrad.functions.joining import stack as _stack
from tapegrad.numpy_face.common import floating as _floating
from tapegrad.numpy_face.common import tensor as _tensor
from tapegrad.scipy.either import among as _among
from tapegrad.scipy.either import for_tensors as _for_tensors
from tapegrad.scipy.either import stack_lists as _stack_lists
from tapegrad.scipy.either import theirs as _theirs
from tapegrad.scipy.initial_values import Problem as _Problem
from tapegrad.scipy.initial_values import is_recorded as _is_recorded
from tapegrad.scipy.quadrature import integral as _integral
from tapegrad.scipy.quadrature import on_the_unit_interval as _on_the_unit_interval
from tapegrad.scipy.runge_kutta import METHODS as _METHODS
from tapegrad.scipy.solution_events import DenseOutput as _DenseOutput
from tapegrad.scipy.solution_events import Event as _Event
from tapegrad.scipy.solution_events import stacked as _stacked
from tapegrad.scipy.solution_events import take_events as _take_events
from tapegrad.transforms.custom import stop_gradient as _stop_gradient
from tapegrad.transforms.looping import decided as _decided

_SPEED = ("jac", "jac_sparsity", "lband", "uband", "Dfun", "col_deriv", "ml", "mu")
_MESSAGES = {
    -1: "Required step size is less than spacing between numbers.",
    0: "The solver successfully reached the end of the integration interval.",
    1: "A termination event occurred.",
}

__all__ = [
    "cumulative_simpson", "cumulative_trapezoid", "dblquad", "nquad", "odeint", "quad", "romb",
    "simpson", "solve_ivp", "tplquad", "trapezoid",
]  # fmt: skip


def solve_ivp(
    fun: _Callable[..., _Any], t_span: _Any, y0: _Any, method: str = "RK45", t_eval: _Any = None,
    dense_output: bool = False, events: _Any = None, vectorized: bool = False, args: _Any = None,
    *, rtol: float = 1e-3, atol: _Any = 1e-6, first_step: _Any = None, max_step: _Any = _np.inf,
    **options: _Any,
) -> _Any:  # fmt: skip
    """The solution of ``dy/dt = fun(t, y, *args)`` from ``y0`` at ``t_span[0]`` to ``t_span[1]``.

    It is differentiable in the times, `y0`, `args`, and in what `fun` reads besides.  Where Tensors
    take part, the steps of RK45, RK23 and DOP853 are SciPy's, and what stands for Radau, BDF and
    LSODA is Rodas4, another method for stiff problems, which needs no `jac`.  Times of events have
    derivatives, too.  `jit` and `vmap` need `t_eval`, and have no events and no `dense_output`.
    Where steps would become too small, the solution is NaN from there on.

    >>> import numpy as np, tapegrad as tg
    >>> def fall(drag):
    ...     slopes = lambda t, y: [y[1], -9.81 - drag * y[1] * abs(y[1])]
    ...     return tg.scipy.integrate.solve_ivp(slopes, (0, 2), [20.0, 0.0], t_eval=[2.0]).y[0, 0]
    >>> compiled = tg.jit(tg.value_and_grad(fall))
    >>> [round(x, 2) for x in compiled(0.1)]
    [6.93, 35.28]
    """
    given = tuple(args) if args is not None else ()
    whole = (lambda t, y: fun(t, y, *given)) if given else fun
    if not _is_recorded(whole, t_span[0], y0, t_span[1], t_eval, given, first_step):
        return _theirs("scipy.integrate", "solve_ivp")(
            fun, t_span, y0, method, t_eval, dense_output, events, vectorized, args, rtol=rtol,
            atol=atol, first_step=first_step, max_step=max_step, **options,
        )  # fmt: skip
    if method not in _METHODS:
        raise NotImplementedError(
            f"`solve_ivp`: for Tensors the methods are {', '.join(_METHODS)}, got {method!r}"
        )
    _refuse("solve_ivp", **options)
    problem = _Problem("solve_ivp", whole, t_span, y0, _METHODS[method](), rtol, atol, max_step)
    times = None if t_eval is None else _tensor(t_eval).double()
    if times is not None:
        problem.require_order(times)
    if times is None or events is not None or dense_output:
        result, last = _followed(problem, first_step, times, dense_output, events, given)
    else:
        last, rows = problem.values(times, first_step)
        result = {"t": times, "y": rows.movedim(0, -1)}
    return _theirs("scipy.optimize", "OptimizeResult")(
        dict.fromkeys(("sol", "t_events", "y_events")) | result | _outcome(last, problem)
    )


def _followed(
    problem: _Problem, first_step: _Any, times: _Any, dense_output: bool, events: _Any,
    args: tuple[_Any, ...],
) -> tuple[dict[str, _Any], _Any]:  # fmt: skip
    """What all steps of a solution give, to be seen one by one, and the last state."""
    functions = (events,) if callable(events) else tuple(events or ())
    watched = [_Event(function, problem, args) for function in functions]
    last, states = problem.states(first_step, lambda state: _take_events(watched, problem, state))
    result: dict[str, _Any] = {}
    if times is None:
        result |= {"t": _stack([s.time for s in states]), "y": _stack([s.y for s in states], -1)}
    else:
        times = times[: int(((times - last.time) * problem.direction <= 0).sum())]
        result |= {"t": times, "y": _DenseOutput(problem, states)(times)}
    if dense_output:
        result["sol"] = _DenseOutput(problem, states)
    if events is not None:
        result["t_events"] = [_stacked(event.times) for event in watched]
        result["y_events"] = [_stacked(event.states) for event in watched]
    return result, last


def _outcome(last: _Any, problem: _Problem) -> dict[str, _Any]:
    """How a solution ended, by its last state, if that is known."""
    if not _decided(last.rejected):
        return {}
    status = -1 if last.rejected else int(bool(problem.goes_on(last, problem.end)))
    return {"status": status, "message": _MESSAGES[status], "success": status >= 0}


def _refuse(function: str, **options: _Any) -> None:
    """Refuse options that are not there for Tensors, but for those that only save SciPy work."""
    for name, value in options.items():
        if name not in _SPEED and not (value is None or (_np.ndim(value) == 0 and not value)):
            raise NotImplementedError(f"`{function}`: `{name}=` is not supported for Tensors")


def odeint(
    func: _Callable[..., _Any], y0: _Any, t: _Any, args: _Any = (), *, tfirst: bool = False,
    rtol: float | None = None, atol: _Any = None, h0: _Any = 0.0, hmax: _Any = 0.0,
    **options: _Any,
) -> _Any:  # fmt: skip
    """The solution of ``dy/dt = func(y, t, *args)`` at the times `t`, of which the first is y0's.

    It is differentiable in `y0`, `t`, `args`, and in what `func` reads besides.  Where Tensors take
    part it is computed by the method RK45 of `solve_ivp`: problems that are not stiff.

    >>> import numpy as np, tapegrad as tg
    >>> decay = lambda y, t, rate: -rate * y
    >>> end = lambda rate: tg.scipy.integrate.odeint(decay, np.ones(1), [0.0, 1.0], (rate,))[-1, 0]
    >>> round(tg.grad(end)(0.5), 6)
    -0.606531
    """
    given = args if isinstance(args, tuple) else (args,)
    if tfirst:
        whole = lambda time, y: func(time, y, *given)
    else:
        whole = lambda time, y: func(y, time, *given)
    start = _stack_lists(y0)
    start = start if _np.ndim(start) else _np.atleast_1d(start)
    if not _is_recorded(whole, t[0], start, t, given):
        return _theirs("scipy.integrate", "odeint")(
            func, y0, t, args, tfirst=tfirst, rtol=rtol, atol=atol, h0=h0, hmax=hmax, **options
        )
    _refuse("odeint", **options)
    times = _tensor(t).double()
    usual = 1.49012e-8  # SciPy's
    problem = _Problem(
        "odeint", whole, (times[0], times[-1]), start, _METHODS["RK45"](),
        usual if rtol is None else rtol, usual if atol is None else atol, hmax or _np.inf,
    )  # fmt: skip
    return problem.values(times, h0 or None)[1]


def quad(
    func: _Callable[..., _Any], a: _Any, b: _Any, args: _Any = (), full_output: _Any = 0,
    epsabs: float = 1.49e-8, epsrel: float = 1.49e-8, limit: int = 50, **options: _Any,
) -> tuple[_Any, _Any]:  # fmt: skip
    """The integral of ``func(x, *args)`` from `a` to `b`, which may be infinite, and its error.

    It is differentiable in `a`, `b`, `args`, and in what `func` reads besides.  Where Tensors take
    part, the function is mapped over the points of Gauss and Kronrod's rule on up to `limit` pieces
    (`tg.vmap`), and nothing is extrapolated: singular integrands take more pieces than in SciPy.

    >>> import numpy as np, tapegrad as tg
    >>> area = lambda k: tg.scipy.integrate.quad(lambda x: np.exp(-k * x**2), -np.inf, np.inf)[0]
    >>> round(tg.grad(area)(1.0), 6)  # minus half of the root of pi
    -0.886227
    """
    given = args if isinstance(args, tuple) else (args,)
    integrand = _on_the_unit_interval(lambda x: func(x, *given), a, b)
    if not _among((a, b, given, integrand(0.5))):
        return _theirs("scipy.integrate", "quad")(  # type: ignore[no-any-return]
            func, a, b, args, full_output, epsabs, epsrel, limit, **options
        )
    _refuse("quad", full_output=full_output, **options)
    found, error = _integral(integrand, epsabs, epsrel, limit)
    allowed = epsabs + epsrel * abs(_stop_gradient(found))
    if _decided(error > allowed) and error > allowed:
        text = f"`quad`: the error of {limit} pieces may be {error.item():.3g}, which is too large"
        _warnings.warn(text, _theirs("scipy.integrate", "IntegrationWarning"), 2)
    return found, error


def nquad(
    func: _Callable[..., _Any], ranges: _Any, args: _Any = None, opts: _Any = None,
    full_output: bool = False,
) -> _Any:  # fmt: skip
    """The integral over several variables, the first of which is the innermost, and its error.

    A range is a pair, or a function of the variables after its own.  It is differentiable in what
    `quad` is; the error is that of the outermost integral.

    >>> import tapegrad as tg
    >>> volume = lambda h: tg.scipy.integrate.nquad(lambda x, y: h - x, [lambda y: (0, y), (0, 1)])
    >>> round(tg.grad(lambda h: volume(h)[0])(2.0), 6)
    0.5
    """
    given = tuple(args) if isinstance(args, (tuple, list)) else () if args is None else (args,)
    shared: _Any = opts or {}
    each = list(opts) if isinstance(opts, (list, tuple)) else [shared] * len(ranges)
    if full_output or not _any_recorded(func, ranges, given):
        return _theirs("scipy.integrate", "nquad")(func, ranges, args, opts, full_output)

    def over(k: int, outer: tuple[_Any, ...]) -> tuple[_Any, _Any]:
        """The integral over the variables 0..k at the others."""
        a, b = _range_at(ranges[k], outer, given)
        how = each[k](*outer, *given) if callable(each[k]) else each[k]
        if k == 0:
            return quad(lambda x: func(x, *outer, *given), a, b, **how)
        return quad(lambda x: over(k - 1, (x, *outer))[0], a, b, **how)

    return over(len(ranges) - 1, ())


def _range_at(ends: _Any, outer: tuple[_Any, ...], given: tuple[_Any, ...]) -> tuple[_Any, _Any]:
    a, b = ends(*outer, *given) if callable(ends) else ends
    return a, b


def _inside(a: float, b: float) -> float:
    """A number between two, which may be infinite."""
    seen: list[float] = []

    def note(x: float) -> float:
        seen.append(x)
        return x

    _on_the_unit_interval(note, a, b)(0.5)
    return seen[0]


def _any_recorded(func: _Callable[..., _Any], ranges: _Any, given: tuple[_Any, ...]) -> bool:
    """Whether Tensors take part in an integral: in its ranges, or in values of its function."""
    point: tuple[_Any, ...] = ()
    for ends in reversed(ranges):
        a, b = _range_at(ends, point, given)
        if _among((a, b)):
            return True
        point = (_inside(a, b), *point)
    return _among((given, func(*point, *given)))


def dblquad(
    func: _Callable[..., _Any], a: _Any, b: _Any, gfun: _Any, hfun: _Any, args: _Any = (),
    epsabs: float = 1.49e-8, epsrel: float = 1.49e-8,
) -> _Any:  # fmt: skip
    """The integral of ``func(y, x)`` for x from `a` to `b` and y from ``gfun(x)`` to ``hfun(x)``.

    >>> import numpy as np, tapegrad as tg
    >>> area = lambda r: tg.scipy.integrate.dblquad(lambda y, x: 1.0, 0, r, 0, lambda x: r - x)[0]
    >>> round(tg.grad(area)(3.0), 6)
    3.0
    """
    return _in_order(func, [(gfun, hfun), (a, b)], args, epsabs, epsrel)


def tplquad(
    func: _Callable[..., _Any], a: _Any, b: _Any, gfun: _Any, hfun: _Any, qfun: _Any, rfun: _Any,
    args: _Any = (), epsabs: float = 1.49e-8, epsrel: float = 1.49e-8,
) -> _Any:  # fmt: skip
    """The integral of ``func(z, y, x)``, of which z goes from ``qfun(x, y)`` to ``rfun(x, y)``.

    >>> import tapegrad as tg
    >>> volume = lambda r: tg.scipy.integrate.tplquad(lambda z, y, x: r * z, 0, 1, 0, 1, 0, 1)[0]
    >>> round(tg.grad(volume)(3.0), 6)
    0.5
    """
    return _in_order(func, [(qfun, rfun), (gfun, hfun), (a, b)], args, epsabs, epsrel)


def _in_order(
    func: _Callable[..., _Any], ends: list[_Any], args: _Any, epsabs: float, epsrel: float
) -> _Any:
    """An integral of which functions that give an end take the outermost variable first."""

    def range_of(k: int) -> _Callable[..., tuple[_Any, ...]]:
        return lambda *outer: tuple(
            end(*outer[: len(ends) - 1 - k][::-1]) if callable(end) else end for end in ends[k]
        )

    ranges = [range_of(k) for k in range(len(ends))]
    return nquad(func, ranges, args, {"epsabs": epsabs, "epsrel": epsrel})


@_for_tensors("scipy.integrate")
def trapezoid(y: _Any, x: _Any = None, dx: _Any = 1.0, axis: int = -1) -> _Any:
    """The integral of values at points, or at distances `dx`, by the trapezoidal rule.

    >>> import tapegrad as tg
    >>> tg.scipy.integrate.trapezoid(tg.tensor([0.0, 1.0, 4.0]), [0.0, 1.0, 2.0])
    tensor(3.)
    """
    return _np.trapezoid(_tensor(y), x, dx, axis)


@_for_tensors("scipy.integrate")
def cumulative_trapezoid(
    y: _Any, x: _Any = None, dx: _Any = 1.0, axis: int = -1, initial: _Any = None
) -> _Any:
    """The integrals up to each point but the first by the trapezoidal rule, after `initial`.

    >>> import tapegrad as tg
    >>> tg.scipy.integrate.cumulative_trapezoid(tg.tensor([0.0, 1.0, 4.0]), initial=0)
    tensor([0.0000, 0.5000, 3.0000])
    """
    if initial not in (None, 0):
        raise ValueError("`scipy.integrate.cumulative_trapezoid`: `initial` is None or 0")
    values = _tensor(y)
    if x is None:
        found = _cumulative_trapezoid(values, dx=dx, dim=axis)
    else:
        found = _cumulative_trapezoid(values, _tensor(x), dim=axis)
    return _from_initial(found, axis, initial)


def _from_initial(found: _Any, axis: int, initial: _Any) -> _Any:
    """Sums that begin with a value, if there is one: it stands before them."""
    if initial is None:
        return found
    return _cat([found.narrow(axis, 0, 1) * 0.0, found], axis) + initial


def _linear(name: str, y: _Any, x: _Any, axis: int, **how: _Any) -> _Any:
    """What a function that is linear in values gives, by its weights for each of them."""
    if x is not None:
        if _among(x) or _np.ndim(x) != 1:
            raise TypeError(
                f"`scipy.integrate.{name}`: the points are one array that is not differentiated, "
                f"got {type(x).__name__} of shape {_np.shape(x)}"
            )
        how["x"] = x
    values = _floating(_tensor(y))
    weights = _theirs("scipy.integrate", name)(_np.eye(values._a.shape[axis]), axis=0, **how)
    return _tensordot(_tensor(weights), values, ([-1], [axis]))


@_for_tensors("scipy.integrate")
def simpson(y: _Any, x: _Any = None, *, dx: float = 1.0, axis: int = -1) -> _Any:
    """The integral of values at points, or at distances `dx`, by Simpson's rule.

    >>> import tapegrad as tg
    >>> tg.scipy.integrate.simpson(tg.tensor([0.0, 1.0, 4.0]))
    tensor(2.6667)
    """
    return _linear("simpson", y, x, axis, dx=dx)


@_for_tensors("scipy.integrate")
def cumulative_simpson(
    y: _Any, *, x: _Any = None, dx: float = 1.0, axis: int = -1, initial: _Any = None
) -> _Any:
    """The integrals up to each point but the first by Simpson's rule, after `initial`.

    >>> import tapegrad as tg
    >>> tg.scipy.integrate.cumulative_simpson(tg.tensor([0.0, 1.0, 4.0]))
    tensor([0.3333, 2.6667])
    """
    found = _linear("cumulative_simpson", y, x, axis, dx=dx)
    return _from_initial(found.movedim(0, axis), axis, initial)


@_for_tensors("scipy.integrate")
def romb(y: _Any, dx: float = 1.0, axis: int = -1, show: bool = False) -> _Any:
    """The integral of 2**k + 1 values at equal distances by Romberg's rule.

    >>> import tapegrad as tg
    >>> tg.scipy.integrate.romb(tg.tensor([0.0, 1.0, 4.0]))
    tensor(2.6667)
    """
    _refuse("romb", show=show)
    return _linear("romb", y, None, axis, dx=dx)


def __getattr__(name: str) -> _Any:
    return _theirs("scipy.integrate", name)

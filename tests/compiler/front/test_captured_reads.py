"""What a function reads around it is a constant of its programs while it stays the same."""

import functools
import random
import threading
import types
import warnings

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.compiler.front import fastcall

pytestmark = pytest.mark.tapegrad_only("PyTorch has no `jit` of this kind")

RATE = 1.0


class Config:
    shared = 1.0

    def __init__(self):
        self.rate = 1.0
        self.inner = types.SimpleNamespace()
        self.options = {"rate": 1.0}

    def by_method(self, x):
        return x * self.rate

    def by_other_method(self, x):
        return self.by_method(x) + 0.0

    @property
    def half(self):
        return self.rate / 2

    def by_property(self, x):
        return x * self.half * 2

    def __call__(self, x):
        return x * self.rate

    @tg.jit
    def compiled(self, x):
        return x * self.rate


class Slotted:
    __slots__ = ("rate",)

    def __init__(self):
        self.rate = 1.0


class Scaled(tg.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x * RATE

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, g):
        return g * RATE

    @staticmethod
    def jvp(ctx, t):
        return t * RATE


SETTINGS = types.ModuleType("settings_of_this_test")


def helper(x):
    return x * RATE


def by_global(x):
    return x * RATE


def beside_a_comprehension(x):
    ones = [sum(RATE for _ in range(1)) for RATE in (1.0,)]
    return x * RATE * ones[0]


def called(f, x):
    return f(x)


def set_global(value):
    global RATE
    RATE = value


def of_global(f):
    return lambda: (f, set_global)


def of_cell():
    rate = 1.0

    def change(value):
        nonlocal rate
        rate = value

    return lambda x: x * rate, change


def of_cell_in_a_comprehension():
    rate = 1.0

    def change(value):
        nonlocal rate
        rate = value

    return lambda x: sum(x * rate for _ in range(1)), change


def of_object(f):
    """From a function of a Config that gives the function to compile."""

    def make():
        config = Config()
        return f(config), lambda value: setattr(config, "rate", value)

    return make


def of_class_attribute():
    class Inheriting(Config):
        shared = 1.0

    config = Inheriting()
    return lambda x: x * config.shared, lambda value: setattr(Inheriting, "shared", value)


def of_nested_attribute():
    config = Config()
    config.inner.rate = 1.0
    return lambda x: x * config.inner.rate, lambda value: setattr(config.inner, "rate", value)


def of_another_object():
    config = Config()

    def change(value):
        config.inner = types.SimpleNamespace(rate=value)

    change(1.0)
    return lambda x: x * config.inner.rate, change


def of_item():
    options = {"rate": 1.0}
    return lambda x: x * options["rate"], lambda value: options.update(rate=value)


def of_slots():
    config = Slotted()
    return lambda x: x * config.rate, lambda value: setattr(config, "rate", value)


def of_module():
    SETTINGS.rate = 1.0
    return lambda x: x * SETTINGS.rate, lambda value: setattr(SETTINGS, "rate", value)


def of_partial():
    config = Config()
    f = functools.partial(lambda c, x: x * c.rate, config)
    return f, lambda value: setattr(config, "rate", value)


def of_function_handed_on():
    config = Config()
    f = functools.partial(lambda inner, x: called(inner, x), lambda x: x * config.rate)
    return f, lambda value: setattr(config, "rate", value)


def of_argument():
    config = Config()
    f = tg.jit(lambda c, x: x * c.rate)
    return lambda x: f(config, x), lambda value: setattr(config, "rate", value)


def of_alias():
    config = Config()

    def f(x):
        mine = config
        return x * mine.rate

    return f, lambda value: setattr(config, "rate", value)


def of_custom_rule():
    scaled = tg.custom_vjp(lambda x: x * RATE)
    scaled.defvjp(lambda x: (x * RATE, None), lambda _, g: (g * RATE,))
    return scaled, set_global


SOURCES = {
    "global": of_global(by_global),
    "helper": of_global(lambda x: helper(x) + 0.0),
    "cell": of_cell,
    "comprehension": of_cell_in_a_comprehension,
    "variable of a comprehension": of_global(beside_a_comprehension),
    "attribute": of_object(lambda config: lambda x: x * config.rate),
    "method": of_object(lambda config: config.by_method),
    "method of a method": of_object(lambda config: config.by_other_method),
    "property": of_object(lambda config: config.by_property),
    "callable": of_object(lambda config: config),
    "called": of_object(lambda config: lambda x: config(x)),
    "jitted method": of_object(lambda config: lambda x: config.compiled(x)),
    "class attribute": of_class_attribute,
    "nested attribute": of_nested_attribute,
    "another object": of_another_object,
    "item": of_item,
    "slots": of_slots,
    "module": of_module,
    "partial": of_partial,
    "function that is handed on": of_function_handed_on,
    "argument": of_argument,
    "alias": of_alias,
    "Function": of_global(lambda x: Scaled.apply(x)),
    "custom rule": of_custom_rule,
}
X = np.array([1.0, 2.0])
CALLS = {
    "jit": lambda f: tg.jit(f),
    "jit of grad": lambda f: tg.jit(tg.grad(lambda x: np.sum(f(x)))),
    "grad of jit": lambda f: tg.grad(tg.jit(lambda x: np.sum(f(x)))),
    "jit of vmap": lambda f: tg.jit(tg.vmap(f)),
    "vmap of jit": lambda f: tg.vmap(tg.jit(f)),
    "jit of jvp": lambda f: tg.jit(lambda x: tg.jvp(f, (x,), (np.ones(2),))[1]),
    "jit of a loop": lambda f: tg.jit(lambda x: tg.fori_loop(0, 1, lambda i, c: f(c), x)),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("source", SOURCES)
def test_what_changes_is_seen(source, call):
    f, change = SOURCES[source]()
    change(1.0)
    compiled = CALLS[call](f)
    wanted = np.asarray(compiled(X))
    for value in (3.0, 1.0, 0.5):
        change(value)
        np.testing.assert_allclose(compiled(X), value * wanted)
    change(1.0)


SLOW = {"argument", "jitted method"}  # Python looks, or passes an object on
NEW = {"another object"}  # each is traced


@pytest.mark.parametrize("source", sorted(SOURCES.keys() - SLOW - NEW))
def test_the_fast_way_in_stays_and_programs_are_kept(source):
    f, change = SOURCES[source]()
    change(1.0)
    compiled = tg.jit(f)
    for value in (1.0, 2.0, 1.0, 2.0, 1.0, 2.0):
        change(value)
        np.testing.assert_allclose(compiled(X), value * X)
    assert compiled.cache_info() == (1, 2, 0)
    assert compiled._fast_call != compiled._general


def test_objects_and_functions_that_are_replaced_are_seen():
    config = Config()
    config.activation = np.sin
    model = lambda x: config.activation(x) * config.rate
    compiled = tg.jit(model)
    assert compiled(1.0) == np.sin(1.0)
    config.activation = np.cos
    assert compiled(1.0) == np.cos(1.0)
    config.activation = lambda x: x * 5
    assert compiled(1.0) == 5.0
    weights = [1.0, 2.0]
    weighted = tg.jit(lambda x: sum(w * x for w in weights) + weights[0])
    assert weighted(1.0) == 4.0
    weights = [3.0, 4.0]
    assert weighted(1.0) == 10.0
    called = tg.jit(lambda x: config(x))
    assert called(1.0) == 1.0
    config = Config()
    config.rate = 7.0
    assert called(1.0) == 7.0


@pytest.mark.parametrize(
    "source", ["global", "cell", "attribute", "class attribute", "item", "slots"]
)
def test_so_it_is_where_python_stands_for_the_fast_way_in(source, monkeypatch):
    monkeypatch.setattr(fastcall.sweep_abi, "as_listed", lambda: False)
    f, change = SOURCES[source]()
    change(1.0)
    compiled = tg.jit(f)
    for value in (1.0, 2.0, 1.0, 2.0):
        change(value)
        np.testing.assert_allclose(compiled(X), value * X)
    assert compiled.cache_info() == (1, 2, 0)


VALUES = [2, 2.0, True, None, "two", (1, 2), np.float32(2), np.ones(2), tg.ones(2), 1j]


@pytest.mark.parametrize("value", VALUES, ids=lambda x: type(x).__name__)
def test_values_of_any_kind_are_told_apart(value):
    config = Config()
    config.rate = "none yet"
    seen = []
    compiled = tg.jit(lambda x: (seen.append(config.rate), x * 2)[1])
    compiled(1.0), compiled(1.0)
    config.rate = value
    compiled(1.0), compiled(1.0)
    assert len(seen) == 2
    assert seen[1] is value


def test_an_equal_number_is_the_same():
    config = Config()
    compiled = tg.jit(config.by_method)
    for text in ("1.5", "1.5", "1.5"):
        config.rate = float(text)
        assert compiled(2.0) == 3.0
    assert compiled.cache_info().traces == 1
    config.rate = -0.0
    assert np.signbit(compiled(2.0))
    config.rate = 0.0
    assert not np.signbit(compiled(2.0))


def test_what_appears_and_goes_is_seen():
    config = Config()
    compiled = tg.jit(lambda x: x * config.shared)
    assert compiled(3.0) == 3.0
    config.shared = 2.0
    assert compiled(3.0) == 6.0
    del config.shared
    assert compiled(3.0) == 3.0


def test_what_changes_all_the_time_is_left_to_python_with_one_warning():
    config = Config()
    compiled = tg.jit(config.by_method)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for k in range(20):
            config.rate = float(k)
            assert compiled(2.0) == 2.0 * k
    (message,) = [str(one.message) for one in said]
    assert "by_method reads `Config.rate` from outside, and was traced for 8 values" in message
    assert "pass what changes as an argument" in message


def test_what_the_function_changes_itself_is_not_followed():
    calls = 0
    config = Config()
    config.steps = 0

    def counted(x):
        nonlocal calls
        calls += 1
        config.steps += 1
        return x * 2

    compiled = tg.jit(counted)
    assert [compiled(float(k)) for k in range(5)] == [0.0, 2.0, 4.0, 6.0, 8.0]
    assert (calls, config.steps, compiled.cache_info().traces) == (1, 1, 1)

    def bump():
        config.steps += 1

    other = tg.jit(lambda x: (bump(), x * config.rate)[1])
    assert [other(2.0), other(2.0)] == [2.0, 2.0]
    assert other.cache_info().traces == 1


def test_what_is_not_the_users_is_not_looked_at():
    assert names_read(lambda x: np.sin(x) * np.pi + len([1, 2])) == []


@pytest.mark.parametrize("transform", [tg.grad, tg.value_and_grad, tg.jacfwd, tg.hessian])
def test_through_a_transform_the_users_alone_is_looked_at(transform):
    assert names_read(transform(lambda x: np.sin(x) * x)) == []
    assert names_read(transform(lambda x: np.sin(x) * RATE)) == ["`RATE`"]


def names_read(function):
    compiled = tg.jit(function)
    compiled(1.0)
    ((specialization,),) = compiled._specializations.values()
    return [read.text for read in specialization.reads]


# -- random numbers ------------------------------------------------------------------------------

GENERATOR = np.random.default_rng(0)
OLD, PYTHONS = np.random.RandomState(0), random.Random(0)


class Noisy:
    def __init__(self):
        self.rng = np.random.default_rng(0)

    def __call__(self, x):
        return x + self.rng.normal()


def of_generator_in_cell():
    rng = np.random.default_rng(0)
    return lambda x: x + rng.random()


def noise(rng, x):
    return x * rng.random()


def drawing_helper():
    return GENERATOR.random()


DRAWS = {
    "np.random.randn": lambda x: x * np.random.randn(),
    "np.random.rand": lambda x: x * np.random.rand(),
    "random.random": lambda x: x * random.random(),
    "generator": lambda x: x * GENERATOR.normal(),
    "RandomState": lambda x: x * OLD.rand(),
    "Random": lambda x: x * PYTHONS.random(),
    "cell": of_generator_in_cell(),
    "attribute": Noisy(),
    "helper": lambda x: x * drawing_helper(),
    "argument": functools.partial(lambda rng, x: noise(rng, x), GENERATOR),
    "passed on": lambda x: x * (lambda rng: rng.random())(GENERATOR),
    "tapegrad": lambda x: x * tg.rand(()),
}


@pytest.mark.parametrize("call", ["jit", "jit of grad", "jit of vmap", "jit of a loop"])
@pytest.mark.parametrize("draw", DRAWS)
def test_random_numbers_are_refused(draw, call):
    with pytest.raises(RuntimeError, match=r"random numbers .* pass them as an argument"):
        CALLS[call](DRAWS[draw])(X)


@pytest.mark.parametrize("times", [1, 3, 100])
def test_random_numbers_that_another_thread_draws_meanwhile(times):
    """As in a worker of Dask; a function that draws itself is refused beside threads, too."""
    drawing = [random.random] * times
    runs, ended = [], threading.Event()

    def f(x):
        runs.append(x)
        if drawing:
            other = threading.Thread(target=drawing.pop())
            other.start()
            other.join()
        return x * 2.0

    waiting = threading.Thread(target=ended.wait)
    waiting.start()
    try:
        assert tg.jit(f)(1.5) == 3.0
        assert len(runs) == min(times + 1, 10)
        with pytest.raises(RuntimeError, match=r"random numbers .* pass them as an argument"):
            tg.jit(lambda x: x * random.random())(X)
        with pytest.raises(RuntimeError, match=r"random numbers .* pass them as an argument"):
            tg.jit(lambda x: (x, random.random()))(X)
    finally:
        ended.set()
        waiting.join()


def test_random_numbers_that_are_passed_in_or_the_same_each_time_are_taken():
    noisy = tg.jit(lambda x, noise: x + noise)
    assert noisy(1.0, 0.25) == 1.25
    fixed = tg.jit(lambda x: x + np.random.default_rng(0).random())
    assert fixed(1.0) == fixed(1.0) == 1.0 + np.random.default_rng(0).random()

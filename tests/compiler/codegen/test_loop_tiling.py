"""Nests with elementary functions: by loops of their own, in short forms, and again in tiles."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.compiler.codegen import loop_tiling
from tapegrad.kernels import simd_tables

pytestmark = pytest.mark.tapegrad_only("compiled functions are not PyTorch's")

SHAPES = [(70,), (1000,), (1500,), (100, 10), (5, 300), (3, 4000), (2, 7, 33)]
LONG = loop_tiling.TWICE + 77


def fused(x, row, column):
    return np.exp(-x * x) * row + np.sin(x + column) * np.log(row) + np.exp(column)


def chained(x, row, column):
    return np.log(np.exp(np.sin(x) * row) + 1.0) ** 1.5


def chosen(x, row, column):
    return np.where(x > 1.0, np.log(x), np.exp(x)) * column


def powers(x, row, column):
    return np.power(2.5, x) + np.power(x, 1.7) + np.power(x, row)


def summed(x, row, column):
    return np.sum(np.exp(x * row), axis=-1) + np.sum(np.tanh(x), axis=-1)


def down(x, row, column):
    return np.sum(np.tanh(x * row), axis=0) + np.max(np.exp(x), axis=0)


def picked(x, row, column):
    return np.exp(x)[..., ::-1] * np.cos(x[..., np.arange(x.shape[-1]) // 2])


PROGRAMS = [fused, chained, chosen, powers, summed, down, picked]


def operands(shape, seed=0):
    rng = np.random.default_rng(seed)
    x, row = rng.uniform(0.1, 3.0, shape), rng.uniform(0.2, 1.0, shape[-1])
    return x, row, rng.uniform(0.2, 1.0, (*shape[:-1], 1))


@pytest.fixture(params=["as it pays", "in two forms", "in tiles"])
def way(request, monkeypatch):
    """What is chosen by size, and for any size the other two ways."""
    if request.param == "in two forms":
        monkeypatch.setattr(loop_tiling, "TWICE", 0)
    if request.param == "in tiles":
        monkeypatch.setattr(loop_tiling, "quick", in_tiles)
        monkeypatch.setattr("tapegrad.compiler.lower.module_functions.quick", in_tiles)


def in_tiles(nest, part=False):
    nest = loop_tiling.collapsed(nest)
    plan = loop_tiling.planned(nest)
    return (
        None
        if plan is None
        else loop_tiling.written(nest, part, tiles=loop_tiling.Tiles(nest, plan))
    )


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("program", PROGRAMS)
def test_values_and_gradients(program, shape, way):
    given = operands(shape)
    np.testing.assert_allclose(tg.jit(program)(*given), program(*given), rtol=1e-12)

    def total(*given):
        return np.sum(program(*given) ** 2)

    want = tg.grad(total, argnums=(0, 1, 2))(*given)
    for got, one in zip(tg.jit(tg.grad(total, argnums=(0, 1, 2)))(*given), want, strict=True):
        np.testing.assert_allclose(got, one, rtol=1e-11, atol=1e-11)


RARE = [0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, 1e-310, 1e308, -1.0, 800.0, -800.0, np.pi]


@pytest.mark.parametrize("function", [np.exp, np.log, np.log1p, np.sin, np.tan, np.sqrt])
def test_rare_arguments_among_others(function):
    x = np.random.default_rng(1).uniform(0.1, 3.0, LONG)
    x[[5, 2000, 30000, 30001, LONG - 1]] = 1.5
    program = tg.jit(lambda x: function(x) * 0.5 + np.exp(-np.abs(x)))
    with np.errstate(all="ignore"):
        for value in RARE:
            x[[5, 2000, LONG - 1]] = value
            want = function(x) * 0.5 + np.exp(-np.abs(x))
            np.testing.assert_allclose(program(x), want, rtol=1e-14, atol=1e-14)


def test_a_sum_over_rare_arguments():
    x = np.random.default_rng(2).uniform(0.1, 3.0, (3, LONG))
    program = tg.jit(lambda x: np.sum(np.log(x * 2.0) + x, axis=1))
    for value in (1e-310, 0.0, -1.0):
        x[1, 77] = value
        with np.errstate(all="ignore"):
            want = np.sum(np.log(x * 2.0) + x, axis=1)
        np.testing.assert_allclose(program(x), want, rtol=1e-13)


def test_parts_for_several_threads():
    threads = tg.get_num_threads()
    x = np.random.default_rng(2).uniform(0.1, 3.0, 3 * LONG)
    x[5] = x[-1] = 0.0
    try:
        tg.set_num_threads(2)
        got = tg.jit(lambda x: np.log(x) * x + 1.0)(x)
        alone = tg.jit(np.log)(x)
    finally:
        tg.set_num_threads(threads)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(got, np.log(x) * x + 1.0, rtol=1e-13)
        np.testing.assert_allclose(alone, np.log(x), rtol=1e-15)


def texts(function, n):
    return tg.jit(function).lower(np.ones(n)).as_text("llvm")


def test_a_function_alone_is_left_to_its_own_loop():
    text = texts(np.exp, 1000)
    assert "call void @block.exp(" in text
    assert "@vmath." not in text


def test_a_long_nest_has_short_forms_and_tiles():
    name = "exp" if simd_tables.in_registers() else "sin"  # exp's looks numbers up there
    text = texts(lambda x: getattr(np, name)(x) + 1.0, LONG)
    assert f"@vmath.{name}_plain.f64" in text
    assert f"@vmath.{name}.f64" not in text
    assert f"call void @block.{name}(" in text


def test_a_short_nest_is_compiled_once():
    text = texts(lambda x: np.exp(x) + 1.0, 1000)
    assert "@vmath.exp.f64" in text
    assert "@block." not in text


def test_singles_are_left_as_they_were():
    text = tg.jit(np.exp).lower(np.ones(LONG, np.float32)).as_text("llvm")
    assert "@block." not in text


def test_what_is_the_same_in_the_innermost_loop_is_computed_outside():
    row, column = np.ones(1000), np.ones((50, 1))
    text = tg.jit(lambda a, b: np.exp(b) + np.log(a)).lower(row, column).as_text("llvm")
    assert "@block.exp" not in text

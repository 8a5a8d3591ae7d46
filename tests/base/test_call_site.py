"""What is said where Python or NumPy asks a Tensor for a number says what to write instead."""

import math
import traceback

import numpy as np
import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("about the NumPy face")

X = np.array([1.0, 2.0, 3.0])


def by_elements(x):
    out = np.zeros(3)
    for i in range(3):
        out[i] = x[i] ** 2
    return np.sum(out)


def of_another_type(x):
    out = np.zeros(3, np.float32)
    out[0] = x[0]
    return np.sum(out)


def of_integers(x):
    out = np.zeros(3, int)
    out[0] = x[0]
    return np.sum(out)


def by_slice(x):
    out = np.zeros(3)
    out[:2] = x[:2] ** 2
    return np.sum(out)


def by_places(x):
    out = np.zeros(3)
    out[np.array([0, 2])] = x[:2]
    return np.sum(out)


def by_mask(x):
    out = np.zeros(3)
    out[np.array([True, False, True])] = x[:2]
    return np.sum(out)


def whole(x):
    out = np.zeros(3)
    out[...] = x
    return np.sum(out)


def within_a_loop(x):
    out = np.zeros(1)

    def body(i, c):
        out[0] = c
        return c + x[0]

    return tg.fori_loop(0, 3, body, 0.0)


ARRAYS = (by_slice, by_places, by_mask, whole)
NUMBERS = (by_elements, of_another_type, of_integers)
TRANSFORMS = {
    "grad": lambda f: tg.grad(f)(X),
    "grad with aux": lambda f: tg.grad(lambda x: (f(x), 0.0), has_aux=True)(X),
    "value_and_grad of two": lambda f: tg.value_and_grad(lambda x, y: f(x * y), (0, 1))(X, X),
    "vjp": lambda f: tg.vjp(f, X),
    "jvp": lambda f: tg.jvp(f, (X,), (X,)),
    "linearize": lambda f: tg.linearize(f, X),
    "jacfwd": lambda f: tg.jacfwd(f)(X),
    "hessian": lambda f: tg.hessian(f)(X),
    "hvp": lambda f: tg.hvp(f)(X, X),
    "vmap": lambda f: tg.vmap(f)(np.stack([X, X])),
    "vmap of grad": lambda f: tg.vmap(tg.grad(f))(np.stack([X, X])),
    "checkpoint": lambda f: tg.grad(tg.checkpoint(f))(X),
    "jit of grad": lambda f: tg.jit(tg.grad(f))(X),
    "jit of vmap": lambda f: tg.jit(tg.vmap(f))(np.stack([X, X])),
    "grad of jit": lambda f: tg.grad(tg.jit(lambda x: tg.grad(f)(x)[0]))(X),
}


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("f", [*ARRAYS, *NUMBERS], ids=lambda f: f.__name__)
def test_a_tensor_that_is_written_into_an_array_says_how_to_make_that(name, f):
    with pytest.raises(RuntimeError, match=r"^`array\[...\] = t` .* `tapegrad\.zeros\(") as info:
        TRANSFORMS[name](f)
    assert "np.zeros_like(x)" in str(info.value)
    shown = "".join(traceback.format_exception(info.value))
    assert "setting an array" not in shown
    assert "    out[" in shown  # the user's line


@pytest.mark.parametrize("f", ARRAYS, ids=lambda f: f.__name__)
def test_so_it_does_where_the_compiler_traces(f):
    with pytest.raises(RuntimeError, match=r"^`array\[...\] = t` .* `tapegrad\.zeros\("):
        tg.jit(f)(X)


def test_so_it_does_in_a_compiled_loop():
    with pytest.raises(RuntimeError, match=r"^`array\[...\] = t` .* `tapegrad\.zeros\("):
        tg.jit(within_a_loop)(X)


def test_what_is_said_works():
    def made_by_zeros(x):
        out = tg.zeros(3)
        for i in range(3):
            out[i] = x[i] ** 2
        return np.sum(out)

    def made_like_x(x):
        out = np.zeros_like(x)
        out[:2] = x[:2] ** 2
        out[2] = x[2] ** 2
        return np.sum(out)

    for f in (made_by_zeros, made_like_x):
        for g in (tg.grad(f), tg.jit(tg.grad(f))):
            np.testing.assert_allclose(g(X), 2 * X)


def test_an_error_of_numpy_that_has_no_tensor_in_it_is_left_alone():
    def wrong(x):
        np.zeros(2)[0] = [1.0, 2.0]
        return np.sum(x)

    for transform in (tg.grad, tg.jit, tg.vmap):
        with pytest.raises(ValueError, match="setting an array element with a sequence"):
            transform(wrong)(np.ones((1, 3)))


@pytest.mark.parametrize("name", ["grad", "jvp", "vmap", "jit of grad", "linearize"])
def test_functions_of_math_name_those_of_numpy(name):
    with pytest.raises(RuntimeError, match=r"`np\.sin\(t\)` instead of `math\.sin\(t\)`"):
        TRANSFORMS[name](lambda x: math.sin(x[0]) * x[0])


def test_functions_of_math_in_compiled_loops_name_those_of_numpy():
    f = tg.jit(lambda x: tg.fori_loop(0, 3, lambda i, c: c + math.sin(c) * x, x))
    with pytest.raises(RuntimeError, match=r"`np\.sin\(t\)` for `math\.sin\(t\)`"):
        f(1.0)


TABLE, LIST = np.arange(6.0) ** 2, [1.0, 2.0, 3.0]
INDEXED = {
    "array": lambda i: TABLE[i],
    "list": lambda i: LIST[i],
    "row and column": lambda i: TABLE.reshape(2, 3)[0, i],
    "slice": lambda i: TABLE[i : i + 2].sum(),
    "array of indices": lambda i: TABLE[np.arange(2) + i].sum(),
}


@pytest.mark.parametrize("name", INDEXED)
def test_an_index_that_only_the_program_knows_says_what_can_be_indexed(name):
    pick = INDEXED[name]
    loop = lambda x: tg.fori_loop(0, 3, lambda i, c: c + pick(i) * x, 0.0)
    assert np.isfinite(loop(2.0))  # in Python the counter is a number
    scanned = lambda x: tg.scan(lambda c, i: (c + pick(i) * x, c), 0.0, np.arange(3))
    mapped = lambda i: tg.vmap(pick)(i)
    for f, x in ((loop, 2.0), (scanned, 2.0), (mapped, np.arange(3))):
        with pytest.raises(RuntimeError, match=r"^`a\[i\]` .* `tapegrad\.tensor\(a\)\[i\]`"):
            tg.jit(f)(x)
    with pytest.raises(RuntimeError, match=r"^`a\[i\]` .* `tapegrad\.tensor\(a\)\[i\]`"):
        mapped(np.arange(3))


def test_what_is_said_of_indices_works():
    def one(i, c):
        return c + tg.tensor(TABLE)[i] + tg.tensor(TABLE)[i + np.arange(2)].sum()

    f = lambda x: tg.fori_loop(0, 3, one, x)
    assert tg.jit(f)(1.0) == f(1.0)


def test_a_place_to_write_at_is_no_index_to_read_from():
    def body(i, c):
        TABLE[i] = 0.0
        return c

    with pytest.raises(RuntimeError, match=r"^`array\[i\] = t` .* `tapegrad\.zeros\("):
        tg.jit(lambda x: tg.fori_loop(0, 3, body, x))(1.0)


def test_integers_of_a_followed_value_are_indices_under_jit_as_without():
    f = lambda x: LIST[x[0].long()] * x[0]
    assert tg.grad(f)(X)[0] == tg.jit(tg.grad(f))(X)[0] == 2.0


@pytest.mark.parametrize(
    "call",
    [
        lambda: tg.jit(lambda x: tg.fori_loop(0, 2, lambda i, c: c + np.sum(x[i : i + 2]), 0.0))(X),
        lambda: tg.vmap(lambda x, i: x[i : i + 2])(np.stack([X, X]), np.array([0, 1])),
    ],
    ids=["a loop that is traced", "a map"],
)
def test_a_slice_whose_ends_nobody_knows_is_told_to_be_an_index(call):
    with pytest.raises(RuntimeError, match=r"write `x\[i \+ np.arange\(n\)\]` for `x\[i:i \+ n\]`"):
        call()
    f = lambda x, i: x[i + np.arange(2)]
    np.testing.assert_array_equal(tg.vmap(f)(np.stack([X, X]), np.array([0, 1]))[1], X[1:])

"""What cannot be differentiated is an error that says what to do."""

import math

import numpy as np
import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("transforms of its own")

X = np.array([0.3, 0.7, -1.1])


def refused(problem, match):
    return pytest.raises(problem, match=match)


def double(x):
    return x * 2.0


# -- arguments -------------------------------------------------------------------------------------


@pytest.mark.parametrize("transform", [tg.grad, tg.value_and_grad, tg.jacrev, tg.jacfwd])
def test_arguments_that_are_no_floats(transform):
    name = transform.__name__
    with refused(TypeError, rf"`{name}` needs floating-point arguments, got int64: pass a float"):
        transform(double)(3)
    with refused(TypeError, r"got int64: pass a float .* or convert .*astype"):
        transform(double)(np.arange(3))
    with refused(TypeError, "got bool"):
        transform(double)(True)
    with refused(TypeError, r"an array of dtype object \(shape \(2,\)\).*dtype=float"):
        transform(double)(np.array([1.0, 2.0], object))
    with refused(TypeError, "a leaf of type str: leave it out with `argnums`, or register"):
        transform(double)({"a": "text"})
    with refused(TypeError, f"`{name}` takes a function, got int"):
        transform(3)


@pytest.mark.parametrize("transform", [tg.grad, tg.jacrev, tg.jacfwd, tg.hessian])
@pytest.mark.parametrize(
    ("argnums", "problem", "match"),
    [
        (1, ValueError, "argnums=1, but double was called with 1 positional argument$"),
        (-2, ValueError, "argnums=-2, but double"),
        ((0, 1), ValueError, r"argnums=\(0, 1\), but double"),
        ((0, 0), ValueError, r"argnums=\(0, 0\) names an argument twice"),
        ((0, -1), ValueError, "names an argument twice"),
        (1.5, TypeError, "argnums is an int or a tuple of ints, got 1.5"),
        (True, TypeError, "argnums is an int or a tuple of ints, got True"),
        ("x", TypeError, "argnums is an int or a tuple of ints, got 'x'"),
        ((), TypeError, r"argnums is an int or a tuple of ints, got \(\)"),
        ((0, "x"), TypeError, "argnums is an int or a tuple of ints"),
        (None, TypeError, "argnums is an int or a tuple of ints, got None"),
    ],
)
def test_wrong_argnums(transform, argnums, problem, match):
    with refused(problem, match):
        transform(double, argnums)(1.0)


def test_tangents_and_weights_of_another_structure():
    with refused(ValueError, "`jvp`: the pytrees differ in structure: expected"):
        tg.jvp(lambda p: p["a"], ({"a": 1.0},), ({"b": 1.0},))
    with refused(ValueError, "`vjp`: the pytrees differ in structure"):
        tg.vjp(double, 1.0)[1]((1.0,))
    with refused(ValueError, "`linearize`: the pytrees differ in structure"):
        tg.linearize(double, 1.0)[1](1.0, 2.0)
    with refused(ValueError, "`tree_map`: the pytrees differ in structure"):
        tg.tree_map(lambda a, b: a, [1.0], (1.0,))
    with refused(ValueError, r"`jvp`: a tangent of shape \(2,\) was given .* shape \(3,\)"):
        tg.jvp(double, (X,), (X[:2],))
    with refused(ValueError, r"`linearize`: a tangent of shape \(2,\) was given"):
        tg.linearize(double, X)[1](X[:2])
    with refused(ValueError, r"`vjp`: weights of shape \(2,\) were given .* shape \(3,\)"):
        tg.vjp(double, X)[1](X[:2])
    with refused(TypeError, "`jvp` needs floating-point tangents, got int64: pass 1.0"):
        tg.jvp(double, (1.0,), (1,))
    with refused(TypeError, "`jvp`: `primals` is a tuple with one entry for each argument"):
        tg.jvp(double, 1.0, 1.0)


# -- results ---------------------------------------------------------------------------------------


def test_results_that_have_no_gradient():
    with refused(TypeError, r"double must return a scalar, got the shape \(3,\): reduce it"):
        tg.grad(double)(X)
    with refused(TypeError, "must return a scalar, got NoneType"):
        tg.grad(lambda x: None)(X)
    with refused(TypeError, "must return a scalar, got dict"):
        tg.grad(lambda x: {"a": x})(1.0)
    with refused(TypeError, "must return a floating-point scalar, got bool"):
        tg.grad(lambda x: x > 1)(1.0)
    with refused(TypeError, r"`jacrev`: .* a leaf of type str"):
        tg.jacrev(lambda x: "text")(1.0)
    for transform in (tg.grad, tg.value_and_grad, tg.jacrev, tg.jacfwd):
        with refused(TypeError, "`has_aux=True`: double must return a pair"):
            transform(double, has_aux=True)(1.0)
    with refused(TypeError, "`vjp` with `has_aux=True`: double must return a pair"):
        tg.vjp(double, 1.0, has_aux=True)
    with refused(TypeError, "`jvp` with `has_aux=True`: double must return a pair"):
        tg.jvp(double, (1.0,), (1.0,), has_aux=True)


NAMED = {
    "hvp": lambda f: lambda x: tg.hvp(f)(x, X),
    "vhp": lambda f: lambda x: tg.vhp(f)(x, X),
    "hessian": tg.hessian,
    "vjp": lambda f: lambda x: tg.vjp(f, x),
    "linearize": lambda f: lambda x: tg.linearize(f, x),
    "jvp": lambda f: lambda x: tg.jvp(f, (x,), (X,)),
    "jacobian": tg.jacobian,
    "jacrev": tg.jacrev,
    "jacfwd": tg.jacfwd,
    "grad": tg.grad,
    "value_and_grad": tg.value_and_grad,
}


@pytest.mark.parametrize("name", NAMED)
def test_messages_name_the_transform_that_was_called(name):
    of = NAMED[name]
    square = lambda x: np.sum(x * x)
    with refused(TypeError, f"^`{name}` needs floating-point arguments, got int64"):
        of(square)(np.arange(3))
    if name in ("jacobian", "jacfwd", "jacrev", "hessian"):
        with refused(NotImplementedError, f"^`{name}` in complex128 .* pass `x.real` and `x.imag`"):
            of(square)(X + 0j)
    elif name not in ("jvp", "vjp", "linearize"):
        with refused(RuntimeError, f"^`{name}`: <lambda> must return a real scalar"):
            of(square)(X + 0j)
    with refused(NotImplementedError, f"^`{name}` in float16 .* is not supported: convert"):
        of(square)(X.astype(np.float16))
    with refused(TypeError, f"^`{name}` cannot hold an array of dtype {np.dtype(np.longdouble)}"):
        of(square)(X.astype(np.longdouble))
    for f in (lambda x: (x > 0).any(), lambda x: np.True_):
        with refused(TypeError, rf"^`{name}`: <lambda> .*bool"):
            of(f)(X)
    for f in (lambda x: x.argmax(), lambda x: x.astype(int)[0]):
        with refused(TypeError, rf"^`{name}`: <lambda> .*int64"):
            of(f)(X)
    if name in ("hvp", "vhp", "hessian", "grad", "value_and_grad"):
        with refused(TypeError, rf"^`{name}`: double must return a scalar, got the shape \(3,\)"):
            of(double)(X)


def test_directions_and_weights_of_another_type():
    square = lambda x: np.sum(x * x)
    np.testing.assert_array_equal(tg.hvp(square)(X, np.arange(3)), 2.0 * np.arange(3))
    np.testing.assert_array_equal(tg.vhp(square)(X, np.arange(3)), 2.0 * np.arange(3))
    with refused(TypeError, "^`hvp` needs floating-point tangents, got complex128$"):
        tg.hvp(square)(X, X + 1j)
    with refused(ValueError, r"^`hvp`: a tangent of shape \(2,\) was given"):
        tg.hvp(square)(X, X[:2])
    with refused(ValueError, r"^`vhp`: weights of shape \(2,\) were given"):
        tg.vhp(square)(X, X[:2])
    with refused(TypeError, "^`vjp`: weights of complex128 were given for a value of float64"):
        tg.vjp(double, X)[1](X + 1j)
    with refused(TypeError, "^`vjp` cannot hold an array of dtype <U1"):
        tg.vjp(double, X)[1](np.array(["a", "b", "c"]))


@pytest.mark.parametrize("name", ["hvp", "jvp", "jacfwd", "grad", "value_and_grad", "jacrev"])
def test_what_was_kept_says_which_transform_it_is_from(name):
    for keep in (lambda x: x, lambda x: x * 2):
        kept = []

        def f(x, keep=keep, kept=kept):
            kept.append(keep(x))
            return np.sum(x * x)

        NAMED[name](f)(X)
        with refused(RuntimeError, rf"made inside .*`(tapegrad\.)?{name}`.* is used after"):
            kept[0] + 1


def test_results_that_do_not_depend_on_the_argument():
    assert tg.grad(lambda x: 3.0)(1.0) == 0.0
    found = tg.grad(lambda p: p["a"])({"a": 1.0, "b": X})
    assert found["a"] == 1.0
    np.testing.assert_array_equal(found["b"], np.zeros(3))
    np.testing.assert_array_equal(tg.hessian(lambda x: np.sum(x))(X), np.zeros((3, 3)))
    assert tg.jvp(lambda x: 3.0, (1.0,), (1.0,)) == (3.0, 0.0)
    np.testing.assert_array_equal(tg.vmap(lambda x: 1.0)(X), np.ones(3))
    with refused(RuntimeError, "`strict=True`: the value of .* does not depend on leaf 0"):
        tg.grad(lambda x: 3.0, strict=True)(1.0)
    with refused(RuntimeError, "does not depend on leaf 1 of its arguments"):
        tg.grad(lambda p: p["a"], strict=True)({"a": 1.0, "b": X})
    with refused(RuntimeError, "does not depend on leaf 0"):  # of the outer variable it does
        tg.grad(lambda x: tg.grad(lambda y: x * 1.0, strict=True)(1.0))(2.0)


# -- values that are followed ----------------------------------------------------------------------

TO_NUMBERS = {
    "float": float,
    "int": int,
    "complex": complex,
    "item": lambda t: t.item(),
    "tolist": lambda t: t.tolist(),
    "math.sin": math.sin,
    "full": lambda t: tg.full((2,), t),
    "linspace": lambda t: tg.linspace(0.0, t, 3),
}


@pytest.mark.parametrize("how", TO_NUMBERS)
def test_numbers_of_followed_values(how):
    f = lambda x: np.sum(x * TO_NUMBERS[how](x * 1.0))
    with refused(RuntimeError, "would lose its gradient: use the Tensor itself"):
        tg.grad(f)(2.0)
    with refused(RuntimeError, "stop_gradient"):
        tg.jvp(f, (2.0,), (1.0,))
    with refused(RuntimeError, "what it stands for would be lost"):
        tg.vmap(f)(X)
    with refused(RuntimeError, "would lose its gradient|would be lost"):
        tg.vmap(tg.grad(f))(X)


def test_numbers_where_no_gradient_is_wanted():
    assert tg.grad(lambda x: x * float(tg.stop_gradient(x)))(3.0) == 3.0
    assert tg.grad(lambda x: x * x.detach().item())(3.0) == 3.0
    assert tg.jvp(lambda x: x * float(tg.stop_gradient(x)), (3.0,), (1.0,)) == (9.0, 3.0)
    assert tg.grad(lambda x: x * float(f"{x:.1f}"))(3.0) == 3.0

    def under_no_grad(x):
        with tg.no_grad():
            return x * 1.0 if x.item() else x

    tg.grad(lambda x: x * under_no_grad(x).detach())(3.0)
    w = tg.tensor(2.0, requires_grad=True)
    assert float(w * w) == 4.0  # no transform is under way


ARRAYS = {
    "asarray": np.asarray,
    "array": lambda t: np.array([t, t]),
    "numpy": lambda t: t.numpy(),
    "arange": lambda t: np.arange(0.0, t),
}


@pytest.mark.parametrize("how", ARRAYS)
def test_arrays_of_followed_values(how):
    f = lambda x: np.sum(ARRAYS[how](x * 1.0)) * x
    with refused(RuntimeError, r"would lose its history: use `t\.detach\(\)\.numpy\(\)`"):
        tg.grad(f)(2.0)
    with refused(RuntimeError, "cannot be turned into an array"):
        tg.jvp(f, (2.0,), (1.0,))
    with refused(RuntimeError, "cannot be turned into an array"):
        tg.vmap(f)(X)


@pytest.mark.parametrize("make", [lambda t: tg.tensor(t), lambda t: tg.as_tensor([t, t])])
def test_new_tensors_of_followed_values(make):
    f = lambda x: np.sum(make(x * 1.0)) * x
    for call in (tg.grad(f), lambda x: tg.jvp(f, (x,), (1.0,)), lambda x: tg.vmap(f)(X * x)):
        with refused(RuntimeError, "a transform follows this one: use .*stack"):
            call(2.0)


def test_an_element_of_an_array_from_outside():
    outside = np.zeros(3)

    def f(x):
        outside[0] = x
        return x

    with pytest.raises(RuntimeError, match=r"would be lost: make the array with `tapegrad\.zeros"):
        tg.grad(f)(2.0)
    assert not outside.any()


def test_conditions():
    branch = lambda x: x * x if x > 1 and bool(x) else -x
    assert tg.grad(branch)(3.0) == 6.0
    assert tg.grad(branch)(0.5) == -1.0
    assert tg.jvp(branch, (3.0,), (1.0,)) == (9.0, 6.0)
    assert tg.grad(lambda x: max(x[0], x[1]) * min(x))(X).tolist() == pytest.approx([0, -1.1, 0.7])
    for f in (branch, lambda x: x if x else -x, lambda x: sorted([x, -x])[0]):
        with refused(RuntimeError, "Python cannot branch on it: use `tapegrad.where`"):
            tg.vmap(f)(X)
    assert tg.vmap(lambda x: x if X[0] > 0 else -x)(X).tolist() == X.tolist()


def test_values_that_are_kept_beyond_their_transform():
    kept = []

    def f(x):
        kept.append(x * 2)
        return x * x

    tg.jvp(f, (3.0,), (1.0,))
    with refused(RuntimeError, r"made inside a forward derivative .* used after that has ended"):
        kept[0] + 1
    tg.vmap(f)(X)
    with refused(RuntimeError, r"made inside a map .* used after that has ended: return it"):
        kept[1] + 1
    tg.grad(f)(3.0)
    with refused(RuntimeError, r"made inside `tapegrad.grad` .* after that has ended: return it"):
        kept[2] * 1.0
    with refused(RuntimeError, r"made inside `tapegrad.grad` .* after that has ended: return it"):
        tg.grad(lambda x: x * kept[2])(5.0)
    assert tg.grad(lambda x: x * tg.stop_gradient(kept[2]))(5.0) == 6.0


# -- maps ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "problem", "match"),
    [
        (lambda: tg.vmap(3), TypeError, "`vmap` takes a function, got int"),
        (lambda: tg.vmap(max)(X, X[:2]), ValueError, r"different numbers of examples: \[2, 3\]"),
        (lambda: tg.vmap(double, None)(X), ValueError, "at least one argument that is mapped"),
        (lambda: tg.vmap(double)(1.0), ValueError, r"no axis 0 in an argument of shape \(\)"),
        (lambda: tg.vmap(double, 1)(X), ValueError, r"no axis 1 in an argument of shape \(3,\)"),
        (lambda: tg.vmap(double, (0, 0))(X), ValueError, "`in_axes` has 2 entries for 1 values"),
        (lambda: tg.vmap(double, 0, None)(X), ValueError, "`out_axes` is None for a result"),
        (lambda: tg.vmap(double, 0, 2)(X), ValueError, "`out_axes` 2 is out of range"),
        (lambda: tg.vmap(lambda x: "a")(X), TypeError, "must return arrays, .* of type str"),
        (lambda: tg.vmap(double)(np.array([1, "a"], object)), TypeError, "dtype object"),
        (lambda: tg.vmap(lambda i: X[i])(np.array([0, 1])),
         RuntimeError, r"tapegrad\.tensor\(a\)\[i\]"),
        (lambda: tg.vmap(lambda x: tg.as_strided(x, (1,), (1,)))(np.ones((2, 3))).shape,
         RuntimeError, "`as_strided`"),
    ],
)  # fmt: skip
def test_maps(call, problem, match):
    with refused(problem, match):
        call()


def test_a_window_into_memory_under_jvp():
    window = lambda x: tg.as_strided(x, (2, 2), (1, 1))
    value, slope = tg.jvp(window, (X,), (2 * X,))
    np.testing.assert_allclose(slope, 2 * value)
    with refused(RuntimeError, "the tangent lies in memory in another way"):
        tg.jvp(window, (np.arange(6.0)[::2],), (X,))


def test_a_masked_array_is_refused():
    masked = np.ma.array([1.0, 2.0], mask=[False, True])
    for call in (tg.grad(np.sum), tg.jacfwd(np.sum), lambda x: tg.vjp(np.sum, x)):
        with refused(TypeError, "a masked array .* would lose its mask"):
            call(masked)


@pytest.mark.parametrize("name", ["hessian", "hvp", "vhp"])
def test_what_is_no_function_is_refused_by_its_own_name(name):
    with refused(TypeError, f"`{name}` takes a function, got int"):
        getattr(tg, name)(3)

"""Writes through views, and into what has views, of values that several levels follow.

Each program has a twin that changes nothing in place.  Every pair of transforms must give the same
for both, also through views that are older than a change.
"""

import numpy as np
import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("transforms of its own")

X, Y = np.array([0.3, 0.7, -1.1]), np.array([0.5, 2.0, 0.9])


def join(*parts):
    return np.concatenate([np.reshape(part, -1) for part in parts])


def through_a_view(x, y):
    z = tg.as_tensor(x) * 1.0
    v = z[:2]
    v *= y[:2]
    v += y[1:]
    return z * z


def through_a_view_of_a_view(x, y):
    z = tg.as_tensor(x) * 1.0
    w = z[:2][1:]
    w += y[:1] * x[:1]
    return z * np.sin(z)


def through_another_shape(x, y):
    z = tg.as_tensor(x) * 1.0
    z.reshape(3, 1).T[0].mul_(tg.as_tensor(y))
    return z * x


def by_assignment(x, y):
    z = tg.as_tensor(x) * 1.0
    v = z[::2]
    v[1] = y[0] * x[1]
    return z * z


def of_both(x, y):
    z = tg.as_tensor(x) * 1.0
    q = z[:1]
    q += x[1]
    v = z[:2]
    v *= y[1:]
    v += x[1:]
    return z * y


def read_from_the_view(x, y):
    v = (tg.as_tensor(x) * 1.0)[:2]
    v *= y[:2]
    return v * x[1:]


def base_before_view(x, y):
    z = tg.as_tensor(x) * 1.0
    v = z[1:]
    z *= y
    return v * v


def view_beside_view(x, y):
    z = tg.as_tensor(x) * 1.0
    v, w = z[:2], z[1:]
    v *= y[:2]
    return w * w


def turned_between(x, y):
    z = tg.as_tensor(x) * tg.ones(2, 1)
    v = z[0]
    v.unsqueeze_(0)
    v *= y
    return z[0] * z[1]


PROGRAMS = {
    through_a_view: lambda x, y: join(x[:2] * y[:2] + y[1:], x[2:]) ** 2,
    through_a_view_of_a_view: lambda x, y: (lambda z: z * np.sin(z))(
        join(x[0], x[1] + y[0] * x[0], x[2])
    ),
    through_another_shape: lambda x, y: x * y * x,
    by_assignment: lambda x, y: join(x[:2], y[0] * x[1]) ** 2,
    of_both: lambda x, y: join(join(x[0] + x[1], x[1]) * y[1:] + x[1:], x[2]) * y,
    read_from_the_view: lambda x, y: x[:2] * y[:2] * x[1:],
    base_before_view: lambda x, y: (x * y)[1:] ** 2,
    view_beside_view: lambda x, y: join(x[1] * y[1], x[2]) ** 2,
    turned_between: lambda x, y: x * y * x,
}
COMPILED = through_a_view, by_assignment, base_before_view
TRANSFORMS = {
    "jvp in x": lambda f: lambda x, y: tg.jvp(lambda x: f(x, y), (x,), (np.cos(x),))[1],
    "jvp in y": lambda f: lambda x, y: tg.jvp(lambda y: f(x, y), (y,), (np.cos(y),))[1],
    "vmap over x": lambda f: lambda x, y: np.sum(tg.vmap(lambda s: f(x * s, y))(x), 0),
    "vmap over y": lambda f: lambda x, y: np.sum(tg.vmap(lambda s: f(x, y * s))(x), 0),
    "vmap over both": lambda f: lambda x, y: np.sum(tg.vmap(lambda s, t: f(x * s, y * t))(x, y), 0),
    "grad": lambda f: lambda x, y: tg.grad(lambda y: np.sum(f(x, y)))(y),
    "vjp": lambda f: lambda x, y: (lambda z, back: back(z)[0])(*tg.vjp(lambda x: f(x, y), x)),
    "jacfwd": lambda f: lambda x, y: tg.jacfwd(lambda y: f(x, y))(y)[0],
    "hvp": lambda f: lambda x, y: tg.hvp(lambda y: np.sum(f(x, y)))(y, x),
    "jit": tg.jit,
}


def same(program, names):
    found, expected = program, PROGRAMS[program]
    for name in names:
        found, expected = TRANSFORMS[name](found), TRANSFORMS[name](expected)
    np.testing.assert_allclose(
        found(X, Y), expected(X, Y), rtol=1e-9, atol=1e-12, err_msg=f"{names}"
    )


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("outer", TRANSFORMS)
def test_views_under_two_transforms(program, outer):
    for inner in TRANSFORMS:
        compiled = (inner, outer).count("jit")
        if not compiled or (compiled == 1 and program in COMPILED):
            same(program, (inner, outer))


@pytest.mark.parametrize(
    "names",
    [
        ("jvp in y", "vmap over x", "jvp in x"),
        ("jvp in y", "jvp in x", "vmap over both"),
        ("vmap over y", "jvp in x", "grad"),
        ("jacfwd", "jvp in y", "jit"),
        ("hvp", "vmap over x", "jacfwd"),
    ],
    ids=" of ".join,
)
def test_views_under_three_transforms(names):
    for program in PROGRAMS:
        same(program, names)


def test_views_of_what_was_reshaped_in_place_cannot_be_lifted_higher():
    def f(x, y):
        z = x * tg.ones(2, 1)
        v = z[0]
        z.t_()
        v.mul_(y)
        return z

    def inner(x):
        return tg.jvp(lambda y: f(x, y), (tg.ones(3),), (tg.ones(3),))[1]

    with pytest.raises(RuntimeError, match="make the view anew"):
        tg.vmap(inner)(np.ones((2, 3)))


def test_a_result_that_is_an_older_view_is_not_a_constant():
    def f(y):
        z = tg.zeros(3)
        v, w = z[:2], z[1:]
        v += y
        return w

    value, slope = tg.jvp(f, (np.ones(2),), (np.ones(2),))
    np.testing.assert_array_equal(value, [1, 0])
    np.testing.assert_array_equal(slope, [1, 0])
    np.testing.assert_array_equal(tg.vmap(f)(np.ones((3, 2))), np.tile([1, 0], (3, 1)))


def constant_rows(x):
    z = np.zeros((2,) + np.shape(x)) + tg.zeros(1)
    first, rest = z[0], z[1:]
    z[1] = x
    first += x * x
    return first, rest


READERS = {
    "value": lambda v: v * v,
    "an argument of grad": lambda v: tg.grad(lambda u: np.sum(u * u * v))(v),
    "an argument of jvp": lambda v: tg.jvp(lambda u: u * u * v, (v,), (v,))[1],
    "captured by a loop": lambda v: tg.fori_loop(0, 2, lambda i, c: c * v, v + 1),
    "joined": lambda v: np.concatenate([v, v]),
    "without its history": lambda v: v.detach() * v,
    "printed": lambda v: (repr(v), v * v)[1],
    "changed in place": lambda v: v.mul_(2.0) + v,
    "solved for": lambda v: np.linalg.solve(2.0 * np.eye(3), v.reshape(3)),
}


@pytest.mark.parametrize("reader", READERS)
def test_views_that_are_older_than_a_write_into_a_constant(reader):
    read = READERS[reader]

    def older(x):
        first, rest = constant_rows(x)
        return np.sum(read(first)) + np.sum(read(rest))

    def younger(x):
        z = tg.stack([tg.as_tensor(x) * x, tg.as_tensor(x) * 1.0])
        return np.sum(read(z[0])) + np.sum(read(z[1:]))

    for name in ("grad", "jvp", "vmap", "vmap of jvp", "jvp of grad"):
        run = {
            "grad": lambda f: tg.grad(f)(X),
            "jvp": lambda f: tg.jvp(f, (X,), (Y,)),
            "vmap": lambda f: tg.vmap(f)(np.stack([X, Y])),
            "vmap of jvp": lambda f: tg.vmap(lambda x: tg.jvp(f, (x,), (x,))[1])(np.stack([X, Y])),
            "jvp of grad": lambda f: tg.jvp(tg.grad(f), (X,), (Y,)),
        }[name]
        np.testing.assert_allclose(run(older), run(younger), rtol=1e-12, err_msg=name)
    np.testing.assert_allclose(tg.jit(older)(X), younger(X), rtol=1e-12)

"""Arrays that a function makes and changes in place, under every transform and its nestings.

Each program has a twin that changes nothing in place; both must agree in all derivatives.
"""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.tape.tape import current

pytestmark = pytest.mark.tapegrad_only("transforms of its own")

X = np.array([0.3, 0.7, -1.1, 0.4])
MANY = np.stack([X, X + 0.5, X * 2])
PROGRAMS = {}


def program(function):
    def keep(twin):
        PROGRAMS[function.__name__] = function, twin
        return twin

    return keep


def put(y, k, value):
    """A new vector with another element."""
    return np.where(np.arange(y.shape[0]) == k, value, y)


def element_by_element(x):
    y = tg.zeros(4)
    for i in range(4):
        y[i] = x[i] * np.sin(x[i - 1])
    return y * x


@program(element_by_element)
def _(x):
    return x * np.sin(np.roll(x, 1)) * x


def rows_and_views(x):
    y = tg.zeros(3, 4)
    row = y[1]
    row.add_(x)
    row *= x
    y[0, :2] = x[:2] ** 2
    y[:, 3] += x[0]
    y.mul_(np.sin(x))
    return y.sum(0)


@program(rows_and_views)
def _(x):
    first = np.concatenate([x[:2] ** 2, np.zeros(2)])
    corner = np.array([0.0, 0.0, 0.0, 1.0]) * x[0]
    return (first + x * x + 3 * corner) * np.sin(x)


def views_of_a_copy(x):
    y = x.clone()
    v, w = y[1:3], y[0:1]
    w.mul_(y[3])
    y.sin_()
    v.add_(1.0)
    return y * x + w.sum()


@program(views_of_a_copy)
def _(x):
    y = np.sin(put(x, 0, x[0] * x[3])) + np.array([0.0, 1.0, 1.0, 0.0])
    return y * x + y[0]


def diagonals(x):
    y = tg.ones(2, 2)
    y.diagonal().copy_(x[:2] * x[2:])
    t = y.T
    t[0] = t[0].clone() * x[0]
    t[0, 1] *= x[3]
    return (y @ y).reshape(-1) * x


@program(diagonals)
def _(x):
    d = x[:2] * x[2:]
    y = np.stack([np.stack([d[0] * x[0], 1.0 + 0 * x[0]]), np.stack([x[0] * x[3], d[1]])])
    return (y @ y).reshape(-1) * x


def accumulated(x):
    y, total = tg.zeros(4), x.sum()
    for k in range(5):
        y += x**k / (k + 1)
        y[k % 4] = 0.0
        y[k % 4] -= total
    return y


@program(accumulated)
def _(x):
    y, total = 0 * x, x.sum()
    for k in range(5):
        y = put(y + x**k / (k + 1), k % 4, -total)
    return y


def by_arrays_and_masks(x):
    y = x * 1.0
    places = np.array([0, 2])
    y[places] = y[places] ** 2 * x[1]
    y[np.array([True, False, False, True])] = x[2]
    return y * x


@program(by_arrays_and_masks)
def _(x):
    return np.stack([x[2], x[1], x[2] ** 2 * x[1], x[2]]) * x


def steps_and_like(x):
    y = np.zeros_like(x)
    y[...] = x
    y[::2] *= y[1::2]
    z = y
    z.mul_(2.0)
    return y + z


@program(steps_and_like)
def _(x):
    return 4 * np.stack([x[0] * x[1], x[1], x[2] * x[3], x[3]])


def reshaped(x):
    y = x.clone()
    v = y.reshape(2, 2)
    v[0] = v[0].clone() * v[1].clone()
    v.unsqueeze(0).squeeze(0).transpose(0, 1).exp_()
    return y * y


@program(reshaped)
def _(x):
    return np.exp(np.concatenate([x[:2] * x[2:], x[2:]])) ** 2


def overwritten(x):
    y, z = tg.zeros(4), tg.zeros(2, 4)
    y.copy_(x)
    z[0] = y
    z[1] = 2 * y
    y.zero_()
    z[0].clamp_(-0.5, 0.5)
    z[1].masked_fill_(tg.tensor([True, False, False, True]), 3.0)
    return (z * x).sum(0) + y


@program(overwritten)
def _(x):
    second = np.stack([0 * x[0] + 3.0, 2 * x[1], 2 * x[2], 0 * x[0] + 3.0])
    return (np.clip(x, -0.5, 0.5) + second) * x


def a_buffer_that_an_inner_transform_copies(x):
    buffer = tg.zeros(4)

    def inner(a):
        own = buffer.clone()
        own[0] = a * x[0]
        own[1:3] = a
        return (own * x).sum()

    buffer[3] = x[1] ** 2
    return tg.grad(inner)(x[2]) * x + buffer


@program(a_buffer_that_an_inner_transform_copies)
def _(x):
    return (x[0] ** 2 + x[1] + x[2]) * x + np.array([0.0, 0.0, 0.0, 1.0]) * x[1] ** 2


def a_buffer_of_each_example(x):
    def inner(a):
        y = tg.zeros(2)
        y[0] = a * x[0]
        y[1] = y[0].clone() * a
        y += y.clone() ** 2
        return y

    return tg.vmap(inner)(x).sum(1)


@program(a_buffer_of_each_example)
def _(x):
    a, b = x * x[0], x * x * x[0]
    return a + b + a**2 + b**2


def elimination_in_place(x):
    a = np.outer(x, np.cos(x)) + 3 * np.eye(4)
    for k in range(4):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return np.diag(a)


@program(elimination_in_place)
def _(x):
    a = np.outer(x, np.cos(x)) + 3 * np.eye(4)
    minors = np.stack([np.linalg.det(a[:k, :k]) for k in range(1, 5)])
    return minors / np.concatenate([np.ones(1), minors[:-1]])


def relaxation_of_what_was_multiplied(x):
    y = x.copy()
    for _ in range(3):
        y[1:-1] = y[1:-1] * y[2:] + y[:-2]
        y *= np.exp(0.1 * y)
    return y


@program(relaxation_of_what_was_multiplied)
def _(x):
    for _ in range(3):
        x = np.concatenate([x[:1], x[1:-1] * x[2:] + x[:-2], x[-1:]])
        x = x * np.exp(0.1 * x)
    return x


def a_buffer_used_again(x):
    out, row = np.zeros_like(x), np.zeros_like(x)
    for i in range(4):
        row[:] = x * i
        row **= 2
        out[i] = row @ row
        row /= out[i] + 1
        out[i] += row.sum()
    return out


@program(a_buffer_used_again)
def _(x):
    squares = [(x * i) ** 2 for i in range(4)]
    return np.stack([s @ s + (s / (s @ s + 1)).sum() for s in squares])


def total(f):
    return lambda x: (f(x) ** 2).sum()


TRANSFORMS = {
    "value": lambda f: tg.vjp(f, X)[0],
    "grad": lambda f: tg.grad(total(f))(X),
    "jvp": lambda f: tg.jvp(f, (X,), (np.cos(X),)),
    "vmap": lambda f: tg.vmap(f)(MANY),
    "jacfwd": lambda f: tg.jacfwd(f)(X),
    "jacrev": lambda f: tg.jacrev(f)(X),
    "linearize": lambda f: tg.linearize(f, X)[1](np.cos(X)),
    "hessian": lambda f: tg.hessian(total(f))(X),
    "checkpoint": lambda f: tg.grad(tg.checkpoint(total(f)))(X),
    "jvp of jvp": lambda f: tg.jvp(lambda y: tg.jvp(f, (y,), (y * y,)), (X,), (np.cos(X),)),
    "grad of jvp": lambda f: tg.grad(lambda y: tg.jvp(total(f), (y,), (X,))[1])(X),
    "jacfwd of jacrev": lambda f: tg.jacfwd(tg.jacrev(f))(X),
    "vmap of grad": lambda f: tg.vmap(tg.grad(total(f)))(MANY),
    "grad of vmap": lambda f: tg.grad(lambda m: (tg.vmap(f)(m) ** 2).sum())(MANY),
    "vmap of vmap": lambda f: tg.vmap(tg.vmap(f, 1), 2)(np.stack([MANY.T, MANY.T - 0.3], 2)),
    "vmap of jvp": lambda f: tg.vmap(lambda x: tg.jvp(f, (x,), (x * x,)))(MANY),
    "jvp of vmap": lambda f: tg.jvp(tg.vmap(f), (MANY,), (np.sin(MANY),)),
    "vmap of hessian": lambda f: tg.vmap(tg.hessian(total(f)))(MANY),
}


OVERWRITES = elimination_in_place, relaxation_of_what_was_multiplied, a_buffer_used_again


@pytest.mark.parametrize("how", TRANSFORMS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_in_place_and_not(name, how):
    function, twin = PROGRAMS[name]
    if how == "checkpoint" and function in OVERWRITES:  # which keeps what the function read
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            TRANSFORMS[how](function)
        return
    found, expected = TRANSFORMS[how](function), TRANSFORMS[how](twin)
    pairs = zip(*[x if isinstance(x, tuple) else (x,) for x in (found, expected)], strict=True)
    for a, b in pairs:
        assert type(a) is type(b)
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def test_a_value_that_was_saved_and_changed_has_been_copied():
    def f(x):
        y = x.clone()
        z = y * y
        y[0] = 1.0
        return z.sum()

    np.testing.assert_array_equal(tg.grad(f)(X), 2 * X)
    np.testing.assert_array_equal(tg.vmap(tg.grad(f))(MANY), 2 * MANY)
    np.testing.assert_allclose(tg.jvp(f, (X,), (X,))[1], 2 * np.sum(X**2))
    # A user's own Tensors, and the transforms of `func`, follow PyTorch's rule.
    leaf = tg.tensor(X, requires_grad=True)
    for gradient in (lambda: f(leaf).backward(), lambda: tg.func.grad(f)(tg.tensor(X))):
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            gradient()


def test_copies_are_made_once_and_forgotten():
    def f(x):
        y = x * 1.0
        z = (y * y).sum()  # saves y, which the first change copies
        for _ in range(50):
            y += x
        tape = current.tape
        entries = tape.keep[tape.first_from(tape.transform_start) : tape.used]
        kept = [v for entry in entries for v in entry or () if isinstance(v, np.ndarray)]
        assert len({id(v) for v in kept if v.shape == X.shape}) <= 2
        return z + y.sum()

    for _ in range(3):
        np.testing.assert_allclose(tg.grad(f)(X), 2 * X + 51)
        assert sum(map(len, current.tape.saved.positions.values())) < 10


def test_arguments_are_not_changed():
    before = X.copy()
    tg.grad(lambda x: ((x * 1).mul_(2.0) ** 2).sum())(X)
    tg.jvp(lambda x: (x.clone()).mul_(x), (X,), (X,))
    tg.vmap(lambda x: x.clone().zero_())(MANY)
    np.testing.assert_array_equal(X, before)


CALLS = {
    **{name: getattr(tg, name) for name in ("grad", "jacobian", "jacfwd", "jacrev", "hessian")},
    "of several": lambda f: tg.grad(f, argnums=(0,)),
    "vjp": lambda f: lambda x: tg.vjp(f, x),
    "jvp": lambda f: lambda x: tg.jvp(f, (x,), (x * 1,)),
    "linearize": lambda f: lambda x: tg.linearize(f, x),
    "hvp": lambda f: lambda x: tg.hvp(f)(x, x * 1),
    "checkpoint": lambda f: tg.grad(tg.checkpoint(f)),
    "vmap": lambda f: lambda x: tg.vmap(f)(x.reshape(2, 2)),
    "vmap of grad": lambda f: lambda x: tg.vmap(tg.grad(f))(x.reshape(2, 2)),
    "func.jvp": lambda f: lambda x: tg.func.jvp(f, (tg.from_numpy(x),), (tg.ones(4),)),
    "func.grad": lambda f: lambda x: tg.func.grad(f)(tg.from_numpy(x)),
}
CHANGES = {
    "mul_": lambda x: x.mul_(2.0),
    "assignment": lambda x: x.__setitem__(0, 5.0),
    "view": lambda x: x[:1].add_(1.0),
    "detached": lambda x: x.detach().mul_(2.0),
    "no_grad": tg.no_grad()(lambda x: x.mul_(2.0)),
}


@pytest.mark.parametrize("how", CALLS)
@pytest.mark.parametrize("change", CHANGES)
def test_an_argument_that_would_be_changed_is_refused(how, change):
    given = X.copy()

    def f(x):
        CHANGES[change](x)
        return (x * x).sum()

    with pytest.raises(RuntimeError, match=r"read-only|leaf that requires grad"):
        CALLS[how](f)(given)
    np.testing.assert_array_equal(given, X)


@pytest.mark.parametrize("change", CHANGES)
def test_func_vmap_changes_the_callers_tensor_as_in_pytorch(change):
    given = tg.from_numpy(X.reshape(2, 2).copy())
    expected = given.clone()
    for row in expected:
        CHANGES[change](row)
    tg.func.vmap(lambda x: (CHANGES[change](x), x * 1)[1])(given)
    np.testing.assert_array_equal(given.numpy(), expected.numpy())
    assert given._version == 1
    leaf = given.clone().requires_grad_()
    if change not in ("detached", "no_grad"):
        with pytest.raises(RuntimeError, match=r"leaf that requires grad"):
            tg.func.vmap(lambda x: CHANGES[change](x))(leaf)


def test_an_argument_that_is_returned_is_a_copy():
    given = X.copy()
    for found in (tg.vjp(lambda x: x, given)[0], tg.jvp(lambda x: x, (given,), (X,))[0]):
        found += 1.0
    np.testing.assert_array_equal(given, X)


@pytest.mark.parametrize(
    "transform",
    [tg.vmap, tg.jit, lambda f: lambda x: tg.jvp(f, (x,), (x,))],
    ids=["vmap", "jit", "jvp"],
)
def test_an_older_view_of_what_a_transform_took_over_follows(transform):
    def f(x, older):
        z = tg.zeros(2, 3)
        row = z[0]
        z.add_(x.sum())
        return (row if older else z[0]) * 1

    x = np.arange(6.0).reshape(2, 3)
    found, wanted = (transform(lambda x, older=older: f(x, older))(x) for older in (True, False))
    np.testing.assert_array_equal(found, wanted)


# What NumPy has no array for is a number: `+=` gives its name another one, and changes nothing.
def sums(x):
    total, found = 0.0, []
    for v in x:
        total += v
        found.append(total)
    return np.stack(found)


def two_names(x):
    a = np.prod(x)
    b = a
    a -= x[0]
    a *= 2.0
    a /= x[1]
    a **= 2
    return np.stack([a, b])


def an_element(x):
    y = x * 1.0
    first = y[0]
    first += 5.0
    return y


def counting(x):
    n = np.argmax(x)
    before = n
    n += 1
    n //= 2
    return x * before + n


def parts(x):
    a, b = np.imag(np.sum(1j * x)), np.fft.fft(x)[1].real
    before = a, b
    a += x[0]
    b *= 2.0
    return np.stack([a, b, *before])


WAYS = {
    "vjp": lambda f: lambda x: tg.vjp(f, x)[0],
    "jvp": lambda f: lambda x: tg.jvp(f, (x,), (x,))[0],
    "vmap": lambda f: lambda x: tg.vmap(f)(x[None])[0],
    "jit": tg.jit,
    "jit of a derivative": lambda f: tg.jit(lambda x: tg.vjp(f, x)[0]),
    "nested": lambda f: lambda x: tg.jvp(lambda x: tg.vjp(f, x)[0], (x,), (x,))[0],
}


@pytest.mark.parametrize("f", [sums, two_names, an_element, counting, parts])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_a_number_is_not_changed(f, way, kind):
    x = np.array([3.0, 1.0, 2.0], kind)
    np.testing.assert_allclose(WAYS[way](f)(x), f(x), rtol=1e-6)


def test_a_tensor_of_ones_own_is_changed_as_by_pytorch():
    a = b = tg.tensor(1.0)
    a += 1.0
    assert b.item() == 2.0
    c = tg.func.vmap(lambda x: two_torch(x))(tg.ones(2))
    np.testing.assert_array_equal(c, [2.0, 2.0])


def two_torch(x):
    a = b = x * 1.0
    a += 1.0
    return b


def test_views_of_what_a_lifted_value_was_written_into():
    """A constant that is written into through a view is lifted then, with its views."""

    def f(x):
        constant = tg.tensor(np.ones(3)) * 1.0
        seen = np.expand_dims(constant, 0)
        seen[...] = np.sin(x)
        return np.sum(np.transpose(seen) ** 2) + np.sum(seen[0, 1:] * constant[:-1])

    x, v = np.array([0.1, 0.2, 0.3]), np.array([1.0, -2.0, 0.5])
    s = np.sin(x)
    want = 2 * s * v @ np.cos(x)
    want += np.cos(x[1:]) * v[1:] @ s[:-1] + s[1:] @ (np.cos(x[:-1]) * v[:-1])
    np.testing.assert_allclose(tg.jvp(f, (x,), (v,))[1], want)
    along = tg.jvp(tg.grad(f), (x,), (v,))[1]
    np.testing.assert_allclose(along, tg.hvp(f)(x, v))
    twice = tg.jvp(lambda x: tg.jvp(f, (x,), (v,))[1], (x,), (v,))[1]
    np.testing.assert_allclose(twice, np.dot(along, v))
    np.testing.assert_allclose(tg.vmap(f)(np.stack([x, v])), [f(x).item(), f(v).item()])


@pytest.mark.parametrize("part", [np.real, np.imag])
def test_writes_into_a_part_of_complex_numbers(part):
    """All rows of a Jacobian at once, through the view that the part is."""

    def f(x):
        y = part((1.0 + 2.0j) * x)
        y[1:] *= x[:2]
        return y

    def wanted(x):
        y = part(1.0 + 2.0j) * x
        return np.concatenate([y[:1], y[1:] * x[:2]])

    x = np.array([0.3, -1.2, 0.5])
    for transform in (tg.jacrev, tg.jacfwd, lambda f: tg.jit(tg.jacrev(f))):
        np.testing.assert_allclose(transform(f)(x), tg.jacfwd(wanted)(x), rtol=1e-14)


LOOPS = {
    "scan": lambda trip, y: tg.scan(lambda y, i: (trip(i, y), None), y, np.arange(3))[0],
    "fori_loop": lambda trip, y: tg.fori_loop(0, 3, trip, y),
    "while_loop": lambda trip, y: tg.while_loop(
        lambda c: c[0] < 3, lambda c: (c[0] + 1, trip(c[0], c[1])), (0, y)
    )[1],
}


@pytest.mark.parametrize("name", LOOPS)
def test_loops_write_into_a_first_carry_of_constants(name):
    start = np.zeros(4)

    def f(x):
        def trip(i, y):
            y = y.copy()
            y[1:] += x[:3] * y[:3].sum()
            y[0] = x[0]
            return y

        return np.sum(LOOPS[name](trip, start) ** 2)

    x = np.array([0.5, -1.0, 2.0])
    step = 1e-6 * np.eye(3)
    slopes = [(f(x + e) - f(x - e)) / 2e-6 for e in step]
    for g in (
        tg.grad(f),
        tg.jit(tg.grad(f)),
        tg.jacfwd(f),
        lambda x: tg.vmap(tg.grad(f))(x[None])[0],
    ):
        np.testing.assert_allclose(g(x), slopes, rtol=1e-6)
    assert not start.any()

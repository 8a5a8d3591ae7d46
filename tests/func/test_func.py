"""`tg.func`: PyTorch's transforms. Runs on PyTorch itself with --library=torch."""

import numpy as np
import pytest

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")


@pytest.fixture
def x(tg):
    return tg.tensor([1.0, 2.0, 3.0])


@pytest.fixture
def rows(tg):
    return tg.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def same(found, expected):
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-12)


def cube(x):
    return (x**3).sum()


def test_grad_and_value_is_a_pair_gradient_first(tg, x):
    gradient, value = tg.func.grad_and_value(cube)(x)
    same(gradient, [3.0, 12.0, 27.0])
    assert value.item() == 36.0


def test_grad_and_value_with_aux(tg, x):
    found, (value, aux) = tg.func.grad_and_value(lambda x: (cube(x), {"k": x}), has_aux=True)(x)
    same(found, [3.0, 12.0, 27.0])
    assert value.item() == 36.0
    same(aux["k"], [1.0, 2.0, 3.0])
    assert not aux["k"].requires_grad


def test_gradients_of_several_arguments_and_of_dictionaries(tg, x):
    first, second = tg.func.grad(lambda a, b: (a * b * b).sum(), argnums=(0, -1))(x, 2 * x)
    same(first, [4.0, 16.0, 36.0])
    same(second, [4.0, 16.0, 36.0])
    found = tg.func.grad(lambda d: (d["a"] * d["b"]).sum())({"a": x, "b": 2 * x})
    same(found["a"], [2.0, 4.0, 6.0])


def test_vjp_takes_what_has_the_structure_of_the_output(tg, x):
    output, vjp_fn, aux = tg.func.vjp(lambda a: ((a * a, a.sum()), a), x, has_aux=True)
    same(output[0], [1.0, 4.0, 9.0])
    same(aux, [1.0, 2.0, 3.0])
    weights = tg.tensor([1.0, 0.0, 1.0]), tg.tensor(10.0)
    for _ in range(2):
        (found,) = vjp_fn(weights)
        same(found, [12.0, 10.0, 16.0])


def test_jvp(tg, x):
    output, slope, aux = tg.func.jvp(lambda a: (a * a, a), (x,), (x,), has_aux=True)
    same(output, [1.0, 4.0, 9.0])
    same(slope, [2.0, 8.0, 18.0])
    same(aux, [1.0, 2.0, 3.0])
    same(tg.func.jvp(lambda a: tg.ones(2), (x,), (x,))[1], [0.0, 0.0])


@pytest.mark.parametrize("name", ["jacrev", "jacfwd"])
def test_jacobians_of_tuples(tg, x, name):
    y = tg.ones(2)
    found = getattr(tg.func, name)(lambda a, b: (a.sum() * b, a), argnums=(0, 1))(x, y)
    same(found[0][0], np.ones((2, 3)))
    same(found[0][1], 6 * np.eye(2))
    same(found[1][0], np.eye(3))
    same(found[1][1], np.zeros((3, 2)))


@pytest.mark.parametrize("chunk_size", [None, 1, 2, 3, 7])
def test_rows_in_chunks(tg, x, chunk_size):
    same(tg.func.jacrev(lambda a: a * a, chunk_size=chunk_size)(x), np.diag([2.0, 4.0, 6.0]))


def test_hessian_of_a_function_with_several_results(tg, x):
    found = tg.func.hessian(lambda a: a**3)(x)
    expected = np.zeros((3, 3, 3))
    expected[range(3), range(3), range(3)] = [6.0, 12.0, 18.0]
    same(found, expected)


def test_what_is_captured_is_recorded(tg, x):
    w = tg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    for found in (
        tg.func.grad(lambda a: (a * w).sum())(x),
        tg.func.jvp(lambda a: a * w, (x,), (tg.ones(3),))[1],
        tg.func.vmap(lambda a: a * w)(tg.ones(1, 3))[0],
        tg.func.jacrev(lambda a: (a * w).sum())(x),
        tg.func.jacfwd(lambda a: (a * w).sum())(x),
    ):
        same(tg.autograd.grad(found.sum(), w)[0], [1.0, 1.0, 1.0])


def test_vmap_in_and_out(tg, rows, x):
    vmap = tg.func.vmap
    same(vmap(tg.dot, in_dims=(0, None))(rows, x), [14.0, 32.0])
    same(vmap(lambda a: a.sum(), in_dims=1)(rows), [5.0, 7.0, 9.0])
    same(vmap(lambda a: 2 * a, in_dims=-1, out_dims=-1)(rows), 2 * np.array(rows.tolist()))
    columns, sums = vmap(lambda a: (a, {"s": a.sum()}), out_dims=(1, 0))(rows)
    assert tuple(columns.shape) == (3, 2)
    same(sums["s"], [6.0, 15.0])
    same(vmap(lambda a: tg.ones(2), out_dims=None)(rows), [1.0, 1.0])
    same(vmap(lambda d: d["a"] * 2, in_dims=({"a": 1},))({"a": rows})[0], [2.0, 8.0])


def test_keyword_arguments_are_the_same_for_all_examples(tg, rows):
    assert tuple(tg.func.vmap(lambda a, k: a + k)(rows, k=rows).shape) == (2, 2, 3)


@pytest.mark.parametrize("chunk_size", [1, 2, 5])
def test_examples_in_chunks(tg, rows, chunk_size):
    mapped = tg.func.vmap(lambda a: (a, a.sum()), in_dims=1, out_dims=(1, 0), chunk_size=chunk_size)
    both, sums = mapped(rows)
    same(both, rows.tolist())
    same(sums, [5.0, 7.0, 9.0])


@pytest.mark.parametrize("chunk_size", [None, 1])
def test_random_numbers_under_a_map(tg, rows, chunk_size):
    def draws(randomness):
        mapped = tg.func.vmap(
            lambda a: tg.randn(3) + 0 * a, randomness=randomness, chunk_size=chunk_size
        )
        return mapped(rows)

    with pytest.raises(RuntimeError, match=r"random"):
        draws("error")
    first, second = draws("same")
    assert first.tolist() == second.tolist()
    first, second = draws("different")
    assert first.tolist() != second.tolist()


def test_nested_maps_draw_for_each_example(tg):
    def draw(a):
        return a * 0 + tg.rand_like(a)

    outer = tg.func.vmap(tg.func.vmap(draw, randomness="different"), randomness="different")
    assert len({*outer(tg.zeros(2, 3)).reshape(-1).tolist()}) == 6
    outer = tg.func.vmap(tg.func.vmap(draw, randomness="same"), randomness="different")
    assert [len({*row}) for row in outer(tg.zeros(2, 3)).tolist()] == [1, 1]


def test_autograd_grad_inside_transforms(tg, x, rows):
    def slope(a):
        return tg.autograd.grad((a**3).sum(), a, create_graph=True)[0].sum()

    gradient = tg.func.grad(slope)
    same(gradient(x), [6.0, 12.0, 18.0])
    same(tg.func.vmap(gradient)(rows), 6 * np.array(rows.tolist()))
    same(tg.func.jvp(gradient, (x,), (tg.ones(3),))[1], [6.0, 6.0, 6.0])


ERRORS = {
    "gradient of a vector": (RuntimeError, lambda f, x: f.grad(lambda a: a)(x)),
    "gradient of one element": (RuntimeError, lambda f, x: f.grad(lambda a: a[:1])(x)),
    "gradient of a number": (RuntimeError, lambda f, x: f.grad(lambda a: 2.0)(x)),
    "gradient in a number": (ValueError, lambda f, x: f.grad(lambda a: a)(2.0)),
    "gradient in integers": (RuntimeError, lambda f, x: f.grad(lambda a: a.sum())(x.long())),
    "argnums out of range": (RuntimeError, lambda f, x: f.grad(cube, argnums=1)(x)),
    "argnums a list": (RuntimeError, lambda f, x: f.grad(cube, argnums=[0])(x)),
    "argnums empty": (RuntimeError, lambda f, x: f.grad(cube, argnums=())(x)),
    "no aux": (RuntimeError, lambda f, x: f.grad(cube, has_aux=True)(x)),
    "vjp of a number": (RuntimeError, lambda f, x: f.vjp(lambda a: 2.0, x)),
    "cotangent shape": (RuntimeError, lambda f, x: f.vjp(lambda a: a, x)[1](x[:2])),
    "cotangent structure": (RuntimeError, lambda f, x: f.vjp(lambda a: (a, a), x)[1](x)),
    "primals no tuple": (RuntimeError, lambda f, x: f.jvp(cube, x, x)),
    "primals empty": (RuntimeError, lambda f, x: f.jvp(lambda: x, (), ())),
    "primals numbers": (RuntimeError, lambda f, x: f.jvp(lambda a: a, (2.0,), (1.0,))),
    "tangents count": (RuntimeError, lambda f, x: f.jvp(cube, (x,), (x, x))),
    "tangents shape": (RuntimeError, lambda f, x: f.jvp(cube, (x,), (x[:2],))),
    "jvp strict": (RuntimeError, lambda f, x: f.jvp(lambda a: x, (x,), (x,), strict=True)),
    "chunk of rows": (ValueError, lambda f, x: f.jacrev(cube, chunk_size=0)(x)),
    "chunk": (ValueError, lambda f, x: f.vmap(cube, chunk_size=0)(x)),
    "randomness": (RuntimeError, lambda f, x: f.vmap(cube, randomness="x")(x)),
    "out_dims None": (ValueError, lambda f, x: f.vmap(lambda a: a, out_dims=None)(x)),
    "out_dims range": (IndexError, lambda f, x: f.vmap(lambda a: a, out_dims=1)(x)),
    "a map to numbers": (ValueError, lambda f, x: f.vmap(lambda a: 2.0)(x)),
    "a map to None": (ValueError, lambda f, x: f.vmap(lambda a: None)(x)),
    "in_dims a list": (ValueError, lambda f, x: f.vmap(cube, in_dims=[0])(x)),
    "in_dims None": (ValueError, lambda f, x: f.vmap(cube, in_dims=(None,))(x)),
    "in_dims range": (ValueError, lambda f, x: f.vmap(cube, in_dims=1)(x)),
    "in_dims length": (ValueError, lambda f, x: f.vmap(cube, in_dims=(0, 0))(x)),
    "a map over numbers": (ValueError, lambda f, x: f.vmap(lambda a, b: a)(x, 2.0)),
    "sizes": (ValueError, lambda f, x: f.vmap(lambda a, b: a)(x, x[:2])),
    "no arguments": (ValueError, lambda f, x: f.vmap(lambda: x)()),
    "a condition": (RuntimeError, lambda f, x: f.vmap(lambda a: a if a > 0 else -a)(x)),
    "backward": (RuntimeError, lambda f, x: f.vmap(lambda a: a.backward())(x.requires_grad_())),
    "requires_grad": (RuntimeError, lambda f, x: f.vmap(lambda a: a.requires_grad_())(x)),
}


@pytest.mark.parametrize("case", ERRORS.values(), ids=ERRORS)
def test_errors(tg, x, case):
    kind, call = case
    with pytest.raises(kind):
        call(tg.func, x)


@pytest.mark.tapegrad_only("PyTorch forgets such hooks")
def test_hooks_on_lifted_tensors_are_refused(tg, x):
    w = tg.ones(3, requires_grad=True)
    for act in (lambda t: t.register_hook(print), lambda t: t.retain_grad()):
        with pytest.raises(RuntimeError, match=r"hooks and `retain_grad` of a Tensor under a map"):
            tg.func.vmap(lambda a, act=act: act(a * w))(tg.ones(2, 3))


def _leaves(tree):
    if isinstance(tree, (tuple, list)):
        return [leaf for part in tree for leaf in _leaves(part)]
    return [tree] if hasattr(tree, "requires_grad") else []


@pytest.mark.filterwarnings("ignore::UserWarning:torch")
@pytest.mark.parametrize("quiet", ["no_grad", "inference_mode"])
def test_under_no_grad_nothing_that_comes_out_requires_grad(tg, quiet):
    x, ones = tg.ones(3, requires_grad=True), tg.ones(3)

    def vjp(x):
        y, back, aux = tg.func.vjp(lambda x: (x**2, x * 3), x, has_aux=True)
        return y, aux, back(ones)

    def linearize(x):
        y, slope = tg.func.linearize(lambda x: x**2, x)
        return y, slope(ones)

    calls = {
        "vjp": vjp,
        "vjp of a closure": lambda x: tg.func.vjp(lambda y: y * x, ones)[0],
        "grad": lambda x: tg.func.grad(cube)(x),
        "grad_and_value": lambda x: tg.func.grad_and_value(cube)(x),
        "aux": lambda x: tg.func.grad(lambda x: (cube(x), x * 2), has_aux=True)(x),
        "jvp": lambda x: tg.func.jvp(cube, (x,), (ones,)),
        "jacrev": lambda x: tg.func.jacrev(lambda x: x**2)(x),
        "jacfwd": lambda x: tg.func.jacfwd(lambda x: x**2)(x),
        "vmap": lambda x: tg.func.vmap(tg.func.grad(lambda t: t**2))(x),
    }
    if quiet == "no_grad":
        calls["linearize"] = linearize
    for name, call in calls.items():
        with getattr(tg, quiet)():
            found = _leaves(call(x))
        assert found, name
        assert not any(t.requires_grad for t in found), name


@pytest.mark.tapegrad_only("transforms of its own")
def test_under_no_grad_within_a_transform_a_value_is_a_constant(tg):
    def f(x):
        with tg.no_grad():
            y = tg.vjp(lambda x: x**2, x)[0]
            z = tg.linearize(lambda x: x**2, x)[0]
        return np.sum((y + z) * x)

    for g in (tg.grad(f), tg.jit(tg.grad(f)), tg.grad(tg.jit(f))):
        np.testing.assert_allclose(g(np.array([3.0])), [18.0])


def test_one_result_takes_its_dimension_in_a_tuple(tg):
    x = tg.arange(6.0).reshape(2, 3)
    assert tg.func.vmap(lambda a: a * 2, out_dims=(1,))(x).tolist() == (x * 2).T.tolist()
    assert tg.func.vmap(lambda a: (a,), out_dims=(1,))(x)[0].tolist() == x.T.tolist()
    with pytest.raises(ValueError, match="out_dims"):
        tg.func.vmap(lambda a: a * 2, out_dims=(1, 0))(x)

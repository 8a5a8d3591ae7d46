"""A name that is missing is an AttributeError that says what there is instead."""

import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("what this library has not")

INSTEAD = [
    (tg, "Module", "layers are not here"),
    (tg.nn, "Linear", "layers are not here"),
    (tg.nn, "Conv2d", "layers are not here"),
    (tg.nn, "MSELoss", "layers are not here"),
    (tg, "Linear", "tapegrad.optim"),
    (tg, "compile", "`tapegrad.jit`"),
    (tg, "FloatTensor", "tapegrad.tensor"),
    (tg, "sparse_coo_tensor", "no sparse Tensors"),
    (tg, "bfloat16", "use float32"),
    (tg.ones(1), "resize_", "memory is NumPy's"),
    (tg.ones(1), "to_sparse", "no sparse Tensors"),
    (tg, "clampp", "did you mean `clamp`"),
    (tg.autograd, "gradd", "did you mean `grad`"),
    (tg.nn.functional, "softmx", "did you mean `softmax`"),
    (tg.linalg, "slv", "did you mean `solve`"),
    (tg.func, "jacfw", "did you mean `jacfwd`"),
    (tg.special, "expitt", "did you mean `expit`"),
    (tg, "utils", "`tapegrad.checkpoint(f)(x)`"),
    (tg.ones(1), "cuda", "`device='cpu'`"),
    (tg, "solve_ivp", "`tapegrad.scipy.integrate`"),
    (tg, "set_default_tensor_type", "`tapegrad.set_default_dtype(tapegrad.float64)`"),
    (tg, "symeig", "`tapegrad.linalg.eigh`"),
    (tg, "use_deterministic_algorithms", "computes on the CPU alone"),
    (tg.nn, "init", "`w.uniform_(-a, a)`"),
    (tg.ones(1), "apply_", "`tapegrad.vmap(f)(t)`"),
    (tg, "random", "`tapegrad.randn`"),
    (tg, "amp", "no mixed precision"),
    (tg, "lax", "`switch`"),
    (tg, "associative_scan", "`tapegrad.scan`"),
    (tg, "linear_transpose", "`tapegrad.vjp(f, x)[1]`"),
    (tg.nn, "relu", "it is in `tapegrad.nn.functional`"),
    (tg.ones(1), "at", "`y = x.copy(); y[i] = v`"),
    (tg, "nothing_of_the_kind", "the page Limits"),
]


@pytest.mark.parametrize(("thing", "name", "says"), INSTEAD, ids=[n for _, n, _ in INSTEAD])
def test_it_says_what_there_is(thing, name, says):
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'") as caught:
        getattr(thing, name)
    assert says in str(caught.value)
    assert not hasattr(thing, name)


def test_python_is_told_where_to_look_for_what_is_near_in_a_tensor():
    x = tg.ones(1)
    with pytest.raises(AttributeError) as caught:
        _ = x.clampp
    assert caught.value.name == "clampp"
    assert caught.value.obj is x


def test_pytorchs_constructors_and_arguments_are_named():
    with pytest.raises(TypeError, match=r"`tapegrad\.tensor\(data\)`, one of a shape with"):
        tg.Tensor([1.0, 2.0])
    with pytest.raises(TypeError, match=r"got 'in_dims': .* is `tapegrad\.func\.vmap`"):
        tg.vmap(lambda x: x, in_dims=0)

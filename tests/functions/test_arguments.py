"""Names of arguments that PyTorch has, and arguments that are refused."""

import copy

import pytest

NAMED = {
    "flip": (lambda x: x.flip(dims=(0,)), lambda x: x.flip(0)),
    "permute": (lambda x: x.permute(dims=(1, 0)), lambda x: x.permute(1, 0)),
    "reshape": (lambda x: x.reshape(shape=(3, -1)), lambda x: x.reshape(3, 2)),
    "view": (lambda x: x.view(size=(3, 2)), lambda x: x.view(3, 2)),
    "expand": (lambda x: x.expand(size=(2, 2, 3)), lambda x: x.expand(2, 2, 3)),
    "broadcast_to": (lambda x: x.broadcast_to(size=(2, 2, 3)), lambda x: x.expand(2, 2, 3)),
    "swapaxes": (lambda x: x.swapaxes(axis0=0, axis1=1), lambda x: x.t()),
    "swapdims": (lambda x: x.swapdims(dim0=0, dim1=1), lambda x: x.t()),
    "tile": (lambda x: x.tile(dims=(2,)), lambda x: x.tile(2)),
    "split": (lambda x: x.split(split_size=1)[0], lambda x: x[:1]),
    "tensor_split": (lambda x: x.tensor_split(sections=2)[0], lambda x: x[:1]),
    "tensor_split, indices": (lambda x: x.tensor_split(indices=(1,))[1], lambda x: x[1:]),
    "var": (lambda x: x.var(axis=0), lambda x: x.var(0)),
}


@pytest.mark.parametrize("name", NAMED)
def test_names(tg, name):
    x = tg.tensor([[1.0, 2.0, 3.0], [4.0, 7.0, 6.0]])
    by_name, by_place = NAMED[name]
    assert by_name(x).tolist() == by_place(x).tolist()


def test_names_of_functions(tg):
    x = tg.tensor([[1.0, 2.0, 3.0], [4.0, 7.0, 6.0]])
    assert tg.reshape(x, shape=(6,)).tolist() == x.flatten().tolist()
    assert tg.permute(x, dims=(1, 0)).tolist() == x.t().tolist()
    assert tg.flip(x, dims=(1,)).tolist() == x.flip(1).tolist()
    assert tg.broadcast_to(x, size=(1, 2, 3)).tolist() == [x.tolist()]
    assert tg.swapaxes(x, axis0=0, axis1=1).tolist() == x.t().tolist()
    assert tg.std(x, axis=1).tolist() == x.std(1).tolist()
    assert tg.arange(end=3).tolist() == tg.arange(start=0, end=3).tolist() == [0, 1, 2]


# Functions that take NumPy's names of `dim` and `keepdim` as well, as PyTorch's do.
OF_NUMPY = {
    **dict.fromkeys(
        "amax amin aminmax argmax argmin all any count_nonzero logsumexp max min median mode "
        "nanmean nansum prod cummax cummin cumprod cumsum logcumsumexp softmax log_softmax argsort "
        "sort diff squeeze unsqueeze unbind linalg.norm linalg.vector_norm fft.fft fft.irfft "
        "special.logsumexp trapezoid std_mean var_mean".split(),
        lambda f, x, dim: f(x, **dim),
    ),
    "cat": lambda f, x, dim: f([x, x], **dim),
    "stack": lambda f, x, dim: f([x, x], **dim),
    "concatenate": lambda f, x, dim: f([x, x], **dim),
    "chunk": lambda f, x, dim: f(x, 2, **dim),
    "tensor_split": lambda f, x, dim: f(x, 2, **dim),
    "topk": lambda f, x, dim: f(x, 2, **dim),
    "kthvalue": lambda f, x, dim: f(x, 2, **dim),
    "quantile": lambda f, x, dim: f(x, 0.5, **dim),
    "repeat_interleave": lambda f, x, dim: f(x, 2, **dim),
    "narrow": lambda f, x, dim: f(x, start=0, length=1, **dim),
    "select": lambda f, x, dim: f(x, index=1, **dim),
    "unflatten": lambda f, x, dim: f(x, sizes=(3, 1), **dim),
    "gather": lambda f, x, dim: f(x, index=(x * 0).long(), **dim),
    "take_along_dim": lambda f, x, dim: f(x, (x * 0).long(), **dim),
    "index_select": lambda f, x, dim: f(x, index=x[0].long() - x[0].long() + 1, **dim),
    "scatter": lambda f, x, dim: f(x, index=(x * 0).long(), src=x, **dim),
    "linalg.cross": lambda f, x, dim: f(x, x + 1, **dim),
    "cross": lambda f, x, dim: f(x, x + 1, **dim),
    "cosine_similarity": lambda f, x, dim: f(x, x + 1, **dim),
}


@pytest.mark.parametrize("name", OF_NUMPY)
def test_numpys_names_of_functions(tg, name):
    function = tg
    for part in name.split("."):
        function = getattr(function, part)
    x = tg.tensor([[1.0, 2.0, 3.0], [4.0, 7.0, 6.0], [2.0, 5.0, 9.0]])
    by_axis, by_dim = (OF_NUMPY[name](function, x, {which: 0}) for which in ("axis", "dim"))
    for a, b in zip(
        *((t if isinstance(t, tuple) else [t]) for t in (by_axis, by_dim)), strict=True
    ):
        assert a.tolist() == b.tolist()


def test_numpys_names_with_their_own(tg):
    x = tg.ones(2, 3)
    assert tg.amax(x, axis=1, keepdims=True).shape == (2, 1)
    assert tg.var(x, axis=1, keepdims=True).shape == (2, 1)
    with pytest.raises(TypeError):
        tg.cat([x, x], dim=0, axis=0)


REFUSED = {
    "prod": (TypeError, lambda tg, x: x.prod(keepdim=True)),
    "max": (TypeError, lambda tg, x: x.max(keepdim=True)),
    "max, an int": (TypeError, lambda tg, x: x.max(0, 1)),
    "narrow": (TypeError, lambda tg, x: x.narrow(0, 1.5, 1)),
    "select": (TypeError, lambda tg, x: x.select(0, 1.5)),
    "flip": (TypeError, lambda tg, x: x.flip()),
    "arange": (TypeError, lambda tg, x: tg.arange()),
    "split": (TypeError, lambda tg, x: x.split()),
    "tensor_split": (TypeError, lambda tg, x: x.tensor_split()),
    "float": (ValueError, lambda tg, x: float(x)),
    "int": (ValueError, lambda tg, x: int(x)),
    "set_num_threads": (RuntimeError, lambda tg, x: tg.set_num_threads("a")),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(tg, name):
    error, use = REFUSED[name]
    words = r"keep|(is|must be|takes|expects) (an )?int|argument|one number|only one"
    with pytest.raises(error, match=words):
        use(tg, tg.tensor([1.0, 2.0]))


def test_flip_along_nothing(tg):
    assert tg.tensor([1, 2]).flip(()).tolist() == [1, 2]


def test_a_tensor_is_not_its_own_gradient(leaf):
    x = leaf([1.0])
    with pytest.raises(RuntimeError, match="its own"):
        x.grad = x


def test_a_copy_has_the_gradient(leaf):
    x = leaf([1.0, 2.0])
    (x * x).sum().backward()
    y = copy.deepcopy(x)
    assert y.grad.tolist() == [2.0, 4.0]
    assert y.grad is not x.grad


@pytest.mark.tapegrad_only("the tape")
def test_places_on_the_tape(tg, leaf):
    tape = (leaf(1.0) * 2).tape.whole
    for key in ("a", 1.5):
        with pytest.raises(TypeError, match="a record's place is an int or a slice"):
            tape[key]

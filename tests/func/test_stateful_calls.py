"""Objects that hold Tensors, called with other ones."""

import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("PyTorch takes modules alone; tests/peers compares those")
call = tg.func.functional_call


class Layer:
    __slots__ = ("bias", "weight")

    def __init__(self):
        self.weight, self.bias = tg.ones(2), tg.zeros(())

    def __call__(self, x):
        return x @ self.weight + self.bias


class Model:
    def __init__(self):
        self.layers = [Layer(), Layer()]
        self.scales = {"a": tg.tensor(1.0), 7: tg.tensor(2.0)}
        self.tied = self.layers[0].weight
        self.fixed = (tg.ones(1),)
        self.itself = self

    def __call__(self, x, *, times=1.0):
        y = self.layers[0](x) * self.scales["a"] + self.layers[1](x) * self.scales[7]
        return (y + self.tied.sum()) * times


X = tg.tensor([1.0, 10.0])


def test_names_go_through_lists_dicts_and_attributes():
    model = Model()
    given = {"layers.1.bias": tg.tensor(100.0), "scales.7": tg.tensor(3.0)}
    assert call(model, given, X).item() == 11 + 3 * 111 + 2
    assert call(model, given, (X,), {"times": 2.0}).item() == 2 * (11 + 3 * 111 + 2)
    assert model(X).item() == 11 + 22 + 2


def test_several_dicts():
    parts = ({"scales.a": tg.tensor(0.0)}, {"scales.7": tg.tensor(0.0)})
    assert call(Model(), parts, X).item() == 2
    with pytest.raises(ValueError, match=r"scales.a in more than one dict"):
        call(Model(), [parts[0], parts[0]], X)
    with pytest.raises(ValueError, match=r"takes dicts of Tensors, got int"):
        call(Model(), [1], X)
    with pytest.raises(ValueError, match=r"a dict of Tensors by name"):
        call(Model(), 1, X)


def test_one_tensor_of_two_names():
    model, other = Model(), tg.tensor([2.0, 0.0])
    assert call(model, {"tied": other}, X).item() == 2 + 22 + 2
    assert call(model, {"tied": other}, X, tie_weights=False).item() == 11 + 22 + 2
    assert model.layers[0].weight is model.tied
    both = {"tied": other, "layers.0.weight": tg.ones(2)}
    with pytest.raises(ValueError, match=r"are one Tensor"):
        call(model, both, X)
    assert call(model, both, X, tie_weights=False).item() == 11 + 22 + 2


def test_everything_is_put_back_when_the_call_raises():
    model = Model()
    before = model.tied
    with pytest.raises(RuntimeError):
        call(model, {"tied": tg.ones(3), "layers.1.weight": tg.ones(2)}, X)
    assert model.tied is before
    assert model.layers[0].weight is before


def test_names_that_are_not_there():
    for name in ("weight", "layers.2.bias", "layers.x.bias", "layers", "scales.b", ""):
        with pytest.raises(AttributeError, match=rf"holds no Tensor named '{name}'"):
            call(Model(), {name: tg.ones(2)}, X)
    with pytest.raises(RuntimeError, match=r"none of the names \['weight'\]"):
        call(Model(), {"weight": tg.ones(2)}, X, strict=True)
    with pytest.raises(RuntimeError, match=r"not given: \['bias'\]"):
        call(Layer(), {"weight": tg.ones(2)}, X, strict=True)
    whole = {"weight": tg.zeros(2), "bias": tg.tensor(5.0)}
    assert call(Layer(), whole, X, strict=True).item() == 5


def test_what_cannot_be_replaced():
    with pytest.raises(TypeError, match=r"is in a tuple"):
        call(Model(), {"fixed.0": tg.ones(1)}, X)
    with pytest.raises(TypeError, match=r"'tied' is to be a Tensor, got float"):
        call(Model(), {"tied": 1.0}, X)
    with pytest.raises(TypeError, match=r"an object that can be called"):
        call([tg.ones(1)], {"0": tg.ones(1)})


def test_what_the_call_writes_is_in_the_dict():
    class Counter:
        def __init__(self):
            self.count = tg.tensor(1.0)

        def __call__(self):
            self.count = self.count + 1

    counter, given = Counter(), {"count": tg.tensor(5.0)}
    call(counter, given)
    assert (given["count"].item(), counter.count.item()) == (6.0, 1.0)


def test_a_name_that_the_call_deletes_is_put_back():
    class Forgetful:
        def __init__(self):
            self.first, self.second = tg.ones(1), tg.ones(1)

        def __call__(self):
            del self.first

    thing = Forgetful()
    before = thing.first
    call(thing, {"first": tg.zeros(1), "second": tg.zeros(1)})
    assert thing.first is before


def test_under_transforms():
    def loss(p, x):
        return call(Layer(), p, x) ** 2

    p = {"weight": tg.tensor([1.0, 2.0]), "bias": tg.tensor(3.0)}
    slope = tg.func.grad(loss)(p, X)
    assert slope["weight"].tolist() == [48.0, 480.0]
    assert slope["bias"].item() == 48.0
    assert tg.jit(loss)(p, X).item() == loss(p, X).item()
    many = tg.func.vmap(tg.func.grad(loss), in_dims=(None, 0))(p, tg.stack([X, X]))
    assert many["bias"].tolist() == [48.0, 48.0]


def test_states_of_several_objects():
    layers = [Layer(), Layer(), Layer()]
    for k, layer in enumerate(layers):
        layer.weight = tg.full((2,), k + 1.0, requires_grad=True)
    params, buffers = tg.func.stack_module_state(layers)
    assert list(params) == ["weight"]
    assert params["weight"].is_leaf
    assert params["weight"].requires_grad
    assert list(buffers) == ["bias"]
    run = tg.func.vmap(lambda p, b, x: call(layers[0], (p, b), x), in_dims=(0, 0, None))
    assert run(params, buffers, X).tolist() == [11.0, 22.0, 33.0]


def test_states_that_differ_are_refused():
    other = Layer()
    other.weight = tg.ones(2, requires_grad=True)
    model = Model()
    del model.tied
    for given, says in (
        ([], "at least one object"),
        ([Layer(), Model()], "objects of one class"),
        ([Model(), model], "Tensors of one name"),
        ([Layer(), other], "some of the Tensors weight require grad"),
    ):
        with pytest.raises(RuntimeError, match=says):
            tg.func.stack_module_state(given)

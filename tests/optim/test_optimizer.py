"""Optimizers: groups, state, closures, refusals. Runs on PyTorch itself with --library=torch."""

import json
import pickle

import numpy as np
import pytest

OPTIONS = {
    "SGD": {"lr": 0.1, "momentum": 0.9},
    "Adam": {"lr": 0.1, "amsgrad": True},
    "AdamW": {},
    "RMSprop": {"momentum": 0.5, "centered": True},
    "Adagrad": {"lr_decay": 0.1},
    "Adadelta": {},
    "Adamax": {"weight_decay": 0.1},
    "NAdam": {"momentum_decay": 0.1},
    "RAdam": {"betas": (0.5, 0.6)},
    "ASGD": {"t0": 0},
    "Rprop": {"etas": (0.4, 1.3)},
    "Adafactor": {"weight_decay": 0.1},
}
NAMES = [*OPTIONS, "LBFGS"]


def closure_of(optimizer, *params):
    def closure():
        optimizer.zero_grad()
        loss = sum(((p - 1) ** 4).sum() for p in params)
        loss.backward()
        return loss

    return closure


@pytest.mark.parametrize("name", OPTIONS)
def test_a_step_with_and_without_a_closure(tg, leaf, name):
    a, b = leaf([2.0, -1.0]), leaf([2.0, -1.0])
    by_closure, by_hand = (getattr(tg.optim, name)([w], **OPTIONS[name]) for w in (a, b))
    with tg.no_grad():  # the closure computes with grad mode on
        loss = by_closure.step(closure_of(by_closure, a))
    assert loss.item() == 17.0
    closure_of(by_hand, b)()
    assert by_hand.step() is None
    assert a.tolist() == b.tolist() != [2.0, -1.0]
    assert a.is_leaf
    assert a.requires_grad


@pytest.mark.parametrize("name", NAMES)
def test_a_parameter_without_a_gradient_stays(tg, leaf, name):
    used, unused = leaf([2.0]), leaf([5.0])
    optimizer = getattr(tg.optim, name)([used, unused], lr=0.1)
    optimizer.step(closure_of(optimizer, used))
    assert unused.tolist() == [5.0]
    assert used.tolist() != [2.0]


def test_zero_grad(tg, leaf):
    w = leaf([2.0])
    optimizer = tg.optim.SGD([w])
    optimizer.zero_grad()
    (w.grad,) = tg.autograd.grad((w * w).sum(), w, create_graph=True)
    gradient = w.grad
    optimizer.zero_grad(set_to_none=False)
    assert w.grad is gradient
    assert gradient.tolist() == [0.0]
    assert not gradient.requires_grad
    optimizer.zero_grad()
    assert w.grad is None


def test_a_step_counts_a_version(tg, leaf):
    w = leaf([2.0])
    optimizer = tg.optim.SGD([w], lr=0.1)
    loss = (w * w).sum()
    w.grad = tg.tensor([1.0])
    optimizer.step()
    assert w._version == 1
    with pytest.raises(RuntimeError, match=r"in-place|inplace|in place"):
        loss.backward()


def test_groups_have_options_of_their_own(tg, leaf):
    a, b, c = leaf([1.0]), leaf([1.0]), leaf([1.0])
    optimizer = tg.optim.SGD([{"params": [a]}, {"params": b, "lr": 0.5, "name": "b"}], lr=0.25)
    optimizer.add_param_group({"params": iter([c]), "lr": 0.0})
    assert [group["lr"] for group in optimizer.param_groups] == [0.25, 0.5, 0.0]
    assert optimizer.param_groups[1]["name"] == "b"
    for p in (a, b, c):
        p.grad = tg.tensor([1.0])
    optimizer.step()
    assert [p.item() for p in (a, b, c)] == [0.75, 0.5, 1.0]
    optimizer.param_groups[0]["lr"] = np.float64(0.75)
    optimizer.step()
    assert [p.item() for p in (a, b, c)] == [0.0, 0.0, 1.0]
    assert "lr: 0.5" in repr(optimizer)


@pytest.mark.parametrize("name", NAMES)
def test_training_goes_on_from_a_saved_state(tg, leaf, name):
    a, b = leaf([2.0, -1.0]), leaf(-3.0)
    options = OPTIONS.get(name, {"lr": 0.1, "max_iter": 3})
    optimizer = getattr(tg.optim, name)([a, b], **options)
    for _ in range(3):
        optimizer.step(closure_of(optimizer, a, b))
    saved = pickle.loads(pickle.dumps(optimizer.state_dict()))
    c, d = leaf(a.tolist()), leaf(b.item())
    other = getattr(tg.optim, name)([c, d], lr=5.0)
    other.load_state_dict(saved)
    assert other.param_groups[0]["lr"] == optimizer.param_groups[0]["lr"]
    for _ in range(3):
        optimizer.step(closure_of(optimizer, a, b))
        other.step(closure_of(other, c, d))
    assert a.tolist() == c.tolist()
    assert b.item() == d.item()


@pytest.mark.tapegrad_only("PyTorch's state has Tensors, and shares their memory")
@pytest.mark.parametrize("name", NAMES)
def test_a_saved_state_is_a_copy_that_json_takes_but_for_arrays(tg, leaf, name):
    w = leaf([2.0, -1.0])
    optimizer = getattr(tg.optim, name)([w], lr=0.1)
    optimizer.step(closure_of(optimizer, w))
    saved = optimizer.state_dict()
    text = json.dumps(saved, default=lambda array: {"array": array.tolist()})
    optimizer.step(closure_of(optimizer, w))
    assert json.dumps(saved, default=lambda array: {"array": array.tolist()}) == text

    def array_of(entry):
        return np.array(entry["array"]) if "array" in entry else entry

    optimizer.load_state_dict(json.loads(text, object_hook=array_of))
    again = optimizer.state_dict()
    assert json.dumps(again, default=lambda array: {"array": array.tolist()}) == text


def test_a_state_of_other_parameters_is_refused(tg, leaf):
    optimizer = tg.optim.Adam([leaf([1.0])])
    saved = tg.optim.Adam([leaf([1.0]), leaf([1.0])]).state_dict()
    with pytest.raises(ValueError, match="group"):
        optimizer.load_state_dict(saved)


@pytest.mark.tapegrad_only("PyTorch finds it at the next step, if at all")
def test_a_state_of_other_shapes_is_refused(tg, leaf):
    optimizer, w = tg.optim.Adam([leaf([1.0])]), leaf([1.0, 2.0])
    other = tg.optim.Adam([w])
    other.step(closure_of(other, w))
    with pytest.raises(ValueError, match=r"`exp_avg` of shape \(2,\)"):
        optimizer.load_state_dict(other.state_dict())
    assert not optimizer.state


@pytest.mark.parametrize("name", NAMES)
def test_parameters_that_are_none(tg, leaf, name):
    make = getattr(tg.optim, name)
    with pytest.raises(ValueError, match="empty"):
        make([])
    with pytest.raises(TypeError, match="Tensor"):
        make([1.0])
    with pytest.raises(TypeError, match="Tensor"):
        make(leaf([1.0]))
    with pytest.raises(ValueError, match="leaf"):
        make([leaf([1.0]) * 2])


def test_groups_that_make_no_sense(tg, leaf):
    w = leaf([1.0])
    optimizer = tg.optim.SGD([w])
    with pytest.raises(ValueError, match="more than one"):
        optimizer.add_param_group({"params": [w]})
    with pytest.raises(TypeError, match="dict"):
        optimizer.add_param_group([w])
    with pytest.raises(TypeError, match="order"):
        optimizer.add_param_group({"params": {leaf([1.0])}})
    with pytest.raises(KeyError, match="params"):
        optimizer.add_param_group({"lr": 1.0})
    with pytest.warns(UserWarning, match=r"twice|duplicate"):
        tg.optim.SGD([w, w])
    assert len(optimizer.param_groups) == 1


WRONG = [
    ("SGD", {"lr": -0.1}, r"lr|learning rate"),
    ("SGD", {"momentum": -0.1}, "momentum"),
    ("SGD", {"weight_decay": -0.1}, "weight_decay"),
    ("SGD", {"nesterov": True}, r"(?i)nesterov"),
    ("SGD", {"nesterov": True, "momentum": 0.5, "dampening": 0.5}, r"(?i)nesterov"),
    ("Adam", {"lr": -0.1}, r"lr|learning rate"),
    ("Adam", {"eps": -0.1}, r"eps"),
    ("Adam", {"betas": (1.0, 0.9)}, r"beta.*0"),
    ("Adam", {"betas": (0.9, -0.1)}, r"beta.*1"),
    ("AdamW", {"weight_decay": -0.1}, "weight_decay"),
    ("LBFGS", {"lr": -0.1}, r"lr|learning rate"),
    ("Adagrad", {"lr_decay": -0.1}, "lr_decay"),
    ("Adagrad", {"initial_accumulator_value": -0.1}, "initial_accumulator_value"),
    ("Adadelta", {"rho": 1.5}, "rho"),
    ("Adamax", {"betas": (1.0, 0.9)}, r"beta.*0"),
    ("NAdam", {"momentum_decay": -0.1}, "momentum_decay"),
    ("RAdam", {"betas": (0.9, 1.0)}, r"beta.*1"),
    ("ASGD", {"weight_decay": -0.1}, "weight_decay"),
    ("Rprop", {"etas": (1.1, 1.2)}, "eta"),
    ("Adafactor", {"d": 0.5}, r"\bd\b"),
    ("Adafactor", {"beta2_decay": 0.5}, "beta2_decay"),
    ("Muon", {}, "(1)"),  # the parameter is no matrix
]


@pytest.mark.parametrize(("name", "options", "says"), WRONG, ids=str)
def test_options_that_make_no_sense(tg, leaf, name, options, says):
    with pytest.raises(ValueError, match=says):
        getattr(tg.optim, name)([leaf([1.0])], **options)


@pytest.mark.tapegrad_only("our own words, and groups checked like defaults")
def test_what_errors_say(tg, leaf):
    w = leaf([1.0, 2.0])
    with pytest.raises(ValueError, match=r"`SGD`: `lr` must be at least 0, got -1"):
        tg.optim.SGD([{"params": [w], "lr": -1}])
    with pytest.raises(TypeError, match="`AdamW`: `lr` is a number, got str"):
        tg.optim.AdamW([w], lr="much")
    with pytest.raises(ValueError, match=r"`Adam`: `betas\[1\]` must be .* below 1, got 1.5"):
        tg.optim.Adam([w], betas=(0.9, 1.5))
    with pytest.raises(ValueError, match="'strong_wolfe' or None, got 'wolfe'"):
        tg.optim.LBFGS([w], line_search_fn="wolfe")
    with pytest.raises(NotImplementedError, match="not recorded"):
        tg.optim.SGD([w], differentiable=True)
    with pytest.raises(NotImplementedError, match="defines no `step`"):
        tg.optim.Optimizer([w], {}).step()
    with pytest.raises(AttributeError, match="did you mean `AdamW`"):
        _ = tg.optim.AdamWW


@pytest.mark.tapegrad_only("PyTorch has no read-only memory, and updates before it looks")
def test_all_is_checked_before_anything_is_changed(tg, leaf):
    a, b = leaf([1.0]), leaf([1.0])
    optimizer = tg.optim.SGD([a, b], lr=0.5)
    a.grad, b.grad = tg.tensor([1.0]), tg.tensor([1.0])
    b.data = tg.tensor([1.0, 2.0])
    with pytest.raises(RuntimeError, match=r"shape \(2,\) has a gradient of shape \(1,\)"):
        optimizer.step()
    b.data = tg.tensor([1.0]).expand(2)
    b.grad = tg.tensor([1.0, 1.0])
    with pytest.raises(RuntimeError, match=r"SGD\.step.*share"):
        optimizer.step()
    assert a.tolist() == [1.0]


@pytest.mark.tapegrad_only("about `tapegrad.jit`")
def test_no_step_inside_of_a_transform(tg, leaf):
    w = leaf([1.0])
    optimizer = tg.optim.SGD([w], lr=0.5)

    def step(x):
        w.grad = x * 2
        optimizer.step()
        return x

    with pytest.raises(RuntimeError, match=r"`SGD`.*transform"):
        tg.jit(step)(tg.ones(1))
    assert w.tolist() == [1.0]

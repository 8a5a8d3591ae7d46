"""Optimizers and schedulers step by step beside PyTorch's, with every option."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="compares with PyTorch: `make peers` installs it")

import tapegrad as tg  # noqa: E402

pytestmark = [pytest.mark.peer, pytest.mark.tapegrad_only("runs both libraries itself")]

STEPS = 20
BOTH = ({}, {"maximize": True}, {"weight_decay": 0.1}, {"maximize": True, "weight_decay": 0.1})
SGD = [
    {**more, **options}
    for more in BOTH
    for options in (
        {"lr": 0.05},
        {"lr": 0.05, "momentum": 0.9},
        {"lr": 0.05, "momentum": 0.9, "dampening": 0.3},
        {"lr": 0.05, "momentum": 0.9, "nesterov": True},
    )
]
ADAM = [
    {**more, **options}
    for more in BOTH
    for options in (
        {},
        {"lr": 0.1, "betas": (0.7, 0.8)},
        {"lr": 0.1, "eps": 0.1},
        {"lr": 0.1, "amsgrad": True},
    )
]
RMSPROP = [
    {**more, **options}
    for more in BOTH
    for options in (
        {},
        {"lr": 0.05, "alpha": 0.7},
        {"lr": 0.05, "eps": 0.1, "centered": True},
        {"lr": 0.05, "momentum": 0.9},
        {"lr": 0.05, "alpha": 0.9, "momentum": 0.5, "centered": True},
    )
]
LBFGS = [
    {**more, **options}
    for more in ({}, {"line_search_fn": "strong_wolfe"})
    for options in (
        {"lr": 0.1, "max_iter": 3},
        {"lr": 0.1, "max_iter": 4, "history_size": 2},
        {"lr": 0.02, "max_eval": 5},
        {"lr": 0.1, "tolerance_grad": 0.5},
        {"lr": 0.1, "tolerance_change": 0.05},
    )
]
CASES = [
    *[("SGD", options) for options in SGD],
    *[("Adam", options) for options in (*ADAM, {"lr": 0.1, "decoupled_weight_decay": True})],
    *[("AdamW", options) for options in ADAM],
    *[("RMSprop", options) for options in RMSPROP],
    *[("LBFGS", options) for options in LBFGS],
]


def loss_of(xp, a, b):
    """Bounded, so that ascent stays finite, too; not convex, and of several scales."""
    scales = xp.tensor([1.0, 4.0, 0.3], dtype=a.dtype)
    return -(xp.cos(a * 0.5) * scales).sum() + (xp.sin(b).sum() * xp.sin(a[0])) ** 2


def leaves(xp, dtype):
    values = ([1.5, -0.5, 2.0], [[0.3, -1.0], [2.0, 0.1]])
    return [xp.tensor(v, dtype=getattr(xp, dtype), requires_grad=True) for v in values]


def trained(xp, name, options, dtype="float64"):
    """The parameters after each of some steps."""
    params = leaves(xp, dtype)
    optimizer = getattr(xp.optim, name)(params, **options)

    def closure():
        optimizer.zero_grad()
        loss = loss_of(xp, *params)
        loss.backward()
        return loss

    path = []
    for _ in range(STEPS):
        loss = optimizer.step(closure)
        path.append(
            [float(loss.detach()), *np.ravel(params[0].tolist()), *np.ravel(params[1].tolist())]
        )
    return np.array(path)


@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_steps(name, options):
    ours, theirs = trained(tg, name, options), trained(torch, name, options)
    np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop"])
def test_steps_in_float32(name):
    options = {"lr": 0.05, "weight_decay": 0.1}
    ours, theirs = (trained(xp, name, options, "float32") for xp in (tg, torch))
    np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1, "nesterov": True}),
        ("Adam", {"lr": 0.1, "amsgrad": True, "weight_decay": 0.1}),
        ("RMSprop", {"lr": 0.1, "momentum": 0.5, "centered": True}),
        ("LBFGS", {"lr": 0.1, "max_iter": 3}),
    ],
)
def test_steps_of_complex_parameters(name, options):
    def path(xp):
        w = xp.tensor([1.0 + 2.0j, -0.5j], dtype=xp.complex128, requires_grad=True)
        optimizer = getattr(xp.optim, name)([w], **options)

        def closure():
            optimizer.zero_grad()
            loss = (abs(w - 1) ** 2).sum() + (w.real**4).sum()
            loss.backward()
            return loss

        return [optimizer.step(closure) is None or w.tolist() for _ in range(STEPS)]

    np.testing.assert_allclose(path(tg), path(torch), rtol=1e-9)


def test_large_parameters_are_updated_block_by_block():
    rng = np.random.default_rng(5)
    values, gradients = rng.standard_normal((2, 300, 500))
    found = {}
    for xp in (tg, torch):
        w = xp.tensor(values).t().requires_grad_()
        w.grad = xp.tensor(gradients.T.copy())
        for name, options in (("Adam", {"amsgrad": True}), ("SGD", {"momentum": 0.5})):
            optimizer = getattr(xp.optim, name)([w], lr=0.1, weight_decay=0.1, **options)
            for _ in range(2):
                optimizer.step()
        found[xp] = np.array(w.tolist())
    np.testing.assert_allclose(found[tg], found[torch], rtol=1e-10)


SCHEDULES = [
    ("StepLR", {"step_size": 3}),
    ("ExponentialLR", {"gamma": 0.8}),
    ("CosineAnnealingLR", {"T_max": 6, "eta_min": 0.01}),
    ("CosineAnnealingLR", {"T_max": 30}),
    ("LambdaLR", {"lr_lambda": lambda epoch: 1 / (1 + epoch)}),
    ("LambdaLR", {"lr_lambda": [lambda epoch: 0.9**epoch, lambda epoch: 1.0]}),
]


def two_groups(xp):
    a, b = leaves(xp, "float64")
    return xp.optim.SGD([{"params": a}, {"params": b, "lr": 0.5}], lr=0.1)


@pytest.mark.parametrize(("name", "options"), SCHEDULES)
def test_schedules(name, options):
    found = []
    for xp in (tg, torch):
        optimizer = two_groups(xp)
        scheduler = getattr(xp.optim.lr_scheduler, name)(optimizer, **options)
        rates = [scheduler.get_last_lr()]
        for _ in range(STEPS):
            optimizer.step()
            scheduler.step()
            rates.append([group["lr"] for group in optimizer.param_groups])
        found.append(rates)
    np.testing.assert_allclose(*found, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("mode", ["min", "max"])
@pytest.mark.parametrize("threshold_mode", ["rel", "abs"])
@pytest.mark.parametrize("more", [{}, {"cooldown": 2}, {"min_lr": [0.02, 0.3]}, {"eps": 0.01}])
def test_plateaus(mode, threshold_mode, more):
    metrics = np.random.default_rng(3).standard_normal(60).cumsum()
    found = []
    for xp in (tg, torch):
        optimizer = two_groups(xp)
        scheduler = xp.optim.lr_scheduler.ReduceLROnPlateau(
            optimizer, mode=mode, patience=2, factor=0.7, threshold=0.1,
            threshold_mode=threshold_mode, **more,
        )  # fmt: skip
        rates = []
        for metric in metrics:
            scheduler.step(metric)
            rates.append(scheduler.get_last_lr())
        found.append(rates)
    np.testing.assert_allclose(*found, rtol=1e-12)

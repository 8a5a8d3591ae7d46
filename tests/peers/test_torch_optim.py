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
MORE = {
    "Adagrad": [
        {},
        {"lr": 0.1, "lr_decay": 0.1},
        {"lr": 0.1, "eps": 0.1, "initial_accumulator_value": 0.5},
    ],
    "Adadelta": [{}, {"lr": 3.0, "rho": 0.7, "eps": 0.01}],
    "Adamax": [{}, {"lr": 0.1, "betas": (0.7, 0.8)}, {"lr": 0.1, "eps": 0.1}],
    "NAdam": [
        {},
        {"lr": 0.1, "betas": (0.7, 0.8)},
        {"lr": 0.1, "eps": 0.1, "momentum_decay": 0.1},
        {"lr": 0.1, "decoupled_weight_decay": True},
    ],
    "RAdam": [
        {},
        {"lr": 0.1, "betas": (0.7, 0.8)},
        {"lr": 0.1, "eps": 0.1},
        {"lr": 0.1, "decoupled_weight_decay": True},
    ],
}
UNLIKE = [  # of which options are others
    *[
        ("ASGD", {**more, **options})
        for more in BOTH
        for options in ({}, {"lr": 0.05, "lambd": 0.1, "alpha": 0.5}, {"lr": 0.05, "t0": 3})
    ],
    *[
        ("Rprop", {**more, **options})
        for more in ({}, {"maximize": True})
        for options in (
            {},
            {"lr": 0.2, "etas": (0.3, 1.7)},
            {"lr": 0.1, "step_sizes": (0.05, 0.15)},
        )
    ],
    *[
        ("Adafactor", {**more, **options})
        for more in BOTH
        for options in (
            {},
            {"lr": 0.3, "beta2_decay": -0.5, "d": 2.0},
            {"lr": 2.0, "eps": (0.1, 0.5)},
        )
    ],
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
    *[
        (name, {**more, **options})
        for name, found in MORE.items()
        for more in BOTH
        for options in found
    ],
    *UNLIKE,
    *[("LBFGS", options) for options in LBFGS],
]


@pytest.fixture(autouse=True)
def numbers_of_the_state_in_double_precision():
    """PyTorch's `NAdam` keeps one in the default type, whatever that of the parameters."""
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(default)


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


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", *MORE, "ASGD"])
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
        ("Adagrad", {"lr": 0.1, "initial_accumulator_value": 0.1}),
        *[(name, {"lr": 0.1}) for name in ("Adadelta", "Adamax", "NAdam", "RAdam", "ASGD")],
        ("Rprop", {"lr": 0.1}),
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
    ("CosineAnnealingWarmRestarts", {"T_0": 4, "eta_min": 0.01}),
    ("CosineAnnealingWarmRestarts", {"T_0": 3, "T_mult": 2}),
    ("MultiStepLR", {"milestones": [4, 2, 11, 11], "gamma": 0.5}),
    ("ConstantLR", {"factor": 0.5, "total_iters": 4}),
    ("LinearLR", {"total_iters": 7}),
    ("LinearLR", {"start_factor": 1.0, "end_factor": 0.2, "total_iters": 4}),
    ("PolynomialLR", {"total_iters": 7, "power": 1.5}),
    ("PolynomialLR", {}),
    ("MultiplicativeLR", {"lr_lambda": lambda epoch: 1 - 0.1 / (1 + epoch)}),
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
        found.append(rates_of(optimizer, scheduler))
    np.testing.assert_allclose(*found, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(("name", "options"), SCHEDULES)
@pytest.mark.parametrize("last_epoch", [0, 2, 3])
def test_schedules_that_go_on(name, options, last_epoch):
    found = []
    for xp in (tg, torch):
        optimizer = two_groups(xp)
        for group in optimizer.param_groups:
            group["initial_lr"] = 2 * group["lr"]
        scheduler = getattr(xp.optim.lr_scheduler, name)(
            optimizer, last_epoch=last_epoch, **options
        )
        found.append(rates_of(optimizer, scheduler))
    np.testing.assert_allclose(*found, rtol=1e-12, atol=1e-15)


def rates_of(optimizer, scheduler, *steps):
    rates = [scheduler.get_last_lr()]
    for step in steps or [()] * STEPS:
        optimizer.step()
        scheduler.step(*step)
        rates.append([group["lr"] for group in optimizer.param_groups])
        assert scheduler.get_last_lr() == rates[-1]
    return rates


@pytest.mark.parametrize("T_mult", [1, 2, 3])
def test_restarts_at_parts_of_epochs(T_mult):
    found = []
    for xp in (tg, torch):
        optimizer = two_groups(xp)
        scheduler = xp.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 2, T_mult)
        steps = [(epoch + part,) for epoch in range(9) for part in (0.25, 0.75)]
        found.append(rates_of(optimizer, scheduler, *steps, (1,), (4.5,), (), ()))
    np.testing.assert_allclose(*found, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("make", ["SGD", "AdamW"])
@pytest.mark.parametrize("strategy", ["cos", "linear"])
@pytest.mark.parametrize(
    "options",
    [
        {"total_steps": STEPS, "max_lr": 0.5},
        {"epochs": 5, "steps_per_epoch": 4, "max_lr": [0.5, 0.1], "three_phase": True},
        {"total_steps": STEPS + 3, "max_lr": 1.0, "pct_start": 0.5, "max_momentum": [0.9, 0.8]},
        {"total_steps": STEPS, "max_lr": 1.0, "cycle_momentum": False, "div_factor": 4.0},
    ],
)
def test_one_cycle(make, strategy, options):
    found = []
    for xp in (tg, torch):
        a, b = leaves(xp, "float64")
        optimizer = getattr(xp.optim, make)([{"params": a}, {"params": b}], lr=0.1)
        scheduler = xp.optim.lr_scheduler.OneCycleLR(optimizer, anneal_strategy=strategy, **options)
        rows = []
        for _ in range(STEPS):
            groups = optimizer.param_groups
            rows += [[g["lr"], g["betas"][0] if "betas" in g else g["momentum"]] for g in groups]
            optimizer.step()
            scheduler.step()
        found.append(rows)
    np.testing.assert_allclose(*found, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("make", ["SGD", "AdamW"])
@pytest.mark.parametrize(
    "options",
    [
        {"base_lr": 0.01, "max_lr": 0.5, "step_size_up": 3},
        {"base_lr": [0.01, 0.1], "max_lr": 0.5, "step_size_up": 3, "step_size_down": 5},
        {"base_lr": 0.01, "max_lr": 0.5, "step_size_up": 2, "mode": "triangular2"},
        {"base_lr": 0.1, "max_lr": 1.0, "step_size_up": 4, "mode": "exp_range", "gamma": 0.9},
        {"base_lr": 0.1, "max_lr": 1.0, "step_size_up": 4, "scale_fn": lambda k: 1 / k},
        {"base_lr": 0.1, "max_lr": 1.0, "step_size_up": 4, "scale_mode": "iterations",
         "scale_fn": lambda k: 0.9**k, "base_momentum": 0.5, "max_momentum": [0.9, 0.8]},
        {"base_lr": 0.1, "max_lr": 1.0, "step_size_up": 4, "cycle_momentum": False},
    ],
)  # fmt: skip
def test_cycles(make, options):
    found = []
    for xp in (tg, torch):
        a, b = leaves(xp, "float64")
        optimizer = getattr(xp.optim, make)([{"params": a}, {"params": b}], lr=0.3)
        scheduler = xp.optim.lr_scheduler.CyclicLR(optimizer, **options)
        rows = [scheduler.get_last_lr()]
        for _ in range(STEPS):
            optimizer.step()
            scheduler.step()
            groups = optimizer.param_groups
            rows += [[g["lr"], g["betas"][0] if "betas" in g else g["momentum"]] for g in groups]
        found.append(rows)
    np.testing.assert_allclose(*found, rtol=1e-12, atol=1e-15)


def composed(rules, optimizer, which):
    """Schedulers one after the other, or together."""
    linear = rules.LinearLR(optimizer, start_factor=0.2, total_iters=3)
    rest = {
        "cosine": lambda: [rules.CosineAnnealingLR(optimizer, T_max=9)],
        "steps": lambda: [rules.StepLR(optimizer, 2), rules.ExponentialLR(optimizer, 0.9)],
        "restarts": lambda: [rules.CosineAnnealingWarmRestarts(optimizer, 3)],
        "function": lambda: [rules.LambdaLR(optimizer, lambda epoch: 1 / (1 + epoch))],
        "factors": lambda: [rules.MultiplicativeLR(optimizer, lambda epoch: 0.9)],
        "constant": lambda: [rules.ConstantLR(optimizer), rules.PolynomialLR(optimizer)],
        "chained": lambda: [rules.ExponentialLR(optimizer, 0.9), rules.StepLR(optimizer, 4)],
    }[which]()
    if which == "chained":
        return rules.ChainedScheduler([linear, *rest])
    return rules.SequentialLR(optimizer, [linear, *rest], [3, 10][: len(rest)])


@pytest.mark.parametrize(
    "which", ["cosine", "steps", "restarts", "function", "factors", "constant", "chained"]
)
def test_schedules_of_schedules(which):
    found = []
    for xp in (tg, torch):
        optimizer = two_groups(xp)
        found.append(rates_of(optimizer, composed(xp.optim.lr_scheduler, optimizer, which)))
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


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"nesterov": False, "momentum": 0.5},
        {"weight_decay": 0.5, "ns_steps": 3},
        {"adjust_lr_fn": "match_rms_adamw"},
        {"ns_coefficients": (2.0, -1.5, 0.5), "eps": 1e-3},
    ],
    ids=str,
)
@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (4, 4)])
def test_muon_is_pytorchs_up_to_bfloat16(options, shape):
    values = np.random.default_rng(0).normal(size=(6, *shape))
    found = []
    for xp in (tg, torch):
        w = xp.tensor(values[0], requires_grad=True)
        optimizer = xp.optim.Muon([w], lr=0.1, **options)
        for g in values[1:]:
            w.grad = xp.tensor(g)
            optimizer.step()
        found.append(np.array(w.tolist()))
    np.testing.assert_allclose(*found, atol=0.02)

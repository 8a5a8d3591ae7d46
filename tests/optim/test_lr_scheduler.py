"""Learning rate schedulers. Runs on PyTorch itself with --library=torch."""

import json

import pytest

SCHEDULERS = {
    "StepLR": {"step_size": 2, "gamma": 0.5},
    "ExponentialLR": {"gamma": 0.5},
    "CosineAnnealingLR": {"T_max": 4},
    "CosineAnnealingWarmRestarts": {"T_0": 2},
    "MultiStepLR": {"milestones": [1, 3], "gamma": 0.5},
    "ConstantLR": {"factor": 0.5, "total_iters": 2},
    "LinearLR": {"start_factor": 0.5, "total_iters": 2},
    "PolynomialLR": {"total_iters": 4},
    "LambdaLR": {"lr_lambda": lambda epoch: 1 / (1 + epoch)},
    "MultiplicativeLR": {"lr_lambda": lambda epoch: 1 / epoch},
}
FIRST_RATES = {
    "StepLR": [1.0, 1.0, 0.5, 0.5, 0.25],
    "ExponentialLR": [1.0, 0.5, 0.25, 0.125, 0.0625],
    "CosineAnnealingLR": [1.0, 0.5 + 0.5**1.5, 0.5, 0.5 - 0.5**1.5, 0.0],
    "CosineAnnealingWarmRestarts": [1.0, 0.5, 1.0, 0.5, 1.0],
    "MultiStepLR": [1.0, 0.5, 0.5, 0.25, 0.25],
    "ConstantLR": [0.5, 0.5, 1.0, 1.0, 1.0],
    "LinearLR": [0.5, 0.75, 1.0, 1.0, 1.0],
    "PolynomialLR": [1.0, 0.75, 0.5, 0.25, 0.0],
    "LambdaLR": [1.0, 1 / 2, 1 / 3, 1 / 4, 1 / 5],
    "MultiplicativeLR": [1.0, 1.0, 1 / 2, 1 / 6, 1 / 24],
}


@pytest.fixture
def optimizer(tg, leaf):
    return tg.optim.SGD([leaf([1.0])], lr=1.0)


def epochs(optimizer, scheduler, count):
    found = []
    for _ in range(count):
        optimizer.step()
        scheduler.step()
        found += scheduler.get_last_lr()
    return found


@pytest.mark.parametrize("name", SCHEDULERS)
def test_rates(tg, optimizer, name):
    scheduler = getattr(tg.optim.lr_scheduler, name)(optimizer, **SCHEDULERS[name])
    rates = [*scheduler.get_last_lr(), *epochs(optimizer, scheduler, 4)]
    assert rates == pytest.approx(FIRST_RATES[name])
    assert optimizer.param_groups[0]["lr"] == rates[-1]


@pytest.mark.parametrize("name", SCHEDULERS)
def test_a_schedule_goes_on_from_a_saved_state(tg, leaf, optimizer, name):
    make = getattr(tg.optim.lr_scheduler, name)
    scheduler = make(optimizer, **SCHEDULERS[name])
    epochs(optimizer, scheduler, 3)
    saved = json.loads(json.dumps([scheduler.state_dict(), optimizer.state_dict()]))
    other = tg.optim.SGD([leaf([1.0])], lr=0.25)
    again = make(other, **SCHEDULERS[name])
    again.load_state_dict(saved[0])
    other.load_state_dict(saved[1])
    assert epochs(other, again, 5) == epochs(optimizer, scheduler, 5)


def one_after_the_other(rules, optimizer):
    warmup = rules.LinearLR(optimizer, start_factor=0.5, total_iters=2)
    return rules.SequentialLR(optimizer, [warmup, rules.ExponentialLR(optimizer, 0.5)], [2])


def together(rules, optimizer):
    return rules.ChainedScheduler(
        [rules.StepLR(optimizer, 2, 0.5), rules.ExponentialLR(optimizer, 0.5)]
    )


def cycle(rules, optimizer):
    return rules.OneCycleLR(
        optimizer, 1.0, total_steps=12, cycle_momentum=False, anneal_strategy="linear"
    )


def cycles(rules, optimizer):
    return rules.CyclicLR(optimizer, 0.5, 1.0, 3, mode="triangular2", cycle_momentum=False)


@pytest.mark.parametrize("make", [one_after_the_other, together, cycle, cycles])
def test_a_composed_schedule_goes_on_from_a_saved_state(tg, leaf, optimizer, make):
    rules = tg.optim.lr_scheduler
    scheduler = make(rules, optimizer)
    epochs(optimizer, scheduler, 3)
    saved = json.loads(json.dumps([scheduler.state_dict(), optimizer.state_dict()]))
    other = tg.optim.SGD([leaf([1.0])], lr=0.25)
    again = make(rules, other)
    again.load_state_dict(saved[0])
    other.load_state_dict(saved[1])
    assert epochs(other, again, 5) == epochs(optimizer, scheduler, 5)


@pytest.mark.parametrize(
    "name", ["ExponentialLR", "CosineAnnealingLR", "LinearLR", "PolynomialLR", "MultiplicativeLR"]
)
def test_the_first_rate_of_training_that_goes_on_is_that_of_the_optimizer(tg, optimizer, name):
    make = getattr(tg.optim.lr_scheduler, name)
    scheduler = make(optimizer, **SCHEDULERS[name])
    rates = epochs(optimizer, scheduler, 4)
    optimizer.param_groups[0]["lr"] = rates[2]
    again = make(optimizer, last_epoch=2, **SCHEDULERS[name])
    assert [*again.get_last_lr(), *epochs(optimizer, again, 1)] == pytest.approx(rates[2:])


@pytest.mark.tapegrad_only("the epochs of PyTorch's are one ahead in a sequence of sequences")
def test_a_sequence_in_a_sequence(tg, optimizer):
    rules = tg.optim.lr_scheduler
    first = one_after_the_other(rules, optimizer)
    halved = rules.ConstantLR(optimizer, factor=0.5, total_iters=99)
    scheduler = rules.SequentialLR(optimizer, [first, halved], [4])
    rates = [*scheduler.get_last_lr(), *epochs(optimizer, scheduler, 5)]
    assert rates == [0.5, 0.75, 1.0, 0.5, 0.5, 0.5]


def test_a_cycle(tg, leaf):
    optimizer = tg.optim.AdamW([leaf([1.0])], lr=1.0)
    scheduler = tg.optim.lr_scheduler.OneCycleLR(
        optimizer, 1.0, epochs=2, steps_per_epoch=5, pct_start=0.5, anneal_strategy="linear",
        div_factor=5.0, final_div_factor=0.5,
    )  # fmt: skip
    rates = [*scheduler.get_last_lr(), *epochs(optimizer, scheduler, 9)]
    assert rates == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0, 0.88, 0.76, 0.64, 0.52, 0.4])
    assert optimizer.param_groups[0]["betas"] == pytest.approx((0.95, 0.999))
    scheduler.step()
    with pytest.raises(ValueError, match="10"):
        scheduler.step()


def test_two_schedulers_together(tg, optimizer):
    schedule = tg.optim.lr_scheduler
    first = schedule.ExponentialLR(optimizer, 0.5)
    second = schedule.StepLR(optimizer, 2, 0.1)
    for _ in range(2):
        optimizer.step()
        first.step()
        second.step()
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.025)


def test_a_plateau(tg, optimizer):
    scheduler = tg.optim.lr_scheduler.ReduceLROnPlateau(
        optimizer, mode="max", patience=1, factor=0.5, min_lr=0.2
    )
    rates = []
    for metric in (1.0, 2.0, 2.0, 2.0, tg.tensor(1.0), 1.0, 1.0, 1.0, 1.0):
        scheduler.step(metric)
        rates += scheduler.get_last_lr()
    assert rates == [1.0, 1.0, 1.0, 0.5, 0.5, 0.25, 0.25, 0.2, 0.2]


def test_what_makes_no_sense(tg, leaf, optimizer):
    schedule = tg.optim.lr_scheduler
    with pytest.raises(TypeError, match="float"):
        schedule.StepLR(0.1, 2)
    with pytest.raises(ValueError, match="2"):
        schedule.LambdaLR(optimizer, [float, float])
    with pytest.raises(KeyError, match="initial_lr"):
        schedule.ExponentialLR(optimizer, 0.5, last_epoch=3)
    with pytest.raises(ValueError, match=r"(?i)factor"):
        schedule.ReduceLROnPlateau(optimizer, factor=1.5)
    with pytest.raises(ValueError, match="mode"):
        schedule.ReduceLROnPlateau(optimizer, mode="least")
    with pytest.raises(ValueError, match="threshold"):
        schedule.ReduceLROnPlateau(optimizer, threshold_mode="share")
    with pytest.raises(ValueError, match="min_lr"):
        schedule.ReduceLROnPlateau(optimizer, min_lr=[0.1, 0.1])
    with pytest.raises(ValueError, match=r"(?i)factor"):
        schedule.ConstantLR(optimizer, factor=1.5)
    with pytest.raises(ValueError, match=r"greater than 0"):
        schedule.LinearLR(optimizer, start_factor=0.0)
    with pytest.raises(ValueError, match="T_0"):
        schedule.CosineAnnealingWarmRestarts(optimizer, 0)
    with pytest.raises(ValueError, match=r"(?i)negative"):
        schedule.CosineAnnealingWarmRestarts(optimizer, 2).step(-1)
    with pytest.raises(ValueError, match="steps_per_epoch"):
        schedule.OneCycleLR(optimizer, 1.0, epochs=3)
    with pytest.raises(ValueError, match="positive integer"):
        schedule.OneCycleLR(optimizer, 1.0, total_steps=0)
    with pytest.raises(ValueError, match="pct_start"):
        schedule.OneCycleLR(optimizer, 1.0, total_steps=9, pct_start=1.5)
    with pytest.raises(ValueError, match="'cos'"):
        schedule.OneCycleLR(optimizer, 1.0, total_steps=9, anneal_strategy="line")
    with pytest.raises(ValueError, match="max_lr"):
        schedule.OneCycleLR(optimizer, [1.0, 1.0], total_steps=9)
    with pytest.raises(ValueError, match="mode"):
        schedule.CyclicLR(optimizer, 0.1, 1.0, mode="square")
    with pytest.raises(ValueError, match="max_lr"):
        schedule.CyclicLR(optimizer, 0.1, [1.0, 2.0])
    with pytest.raises(ValueError, match="momentum"):
        schedule.CyclicLR(tg.optim.Adagrad([leaf([1.0])]), 0.1, 1.0)
    with pytest.raises(ValueError, match="momentum"):
        schedule.OneCycleLR(tg.optim.Adagrad([leaf([1.0])]), 1.0, total_steps=9)


def test_compositions_that_make_no_sense(tg, leaf, optimizer):
    schedule = tg.optim.lr_scheduler
    rule = schedule.ExponentialLR(optimizer, 0.5)
    plateau = schedule.ReduceLROnPlateau(optimizer)
    with pytest.raises(ValueError, match="no scheduler"):
        schedule.ChainedScheduler([])
    with pytest.raises(ValueError, match="milestone"):
        schedule.SequentialLR(optimizer, [rule], [3])
    with pytest.raises(ValueError, match="ReduceLROnPlateau"):
        schedule.SequentialLR(optimizer, [rule, plateau], [3])
    with pytest.raises(ValueError, match="same optimizer"):
        schedule.SequentialLR(tg.optim.SGD([leaf([1.0])]), [rule], [])
    with pytest.raises(TypeError, match=r"schedulers|optimizer"):
        schedule.SequentialLR(optimizer, [len], [])


@pytest.mark.tapegrad_only("PyTorch raises an IndexError")
def test_a_state_of_more_schedulers_is_refused(tg, optimizer):
    schedule = tg.optim.lr_scheduler
    rules = [schedule.ExponentialLR(optimizer, 0.5) for _ in range(2)]
    with pytest.raises(ValueError, match="states of 2 schedulers, this has 1"):
        schedule.ChainedScheduler(rules[:1]).load_state_dict(
            schedule.ChainedScheduler(rules).state_dict()
        )


@pytest.mark.tapegrad_only("PyTorch's error speaks of lengths that differ")
def test_groups_that_came_later(tg, leaf, optimizer):
    schedule = tg.optim.lr_scheduler
    first, second = (
        schedule.ExponentialLR(optimizer, 0.5),
        schedule.ReduceLROnPlateau(optimizer, patience=1),
    )
    optimizer.add_param_group({"params": [leaf([1.0])]})
    with pytest.raises(RuntimeError, match="2 parameter groups, and had 1"):
        first.step()
    for _ in range(2):
        second.step(1.0)
    with pytest.raises(RuntimeError, match="set `min_lrs`"):
        second.step(1.0)
    with pytest.raises(NotImplementedError, match="get_lr"):
        schedule.LRScheduler(optimizer)

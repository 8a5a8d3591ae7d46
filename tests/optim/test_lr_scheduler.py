"""Learning rate schedulers. Runs on PyTorch itself with --library=torch."""

import json

import pytest

SCHEDULERS = {
    "StepLR": {"step_size": 2, "gamma": 0.5},
    "ExponentialLR": {"gamma": 0.5},
    "CosineAnnealingLR": {"T_max": 4},
    "LambdaLR": {"lr_lambda": lambda epoch: 1 / (1 + epoch)},
}
FIRST_RATES = {
    "StepLR": [1.0, 1.0, 0.5, 0.5, 0.25],
    "ExponentialLR": [1.0, 0.5, 0.25, 0.125, 0.0625],
    "CosineAnnealingLR": [1.0, 0.5 + 0.5**1.5, 0.5, 0.5 - 0.5**1.5, 0.0],
    "LambdaLR": [1.0, 1 / 2, 1 / 3, 1 / 4, 1 / 5],
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

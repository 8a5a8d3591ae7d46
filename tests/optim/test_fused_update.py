"""Updates by one compiled loop: the elements that NumPy computes from the same rule, to the bit."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.kernels import build
from tapegrad.optim import fused_update
from tapegrad.parallel.large_elementwise import SPLIT

pytestmark = pytest.mark.tapegrad_only("about two ways to the same elements")

CASES = [
    ("SGD", {}),
    ("SGD", {"momentum": 0.9, "dampening": 0.3, "maximize": True}),
    ("SGD", {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("Adam", {}),
    ("Adam", {"amsgrad": True, "weight_decay": 0.1, "maximize": True}),
    ("AdamW", {"weight_decay": 0.1}),
    ("RMSprop", {}),
    ("RMSprop", {"momentum": 0.5, "centered": True, "maximize": True}),
    ("ASGD", {"t0": 1, "lambd": 0.1, "weight_decay": 0.1}),
    ("Rprop", {"maximize": True}),
]
SIZES = [(), (3,), (7, 5), (2 * SPLIT + 3,)]


def update_of(name):
    return getattr(tg.optim, name)._fused


@pytest.fixture
def patient(monkeypatch):
    """Without loops, and what they are asked for; whether there are any is for a test to say."""
    asked = []
    monkeypatch.setattr(build, "is_compiled", lambda *a, asking: asked.append(asking))
    for name in {name for name, _ in CASES}:
        monkeypatch.setattr(update_of(name), "_loops", {})
        monkeypatch.setattr(update_of(name), "_patience", {})
    return asked


def trained(name, options, dtype, layout=np.asarray):
    """Parameters and state after three steps, bit by bit."""
    rng = np.random.default_rng(0)
    params = [tg.from_numpy(layout(rng.standard_normal(shape).astype(dtype))) for shape in SIZES]
    optimizer = getattr(tg.optim, name)([p.requires_grad_() for p in params], lr=0.1, **options)
    for _ in range(3):
        for p in params:
            gradient = rng.standard_normal(p.shape).astype(dtype)
            gradient.ravel()[-1:] = rng.choice([np.nan, np.inf, 0.0, -0.0, 1e-310])
            p.grad = tg.tensor(gradient)
        with np.errstate(all="ignore"):
            optimizer.step()
    arrays = [a for p in params for a in optimizer.state[p].values() if isinstance(a, np.ndarray)]
    arrays += [p.detach().numpy() for p in params]
    return [np.where(np.isnan(a), a.dtype.type(np.nan), a).tobytes() for a in arrays]


@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("threads", [1, 2])
def test_loops_round_as_numpy_does(name, options, dtype, threads, patient, monkeypatch):
    expected = trained(name, options, dtype)
    assert not update_of(name)._loops
    monkeypatch.setattr(build, "is_compiled", lambda *a, asking: True)
    monkeypatch.setattr(update_of(name), "_patience", {})
    before = tg.get_num_threads()
    tg.set_num_threads(threads)
    try:
        assert trained(name, options, dtype) == expected
    finally:
        tg.set_num_threads(before)
    assert len(update_of(name)._loops) == 1


def test_layouts_that_loops_do_not_know(patient, monkeypatch):
    expected = trained("Adam", {}, "f8")
    monkeypatch.setattr(build, "is_compiled", lambda *a, asking: True)
    monkeypatch.setattr(update_of("Adam"), "_patience", {})
    assert trained("Adam", {}, "f8", np.asfortranarray) == expected
    assert [key[1] for key in update_of("Adam")._loops] == [("d", 4)]


def test_a_loop_is_compiled_in_the_background_once_that_pays(patient):
    def step(size, times):
        w = tg.zeros(size, requires_grad=True)
        w.grad = tg.ones(size)
        optimizer = tg.optim.SGD([w], lr=0.5)
        for _ in range(times):
            optimizer.step()

    step(10, 100)
    assert patient == [False]  # only whether it is there
    step(10, 300)
    assert patient == [False, True]
    update_of("SGD")._patience.clear()
    step(fused_update.COMPILED, 1)
    assert patient == [False, True, True]

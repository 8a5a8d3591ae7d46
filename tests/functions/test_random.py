"""Random numbers: their sources, their shapes, and what the arguments mean."""

import numpy as np
import pytest


def draws(tg, generator):
    """Every function that takes a generator."""
    x = tg.zeros(4)
    return [
        tg.rand(4, generator=generator),
        tg.randn(4, generator=generator),
        tg.randint(0, 1000, (4,), generator=generator),
        tg.randperm(50, generator=generator),
        tg.normal(0.0, 1.0, (4,), generator=generator),
        tg.normal(x, 1.0, generator=generator),
        tg.bernoulli(tg.full((40,), 0.5), generator=generator),
        x.clone().uniform_(generator=generator),
        x.clone().normal_(generator=generator),
        x.clone().exponential_(generator=generator),
        x.clone().random_(1000, generator=generator),
        tg.zeros(40).bernoulli_(0.5, generator=generator),
        x.clone().cauchy_(generator=generator),
        x.clone().log_normal_(generator=generator),
        tg.zeros(40).geometric_(0.1, generator=generator),
        tg.multinomial(tg.ones(40), 20, generator=generator),
        tg.multinomial(tg.ones(40), 20, replacement=True, generator=generator),
        tg.poisson(tg.full((40,), 9.0), generator),
        tg.binomial(tg.full((40,), 20.0), tg.full((40,), 0.5), generator),
        tg.rand_like(x, generator=generator),
        tg.randn_like(x, generator=generator),
        tg.randint_like(x, 1000, generator=generator),
    ]


def same(first, second):
    return [bool((a == b).all()) for a, b in zip(first, second, strict=True)]


def test_a_seed_gives_the_numbers_again(tg):
    g = tg.Generator()
    first = draws(tg, g.manual_seed(3))
    assert all(same(first, draws(tg, g.manual_seed(3))))
    assert all(same(first, draws(tg, tg.Generator("cpu").manual_seed(3))))
    assert not any(same(first, draws(tg, g)))
    assert not any(same(first, draws(tg, g.manual_seed(4))))


def test_a_generator_leaves_the_numbers_of_all_alone(tg):
    tg.manual_seed(0)
    expected = tg.rand(3)
    tg.manual_seed(0)
    draws(tg, tg.Generator().manual_seed(1))
    assert tg.rand(3).tolist() == expected.tolist()


def test_seeds_are_told(tg):
    g = tg.Generator()
    assert g.manual_seed(12) is g
    assert g.initial_seed() == 12
    assert g.seed() == g.initial_seed()
    assert tg.manual_seed(5).initial_seed() == 5
    assert tg.initial_seed() == 5
    assert tg.seed() == tg.initial_seed()
    assert g.device == tg.device("cpu")


def test_states_are_kept_and_set(tg):
    state = tg.get_rng_state()
    assert state.dtype == tg.uint8
    first = tg.rand(3).tolist()
    tg.set_rng_state(state)
    assert tg.rand(3).tolist() == first
    g = tg.Generator().manual_seed(0)
    other = tg.Generator()
    other.set_state(g.get_state())
    assert tg.rand(3, generator=g).tolist() == tg.rand(3, generator=other).tolist()


@pytest.mark.tapegrad_only("the messages are ours")
def test_what_is_no_state_seed_or_generator_is_refused(tg):
    with pytest.raises(TypeError, match="`get_state` gave"):
        tg.set_rng_state(tg.zeros(3))
    with pytest.raises(TypeError, match="a seed is an int, got str"):
        tg.manual_seed("x")
    with pytest.raises(TypeError, match=r"is a tapegrad\.Generator or None, got Generator"):
        tg.rand(2, generator=np.random.default_rng())


def test_shapes_are_given_in_all_ways(tg):
    for f in (tg.rand, tg.randn, tg.zeros, tg.ones, tg.empty):
        for made in (f(2, 3), f((2, 3)), f([2, 3]), f(size=(2, 3)), f(tg.Size([2, 3]))):
            assert made.shape == (2, 3)
    assert tg.randint(5, (2, 3)).shape == tg.randint(0, 5, size=(2, 3)).shape == (2, 3)
    assert tg.zeros(1).new_zeros(size=(2, 3)).shape == (2, 3)


def test_a_shape_given_twice_is_an_error(tg):
    with pytest.raises(TypeError):
        tg.randn(2, size=(3,))


def test_the_likes_take_shape_and_type(tg):
    x = tg.zeros(2, 3, dtype=tg.float32)
    for made in (tg.rand_like(x), tg.randn_like(x), tg.randint_like(x, 3)):
        assert (made.shape, made.dtype) == ((2, 3), tg.float32)
    assert tg.rand_like(x, dtype=tg.float64, requires_grad=True).requires_grad


def test_permutations(tg):
    assert sorted(tg.randperm(20).tolist()) == list(range(20))
    assert tg.randperm(0).tolist() == []
    assert tg.randperm(3, dtype=tg.int32).dtype == tg.int32


def test_moments(tg):
    tg.manual_seed(0)
    x = tg.normal(3.0, 0.5, (20000,))
    assert abs(x.mean().item() - 3) < 0.02
    assert abs(x.std().item() - 0.5) < 0.02
    assert abs(tg.zeros(20000).exponential_(2.0).mean().item() - 0.5) < 0.02
    assert abs(tg.bernoulli(tg.full((20000,), 0.25)).mean().item() - 0.25) < 0.02
    pairs = tg.normal(tg.tensor([0.0, 100.0]), tg.tensor([1.0, 2.0]))
    assert abs(pairs[1].item() - 100) < 20
    with pytest.raises(RuntimeError):
        tg.normal(0.0, -1.0, (2,))
    with pytest.raises(RuntimeError):
        tg.bernoulli(tg.tensor([1.5]))
    with pytest.raises(RuntimeError):
        tg.randint(3, 3, (2,))


def test_in_place_draws_cut_the_history(tg, leaf):
    y = leaf([1.0, 2.0]) * 2
    y.normal_()
    y.sum().backward()


@pytest.mark.parametrize("randomness", ["same", "different"])
def test_under_a_map_a_generator_is_used(tg, randomness):
    def f(x):
        return x + tg.randn(2, generator=g)

    g = tg.Generator().manual_seed(1)
    first = tg.func.vmap(f, randomness=randomness)(tg.zeros(3, 2))
    assert bool((first[0] == first[1]).all()) == (randomness == "same")
    g.manual_seed(1)
    assert bool((tg.func.vmap(f, randomness=randomness)(tg.zeros(3, 2)) == first).all())
    with pytest.raises(RuntimeError):
        tg.func.vmap(f)(tg.zeros(3, 2))


PARAMETERS = {
    "normal, means": lambda tg, x: tg.normal(x, 1.0),
    "normal, deviations": lambda tg, x: tg.normal(0.0, x),
    "bernoulli": lambda tg, x: tg.bernoulli(x),
    "bernoulli_": lambda tg, x: x.clone().bernoulli_(x),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_the_same_numbers_of_different_distributions_are_refused(tg, name):
    draw, p = PARAMETERS[name], tg.full((3, 2), 0.5)
    with pytest.raises(RuntimeError, match="same"):
        tg.func.vmap(lambda x: draw(tg, x), randomness="same")(p)
    assert tg.func.vmap(lambda x: draw(tg, x), randomness="different")(p).shape == (3, 2)


def test_the_same_numbers_of_one_distribution_are_drawn_in_place(tg):
    y = tg.func.vmap(lambda x: x.clone().bernoulli_(0.5), randomness="same")(tg.zeros(3, 40))
    assert bool((y == y[0]).all())
    y = tg.func.vmap(lambda x: x.clone().normal_(), randomness="same")(tg.zeros(3, 4))
    assert bool((y == y[0]).all())

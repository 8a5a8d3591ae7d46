"""Hamiltonian Monte Carlo for a logistic regression, all of it compiled.

`tg.jit` makes machine code of the log-density and its gradient, which a sampler in `@numba.njit`
calls without Python. Its chains are compared with Laplace's approximation, from the Hessian.
"""

# %%
import matplotlib.pyplot as plt
import numba
import numpy as np
from display import bar, save

import tapegrad as tg

# %% [markdown]
# 400 yes-or-no answers that depend on four features; with so many the posterior is nearly normal.

# %%
rng = np.random.default_rng(3)
truth = np.array([0.5, -1.0, 1.5, 0.0])
features = np.column_stack([np.ones(400), rng.standard_normal((400, 3))])
answers = rng.random(400) < 1 / (1 + np.exp(-features @ truth))
signs = np.where(answers, 1.0, -1.0)


def log_density(weights):
    """The log of the posterior density, with a normal prior of deviation 5."""
    return -np.sum(np.logaddexp(0, -signs * (features @ weights))) - np.sum(weights**2) / 50


density = tg.jit(tg.value_and_grad(log_density))
density(np.zeros(4))  # the first call compiles

# %% [markdown]
# The sampler: a random push, a path that keeps the energy but for its finite steps, and a
# decision that makes up for these.


# %%
@numba.njit
def sample(rng, start, count, step, leaps):
    """A chain of the posterior, and how often a path was accepted."""
    chain = np.empty((count, start.size))
    position, accepted = start, 0
    value, slope = density.njit(position)
    for k in range(count):
        momentum = rng.standard_normal(start.size)
        energy = 0.5 * np.sum(momentum**2) - value
        q, v, g = position, value, slope
        for _ in range(leaps):
            momentum = momentum + 0.5 * step * g
            q = q + step * momentum
            v, g = density.njit(q)
            momentum = momentum + 0.5 * step * g
        if np.log(rng.random()) < energy - (0.5 * np.sum(momentum**2) - v):
            position, value, slope = q, v, g
            accepted += 1
        chain[k] = position
    return chain, accepted / count


# %% [markdown]
# Four chains start far from each other; the first tenth of each is left out.

# %%
CHAINS, COUNT = 4, 5000
chains, rates = [], []
for _ in bar(range(CHAINS), "chains"):
    start = rng.standard_normal(4) * 2
    chain, rate = sample(rng, start, COUNT, 0.06, 16)
    chains.append(chain[COUNT // 10 :])
    rates.append(rate)
draws = np.concatenate(chains)
between = np.var([chain.mean(0) for chain in chains], axis=0, ddof=1)
within = np.mean([chain.var(0, ddof=1) for chain in chains], axis=0)
r_hat = np.sqrt(1 + between / within)

# %% [markdown]
# Laplace's approximation: a normal distribution at the maximum, as wide as the Hessian says.

# %%
peak = tg.optimize.minimize(lambda w: -log_density(w), np.zeros(4)).x
covariance = np.linalg.inv(tg.hessian(lambda w: -log_density(w))(peak))
deviations = np.sqrt(np.diag(covariance))
print("truth         ", truth)
print("posterior mean", draws.mean(0).round(3))
print("deviation     ", draws.std(0).round(3))
print("by Laplace    ", deviations.round(3))
print(f"accepted {np.mean(rates):.0%}, greatest R-hat {r_hat.max():.4f}")
assert 0.6 < np.mean(rates) <= 1
assert r_hat.max() < 1.01
assert np.all(np.abs(draws.mean(0) - truth) < 4 * deviations)
np.testing.assert_allclose(draws.std(0), deviations, rtol=0.1)

# %%
figure, (left, right) = plt.subplots(1, 2, layout="constrained", figsize=(9, 3.5))
left.plot(chains[0][:500], linewidth=0.7)
left.set(xlabel="draw", ylabel="weights")
right.hist(draws[:, 2], 60, density=True, alpha=0.5, label="draws")
grid = np.linspace(*right.get_xlim(), 200)
bell = np.exp(-0.5 * ((grid - peak[2]) / deviations[2]) ** 2)
right.plot(grid, bell / deviations[2] / np.sqrt(2 * np.pi), label="Laplace")
right.axvline(truth[2], color="k", linestyle=":", label="truth")
right.set(xlabel="third weight")
right.legend()
save(figure, "hmc")

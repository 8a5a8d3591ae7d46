"""An inverse problem: what a plate is made of, from how it cools.

Heat flows through a plate whose conductivity varies from place to place. 64 thermometers are read
now and then; the conductivity that explains their readings is found by its gradient, through 400
time steps. `tg.checkpoint` keeps the state between stretches of 25 steps, and computes the rest
again.
"""

# %%
import tracemalloc

import matplotlib.pyplot as plt
import numpy as np
from display import save

import tapegrad as tg

CELLS, STRETCHES, STEPS, NOISE = 48, 16, 25, 2e-3
STEP = 0.1  # in units of the width of a cell, squared
SENSORS = np.s_[3::6, 3::6]

# %% [markdown]
# Between neighbouring cells the flow is the mean conductivity of both, times the difference. The
# edges are insulated. The unknown is the logarithm, so that no conductivity is below zero.


# %%
def stretch(heat, log_conductivity):
    """The heat 25 steps later."""
    conductivity = STEP * tg.exp(log_conductivity)
    down = 0.5 * (conductivity[1:] + conductivity[:-1])
    along = 0.5 * (conductivity[:, 1:] + conductivity[:, :-1])
    for _ in range(STEPS):
        flow = tg.nn.functional.pad(down * tg.diff(heat, dim=0), (0, 0, 1, 1))
        across = tg.nn.functional.pad(along * tg.diff(heat, dim=1), (1, 1))
        heat = heat + tg.diff(flow, dim=0) + tg.diff(across, dim=1)
    return heat


place = (np.arange(CELLS) + 0.5) / CELLS
y, x = np.meshgrid(place, place, indexing="ij")
warm = np.cos(4 * np.pi * x) * np.cos(3 * np.pi * y) + np.cos(np.pi * (x + y)) ** 2


def readings(log_conductivity, advance):
    """What the thermometers show after each stretch."""
    heat, found = tg.tensor(warm), []
    for _ in range(STRETCHES):
        heat = advance(heat, log_conductivity)
        found.append(heat[SENSORS])
    return tg.stack(found)


# %% [markdown]
# The truth, with a spot that hardly conducts and a stripe that conducts well, and what is
# measured.

# %%
rng = np.random.default_rng(2)
spot = np.exp(-40 * ((x - 0.3) ** 2 + (y - 0.35) ** 2))
stripe = np.exp(-60 * (x + 0.5 * y - 1.05) ** 2)
truth = np.exp(-1.2 * spot + 0.7 * stripe)
clean = readings(tg.tensor(np.log(truth)), stretch)
measured = clean + NOISE * tg.tensor(rng.standard_normal(clean.shape))

# %% [markdown]
# The loss: the misfit by the noise, and how rough the conductivity is. Computed by stretches it
# keeps less memory until the sweep, whose gradient is the same.


# %%
def loss_of(log_conductivity, advance):
    misfit = (readings(log_conductivity, advance) - measured) / NOISE
    rough = sum((tg.diff(log_conductivity, dim=dim) ** 2).sum() for dim in (0, 1))
    return 0.5 * (misfit**2).sum() + 10 * rough


unknown = tg.zeros(CELLS, CELLS, requires_grad=True)
by_stretches = tg.checkpoint(stretch)
sizes, gradients = [], []
for advance in (stretch, by_stretches):
    tracemalloc.start()
    loss = loss_of(unknown, advance)
    sizes.append(tracemalloc.get_traced_memory()[0] / 1e6)
    tracemalloc.stop()
    gradients.append(tg.autograd.grad(loss, unknown)[0])
print(f"kept for the sweep: {sizes[0]:.1f} MB of all steps, {sizes[1]:.1f} MB of stretches")
assert sizes[1] < sizes[0] / 3
assert tg.allclose(*gradients)

# %% [markdown]
# L-BFGS with a line search: few evaluations, each of which is dear.

# %%
optimizer = tg.optim.LBFGS([unknown], max_iter=40, line_search_fn="strong_wolfe")
losses = []


def closure():
    optimizer.zero_grad()
    loss = loss_of(unknown, by_stretches)
    loss.backward()
    losses.append(loss.item())
    return loss


optimizer.step(closure)
found = np.exp(unknown.detach().numpy())
error = np.abs(found / truth - 1)
print(f"loss {losses[0]:.0f} before, {losses[-1]:.1f} after {len(losses)} evaluations")
print(f"the conductivity is {error.mean():.1%} off on the average")
assert losses[-1] < 1e-2 * losses[0]
assert error.mean() < 0.07

# %%
figure, axes = plt.subplots(1, 3, layout="constrained", figsize=(10, 3.2))
for axis, title, values in zip(axes, ("truth", "found"), (truth, found)):
    shown = axis.imshow(values, vmin=truth.min(), vmax=truth.max(), extent=(0, 1, 1, 0))
    axis.plot(x[SENSORS], y[SENSORS], "w.", markersize=2)
    axis.set_title(title)
figure.colorbar(shown, ax=axes[:2], label="conductivity")
axes[2].semilogy(losses)
axes[2].set(xlabel="evaluation", ylabel="loss")
save(figure, "heat_inverse")

"""A differential equation solved by a network: physics-informed fitting.

The network is a smooth function u(x). It is trained on no data, but to satisfy u'' + u' = f and
to be 0 at both ends. The loss contains second derivatives of the network, and training
differentiates these.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from display import save

import tapegrad as tg

# %% [markdown]
# A solution that is known, and the f that belongs to it, by derivatives from here too.


# %%
def solution(x):
    return np.sin(2 * np.pi * x) + 0.5 * np.sin(5 * np.pi * x)


def source(x):
    return tg.grad(tg.grad(solution))(x) + tg.grad(solution)(x)


places = np.linspace(0, 1, 81)
sources = tg.vmap(source)(places)

# %% [markdown]
# A network of two layers; it is multiplied by x (1 - x), which makes it 0 at the ends.

# %%
rng = np.random.default_rng(2)
WIDTH = 20
start = {
    "first": rng.normal(0, 4, WIDTH),
    "shift": rng.uniform(-4, 4, WIDTH),
    "second": rng.normal(0, 1 / np.sqrt(WIDTH), (WIDTH, WIDTH)),
    "bias": np.zeros(WIDTH),
    "last": rng.normal(0, 1 / np.sqrt(WIDTH), WIDTH),
}


def network(p, x):
    hidden = np.tanh(p["first"] * x + p["shift"])
    hidden = np.tanh(hidden @ p["second"] + p["bias"])
    return x * (1 - x) * (hidden @ p["last"])


# %% [markdown]
# Derivatives by x at one place, then at all by `vmap`; `minimize` differentiates the loss by all
# parameters, and `jit` compiles it.


# %%
def residual(p, x):
    slope = tg.grad(network, argnums=1)
    return tg.grad(slope, argnums=1)(p, x) + slope(p, x)


def loss(p):
    left_side = tg.vmap(lambda x: residual(p, x))(places)
    return np.mean((left_side - sources) ** 2)


found = tg.optimize.minimize(
    tg.jit(loss), start, method="L-BFGS-B", progress=True,
    options={"maxiter": 1000, "maxcor": 50, "ftol": 1e-12},
)  # fmt: skip

# %%
finer = np.linspace(0, 1, 400)
u = tg.vmap(lambda x: network(found.x, x))(finer)
error = np.abs(u - solution(finer))
print(f"loss {found.fun:.2e} after {found.nit} iterations")
print(f"greatest error {error.max():.1e}, of a solution up to {np.abs(solution(finer)).max():.2f}")
assert error.max() < 5e-3

figure, (left, right) = plt.subplots(1, 2, layout="constrained", figsize=(9, 3.5))
left.plot(finer, solution(finer), "k:", label="solution")
left.plot(finer, u, label="network")
left.set(xlabel="x", ylabel="u")
left.legend()
right.semilogy(finer, error)
right.set(xlabel="x", ylabel="error", ylim=(1e-7, None))
save(figure, "physics_informed")

"""Linear regression: Tensors, `backward`, and an optimizer.

The progression of diabetes in 442 patients, from ten measurements of each. The weights are found
by descent along the gradient, and are those that linear algebra finds at once.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from display import bar, save
from sklearn.datasets import load_diabetes

import tapegrad as tg

# %% [markdown]
# The data, brought to mean 0 and deviation 1, and then to Tensors, which share the arrays'
# memory.

# %%
features, target = load_diabetes(return_X_y=True, scaled=True)
features = (features - features.mean(0)) / features.std(0)
target = (target - target.mean()) / target.std()
X, y = tg.from_numpy(features), tg.from_numpy(target)

# %% [markdown]
# The parameters are the leaves of the graph: Tensors that require grad.

# %%
weights = tg.zeros(10, requires_grad=True)
bias = tg.tensor(0.5, requires_grad=True)
optimizer = tg.optim.SGD([weights, bias], lr=0.05, momentum=0.95)

# %% [markdown]
# Each step records the loss on the tape, sweeps it, and moves the parameters against the
# gradient.

# %%
losses = []
for _ in bar(range(3000), "descent"):
    optimizer.zero_grad()
    loss = ((X @ weights + bias - y) ** 2).mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())

# %% [markdown]
# The normal equations have one solution, and the descent ends there.

# %%
exact = np.linalg.lstsq(features, target, rcond=None)[0]
found = weights.detach().numpy()
print(f"mean squared error {losses[-1]:.4f}")
print(f"greatest difference from least squares {np.abs(found - exact).max():.1e}")
assert np.abs(found - exact).max() < 1e-3
assert abs(bias.item()) < 1e-6

# %%
figure, (left, right) = plt.subplots(1, 2, layout="constrained", figsize=(9, 3.5))
left.loglog(losses)
left.set(xlabel="step", ylabel="mean squared error")
right.plot(target, features @ found + bias.item(), ".")
right.plot([-2, 3], [-2, 3], "k:")
right.set(xlabel="progression", ylabel="prediction")
save(figure, "linear_regression")

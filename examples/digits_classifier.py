"""A classifier of handwritten digits: a network of two layers, trained with Adam.

1,797 pictures of 8 x 8 pixels, of which the network sees three quarters, in small batches. The
learning rate falls along a cosine.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from display import bar, save
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import tapegrad as tg
from tapegrad.nn import functional as F

# %%
pixels, digits = load_digits(return_X_y=True)
seen, unseen, seen_digits, unseen_digits = train_test_split(
    pixels / 16, digits, test_size=0.25, random_state=0
)
X, y = tg.from_numpy(seen), tg.from_numpy(seen_digits)

# %% [markdown]
# A network is a function of its parameters, here of four Tensors.

# %%
rng = np.random.default_rng(1)


def weights(inputs, outputs):
    """Random weights that keep the scale of what passes."""
    return tg.tensor(rng.normal(0, np.sqrt(2 / inputs), (inputs, outputs)), requires_grad=True)


parameters = [weights(64, 64), tg.zeros(64, requires_grad=True),
              weights(64, 10), tg.zeros(10, requires_grad=True)]  # fmt: skip


def scores(x):
    """How much each picture looks like each digit."""
    W1, b1, W2, b2 = parameters
    return F.linear(F.relu(x @ W1 + b1), W2.t(), b2)


# %% [markdown]
# An epoch goes through all pictures, in a random order.

# %%
EPOCHS, BATCH = 40, 64
optimizer = tg.optim.AdamW(parameters, lr=5e-3)
scheduler = tg.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
losses = []
for _ in bar(range(EPOCHS), "training"):
    order = rng.permutation(len(seen))
    total = 0.0
    for start in range(0, len(order), BATCH):
        batch = tg.from_numpy(order[start : start + BATCH])
        optimizer.zero_grad()
        loss = F.cross_entropy(scores(X[batch]), y[batch])
        loss.backward()
        optimizer.step()
        total += loss.item() * len(batch)
    scheduler.step()
    losses.append(total / len(order))

# %%
with tg.no_grad():
    guesses = scores(tg.from_numpy(unseen)).argmax(1).numpy()
right = guesses == unseen_digits
print(f"{right.mean():.1%} of {right.size} unseen digits are recognised")
assert right.mean() > 0.96
assert losses[-1] < 0.05

# %%
figure = plt.figure(layout="constrained", figsize=(9, 3.5))
curve, others = figure.subfigures(1, 2, width_ratios=(3, 2))
axes = curve.subplots()
axes.semilogy(losses)
axes.set(xlabel="epoch", ylabel="cross entropy")
others.suptitle("not recognised")
for axis, k in zip(others.subplots(2, 4).flat, np.flatnonzero(~right)[:8]):
    axis.imshow(unseen[k].reshape(8, 8), cmap="gray_r")
    axis.set_title(f"{guesses[k]}, not {unseen_digits[k]}", fontsize=8)
for axis in others.axes:
    axis.set_axis_off()
save(figure, "digits_classifier")

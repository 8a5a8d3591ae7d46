"""A recurrent network that learns a text by heart, character by character.

At each step the network sees one character and its own state, and says what comes next. The
gradient passes back through all steps of a passage. In the end the network writes the text by
itself.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from display import bar, save

import tapegrad as tg
from tapegrad.nn import functional as F

TEXT = """\
To differentiate a program, write down what it does, one line for each operation. Then read the
lines from the last to the first: each passes on what it was given, times its own derivative. Where
two paths meet, their shares are added. When the first line is reached, every input knows how much
the result would change with it. The tape can be swept once, and then it is gone."""

# %%
alphabet = sorted(set(TEXT))
codes = np.array([alphabet.index(c) for c in TEXT])
rng = np.random.default_rng(0)
HIDDEN, LENGTH, BATCH, STEPS = 96, 40, 16, 900


def matrix(rows, columns):
    return tg.tensor(rng.normal(0, 1 / np.sqrt(rows), (rows, columns)), requires_grad=True)


embedding, recurrence = matrix(len(alphabet), HIDDEN), matrix(HIDDEN, HIDDEN)
readout, bias = matrix(HIDDEN, len(alphabet)), tg.zeros(HIDDEN, requires_grad=True)


def advance(state, characters):
    """The next state, and the scores of what comes next."""
    state = tg.tanh(embedding[characters] + state @ recurrence + bias)
    return state, state @ readout


# %% [markdown]
# Passages begin anywhere; their gradients are bounded, since a step too long would undo much.

# %%
optimizer = tg.optim.Adam([embedding, recurrence, readout, bias], lr=5e-3)
scheduler = tg.optim.lr_scheduler.ExponentialLR(optimizer, 0.997)
losses = []
for _ in bar(range(STEPS), "training"):
    starts = rng.integers(0, len(codes) - LENGTH, BATCH)
    passages = tg.from_numpy(codes[starts[:, None] + np.arange(LENGTH + 1)])
    optimizer.zero_grad()
    state, loss = tg.zeros(BATCH, HIDDEN), 0.0
    for t in range(LENGTH):
        state, scores = advance(state, passages[:, t])
        loss = loss + F.cross_entropy(scores, passages[:, t + 1]) / LENGTH
    loss.backward()
    tg.nn.utils.clip_grad_norm_(optimizer.param_groups[0]["params"], 1.0)
    optimizer.step()
    scheduler.step()
    losses.append(loss.item())

# %% [markdown]
# It is given the first words, and goes on with what it finds most likely.

# %%
GIVEN = 20
written, states = list(codes[:GIVEN]), []
with tg.no_grad():
    state = tg.zeros(1, HIDDEN)
    for t in range(len(codes) - 1):
        state, scores = advance(state, tg.tensor([written[t]]))
        states.append(state.numpy()[0])
        if t + 1 >= GIVEN:
            written.append(int(scores.argmax()))
text = "".join(alphabet[code] for code in written)
right = np.mean(np.array(written) == codes)
print(text)
print(f"{right:.1%} of the characters are right; loss {losses[-1]:.3f}")
assert losses[-1] < 0.2
assert right > 0.95

# %%
figure, (above, below) = plt.subplots(2, 1, layout="constrained", figsize=(9, 5))
above.semilogy(losses)
above.set(xlabel="step", ylabel="loss per character")
below.imshow(np.array(states)[:90, :30].T, aspect="auto", cmap="coolwarm")
below.set_xticks(range(90), list(text[:90]), fontsize=7)
below.set(ylabel="state", yticks=[])
save(figure, "character_rnn")

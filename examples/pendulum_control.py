"""Optimal control: a motor that is too weak to lift a pendulum swings it up.

The torque at 80 moments is to be found, such that the pendulum stands upright in the end. The
whole motion is a function of the torques; `tg.jit` compiles it, with its gradient back through
time.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from display import save

import tapegrad as tg

MOMENTS, SUBSTEPS, TIME = 80, 4, 10.0
STRONGEST = 0.6  # of the torque that would hold the pendulum horizontally
STEP = TIME / MOMENTS / SUBSTEPS

# %% [markdown]
# The state is the angle, 0 where the pendulum hangs, and the velocity. A step of the midpoint
# rule is a trip of the loop: `tg.scan` keeps it one loop in the compiled program.


# %%
def acceleration(angle, velocity, torque):
    return -np.sin(angle) - 0.05 * velocity + torque


def moved(state, torque):
    """The state after a moment of constant torque; and its angle, for `scan` to collect."""
    angle, velocity = state
    for _ in range(SUBSTEPS):
        half_angle = angle + 0.5 * STEP * velocity
        half_velocity = velocity + 0.5 * STEP * acceleration(angle, velocity, torque)
        angle = angle + STEP * half_velocity
        velocity = velocity + STEP * acceleration(half_angle, half_velocity, torque)
    return (angle, velocity), angle


def motion(torques):
    return tg.scan(moved, (0.0, 0.0), torques)


def cost(torques):
    """How far from upright and at rest the end is, and a little for the effort."""
    (angle, velocity), _ = motion(torques)
    return (angle - np.pi) ** 2 + velocity**2 + 1e-3 * np.mean(torques**2)


# %% [markdown]
# L-BFGS-B keeps the torques within the motor's bounds. At rest the gradient is small; a rhythm to
# begin with helps.

# %%
compiled = tg.jit(cost)
rhythm = 0.3 * np.sin(np.linspace(0, TIME, MOMENTS))
found = tg.optimize.minimize(
    compiled, rhythm, bounds=(-STRONGEST, STRONGEST), options={"maxiter": 2000}, progress=True
)
(angle, velocity), angles = motion(found.x)
print(f"cost {found.fun:.2e} after {found.nit} iterations")
print(f"in the end: angle {angle / np.pi:.4f} pi, velocity {velocity:+.4f}")
assert abs(angle - np.pi) < 0.02
assert abs(velocity) < 0.02
assert np.abs(found.x).max() <= STRONGEST

# %%
times = np.linspace(0, TIME, MOMENTS)
figure, (left, right) = plt.subplots(1, 2, layout="constrained", figsize=(9, 3.5))
left.plot(times, angles / np.pi, label="angle / pi")
left.step(times, found.x, where="post", label="torque")
left.axhline(1, color="k", linestyle=":")
left.set(xlabel="time")
left.legend()
for k in range(0, MOMENTS, 4):
    tip = np.sin(angles[k]), -np.cos(angles[k])
    right.plot([0, tip[0]], [0, tip[1]], "o-", color=plt.cm.viridis(k / MOMENTS), markevery=[1])
right.set(aspect="equal", title="from dark to bright")
right.set_axis_off()
save(figure, "pendulum_control")

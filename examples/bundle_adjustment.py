"""Bundle adjustment: where cameras stood and what they saw, from the pictures alone.

Each observation depends on one camera and one point, so that of the Jacobian nearly all is zero.
The blocks that are not are computed all at once, by `jit` of `vmap` of `jacobian`.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from display import bar, save
from scipy import sparse
from scipy.sparse.linalg import spsolve

import tapegrad as tg

CAMERAS, POINTS, NOISE = 10, 150, 1e-3

# %% [markdown]
# A camera is a rotation vector and a translation; it sees a point at (x/z, y/z) in its own frame.


# %%
def rotated(axis, x):
    """A point turned about an axis, by Rodrigues' formula; the axis's length is the angle."""
    angle = np.sqrt(np.sum(axis**2) + 1e-20)
    unit = axis / angle
    turned = np.cos(angle) * x + np.sin(angle) * np.cross(unit, x)
    return turned + (1 - np.cos(angle)) * np.dot(unit, x) * unit


def projected(camera, point):
    seen = rotated(camera[:3], point) + camera[3:]
    return seen[:2] / seen[2]


# %% [markdown]
# A scene: points in a cube, and cameras in an arc about it, each of which sees most of them.

# %%
rng = np.random.default_rng(5)
points = rng.uniform(-1, 1, (POINTS, 3))
turns = np.linspace(-0.8, 0.8, CAMERAS)
cameras = np.column_stack(
    [0.1 * np.sin(5 * turns), turns, 0 * turns, 0 * turns, 0 * turns, 5 + turns]
)
which_camera, which_point = np.nonzero(rng.random((CAMERAS, POINTS)) < 0.7)
project = tg.jit(tg.vmap(projected))
pictures = project(cameras[which_camera], points[which_point])
pictures = pictures + NOISE * rng.standard_normal(pictures.shape)

# %% [markdown]
# The Jacobian: for each observation a block of 2 x 6 by its camera, and one of 2 x 3 by its
# point.

# %%
blocks = tg.jit(tg.vmap(tg.jacobian(projected, argnums=(0, 1))))
rows = 2 * np.arange(len(pictures))[:, None, None] + np.arange(2)[:, None]
columns = [
    6 * which_camera[:, None, None] + np.arange(6),
    6 * CAMERAS + 3 * which_point[:, None, None] + np.arange(3),
]
places = [
    np.concatenate([np.broadcast_arrays(rows, c)[k].ravel() for c in columns]) for k in (0, 1)
]


def residuals(cameras, points):
    return (project(cameras[which_camera], points[which_point]) - pictures).ravel()


def jacobian(cameras, points):
    values = blocks(cameras[which_camera], points[which_point])
    flat = np.concatenate([block.ravel() for block in values])
    return sparse.csr_array((flat, places), shape=(pictures.size, cameras.size + points.size))


# %% [markdown]
# Levenberg and Marquardt: Gauss-Newton steps, damped as much as is needed to make the error
# smaller. All begins up to 0.1 away from the truth.

# %%
now = [
    cameras + rng.uniform(-0.1, 0.1, cameras.shape),
    points + rng.uniform(-0.1, 0.1, points.shape),
]
damping = 1e-3
r = residuals(*now)
errors = [np.sqrt(np.mean(r**2))]
for _ in bar(range(15), "adjusting"):
    J = jacobian(*now)
    normal, slope = (J.T @ J).tocsc(), J.T @ r
    step = -spsolve(normal + damping * sparse.eye_array(slope.size, format="csc"), slope)
    tried = [
        now[0] + step[: cameras.size].reshape(-1, 6),
        now[1] + step[cameras.size :].reshape(-1, 3),
    ]
    r_tried = residuals(*tried)
    if r_tried @ r_tried < r @ r:
        now, r, damping = tried, r_tried, damping / 10
    else:
        damping *= 10
    errors.append(np.sqrt(np.mean(r**2)))

# %% [markdown]
# What is left is the noise, less what the parameters take up. The scene is found but for a
# rotation, a shift and a scale, which no picture shows: these are taken out by Procrustes'
# method.

# %%
expected = NOISE * np.sqrt(1 - (cameras.size + points.size - 7) / pictures.size)
print(f"Jacobian: {J.shape[0]} x {J.shape[1]}, {J.nnz / np.prod(J.shape):.1%} not zero")
print(f"error {errors[0]:.4f} before, {errors[-1]:.6f} after; the noise explains {expected:.6f}")
assert abs(errors[-1] / expected - 1) < 0.1

centred, aim = now[1] - now[1].mean(0), points - points.mean(0)
left, sizes, right = np.linalg.svd(centred.T @ aim)
placed = sizes.sum() / np.sum(centred**2) * centred @ left @ right
distance = np.sqrt(np.mean(np.sum((placed - aim) ** 2, axis=1)))
print(f"points are {distance:.4f} from where they were, on the average")
assert distance < 0.01

# %%
figure, (left, right) = plt.subplots(1, 2, layout="constrained", figsize=(9, 3.5))
left.semilogy(errors, "o-")
left.axhline(expected, color="k", linestyle=":", label="noise")
left.set(xlabel="step", ylabel="error in the pictures")
left.legend()
right.spy(J[:400], markersize=0.3, aspect="auto")
right.set(title="the Jacobian, 400 rows", xticks=[], yticks=[])
save(figure, "bundle_adjustment")

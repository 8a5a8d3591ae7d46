"""Curve fitting: how well the data determine the parameters, and the curve.

A damped oscillation in noise. Least squares use the exact Jacobian; it also gives the covariance
of the parameters, and that of anything computed from them.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from display import save
from scipy.optimize import curve_fit

import tapegrad as tg

# %% [markdown]
# The parameters are a dict; so are the start and the result.

# %%
truth = {"size": 2.0, "decay": 0.4, "frequency": 3.0, "phase": 0.5}
NOISE = 0.15
rng = np.random.default_rng(11)
t = np.linspace(0, 6, 80)


def model(p, t):
    return p["size"] * np.exp(-p["decay"] * t) * np.cos(p["frequency"] * t + p["phase"])


data = model(truth, t) + NOISE * rng.standard_normal(t.size)
start = {"size": 1.0, "decay": 0.1, "frequency": 2.8, "phase": 0.0}
found = tg.optimize.least_squares(lambda p: model(p, t) - data, start)

# %% [markdown]
# Near the solution residuals are linear in the parameters, so that these vary as s² (JᵀJ)⁻¹ does,
# where s² is the variance of the residuals.

# %%
variance = 2 * found.cost / (t.size - len(truth))
covariance = variance * np.linalg.inv(found.jac.T @ found.jac)
deviations = np.sqrt(np.diag(covariance))
print(f"noise {np.sqrt(variance):.3f}, truth {NOISE}")
for (name, value), deviation in zip(found.x.items(), deviations):
    print(f"{name:9} {value:.3f} ± {deviation:.3f}   truth {truth[name]}")
    assert abs(value - truth[name]) < 4 * deviation

# %% [markdown]
# SciPy's `curve_fit` is the same for a function of numbers; with the Jacobian from here it ends
# at the same parameters and the same covariance.


# %%
def curve(t, size, decay, frequency, phase):
    return model({"size": size, "decay": decay, "frequency": frequency, "phase": phase}, t)


def slopes(t, *values):
    return np.column_stack(tg.jacobian(curve, argnums=(1, 2, 3, 4))(t, *values))


values, same = curve_fit(curve, t, data, p0=list(start.values()), jac=slopes)
np.testing.assert_allclose(values, list(found.x.values()), rtol=1e-5)
np.testing.assert_allclose(same, covariance, rtol=1e-3, atol=1e-8)

# %% [markdown]
# The curve's own deviation at each time: the parameters' covariance, seen through its Jacobian.

# %%
finer = np.linspace(0, 8, 400)
through = slopes(finer, *values)
band = np.sqrt(np.sum((through @ covariance) * through, axis=1))
best = model(found.x, finer)
inside = np.abs(best - model(truth, finer)) < 3 * band
assert inside.mean() > 0.9

figure, axes = plt.subplots(layout="constrained", figsize=(9, 3.5))
axes.plot(t, data, ".", color="0.5", label="data")
axes.plot(finer, model(truth, finer), "k:", label="truth")
axes.plot(finer, best, label="fit")
axes.fill_between(finer, best - 2 * band, best + 2 * band, alpha=0.3, label="± 2 deviations")
axes.set(xlabel="time")
axes.legend()
save(figure, "curve_fitting")

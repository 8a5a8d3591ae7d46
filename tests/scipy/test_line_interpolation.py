"""`interp1d` of all kinds against SciPy's: values, bounds, derivatives, transforms."""

import numpy as np
import pytest
import scipy.interpolate

import tapegrad as tg
from tests.scipy.test_names import alike_in_transforms, same

pytestmark = pytest.mark.tapegrad_only("PyTorch has no interpolation of this kind")

rng = np.random.default_rng(0)
X, Y = np.array([0.0, 1.0, 2.5, 3.0, 4.2]), rng.standard_normal((3, 5, 2))
AT, INSIDE = np.array([[0.3, 1.0, 2.7], [3.9, 0.0, 4.2]]), np.array([0.3, 1.7, 2.7, 3.8])
FAR, ORDER = np.array([-1.0, 0.5, 2.5, 7.0]), np.array([3, 0, 4, 1, 2])
KINDS = [
    "linear", "nearest", "nearest-up", "previous", "next", "zero", "slinear", "quadratic", "cubic",
    4, 1,
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_values_and_derivatives(kind):
    call = lambda lib, y, at: lib.interp1d(X, y, kind, axis=1)(at)
    same("interpolate", call, Y, AT, orders=0)
    same("interpolate", call, Y, INSIDE)
    alike_in_transforms("interpolate", call, Y, INSIDE)
    unsorted = lambda lib, y: lib.interp1d(X[ORDER], y[:, ORDER], kind, axis=1)(AT)
    same("interpolate", unsorted, Y, orders=1)
    same("interpolate", lambda lib, y: lib.interp1d(X, y, kind)(1.3), Y[0, :, 0], orders=1)


@pytest.mark.parametrize("raises", [None, False])
@pytest.mark.parametrize("fill", [0.5, (-1.0, 2.0), "extrapolate"])
@pytest.mark.parametrize("kind", KINDS)
def test_places_beyond_the_points(kind, fill, raises):
    def value(lib, y):
        how = {"axis": 1, "bounds_error": raises, "fill_value": fill}
        return lib.interp1d(X, y, kind, **how)(FAR)

    try:
        wanted = value(scipy.interpolate, Y)
    except ValueError:
        with pytest.raises(ValueError, match="outside of the points"):
            value(tg.scipy.interpolate, tg.tensor(Y))
    else:
        np.testing.assert_allclose(value(tg.scipy.interpolate, tg.tensor(Y)), wanted, rtol=1e-12)


def test_what_is_refused():
    make, y = tg.scipy.interpolate.interp1d, tg.tensor(Y)
    with pytest.raises(TypeError, match="the points are an array"):
        make(tg.tensor(X), y, axis=1)
    with pytest.raises(ValueError, match="as many points as values"):
        make(X, y, axis=0)
    with pytest.raises(NotImplementedError, match="kind is one of"):
        make(X, y, "smooth", axis=1)
    with pytest.raises(ValueError, match="exclude each other"):
        make(X, y, axis=1, bounds_error=True, fill_value="extrapolate")

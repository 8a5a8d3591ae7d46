"""The names of `autograd.test_util`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

from tapegrad.compat.autograd.wrap_util import unary_to_nary
from tapegrad.transforms import checking
from tapegrad.transforms.pytree import flatten

TOL = 1e-6


@unary_to_nary
def check_grads(
    f: Callable[..., Any], x: Any, modes: Sequence[str] = ("fwd", "rev"), order: int = 2
) -> None:
    """Compare the derivatives of `f` with differences: ``check_grads(f, argnum)(*args)``.

    >>> import numpy as np
    >>> from tapegrad.compat.autograd.test_util import check_grads
    >>> check_grads(np.sin)(0.5)
    """
    checking.check_grads(f, (x,), order, modes)


def check_vjp(f: Callable[..., Any], x: Any) -> None:
    """Compare the gradients of a function of one argument with differences.

    >>> import numpy as np
    >>> from tapegrad.compat.autograd.test_util import check_vjp
    >>> check_vjp(np.sin, 0.5)
    """
    checking.check_grads(f, (x,), 1, ("rev",))


def check_jvp(f: Callable[..., Any], x: Any) -> None:
    """Compare the tangents of a function of one argument with differences.

    >>> import numpy as np
    >>> from tapegrad.compat.autograd.test_util import check_jvp
    >>> check_jvp(np.sin, 0.5)
    """
    checking.check_grads(f, (x,), 1, ("fwd",))


def combo_check(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., None]:
    """`check_grads` for all combinations of several values for each argument.

    >>> import numpy as np
    >>> from tapegrad.compat.autograd.test_util import combo_check
    >>> combo_check(np.sum, (0,))([np.ones(2), np.ones((2, 3))], axis=[0, None])
    """
    check = check_grads(fun, *args, **kwargs)

    def all_of(*choices: Any, **named: Any) -> None:
        for values in product(*choices):
            for more in product(*named.values()):
                check(*values, **dict(zip(named, more)))

    return all_of


def scalar_close(a: Any, b: Any) -> bool:
    """Whether two numbers agree to six digits.

    >>> from tapegrad.compat.autograd.test_util import scalar_close
    >>> scalar_close(1.0, 1.0 + 1e-9), scalar_close(1.0, 1.1)
    (True, False)
    """
    return bool(abs(a - b) < TOL or abs(a - b) / abs(a + b) < TOL)


def check_equivalent(x: Any, y: Any) -> None:
    """Raise unless two containers of arrays are alike and agree to six digits.

    >>> import numpy as np
    >>> from tapegrad.compat.autograd.test_util import check_equivalent
    >>> check_equivalent([np.ones(2), 1.0], [np.ones(2), 1.0])
    """
    (a, tree), (b, other) = flatten(x), flatten(y)
    assert tree == other, f"the structures differ: {tree!r} and {other!r}"
    for one, two in zip(a, b, strict=True):
        np.testing.assert_allclose(one, two, rtol=TOL, atol=TOL)
        assert np.shape(one) == np.shape(two), f"the shapes {np.shape(one)} and {np.shape(two)}"


__all__ = [
    "check_equivalent", "check_grads", "check_jvp", "check_vjp", "combo_check", "scalar_close",
]  # fmt: skip

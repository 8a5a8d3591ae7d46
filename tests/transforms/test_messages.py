"""Messages name what was called."""

import numpy as np
import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("about the NumPy face")


def test_messages_name_the_function_that_was_called():
    for name in ("grad", "value_and_grad"):
        with pytest.raises(TypeError, match=rf"`{name}`: .* must return a scalar"):
            getattr(tg, name)(lambda x: x)(np.ones(2))

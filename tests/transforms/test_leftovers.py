"""What a transform leaves behind on the tape: nothing of its own, and nothing lost of others'."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.tape import current

pytestmark = pytest.mark.tapegrad_only("transforms are not PyTorch's")

X = np.array([0.5, -1.0, 2.0])
CALLS = {
    "grad": lambda: tg.grad(lambda x, y: np.sum(x * y * x), argnums=(0, 1))(X, X),
    "value_and_grad": lambda: tg.value_and_grad(lambda d: np.sum(d["x"] ** 3))({"x": X}),
    "grad of grad": lambda: tg.grad(lambda x: tg.grad(lambda y: y**3)(x) ** 2)(2.0),
    "jvp": lambda: tg.jvp(lambda x: np.sin(x) * x[0], (X,), (X,)),
    "hvp": lambda: tg.hvp(lambda x: np.sum(x**3))(X, X),
    "jacrev": lambda: tg.jacrev(lambda x: np.sin(x) * x[0])(X),
    "jacfwd": lambda: tg.jacfwd(lambda x: np.sin(x) * x[0])(X),
    "hessian": lambda: tg.hessian(lambda x: np.sum(x**3))(X),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_transform_of_arrays_leaves_no_records(name):
    def lengths():
        CALLS[name]()
        return len(current.tape), len(current.tape.leaves)

    # In a thread, whose tape is new: a long one is not rewound, but reclaimed when it is full.
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(lengths).result()
        assert [pool.submit(lengths).result() for _ in range(3)] == [first] * 3


def test_records_of_the_user_stay():
    w = tg.tensor(3.0, requires_grad=True)
    y = w * w
    tg.grad(lambda a, b: a * b, argnums=(0, 1))(2.0, 3.0)
    (y * w).backward()
    assert w.grad.item() == 27.0


def test_a_record_that_the_function_keeps_stays():
    w = tg.tensor(3.0, requires_grad=True)
    kept = []

    def f(a, b):
        kept.append(w * w)
        return a * b

    assert tg.grad(f, argnums=(0, 1))(2.0, 5.0) == (5.0, 2.0)
    kept[0].backward()
    assert w.grad.item() == 6.0


def test_a_value_that_depends_on_the_arguments_alone_is_a_number():
    value, _ = tg.value_and_grad(lambda a, b: a * b, argnums=(0, 1))(2.0, 5.0)
    assert type(value) is float


def test_aux_from_outside_keeps_its_history():
    w = tg.tensor(3.0, requires_grad=True)
    _, aux = tg.grad(lambda a: (a * a, (a, w * w)), has_aux=True)(2.0)
    assert type(aux[0]) is float
    aux[1].backward()
    assert w.grad.item() == 6.0

"""detect_anomaly: a NaN in backward is an error that says where it came from."""

import importlib
import warnings

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def quiet():
    """Anomaly mode may warn that it is slow, and print the forward traceback as a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def nan_gradient(tg):
    """sqrt at -1: value NaN, gradient NaN."""
    x = tg.tensor([-1.0, 4.0], requires_grad=True)
    return x, tg.sqrt(x * 1).sum()


def test_without_it_a_nan_passes(tg):
    x, y = nan_gradient(tg)
    y.backward()
    assert x.grad.isnan().tolist() == [True, False]


def test_detect_anomaly_raises_and_names_the_operation(tg):
    with tg.autograd.detect_anomaly():
        x, y = nan_gradient(tg)
        with pytest.raises(RuntimeError, match=r"(?i)sqrt.*nan"):
            y.backward()
    assert x.grad is None


@pytest.mark.parametrize("shape", [(40_000,), (200, 200)])
def test_large_arrays_are_looked_at_too(tg, shape):
    with tg.autograd.detect_anomaly():
        x = tg.ones(shape, requires_grad=True)
        with pytest.raises(RuntimeError, match=r"(?i)div.*nan"):
            ((x * 0) / (x * 0)).sum().backward()
        if len(shape) == 2:
            y = tg.full(shape, float("nan"))
            with pytest.raises(RuntimeError, match=r"(?i)(mm|mat).*nan"):
                (x @ y).sum().backward()


def test_autograd_grad_raises_too(tg):
    with tg.autograd.detect_anomaly():
        x, y = nan_gradient(tg)
        with pytest.raises(RuntimeError, match=r"(?i)nan"):
            tg.autograd.grad(y, x)


def test_a_good_gradient_is_the_same_with_it(tg, leaf):
    x = leaf([1.0, 4.0])
    with tg.autograd.detect_anomaly():
        tg.sqrt(x).sum().backward()
    assert x.grad.tolist() == [0.5, 0.25]


def test_infinity_is_not_an_anomaly(tg, leaf):
    x = leaf(0.0)
    with tg.autograd.detect_anomaly():
        tg.sqrt(x).backward()
    assert x.grad.item() == float("inf")


def test_check_nan_false_lets_nan_pass(tg):
    with tg.autograd.detect_anomaly(check_nan=False):
        x, y = nan_gradient(tg)
        y.backward()
    assert x.grad.isnan().tolist() == [True, False]


def test_it_ends_with_its_context(tg):
    with tg.autograd.detect_anomaly():
        pass
    x, y = nan_gradient(tg)
    y.backward()
    assert x.grad.isnan().any()


def test_set_detect_anomaly(tg):
    try:
        tg.autograd.set_detect_anomaly(True)
        _, y = nan_gradient(tg)
        with pytest.raises(RuntimeError, match=r"(?i)nan"):
            y.backward()
    finally:
        tg.autograd.set_detect_anomaly(False)
    x, y = nan_gradient(tg)
    y.backward()
    assert x.grad.isnan().any()


def test_set_detect_anomaly_as_a_context(tg):
    with tg.autograd.set_detect_anomaly(True):
        _, y = nan_gradient(tg)
        with pytest.raises(RuntimeError, match=r"(?i)nan"):
            y.backward()
    with tg.autograd.set_detect_anomaly(False):
        _, y = nan_gradient(tg)
        y.backward()


def test_a_function_that_returns_nan_is_named(tg, leaf):
    class Broken(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * float("nan")

    x = leaf(1.0)
    with tg.autograd.detect_anomaly():
        y = Broken.apply(x) * 3
        with pytest.raises(RuntimeError, match="Broken"):
            y.backward()
    assert x.grad is None


def test_an_error_of_a_function_keeps_its_type(tg, leaf):
    class Broken(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            raise ZeroDivisionError("in backward")

    with tg.autograd.detect_anomaly():
        y = Broken.apply(leaf(1.0))
        with pytest.raises(ZeroDivisionError, match="in backward"):
            y.backward()


@pytest.mark.tapegrad_only("PyTorch prints the forward traceback as a warning")
def test_the_line_that_recorded_the_operation_is_named(tg):
    with tg.autograd.detect_anomaly():
        x = tg.tensor([-1.0, 4.0], requires_grad=True)
        y = tg.sqrt(x * 1)  # the culprit
        z = y.sum()
        with pytest.raises(RuntimeError) as caught:
            z.backward()
    message = str(caught.value)
    with open(__file__) as source:
        lines = source.read().splitlines()
    number = next(i for i, text in enumerate(lines, 1) if text.endswith("  # the culprit"))
    assert f"test_anomaly.py:{number}" in message or f'test_anomaly.py", line {number}' in message


@pytest.mark.tapegrad_only("a masked NaN is no NaN")
def test_a_masked_nan_is_not_an_anomaly(tg, leaf):
    x = leaf([0.0, 4.0])
    with tg.autograd.detect_anomaly():
        tg.where(x > 0, tg.sqrt(x), tg.zeros(2)).sum().backward()
    assert x.grad.tolist() == [0.0, 0.25]


@pytest.mark.tapegrad_only("looks at the tape")
def test_lines_hold_no_record(tg, leaf, monkeypatch):
    tape = importlib.import_module("tapegrad.tape.tape")
    monkeypatch.setattr(tape.current, "tape", tape.Tape())
    x = leaf([1.0, 2.0])
    with tg.autograd.set_detect_anomaly(True):
        for _ in range(6000):
            x * 1.0
    tape = (x * 1.0).tape.whole
    assert len(tape) < 5000
    assert len(tape.traces) < 5000


# -- strictly: what a strong zero hides -----------------------------------------------------------

strictly = pytest.mark.tapegrad_only("PyTorch has no strong zero")
HIDDEN = "has a derivative that is not finite where its adjoint is zero"
X = np.array([0.0, 4.0])


def masked(tg, x):
    return tg.where(x > 0, tg.sqrt(x), 0.0).sum()


def swept_by(tg):
    """Ways to the gradient of a function of one argument."""

    def backward(f):
        x = tg.tensor(X, requires_grad=True)
        f(x).backward()
        return x.grad.numpy()

    def recorded(f):
        x = tg.tensor(X, requires_grad=True)
        return tg.autograd.grad(f(x), x, create_graph=True)[0].detach().numpy()

    return {
        "backward": backward,
        "create_graph": recorded,
        "grad": lambda f: tg.grad(f)(X),
        "func.grad": lambda f: tg.func.grad(f)(tg.tensor(X)).numpy(),
        "vjp": lambda f: tg.vjp(f, X)[1](1.0)[0],
        "mapped vjp": lambda f: tg.vmap(tg.vjp(f, X)[1])(np.ones(2))[0][1],
        "vmap": lambda f: tg.vmap(tg.grad(f))(np.stack([X + 1, X]))[1],
        "jacrev": lambda f: tg.jacrev(f)(X),
        "checkpoint": lambda f: tg.grad(tg.checkpoint(f))(X),
        "cond": lambda f: tg.grad(lambda x: tg.cond(x[1] > 0, f, lambda x: x[0], x))(X),
        "hessian": lambda f: tg.grad(lambda x: np.sum(tg.grad(f)(x) * 0.0))(X),
    }


WAYS = [
    "backward", "create_graph", "grad", "func.grad", "vjp", "mapped vjp", "vmap", "jacrev",
    "checkpoint", "cond", "hessian",
]  # fmt: skip


@strictly
@pytest.mark.parametrize("way", WAYS)
def test_strictly_a_masked_derivative_is_an_anomaly(tg, way):
    gradient = swept_by(tg)[way]
    with tg.autograd.detect_anomaly(check_nan="strict"):
        with pytest.raises(RuntimeError, match=f"SqrtBackward0 {HIDDEN}"):
            gradient(lambda x: masked(tg, x))
        gradient(lambda x: (x * x).sum() * 0.0)
        gradient(lambda x: tg.sqrt(x[1:]).sum())
    with tg.autograd.detect_anomaly():
        gradient(lambda x: masked(tg, x))


@strictly
@pytest.mark.parametrize(
    ("f", "name"),
    [
        (lambda tg, x: tg.log(x).sum() * 0.0, "LogBackward0"),
        (lambda tg, x: tg.where(x > 0, 1 / x, x).sum(), "(Reciprocal|Div)Backward0"),
        (lambda tg, x: tg.where(x > 0, x**0.5, x).sum(), "(Sqrt|Pow)Backward0"),
        (lambda tg, x: (tg.tensor([[np.inf, 1.0], [1.0, 1.0]]) @ x)[1], "MmBackward0"),
        (lambda tg, x: (tg.sqrt(x) * x)[1], "SqrtBackward0"),
        (lambda tg, x: tg.xlogy(x, x).sum() * 0.0, "XlogyBackward0"),
        (lambda tg, x: tg.where(x > 0, tg.sqrt(x), 0.0).mean(), "SqrtBackward0"),
        (lambda tg, x: (tg.sqrt(x).expand(3, 2) * tg.tensor([0.0, 1.0])).sum(), "SqrtBackward0"),
    ],
)
def test_strictly_the_operation_is_named(tg, leaf, f, name):
    with tg.autograd.set_detect_anomaly(True, check_nan="strict"):
        y = f(tg, leaf([0.0, 4.0]))
        with pytest.raises(RuntimeError, match=f"^{name} {HIDDEN}"):
            y.backward()


@strictly
def test_strictly_large_arrays_and_empty_ones(tg):
    with tg.autograd.detect_anomaly(check_nan="strict"):
        x = tg.zeros(30_000, requires_grad=True)
        with pytest.raises(RuntimeError, match=HIDDEN):
            masked(tg, x).backward()
        none = tg.zeros(0, requires_grad=True)
        masked(tg, none).backward()
    assert none.grad.shape == (0,)


@strictly
def test_strictly_nan_is_still_found_and_the_message_says_where(tg):
    with tg.autograd.detect_anomaly(check_nan="strict"):
        _, y = nan_gradient(tg)
        with pytest.raises(RuntimeError, match="SqrtBackward0 returned NaN"):
            y.backward()
        x = tg.tensor(X, requires_grad=True)
        y = masked(tg, x)
        with pytest.raises(RuntimeError, match=r"the gradient itself does not show it.*NaN") as why:
            y.backward()
    assert "test_anomaly.py" in str(why.value)
    assert "in masked" in str(why.value)
    assert x.grad is None


@strictly
def test_strictly_a_users_rule_runs_once(tg, leaf):
    calls = []

    class Root(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.sqrt()

        @staticmethod
        def backward(ctx, g):
            calls.append(g)
            return g * 2

    with tg.autograd.detect_anomaly(check_nan="strict"):
        (Root.apply(leaf([0.0, 4.0])) * tg.tensor([0.0, 1.0])).sum().backward()
    assert len(calls) == 1


@strictly
def test_strictly_values_that_went_through_hooks_are_read(tg, leaf):
    with (
        tg.autograd.detect_anomaly(check_nan="strict"),
        tg.autograd.graph.saved_tensors_hooks(lambda t: t.tolist(), tg.tensor),
    ):
        y = masked(tg, leaf([0.0, 4.0]))
        with pytest.raises(RuntimeError, match=HIDDEN):
            y.backward()


@strictly
def test_how_nan_is_looked_for(tg):
    for wrong in ("always", 2, None):
        for switch in (
            lambda w=wrong: tg.autograd.detect_anomaly(check_nan=w),
            lambda w=wrong: tg.autograd.set_detect_anomaly(True, w),
        ):
            with pytest.raises(ValueError, match="`check_nan` is True, False or 'strict', got"):
                switch()
    assert not tg.is_anomaly_enabled()


class Told:
    """The warnings that come inside."""

    def __enter__(self):
        self.caught = warnings.catch_warnings(record=True)
        self.found = self.caught.__enter__()
        warnings.simplefilter("always")
        return self

    def __exit__(self, *exception):
        self.caught.__exit__(*exception)

    @property
    def texts(self):
        return [str(w.message) for w in self.found if w.category is UserWarning]


def test_it_says_that_it_has_been_enabled(tg):
    with Told() as told, tg.autograd.detect_anomaly():
        pass
    assert len(told.texts) == 1
    assert "has been enabled" in told.texts[0]
    with Told() as told, tg.autograd.set_detect_anomaly(True):
        pass
    assert not told.texts


def broken(tg):
    class Broken(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            raise ValueError("it is broken")

    return Broken.apply


def changed(tg):
    def run(x):
        y = x + 1
        z = y**2
        y += 1
        return z

    return run


@pytest.mark.parametrize(
    ("make", "problem", "name"),
    [(broken, ValueError, "BrokenBackward"), (changed, RuntimeError, "PowBackward0")],
)
def test_of_any_error_it_says_where_the_record_was_made(tg, leaf, make, problem, name):
    function = make(tg)
    with Told() as told, pytest.raises(problem), tg.autograd.set_detect_anomaly(True):
        function(leaf([1.0])).sum().backward()
    assert f"Error detected in {name}" in told.texts[0]
    assert "test_anomaly.py" in told.texts[0]
    y = function(leaf([1.0])).sum()
    with Told() as told, pytest.raises(problem), tg.autograd.set_detect_anomaly(True):
        y.backward()
    assert "No forward pass information" in told.texts[0]
    with Told() as told, pytest.raises(problem):
        function(leaf([1.0])).sum().backward()
    assert not told.texts


def test_a_warning_that_raises_does_not_hide_the_error(tg, leaf, capsys):
    with Told(), tg.autograd.set_detect_anomaly(True):
        warnings.simplefilter("error")
        y = broken(tg)(leaf([1.0])).sum()
        with pytest.raises(ValueError, match="broken"):
            y.backward()
    assert "Error detected in BrokenBackward" in capsys.readouterr().err


def test_of_what_a_derivative_recorded_it_says_whose_derivative_that_was(tg, leaf):
    class Outer(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return broken(tg)(g * ctx.saved_tensors[0])

    with Told() as told, tg.autograd.set_detect_anomaly(True):
        x = leaf([1.0])
        y = Outer.apply(x * x).sum()
        (g,) = tg.autograd.grad(y, x, create_graph=True)
        with pytest.raises(ValueError, match="broken"):
            g.sum().backward()
    assert len(told.texts) == 2
    assert "Error detected in BrokenBackward" in told.texts[0]
    assert "OuterBackward" in told.texts[1]
    assert "y = Outer.apply" in told.texts[1]

"""gradcheck and gradgradcheck: they accept what is right and reject what is not."""

import pytest

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")


@pytest.fixture
def gradcheck(tg):
    return tg.autograd.gradcheck


@pytest.fixture
def gradgradcheck(tg):
    return tg.autograd.gradgradcheck


@pytest.fixture
def x(tg, rng):
    return tg.tensor(rng.uniform(0.5, 2.0, (2, 3)), requires_grad=True)


def scaled_square(tg, factor, second=1.0):
    """x*x whose derivative is wrong by `factor`, and its second derivative by `second` as well."""

    class Slope(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x, g):
            ctx.save_for_backward(x, g)
            return 2 * x * g

        @staticmethod
        def backward(ctx, gg):
            x, g = ctx.saved_tensors
            return 2 * g * gg * second, 2 * x * gg

    class Square(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return Slope.apply(ctx.saved_tensors[0], g) * factor

    return Square.apply


def test_accepts_ordinary_functions(tg, gradcheck, x):
    assert gradcheck(lambda t: tg.sin(t) * t, (x,)) is True
    assert gradcheck(lambda t: (t @ t.t()).sum(), (x,)) is True


def test_accepts_one_tensor_without_a_tuple(tg, gradcheck, x):
    assert gradcheck(tg.exp, x)


def test_accepts_several_inputs_and_outputs(tg, gradcheck, rng, x):
    y = tg.tensor(rng.standard_normal(3), requires_grad=True)
    assert gradcheck(lambda a, b: (a * b, tg.tanh(b).sum()), (x, y))


def test_passes_other_arguments_through(tg, gradcheck, x):
    assert gradcheck(lambda t, k, c: (t**k) * c, (x, 3, tg.tensor(2.0)))


def test_accepts_a_function_with_a_right_derivative(tg, gradcheck, gradgradcheck, x):
    assert gradcheck(scaled_square(tg, 1.0), (x,))
    assert gradgradcheck(scaled_square(tg, 1.0), (x,))


@pytest.mark.parametrize("factor", [0.0, -1.0, 2.0, 1.01])
def test_rejects_a_wrong_derivative(tg, gradcheck, x, factor):
    with pytest.raises(RuntimeError, match=r"(?i)numerical"):
        gradcheck(scaled_square(tg, factor), (x,))


def test_its_error_is_a_runtime_error(tg, gradcheck, x):
    with pytest.raises(RuntimeError):
        gradcheck(scaled_square(tg, 2.0), (x,))


def test_raise_exception_false_gives_false(tg, gradcheck, gradgradcheck, x):
    assert gradcheck(scaled_square(tg, 2.0), (x,), raise_exception=False) is False
    wrong_second = scaled_square(tg, 1.0, second=2.0)
    assert gradgradcheck(wrong_second, (x,), raise_exception=False) is False


def test_tolerances(tg, gradcheck, x):
    nearly = scaled_square(tg, 1.0 + 1e-4)
    assert gradcheck(nearly, (x,), rtol=1e-3)
    assert not gradcheck(nearly, (x,), atol=1e-7, rtol=1e-6, raise_exception=False)


def test_gradgradcheck_rejects_a_wrong_second_derivative(tg, gradcheck, gradgradcheck, x):
    wrong_second = scaled_square(tg, 1.0, second=2.0)
    assert gradcheck(wrong_second, (x,))
    with pytest.raises(RuntimeError):
        gradgradcheck(wrong_second, (x,))


def test_gradgradcheck_accepts_ordinary_functions(tg, gradgradcheck, x):
    assert gradgradcheck(lambda t: tg.exp(t) * t, (x,))
    assert gradgradcheck(lambda t: tg.log(t).sum(), x)


def test_gradgradcheck_takes_grad_outputs(tg, gradgradcheck, x):
    assert gradgradcheck(lambda t: t**3, (x,), (tg.ones((2, 3), requires_grad=True),))


def test_gradgradcheck_rejects_once_differentiable(tg, gradgradcheck, x):
    class Square(tg.autograd.Function):
        @staticmethod
        def forward(ctx, t):
            ctx.save_for_backward(t)
            return t * t

        @staticmethod
        @tg.autograd.function.once_differentiable
        def backward(ctx, g):
            return 2 * ctx.saved_tensors[0] * g

    with pytest.raises(RuntimeError):
        gradgradcheck(Square.apply, (x,))


def test_an_input_must_require_grad(tg, gradcheck):
    with pytest.raises(ValueError, match="require"):
        gradcheck(tg.exp, (tg.ones(3),))


def test_an_integer_output_is_accepted_as_constant(tg, gradcheck, x):
    assert gradcheck(lambda t: (t * 2, t.argmax()), (x,))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_single_precision_is_checked_when_tolerances_allow(tg, gradcheck):
    x = tg.tensor([1.0, 2.0], dtype=tg.float32, requires_grad=True)
    assert gradcheck(lambda t: t * t, (x,), eps=1e-2, atol=1e-2, rtol=1e-2)


def test_inputs_and_their_grad_are_unchanged(tg, gradcheck, x):
    before = x.tolist()
    gradcheck(tg.exp, (x,))
    assert x.tolist() == before
    assert x.grad is None


def test_a_derivative_that_differs_between_runs_is_rejected(tg, gradcheck, x):
    calls = []

    class Unsteady(tg.autograd.Function):
        @staticmethod
        def forward(ctx, t):
            return t * 2

        @staticmethod
        def backward(ctx, g):
            calls.append(1)
            return g * (2 + 1e-3 * (len(calls) % 5))

    assert not gradcheck(Unsteady.apply, (x,), atol=1e-2, raise_exception=False)
    assert gradcheck(Unsteady.apply, (x,), atol=1e-2, nondet_tol=1e-2)


def test_eps_is_the_step_of_the_differences(tg, gradcheck, x):
    points = []

    def look(t):
        points.append(t.detach().clone())
        return t * 1

    gradcheck(look, (x,), eps=1e-3)
    steps = {round(float(abs(p - points[0]).max()), 9) for p in points}
    assert max(steps) in (1e-3, 2e-3)


# -- what is asked for is done --------------------------------------------------------------------


def function(tg, *, vjp=2.0, jvp=2.0, batched=1.0, zero=0.0):
    """Twice the argument, with rules that are wrong where a number says so."""

    class Twice(tg.autograd.Function):
        @staticmethod
        def forward(x):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, g):
            return g * vjp + (g == 0).to(g.dtype).min() * zero

        @staticmethod
        def jvp(ctx, t):
            return t * jvp

        @staticmethod
        def vmap(info, in_dims, x):
            return Twice.apply(x), in_dims[0]

    return Twice.apply


@pytest.mark.parametrize("fast", [False, True])
def test_the_modes_that_are_asked_for_are_checked(tg, gradcheck, x, fast):
    right, wrong_jvp = function(tg), function(tg, jvp=7.0)
    wrong_vjp = function(tg, vjp=3.0)
    assert gradcheck(right, (x,), check_forward_ad=True, fast_mode=fast)
    assert gradcheck(wrong_jvp, (x,), fast_mode=fast)
    assert gradcheck(
        wrong_vjp, (x,), check_backward_ad=False, check_forward_ad=True, fast_mode=fast
    )
    with pytest.raises(RuntimeError, match=r"(?i)numerical"):
        gradcheck(wrong_jvp, (x,), check_forward_ad=True, fast_mode=fast)
    with pytest.raises(RuntimeError, match=r"(?i)numerical"):
        gradcheck(wrong_vjp, (x,), fast_mode=fast)
    assert not gradcheck(
        wrong_vjp, (x,), check_forward_ad=True, fast_mode=fast, raise_exception=False
    )


def test_forward_mode_of_several_inputs_and_outputs(tg, gradcheck, x, rng):
    y = tg.tensor(rng.uniform(0.5, 1.0, 3), requires_grad=True)
    n = tg.tensor([1, 2, 3])
    assert gradcheck(
        lambda a, n, b: (a * b, b.sum(), (a * n).exp()), (x, n, y), check_forward_ad=True,
        check_batched_grad=True, check_batched_forward_grad=True, check_grad_dtypes=True,
    )  # fmt: skip


@pytest.mark.parametrize("fast", [False, True])
def test_gradients_where_those_of_the_outputs_are_zero(tg, gradcheck, x, fast):
    assert gradcheck(function(tg, zero=0.0), (x,), fast_mode=fast)
    shifted = function(tg, zero=1.0)
    with pytest.raises(RuntimeError):
        gradcheck(shifted, (x,), fast_mode=fast)
    with pytest.raises(RuntimeError):
        gradcheck(shifted, (x,), check_undefined_grad=False, fast_mode=fast)


def test_outputs_without_a_gradient(tg, gradcheck, x):
    """A `backward` that is not called with zeros in their place must know of None."""

    class Two(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, a, b):
            return (0 if a is None else a * 2) + (1 if b is None else b * 3)

    with pytest.raises((RuntimeError, TypeError)):
        gradcheck(Two.apply, (x,))


def test_options_that_do_not_go_together(tg, gradcheck, x):
    with pytest.raises((ValueError, AssertionError), match="check_backward_ad"):
        gradcheck(tg.sin, (x,), check_backward_ad=False)
    with pytest.raises((ValueError, AssertionError), match="check_batched_grad"):
        gradcheck(
            tg.sin, (x,), check_backward_ad=False, check_forward_ad=True, check_batched_grad=True
        )
    with pytest.raises((ValueError, AssertionError), match="check_batched_forward_grad"):
        gradcheck(tg.sin, (x,), check_batched_forward_grad=True)


def test_options_that_are_not_known(tg, gradcheck, gradgradcheck, x):
    for check in (gradcheck, gradgradcheck):
        with pytest.raises(TypeError, match="atoll"):
            check(tg.sin, (x,), atoll=1)


@pytest.mark.tapegrad_only("sparse Tensors")
def test_masked_is_refused(tg, gradcheck, x):
    with pytest.raises(NotImplementedError, match="no sparse Tensors"):
        gradcheck(tg.sin, (x,), masked=True)
    assert gradcheck(tg.sin, (x,), masked=False)


def test_second_derivatives_in_the_modes_that_are_asked_for(tg, gradcheck, gradgradcheck, x):
    assert gradgradcheck(lambda t: t.sin() * t, (x,), check_fwd_over_rev=True, fast_mode=True)
    assert gradgradcheck(
        lambda t: t.sin() * t,
        (x,),
        check_fwd_over_rev=True,
        check_rev_over_rev=False,
        check_undefined_grad=False,
    )
    assert gradgradcheck(lambda t: t.exp(), (x,), check_batched_grad=True)
    with pytest.raises((ValueError, AssertionError), match="check_"):
        gradgradcheck(lambda t: t.exp(), (x,), check_rev_over_rev=False)


def test_weights_that_do_not_lie_side_by_side(tg, gradgradcheck, x):
    seen = []

    def f(t):
        y = t * t
        y.register_hook(lambda g: seen.append(g.is_contiguous()))
        return y

    assert gradgradcheck(f, (x,), gen_non_contig_grad_outputs=True)
    assert False in seen


def test_one_of_both_modes_is_checked(tg, gradcheck, x):
    with pytest.raises(AssertionError, match=r"check_forward_ad|at least one of"):
        gradcheck(tg.sin, (x,), check_forward_ad=False, check_backward_ad=False)


@pytest.mark.parametrize("fast_mode", [False, True])
def test_refuses_outputs_that_depend_on_values_in_shape_or_dtype(tg, gradcheck, fast_mode):
    x = tg.ones(1, dtype=tg.float64, requires_grad=True)

    def longer(x):
        return tg.cat([x, x]) if x.item() >= 1 else x

    def narrower(x):
        return x.to(tg.float32) if x.item() >= 1 else x

    for function in (longer, narrower):
        with pytest.raises(AssertionError, match="the same"):
            gradcheck(function, (x,), fast_mode=fast_mode)


def test_a_missing_tangent_is_one_of_zero(tg, gradcheck):
    forward_ad = tg.autograd.forward_ad
    x, y = (tg.tensor([v], dtype=tg.float64, requires_grad=True) for v in (1.0, 2.0))

    def wrong_without(x, y):
        first, second = (forward_ad.unpack_dual(t).tangent for t in (x, y))
        return x * (3.0 if second is None and first is not None else 1.0) + y

    options = {"check_forward_ad": True, "check_backward_ad": False}
    with pytest.raises(RuntimeError, match=r"tangent|undefined"):
        gradcheck(wrong_without, (x, y), **options)
    assert gradcheck(wrong_without, (x, y), check_undefined_grad=False, **options)


def test_every_input_that_is_checked_has_a_tangent(tg, gradcheck):
    forward_ad = tg.autograd.forward_ad
    x, y = (tg.tensor([v], dtype=tg.float64, requires_grad=True) for v in (1.0, 2.0))
    seen = []

    def product(x, y):
        seen.append([forward_ad.unpack_dual(t).tangent is not None for t in (x, y)])
        return x * y

    options = {"check_backward_ad": False, "check_undefined_grad": False}
    assert gradcheck(product, (x, y), check_forward_ad=True, **options)
    assert [True, True] in seen
    assert [True, False] not in seen


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("real", [False, True], ids=["of complex", "of real"])
def test_both_parts_of_complex_numbers_are_checked(tg, gradcheck, gradgradcheck, real, fast):
    z = tg.tensor([0.5] if real else [0.5 - 0.3j], requires_grad=True)
    z = z.detach().to(tg.float64 if real else tg.complex128).requires_grad_()

    def hooked(z, weight):
        y = (z * (2.0 + 1.0j)).exp()
        y.register_hook(lambda g: g * weight)
        return y

    kind = {"check_forward_ad": True, "check_batched_grad": True, "fast_mode": fast}
    assert gradcheck(lambda z: (z * z * 1j, z.abs()), (z,), **kind)
    assert gradgradcheck(lambda z: (z * (2.0 + 1.0j)).exp(), (z,), fast_mode=fast)
    for weight in (1.1, 1.0 + 0.1j):
        assert not gradcheck(
            lambda z, w=weight: hooked(z, w), (z,), raise_exception=False, fast_mode=fast
        )

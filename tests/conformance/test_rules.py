"""Every row of the table: kernel, rule, recorded sweep and differences agree, at both orders."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.autograd import sweep
from tapegrad.kernels.codegen import rule_codegen
from tapegrad.ops.core import ELEMENTWISE, LINEAR, Formula, NotDifferentiable
from tapegrad.ops.families import table
from tapegrad.tape.tape import current
from tapegrad.tensor import wrap
from tests.conformance import checks
from tests.conformance.checks import F4, F8, Case
from tests.conformance.samples import CHIEF, LAYOUTS, OF_COMPLEX, of_shapes, samples_of

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, at empty means


def name_of(op):
    return op.name


# Records of a user's `autograd.Function` bring their own rule.
# What makes or takes complex numbers alone is in `test_complex_rows.py`.
ROWS = [op for op in table.values() if op.name not in {"function", "output", *OF_COMPLEX}]
every_row = pytest.mark.parametrize("op", ROWS, ids=name_of)
CASES = []
for op in ROWS:
    for sample in samples_of(op):
        CASES.append(pytest.param(op, sample, F8, "", id=f"{op.name} {sample.name}"))
    if op.kind is ELEMENTWISE:
        chief = [of_shapes(op, shapes) for shapes in CHIEF[len(op.inputs)]]
        moved = (
            chief[:1]
            if len(op.inputs) == 1
            else [chief[0], samples_of(op)[3 % len(samples_of(op))]]
        )
    else:
        chief = samples_of(op)[::2]
        moved = [s for s in samples_of(op) if s.movable and max(map(np.ndim, s.operands)) > 1][:2]
    for sample in chief:
        CASES.append(pytest.param(op, sample, F4, "", id=f"{op.name} {sample.name} float32"))
    for sample in moved:
        for how in LAYOUTS:
            CASES.append(pytest.param(op, sample, F8, how, id=f"{op.name} {sample.name} {how}"))

every_case = pytest.mark.parametrize(("op", "sample", "dtype", "how"), CASES)


@every_row
def test_the_row_has_samples(op):
    assert samples_of(op), f"give `{op.name}` an entry in tests/conformance/samples.py"


@every_row
def test_every_input_has_a_formula_or_a_reason(op):
    for formula in op.formulas:
        assert isinstance(formula, (Formula, NotDifferentiable))
        if isinstance(formula, NotDifferentiable):
            assert formula.reason
        elif op.kind is ELEMENTWISE:
            assert set(formula.reads) <= {*op.inputs, "y"}


@every_row
def test_operands_stand_in_the_order_of_the_formulas(op):
    """A formula belongs to the operand whose name it has; a lambda's names are its own."""
    code = getattr(op.forward, "__code__", None)
    if code is None or op.variadic:
        return
    positional = code.co_varnames[: code.co_argcount]
    for name in {*positional} & {*op.inputs}:
        assert positional.index(name) == op.inputs.index(name), (positional, op.inputs)


@every_row
def test_some_operand_is_differentiated(op):
    """No sample passes because nothing in it was looked at."""
    has_formula = any(type(f) is Formula for f in op.formulas)
    for sample in samples_of(op):
        assert bool(Case(op, sample, F8).moving) == has_formula


@every_case
def test_first_order(op, sample, dtype, how):
    case = Case(op, sample, dtype, how)
    checks.check_record(case)
    if not case.moving or not case.floating:
        return
    checks.check_kernels(case)
    checks.check_differences(case)
    if op.kind is LINEAR:
        checks.check_transpose(case)


@every_case
def test_recorded_and_second_order(op, sample, dtype, how):
    case = Case(op, sample, dtype, how)
    if not case.moving or not case.floating:
        return
    checks.check_recorded(case)
    if sample.orders > 1:
        checks.check_second_order(case)


# -- beyond what the compiled sweep does by itself -------------------------------------------------

WITH_KERNEL = [
    op for op in ROWS
    if op.kind is ELEMENTWISE and any(type(f) is Formula for f in op.formulas)
]  # fmt: skip
LARGE = (3, 701)
LARGE_SHAPES = {
    1: [[LARGE]],
    2: [[LARGE, LARGE], [LARGE, ()], [(), LARGE], [LARGE, (701,)], [(3, 1), LARGE]],
    3: [[LARGE, LARGE, LARGE], [LARGE, (), LARGE], [(3, 1), LARGE, (701,)]],
    4: [[LARGE, LARGE, LARGE, ()], [LARGE, (), LARGE, (1,)], [(3, 1), LARGE, (701,), LARGE]],
}


def large_cases():
    for op in WITH_KERNEL:
        for shapes in LARGE_SHAPES[len(op.inputs)]:
            yield pytest.param(op, shapes, F8, id=f"{op.name} {shapes}")
        yield pytest.param(op, LARGE_SHAPES[len(op.inputs)][0], F4, id=f"{op.name} large float32")


@pytest.mark.parametrize(("op", "shapes", "dtype"), list(large_cases()))
def test_large_arrays(op, shapes, dtype):
    case = Case(op, of_shapes(op, shapes), dtype)
    checks.check_kernels(case)
    case.weight = np.broadcast_to(dtype.type(0.75), case.weight.shape)  # as after a sum
    checks.check_kernels(case)
    checks.check_recorded(case)


UNCOMPILED = [
    *[pytest.param(op, samples_of(op)[0], id=op.name) for op in ROWS],
    *[
        pytest.param(op, of_shapes(op, [(3, 7001)] * len(op.inputs)), id=f"{op.name} large")
        for op in WITH_KERNEL
    ],
]


@pytest.mark.parametrize(("op", "sample"), UNCOMPILED)
def test_before_anything_is_compiled(op, sample):
    """The gradient is that of compiled kernels, recorded or not."""
    case = Case(op, sample, F8)
    if not case.moving or not case.floating:
        return
    expected = case.gradients()
    with checks.uncompiled():
        result, *found = case.value(case.arrays), case.gradients(), case.gradients(recorded=True)
        assert current.tape.workspace is None
    checks.close([result], [case.result], checks.ROUNDING[F8], "result")
    for gradients in found:
        checks.close(gradients, expected, checks.ROUNDING[F8], "gradient")


@pytest.mark.parametrize("op", WITH_KERNEL, ids=name_of)
def test_contributions_are_added(op):
    """An operand that is read three times collects three contributions, small and large."""
    for shape in ((5,), LARGE):
        case = Case(op, of_shapes(op, [shape] * len(op.inputs)), F8)
        results = []
        for native in (True, False):
            leaves = case.leaves()
            total = 0
            for k in range(3):
                total = total + op(*leaves) * (k + 1.0)
            if native:
                total.backward(wrap(case.weight))
            else:
                with checks.rules_only():
                    total.backward(wrap(case.weight))
            results.append([leaves[i].grad._a for i in case.moving])
        checks.close(results[0], results[1], 1e-12, "three contributions")


def test_work_split_over_threads():
    before = tg.get_num_threads()
    x = np.linspace(0.1, 2.0, (1 << 17) + 3)
    found = []
    try:
        for threads in (1, 2, 3):
            tg.set_num_threads(threads)
            leaf = wrap(x).requires_grad_()
            (tg.sin(leaf) * tg.tanh(leaf) + leaf * 2.0).backward(wrap(np.cos(x)))
            found.append(leaf.grad._a)
    finally:
        tg.set_num_threads(before)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
    expected = (np.cos(x) * np.tanh(x) + np.sin(x) * (1 - np.tanh(x) ** 2) + 2) * np.cos(x)
    np.testing.assert_allclose(found[0], expected, rtol=1e-13)


# Their rules are made of functions that exist on arrays alone.
LEFT_TO_NUMPY = frozenset(
    "polygamma trigamma zeta igamma igammac airy_ai gegenbauer laguerre chebyshev_polynomial_t "
    "chebyshev_polynomial_u legendre_polynomial_p laguerre_polynomial_l hermite_polynomial_h "
    "hermite_polynomial_he airy_ai_slope betainc betaincc betaincinv betainccinv gammaincinv "
    "gammainccinv stdtr stdtrit expn jv yv yn iv ive kv kve kn hyp1f1 hyp0f1 hyp2f1 ellipkinc "
    "ellipeinc gamma_log_slope beta_logit_slope_a beta_logit_slope_b ellipkinc_slope "
    "ellipeinc_slope voigt_profile lambertw jve yve struve modstruve spherical_jn spherical_yn "
    "spherical_in spherical_kn airy_bi airy_bi_slope jacobi jacobi_amplitude chdtr "
    "chdtrc chdtri gdtr gdtrc pdtr pdtrc fdtr fdtrc fdtri hyperu lpmv "
    "hyperbolic_sine_integral".split()
)


@pytest.mark.parametrize("op", WITH_KERNEL, ids=name_of)
def test_small_elementwise_records_stay_in_compiled_code(op, monkeypatch):
    """For contiguous operands of a simple pattern the compiled sweep never hands a record back."""
    compiled = all(
        rule_codegen.has_kernel(op, k) for k, f in enumerate(op.formulas) if isinstance(f, Formula)
    )
    if op.name in LEFT_TO_NUMPY:
        assert not compiled, f"`{op.name}` has a kernel: take it off the list"
        return
    if not compiled:
        pytest.fail(f"`{op.name}` has no compiled kernel: give its operations a `scalar` form")
    if len(op.inputs) > 3:
        pytest.skip("it is for large arrays, which the compiled sweep hands back in any case")

    def refuse(*_):
        raise AssertionError("handed back to Python")

    monkeypatch.setattr(sweep, "by_rule", refuse)
    for shapes in CHIEF[len(op.inputs)]:
        Case(op, of_shapes(op, shapes), F8).gradients()


@pytest.mark.parametrize("op", [op for op in ROWS if op.view], ids=name_of)
def test_a_view_follows_its_base(op):
    """After `base.mul_(2)` a view made before has the new values, and twice the gradient."""
    for sample in samples_of(op):
        case = Case(op, sample, F8)
        (leaf,) = case.leaves([x.copy() for x in case.arrays])
        base = leaf * 1.0
        view = op(base, **sample.params)
        if not np.may_share_memory(view._a, base._a):
            continue
        base.mul_(2.0)
        (found,) = tg.autograd.grad(view, leaf, wrap(case.weight))
        np.testing.assert_array_equal(view._a, 2 * case.result)
        np.testing.assert_allclose(found._a, 2 * case.gradients()[0], rtol=1e-14)

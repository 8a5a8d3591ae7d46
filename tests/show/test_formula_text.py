"""The text of a derivative formula says what the row says."""

import numpy as np
import pytest

from tapegrad.ops.core import ELEMENTWISE, Formula, NotImplementedYet
from tapegrad.ops.families import table
from tapegrad.show.formula_text import formula_text

pytestmark = pytest.mark.tapegrad_only("about this project's rows")

SMOOTH = [
    op for op in table.values()
    if op.kind is ELEMENTWISE and any(isinstance(f, Formula) for f in op.formulas)
]  # fmt: skip


@pytest.mark.parametrize("op", SMOOTH, ids=lambda op: op.name)
def test_it_computes_the_same_number(op, rng):
    """Brackets stand where Python needs them; numbers are written with six digits."""
    values = dict(zip([*op.inputs, "y"], rng.uniform(0.3, 0.7, len(op.inputs) + 1)))
    values = {name: np.asarray(value) for name, value in values.items()}
    for k, formula in enumerate(op.formulas):
        text = formula_text(op, k)
        if not isinstance(formula, Formula) or isinstance(formula, NotImplementedYet):
            assert text == ""
            continue
        wanted = formula.function(*[values[name] for name in formula.reads])
        names = {name: row.forward for name, row in table.items()} | values
        with np.errstate(all="ignore"):
            found = eval(text, {"nan": np.nan, "inf": np.inf, **names})
        np.testing.assert_allclose(np.asarray(found, float), wanted, rtol=1e-4, atol=1e-7)


def test_some_texts():
    texts = {"mul": "b", "div": "1 / b", "sin": "cos(x)", "square": "2 * x", "neg": "-1"}
    assert {name: formula_text(table[name], 0) for name in texts} == texts
    assert "(a == 0) & (b >= 0)" in formula_text(table["pow"], 1)


def test_what_has_no_derivative_has_no_text():
    assert formula_text(table["zeta"], 0) == ""
    assert formula_text(table["eq"], 0) == ""

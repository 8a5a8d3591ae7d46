"""The columns of docs/operations.md say of each function what its rows say."""

import pytest

from tapegrad.ops.core import Formula
from tapegrad.ops.families import table
from tests import operations_page
from tests.operations_page import OWN, Facts, all_facts, facts_about, facts_of

pytestmark = pytest.mark.tapegrad_only("about this project")


@pytest.mark.parametrize("listed", operations_page.functions(), ids=lambda listed: listed.path)
def test_what_is_said_of_a_function_is_true_of_its_rows(listed):
    known = all_facts().get(id(listed.function))
    assert known or listed.names[0] in OWN, "no call of it succeeds"
    facts = facts_about(listed)
    moving = [any(isinstance(f, Formula) for f in table[name].formulas) for name in facts.rows]
    if facts.orders and facts.rows:  # some give back their operand as it is
        assert any(moving)
    if facts.complex == "gradient" and facts.complex_rows:  # the others work on moduli
        assert any(table[name].complex for name in facts.complex_rows)


def test_calls_tell_orders_and_complex_numbers():
    import tapegrad as tg

    x = tg.tensor([0.5, 2.0])
    assert facts_of(tg.exp, (x,), {}) == Facts(
        frozenset({"exp"}), operations_page.ORDERS, "gradient", frozenset({"exp"})
    )
    assert facts_of(tg.prod, (x,), {}).orders == 2
    assert facts_of(tg.igamma, (x, x), {}).orders  # of the second argument alone
    assert facts_of(tg.gt, (x, x), {}) == Facts()
    assert facts_of(tg.erf, (x,), {}).complex == ""
    assert facts_of(tg.linalg.inv, (x,), {}) is None  # refused

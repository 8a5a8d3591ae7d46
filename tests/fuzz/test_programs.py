"""Random programs agree with themselves: in all modes, eagerly and compiled, and with differences.

`python -m tests.fuzz 100000` (`make fuzz N=100000`) runs more of them, beside the peers.
"""

import pytest

from tests.fuzz.search import searched

pytestmark = pytest.mark.tapegrad_only("programs that are run in all of its ways")

COUNT, BLOCK = 300, 30


@pytest.mark.parametrize("first", range(0, COUNT, BLOCK))
def test_programs_agree(first):
    found = [text for _, _, text in searched(range(first, first + BLOCK))]
    assert not found, "\n\n".join(found)

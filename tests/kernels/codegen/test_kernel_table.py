"""What is loaded while not all code of this machine is compiled yet."""

import pytest

from tapegrad.kernels import build
from tapegrad.kernels.codegen import kernel_table
from tapegrad.ops.core import table

pytestmark = pytest.mark.tapegrad_only("about kernels of this library")


@pytest.mark.parametrize(
    "load",
    [
        lambda: kernel_table.forward.__wrapped__(table["sin"], "f8", 0),
        lambda: kernel_table.from_source("def kernel(n): return n"),
    ],
)
def test_a_loop_is_not_loaded_for_want_of_what_calls_it(load, monkeypatch):
    def not_there(name, arity):
        raise build.NotCompiled(name)

    monkeypatch.setattr(kernel_table, "drive", not_there)
    monkeypatch.setattr(build, "load_or_ask", None)  # it would be loaded again at each try
    with pytest.raises(build.NotCompiled, match="rows"):
        load()

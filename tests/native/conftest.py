"""Fixtures of the tests of native operations."""

from contextlib import contextmanager

import pytest


@pytest.fixture(params=["f8", "f4"])
def dtype(request):
    return request.param


@pytest.fixture
def taken_natively(monkeypatch):
    """Within it, an operation that native code leaves to Python fails.

    A module that is first loaded within it, and takes `run` over, works afterwards.
    """
    from tapegrad.dispatch import dispatch, op_functions

    @contextmanager
    def within():
        active = True

        def run(*args):
            assert not active, f"`{args[0].name}` is left to Python"
            return real(*args)

        real = dispatch.run
        with monkeypatch.context() as patch:
            for module in (dispatch, op_functions):
                patch.setattr(module, "run", run)
            yield
        active = False

    return within

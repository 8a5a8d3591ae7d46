"""Fixtures of the tests of native operations."""

import pytest


@pytest.fixture(params=["f8", "f4"])
def dtype(request):
    return request.param

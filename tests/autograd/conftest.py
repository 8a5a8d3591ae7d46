"""What the tests of `autograd.Function` share."""

import pytest


@pytest.fixture
def Function(tg):
    return tg.autograd.Function


@pytest.fixture
def Square(Function):
    class Square(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x * g

    return Square

"""Cases of misuse: each is an exception of a known type that says what is wrong, and harms nothing.

Each runs with a healthy graph beside it. Afterwards no leaf has a gradient, the healthy graph still
gives the right one, and a new operation can be recorded.
"""

import re

import pytest


class World:
    """Two leaves, a constant, and a graph that must survive."""

    def __init__(self, tg):
        self.tg = tg
        self.x = tg.tensor([1.0, 2.0], requires_grad=True)
        self.w = tg.tensor([3.0, 4.0], requires_grad=True)
        self.c = tg.tensor([5.0, 6.0])
        self.healthy = (self.x * self.w).sum()

    def check(self):
        tg, x, w = self.tg, self.x, self.w
        assert tg.is_grad_enabled()
        assert x.grad is None
        assert w.grad is None
        assert x.tolist() == [1.0, 2.0]
        assert self.c.tolist() == [5.0, 6.0]
        self.healthy.backward()
        assert x.grad.tolist() == [3.0, 4.0]
        assert w.grad.tolist() == [1.0, 2.0]
        (x * x).sum().backward()
        assert x.grad.tolist() == [5.0, 8.0]


class Misuse:
    """A function that misuses the library, and what comes of it; its docstring says how.

    `match` is what the message says with PyTorch, too, `says` what ours says.
    """

    def __init__(self, function, error, match, says):
        self.function, self.error, self.match, self.says = function, error, match, says

    def hold(self, world):
        with pytest.raises(self.error, match=self.match) as caught:
            self.function(world)
        world.check()
        if self.says and world.tg.__name__ == "tapegrad":
            assert re.search(self.says, str(caught.value), re.DOTALL)


class Cases:
    """The cases of a file, which register themselves."""

    def __init__(self):
        self.found = []

    def __call__(self, error, match=None, says=None):
        def register(function):
            case = Misuse(function, error, match, says)
            self.found.append(pytest.param(case, id=function.__name__))
            return function

        return register

    @property
    def parametrize(self):
        return pytest.mark.parametrize("misuse", self.found)

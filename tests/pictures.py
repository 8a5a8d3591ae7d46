"""Draw the graphs that the documents show: ``python -m tests.pictures``."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import tapegrad as tg
from tapegrad.show import GraphPicture, graph, sweep
from tests.test_project import ROOT

FOLDER = ROOT / "docs" / "pictures"


def expression() -> GraphPicture:
    """The first example of the README, with its sweep."""
    x = tg.tensor(2.0, requires_grad=True)
    y = tg.tensor(0.5, requires_grad=True)
    z = tg.sin(x * y) + tg.exp(-x)
    return sweep(z, x=x, y=y, z=z).picture


def shared() -> GraphPicture:
    """A value that is used three times."""
    w, x = tg.tensor(2.0, requires_grad=True), tg.tensor(3.0)
    p = w * x
    q = p * p
    L = q + p
    return graph(L, w=w, x=x, p=p, q=q, L=L)


def adjoints() -> GraphPicture:
    """The same with its sweep."""
    w, x = tg.tensor(2.0, requires_grad=True), tg.tensor(3.0)
    p = w * x
    q = p * p
    L = q + p
    return sweep(L, w=w, x=x, p=p, q=q, L=L).picture


def released() -> GraphPicture:
    """The same after a sweep of its upper part."""
    w, x = tg.tensor(2.0, requires_grad=True), tg.tensor(3.0)
    p = w * x
    q = p * p
    L = q + p
    L.backward(inputs=[w])
    return graph(L, w=w, p=p, q=q, L=L)


def partly_released() -> GraphPicture:
    """A root after the sweep of another one, with which it shares a record."""
    w = tg.tensor(2.0, requires_grad=True)
    h = tg.exp(w)
    first, second = h * 2, h * h
    first.backward(retain_graph=True)
    second.backward()
    return graph(first, w=w, h=h, first=first)


def weighted() -> GraphPicture:
    """A sweep from a root with several elements, each with a weight."""
    w = tg.tensor(2.0, requires_grad=True)
    y = tg.stack([w**2, 10 * w, tg.log(w)])
    return sweep(y, w=w, y=y, gradient=tg.tensor([1.0, 2.0, 0.0])).picture


def in_place() -> GraphPicture:
    """A value that was changed in place after another record had read it."""
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    y = x * 3
    before = tg.sin(y)
    y += 1
    total = (before * y).sum()
    return graph(total, x=x, before=before, y=y, total=total)


def hooked() -> GraphPicture:
    """The adjoints that hooks are called with."""
    x = tg.tensor(3.0, requires_grad=True)
    u = x + 1
    v = 2 * x
    loss = (u - v) ** 2
    return sweep(loss, x=x, u=u, v=v, loss=loss).picture


def detached() -> GraphPicture:
    """A loss that takes one of its values for a constant."""
    w = tg.tensor(2.0, requires_grad=True)
    p = w * w
    fixed = p.detach() * 2
    loss = (p - fixed) ** 2
    return graph(loss, w=w, p=p, fixed=fixed, loss=loss)


def recorded_sweep() -> GraphPicture:
    """The gradient of a cube, recorded."""
    x = tg.tensor(3.0, requires_grad=True)
    y = x**3
    (slope,) = tg.autograd.grad(y, x, create_graph=True)
    return graph(slope, x=x, slope=slope)


PICTURES: tuple[Callable[[], GraphPicture], ...] = (
    expression, shared, adjoints, released, partly_released, weighted, in_place, hooked, detached,
    recorded_sweep,
)  # fmt: skip


def drawn(picture: Callable[[], GraphPicture]) -> str:
    """A picture's text, drawn on a tape of its own, whose positions are those of a fresh start."""
    with ThreadPoolExecutor(1) as fresh:
        return fresh.submit(picture).result().svg


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for picture in PICTURES:
        (FOLDER / f"{picture.__name__}.svg").write_text(drawn(picture), encoding="utf-8")
        print(f"docs/pictures/{picture.__name__}.svg is drawn")

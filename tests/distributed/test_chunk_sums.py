"""Values and gradients of sums over chunks on the workers of a real cluster."""

import os
from typing import NamedTuple

import numpy as np
import pytest

import tapegrad as tg

reason = "`make distributed` installs it"
dask = pytest.importorskip("dask", reason=reason)
distributed = pytest.importorskip("distributed", reason=reason)
da = pytest.importorskip("dask.array", reason=reason)
db = pytest.importorskip("dask.bag", reason=reason)

pytestmark = pytest.mark.tapegrad_only("about clusters of tapegrad's processes")

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(60, 3)), RNG.normal(size=60)
PARAMS = {"slope": np.array([0.5, -1.0, 2.0]), "offset": 0.25}


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def squares(params, x, y):
    return np.sum((x @ params["slope"] + params["offset"] - y) ** 2)


def same(found, expected):
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
    assert found[1].keys() == expected[1].keys()
    for name, gradient in expected[1].items():
        np.testing.assert_allclose(found[1][name], gradient, rtol=1e-12)
        assert type(found[1][name]) is type(gradient)


EXPECTED = tg.value_and_grad(squares)(PARAMS, X, Y)


def chunked(client, rows=7):
    return client.persist([da.from_array(X, (rows, 3)), da.from_array(Y, rows)])


@pytest.mark.parametrize("f", [squares, tg.jit(squares), lambda p, x, y: squares(p, x, y)])
def test_arrays(f, client):
    x, y = chunked(client)
    total = tg.distributed.value_and_grad(f, client)
    same(total(PARAMS, x, y), EXPECTED)
    shifted = PARAMS | {"offset": -1.0}
    same(total(shifted, x, y), tg.value_and_grad(squares)(shifted, X, Y))


def test_chunks_stay_where_they_are(client):
    x = client.persist(da.random.default_rng(1).normal(size=(60, 3), chunks=(7, 3)))
    distributed.wait(x)
    places = client.who_has(distributed.futures_of(x))
    total = tg.distributed.value_and_grad(lambda p, x: np.sum(x @ p["slope"]), client)
    for _ in range(3):
        total(PARAMS, x)
    assert {len(workers) for workers in places.values()} == {1}
    assert client.who_has(distributed.futures_of(x)) == places


def test_a_sum_depends_on_the_chunks_alone(client):
    """More of them than one task adds up, several times: bit for bit the same."""
    x, y = chunked(client, rows=1)
    total = tg.distributed.value_and_grad(squares, client)
    value, gradient = total(PARAMS, x, y)
    same((value, gradient), EXPECTED)
    for _ in range(2):
        again, slopes = total(PARAMS, x, y)
        assert again == value
        assert slopes["slope"].tolist() == gradient["slope"].tolist()


def test_bags_and_what_is_not_in_memory(client):
    bag = db.from_sequence(range(10), npartitions=3).map(float)
    total = tg.distributed.value_and_grad(lambda a, items: sum(a * a * i for i in items), client)
    assert total(2.0, bag) == (180.0, 180.0)
    assert total(2.0, client.persist(bag)) == (180.0, 180.0)


class Line(NamedTuple):
    slope: object
    offset: object


def test_futures(client):
    """Of what need not be an array; beside parameters that are Tensors in a named tuple."""
    chunks = client.scatter([{"t": np.arange(k)} for k in (1, 2, 3)])
    total = tg.distributed.value_and_grad(
        lambda line, c: ((line.slope * tg.tensor(c["t"]) + line.offset) ** 2).sum(), client
    )
    value, gradient = total(Line(tg.tensor(2.0), tg.tensor(1.0)), chunks)
    assert value.item() == 1 + (1 + 9) + (1 + 9 + 25)
    assert isinstance(gradient, Line)
    assert (gradient.slope.item(), gradient.offset.item()) == (2 * (3 + 3 + 10), 2 * (1 + 4 + 9))


def dying(marker):
    """A function whose process ends in the third chunk, once."""

    def f(params, x, y):
        if np.any(Y[14] == np.asarray(y)) and not os.path.exists(marker):
            open(marker, "w").close()
            os._exit(1)
        return squares(params, x, y)

    return f


def test_a_worker_that_dies(client, tmp_path):
    """With chunks in its memory, while it computes; the cluster starts another one."""
    x, y = chunked(client)
    distributed.wait([x, y])
    marker = tmp_path / "died"
    total = tg.distributed.value_and_grad(dying(str(marker)), client)
    before = set(client.scheduler_info()["workers"])
    same(total(PARAMS, x, y), EXPECTED)
    assert marker.exists()
    client.wait_for_workers(2, timeout=60)
    assert set(client.scheduler_info()["workers"]) != before
    same(total(PARAMS, x, y), EXPECTED)  # what the function compiled to was lost, too


def test_scattered_data_that_are_lost(client, tmp_path):
    columns = [client.scatter([a[:20], a[20:]]) for a in (X, Y)]
    total = tg.distributed.value_and_grad(dying(str(tmp_path / "died")), client)
    with pytest.raises(RuntimeError, match="was scattered and is lost with its worker: hold its"):
        total(PARAMS, *columns)
    client.wait_for_workers(2, timeout=60)


def test_a_restarted_cluster(client):
    total = tg.distributed.value_and_grad(squares, client)
    same(total(PARAMS, *chunked(client)), EXPECTED)
    client.restart()
    same(total(PARAMS, *chunked(client)), EXPECTED)


def test_what_the_function_raises_is_raised(client):
    x, _ = chunked(client)
    total = tg.distributed.value_and_grad(lambda p, x: x @ p["slope"], client)
    with pytest.raises(TypeError, match="`value_and_grad`: <lambda> must return a scalar"):
        total(PARAMS, x)


def test_bad_input(client):
    with pytest.raises(
        TypeError, match=r"`distributed\.value_and_grad` takes a synchronous `distr"
    ):
        tg.distributed.value_and_grad(squares, "tcp://127.0.0.1:8786")
    with pytest.raises(TypeError, match=r"distributed\.value_and_grad.* takes a function"):
        tg.distributed.value_and_grad(3.0, client)
    total = tg.distributed.value_and_grad(squares, client)
    x, y = chunked(client)
    with pytest.raises(TypeError, match="collections and lists of futures after the parameters, g"):
        total(PARAMS, x, Y)
    with pytest.raises(ValueError, match="got data of 9 and 12 chunks: chunk them alike"):
        total(PARAMS, x, y.rechunk(5))
    with pytest.raises(ValueError, match=r"squares.* got no chunks"):
        total(PARAMS)
    with pytest.raises(ValueError, match="got no chunks"):
        total(PARAMS, [])
    assert repr(total) == "<sum of squares over chunks, and its gradient>"

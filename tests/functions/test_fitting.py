"""Numbers that have no place in a Tensor's type are refused; Tensors are cast."""

import pytest

NAN, INF = float("nan"), float("inf")


def set_one(key):
    def write(t, value):
        t[key] = value

    return write


WRITES = {
    "fill_": lambda t, value: t.fill_(value),
    "copy_": lambda t, value: t.copy_(value),
    "masked_fill_": lambda t, value: t.masked_fill_(t == t, value),
    "masked_fill": lambda t, value: t.masked_fill(t == t, value),
    "x[0]": set_one(0),
    "x[[0]]": set_one([0]),
    "x[:1]": set_one(slice(1)),
}
REFUSED = [
    ("int8", 300), ("int8", -129), ("uint8", -300), ("int32", NAN), ("int32", INF),
    ("int32", 2.0**31), ("int64", 1e30), ("float32", 1e300),
]  # fmt: skip
TAKEN = [
    ("int8", 2.9, 2), ("int8", -2.9, -2), ("uint8", -1, 255), ("bool", 3, True), ("int8", True, 1),
    ("float32", INF, INF), ("float32", 2, 2.0), ("float32", 1e-300, 0.0),
]  # fmt: skip


@pytest.mark.parametrize("name", [name for name in WRITES if name != "copy_"])
@pytest.mark.parametrize(("kind", "value"), REFUSED)
def test_refused(tg, name, kind, value):
    t = tg.zeros(2, dtype=getattr(tg, kind))
    with pytest.raises(RuntimeError, match="without overflow"):
        WRITES[name](t, value)
    assert t.tolist() == [0, 0]


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize(("kind", "value", "found"), TAKEN)
def test_taken(tg, name, kind, value, found):
    t = tg.zeros(2, dtype=getattr(tg, kind))
    t = t if (y := WRITES[name](t, value)) is None else y
    assert t[0].item() == found


def test_new_tensors(tg):
    assert tg.full_like(tg.zeros(1, dtype=tg.uint8), -1).tolist() == [255]
    assert tg.tensor([-1, 2], dtype=tg.uint8).tolist() == [255, 2]
    assert tg.full((1,), -1.5, dtype=tg.int8).tolist() == [-1]
    for make in (
        lambda: tg.full((1,), 300, dtype=tg.uint8),
        lambda: tg.full((1,), 1e300, dtype=tg.float32),
        lambda: tg.full_like(tg.zeros(1, dtype=tg.int8), NAN),
        lambda: tg.tensor([300], dtype=tg.uint8),
        lambda: tg.tensor([-300], dtype=tg.uint8),
        lambda: tg.zeros(1, dtype=tg.int8).scatter(0, tg.tensor([0]), 300),
    ):
        with pytest.raises(RuntimeError, match="without overflow"):
            make()


def test_tensors_are_cast(tg):
    x = tg.zeros(2, dtype=tg.int8)
    x.fill_(tg.tensor(300))
    assert x.tolist() == [44, 44]
    x[0:1] = tg.tensor([2.9])
    assert x.tolist() == [2, 44]


def test_index_arrays_take_no_fractions_away(tg):
    x = tg.zeros(2, dtype=tg.int64)
    for value in (tg.tensor([2.9]), tg.tensor(2.9)):
        with pytest.raises(RuntimeError, match=r"cannot be put|dtypes match"):
            x[[0]] = value
    x[[0]] = 2.9
    assert x.tolist() == [2, 0]


def test_ranges_and_tuples_are_index_arrays(tg, leaf):
    x = leaf([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    assert x[range(2)].tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert x[(0, 2), :].tolist() == [[1.0, 2.0], [5.0, 6.0]]
    assert x[1, range(1, 2)].tolist() == [4.0]


def test_copy_takes_a_number(tg, leaf):
    x = leaf([1.0, 2.0])
    y = x * 1
    assert y.copy_(5.0).tolist() == [5.0, 5.0]
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]


@pytest.mark.tapegrad_only("the words are ours")
def test_refusals_name_what_was_called(tg, leaf):
    for name, use in WRITES.items():
        if name != "masked_fill":
            called = name if name.endswith("_") else r"x\[...\] = value|index_put_"
            with pytest.raises(RuntimeError, match=f"^`({called})`: a leaf that requires grad"):
                use(leaf([1.0, 2.0]), 2.0)

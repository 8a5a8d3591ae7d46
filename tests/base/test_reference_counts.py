"""The references that the library counts on, in each way in which it counts them."""

from sys import getrefcount

import pytest

from tapegrad.base.reference_counts import expected_count

pytestmark = pytest.mark.tapegrad_only("how tapegrad tells who holds a value")


class Counter:
    def given(self, _, thing):
        return getrefcount(thing)


def items(n):
    return [object() for _ in range(n)]


def new_in_a_variable():
    thing = object()
    return getrefcount(thing)


def popped():
    table = {1: object()}
    thing = table.pop(1)
    return getrefcount(thing)


def made_in_the_call():
    return Counter().given(0, object())


def popped_in_the_call():
    return Counter().given(0, items(1).pop())


@pytest.mark.parametrize("count", [new_in_a_variable, popped, made_in_the_call, popped_in_the_call])
def test_in_one_variable(count):
    for _ in range(50):  # CPython adapts its instructions
        assert count() == expected_count(variables=1)


def test_given_by_a_variable():
    for _ in range(50):
        thing = object()
        assert Counter().given(0, thing) == expected_count(variables=2)


def test_in_a_list_and_a_copy_of_it():
    things = items(50)
    assert {getrefcount(things[k]) for k in range(50)} == {expected_count(0, holders=1)}
    copy = things[:]
    assert {*map(getrefcount, things)} == {expected_count(0, holders=2)}
    assert {getrefcount(thing) for thing in copy} == {expected_count(1, holders=2)}
    assert all(getrefcount(thing) == expected_count(1, holders=2) for thing in things)


def test_in_a_table_and_a_variable():
    table = {1: object()}
    thing = table.get(1)
    assert getrefcount(thing) == expected_count(variables=1, holders=1)


def test_another_holder_is_seen():
    def given(thing):
        return getrefcount(thing)

    thing = object()
    other = [thing]
    assert getrefcount(thing) > expected_count(variables=1)
    assert given(thing) > expected_count(variables=2)
    assert given(other[0]) > expected_count(variables=1)

"""How records and tapes print, and what notebooks show of them."""

import threading

import pytest

import tapegrad as tg
from tapegrad.tape import records
from tapegrad.tape.records import Record, table_rows

pytestmark = pytest.mark.tapegrad_only("the tape")


def record(k):
    return Record(1000 + k, "mul", ("leaf0", "3"), (2,), "live")


def test_a_long_table_shows_its_two_ends(monkeypatch):
    monkeypatch.setattr(records, "SHOWN", 6)
    rows = table_rows(record, 1000)
    assert [row[0] for row in rows] == ["1000", "1001", "1002", "...", "1997", "1998", "1999"]
    assert rows[3][1] == "(994 more)"


def test_with_an_odd_limit_no_more_are_said_to_be_left_out_than_are(monkeypatch):
    monkeypatch.setattr(records, "SHOWN", 7)
    rows = table_rows(record, 8)
    assert len(rows) == 7
    assert rows[3][:2] == ("...", "(2 more)")


def test_a_table_that_is_not_long_shows_all():
    assert [row[0] for row in table_rows(record, 60)] == [str(1000 + k) for k in range(60)]


def test_a_record_in_a_notebook():
    shown = record(0)._repr_html_()
    cells = ["1000", "mul", "leaf0 3", "(2,)", "live"]
    assert [f"<td>{cell}</td>" in shown for cell in cells] == [True] * 5


def test_a_tape_in_a_notebook_with_the_middle_left_out():
    found = []

    def work():
        x = tg.tensor(0.5, requires_grad=True)
        values = [x]
        for _ in range(100):
            values.append(tg.sin(values[-1]))
        found.append([of._repr_html_() for of in (values[-1].tape, values[-1].tape.whole)])

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    for text in found[0]:
        assert text.count("<td>sin</td>") == 60
        assert "<td>(40 more)</td>" in text
    assert "<caption>TapeSlice of 100 records</caption>" in found[0][0]
    assert "<caption>Tape of 100 records, next position 1100</caption>" in found[0][1]

"""What is shown: nothing that steers a terminal or hides in a text; and all that people write."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkvsearch.errors import QkvError
from qkvsearch.terminal import in_one_line, printable

SHOWN = {
    "\x1b[2J": r"\u001b[2J",
    "\x9b31m": r"\u009b31m",
    "\x00\x7f\r\t": r"\u0000\u007f\r\t",
    "\u202egpj.exe": r"\u202egpj.exe",
    "a\u200bb\u00adc\ufeff": r"a\u200bb\u00adc\ufeff",
    "\u2066\u2069\u200e\u200f\u061c": r"\u2066\u2069\u200e\u200f\u061c",
    "\U000e0041": r"\udb40\udc41",
    "\ud800": r"\ud800",
}
# Persian and emoji with their joiners, Khmer with spaces of no width, Hebrew, Chinese, two lines.
AS_IT_IS = [
    "می‌خواهم", "👩‍👩‍👧", "ភាសា\u200bខ្មែរ", "עברית", "注意力", "é", "two\nlines",
]  # fmt: skip


@pytest.mark.parametrize(("text", "shown"), SHOWN.items())
def test_what_steers_or_hides_is_shown_by_its_number(text, shown):
    assert printable(text) == shown


@pytest.mark.parametrize("text", AS_IT_IS)
def test_what_people_write_stays(text):
    assert printable(text) == text


@given(st.text())
def test_json_stays_the_same_data(text):
    shown = printable(json.dumps({"title": text}, ensure_ascii=False))
    assert json.loads(shown) == {"title": text}
    assert shown.encode()  # no half of a pair


def test_an_error_is_one_line_that_can_be_shown():
    error = QkvError("no item 'x\x1b[2J\nError: none'")
    assert str(error) == in_one_line(error.args[0]) == r"no item 'x\u001b[2J\nError: none'"

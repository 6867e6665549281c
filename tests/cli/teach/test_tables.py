"""`teach` in a narrow terminal: tables, and the outline, whose words stay whole."""

import pytest
from rich.text import Text

from qkvsearch.cli.lesson.grids import table_view
from qkvsearch.cli.wrapping import wrapped
from qkvsearch.lessons.parts import ShownTable

RATINGS = ShownTable(
    "Ratings",
    ["user", "Car chase", "Spider-Man", "Space race", "Love story", "Wedding"],
    [["Ana", "5", "4", "?", "1", "?"], ["Chloe", "?", "5", "4", "?", "2"]],
)


def lines(table, width):
    return [line for text in table_view(table, width) for line in text.plain.split("\n")]


def test_points_stand_below_one_another():
    table = ShownTable(
        "", ["word", "by", "n"], [["a", 0.25, 4], ["b", -1.0, 16], ["c", 0.5714, 256]]
    )
    assert lines(table, 80) == [
        "word     by    n",
        "a      0.25    4",
        "b     −1      16",
        "c      0.57  256",
    ]


@pytest.mark.parametrize(("width", "parts"), [(80, 1), (60, 1), (40, 2), (30, 2), (20, 4)])
def test_no_word_is_cut_and_no_line_is_too_wide(width, parts):
    found = lines(RATINGS, width)
    assert max(map(len, found)) <= width
    words = {word for text in RATINGS.columns for word in text.split()}
    assert words <= {word for line in found for word in line.split()}
    assert sum(line.startswith("Chloe") for line in found) == parts


def test_words_fold_before_a_table_comes_in_parts():
    table = ShownTable("", ["way", "moved"], [["add −1e9, in float32", 1.0], ["replace it", 2.0]])
    assert lines(table, 20) == [
        "way            moved",
        "add −1e9, in       1",
        "float32",
        "replace it         2",
    ]


def test_lines_after_a_break_are_indented_as_those_after_a_fold():
    lines = wrapped(Text("a\nbb cc dd"), 6, indent=2).plain.split("\n")
    assert lines == ["a", "  bb", "  cc", "  dd"]


def test_a_word_wider_than_the_terminal_is_cut():
    table = ShownTable("", ["way", "moved"], [["incomprehensibilities", 1.0]])
    assert max(map(len, lines(table, 16))) == 16
    assert "".join(line.split()[0] for line in lines(table, 16)[1:]) == "incomprehensibilities"

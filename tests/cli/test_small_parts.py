"""Small parts of what commands print that no other test looks at: ends, labels, curves, numbers."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from qkvsearch.cli import text_table
from qkvsearch.cli.lesson import reading
from qkvsearch.cli.lesson.view import _curve
from qkvsearch.lessons.parts import Curve


@pytest.mark.parametrize(("reads", "writes"), [(True, False), (False, True), (False, False)])
def test_only_who_reads_and_types_is_asked(monkeypatch, reads, writes):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: reads))
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(isatty=lambda: writes))
    assert not reading.is_interactive()


@pytest.mark.parametrize(
    ("is_terminal", "environment", "shows"),
    [
        (True, {"TERM": "xterm-256color"}, True),
        (True, {"TERM": "dumb"}, False),
        (True, {"TERM": "xterm-256color", "NO_COLOR": "1"}, False),
        (False, {"TERM": "xterm-256color"}, False),
    ],
)
def test_colours_are_for_terminals_that_show_them(monkeypatch, is_terminal, environment, shows):
    for name in ("NO_COLOR", "FORCE_COLOR", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(isatty=lambda: is_terminal))
    assert text_table.has_colours() is shows


def test_a_curve_is_as_high_as_its_values(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    *lines, ends = _curve(Curve("loss", "steps", np.array([6.0, 3.0, 0.0])))
    drawn = [line.plain for line in lines]
    assert len(drawn) == 6
    assert [len(line) - len(line.lstrip("0123456789. ")) for line in drawn] == [2] * 6
    columns = list(zip(*(line.partition("│")[2] for line in drawn), strict=True))
    heights = [sum(cell != " " for cell in column) for column in columns]
    assert (len(columns), heights[0], heights[24], heights[-1]) == (48, 6, 3, 0)
    assert columns[24] == (" ", " ", " ", "█", "█", "█")  # half as high as the first
    assert "3 values over steps" in "".join(str(ends.plain if hasattr(ends, "plain") else ends))

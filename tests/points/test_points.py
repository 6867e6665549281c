"""Every numbered point of the attention part has a test that says which it checks."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
POINTS = {13, *range(16, 21), *range(25, 35), *range(47, 62)}


def test_every_point_has_a_test_marked_with_its_number():
    found = {
        int(number)
        for path in TESTS.rglob("test_*.py")
        for number in re.findall(r"mark\.point\((\d+)\)", path.read_text(encoding="utf-8"))
    }
    assert sorted(POINTS - found) == []

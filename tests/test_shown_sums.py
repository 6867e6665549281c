"""Wherever parts of a score are shown, the shown numbers add up to the shown score."""

import csv
import io
import re
import sys
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from qkvsearch._utils.shown_sums import AVERAGE_ITEM, adding_up, reasons_adding_up, signed
from tests.terminal import Screen, on_a_terminal

NUMBER = r"(?:[+-]|= -?)\d+\.\d+"
# A line below a hit: its number, its bar where there is room for bars, and what it says.
LINE = re.compile(rf"^ +({NUMBER})(?:$| [ ▇▂]*(.*)$)")
# The first line of a hit: rank, title, score and what comes after it.
HIT = re.compile(r"^ *\d+  .*? (-?\d+\.\d{3})  ")
# Of the videos.
SEARCHES = {
    "words": ["bank of the river"],
    "one word": ["bread"],
    "typos": ["sourdogh bnak", "--anyway"],
    "a phrase and a boost": ['"sourdough bread" flour^3'],
    "without": ["bread -sourdough"],
    "Chinese": ["注意力 机制", "--anyway"],
    "stop words": ["the of and", "--anyway"],
    "as typed": ["sourdo", "--prefix"],
    "one head": ["river bank", "--heads", "lexical"],
    "two heads": ["river bank", "--heads", "lexical,lsa"],
    "a user": ["river bank", "--user", "w001"],
    "distinct": ["bread", "--distinct", "channel"],
}
# Of the films, which have ratings.
RECOMMENDATIONS = {
    "a user": ["--user", "u001"],
    "another user": ["--user", "u117"],
    "likes": ["--like", "Up", "--like", "Coco"],
    "one like": ["--like", "Heat"],
    "ratings": ["--rate", "Heat=5", "--rate", "Alien=1"],
    "diverse": ["--user", "u001", "--diversity", ".4"],
    "damped": ["--user", "u001", "--damping", ".5", "--diversity", ".2"],
    "recent": ["--user", "u001", "--recent", "3"],
    "without": ["--user", "u001", "--without", "Heat"],
    "by neighbours": ["--user", "u001", "--heads", "neighbours"],
    "by embeddings": ["--user", "u001", "--heads", "collaborative"],
    "an unknown user": ["--user", "nobody"],
}
SIMILAR = {
    "one": ["Heat"],
    "several": ["Heat", "Up", "Coco"],
    "many": ["Heat", "Up", "Coco", "Alien", "Toy Story", "Ratatouille"],
}
CALLS = {
    **{f"search {name}": ("videos", ["search", *args]) for name, args in SEARCHES.items()},
    **{f"recommend {name}": ("movies", ["recommend", *a]) for name, a in RECOMMENDATIONS.items()},
    **{f"similar {name}": ("movies", ["similar", *args]) for name, args in SIMILAR.items()},
    "similar videos": ("videos", ["similar", "v137"]),
    "recommend videos": ("videos", ["recommend", "--user", "w001"]),
}


def blocks(text):
    """Each hit of a table: its score as it is shown, and the lines of numbers below it."""
    found = []
    for line in text.splitlines():
        if hit := HIT.match(line):
            found.append((hit[1], []))
        elif (reason := LINE.match(line)) and found:
            found[-1][1].append((reason[1], reason[2] or ""))
    return found


def check_sum(score, lines):
    *addends, (last, text) = lines
    assert addends
    assert (last, text) == (f"= {score}", "")
    assert sum(round(1000 * float(value)) for value, _ in addends) == round(1000 * float(score))


@pytest.fixture
def ask(qkv, videos_path, movies_path):
    paths = {"videos": videos_path, "movies": movies_path}
    return lambda name, *more: qkv("-w", paths[CALLS[name][0]], *CALLS[name][1], *more)


@pytest.mark.parametrize("name", CALLS)
def test_reasons_below_a_hit_end_in_its_score_and_add_up_to_it(ask, name):
    for k in (1, 20):
        answer = ask(name, "--explain", "-k", k)
        found = blocks(answer.stdout)
        assert found, answer.stderr
        assert len(found) <= k
        for score, lines in found:
            check_sum(score, lines)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.parametrize("name", ["search words", "search Chinese", "recommend damped"])
def test_on_a_terminal_with_colours_they_add_up(surroundings, videos_path, movies_path, name):
    kind, args = CALLS[name]
    path = {"videos": videos_path, "movies": movies_path}[kind]
    command = [sys.executable, "-m", "qkvsearch", "-w", str(path), *args, "--explain", "smallest"]
    code, written = on_a_terminal(command, "stdout", "stderr", COLUMNS="80")
    assert code == 0
    assert "\x1b[" in written
    lines = Screen.of(written).lines
    assert max(map(cell_len, lines)) <= 80
    found = blocks("\n".join(lines))
    assert found
    for score, numbers in found:
        check_sum(score, numbers)
    assert " ".join(" ".join(lines).split()).count("would not be here") == len(found)


@pytest.mark.parametrize("name", CALLS)
def test_all_parts_of_a_hit_end_in_its_score_and_add_up_to_it(ask, name):
    found = blocks(ask(name, "--explain", "full", "-k", 2).stdout)
    assert found
    for score, lines in found:
        check_sum(score, lines)


@pytest.mark.parametrize("name", CALLS)
def test_kinds_within_a_line_add_up_to_it(ask, name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")  # on a narrow terminal they have no numbers
    for _, lines in blocks(ask(name, "--explain").stdout):
        for value, text in lines:
            kinds = [float(kind) for kind in re.findall(rf" ({NUMBER})", text)]
            if len(kinds) > 1:
                assert sum(kinds) == pytest.approx(float(value), abs=0.0011)


def rows_of(text, form):
    if form == "csv":
        return list(csv.DictReader(io.StringIO(text)))
    heading, _, *lines = [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|"))]
        for line in text.splitlines()
    ]
    return [dict(zip(heading, line, strict=True)) for line in lines]


@pytest.mark.parametrize("form", ["csv", "markdown"])
@pytest.mark.parametrize(
    "name", ["search words", "search Chinese", "recommend damped", "similar several"]
)
def test_in_a_cell_what_is_printed_adds_up_to_the_score(ask, name, form):
    text = ask(name, "--explain", "full", "--format", form, "--raw", "-k", 3).stdout
    rows = rows_of(text, form)
    cells = 0
    for row in rows:
        score = f"{float(row['score']):.{6 if form == 'csv' else 4}f}"
        for column in ("reasons", "parts", "because"):
            if not row.get(column):
                continue
            *addends, whole = row[column].split("; ")
            numbers = [re.search(r"\(([+-]\d+(?:\.\d+)?)\)$", addend) for addend in addends]
            total = sum(Decimal(number[1]) for number in numbers)
            assert total == Decimal(whole.removeprefix("= ")) == Decimal(score)
            cells += 1
        if row.get("heads"):
            heads = [Decimal(head.rpartition(": ")[2]) for head in row["heads"].split("; ")]
            assert sum(heads) == Decimal(score)
    assert cells >= len(rows) > 0


@pytest.mark.parametrize("options", [{}, {"diversity": 0.4}, {"heads": "neighbours"}])
def test_a_notebook_shows_the_others_and_the_sum(movies, options):
    page = movies.recommend(user="u001", k=5, explain=True, **options)._repr_html_()
    reasons = re.findall(r"<td>([^<]*) = (-?[\d.]+)</td></tr>", page)
    assert len(reasons) == 5
    for text, score in reasons:
        values = re.findall(r" ([+-]\d+\.\d{4})(?:,|$)", text)
        assert "others" in text
        assert sum(round(1e4 * float(value)) for value in values) == round(1e4 * float(score))


@given(st.lists(st.floats(-50, 50), min_size=1, max_size=40), st.integers(1, 4))
def test_rounded_parts_are_near_what_they_were_and_add_up(values, decimals):
    total = sum(values)
    shown = adding_up(values, total, decimals)
    unit = 10**-decimals
    assert sum(round(value / unit) for value in shown) == round(round(total, decimals) / unit)
    for value, exact in zip(shown, values, strict=True):
        assert abs(value - exact) <= 1.01 * unit


@given(st.lists(st.floats(-5, 5), max_size=9), st.floats(0.01, 9))
def test_parts_that_lack_something_are_not_made_to_fit(values, lacking):
    total = sum(values) + lacking
    assert adding_up(values, total) == [round(value, 3) for value in values]


@pytest.mark.parametrize(
    ("value", "shown"), [(1.5, "+1.500"), (-2.0, "-2.000"), (-0.0004, "+0.000"), (0.0, "+0.000")]
)
def test_what_rounds_to_nothing_has_no_minus(value, shown):
    assert signed(value) == shown


@given(st.lists(st.floats(-20, 20), min_size=1, max_size=8), st.floats(-20, 20))
def test_the_average_item_is_the_same_in_every_hit(values, average):
    reasons = [(f"word {place}", value) for place, value in enumerate(values)]
    reasons.insert(len(values) // 2, (AVERAGE_ITEM, average))
    score = sum(value for _, value in reasons)
    shown = reasons_adding_up(reasons, score)
    assert shown[len(values) // 2] == round(average, 3)
    assert sum(shown) == pytest.approx(round(score, 3), abs=1e-9)
    assert all(abs(one - value) <= 0.001001 for one, (_, value) in zip(shown, reasons, strict=True))

"""The table of a ranking, letter by letter: what it says of each hit, and why."""

import json
import re
import sys

import click
import numpy as np
import pytest
from rich.cells import cell_len

from qkvsearch.cli.context import CommandContext
from qkvsearch.cli.hits import ranking_table, write_ranking
from qkvsearch.cli.listing_table import listing_table
from qkvsearch.cli.render import Output
from qkvsearch.cli.text_table import to_table
from qkvsearch.rank.listing import Listing
from qkvsearch.rank.ranking import Hit, Ranking
from qkvsearch.scores.components import Components, ScoreComponent
from qkvsearch.scores.fusion import Scores

PARTS = {
    7: [
        ScoreComponent("lexical", "deep", "deep", 1.5),
        ScoreComponent("meaning", "deep", "learning", 0.25),
        ScoreComponent("meaning", "deep", "lake", 0.125),
        ScoreComponent("lexical", "sea", "seal", -0.75),
        ScoreComponent("lexical", "red", "red", 0.0625),
        ScoreComponent("lexical", None, None, 0.03125),
        ScoreComponent("meaning", None, None, -0.5),
    ],
    3: [
        ScoreComponent("lexical", "deep", "deep", 0.5),
        ScoreComponent("lexical", None, None, -0.99),
    ],
}
BECAUSE = [
    {"id": "a", "title": "Alien", "contribution": 1.25, "how": "because"},
    {"id": "b", "title": "Brazil", "contribution": -0.5, "how": "because"},
    {"id": None, "title": "damping", "contribution": -0.25},
    {"id": "c", "title": "Casablanca", "contribution": 0.125, "how": "people"},
    {"id": "d", "title": "Dune", "contribution": 0.0625, "how": "people", "did": "bought"},
]


class Explained(Scores):
    """A head whose parts are given."""

    def __init__(self):
        pass

    def parts(self, position):
        return Components.of(PARTS[position])


def ranking(*hits, n_candidates=1234, temperature=0.51234, head=None):
    return Ranking(hits, np.array([7, 3][: len(hits)]), temperature, n_candidates, head)


@pytest.fixture
def searched():
    matches = {"title": ["deep"], "tags": ["sea", "red"]}
    return ranking(
        Hit(1, "v7", "Deep \n learning", 0.71875, 0.98765, matches=matches, match="strong"),
        Hit(2, "v3", "Shallow", -0.49, 0.01234, match="weak"),
        head=Explained(),
    )


def test_a_search_and_its_reasons(searched):
    assert ranking_table(searched.explained_records(), searched) == (
        "#  title          match    score  id\n"
        "1  Deep learning  strong   0.719  v7\n"
        "    in tags: sea, red\n"
        "    +1.875 ▇▇▇▇▇▇▇▇▇▇ deep: same word, similar meaning\n"
        "    -0.750       ▂▂▂▂ sea, seal: same word\n"
        "    +0.063       ▇    red: same word\n"
        "    -0.469     ▂▂     average item (subtracted)\n"
        "    = 0.719\n"
        "2  Shallow        weak    -0.490  v3\n"
        "    +0.500      ▇▇▇▇▇ deep: same word\n"
        "    -0.990 ▂▂▂▂▂▂▂▂▂▂ average item (subtracted)\n"
        "    = -0.490\n"
    )


def test_a_search_and_every_part_of_it(searched):
    table = ranking_table(searched.explained_records(), searched, full=True)
    assert table.split("\n")[1:11] == [
        "1  Deep learning  strong   0.719  v7",
        "    in tags: sea, red",
        "    +1.500 lexical: deep",
        "    -0.750 lexical: sea ~ seal",
        "    -0.500 meaning: average item (subtracted)",
        "    +0.250 meaning: deep ~ learning",
        "    +0.125 meaning: deep ~ lake",
        "    +0.063 lexical: red",
        "    +0.031 lexical: average item (subtracted)",
        "    = 0.719",
    ]


def test_reasons_are_as_wide_as_the_window_and_no_wider(monkeypatch, searched):
    monkeypatch.setenv("COLUMNS", "36")
    table = ranking_table(searched.explained_records(), searched)
    assert max(map(len, table.split("\n"))) <= 36
    assert "    +1.875 deep: same word, similar\n           meaning\n" in table


@pytest.mark.parametrize("columns", [109, 110])
def test_wide_terminals_show_what_each_kind_adds(monkeypatch, searched, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    table = ranking_table(searched.explained_records(), searched)
    assert ("deep: same word +1.500, similar meaning +0.375\n" in table) == (columns == 110)


def test_matched_words_alone_have_a_colour(monkeypatch, searched):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    table = ranking_table(searched.explained_records(), searched)
    coloured = re.findall(r"\x1b\[(?:\d+;)*3[0-8](?:;\d+)*m(.*?)\x1b", table)
    assert coloured == ["Deep", "sea", "red", "deep", "sea", "red"]
    assert "+1.875 ▇▇▇▇▇▇▇▇▇▇ \x1b" in table


UNBROKEN = {
    "a Chinese sentence": "北京是中华人民共和国的首都，也是世界著名古都和现代化国际城市，" * 3,
    "a Thai sentence": "ประเทศไทยมีแม่น้ำหลายสายซึ่งไหลผ่านเมืองต่างๆและเป็นแหล่งน้ำสำคัญสำหรับการเกษตรกรรม",
    "an address": f"see https://example.org/{'a/very/long/path/' * 8}index.html for more",
    "a long word": f"the {'Donaudampfschifffahrt' * 6} sails",
}


def without_spaces(text):
    return "".join(text.split())


@pytest.mark.parametrize("columns", [80, 40, 24])
@pytest.mark.parametrize("text", UNBROKEN.values(), ids=UNBROKEN)
def test_snippets_and_reasons_are_wrapped_and_never_cut(monkeypatch, text, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    because = [{"id": "a", "title": text, "contribution": 0.5, "how": "because"}]
    found = ranking(Hit(1, "v7", "Deep", 0.5, 1.0, snippet=f"snippet {text}", because=because))
    table = ranking_table(found.to_records(), found, full=True)
    shown = without_spaces(table)
    assert without_spaces(f"snippet {text}") in shown
    assert without_spaces(f"+0.500 because of {text}") in shown
    assert "…" not in table
    assert max(map(cell_len, table.split("\n"))) <= columns


@pytest.mark.parametrize("columns", [80, 40])
def test_ids_are_never_cut(monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    id_ = f"urn:isbn:{'0123456789' * 9}"
    found = ranking(Hit(1, id_, "A title of several words", 0.5, 1.0, snippet="a text"))
    listing = Listing([{"id": id_, "title": "A title"}], 1, ["id", "title"])
    for table in (
        ranking_table(found.to_records(), found),
        listing_table(listing, "items", listing.names),
    ):
        assert id_ in without_spaces(table)
        assert "…" not in table


def test_a_title_is_whole_where_each_cell_has_a_line(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    title = "Star Wars: Episode IV - A New Hope, and its making (1977)"
    row = {"user": "u" * 90, "title": title}
    table = listing_table(Listing([row], 1, ["user", "title"]), "records", ["user", "title"])
    assert f"title: {title}" in table


def test_a_table_without_headings_is_never_cut(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    name = "a_long_name_of_a_column_" * 4
    table = to_table([("", "left"), ("", "wrap")], [[name, "7"]])
    assert without_spaces(table).replace("7", "") == name


def test_weights_are_shown_where_they_are_asked_for(searched):
    with click.Context(click.Command("search"), obj=CommandContext(None, False, verbose=True)):
        table = ranking_table(searched.to_records(), searched)
    assert table == (
        "#  title          match    score  weight  id\n"
        "1  Deep learning  strong   0.719   98.8%  v7\n"
        "2  Shallow        weak    -0.490    1.2%  v3\n"
        "weight = softmax(score / 0.512) over 1,234 items\n"
    )


def test_recommendations_with_ratings_a_history_and_what_is_new():
    found = ranking(
        Hit(1, 41, "Heat", 0.6875, 0.75, predicted_rating=4.46, because=BECAUSE),
        Hit(2, 7, "Ran", 0.5, 0.25, predicted_rating=3.0, because=[], cold=True),
        n_candidates=2,
        temperature=1,
    )
    assert ranking_table(found.to_records(), found, full=True) == (
        "#  title  score  rating  id\n"
        "1  Heat   0.688     4.5  41\n"
        "    +1.250 because of Alien\n"
        "    -0.500 because of Brazil\n"
        "    -0.250 by damping\n"
        "    +0.125 people who liked Casablanca also liked this\n"
        "    +0.063 people who bought Dune also bought this\n"
        "    = 0.688\n"
        "2  Ran    0.500     3.0  7\n"
        "    new: no interactions yet\n"
    )


def test_what_takes_away_has_its_sign_where_it_is_shown_as_zero():
    because = [BECAUSE[0] | {"contribution": 1e-5}, BECAUSE[1] | {"contribution": -7e-7}]
    found = ranking(Hit(1, 41, "Heat", 1e-5 - 7e-7, 0.75, because=because))
    table = ranking_table(found.to_records(), found, full=True)
    assert "+0.000 because of Alien" in table
    assert "-0.000 because of Brazil" in table


def test_a_snippet_stands_below_its_hit():
    found = ranking(Hit(1, "v7", "Deep", 0.5, 1.0, snippet="in the deep sea"))
    assert ranking_table(found.to_records(), found).endswith("v7\n    in the deep sea\n")


def test_a_passage_is_not_shown_again_as_a_snippet():
    passage = {"text": "Far down in the deep sea", "start": 61, "end": 69}
    found = ranking(Hit(1, "v7", "Deep", 0.5, 1.0, passage=passage, snippet="…in the deep sea"))
    shown = ranking_table(found.to_records(), found)
    assert shown.endswith("\n    1:01–1:09 Far down in the deep sea\n")


def test_no_hits_are_no_table():
    assert ranking_table([], ranking()) == ""


# --- what a table lets through ---


@pytest.mark.parametrize("code", [*range(10), *range(11, 32), *range(127, 160)])
def test_what_would_steer_a_terminal_is_shown_as_a_sign(code):
    found = ranking(Hit(1, f"i{chr(code)}d", f"a{chr(code)}b", 1.0, 1.0))
    text = ranking_table(found.to_records(), found)
    assert chr(code) not in text
    sign = json.dumps(chr(code))[1:-1]
    assert f"i{sign}d" in text
    assert (f"a{sign}b" in text) or ("a b" in text)  # a title's white space is one space


def test_a_new_line_in_a_cell_stays_in_its_column():
    assert to_table([("a", "left"), ("b", "left")], [["x\ny", "z"]]) == "a  b\nx  z\ny\n"


def test_where_the_window_is_narrow_only_the_title_gives_way(monkeypatch, searched):
    monkeypatch.setenv("COLUMNS", "31")
    assert ranking_table(searched.to_records(), searched) == (
        "#  title     match    score  id\n"
        "1  Deep      strong   0.719  v7\n"
        "   learning\n"
        "2  Shallow   weak    -0.490  v3\n"
    )


def test_where_the_window_is_too_narrow_for_words_every_cell_has_a_line(monkeypatch):
    columns = [("name", "left"), ("about", "wrap"), ("n", "right")]
    rows = [["one two", "three four", 7], ["five", "", 8]]
    monkeypatch.setenv("COLUMNS", "17")
    assert to_table(columns, rows).startswith("name     about  n\none two  three")
    monkeypatch.setenv("COLUMNS", "16")
    assert to_table(columns, rows, "2 rows") == (
        "name: one two\n  about: three\n    four\n  n: 7\nname: five\n  n: 8\n2 rows\n"
    )


def test_a_file_holds_no_colour_even_from_a_terminal(monkeypatch, tmp_path, searched):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert "\x1b[" in ranking_table(searched.to_records(), searched)
    write_ranking(searched, Output(None, tmp_path / "a.txt"))
    text = (tmp_path / "a.txt").read_text("utf-8")
    assert "\x1b" not in text
    assert "1  Deep learning  strong   0.719  v7\n" in text


@pytest.mark.parametrize("columns", [80, 120])
def test_the_commands_print_this_table(qkv, videos, videos_path, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    found = videos.search("attention", k=3, explain=True)
    answer = qkv("-w", videos_path, "search", "attention", "-k", 3, "--explain")
    assert answer.stdout == ranking_table(found.explained_records(), found)


def test_conditions_that_leave_nothing_are_named_with_the_hits_without_them(qkv):
    videos = ("-w", "sample:videos", "search")
    n_hits = json.loads(qkv(*videos, "bread", "--format", "json", "--envelope").stdout)["total"]
    assert n_hits > 1
    said = qkv(*videos, "bread", "--where", "seconds < 0")
    assert said.stderr.splitlines()[-1] == f"Without --where there are {n_hits} hits."
    assert "Without" not in qkv(*videos, "xyzzyqq").stderr
    assert "Without" not in qkv(*videos, "bread", "--where", "seconds > 0").stderr

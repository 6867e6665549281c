"""What terminals show: the end of a build, one screen, more columns where they are wide, shades."""

import re
import sys

import pytest

from qkvsearch.cli.evaluation_sentences import search_sentence
from qkvsearch.cli.example_query import example_queries
from qkvsearch.cli.waterfall import ADDS, TAKES_AWAY, bars
from qkvsearch.evaluation.results import Evaluation
from tests.terminal import on_a_terminal

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="Windows has no pseudo-terminals to ask"
)
COMMAND = [sys.executable, "-c", "from qkvsearch.cli import main; main()"]
ESCAPES = re.compile(r"\x1b\[[\d;]*m")
BACKGROUND = re.compile(r"\x1b\[(?:\d+;)*(?:4\d|10\d)m")


def shown(*args, columns=80, **environment):
    """What a command writes to a terminal, in lines, with its escapes."""
    command = [*COMMAND, *map(str, args)]
    width = {"COLUMNS": str(columns)}
    code, text = on_a_terminal(command, "stdout", columns=columns, **width, **environment)
    assert code == 0
    return text.splitlines()


def test_a_build_ends_with_what_is_searched_and_a_query_that_has_hits(qkv, shop_items, shop_log):
    shop_items.to_csv("items.csv", index=False)
    shop_log.to_csv("log.csv", index=False)
    build = ("-w", "ws", "build", "--items", "items.csv", "--interactions", "log.csv")
    *_, what, following = qkv(*build).stderr.splitlines()
    assert re.match(r"Built in \d+ s\. Searching title.*; filtering by .*\.", what)
    query = re.fullmatch(r'Next: qkvsearch -w ws search "([^"]+)"', following)[1]
    assert qkv("-w", "ws", "search", query, "--no-weak", "--format", "json").json()
    assert "Recommendations: " not in qkv(*build).stderr
    assert "Recommendations: " in qkv("-v", *build).stderr
    assert qkv("-q", *build).stderr == ""


def test_a_plan_has_no_next_query(qkv, shop_items):
    shop_items.to_csv("items.csv", index=False)
    assert "Next: " not in qkv("build", "items.csv", "--plan").stderr


@pytest.mark.parametrize(
    ("titles", "first"),
    [
        (["Red rain jacket", "Blue rain jacket", "Red tent"], "rain jacket"),
        (["The house of the sea", "The sea"], "sea"),
        (["霸王别姬", "霸王别姬（修复版）"], "霸王别姬"),
        (["A-1", "B-2"], "A-1"),
        (['"', "$`"], None),
        ([], None),
    ],
)
def test_an_example_is_made_of_the_titles(titles, first):
    assert next(example_queries(titles, frozenset({"the", "of"})), None) == first


@pytest.mark.parametrize("sample", ["sample:videos", "sample:movies"])
def test_info_is_one_screen_and_v_shows_the_rest(qkv, sample):
    short = qkv("-w", sample, "info").stdout
    assert len(short.splitlines()) <= 24
    assert max(map(len, short.splitlines())) <= 80
    assert "held-out" not in short
    assert "held-out" in qkv("-v", "-w", sample, "info").stdout


def test_info_tells_of_rows_that_were_skipped(qkv):
    with open("items.csv", "w") as file:
        file.write("id,title\n1,red lamp\n2,blue lamp\n,green lamp\n")
    assert qkv("-w", "ws", "build", "items.csv").code == 0
    assert "1 skipped" in qkv("-w", "ws", "info").stdout


@pytest.mark.parametrize("columns", [80, 140])
def test_wide_terminals_have_columns_to_filter_by(videos_path, columns):
    heading = ESCAPES.sub("", shown("-w", videos_path, "search", "bread", columns=columns)[0])
    assert ("seconds" in heading) == (columns == 140)
    named = shown("-w", videos_path, "search", "bread", "--fields", "channel", columns=columns)[0]
    assert ESCAPES.sub("", named).split() == ["#", "title", "match", "score", "channel", "id"]


def test_attend_is_in_shades_where_there_are_colours(videos_path):
    attend = ("-w", videos_path, "attend", "guitar bass fishing")
    lines = shown(*attend)
    plain = [ESCAPES.sub("", line) for line in lines]
    assert re.fullmatch(r" guitar → guitar \d\d% bass \d\d% fishing( \d\d%)?", plain[0])
    assert all(BACKGROUND.search(line) for line in lines[:3])
    assert plain[-1].split("more")[0].strip() == "40% or"
    assert not any(map(BACKGROUND.search, shown(*attend, NO_COLOR="1")))


def test_masked_words_are_struck_out(videos_path):
    attend = ("-w", videos_path, "attend", "guitar bass <PAD>", "--mask", "padding")
    assert "\x1b[2;9m<PAD>" in shown(*attend)[0]


def test_a_bar_begins_where_the_last_one_ends():
    drawn = bars([2.0, 1.0, -0.5, 0.001], 6)
    assert drawn == [ADDS * 4 + "  ", "    " + ADDS * 2, " " * 5 + TAKES_AWAY, " " * 5 + ADDS]
    assert bars([0.0], 3) == [f"{ADDS}  "]
    assert bars([], 3) == []


def test_a_search_without_a_baseline_says_what_its_figures_mean():
    sentence = search_sentence(Evaluation("judged", {"ndcg@10": 0.5, "recall@100": 0.8}))
    assert "50% of the best possible order" in sentence
    assert "words alone" not in sentence

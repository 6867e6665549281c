"""Commands: which workspace answers, what goes to stderr, and what each of them shows."""

import re
import shutil

import pytest

from qkvsearch.cli import demo
from qkvsearch.tables.sources import read_source


def ids(answer):
    return [row["id"] for row in answer.json()]


# --- which workspace ---


def test_a_workspace_in_this_folder_is_used_without_being_named(qkv, shop_here):
    answer = qkv("similar", "red apple", "-k", 2, "--format", "json")
    assert set(ids(answer)) == {2, 3}
    assert answer.stderr == ""


def test_the_environment_names_a_workspace_and_the_option_overrules_it(
    qkv, shop_path, videos_path, tmp_path, monkeypatch
):
    shutil.copytree(videos_path, tmp_path / ".qkvsearch")
    monkeypatch.setenv("QKVSEARCH_WORKSPACE", str(shop_path))
    question = ("search", "why do cats purr apple", "-k", 1, "--format", "json")
    assert ids(qkv(*question))[0] in (1, 2, 3, 9)
    assert ids(qkv("-w", videos_path, *question)) == ["v046"]


def test_build_writes_to_the_named_workspace_or_to_this_folder(qkv, shop_items, tmp_path):
    shop_items.to_csv("shop.csv", index=False)
    for named, folder in (((), ".qkvsearch"), (("-w", "shop"), "shop")):
        answer = qkv(*named, "build", "shop.csv")
        assert (answer.code, answer.stdout) == (0, "")
        assert "10 rows read: 10 kept" in answer.stderr
        assert f"Built {folder}: 10 items" in answer.stderr
        assert (tmp_path / folder / "root.json").is_file()


def test_build_takes_the_columns_it_is_told(qkv, shop_items, shop_log, tmp_path):
    shop_items.rename(columns={"id": "sku", "title": "what"}).to_csv("items.csv", index=False)
    shop_log.rename(columns={"user": "who", "item": "sku", "rating": "liked"}).to_csv(
        "log.tsv", index=False, sep="\t"
    )
    built = qkv(
        "-w", "ws", "build", "--items", "items.csv", "--interactions", "log.tsv",
        "--id-column", "sku", "--title-column", "what", "--text-columns", "what",
        "--user-column", "who", "--item-column", "sku", "--rating-column", "liked",
    )  # fmt: skip
    assert built.code == 0, built.stderr
    assert "7 users, 23 interactions" in built.stderr
    assert ids(qkv("-w", "ws", "recommend", "--user", 101, "-k", 1, "--format", "json")) == [3]


# --- stdout is for results, stderr for talk ---


def test_quiet_still_reports_errors_and_nothing_else(qkv):
    for question in (("search", "x", "-k", 0), ("recommend", "--user", "nobody")):
        assert qkv("-w", "sample:movies", *question).stderr
        assert qkv("-q", "-w", "sample:movies", *question).stderr == ""
    answer = qkv("-q", "-w", "sample:movies", "recommend", "--user", "nobody", "--strict-user")
    assert (answer.code, answer.stdout) == (1, "")
    assert answer.stderr.startswith("Error: no user 'nobody'")


# --- the questions ---


@pytest.mark.parametrize("query", [("why do cats purr",), ("why", "do", "cats", "purr")])
def test_a_query_may_be_quoted_or_not(qkv, videos_path, query):
    assert ids(qkv("-w", videos_path, "search", *query, "-k", 1, "--format", "json")) == ["v046"]


def test_a_dash_reads_the_query_or_the_text_from_stdin(qkv, videos_path):
    question = ("-w", videos_path, "search", "-", "-k", 1, "--format", "json")
    assert ids(qkv(*question, stdin="why do cats purr\n")) == ["v046"]
    # PowerShell writes a byte order mark in front.
    only = "\ufefftitle:cats"
    assert qkv(*question, stdin=only).json() == qkv(*question, stdin=only[1:]).json()
    shown = qkv("-w", videos_path, "attend", "-", stdin="guitar bass\n").stdout
    assert shown == qkv("-w", videos_path, "attend", "guitar bass").stdout


def test_search_for_a_user_adds_their_taste(qkv, movies_path, movies, shop):
    answer = qkv("-w", movies_path, "search", "war", "--user", "u001", "--format", "json")
    hits = answer.json()
    expected = movies.search("war", user="u001")
    assert [hit["id"] for hit in hits] == [hit.id for hit in expected]
    assert all("collaborative" in hit["heads"] for hit in hits)
    assert [hit.id for hit in movies.search("war")] != [hit.id for hit in expected]
    fused = shop.search("apple", user="101", heads="lexical,collaborative", k=1)
    assert set(fused[0].heads) == {part.head for part in fused.explain(0)}
    assert "collaborative" in fused[0].heads  # both of its heads are


def test_naming_heads_does_not_forget_the_user(qkv, movies_path):
    run = ("-w", movies_path, "search", "war", "--heads", "lexical", "--format", "json")
    (hit, *_) = qkv(*run, "--user", "u001").json()
    assert set(hit["heads"]) == {"lexical", "collaborative"}


def test_a_search_that_knows_no_word_is_not_answered_by_taste(qkv, movies_path):
    heads = ("--heads", "lexical,collaborative")
    answer = qkv("-w", movies_path, "search", "zzqx", "--user", "u001", *heads)
    assert answer.code == 0
    assert answer.stdout == ""


def test_search_says_whether_words_or_where_left_nothing(qkv, videos_path):
    run = ("-w", videos_path, "search")
    assert "none of these words is in the catalog" in qkv(*run, "zzqx").stderr
    filtered = qkv(*run, "attention", "--where", "seconds < 0").stderr
    assert "the condition leaves no item" in filtered
    assert "No hits: -k is 0" in qkv(*run, "attention", "-k", 0).stderr


def test_recommend_takes_a_user_likes_or_both(qkv, movies_path, movies):
    run = ("-w", movies_path, "recommend", "-k", 4, "--format", "json")
    assert ids(qkv(*run, "--user", "u001")) == [
        hit.id for hit in movies.recommend(user="u001", k=4)
    ]
    likes = ("Toy Story", "Spirited Away")
    options = ("--like", likes[0], "--like", likes[1])
    assert ids(qkv(*run, *options)) == [hit.id for hit in movies.recommend(likes=likes, k=4)]
    both = movies.recommend(user="u001", likes=likes, k=4)
    assert ids(qkv(*run, "--user", "u001", *options)) == [hit.id for hit in both]


def test_similar_says_when_nothing_is_known(qkv):
    with open("one.csv", "w", encoding="utf-8") as file:
        file.write("id,title\n1,!!!\n2,cat\n")
    assert qkv("-w", "ws", "build", "one.csv", "--encoder", "corpus").code == 0
    answer = qkv("-w", "ws", "similar", "1")
    assert (answer.code, answer.stdout) == (0, "")
    assert "No neighbours" in answer.stderr


# --- attend ---


def test_the_heat_map_shows_rows_that_add_up_to_100_percent(qkv, videos_path):
    answer = qkv("-w", videos_path, "attend", "guitar bass fishing zzqx")
    lines = answer.stdout.splitlines()
    assert lines[0].split() == ["guitar", "bass", "fishing"]
    for name, line in zip(("guitar", "bass", "fishing"), lines[1:4], strict=True):
        assert line.startswith(name)
        percents = [int(cell.strip("%")) for cell in line.split() if cell.endswith("%")]
        assert abs(sum(percents) - 100) <= 2
    assert answer.stderr == "Left out: zzqx\n"


def test_a_causal_map_is_a_triangle(qkv, videos_path):
    answer = qkv("-w", videos_path, "attend", "guitar bass fishing", "--mask", "causal")
    assert [line.count("·") for line in answer.stdout.splitlines()[1:4]] == [2, 1, 0]


def test_the_same_word_twice_has_a_column_each(qkv, videos_path):
    header = qkv("-w", videos_path, "attend", "bass guitar bass").stdout.splitlines()[0]
    assert header.split() == ["bass", "guitar", "bass"]


def test_a_text_too_long_for_a_map_is_a_sentence_for_each_word(qkv, videos_path):
    words = "guitar bass fishing python attention river bank coffee piano snake lens bread tea jazz"
    answer = qkv("-w", videos_path, "attend", words)
    lines = answer.stdout.splitlines()
    assert lines[0].startswith("   guitar → guitar 3")
    assert sum(" → " in line for line in lines) == len(words.split())
    assert all(len(line) <= 80 for line in lines)


# --- info and demo ---


def test_info_counts_what_is_there_and_verifies_it(qkv, movies_path):
    answer = qkv("-w", movies_path, "info", "--verify", "--format", "json")
    (facts,) = answer.json()
    log = read_source("sample:movies").interactions
    assert (facts["users"], facts["interactions"]) == (len(log.user_ids), len(log))
    assert "checksums" in facts
    assert f"{len(log):,}" in qkv("-w", movies_path, "info").stdout


def test_demo_searches_explains_recommends_and_attends_before_the_lesson(qkv):
    answer = qkv("demo")
    assert (answer.code, answer.stderr) == (0, "")
    shown = re.findall(r"^\$ qkvsearch (?:-w \S+ )?(\S+)", answer.stdout, re.MULTILINE)
    assert shown == ["search", "search", "recommend", "attend", "teach"]
    assert answer.stdout.count("    = ") == 3
    assert answer.stdout.index("serve --demo") < answer.stdout.index("$ qkvsearch teach")
    assert answer.stdout.endswith(qkv("teach", "0", "--step", 2).stdout)
    assert "model fetch minilm" in answer.stdout


def test_demo_with_a_transformer_shows_a_query_whose_words_attend_to_each_other():
    _, words = demo.attend_step("minilm")
    assert {"--layer", "--head", demo.QUERY} <= set(words)
    assert demo.attend_step(None)[1] != words

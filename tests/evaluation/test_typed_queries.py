"""Made queries are what people type, and the report on them says what is true."""

import json

import numpy as np
import pytest

import qkvsearch
from qkvsearch.engine import Engine
from qkvsearch.evaluation.made_queries import report
from qkvsearch.evaluation.made_queries.kinds import KINDS_BY_NAME, make_queries
from qkvsearch.evaluation.made_queries.query_kind import MadeQuery
from qkvsearch.evaluation.made_queries.report import KindFigures, Outcome, n_of_n
from qkvsearch.evaluation.made_queries.source import QueriedCatalog, sentences
from qkvsearch.evaluation.made_queries.title_typo import homophones, mistyped_cjk
from qkvsearch.evaluation.made_queries.title_words import as_typed
from qkvsearch.evaluation.metrics import wilson

# Titles with signs, with a name in several columns, in Chinese, and twice the same.
OBJECTS = [
    ('Can we all "have it all"?', "Ann Reed", "Shop", 'Talk about "work" and home.'),
    ("The Hand of God", "Carl May", "Shop", "Bronze cast after an older plaster model."),
    ("Red Garden Chair, Oak", "Ann Reed", "Shop", "A chair that stands in rain and sun."),
    ("Red Garden Chair, Oak", "Carl May", "Shop", "Another chair that stands in rain and sun."),
    ("Blue Garden Table - Pine", "Carl May", "Shop", "A table for six people and their plates."),
    ("火锅英雄", "杨庆", "Shop", "三个从小长大的好兄弟合伙开着一家火锅店。"),
    ("夏目友人帐：曾几何时下雪之日", "大森贵弘", "Shop", "少年在雪地里遇见了一只孤独的妖怪。"),
]


@pytest.fixture(scope="module")
def objects(tmp_path_factory):
    folder = tmp_path_factory.mktemp("objects")
    rows = [
        {
            "id": f"o{n}",
            "title": title,
            "maker": maker,
            "place": place,
            "text": f"{text} It weighs little and stands in every room that has a door.",
            "record": [{"name": maker, "role": "maker of the thing", "born": None, "code": n}],
        }
        for n, (title, maker, place, text) in enumerate(OBJECTS)
    ]
    items = folder / "objects.jsonl"
    items.write_text("".join(json.dumps(row) + "\n" for row in rows))
    qkvsearch.build(folder / "ws", items=items, encoder="corpus")
    return Engine(folder / "ws").current_build


@pytest.fixture(scope="module")
def source(objects):
    return QueriedCatalog(objects)


@pytest.fixture(scope="module")
def queries(objects):
    return [query for seed in range(10) for query in make_queries(objects, seed)]


def changed(kind, title, source, seed=0):
    return KINDS_BY_NAME[kind].changed(title, source, np.random.default_rng(seed))


def of_kind(kind, n_first, n, found_by=None):
    """The figures of a kind with this many queries, of which so many have their item first."""
    share = n_first / n
    return KindFigures(
        n, share, 1.0, 0.0, wilson(n_first, n), share, found_by or {}, [], True, share
    )


# --- as people type ---


def test_no_query_has_an_operator_of_the_search(queries):
    assert not [query.text for query in queries if '"' in query.text or " -" in query.text]


def test_signs_of_a_name_stay():
    assert (
        as_typed("C# and .NET: \u201cfrom A to Z\u201d - Part 2")
        == "c# and .net from a to z part 2"
    )


def test_no_query_has_capitals_which_would_keep_its_typo_from_being_corrected(queries):
    titled = [query.text for query in queries if query.kind.startswith("title_")]
    assert titled == [text.lower() for text in titled]


def test_a_kind_asks_nothing_twice(objects):
    asked = [(query.kind, query.text) for query in make_queries(objects)]
    assert len(asked) == len({*asked})


def test_records_and_addresses_are_no_sentences(source, queries):
    assert source.description == "text"
    assert not [query.text for query in queries if "{" in query.text or "role" in query.text]
    assert sentences("See www.sea.org now. Fish swim.") == ["Fish swim."]
    assert sentences("Fish swim\\nBirds fly") == ["Fish swim", "Birds fly"]


def test_a_value_that_all_items_have_is_not_asked_for(queries):
    assert not [query.text for query in queries if "shop" in query.text]


def test_items_with_the_value_in_another_column_are_right_too(queries, source):
    for query in queries:
        if query.kind == "value_and_word":
            assert query.answers == source.with_words(query.text)


# --- titles ---


@pytest.mark.parametrize(
    ("title", "beginning"),
    [
        ("the hand of god", None),  # "the hand" could be any item's
        ("red garden chair oak", "red garden"),
        ("the chair of the garden and table", "the chair of the garden"),
        ("夏目友人帐：曾几何时下雪之日", "夏目友人帐"),
        ("意外的幸运签", None),  # nobody stops behind 的, and two characters are too few
        ("国家元首", None),
    ],
)
def test_a_beginning_tells_something_and_ends_with_a_word(source, title, beginning):
    made = changed("title_beginning", title, source)
    assert (made and made.query) == beginning


def test_neighbours_are_swapped_that_both_tell_something(source):
    made = {
        changed("title_words_swapped", "the red chair of god", source, n).query for n in range(9)
    }
    assert made == {"the chair red of god"}
    assert changed("title_words_swapped", "the hand of god", source) is None


def test_what_is_left_of_a_title_has_two_telling_words(source):
    made = [changed("title_word_left_out", "the hand of god", source, n) for n in range(20)]
    assert {each.query for each in made if each} == {"hand of god", "the hand god"}


def test_a_word_of_the_catalog_is_no_typo(source, monkeypatch):
    from qkvsearch.evaluation.made_queries import title_typo

    monkeypatch.setattr(title_typo, "mistyped", lambda word, rng: "table")
    assert changed("title_typo", "cable", source) is None


def test_a_word_of_four_letters_keeps_them(source):
    made = {changed("title_typo", "rope", source, n).query for n in range(60)}
    assert min(map(len, made)) == 4


def test_a_chinese_typo_is_a_homophone_a_swap_or_a_gap():
    title = "火锅英雄"
    made = {mistyped_cjk(title, homophones(), np.random.default_rng(n)) for n in range(300)}
    kinds = {"gap": 0, "swap": 0, "homophone": 0}
    for query in made:
        if len(query) < len(title):
            kinds["gap"] += 1
        elif sorted(query) == sorted(title):
            kinds["swap"] += 1
        else:
            ((right, wrong),) = [
                pair for pair in zip(title, query, strict=True) if len({*pair}) > 1
            ]
            assert wrong in homophones()[right]
            kinds["homophone"] += 1
    assert all(kinds.values())


def test_japanese_has_no_chinese_homophones():
    made = {mistyped_cjk("登山靴防水", {}, np.random.default_rng(n)) for n in range(100)}
    assert {frozenset(query) for query in made} <= {
        frozenset("登山靴防水") - {gap} for gap in ["", *"山靴防"]
    }


# --- the report ---


def test_ten_of_ten_means_all_and_none_means_none():
    assert n_of_n(of_kind("description", 150, 150)) == "10 of 10"
    assert n_of_n(of_kind("description", 149, 150)) == "149 of 150"
    assert n_of_n(of_kind("description", 1, 150)) == "1 of 150"
    assert n_of_n(of_kind("description", 0, 150)) == "0 of 10"
    assert n_of_n(of_kind("description", 120, 150)) == "8 of 10"
    assert n_of_n(of_kind("description", 4, 11)) == "4 of 11"


def test_the_sentence_names_a_kind_that_is_clearly_weaker():
    weak = {
        "description": of_kind("description", 140, 150),
        "title_typo": of_kind("title_typo", 60, 150),
    }
    assert "4 of 10 titles with a typo" in report._sentence(weak)
    even = {**weak, "title_typo": of_kind("title_typo", 135, 150)}
    assert "typo" not in report._sentence(even)


def test_items_that_are_alike_are_the_last_examples(objects):
    alike = [
        Outcome(MadeQuery("alike_by_title", f"a{n}", 0, (0, 1), 2), None, None) for n in range(3)
    ]
    typos = [Outcome(MadeQuery("title_typo", f"t{n}", 4), n + 2, None) for n in range(3)]
    worst = report._worst(objects, [*alike, *typos])
    assert [row["query"] for row in worst] == ["t2", "t1", "t0", "a0", "a1", "a2"]
    assert [row["others"] for row in worst] == [0, 0, 0, 1, 1, 1]


def test_chinese_descriptions_are_not_said_to_be_in_other_words(queries):
    chinese = {q.kind for q in queries if q.kind.startswith("description") and not q.text.isascii()}
    assert chinese == {"description_clause"}


def test_kinds_have_their_names_in_words(objects):
    evaluation = report.evaluate_made_queries(objects)
    for sentence in evaluation.sentences():
        assert not [name for name in KINDS_BY_NAME if "_" in name and name in sentence]

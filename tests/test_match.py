"""The grade of a hit: strong, good or weak."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import qkvsearch as qkv
from qkvsearch.heads.bm25 import LexicalKeys, QueryTerm, TermCounts, length_norms
from qkvsearch.heads.word_index import WordIndex, WordSequences
from qkvsearch.rank.grades import (
    FEW_WORDS,
    LITTLE,
    Numbers,
    QueryWords,
    _is_spoken_for,
    asking_terms,
    grader,
)
from qkvsearch.scores.components import Components
from qkvsearch.scores.fusion import Scores
from qkvsearch.text.analysis import Analyzer


def matches(engine, text, **options):
    return {hit.title: hit.match for hit in engine.search(text, **options)}


def test_an_item_with_all_words_is_strong_however_many_there_are(videos):
    found = matches(videos, "river bank")
    assert found["Walking the river bank at first light"] == "strong"
    assert "strong" in matches(videos, "guitar").values()
    few = matches(videos, "guitar spaceship")
    assert few
    assert "strong" not in few.values()


def test_what_answers_nothing_is_weak(videos):
    assert set(matches(videos, "xyzzyqq plugh", anyway=True).values()) <= {"weak"}
    assert set(matches(videos, "je ne sais pas quoi", anyway=True).values()) == {"weak"}


def test_a_grade_does_not_depend_on_what_else_is_shown(videos):
    text = "walking along a river bank in the early light of morning"
    whole = matches(videos, text, k=10)
    title, grade = next(iter(whole.items()))
    assert grade == "strong"
    second = list(whole)[1]
    left_out = f"title <> '{title}'"
    assert matches(videos, text, where=left_out)[second] == whole[second] != "strong"
    assert matches(videos, text, k=9, offset=1) == dict(list(whole.items())[1:])


def test_a_head_speaks_for_an_item_above_the_average_and_for_one_with_a_word():
    def head(values, covered=None):
        return Scores("h", np.array(values, np.float32), lambda row: Components.of([]), covered)

    rows = np.arange(4)
    assert _is_spoken_for({"a": head([1, 2, 3, 4])}, rows).tolist() == [False, False, True, True]
    both = {"a": head([1, 2, 3, 4]), "b": head([4, 0, 0, 0])}
    assert _is_spoken_for(both, rows).tolist() == [True, False, True, True]
    has_word = np.array([False, True, False, False])
    words = {"lexical": head([0, 1, 9, 0], has_word)}
    assert _is_spoken_for(words, rows).tolist() == [False, True, True, False]
    # One that scores all alike speaks against none.
    assert _is_spoken_for({"a": head([2, 2, 2, 2])}, rows).all()


@pytest.mark.parametrize("titles", [["Aurora tent"], ["Aurora tent"] * 3])
def test_where_all_items_are_alike_the_grade_is_one(titles, tmp_path):
    items = pd.DataFrame({"id": range(len(titles)), "title": titles})
    with qkv.build(tmp_path, items=items, encoder="corpus") as engine:
        for heads in (None, ["semantic"], ["lexical"]):
            found = engine.search("tent", heads=heads)
            listed = engine.search("tent", heads=heads, weak=False)
            assert [hit.match for hit in found] == [hit.match for hit in listed]


def test_only_searches_for_words_have_grades(videos):
    assert "match" in videos.search("xyzzyqq").to_frame().columns
    assert "match" not in videos.similar("v001").to_frame().columns
    (hit,) = videos.search("", k=1)
    assert hit.match is None


def test_a_query_that_asks_at_length_keeps_its_grades(videos):
    for text in ("river bank", "guitar"):
        short = matches(videos, text)
        strong = {title for title, match in short.items() if match == "strong"}
        assert strong
        for lead in ("how do you deal with", "please show me something about"):
            long = matches(videos, f"{lead} {text}")
            assert all(long[title] == "strong" for title in strong & set(long))
            assert strong & set(long)


def test_words_that_only_ask_are_the_common_ones_at_the_beginning():
    rarity = {"deal": 0.5, "time": 0.3, "end": 0.4}

    def asking(text):
        return asking_terms(Analyzer().tokens(text), rarity)

    assert asking("how do you deal with bees") == {"deal"}
    assert asking("bees and how you deal with them") == set()
    assert asking("how do you deal with time") == {"deal"}
    assert asking("time is") == asking("the end of time") - {"end"} == set()
    assert asking("deal with a deal") == set()


def test_nothing_is_strong_that_the_catalog_does_not_answer(videos):
    found = videos.search("xyzzyqq plugh", anyway=True)
    assert found.notes
    assert {hit.match for hit in found} == {"weak"}


def test_a_long_text_is_not_strong_because_it_has_all_words(tmp_path):
    filler = " ".join(f"word{number}" for number in range(80))
    texts = {
        "together": f"{filler} copper kettles {filler}",
        "apart": f"copper {filler} kettles {filler}",
        "again": f"kettles {filler} {filler} copper",
        "other": filler,
    }
    items = pd.DataFrame({"id": list(texts), "title": list(texts), "body": list(texts.values())})
    with qkv.build(tmp_path / "ws", items=items, encoder="corpus") as engine:
        found = matches(engine, "copper kettles")
    assert found["together"] == "strong"
    assert found["apart"] != "strong"
    assert found["again"] != "strong"


def test_the_words_of_a_title_and_of_a_long_text_are_together(tmp_path):
    filler = " ".join(f"word{number}" for number in range(80))
    items = pd.DataFrame(
        {
            "id": ["a", "b", "c"],
            "title": ["Copper", "Copper", "Tin"],
            "body": [f"{filler} {filler} kettles", f"kettles {filler}", filler],
        }
    )
    with qkv.build(tmp_path / "ws", items=items, encoder="corpus") as engine:
        graded = [(hit.id, hit.match) for hit in engine.search("copper kettles")]
    assert sorted(graded)[:2] == [("a", "strong"), ("b", "strong")]


def words_of(text, *documents):
    """The words of a query in a catalog of these documents, and the share that each has."""
    analyzer = Analyzer("none")
    counts = TermCounts.of_texts([analyzer.key_terms(document) for document in documents])
    keys = LexicalKeys.weighed(counts, length_norms(counts.lengths(len(documents))))
    tokens = analyzer.query_tokens(text)
    lookup = SimpleNamespace(tokens=tokens, terms=[QueryTerm.of(token) for token in tokens])
    sequences = WordSequences.of_fields([documents], analyzer)
    index = WordIndex([(sequences, np.arange(len(documents)))], len(documents))
    words = QueryWords.of(keys, index, lookup, tokens, np.arange(len(documents)))
    return words, words.shares.round(2).tolist()


def test_pairs_between_two_chinese_words_count_nothing():
    documents = ["火星 宇航员", "宇航员", "留声机"]
    _, shares = words_of("宇航员火星", *documents)
    assert shares[0] == 1
    assert 0 < shares[1] < 1
    assert shares[2] == 0
    # The wrong character is in no pair of a text, and is missed.
    _, (share, *_) = words_of("宇航鸟", *documents)
    assert 0 < share < 0.8
    # Also where a text has it somewhere.
    _, (with_it, without) = words_of("宇航鸟", "宇航 飞鸟", "宇航 飞马")
    assert with_it == without < 1


def test_a_phrase_in_thai_is_a_few_words():
    # "Repair a car": one of its seven pairs is the end of another word.
    words, (share,) = words_of("ซ่อมรถยนต์", "แก้วิงเวียน พกพาสะดวก")
    assert len(words.weights) == 7
    assert words.n <= FEW_WORDS
    assert share < LITTLE


def test_pairs_between_two_thai_words_count_nothing():
    # Coffee and milk: the pair of the end of one and the beginning of the other is in no text.
    documents = ["กาแฟ นม", "กาแฟ", "หนังสือ"]
    _, shares = words_of("กาแฟนม", *documents)
    assert shares[0] == 1
    assert 0 < shares[1] < 1
    assert shares[2] == 0


@pytest.mark.parametrize("pair", ["火星", "กาแฟ"])
def test_a_pair_of_units_counts_less_than_a_word(pair):
    of_pair, _ = words_of(pair, pair, "x")
    of_word, _ = words_of("mars", "mars", "x")
    assert of_pair.weights.sum() < of_word.weights.sum()


def test_what_speaks_for_a_hit_makes_it_likelier():
    def probability(**changed):
        numbers = {"lead": 0.2, "share": 0.5, "words": 3.0, "rank": 1.0, **changed}
        (of_hit,) = grader().probabilities(
            Numbers(**{k: np.array([v]) for k, v in numbers.items()})
        )
        return of_hit

    usual = probability()
    assert probability(lead=0.4) > usual
    assert probability(share=0.9) > usual
    assert probability(words=4.0) > usual
    assert probability(rank=0.0) > usual
    assert 0 < grader().weak < grader().strong < 1


def test_a_hit_with_one_of_two_words_in_a_tiny_catalog_is_weak(tmp_path):
    titles = ["Red bicycle", "Blue kettle", "Garden chair", "Wool blanket", "Bread knife"]
    texts = ["for children", "boils water", "made of oak", "for cold nights", "cuts bread"]
    items = pd.DataFrame({"id": list("abcde"), "title": titles, "text": texts})
    with qkv.build(tmp_path / "ws", items=items, encoder="static") as engine:
        for query in ("cold beer", "bread oven", "garden hose"):
            assert [hit.match for hit in engine.search(query, k=1)] == ["weak"]
        assert engine.search("cold nights", k=1)[0].match == "strong"


def test_a_pair_between_two_chinese_words_that_an_item_has_counts_nothing():
    documents = ["哈利波特的一生", *[f"哈利 · 波特 {n}" for n in range(4)], "花园"]
    words, shares = words_of("哈利波特", *documents)
    assert shares == [1, 1, 1, 1, 1, 0]
    assert len(words.terms) == 2


def test_a_chinese_hit_with_a_few_pairs_of_a_strange_question_is_weak(tmp_path):
    films = {
        "情人": "湄公河的女孩和她的情人",
        "钢琴家": "华沙的钢琴家在波兰躲藏",
        "悲情城市": "基隆港的一家人",
        "后天": "风暴停电的一天",
        "密探": "葡萄牙的密探",
        "学校": "学校的老师提供指导",
    }
    table = pd.DataFrame({"id": range(6), "title": films.keys(), "text": films.values()})
    with qkv.build(tmp_path / "films", items=table, encoder="corpus") as engine:
        # Texts have two of the twelve characters of the question together.
        assert matches(engine, "基隆港支持哪个政党是什么", anyway=True)["悲情城市"] == "weak"
        assert matches(engine, "基隆港的一家人")["悲情城市"] == "strong"


def test_words_in_a_short_column_are_apart_from_those_in_a_long_text():
    filler = "很久以前有一个人住在山里每天看云从东边来又往西边去他说自己从来没有想过要离开这座山"
    words, shares = words_of("喜剧演员", "喜剧", f"{filler}喜剧演员", "花园")
    index = WordIndex(
        [
            (
                WordSequences.of_fields([["喜剧", f"{filler}喜剧演员", "花园"]], Analyzer()),
                np.arange(3),
            )
        ],
        3,
    )
    in_short = words.short_shares(index, np.arange(3)).round(2).tolist()
    assert in_short == [shares[0], 0, 0]
    assert 0 < shares[0] < shares[1]

"""Words of one family: which they are, and how a search counts and shows them."""

import pandas as pd
import pytest

import qkvsearch as qkv
from qkvsearch.heads.bm25 import LexicalKeys
from qkvsearch.learn.training_queries import lexical_scores
from qkvsearch.text.analysis import Analyzer
from qkvsearch.text.related_words import MIN_SIMILARITY, prefix_similarity, related_terms
from qkvsearch.text.vocabulary import Vocabulary
from tests.terms import count_terms

ITEMS = pd.DataFrame(
    {
        "id": ["a", "b", "c", "d", "e"],
        "title": [
            "Guitars of red wood",
            "A guitarist at work",
            "Biplane",
            "Red squid",
            "Cat, car, 12345",
        ],
    }
)


@pytest.mark.parametrize(
    ("one", "other", "share"),
    [
        ("guitarist", "guitar", 12 / 15),
        ("scientist", "scienc", 10 / 15),
        ("photo", "photographi", 10 / 16),
        ("plan", "plane", 8 / 9),
        ("car", "carpet", 0),
        ("biolog", "ecolog", 0),
    ],
)
def test_the_share_is_of_the_letters_that_both_begin_with(one, other, share):
    assert prefix_similarity(one, other) == prefix_similarity(other, one) == pytest.approx(share)


def test_a_word_is_no_relative_of_itself_and_numbers_have_none():
    others = ["guitar", "guitarist", "guilt", "12345", "photo"]
    assert related_terms("guitarist", others) == {"guitar": pytest.approx(0.8)}
    assert related_terms("123456", others) == {}
    assert related_terms("gui", others) == {}
    assert all(MIN_SIMILARITY <= share < 1 for share in related_terms("photon", others).values())


def test_terms_that_begin_so_are_found_in_order():
    vocabulary = Vocabulary.of(["sea", "season", "seat", "red", "猫砂"])
    assert vocabulary.with_prefix("sea") == ["sea", "season", "seat"]
    assert vocabulary.with_prefix("猫") == ["猫砂"]
    assert vocabulary.with_prefix("z") == []
    assert Vocabulary.of([]).with_prefix("sea") == []


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    path = tmp_path_factory.mktemp("related") / "ws"
    with qkv.build(path, items=ITEMS, encoder="corpus") as engine:
        yield engine


def test_a_relative_is_found_below_the_word_itself(engine):
    found = engine.search("guitarist", heads=["lexical"], k=9)
    assert [hit.id for hit in found] == ["b", "a"]
    assert found[0].score > found[1].score > 0


def test_reasons_show_the_word_as_the_item_has_it(engine):
    found = engine.search("guitarists", heads=["lexical"], k=9)
    parts = [part for part in found.explain(1) if part.query is not None]
    assert [(part.query, part.key) for part in parts] == [("guitarists", "guitars")]
    assert sum(part.value for part in found.explain(1)) == pytest.approx(found[1].score, abs=1e-5)


def test_a_relative_that_joins_is_found(tmp_path):
    with qkv.build(tmp_path / "ws", items=ITEMS, encoder="corpus") as engine:
        engine.add(pd.DataFrame({"id": ["f"], "title": ["Guitarists unite"]}))
        assert {hit.id for hit in engine.search("guitar", heads=["lexical"], k=9)} == {*"abf"}


def test_weights_are_learned_with_relatives_too():
    keys = LexicalKeys.from_counts(*count_terms(ITEMS["title"], Analyzer().key_terms))
    (scores,) = lexical_scores(keys, ["guitarist"], Analyzer())
    assert scores[1] > scores[0] > 0
    assert not scores[2:].any()


def test_in_long_texts_a_word_is_itself_alone(tmp_path):
    padded = ITEMS.assign(title=ITEMS["title"] + " and so on" * 20)
    with qkv.build(tmp_path / "ws", items=padded, encoder="corpus") as engine:
        found = engine.search("guitarist", heads=["lexical"], k=9)
        assert [hit.id for hit in found] == ["b"]

"""Phrases in scripts without spaces: the share of a query that an item has, and one error."""

import numpy as np
import pytest

from qkvsearch.heads.bm25 import LexicalKeys, TermCounts, length_norms
from qkvsearch.heads.single_units import SingleUnits
from qkvsearch.heads.unit_phrases import (
    UnitRow,
    covered_units,
    has_unspaced,
    largest_covered_share,
    near_phrase,
    unknown_runs,
)
from qkvsearch.heads.word_index import WordIndex, WordSequences
from qkvsearch.text.analysis import Analyzer

analyzer = Analyzer("none")
TITLES = [
    "盗梦空间", "我不是药神", "哈利·波特与魔法石", "校园往事", "青春故事", "第一部战争",
    "となりのトトロ", "살인의 추억", "แกงเขียวหวานไก่", "变形金刚 Max", "静夜思",
    "回到未来", "回到未来", "回到将来",
]  # fmt: skip
BODIES = [""] * len(TITLES)
BODIES[4] = "校园里的故事"
BODIES[10] = "床前明月光，疑是地上霜。举头望明月，低头思故乡。"


def keys_of(fields):
    texts = [" \n ".join(columns) for columns in zip(*fields, strict=True)]
    counts = TermCounts.of_texts([analyzer.key_terms(text) for text in texts])
    return LexicalKeys.weighed(counts, length_norms(counts.lengths(len(texts))))


KEYS = keys_of([TITLES, BODIES])
WORDS = WordSequences.of_fields([TITLES, BODIES], analyzer)
INDEX = WordIndex([(WORDS, np.arange(len(TITLES)))], len(TITLES))


def near(typed, index=INDEX, has_titles=True):
    found = near_phrase(KEYS, index, analyzer.tokens(typed), has_titles)
    return found and (found.text, found.item)


@pytest.mark.parametrize(
    ("typed", "meant", "item"),
    [
        ("盗蓦空间", "盗梦空间", 0),  # wrong
        ("蓦梦空间", "盗梦空间", 0),  # the first one
        ("盗梦空蓦", "盗梦空间", 0),  # the last one
        ("盗空间", "盗梦空间", 0),  # missing
        ("盗梦蓦空间", "盗梦空间", 0),  # additional
        ("盗空梦间", "盗梦空间", 0),  # swapped
        ("盜蓦空間", "盗梦空间", 0),  # in traditional characters
        ("我不是约神", "我不是药神", 1),
        ("波特与魔发石", "波特与魔法石", 2),  # within a title
        ("哈利波特与魔发石", "哈利波特与魔法石", 2),
        ("トナリノトトル", "となりのととろ", 6),
        ("살인의 추엌", "살인의추억", 7),
        ("แกงเขียวหวาไก่", "แกงเขียวหวานไก่", 8),
        ("变形精刚Max", "变形金刚 max", 9),
        ("举头看明月", "举头望明月", 10),  # within a text
        ("窗前明月光", "床前明月光", 10),  # where the text begins
        ("低头思故里", "低头思故乡", 10),  # where it ends
        ("回到过来", "回到未来", 11),  # the title that most items have
    ],
)
def test_a_phrase_with_one_error_is_found(typed, meant, item):
    assert near(typed) == (meant, item)


@pytest.mark.parametrize(
    "typed",
    [
        "盗梦空间",  # nothing is wrong
        "校园故事",  # an item has both words
        "第二部战争",  # a number
        "变形金刚 Min",  # a word in letters
        "盗蓦空门",  # two errors
        "空门",  # too short
        "明月花", "望明花",  # too short for a text
        "里望明月低",  # the first one is wrong in the middle of a text
        "如何做红烧肉",
        "A plain English query",
        "",
    ],
)  # fmt: skip
def test_other_phrases_are_left_alone(typed):
    assert near(typed) is None


def test_without_titles_all_columns_are_texts():
    assert near("举头看明月", has_titles=False) == ("举头望明月", 10)
    assert near("盗蓦空间", has_titles=False) is None


def test_phrases_of_all_segments_are_found():
    half = len(TITLES) // 2
    pieces = [
        (
            WordSequences.of_fields([TITLES[part], BODIES[part]], analyzer),
            np.arange(len(TITLES))[part],
        )
        for part in (slice(half, None), slice(half))
    ]
    index = WordIndex(pieces, len(TITLES))
    for typed in ("盗蓦空间", "窗前明月光", "回到过来"):
        assert near(typed, index) == near(typed)


def test_the_phrase_is_taken_as_the_item_has_it():
    for typed, title in (("살인의 추엌", "살인의 추억"), ("哈利波特与魔发石", "哈利·波特与魔法石")):
        found = near_phrase(KEYS, INDEX, analyzer.tokens(typed), has_titles=True)
        assert found.in_text(f"《{title}》 1", analyzer) == title
        assert found.in_text("别的", analyzer) is None


def test_the_units_of_a_query_are_counted_once_each():
    tokens = analyzer.tokens("盗梦空城 max 故事")
    row = UnitRow.of(tokens)
    assert row.units == ["盗", "梦", "空", "城", "max", "故", "事"]
    covered = covered_units(KEYS, tokens, row)
    assert covered.tolist() == [3, 0, 0, 0, 2, 0, 0, 0, 0, 1, 0, 0, 0, 0]
    assert largest_covered_share(KEYS, tokens) == 3 / 7
    assert has_unspaced(tokens)
    assert not has_unspaced(analyzer.tokens("rain jacket, été"))


def test_the_share_is_that_of_a_count_by_hand():
    rng = np.random.default_rng(0)
    characters = list("天地人山水火木金土日")
    texts = ["".join(rng.choice(characters, 12)) for _ in range(30)]
    keys = keys_of([texts])
    for _ in range(20):
        typed = "".join(rng.choice(characters, 7))
        tokens = analyzer.tokens(typed)
        covered = covered_units(keys, tokens, UnitRow.of(tokens))
        by_hand = [
            sum(
                typed[max(i - 1, 0) : i + 1] in text
                if i == 6
                else typed[i : i + 2] in text or (i > 0 and typed[i - 1 : i + 1] in text)
                for i in range(7)
            )
            for text in texts
        ]
        assert covered.tolist() == by_hand


def test_a_single_character_counts_as_a_word_and_within_a_word_where_no_pair_is_known():
    fields = [["茶碗", "碗", "青花碗", "飞机", "山水"], ["", "", "", "", "碗" + "山水之间" * 20]]
    keys, words = keys_of(fields), WordSequences.of_fields(fields, analyzer)
    index = WordIndex([(words, np.arange(5))], 5)

    def found(text):
        units = SingleUnits.of(keys, index, analyzer.query_tokens(text))
        scores = units.scores("lexical") if units is not None else None
        return None if scores is None else np.flatnonzero(scores.scores).tolist()

    assert found("茶碗") == [1]
    assert found("喝茶的碗") == [0, 1, 2]
    assert found("的机") == [3]
    assert found("喝茶的碗和杯子以及其他的器皿") is None


@pytest.mark.parametrize(("text", "is_answered"), [("宝碗", True), ("手机", False)])
def test_one_character_within_a_word_is_no_answer(text, is_answered):
    fields = [["茶碗", "碗", "飞机"]]
    keys, words = keys_of(fields), WordSequences.of_fields(fields, analyzer)
    tokens = analyzer.query_tokens(text)
    units = SingleUnits.of(keys, WordIndex([(words, np.arange(3))], 3), tokens)
    assert units.is_answered(tokens) == is_answered


@pytest.mark.parametrize(
    ("query", "unknown"),
    [
        ("回到", []),
        ("回到别姬", ["别姬"]),
        ("别姬回到", ["别姬"]),
        ("回到别姬 红茶", ["别姬", "红茶"]),  # two runs
        ("回到的未来", []),  # one character is between two pairs
        ("dragon 红茶", ["红茶"]),  # a word with spaces has a note of its own
    ],
)
def test_runs_that_no_item_has(query, unknown):
    assert unknown_runs(KEYS, analyzer.query_tokens(query)) == unknown

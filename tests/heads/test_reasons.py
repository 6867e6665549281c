"""Reasons in plain words: few lines that add up, each of which says what is so."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkvsearch._utils.shown_sums import AVERAGE_ITEM
from qkvsearch.rank.reasons import (
    MAX_LINES,
    OVERALL,
    SHARE,
    KindsOfItems,
    OtherReasons,
    Reason,
    WordReasons,
    few,
)
from qkvsearch.scores.components import Components, ScoreComponent

values = st.floats(-10, 10, allow_nan=False).map(lambda x: round(x, 3))
labels = st.sampled_from(
    ["space", "Space", "robots", "the", "[CLS]", "!", "注意", "意力", "注", "ab", "rank 3", "café"]
)
parts = st.builds(
    ScoreComponent,
    st.sampled_from(["lexical", "lsa", "minilm", "token", "collaborative", "popularity"]),
    st.none() | labels,
    st.none() | labels,
    values,
    st.none(),
)


def texts(found):
    return [reason.text for reason in found]


def reasons(text, drawn):
    return WordReasons(text)(0, Components.of(drawn))


@given(st.lists(parts, max_size=40), st.sampled_from(["", "Space robots", "注意力 the", "the of"]))
def test_reasons_add_up_to_what_the_parts_do(drawn, text):
    found = reasons(text, drawn)
    assert sum(one.value for one in found) == pytest.approx(sum(p.value for p in drawn), abs=1e-9)
    assert texts(found).count(AVERAGE_ITEM) <= 1
    # What is no word has a line of its own, and all that is none in a text has one together.
    alone = {(part.head, part.query, part.key) for part in drawn if None in (part.query, part.key)}
    assert len(found) <= MAX_LINES + 3 + len(alone)


def test_a_word_is_the_same_in_every_head_however_it_is_written():
    found = reasons(
        "Robots in the Café",
        [
            ScoreComponent("lexical", "robots", "robots", 1.0),
            ScoreComponent("minilm", "Robots", "machine", 0.3),
            ScoreComponent("minilm", "Robots", "of", 0.7),
            ScoreComponent("token", "Robots", "Robot", 0.25),
            ScoreComponent("static", "Café", "coffee", 2.0),
            ScoreComponent("lexical", "cafe", "cafe", 0.5),
        ],
    )
    assert found == [
        Reason("cafe, coffee: similar meaning +2.000, same word +0.500", 2.5),
        Reason("robots: same word +1.000, similar meaning +1.000, word by word +0.250", 2.25),
    ]


def test_a_run_of_chinese_is_one_word():
    drawn = [
        ScoreComponent("lexical", "意力", "意力", 1.0),
        ScoreComponent("lexical", "注意 意力", "注意 意力", 0.5),
        ScoreComponent("minilm", "注", "注", 0.5),
        ScoreComponent("static", "机", "机", 0.25),
    ]
    found = reasons("注意力 机制", drawn)
    assert texts(found)[0].startswith("注意力: ")
    assert texts(found)[1] == "similar meaning to 机制"
    assert [reason.value for reason in found] == [2.0, 0.25]


def test_words_that_were_typed_apart_are_not_joined():
    drawn = [ScoreComponent("lexical", "苹果 果汁", "苹果 果汁", 1.0)]
    assert texts(reasons("苹果 果汁", drawn)) == ["苹果 果汁: same word"]


def test_what_says_nothing_alone_is_the_text_as_a_whole():
    drawn = [ScoreComponent("minilm", label, "x", 1.0) for label in ("[CLS]", "the", ",", "[SEP]")]
    assert reasons("the, deep", drawn) == [Reason(OVERALL, 4.0)]
    only = reasons("the", [ScoreComponent("lexical", "the", "the", 1.0)])
    assert texts(only) == ["the: same word"]


@pytest.mark.parametrize("key", ["the", "ed", "[SEP]", "2001", "Knots", "-"])
def test_a_pair_is_named_only_where_both_are_words(key):
    (found,) = reasons("knot", [ScoreComponent("minilm", "knot", key, 1.0)])
    assert found.text == "similar meaning to knot"


@pytest.mark.parametrize(("key", "named"), [("具", False), ("茶具", True)])
def test_a_piece_of_a_word_is_not_named_as_a_word_of_the_item(key, named):
    (found,) = reasons("陶瓷", [ScoreComponent("e5", "陶瓷", key, 1.0)])
    assert found.text == ("similar meaning to 陶瓷: 茶具" if named else "similar meaning to 陶瓷")


@pytest.mark.parametrize(("share", "named"), [(0.24, False), (0.26, True)])
def test_a_pair_is_named_only_where_its_share_is_worth_it(share, named):
    drawn = [
        ScoreComponent("lsa", "rain", "waterproof", share),
        ScoreComponent("lsa", "rain", "rain", 1 - share),
    ]
    (found,) = reasons("rain", drawn)
    assert (": waterproof" in found.text) is named


def test_a_word_that_brings_next_to_nothing_names_no_pair():
    drawn = [
        ScoreComponent("lsa", "rain", "rain", 1.0),
        ScoreComponent("lsa", "knot", "skerry", 0.04),
    ]
    assert texts(reasons("rain knot", drawn)) == [
        "similar meaning to rain",
        "similar meaning to knot",
    ]


def test_a_word_that_was_found_as_another_says_so():
    drawn = [ScoreComponent("lexical", "kx-1/7b", "model KX-1/7B", 2.0)]
    assert "model kx-1/7b" in texts(reasons("KX-1/7B", drawn))[0]


def test_what_is_not_the_same_for_every_item_is_not_what_everything_gets():
    drawn = [
        ScoreComponent("lsa", None, None, -1.0),
        ScoreComponent("token", None, None, -0.5),
        ScoreComponent("popularity", None, None, -2.0),
        ScoreComponent("token", None, "as the lowest", -4.0),
    ]
    found = reasons("x", drawn)
    assert found == [
        Reason("word by word, as the lowest", -4.0),
        Reason("for how popular it is", -2.0),
        Reason(AVERAGE_ITEM, -1.5),
    ]


def test_a_persons_preferences_have_one_line():
    drawn = [
        ScoreComponent("collaborative", "m1", None, 1.0),
        ScoreComponent("collaborative", "m2", None, 0.5),
    ]
    assert reasons("x", drawn) == [Reason("your taste", 1.5)]


@given(st.lists(values, min_size=1, max_size=60))
def test_few_lines_carry_most(drawn):
    found = few(drawn, "r{}".format)
    assert sum(one.value for one in found) == pytest.approx(sum(drawn), abs=1e-9)
    shown = [one for one in found if not isinstance(one, OtherReasons)]
    carried = sum(abs(one.value) for one in shown)
    assert len(shown) >= MAX_LINES or carried >= SHARE * sum(map(abs, drawn)) - 1e-9
    assert len(found) <= MAX_LINES + 1


# --- groups ---


def grouped(items, first=()):
    """items: title, value and kinds of each."""
    titles, drawn, kinds = zip(*items, strict=True)
    which = np.ones(len(items), dtype=bool)
    return KindsOfItems(titles, kinds).reasons(np.array(drawn), which, first)


def test_few_items_are_named_one_by_one():
    assert texts(grouped([("Heat", 1.0, ["Crime"]), ("Ran", 2.0, ["Crime"])])) == [
        "because of Ran",
        "because of Heat",
    ]


def test_many_items_are_grouped_by_what_they_have_in_common_each_once():
    crime = [(f"c{i}", 1.0 + i / 100, ["Crime", "Drama"]) for i in range(10)]
    drama = [(f"d{i}", 0.5 + i / 100, ["Drama"]) for i in range(6)]
    other = [("x", 4.0, []), ("y", -1.5, [])]
    found = grouped([*crime, *drama, *other])
    assert texts(found) == ["from 16 of Drama, such as c9, c8", "from 2 other items, such as x, y"]
    # what the recommended item is itself counts twice
    found = grouped([*crime, *drama, *other], ["Crime"])
    assert texts(found)[:2] == [
        "from 10 of Crime, such as c9, c8",
        "from 6 of Drama, such as d5, d4",
    ]


@given(
    st.lists(
        st.tuples(st.just("t"), values, st.lists(st.sampled_from("abcdefgh"), unique=True)),
        min_size=1,
        max_size=50,
    ),
    st.data(),
)
def test_groups_of_the_items_that_count_add_up_and_are_few(items, data):
    titles, drawn, kinds = zip(*items, strict=True)
    which = np.array(data.draw(st.lists(st.booleans(), min_size=len(items), max_size=len(items))))
    found = KindsOfItems(titles, kinds).reasons(np.array(drawn), which, ["a"])
    total = sum(value for value, counts in zip(drawn, which, strict=True) if counts)
    assert sum(one.value for one in found) == pytest.approx(total, abs=1e-9)
    assert len(found) <= MAX_LINES + 1

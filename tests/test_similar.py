"""`similar` to one item and to several: who is listed, and reasons that say of which item."""

import numpy as np
import pandas as pd
import pytest

import qkvsearch
from qkvsearch.engine import Engine
from qkvsearch.errors import QkvError, UnknownIdError
from qkvsearch.rank.item_users import ItemUsers
from qkvsearch.rank.similar import MAX_BY_WORD, WEIGHTS, Neighbours


def ids(ranking):
    return [hit.id for hit in ranking]


@pytest.fixture
def shop(shop_path):
    with Engine(shop_path) as engine:
        yield engine


@pytest.mark.parametrize("items", [[1, 4], ["red apple", 4], (1, 4, 1), np.array([1, 4])])
def test_neither_the_items_nor_what_is_excluded_is_listed(shop, items):
    assert sorted([*ids(shop.similar(items)), 1, 4]) == sorted([*ids(shop.similar(7)), 7])
    without = ids(shop.similar(items, exclude=["green apple", 5]))
    assert without == [one for one in ids(shop.similar(items)) if one not in (2, 5)]


def test_the_query_is_the_mean_of_the_items_keys(shop):
    """So without standardization the scores of two are the mean of the scores of each."""
    one, other, both = (
        Neighbours(shop.texts, positions)._heads() for positions in ([0], [3], [0, 3])
    )
    for name in ("semantic", "collaborative", "neighbours"):
        mean = (one[name].scores + other[name].scores) / 2
        np.testing.assert_allclose(both[name].scores, mean, atol=1e-5)
    scores = both["collaborative"].scores + both["neighbours"].scores
    expected = WEIGHTS["collaborative"] * (scores - scores.mean()) / scores.std()
    by_users = Neighbours(shop.texts, [0, 3]).fused().addends[1].scores
    np.testing.assert_allclose(by_users, expected, atol=1e-5)


@pytest.mark.parametrize("items", [[1], [1, 4], [7, 8], [1, 9, 30]])
def test_parts_and_reasons_add_up_and_parts_say_of_which_item(shop, items, assert_adds_up):
    ranking = shop.similar(items)
    assert ranking
    for i, hit in enumerate(ranking):
        parts = ranking.explain(i)
        assert_adds_up([part.value for part in parts], hit.score)
        assert_adds_up([reason.value for reason in ranking.reasons(i)], hit.score)
        found = {part.item for part in parts if part.query is not None}
        assert found <= (set(items) if len(items) > 1 else {None})
    if items == [1, 4]:
        assert found == {1, 4}


def test_of_many_items_each_is_one_part(shop, assert_adds_up):
    items = [*shop.items][: MAX_BY_WORD + 1]
    ranking = shop.similar(items)
    for i, hit in enumerate(ranking):
        parts = [part for part in ranking.explain(i, full=True) if part.query is not None]
        assert {part.query for part in parts} <= {shop.show(item)["title"] for item in items}
        assert len(parts) <= 3 * len(items)  # by text, by embedding, by neighbours
        assert_adds_up([reason.value for reason in ranking.reasons(i)], hit.score)
    texts = [reason.text for i in range(len(ranking)) for reason in ranking.reasons(i)]
    assert any(text.startswith("similar meaning to ") for text in texts)


def test_reasons_name_shared_people_and_shared_words(shop):
    ranking = shop.similar(2, k=9)
    (i,) = (i for i, hit in enumerate(ranking) if hit.id == 1)
    texts = [reason.text for reason in ranking.reasons(i)]
    # 101, 102 and 103 like both; 201 and 300 rated the red apple the lowest
    assert "people: 3 of the 3 who liked green apple also liked this" in texts
    assert "same words as green apple: apple" in texts
    assert texts[-1] == "average item (subtracted)"


def test_people_of_now_are_counted(tmp_path, shop_items, shop_log):
    path = tmp_path / "ws"
    qkvsearch.build(path, items=shop_items, interactions=shop_log, encoder="corpus")
    with Engine(path) as engine:
        engine.record("new", 1, 5)
        engine.record("new", 2, 5)
        engine.record(102, 2, 1)  # no longer likes it
        likers = ItemUsers.of(engine.current_build.histories, [0]).liking(0)
        assert (likers.rows.tolist(), likers.names) == ([0, 1, 2], {"new"})
        ranking = engine.similar(2, k=9)
        (i,) = (i for i, hit in enumerate(ranking) if hit.id == 1)
        texts = [reason.text for reason in ranking.reasons(i)]
        assert "people: 3 of the 3 who liked green apple also liked this" in texts
        engine.remove([3])
    with Engine(path) as engine:  # rows have moved
        assert engine.items[30]["id"] == 30
        histories = engine.current_build.histories
        assert [histories.ids[row] for row in ItemUsers.of(histories, [8]).liking(8).rows] == [103]


def test_without_a_log_only_texts_tell(tmp_path):
    path = tmp_path / "ws"
    items = pd.DataFrame(
        {"id": range(1, 11), "title": [f"rain jacket {i}" if i % 2 else f"art of bread {i}"
                                       for i in range(1, 11)]}
    )  # fmt: skip
    qkvsearch.build(path, items=items, encoder="corpus")
    with Engine(path) as engine:
        ranking = engine.similar([1, 7])
        assert set(ids(ranking)) == {2, 3, 4, 5, 6, 8, 9, 10}
        assert not any(part.head == "collaborative" for part in ranking.explain(0))
        assert not any("people" in reason.text for reason in ranking.reasons(0))


@pytest.mark.parametrize(
    ("asked", "error", "told"),
    [
        ({"items": []}, QkvError, "`items`: name at least one"),
        ({"items": [1, 999]}, UnknownIdError, "no item '999'"),
        ({"items": [1, "ladder"]}, UnknownIdError, "2 items; give an id"),
        ({"items": 1, "exclude": ["nowhere"]}, UnknownIdError, "no item 'nowhere'"),
        ({"items": [1, float("nan")]}, QkvError, "`items` must be an id"),
        ({"items": 1, "exclude": [None]}, QkvError, "`exclude` must be an id"),
    ],
)
def test_what_cannot_be_compared_is_refused(shop, asked, error, told):
    with pytest.raises(error, match=told):
        shop.similar(**asked)


def test_an_item_named_twice_counts_once_and_that_is_said(shop):
    twice = shop.similar([1, "red apple", 4])
    assert [hit.score for hit in twice] == [hit.score for hit in shop.similar([1, 4])]
    assert twice.notes == ["Named more than once, and counted once: 1."]
    assert shop.similar([1, 4]).notes == ()


def test_on_the_command_line(qkv, shop_path):
    found = qkv("-w", shop_path, "similar", 1, 4, "--exclude", 2, "--exclude", "ladder")
    assert found.code == 1
    assert "give an id" in found.stderr
    rows = qkv(
        "-w", shop_path, "similar", 1, 4, "--exclude", 2, "--explain", "--format", "json"
    ).json()
    assert not {1, 2, 4} & {row["id"] for row in rows}
    assert {part["item"] for part in rows[0]["parts"] if "item" in part} == {1, 4}
    assert qkv("-w", shop_path, "similar").code == 2


def test_words_of_a_script_without_spaces_are_runs_that_both_texts_have(tmp_path, assert_adds_up):
    """Encoders learned pairs of characters, and tables know single ones."""
    texts = ["李连杰的武侠电影", "武侠片，主演李连杰", "春天的花园", "花园里的茶"]
    items = pd.DataFrame({"id": list("abcd"), "title": ["一", "二", "三", "四"], "text": texts})
    for encoder in ("corpus", "static"):
        with qkvsearch.build(tmp_path / encoder, items=items, encoder=encoder) as engine:
            ranking = engine.similar("a", k=1)
            assert ids(ranking) == ["b"]
            reasons = ranking.reasons(0)
            assert_adds_up([reason.value for reason in reasons], ranking.hits[0].score)
            (same,) = [reason.text for reason in reasons if "same words" in reason.text]
            assert sorted(same.partition(": ")[2].split(", ")) == ["李连杰", "武侠"]

"""A log of rows: every cell of ratings and weights is used, or counted with what became of it."""

import numpy as np
import pandas as pd
import pytest

from qkvsearch.errors import DataError
from qkvsearch.tables.columns import Columns
from qkvsearch.tables.ids import Ids
from qkvsearch.tables.log import interactions_from_table
from qkvsearch.tables.report import ReadReport
from qkvsearch.tables.table import table_of


def read(rows, names=("user", "item", "quantity"), item_ids=None, **columns):
    """The log, its pairs by user and item, and the report."""
    frame = pd.DataFrame(rows, columns=list(names), dtype=object)
    report = ReadReport("log.csv", read=len(frame))
    log = interactions_from_table(table_of(frame), Columns(**columns), report, item_ids)
    pairs = [
        (str(log.user_ids[user]), str(log.item_ids[item]))
        for user, item in zip(log.users, log.items, strict=True)
    ]
    return log, pairs, report


def test_a_pair_bought_twice_adds_up():
    log, pairs, report = read([("a", "x", "1"), ("a", "x", "2"), ("a", "y", "1")])
    assert dict(zip(pairs, log.weights.tolist(), strict=True)) == {("a", "x"): 3, ("a", "y"): 1}
    assert (report.kept, report.merged) == (2, 1)


def test_users_of_whom_no_neighbours_are_learned_are_counted(monkeypatch):
    monkeypatch.setattr("qkvsearch.tables.log.MAX_HISTORY", 1)
    _, _, report = read([("a", "x", "1"), ("a", "y", "1"), ("b", "x", "1"), ("b", "x", "2")])
    assert "no neighbours are learned from 1 user with over" in str(report)


def test_a_refund_takes_back_by_time_not_by_place():
    rows = [("a", "x", "-1", "30"), ("a", "x", "1", "10"), ("a", "x", "1", "40")]
    log, _, report = read(rows, ("user", "item", "quantity", "time"))
    assert (log.weights.tolist(), log.times.tolist()) == ([1], [40])
    assert "1 refund took back" in str(report)
    rows = [("a", "x", "1", "10"), ("a", "x", "1", "20"), ("a", "x", "-1", "30")]
    log, _, _ = read(rows, ("user", "item", "quantity", "time"))
    assert (log.weights.tolist(), log.times.tolist()) == ([1], [10])


def test_a_refund_without_a_purchase_is_counted_and_said():
    log, _, report = read([("a", "x", "-1"), ("a", "y", "2")])
    assert log.weights.tolist() == [0, 2]
    assert "1 refund exceeds the purchases before it" in str(report)
    assert "1 pair is fully refunded" in str(report)


def test_a_weight_that_is_no_number_is_skipped_and_an_empty_one_is_the_usual_one():
    rows = [("a", "x", "4"), ("a", "y", None), ("b", "x", "many"), ("b", "y", "1e300")]
    log, _, report = read(rows)
    assert log.weights.tolist() == [4, 4]
    assert report.skipped == {
        "with a weight that is not a number": 1,
        "with a weight beyond ±1e+12": 1,
    }
    assert "1 without a weight" in str(report)


def test_numbers_as_people_write_them_are_numbers_and_words_for_nothing_are_nothing():
    rows = [("a", "x", "1,5"), ("a", "y", "N/A"), ("b", "x", "2,5"), ("b", "y", "-")]
    log, _, report = read(rows, ("user", "item", "rating"))
    np.testing.assert_array_equal(log.ratings, np.array([1.5, np.nan, 2.5, np.nan], np.float32))
    assert not report.skipped
    (column,) = (column for column in report.columns if column.role == "rating")
    assert column.changed["N/A emptied"] == column.changed["- emptied"] == 1


def test_a_guessed_weight_is_read_as_a_told_one():
    """A column left out for its decimal commas would turn refunds into likes."""
    rows = [("a", "x", "1,5"), ("a", "y", "2,0"), ("b", "x", "-1,5"), ("b", "z", "n/a")]
    guessed, told = read(rows), read(rows, weight="quantity")
    assert guessed[0].weights.tolist() == told[0].weights.tolist() == [1.5, 2, 0, 1.75]
    assert str(guessed[2]) == str(told[2])


def test_quantities_in_a_column_of_ratings_are_likes_with_a_warning_until_a_person_says_more():
    rows = [("a", str(item), "1") for item in range(97)] + [("a", str(i), "2") for i in "xyz"]
    names = ("user", "item", "rating")
    log, _, report = read(rows, names)
    assert (log.scale, len(report.warnings)) == (None, 1)
    assert "from 1 to 2, most of them low. Every row is a like;" in report.warnings[0]
    assert read(rows, names, weight="rating")[0].weights.tolist() == [1] * 97 + [2] * 3
    assert read(rows, names, rating_scale=(1, 2))[0].ratings.tolist() == [1] * 97 + [2] * 3


def test_a_scale_that_is_said_makes_the_same_column_ratings():
    rows = [("a", "x", "1"), ("a", "y", "2"), ("b", "x", "9")]
    log, _, report = read(rows, ("user", "item", "rating"), rating_scale=(1, 5))
    assert (log.ratings.tolist(), log.scale) == ([1, 2], (1, 5))
    assert report.skipped == {"with a rating outside 1 to 5": 1}


def test_a_rating_far_from_an_inferred_scale_counts_as_its_end_and_is_counted():
    rows = [("a", str(item), str(item % 5 + 1)) for item in range(999)] + [("b", "1", "35")]
    log, _, report = read(rows, ("user", "item", "rating"))
    assert log.scale == (1, 5)
    assert report.kept == 1000
    assert "1 rating outside the scale counts as its ends" in str(report)
    assert "ratings are on a scale from 1 to 5" in str(report)


def test_ratings_and_weights_together_are_both_kept():
    rows = [("a", "x", "5", "30"), ("a", "y", "1", "900")]
    log, _, _ = read(rows, ("user", "item", "rating", "minutes"))
    assert (log.ratings.tolist(), log.weights.tolist()) == ([5, 1], [30, 900])


@pytest.mark.parametrize("scale", [(5, 1), (3, 3), (float("nan"), 5), (0, float("inf"))])
def test_a_scale_that_is_none_is_refused(scale):
    with pytest.raises(DataError, match="`rating_scale` is the lowest and the highest rating"):
        read([("a", "x", "1")], ("user", "item", "rating"), rating_scale=scale)


def test_a_scale_without_ratings_is_refused():
    with pytest.raises(DataError, match="no column looks like any; name it with `rating_column`"):
        read([("a", "x", "1")], rating_scale=(1, 5))


def test_ids_that_differ_in_case_alone_are_said():
    rows = [("USER@X", "K1", "1"), ("user@x", "k1", "1"), ("User@X", "k2", "1"), ("b", "k2", "1")]
    log, _, report = read(rows)
    assert (len(log.user_ids), len(log.item_ids)) == (4, 3)
    assert "ids differ in case alone: 2 users would join others" in str(report)
    assert "K1 and k1 differ in case alone: 1 item would join others" in str(report)


def test_folded_ids_are_one_in_the_most_common_spelling():
    rows = [("USER@X", "K1", "1"), ("user@x", "k1", "1"), ("user@x", "k2", "1")]
    log, _, report = read(rows, fold_ids=True)
    assert list(log.user_ids) == ["user@x"]
    assert list(log.item_ids) == ["K1", "k2"]
    assert log.weights.tolist() == [2, 1]
    assert "differ in case" not in str(report)


def test_folded_items_are_spelled_as_in_the_catalog():
    _, pairs, _ = read(
        [("a", "SKU-1", "1"), ("a", "sku-1", "1")],
        item_ids=Ids(["Sku-1"], fold=True),
        fold_ids=True,
    )
    assert pairs == [("a", "Sku-1")]


def test_blanks_around_ids_go_even_those_that_nobody_sees():
    rows = [("\ufeffa", "x\xa0", "1"), ("a", "\u200bx", "1"), ("\u200b ", "x", "1")]
    _, pairs, report = read(rows)
    assert pairs == [("a", "x")]
    assert report.skipped == {"without a user": 1}


def test_a_sku_that_looks_like_a_power_of_ten_stays_as_it_is():
    _, pairs, _ = read([("007", "1E5", "1"), ("7", "100000", "1")])
    assert pairs == [("007", "1E5"), ("7", "100000")]


def test_whole_numbers_written_with_a_point_are_the_same_items():
    _, pairs, _ = read([("7.0", "3", "1"), ("7", "3.0", "1")], item_ids=Ids(["3", "4"]))
    assert pairs == [("7", "3")]

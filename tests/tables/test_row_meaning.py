"""What a row of a log means: likes and dislikes, events, and columns that may say so."""

import random

import numpy as np
import pandas as pd
import pytest

from qkvsearch.errors import DataError
from qkvsearch.tables.column_facts import ColumnFacts
from qkvsearch.tables.columns import Columns
from qkvsearch.tables.columns.events import COMMON_EVENTS, event_name
from qkvsearch.tables.columns.row_meaning import RULES, FreeColumn, rule_for
from qkvsearch.tables.dataset import read_dataset
from qkvsearch.tables.report import ReadReport
from qkvsearch.tables.table import table_of

USERS, ITEMS = [f"u{k}" for k in range(30)], [f"p{k}" for k in range(20)]


def log(n=300, **cells):
    """A log with more columns. A cell is drawn from a list, or computed from the row."""
    rng = random.Random(1)
    rows = [{"user": rng.choice(USERS), "item": rng.choice(ITEMS)} for _ in range(n)]
    for row in rows:
        row |= {
            name: cell(row) if callable(cell) else rng.choice(cell) for name, cell in cells.items()
        }
    return pd.DataFrame(rows, dtype=object)


def read(frame, **columns):
    dataset = read_dataset(None, frame, Columns(**columns))
    return dataset.interactions, dataset.reports[-1]


RATINGS = {
    "yes and no": (["true", "false"], [1, 0], (0, 1)),
    "one letter": (["J", "n"], [1, 0], (0, 1)),
    "thumbs": (["👍", "👎"], [1, 0], (0, 1)),
    "likes": (["Like", "dislike"], [1, 0], (0, 1)),
    "of five": (["5/5", "2/5"], [5, 2], (1, 5)),
    "from zero": (["0/10", "7,5 / 10"], [0, 7.5], (0, 10)),
    "stars": (["★★★☆☆", "★½☆☆☆"], [3, 1.5], (1, 5)),
    "stars in words": (["3 étoiles", "5 stars"], [3, 5], (1, 5)),
    "a shop's": (["4,0 von 5 Sternen", "1.0 out of 5 stars"], [4, 1], (1, 5)),
    "numbers": (["1,5", "4"], [1.5, 4], (1, 4)),
    "yes and 0": (["yes", "0"], [1, 0], (0, 1)),
}


@pytest.mark.parametrize("case", RATINGS)
def test_ratings_are_numbers_answers_fractions_or_stars(case):
    cells, values, scale = RATINGS[case]
    frame = pd.DataFrame({"user": ["a", "b"], "item": ["x", "x"], "liked": cells})
    interactions, _ = read(frame, rating="liked")
    assert interactions.ratings.tolist() == values
    assert interactions.scale == scale


def test_answers_are_the_ends_of_a_scale_and_other_cells_are_counted():
    frame = log(liked=["yes", "no", "maybe", ""])
    interactions, report = read(frame, rating="liked", rating_scale=(1, 5))
    assert {*interactions.ratings[~np.isnan(interactions.ratings)]} == {1, 5}
    assert report.skipped["with a rating that is not a number"] == sum(frame["liked"] == "maybe")
    mostly_ones = pd.DataFrame({"user": "a", "item": [*"abcde"], "rating": [1, 1, 1, 5, "good"]})
    assert read(mostly_ones)[0].ratings.tolist() == [1, 1, 1, 5]
    with pytest.raises(DataError, match="out of 5 and 10: write all out of the same"):
        read(log(rating=["3/5", "7/10"]))
    with pytest.raises(DataError, match="out of 10, and `rating_scale` ends at 5"):
        read(log(rating=["3/10", "7/10"]), rating_scale=(1, 5))


def test_events_count_their_weights_times_the_quantity():
    rows = [
        ("a", "x", "View Item", None), ("a", "x", "purchase", 2), ("a", "y", "view_item", None),
        ("b", "x", "purchase", 3), ("b", "x", "refund", -1), ("b", "y", "remove", 1),
        ("b", "z", "refund", 1), ("c", "x", None, 1),
    ]  # fmt: skip
    frame = pd.DataFrame(rows, columns=["user", "item", "event", "quantity"], dtype=object)
    weights = {"view-item": 1, "purchase": 5, "refund": -5, "remove": 0}
    interactions, report = read(frame, event="event", event_weights=weights)
    assert interactions.weights.tolist() == [11, 1, 10, 0]
    assert report.skipped == {"without an event": 1, "with an event of weight 0": 1}
    assert report.intended == 1
    assert "purchase=5 (2)" in str(report)
    with pytest.raises(DataError, match=r"remove 1\. Use `event_weights` 'remove=0,refund=-5,V"):
        read(frame, event_weights={"view-item": 1, "purchase": 5, "refund": -5})
    _, report = read(frame, event="event", event_weights=weights | {"refnd": -1})
    assert "no row has refnd" in report.notes
    for name, weight in (("view-item", np.nan), ("view-item", "1"), ("refund", -1e13), ("VIEW", 2)):
        with pytest.raises(DataError, match=rf"`event_weights\['{name}'\]` must be"):
            read(frame, event="event", event_weights={"view": 1} | weights | {name: weight})
    with pytest.raises(DataError, match="action has users in it, not events; use `ignore` action"):
        read(log(action=["u1", "view", "a@b.example"]))
    with pytest.raises(DataError, match="name it with `event_column`"):
        read(frame, event_weights=weights, ignore=["event"])


def test_common_events_need_no_option_and_others_stop():
    interactions, report = read(log(Event_Type=["view", "addToCart", "purchase", "REFUND"]))
    assert interactions.weights.min() == 0
    assert "REFUND=-5" in str(report)
    with pytest.raises(DataError, match=r"column action has events that are .*frobnicate"):
        read(log(action=["view", "frobnicate"]))
    assert all(event_name(event) == event for event in COMMON_EVENTS)


DOUBTS = {
    "liked": (["true", "false"], "whether a row is a like. Use `rating_column` liked"),
    "reaction": (["👍", "👎", ""], "whether a row is a like"),
    "value": ([1, 2, 3, 4, 5], "how much an item is liked"),
    "note_moyenne": (["3,5", "4", "1"], "how much an item is liked"),
    "note": (["3/5", "5/5"], "how much an item is liked"),
    "Note sur 20": ([f"{k / 2:g}" for k in range(41)], "how much an item is liked"),
    "vote_value": ([*range(101), "none given"], "how much an item is liked"),
    "Financial Status": (["paid", "refunded"], "what a row is. Use `event_column` 'Financial St"),
    "kind": (["watched trailer", "bought"], "what a row is"),
    "状态": (["已购买", "已退款"], "what a row is"),
    "狀態": (["已購買", "已退貨"], "what a row is"),
    "Refunded Amount": (["0.00", "12.50", "7"], "which rows were taken back"),
    "cancelled_at": (["2024-01-02", ""], "which rows were taken back"),
    "type": (["refund"], "what a row is"),
    "cancelled_by": (["u1", "a@b.example"], "cancelled_by (users 300) may say which rows were"),
    "liked it": (["false"], "whether a row is a like"),
    "returned": (["yes"], "which rows were taken back"),
    "rating of it": (["👍", "😐"], "whether a row is a like"),
    "thumb": (["up", "down", ""], "whether a row is a like"),
    "vote": (["+", "-"], "whether a row is a like"),
    "satisfied": (["very satisfied", "neutral", "dissatisfied"], "`rating_column` satisfied"),
    "thumbs": (["so", "otherwise"], "what a row is"),
    "disliked": (["yes", "no"], "`event_column` disliked with `event_weights` no=1,yes=-1, or"),
    "dislikes": (["EVET", "HAYIR"], "with `event_weights` evet=-1,hayir=1, or"),
    "hidden": ([1, ""], "Leave its rows out, or use"),
    "is_returned": ([0, 0, 0, 1], "which rows were taken back. Use `event_column` is_returned"),
}


@pytest.mark.parametrize("name", DOUBTS)
def test_a_column_that_may_say_what_a_row_means_stops_unless_it_is_ignored(name):
    cells, doubt = DOUBTS[name]
    frame = log(**{name: cells})
    with pytest.raises(DataError, match="may say") as error:
        read(frame)
    assert doubt in str(error.value)
    assert f"`ignore` {name}" in str(error.value).replace("'", "")
    _, report = read(frame, ignore=[name.upper()])
    assert "unused" not in report.chosen


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_each_rule_is_the_first_that_holds_for_its_example(rule):
    name, cells = rule.example
    filled = [cell or np.nan for cell in cells]
    table = table_of(pd.DataFrame({"user": "a", "item": "x", name: filled}, dtype=object))
    column = FreeColumn(table, name, "user", "item", has_feedback="feedback" in rule.name)
    assert rule_for(column) is rule


def test_harmless_columns_are_listed():
    others = {
        "country": ["NO", "SE"], "gender": ["M", "F"], "device": ["mobile", "desktop"],
        "constant": ["yes"], "weekday": [1, 2, 3, 4, 5, 6, 7], "store_id": [1, 2, 3],
        "tax": [7, 19], "order": [str(number) for number in range(90)], "returns": ["0", ""],
        "taxable": lambda row: row["item"] > "p2", "newsletter": lambda row: row["user"] > "u2",
        "status": lambda row: "refund proof" if row["item"] > "p2" else "to return",
    }  # fmt: skip
    _, report = read(log(**others))
    assert report.chosen.endswith(f"unused: {', '.join(others)}")
    with pytest.raises(DataError, match="column liked"):  # few users have two rows
        read(
            log(liked=["yes", "no"], user=lambda row: f"u{id(row)}", item=lambda row: f"i{id(row)}")
        )
    _, report = read(log(rating=[1, 2, 3, 4, 5], verified=[True, False], value=[1, 2]))
    assert report.chosen.endswith("unused: verified, value")


NOT_RATED = {
    "far away": ([99, -9.5, -4, 0, 3.5, 9], "99, far", "`rating_scale` -10..9 to"),
    "both ends": ([-1, 99, 1, 2, 3, 4, 5], "-1, the .* and 99", "`rating_scale` 1..5 to"),
    "negative": ([-1, 1, 2, 3, 4, 5], "-1, the only", "`rating_scale` 1..5 to"),
    "most are 0": ([0, 0, 0, 4, 5, 6, 7], "0, ", "`rating_scale` 1..7 to"),
}


@pytest.mark.parametrize("case", NOT_RATED)
def test_a_rating_that_stands_apart_stops_until_the_scale_leaves_it_out(case):
    cells, value, advice = NOT_RATED[case]
    frame = log(rating=cells)
    with pytest.raises(DataError, match=value) as error:
        read(frame)
    assert advice in str(error.value)
    interactions, report = read(frame, rating_scale=(-10 if cells[0] > 9 else 1, 10), strict=True)
    assert report.skipped.total() == sum(~frame["rating"].between(-10 if cells[0] > 9 else 1, 10))
    assert interactions.ratings.max() < 10


def test_no_message_quotes_a_user():
    frame = log().assign(user="ann@x.example")
    with pytest.raises(DataError, match="first row has an e-mail address and is read as the names"):
        read_dataset(frame[["item"]], frame.rename(columns={"user": "bob@x.example"}))
    report = ReadReport("log.csv", notes=["above: 'Orders of ann@x.example'"])
    report.warnings.append("'ann@x.example' has 3 rows")
    assert "ann" not in str([report.lines(), ColumnFacts("i", "item", "text").of(1, 1, "ann@x")])


def test_a_tenth_of_the_rows_without_a_user_is_a_warning():
    frame = log().assign(user=["(not set)"] * 40 + [f"u{k % 10}" for k in range(260)])
    assert "'(not set)' has 40 of 300 rows" in str(read(frame)[1].warnings)

"""Logs in other layouts: lines of a user and items, matrices, and lists of objects."""

import json

import pandas as pd
import pytest

from qkvsearch.errors import DataError
from qkvsearch.tables.columns import Columns
from qkvsearch.tables.dataset import read_dataset


def pairs(source, value="ratings", **columns):
    """The pairs of a log with their values, and the report."""
    dataset = read_dataset(None, source, Columns(**columns))
    log, report = dataset.interactions, dataset.reports[-1]
    values = getattr(log, value)
    rows = [
        (str(log.user_ids[user]), str(log.item_ids[item]), *([] if values is None else [value]))
        for user, item, value in zip(
            log.users, log.items, [None] * len(log) if values is None else values, strict=True
        )
    ]
    assert report.read == report.kept + report.merged + report.skipped.total()
    return rows, report


@pytest.mark.parametrize(
    ("text", "delimiter"), [("a x\n\t\nb x y\n \nc\n", None), ("a;x\nb;x;y\nc", ";")]
)
def test_lines_of_a_user_and_items(text, delimiter, tmp_path):
    path = tmp_path / "log.txt"
    path.write_text(text)
    rows, report = pairs(path, layout="lists", delimiter=delimiter)
    assert rows == [("a", "x"), ("b", "x"), ("b", "y")]
    assert "1 line has a user and no items" in str(report)
    with pytest.raises(DataError, match="These may be lines of a user and items: use `layout` li"):
        pairs(path)
    with pytest.raises(DataError, match="`delimiter` says what is between"):
        pairs(path, layout="lists", delimiter="%")
    for line in ("u1:i1 i2", "u1: i1", "u1 i1:5 i2:4", "u1, i1, i2", "u1|i1", "u1 i1 , i2"):
        path.write_text(f"a b\n{line}\n")
        with pytest.raises(
            DataError, match=r"log.txt: row 2 has a [:,|] beside blanks: put blanks"
        ):
            pairs(path, layout="lists")
    path.write_text("urn:1 i:1 i:2\n")
    assert pairs(path, layout="lists", delimiter=" ")[0] == [("urn:1", "i:1"), ("urn:1", "i:2")]
    path.write_text('a, "x, y"\n')
    assert pairs(path, layout="lists", delimiter=",")[0] == [("a", "x, y")]
    path.write_text("user_id\titem1\titem2\nitem\titem\n")
    rows, report = pairs(path, layout="lists")
    assert rows == [("item", "item")]
    assert "the first line, which names a user" in str(report)
    path.write_text("user_id\titem_id\tstars\nu\ti\t5\n")
    with pytest.raises(DataError, match="columns user_id, item_id, stars, and no lists: use `layo"):
        pairs(path, layout="lists")


def test_lists_of_items_in_json_are_items(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text('{"user": "a", "items": ["x", "y"]}\n{"user": "b", "items": ["x", null]}\n')
    assert pairs(path, layout="lists")[0] == [("a", "x"), ("a", "y"), ("b", "x")]


@pytest.mark.parametrize("ignore", [(), ("x",), ("user", "x")])
def test_a_matrix_without_items_is_an_error(ignore, tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("user\na\n" if not ignore else "user,x\na,1\n")
    with pytest.raises(DataError, match=r"log\.csv: a matrix has a column of users and one"):
        pairs(path, layout="matrix", ignore=ignore)


def test_a_matrix_of_users_by_items(tmp_path):
    matrix = pd.DataFrame({"": ["a", "b"], "x": [5, 0], "y": ["3", "NA"], "z": ["good", 4]})
    path = tmp_path / "log.csv"
    matrix.to_csv(path, index=False)
    for source in (matrix, path):
        rows, report = pairs(source, layout="matrix")
        assert rows == [("a", "x", 5), ("a", "y", 3), ("b", "z", 4)]
        assert report.skipped == {"with a rating that is not a number": 1}
        assert "1 cell of 0 means that there was nothing" in str(report)
    likes = pd.DataFrame({"user": ["a", "b"], "x": [1, 0], "y": [1, 1]})
    assert pairs(likes, layout="matrix")[0] == [("a", "x"), ("a", "y"), ("b", "y")]
    assert ("b", "x", 0) in pairs(likes, layout="matrix", rating_scale=(0, 1))[0]
    named = pd.DataFrame({"user": ["a"], "rating": [3], "x": [4], "age": [31]})
    assert pairs(named, layout="matrix", ignore=["age"])[0] == [("a", "rating", 3), ("a", "x", 4)]
    assert pairs(named, layout="matrix", ignore=["age", "rating"])[0] == [("a", "x", 4)]
    with pytest.raises(DataError, match="no column 'agee'"):
        pairs(named, layout="matrix", ignore=["agee"])
    with pytest.raises(DataError, match="may be a matrix of users by items: use `layout` matrix"):
        pairs(likes)


def test_a_list_of_objects_is_a_row_for_each(tmp_path):
    events = [
        ("view_item", [{"item_id": "a", "item_name": "A"}]),
        ("purchase", [{"item_id": "a", "quantity": 2}, {"item_id": "b"}]),
        ("page_view", []),
    ]
    params = [{"key": "page", "value": 7}]
    rows = [
        {"user_pseudo_id": "u", "event_name": event, "event_params": params, "items": items}
        for event, items in events
    ]
    path = tmp_path / "events.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    pd.DataFrame(rows).to_csv(tmp_path / "events.csv", index=False)
    for source in (path, tmp_path / "events.csv"):
        found, report = pairs(source, "weights")
        assert found == [("u", "a", 11), ("u", "b", 5)]
        assert report.skipped == {"without an item": 1}


@pytest.mark.parametrize(
    ("row", "items"),
    [
        ({"device": {"id": "d"}, "items": [{"item_id": "p"}]}, ["p"]),
        ({"lines": [{"id": 9, "product_id": "p"}, {"id": 8, "product_id": "q"}]}, ["p", "q"]),
        ({"id": "order", "lines": [{"title": "A", "sku": "p"}]}, ["p"]),
        ({"lines": [{"id": "p"}, {"id": "q"}]}, ["p", "q"]),
        ({"lines": [{"id": "p"}, {"id": "q"}], "note": 'as {"item": "x"}'}, ["p", "q"]),
    ],
)
def test_keys_that_are_named_as_items_come_first(row, items, tmp_path):
    path = tmp_path / "orders.jsonl"
    path.write_text(json.dumps({"user_id": "u"} | row))
    assert [item for _, item, *_ in pairs(path, "weights")[0]] == items


TWICE = {
    "JSON": '[{"item_id": "a", "item_id": "b"}, {"item_id": "c"}]',
    "JSON below": '[{"item_id": "a", "by": {"x": 1, "x": 2}}]',
    "several objects": '{"item_id": "a"}, {"item_id": "a", "item_id": "b"}',
    "Python": "[{'item_id': 'a', 'item_id': 'b'}, {'item_id': 'c'}]",
    "Python below": "[{'item_id': 'a', 'by': [{1: 'x', True: 'y'}]}]",
}


@pytest.mark.parametrize("kind", TWICE)
def test_a_row_whose_cell_has_a_key_twice_is_skipped_and_counted(tmp_path, kind):
    path = tmp_path / "orders.csv"
    cells = [TWICE[kind], '[{"item_id": "d"}, {"item_id": "e"}]', TWICE[kind]]
    pd.DataFrame({"user_id": ["u", "v", "w"], "items": cells}).to_csv(path, index=False)
    found, report = pairs(path)
    assert found == [("v", "d"), ("v", "e")]
    assert report.skipped == {"with a key that occurs twice": 2}
    assert (report.read, report.kept) == (4, 2)
    assert "row 2" in report.warnings[0]


@pytest.mark.parametrize("kind", TWICE)
def test_a_log_of_cells_with_a_key_twice_alone_names_key_and_row(tmp_path, kind):
    path = tmp_path / "orders.csv"
    pd.DataFrame({"user_id": ["u"], "items": [TWICE[kind]]}).to_csv(path, index=False)
    with pytest.raises(DataError, match=r"orders\.csv, row 2: .*twice"):
        pairs(path)


def test_an_object_with_a_list_as_a_key_is_no_object(tmp_path):
    path = tmp_path / "orders.csv"
    cells = ["[{[1]: 'a'}]", '[{"item_id": "d"}]']
    pd.DataFrame({"user_id": ["u", "v"], "items": cells}).to_csv(path, index=False)
    found, report = pairs(path)
    assert found == [("v", "d")]
    assert report.skipped == {"without an item": 1}

"""Objects in cells: their fields are columns, whatever the format."""

import json

import pandas as pd
import pytest

from qkvsearch.errors import DataError
from qkvsearch.tables.columns import Columns
from qkvsearch.tables.dataset import load, read_dataset
from qkvsearch.tables.sources import read_source

ANN = {"full_name": "Ann Bell", "role": None, "born": {"year": 1890}}
BO = {"full_name": "Bo|Olsen", "role": None}
ROWS = [
    {"id": 1, "title": "Vase", "creator": [ANN], "dimensions": {"height": 11.0, "unit": "cm"}},
    {"id": 2, "title": "Bowl", "creator": [ANN, BO, ANN], "dimensions": {"height": 12.5}},
    {"id": 3, "title": "Coin", "creator": [], "dimensions": None},
]


@pytest.fixture
def write(tmp_path):
    def writer(rows, name="items.jsonl"):
        path = tmp_path / name
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        return path

    return writer


def _sources(tmp_path):
    """The same rows as lines of JSON, as Parquet and as a frame."""
    lines = tmp_path / "items.jsonl"
    lines.write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    frame = pd.DataFrame(ROWS)
    yield lines
    yield frame
    pytest.importorskip("pyarrow")
    frame.to_parquet(tmp_path / "items.parquet")
    yield tmp_path / "items.parquet"


def test_fields_are_columns_and_lists_of_objects_give_lists(tmp_path):
    for source in _sources(tmp_path):
        catalog = read_dataset(source, None).catalog
        types = {column.name: column.type for column in catalog.columns}
        assert types["dimensions.height"] == "number"
        assert types["creator.full_name"] == types["creator.born.year"] == "list"
        assert not {"creator", "dimensions", "creator.role"} & set(types)
        frame = catalog.frame.astype(object).where(catalog.frame.notna(), None)
        assert frame["dimensions.height"].tolist() == [11, 12.5, None]
        assert frame["dimensions.unit"].tolist() == ["cm", None, None]
        assert frame["creator.full_name"].tolist() == ["Ann Bell", "Ann Bell|Bo/Olsen", None]
        assert frame["creator.born.year"].tolist() == ["1890", "1890", None]


def test_names_of_fields_are_not_searched(write):
    texts = read_dataset(write(ROWS), None).catalog.texts()
    assert not any("full_name" in text or "null" in text for text in texts)


def test_values_with_types_are_values(write):
    rows = [{"_id": {"$oid": f"5f{n}a"}, "n": {"$numberInt": str(n)}, "title": "A"} for n in (1, 2)]
    catalog = read_dataset(write(rows), None).catalog
    assert catalog.ids.texts == ["5f1a", "5f2a"]
    assert catalog.frame["n"].tolist() == [1, 2]


def test_a_field_and_a_column_of_one_name_stay_apart(write):
    rows = [{"id": 1, "title": "A", "size": {"cm": 3}, "size.cm": 4}]
    table, _ = load(write(rows), "items")
    assert list(table.columns) == ["id", "title", "size.cm", "size.cm.1"]


def test_plain_cells_beside_objects_keep_their_column(write):
    rows = [{"id": 1, "maker": "Ann"}, {"id": 2, "maker": {"name": "Bo", "tags": ["x", "y"]}}]
    frame = load(write(rows), "items")[0].frame()
    cells = frame.astype(object).where(frame.notna(), None)
    assert cells.to_dict("list") == {
        "id": ["1", "2"],
        "maker": ["Ann", None],
        "maker.name": [None, "Bo"],
        "maker.tags": [None, "x|y"],
    }


def test_an_ignored_column_is_not_spread(write):
    rows = [{"id": n, "title": f"T{n}", "votes": {f"u{n}": 1}} for n in range(2_000)]
    with pytest.raises(DataError, match=r"items\.jsonl.*'votes'.*1,990.*`ignore`"):
        read_dataset(write(rows), None)
    catalog = read_dataset(write(rows), None, Columns(ignore=["Votes"])).catalog
    assert {column.name for column in catalog.columns} == {"id", "title"}


def test_deeper_objects_than_the_limit_are_refused(write):
    deep = {"x": 1}
    for _ in range(120):
        deep = {"x": deep}
    with pytest.raises(DataError, match=r"items\.jsonl.*100 levels"):
        read_dataset(write([{"id": 1, "title": "A", "deep": deep}]), None)


def test_users_and_items_of_a_log_may_be_fields(write):
    rows = [{"user": {"id": f"u{n % 3}"}, "item": {"id": n, "kind": "x"}} for n in range(6)]
    log = read_source(write(rows, "log.jsonl")).interactions
    assert (log.n_users, len(log)) == (3, 6)

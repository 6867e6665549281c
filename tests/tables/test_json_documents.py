"""JSON documents that hold rows in other forms than an array of objects."""

import json

import pytest

from qkvsearch.errors import DataError
from qkvsearch.tables.dataset import read_dataset
from qkvsearch.tables.files.tables import read_table

TWO = [{"id": "p1", "title": "Kettle"}, {"id": "p2", "title": "Desk lamp"}]
HITS = [{"_index": "goods", "_id": row["id"], "_source": {"title": row["title"]}} for row in TWO]
SPLIT = {"columns": ["id", "title"], "data": [["p1", "Kettle"], ["p2", "Desk lamp"]]}


@pytest.fixture
def catalog(tmp_path):
    """Writes documents, one a line, and reads them as a catalog."""

    def reader(*documents, name="items.json", indent=None):
        path = tmp_path / name
        path.write_text("\n".join(json.dumps(each, indent=indent) for each in documents))
        return read_dataset(path, None).catalog

    return reader


@pytest.mark.parametrize(
    "document",
    [
        TWO,
        {"p1": {"title": "Kettle"}, "p2": {"title": "Desk lamp"}},
        SPLIT,
        {**SPLIT, "index": [0, 1]},
        {"columns": ["title"], "index": ["p1", "p2"], "data": [["Kettle"], ["Desk lamp"]]},
        {"title": {"p1": "Kettle", "p2": "Desk lamp"}},
        {"id": {"0": "p1", "1": "p2"}, "title": {"0": "Kettle", "1": "Desk lamp"}},
        {"id": ["p1", "p2"], "title": ["Kettle", "Desk lamp"]},
        {"took": 3, "hits": {"total": {"value": 2}, "hits": HITS}},
        {"hits": {"total": 2, "hits": HITS}},
        {"data": {"count": 2, "items": TWO}},
        HITS,
        {"data": {"goods": {"edges": [{"cursor": "x", "node": row} for row in TWO]}}},
        {"data": {"goods": {"edges": [{"node": row} for row in TWO], "totalCount": 2}}},
        {"data": {"goods": {"nodes": TWO, "pageInfo": {"hasNextPage": False}}}},
        [{"node": row} for row in [*TWO, None]],
        {"total": 2, "data": TWO},
        {"title": "Our goods", "version": 1, "goods": TWO},
        {"status": "ok", "result": {"products": {row["id"]: row for row in TWO}}},
    ],
)
@pytest.mark.parametrize("indent", [None, 2])
def test_a_document_of_two_rows_is_two_items(catalog, document, indent):
    items = catalog(document, indent=indent)
    assert items.ids.texts == ["p1", "p2"]
    assert items.frame["title"].tolist() == ["Kettle", "Desk lamp"]


@pytest.mark.parametrize(
    "document",
    [
        {"id": 7, "title": "Heat", "cast": [{"id": 1, "name": "Ann"}, {"id": 2, "name": "Bo"}]},
        {"title": "Heat", "size": {"height": 3}},
        {"m1": {"title": "Heat", "cast": [{"id": 1, "name": "Ann"}, {"id": 2, "name": "Bo"}]}},
        {"title": "Heat", "reviews": [{"stars": 5}, {"stars": 3}]},
    ],
)
def test_an_object_with_an_id_or_a_title_is_one_item(catalog, document):
    assert catalog(document).frame["title"].tolist() == ["Heat"]


@pytest.mark.parametrize(
    ("document", "named"),
    [
        ({"films": TWO, "books": TWO}, r"films.*books"),
        ({"a": {"films": TWO}, "b": {"books": TWO, "n": 2}}, r"a\.films.*b\.books"),
    ],
)
def test_rows_in_two_places_are_an_error(catalog, document, named):
    with pytest.raises(DataError, match=rf"items\.json.*{named}"):
        catalog(document)


def test_a_row_without_fields_is_a_row(catalog):
    assert catalog({"p1": {"title": "A"}, "p2": {}}).ids.texts == ["p1", "p2"]


def test_keys_that_repeat_are_an_error(tmp_path):
    path = tmp_path / "items.json"
    path.write_text('{"p1": {"title": "A"}, "p1": {"title": "B"}}')
    with pytest.raises(DataError, match=r"items\.json: the key 'p1' occurs twice"):
        read_dataset(path, None)


def test_rows_with_other_ids_of_their_own_keep_both(catalog):
    document = {"k1": {"id": 11, "title": "A"}, "k2": {"id": 12, "title": "B"}}
    items = catalog(document)
    assert items.ids.texts == ["11", "12"]
    assert items.frame["key"].tolist() == ["k1", "k2"]


def test_hits_of_elasticsearch_are_items_line_by_line(catalog):
    items = catalog(*HITS, name="dump.json")
    assert dict(zip(items.ids.texts, items.frame["title"], strict=True)) == {
        "p1": "Kettle",
        "p2": "Desk lamp",
    }


def test_lines_for_the_bulk_interface_are_items_and_deletions_are_counted(tmp_path):
    path = tmp_path / "bulk.ndjson"
    lines = [
        {"index": {"_index": "goods", "_id": "p1"}},
        {"title": "Kettle"},
        {"delete": {"_id": "p9"}},
        {"update": {"_id": "p2"}},
        {"doc": {"title": "Desk lamp"}},
    ]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    frame, report = read_table(path)
    assert frame.to_numpy().tolist() == [["p1", "Kettle"], ["p2", "Desk lamp"]]
    assert frame.index.tolist() == [2, 5]
    assert (report.read, report.skipped) == (3, {"that deletes an item": 1})


def test_a_fault_in_an_object_over_several_lines_is_named_by_its_line(tmp_path):
    path = tmp_path / "items.json"
    path.write_text('{\n "p1": {"title": "A"},\n "p2": {"title" "B"}\n}\n')
    with pytest.raises(DataError, match=r"items\.json, line 3: not JSON"):
        read_table(path)


def test_lists_of_graphql_are_lists_wherever_they_are(tmp_path):
    makers = {"edges": [{"node": {"full_name": "Ann"}}, {"role": "x", "node": {"full_name": "Bo"}}]}
    document = {
        "edges": [{"node": {**TWO[0], "makers": makers}}],
        "pageInfo": {"hasNextPage": True},
    }
    path = tmp_path / "items.json"
    path.write_text(json.dumps({"data": {"items": document}}))
    dataset = read_dataset(path, None)
    assert dataset.catalog.frame["makers.full_name"].tolist() == ["Ann|Bo"]
    assert any("hasNextPage" in warning for warning in dataset.reports[0].warnings)


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"data": {"items": {"edges": []}}}, "no rows"),
        ({"data": {"items": []}}, "no rows"),
        ({"items": [], "total": 0}, "no rows"),
        ({"errors": [{"message": "no such field"}], "data": None}, "no such field"),
        ({"error": "not found", "status": 404}, "not found"),
    ],
)
def test_an_answer_without_items_is_an_error(catalog, document, said):
    with pytest.raises(DataError, match=said):
        catalog(document)

"""Columns of the owner are asked for by their own names, whatever else has such a name."""

import re
import shutil

import pandas as pd
import pytest

import qkvsearch as qkv

PEOPLE = pd.DataFrame({
    "sku": ["p1", "p2", "p3"],
    "name": ["Ada Lovelace", "Alan Turing", "Grace Hopper"],
    "title": ["Dr", "Mr", "Dr"],
    "ID": [10, 20, 30],
    "Price": [1, 2, 3],
    "price": [100, 20, 10],
    "score": [7, 8, 9],
    "items.score": [4, 5, 6],
})  # fmt: skip
COLUMNS = qkv.Columns(id="sku", title="name")
OWN = ["title", "ID", "Price", "price", "score", "items.score"]
ALAN = dict(zip(OWN, ["Mr", 20, 2, 20, 8, 5], strict=True))


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("own_names") / "ws"
    qkv.build(path, items=PEOPLE, columns=COLUMNS, encoder="corpus").close()
    return path


@pytest.fixture(scope="module")
def people(path):
    with qkv.open(path) as people:
        yield people


@pytest.fixture(scope="module")
def client(path, asking):
    with asking(path) as client:
        yield client


def ids(hits):
    return sorted(hit["id"] if isinstance(hit, dict) else hit.id for hit in hits)


@pytest.mark.parametrize("name", OWN)
def test_a_condition_and_a_field_read_the_column_of_this_exact_name(people, name):
    cell = ALAN[name]
    assert "p2" in ids(people.search("", where=(f'"{name}" = ?', [cell])))
    assert people.search("Alan", fields=[name])[0].fields == {name: cell}
    counts = people.search("", facets=[name]).facets[name]
    assert counts == PEOPLE[name].astype(str).value_counts().to_dict()
    assert people.items.facets([name]) == {name: counts}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("title:Dr", ["p1", "p3"]), ("name:Ada", ["p1"]), ("ID:20", ["p2"]), ("id:p2", ["p2"]),
        ("Price:2", ["p2"]), ("price:20", ["p2"]), ("Price:3", ["p3"]), ("price:10", ["p3"]),
    ],
)  # fmt: skip
def test_a_query_reads_the_column_of_this_exact_name(people, query, expected):
    assert ids(people.search(query)) == expected


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("Price = 1 AND price = 100", ["p1"]), ("price < Price + 8", ["p3"]),
        ("Price = 20", []), ("title = 'Dr' AND ID < 20 AND id = 'p1'", ["p1"]),
        ("[price] = 20 AND \"Price\" = 2 AND name <> 'é' -- Price", ["p2"]),
    ],
)  # fmt: skip
def test_one_condition_tells_names_apart_that_differ_only_in_case(people, where, expected):
    assert ids(people.search("", where=where)) == expected


def test_rows_show_every_column_and_none_in_place_of_id_or_title(people):
    cells = {"items.title": "Mr", "ID": 20, "Price": 2, "price": 20}
    cells |= {"items.score": 8, "items.items.score": 5}
    roles = {"id": "p2", "title": "Alan Turing"}
    shown = people.show("p2")
    assert {**shown, **roles, **cells, "sku": "p2", "name": "Alan Turing"} == shown
    assert people.items.list(fields=OWN, where="ID = 20").to_records() == [roles | cells]
    hit = people.search("Alan", fields=OWN, k=1).to_records()[0]
    assert {**hit, **roles, **cells} == hit


def test_items_are_sorted_by_the_column_of_this_exact_name(people):
    assert [row["id"] for row in people.items.list(sort="price")] == ["p3", "p2", "p1"]
    assert [row["id"] for row in people.items.list(sort="-Price")] == ["p3", "p2", "p1"]
    assert [row["id"] for row in people.items.list(sort="title")] == ["p1", "p3", "p2"]


def test_an_error_lists_names_that_work(people):
    with pytest.raises(qkv.QkvError, match="titles") as error:
        people.search("", fields=["titles"])
    assert all(name in str(error.value) for name in OWN)


def test_the_server_reads_the_column_of_this_exact_name(client):
    def get(path, **parameters):
        answer = client.get(f"/api/v1/{path}", params=parameters)
        assert answer.status_code == 200, answer.text
        return answer.json()

    for name, cell in ALAN.items():
        found = get("search", q="", filter=f"{name}:{cell}", facets=name, fields=name)
        assert ids(found["hits"]) == ["p2"]
        assert found["facets"][name][str(cell)] == 1
    hit = get("search", q="Alan", fields="title,price")["hits"][0]
    assert (hit["title"], hit["items.title"], hit["price"]) == ("Alan Turing", "Mr", 20)
    assert get("facets", columns="title", filter="title:Mr")["facets"] == {
        "title": {"Dr": 2, "Mr": 1}
    }
    listed = get("items", sort="price", fields="Price,price")
    rows = listed if isinstance(listed, list) else listed.get("rows", listed.get("items"))
    assert [row["price"] for row in rows] == [10, 20, 100]


def test_added_items_have_their_cells_in_the_columns_of_their_exact_names(tmp_path):
    with qkv.build(tmp_path / "ws", items=PEOPLE, columns=COLUMNS, encoder="corpus") as people:
        new = {"sku": ["p4"], "name": ["Emmy Noether"], "title": ["Prof"], "price": [5]}
        people.add(pd.DataFrame(new))
        shown = people.show("p4")
    assert (shown["title"], shown["items.title"]) == ("Emmy Noether", "Prof")
    assert (shown["Price"], shown["price"]) == (None, 5)


def test_an_added_item_without_the_column_of_titles_does_not_take_another_column_for_it(tmp_path):
    untitled = pd.DataFrame({"sku": ["p4"], "title": ["Prof"], "price": [5]})
    with (
        qkv.build(tmp_path / "ws", items=PEOPLE, columns=COLUMNS, encoder="corpus") as people,
        pytest.raises(qkv.QkvError, match="name"),
    ):
        people.add(untitled)


def test_the_server_stores_items_by_the_exact_names_of_columns(asking, path, tmp_path):
    new = {"id": "p4", "name": "Emmy Noether", "title": "Prof", "Price": 1, "price": 5}
    with asking(shutil.copytree(path, tmp_path / "ws")) as client:
        answer = client.put("/api/v1/items", json=[new])
        assert answer.status_code == 200, answer.text
        shown = client.get("/api/v1/items/p4").json()
    assert {**shown, "title": "Emmy Noether", "items.title": "Prof", "Price": 1} == shown
    assert shown["price"] == 5


def test_an_ignored_column_is_that_of_this_exact_name(tmp_path):
    columns = qkv.Columns(id="sku", title="name", ignore=["price"])
    with qkv.build(tmp_path / "ws", items=PEOPLE, columns=columns, encoder="corpus") as people:
        assert people.show("p2")["Price"] == 2
        assert "price" not in people.show("p2")


# --- names that the store keeps apart: `id_2`, `title_2`, `text_2` ---

SHELVES = pd.DataFrame(
    {
        "SKU": ["a1", "a2", "a3"],
        "Name": ["red pan", "blue pot", "green cup"],
        "title": ["sub one", "main two", "main three"],
        "id": ["x1", "x2", "x3"],
        "Text": ["a long story of soup on a winter evening", "dinner", "tea"],
        "text": ["soup of beans", "omelette of eggs", "bread"],
    }
)
OF_SHELVES = qkv.Columns(id="SKU", title="Name")
STORED = re.compile(r"\w+_2\b")


@pytest.fixture(scope="module")
def shelves_path(tmp_path_factory):
    path = tmp_path_factory.mktemp("shelves") / "ws"
    qkv.build(path, items=SHELVES, columns=OF_SHELVES, encoder="corpus").close()
    return path


def test_matches_and_facts_name_columns_as_the_owner_does(shelves_path):
    with qkv.open(shelves_path) as shelves:
        assert shelves.search("sub", explain=True)[0].matches == {"items.title": ["sub"]}
        assert shelves.search("x1", explain=True)[0].matches == {"items.id": ["x1"]}
        assert set(shelves.search("soup", explain=True)[0].matches) == {"Text", "text"}
        assert shelves.search("pan", explain=True)[0].matches == {"title": ["pan"]}
        row = shelves.items["a1"]
        assert (row["title"], row["items.title"], row["items.id"]) == ("red pan", "sub one", "x1")
        assert (row["Text"], row["text"]) == tuple(SHELVES.loc[0, ["Text", "text"]])
        assert list(shelves.items.to_frame()) == list(row)
        info = shelves.info()
        assert set(info["searched_columns"]) == {"Name", "title", "id", "Text", "text"}
        for weights in info["column_weights"].values():
            assert list(weights) == info["searched_columns"]


def test_what_the_command_line_writes_has_no_stored_name(shelves_path, request):
    run = request.getfixturevalue("qkv")
    written = [
        run("-w", str(shelves_path), "search", "soup x1", "--explain"),
        run("-w", str(shelves_path), "search", "sub x1", "--explain", "--format", "json"),
        run("-w", str(shelves_path), "info"),
    ]
    assert all(result.stdout for result in written)
    assert not STORED.findall(" ".join(result.stdout for result in written))


def test_what_an_addition_lacks_is_named_as_the_owner_does(shelves_path, tmp_path):
    path = shutil.copytree(shelves_path, tmp_path / "ws")
    with qkv.open(path) as shelves:
        notes = shelves.add(SHELVES.drop(columns=["text", "id"])[:1], OF_SHELVES).notes
        assert not STORED.findall(" ".join(notes))
        assert re.search("no column (id, text|text, id)", " ".join(notes))
        with pytest.raises(qkv.QkvError, match="no column Name") as error:
            shelves.add(SHELVES[["SKU"]])
    assert not STORED.findall(str(error.value))


def test_the_server_warns_of_searched_columns_that_no_object_has(asking, shelves_path, tmp_path):
    with asking(shutil.copytree(shelves_path, tmp_path / "ws")) as client:
        new = {"SKU": "a4", "Name": "jug", "title": "sub", "id": "x4", "Text": "for milk"}
        done = client.put("/api/v1/items", json=[new]).json()
        warnings = [note for note in done["notes"] if note.startswith("Warning")]
        assert len(warnings) == 1
        assert "text" in warnings[0]
        assert not STORED.findall(str(done))
        whole = client.put("/api/v1/items", json=[{**new, "text": "full"}]).json()
        assert not any(note.startswith("Warning") for note in whole["notes"])
        # `id` is another column here.
        refused = client.put("/api/v1/items", json=[{"id": "a5", "Name": "bowl"}])
        assert refused.status_code == 422
        assert "`SKU`" in refused.json()["detail"]
        assert "`id`" not in refused.json()["detail"]

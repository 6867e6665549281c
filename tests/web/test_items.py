"""Items over HTTP: added, replaced and deleted at once, all or none."""

import shutil

import pandas as pd
import pytest

import qkvsearch

DISHES = pd.DataFrame(
    {
        "SKU": ["a1", "a2", "a3"],
        "Dish": ["Pancakes", "Tomato soup", "Banana bread"],
        "Ingredients": ["eggs|flour|milk", "tomatoes|basil", "bananas|flour"],
        "Minutes": [20, 35, 60],
    }
)
LOG = pd.DataFrame({"user": ["u", "u", "v", "v"], "item": ["a1", "a2", "a3", "a2"]})


@pytest.fixture(scope="module")
def dishes_path(tmp_path_factory):
    path = tmp_path_factory.mktemp("dishes") / "ws"
    columns = qkvsearch.Columns(id="SKU", title="Dish")
    qkvsearch.build(path, items=DISHES, interactions=LOG, columns=columns, encoder="corpus")
    return path


@pytest.fixture
def dishes(asking, dishes_path, tmp_path):
    with asking(shutil.copytree(dishes_path, tmp_path / "ws")) as client:
        yield client


def put(client, *items):
    return client.put("/api/v1/items", json=list(items))


def found(client, q):
    return [hit["id"] for hit in client.get("/api/v1/search", params={"q": q}).json()["hits"]]


def test_items_are_added_and_replaced_by_the_owners_names_or_by_roles(dishes):
    tart = {"SKU": "a9", "dish": "Lemon tart", "Ingredients": ["lemons", "sugar"], "Minutes": 45}
    answer = put(dishes, tart, {"id": "a2", "title": "Gazpacho", "Minutes": None})
    assert answer.status_code == 200
    assert [answer.json()[name] for name in ("added", "replaced", "n_items")] == [1, 1, 4]
    assert found(dishes, "lemons")[0] == "a9"
    item = dishes.get("/api/v1/items/a9").json()
    assert (item["Ingredients"], item["Minutes"]) == ("lemons|sugar", 45)
    replaced = dishes.get("/api/v1/items/a2").json()
    assert (replaced["title"], replaced["Ingredients"], replaced["users"]) == ("Gazpacho", None, 2)
    other = put(dishes, {**tart, "Colour": "yellow"}).json()
    assert any("Colour" in note for note in other["notes"])


@pytest.mark.parametrize(
    ("items", "detail"),
    [
        ([{"id": "a8", "title": "x"}, {"title": "no id"}], "item 2 has no id"),
        ([{"id": " ", "title": "x"}], "item 1 has no id"),
        ([{"id": True, "title": "x"}], "item 1 must be a text or a number"),
        ([{"id": "a8", "SKU": "a9", "title": "x"}], "names column `SKU` twice"),
        ([{"id": "a8", "title": "x"}, {"id": "a8 ", "title": "y"}], "'a8' occurs twice"),
        ([], "at least 1"),
        ({"id": "a8"}, "list"),
        ([{"id": "a8", "title": {"en": "x"}}], "title"),
        ([{"id": str(n), "title": "x"} for n in range(1001)], "at most 1000"),
    ],
)
def test_one_item_that_cannot_be_taken_refuses_all(dishes, items, detail):
    answer = dishes.put("/api/v1/items", json=items)
    assert (answer.status_code, detail in answer.json()["detail"]) == (422, True), answer.text
    assert dishes.get("/api/v1/items").json()["total"] == 3


def test_a_deleted_item_is_gone_with_its_interactions_and_the_last_one_stays(dishes):
    assert dishes.delete("/api/v1/items/a2").json()["interactions_removed"] == 2
    assert dishes.get("/api/v1/items/a2").status_code == 404
    assert dishes.delete("/api/v1/items/a2").status_code == 404
    assert found(dishes, "tomatoes") == []
    assert dishes.delete("/api/v1/items/a1").status_code == 200
    last = dishes.delete("/api/v1/items/a3")
    assert (last.status_code, "at least one" in last.json()["detail"]) == (400, True)
    assert "/" not in last.json()["detail"]


def test_ids_that_are_row_numbers_can_be_named(asking, tmp_path):
    qkvsearch.build(tmp_path / "ws", items=DISHES.drop(columns="SKU"), encoder="corpus")
    with asking(tmp_path / "ws") as client:
        assert put(client, {"id": 3, "Dish": "Bread", "Ingredients": "flour"}).json()["replaced"]


@pytest.mark.parametrize(
    ("method", "path", "json"),
    [
        ("PUT", "items", [{"id": "a1", "title": "x"}]),
        ("PATCH", "items/a1", {"Minutes": 5}),
        ("DELETE", "items/a1", None),
        ("POST", "record", {"user": "u", "item": "a1"}),
        ("DELETE", "users/u", None),
    ],
)
def test_changes_have_the_same_rights(asking, dishes_path, dishes, tmp_path, method, path, json):
    (tmp_path / "token").write_text("0123456789abcdef\n")
    asked = {"method": method, "url": f"/api/v1/{path}", "json": json}
    assert dishes.request(**asked, headers={"Origin": "https://shop.example"}).status_code == 403
    with asking(dishes_path, read_only=True) as client:
        assert client.request(**asked).status_code in (404, 405)
        assert "/api/v1/record" not in client.get("/openapi.json").json()["paths"]
    with asking(dishes_path, token_file=tmp_path / "token") as client:
        assert client.request(**asked).status_code == 401


def test_an_empty_query_browses_by_popularity(dishes):
    answer = dishes.get("/api/v1/search?q=&facets=Minutes&where=Minutes<60").json()
    assert [(hit["id"], hit["score"]) for hit in answer["hits"]] == [("a2", 2), ("a1", 1)]
    assert sum(answer["facets"]["Minutes"].values()) == 2
    assert answer["notes"] == ["An empty query: the most popular items come first."]


# --- a part of an item, and what GET returned ---


def patched(client, item, **cells):
    return client.patch(f"/api/v1/items/{item}", json=cells)


def test_a_patch_changes_the_columns_that_it_names(dishes):
    before = dishes.get("/api/v1/items/a2").json()
    answer = patched(dishes, "Tomato soup", minutes=40, Ingredients=["tomatoes", "leeks"])
    expected = {**before, "Minutes": 40, "Ingredients": "tomatoes|leeks"}
    assert (answer.status_code, answer.json()) == (200, expected)
    assert dishes.get("/api/v1/items/a2").json() == expected
    assert found(dishes, "leeks") == ["a2"]
    assert patched(dishes, "a2", Minutes=None, id="a2").json()["Minutes"] is None
    assert patched(dishes, "a2", title="Gazpacho").json()["Dish"] == "Gazpacho"


@pytest.mark.parametrize(
    ("cells", "name"),
    [
        ({"Minutes": "soon"}, "Minutes"),
        ({"Colour": "red"}, "Colour"),
        ({"Minute": 5}, "did you mean Minutes"),
        ({"users": 5}, "users"),
        ({"SKU": "a9"}, "SKU"),
        ({"Dish": {"en": "x"}}, "Dish"),
        ({"Dish": "x", "title": "y"}, "title"),
        ({"Minutes": 5, "Dish": [["x"]]}, "Dish"),
        ({}, "at least 1"),
    ],
)
def test_a_patch_that_cannot_be_done_names_the_column_and_changes_nothing(dishes, cells, name):
    before = dishes.get("/api/v1/items/a2").json()
    answer = patched(dishes, "a2", **cells)
    assert (answer.status_code in (400, 422), name in answer.json()["detail"]) == (True, True)
    assert dishes.get("/api/v1/items/a2").json() == before


def test_a_patch_of_an_unknown_item_is_not_found(dishes):
    assert patched(dishes, "a99", Minutes=5).status_code == 404


# Roles by other names, columns named as roles are, variants, and cells that would be read otherwise
# if they were read once more.
UGLY = pd.DataFrame(
    {
        "SKU": ["a1", "a2", "a2", "a3"],
        "Dish": ["Pancakes", "Soup", "Soup", "Bread"],
        "id": ["77", "78", "78", "79"],
        "title": ["Mr", "Ms", "Ms", "Dr"],
        "users": ["5", "6", "6", "7"],
        "Price": ["$5.00", "6.50", "9.50", "N/A"],
        "Colour": ["Red, dark", "Blue, sky", "Green, sea", "Red"],
        "Added": ["01/03/2024", "2/3/2024", "2/3/2024", "25/12/2023"],
        "Vegan": ["yes", "no", "no", ""],
        "Text": ["a &amp;lt; b", "<b>x</b> y", "<b>x</b> y", "z"],
    }
)


def test_what_get_returned_can_be_put_back(asking, tmp_path):
    columns = qkvsearch.Columns(id="SKU", title="Dish")
    qkvsearch.build(tmp_path / "ws", items=UGLY, columns=columns, encoder="corpus").close()
    with asking(tmp_path / "ws") as client:

        def shown():
            return [client.get(f"/api/v1/items/{each}").json() for each in ("a1", "a2", "a3")]

        before = shown()
        assert put(client, *before).json()["replaced"] == 3
        assert shown() == before
        same = {name: before[1][name] for name in ("Price", "Added", "Text")}
        assert patched(client, "a2", **same).json() == before[1]
        dear = client.get("/api/v1/items", params={"where": "Price = 9.5"}).json()["rows"]
        assert [row["id"] for row in dear] == ["a2"]
        # What was in the file stays for the cells that stay.
        assert put(client, {**before[1], "Text": "new"}).status_code == 200
        original = before[1]["original"]
        assert original.pop("Text") == "<b>x</b> y"
        assert shown()[1] == {**before[1], "Text": "new", "original": original}
        # Both names of a role are one column.
        both = put(client, {**before[1], "Dish": "Stew"})
        assert (both.status_code, "Dish" in both.json()["detail"]) == (422, True)

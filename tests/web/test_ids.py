"""Ids: whatever a table, a record or a request may name, a request can address."""

import json
from urllib.parse import quote

import pandas as pd
import pytest

import qkvsearch as qkv
from qkvsearch._utils.limits import ID
from qkvsearch.errors import QkvError
from qkvsearch.tables.ids import is_usable_id

UNUSABLE = [
    "a\nb", "a\rb", "a\r\nb", "a\0b", "a\tb", "a\x0bb", "a\x7fb", "a\x85b", "a\u2028b", "a\u2029b",
    ".", "..", " .. ", "x" * (ID.default + 1),
]  # fmt: skip
USABLE = [
    "a/b", "/a", "a/", "//", "50%", "a b", "a#b", "a?b", "a+b", "a\\b", "...", ".a", "ü", "注意",
    "👩‍🚀", "\u202ea", "a\xadb", "-1", "0", "None", "x" * ID.default, "字" * ID.default,
]  # fmt: skip
LOG = pd.DataFrame({"user": ["ann", "ann", "bob"], "item": ["v1", "v2", "v2"]})


def items_of(*ids):
    ids = ["v1", "v2", *ids]
    return pd.DataFrame({"id": ids, "title": [f"Kettle {n}" for n in range(len(ids))]})


@pytest.fixture(scope="module")
def client(tmp_path_factory, asking):
    path = tmp_path_factory.mktemp("ids") / "ws"
    qkv.build(path, items=items_of(*USABLE), interactions=LOG, encoder="corpus").close()
    with asking(path) as client:
        yield client


@pytest.mark.parametrize("id_", UNUSABLE)
def test_an_id_that_no_address_can_name_is_refused(client, id_):
    before = client.get("/api/v1/info").json()["items"]
    put = client.put("/api/v1/items", json=[{"id": id_, "title": "New"}])
    assert put.status_code == 422
    assert "`id`" in put.json()["detail"]
    recorded = client.post("/api/v1/record", json={"user": id_, "item": "v1"})
    assert recorded.status_code in (400, 422)
    assert client.get("/api/v1/info").json()["items"] == before


def test_a_lone_surrogate_is_no_id(client):
    for body in (b'[{"id": "a\\ud800", "title": "x"}]', b'[{"id": "\\udfff", "title": "x"}]'):
        json_body = {"Content-Type": "application/json"}
        answer = client.put("/api/v1/items", content=body, headers=json_body)
        assert answer.status_code in (400, 422)


@pytest.mark.parametrize("id_", USABLE)
def test_every_other_id_is_addressed(client, id_):
    name = quote(id_, safe="")
    assert client.get(f"/api/v1/items/{name}").json()["id"] == id_
    assert client.post("/api/v1/record", json={"user": id_, "item": id_}).status_code == 200
    assert client.get(f"/api/v1/users/{name}/history").json()["total"] == 1


def test_rows_with_unusable_ids_are_skipped_and_counted(tmp_path):
    log = pd.concat([LOG, pd.DataFrame({"user": ["a\nb", "x\0"], "item": ["v1", "v1"]})])
    with qkv.build(
        tmp_path / "ws", items=items_of("a\nb", "c\u2028d", ".."), interactions=log,
        encoder="corpus",
    ) as engine:  # fmt: skip
        assert engine.items.ids.texts == ["v1", "v2"]
        assert engine.users.ids.texts == ["ann", "bob"]
        rows = " ".join(engine.info()["rows"])
        assert "3 with an id that no address" in rows
        assert "2 with an id that no address" in rows
        added = engine.add(items_of("a\nb", "fine"))
        assert (added.added, added.replaced) == (1, 2)
        assert any("no address" in note for note in added.notes)
        recorded = engine.record_many(pd.DataFrame({"user": ["eve", "a\rb"], "item": ["v1"] * 2}))
        assert len(recorded) == 1
        for user in ("a\nb", "..", ""):
            with pytest.raises(QkvError, match="user"):
                engine.record(user, "v1")


def test_a_log_alone_has_no_unusable_items(tmp_path):
    log = pd.DataFrame({"user": list("abcd"), "item": ["v1", "v1", "v\n2", "v3"]})
    with qkv.build(tmp_path / "ws", interactions=log, encoder="corpus") as engine:
        assert engine.items.ids.texts == ["v1", "v3"]


def test_a_number_is_one_id_however_it_is_written(tmp_path, asking):
    items = pd.DataFrame({"id": [7, 8], "title": ["Kettle", "Pot"]})
    log = pd.DataFrame({"user": [1, 2], "item": [7, 8]})
    qkv.build(tmp_path / "ws", items=items, interactions=log, encoder="corpus").close()
    with asking(tmp_path / "ws") as client:
        for spelling in ("7", "7.0", "7e0", '"7"', '" 7 "', '"7.0"'):
            body = f'[{{"id": {spelling}, "title": "Mug"}}]'
            answer = client.put("/api/v1/items", content=body, headers=JSON)
            assert (answer.status_code, answer.json().get("replaced")) == (200, 1), spelling
        for spelling in ("1", "1.0", '"1"', '"1.0"'):
            body = f'{{"user": {spelling}, "item": 7.0}}'
            answer = client.post("/api/v1/record", content=body, headers=JSON)
            assert answer.json()["rows"][0]["id"] == 7, spelling
        assert client.get("/api/v1/users/1/history").json()["total"] == 1
        twice = '[{"id": 7, "title": "a"}, {"id": 7.0, "title": "b"}]'
        assert client.put("/api/v1/items", content=twice, headers=JSON).status_code == 422
        for wrong in ("1e400", "NaN", "true", "null", "[7]", "10000000000000000000000.5"):
            body = f'{{"user": {wrong}, "item": 7}}'
            answer = client.post("/api/v1/record", content=body, headers=JSON)
            assert answer.status_code in (400, 422), wrong


JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    ("method", "path", "body", "key"),
    [
        ("PUT", "items", '[{"id": "v1", "title": "a", "id": "v2"}]', "id"),
        ("PUT", "items", '[{"id": "v1", "title": "a", "title": "a"}]', "title"),
        ("POST", "record", '{"user": "a", "item": "v1", "item": "v2"}', "item"),
        ("POST", "record", '{"interactions": [{"user": "a", "user": "b", "item": "v1"}]}', "user"),
        ("POST", "search", '{"searches": [], "searches": [{"q": "a"}]}', "searches"),
        ("POST", "recommend", '{"recommends": [{"ratings": {"v1": 1, "v1": 2}}]}', "v1"),
        ("POST", "explain/recommend", '{"likes": ["v1"], "likes": ["v2"]}', "likes"),
    ],
)
def test_a_key_that_occurs_twice_is_refused(client, method, path, body, key):
    answer = client.request(method, f"/api/v1/{path}", content=body, headers=JSON)
    assert answer.status_code == 422
    assert f"`{key}`" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("search?q=red&q=blue", "q"),
        ("search?q=red&q=red", "q"),
        ("search?q=red&facets=channel&k=1&facets=tags", "facets"),
        ("recommend?user=w001&user=w002", "user"),
        ("recommend?likes=v001&explain=true&explain=false", "explain"),
        ("similar?items=v001&k=1&k=2", "k"),
        ("items?where=1&where=0", "where"),
        ("facets?fields=a&fields=b", "fields"),
        ("users/w001/history?k=1&k=2", "k"),
        ("map?q=red&q=blue", "q"),
        ("attend?text=a&text=b", "text"),
        ("explain/search?q=red&item=v001&item=v002", "item"),
        ("explain/similar?items=v001&item=v002&item=v003", "item"),
        ("builds?k=1&k=1", "k"),
    ],
)
def test_a_parameter_that_is_no_list_is_given_once(client, path, name):
    answer = client.get(f"/api/v1/{path}")
    assert answer.status_code == 422
    assert f"`{name}`" in answer.json()["detail"]


def test_a_parameter_that_is_a_list_may_be_repeated(client):
    for path in (
        "recommend?likes=v1&likes=v2&without=v1&without=v2&exclude=v1&exclude=v2",
        "similar?items=v1&items=v2&exclude=v1&exclude=v2",
        "search?q=kettle&filter=title:a&filter=title:b",
        "recommend?rate=v1=4&rate=v2=5",
        "items?filter=title:a&filter=title:b",
    ):
        # Without ratings or facets, it is refused for that.
        assert client.get(f"/api/v1/{path}").status_code in (200, 400), path


def test_an_idempotency_key_is_given_once(asking, films_path):
    with asking(films_path) as client:
        before = client.get("/api/v1/users/new/history").text
        answer = client.post(
            "/api/v1/record",
            json={"user": "new", "item": "m003", "rating": 4},
            headers=[("Idempotency-Key", "a"), ("Idempotency-Key", "b")],
        )
        assert answer.status_code == 422
        assert "idempotency-key" in answer.json()["detail"].lower()
        assert client.get("/api/v1/users/new/history").text == before


def test_rows_of_json_with_a_key_twice_are_skipped_and_counted(tmp_path):
    lines = [
        '{"id": 1, "title": "Red kettle", "id": 2}',
        '{"id": 3, "title": "Blue pot"}',
        '{"id": 4, "title": "Lamp", "more": {"a": 1, "a": 2}}',
        '{"id": 5, "title": "Anchor", "more": [{"a": 1}, {"a": 2}]}',
    ]
    for name, text in (("a.jsonl", "\n".join(lines)), ("a.json", f"[{', '.join(lines)}]")):
        (tmp_path / name).write_text(text)
        with qkv.build(tmp_path / name[2:], items=tmp_path / name, encoder="corpus") as engine:
            assert list(engine.items.ids) == [3, 5]
            rows = json.dumps(engine.info()["rows"])
            assert "2 with a key that occurs twice, first row 1" in rows
            assert "'id'" in rows


def test_what_an_id_may_be():
    assert all(map(is_usable_id, USABLE))
    assert not any(is_usable_id(text.strip(" ")) for text in [*UNUSABLE, "", "a\ud800"])


def test_an_id_of_another_type_is_not_called_missing(client):
    for id_ in (True, [1], ["a"]):
        answer = client.put("/api/v1/items", json=[{"id": id_, "title": "New"}])
        assert answer.status_code == 422
        assert "`id`" in answer.json()["detail"]
        assert "no id" not in answer.json()["detail"]
    for item in ({"title": "New"}, {"id": None}, {"id": " "}):
        answer = client.put("/api/v1/items", json=[item])
        assert answer.status_code == 422
        assert answer.json()["detail"].count("`id`") == 1


def test_the_name_of_the_id_column_is_another_spelling(tmp_path, asking):
    items = pd.DataFrame({"sku": ["a", "b"], "title": ["Kettle", "Pot"]})
    qkv.build(tmp_path / "ws", items=items, encoder="corpus").close()
    with asking(tmp_path / "ws") as client:
        detail = client.put("/api/v1/items", json=[{"title": "New"}]).json()["detail"]
        assert "`sku` or `id`" in detail


@pytest.mark.parametrize("text", ["title", "body"])
def test_a_column_that_an_object_lacks_becomes_empty(tmp_path, asking, text):
    items = pd.DataFrame(
        {
            "id": ["a", "b", "c"],
            "title": ["Red kettle (1990)", "Blue pot (1991)", "Green lamp (1992)"],
            "body": ["it boils water", "it cooks soup", "it lights a room"],
            "price": [1, 2, 3],
        }
    )
    columns = qkv.Columns(text=[text])
    qkv.build(tmp_path / "ws", items=items, columns=columns, encoder="corpus").close()
    with asking(tmp_path / "ws") as client:
        for body in ([{"id": "a"}], [{"id": "n1"}, {"id": "n2", "price": 9}]):
            assert client.put("/api/v1/items", json=body).status_code == 200
        for id_, price in (("a", None), ("n1", None), ("n2", 9)):
            item = client.get(f"/api/v1/items/{id_}").json()
            assert (item["title"], item.get("price")) == (id_, price)
            assert not item.get("body")
        assert client.put("/api/v1/items", json=[{"id": "b", "body": "soup"}]).status_code == 200
        assert client.get("/api/v1/items/b").json()["title"] == "b"

"""The owner's rules over HTTP."""

import shutil

import pytest


@pytest.fixture
def shop_client(asking, shop_path, tmp_path):
    with asking(shutil.copytree(shop_path, tmp_path / "ws")) as client:
        yield client


def hits(client, q, **parameters):
    answer = client.get("/api/v1/search", params={"q": q, "explain": True, **parameters})
    return answer.json()["hits"]


def test_a_rule_is_added_listed_applied_and_removed(shop_client):
    before = hits(shop_client, "ladder")
    added = shop_client.post("/api/v1/rules", json={"pin": "ladder", "items": [4, "red apple"]})
    assert added.status_code == 200, added.text
    assert added.json()["rows"][0]["items"] == [4, 1]
    boost = {"boost": "made >= 2008", "by": 1, "name": "new"}
    assert shop_client.post("/api/v1/rules", json=boost).status_code == 200
    found = hits(shop_client, "ladder")
    assert [hit["id"] for hit in found] == [4, 1, 8, 7]
    for hit in found:
        assert sum(one["value"] for one in hit["reasons"]) == pytest.approx(hit["score"], abs=1e-4)
    assert {"text": "new", "value": 1.0} in found[2]["reasons"]
    assert hits(shop_client, "ladder", rules="false") == before
    rules = shop_client.get("/api/v1/rules").json()
    assert [(row["number"], row["kind"]) for row in rules["rows"]] == [(1, "pin"), (2, "boost")]
    for number in (1, 2):
        assert shop_client.delete(f"/api/v1/rules/{number}").status_code == 200
    assert hits(shop_client, "ladder") == before
    assert shop_client.delete("/api/v1/rules/1").status_code == 404


def test_why_a_pinned_hit_is_first_adds_up(shop_client):
    shop_client.post("/api/v1/rules", json={"pin": "ladder", "items": [4]})
    answer = shop_client.get("/api/v1/explain/search", params={"q": "ladder", "rank": 1})
    hit = answer.json()["hit"]
    assert hit["id"] == 4
    table = hit["map"]
    values = sum(cell for head in table["values"] for row in head for cell in row)
    total = values + sum(table["constant"]) + sum(table["other"])
    assert total == pytest.approx(hit["score"], abs=1e-4)


def test_recommendations_are_boosted_unless_they_are_not_to_be(shop_client):
    asked = {"user": "101", "explain": "true"}
    before = shop_client.get("/api/v1/recommend", params=asked).json()["hits"]
    shop_client.post("/api/v1/rules", json={"boost": "id = 7", "by": 50, "name": "new"})
    after = shop_client.get("/api/v1/recommend", params=asked).json()["hits"]
    assert (after[0]["id"], after[0]["reasons"][-1]["text"]) == (7, "new")
    plain = shop_client.get("/api/v1/recommend", params={**asked, "rules": "false"})
    assert plain.json()["hits"] == before


@pytest.mark.parametrize(
    ("body", "status", "detail"),
    [
        ({}, 400, "`pin`, `bury` and `boost`"),
        ({"pin": "ladder", "items": ["no such thing"]}, 404, "no such thing"),
        ({"pin": "ladder", "item": [1]}, 422, "item"),
        ({"boost": "mde > 1", "by": 1}, 400, "`boost` 'mde > 1'"),
        ({"boost": "made > 1", "by": "1"}, 422, "by"),
        ({"boost": "made > 1", "by": True}, 422, "by"),
        ({"boost": "made > 1", "by": 1e9}, 400, "`by` must be"),
        ({"boost": "made > 1", "by": 1, "name": "x" * 81}, 422, "name"),
    ],
)
def test_what_is_no_rule_is_a_problem(shop_client, body, status, detail):
    answer = shop_client.post("/api/v1/rules", json=body)
    assert answer.status_code == status
    assert detail in answer.json()["detail"]
    assert shop_client.get("/api/v1/rules").json()["rows"] == []


def test_a_read_only_server_has_no_rules_to_read_or_write(asking, shop_path):
    with asking(shop_path, read_only=True) as client:
        assert client.get("/api/v1/rules").status_code == 404
        assert client.post("/api/v1/rules", json={}).status_code == 404


def test_a_token_to_search_with_neither_reads_nor_changes_rules(asking, shop_path, tmp_path):
    files = [tmp_path / name for name in ("owner.txt", "search.txt")]
    for number, file in enumerate(files):
        file.write_text(str(number) * 40, "utf-8")
    path = shutil.copytree(shop_path, tmp_path / "ws")
    with asking(path, token_file=files[0], search_tokens=(files[1],)) as client:
        owner, search = ({"Authorization": f"Bearer {n * 40}"} for n in "01")
        rule = {"pin": "ladder", "items": [4]}
        assert client.post("/api/v1/rules", json=rule, headers=search).status_code == 403
        assert client.post("/api/v1/rules", json=rule, headers=owner).status_code == 200
        assert client.get("/api/v1/rules", headers=search).status_code == 403
        assert client.delete("/api/v1/rules/1", headers=search).status_code == 403
        found = client.get("/api/v1/search", params={"q": "ladder"}, headers=search).json()
        assert found["hits"][0]["id"] == 4

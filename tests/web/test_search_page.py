"""Filters by values of facets, counts beside them, and why one hit has its score, over HTTP."""

import numpy as np
import pandas as pd
import pytest

import qkvsearch
from qkvsearch.scores.components import Components, ScoreComponent
from qkvsearch.web.api.explain_routes import MAX_KEYS, MAX_QUERY, word_table


@pytest.fixture(scope="module")
def hostile(asking, hostile_path):
    """A client of a catalog with a column of every type."""
    with asking(hostile_path) as client:
        yield client


def total(client, *filters, where=None):
    asked = {"filter": filters, "k": 0} | ({} if where is None else {"where": where})
    answer = client.get("/api/v1/items", params=asked)
    assert answer.status_code == 200, answer.text
    return answer.json()["total"]


def test_every_value_of_a_facet_can_be_asked_for_and_finds_as_many_as_it_says(hostile):
    found = hostile.get("/api/v1/facets").json()
    assert {column["type"] for column in found["columns"]} == {
        "text", "list", "number", "date", "yes/no",
    }  # fmt: skip
    assert found["newest"] == "added"
    for column, counts in found["facets"].items():
        for value, n in counts.items():
            assert total(hostile, f"{column}:{value}") == n, (column, value)


def searched(client, q, **asked):
    answer = client.get("/api/v1/search", params={"q": q, **asked})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_facet_of_a_search_counts_what_its_filter_finds(hostile):
    found = searched(hostile, "coat", facets="kind,tags,price,added,sold", k=0)
    assert 0 < found["total"] < 60
    assert found["total_weak"] == 0 or found["total"] + found["total_weak"] <= 60
    assert sum(found["facets"]["sold"].values()) == found["total"]
    for column, counts in found["facets"].items():
        for value, n in counts.items():
            chosen = searched(hostile, "coat", filter=f"{column}:{value}", facets=column)
            assert chosen["total"] == n, (column, value)
            assert {hit["match"] for hit in chosen["hits"]} <= {"strong", "good"}
            # The filter of a column does not limit the counts beside its other values.
            assert chosen["facets"][column] == counts


def test_facets_count_weak_matches_where_these_are_listed_too(client):
    asked = {"facets": "category", "weak": True}
    found = searched(client, "sourdough bread", **asked, k=0)
    n_listed = found["total"] + found["total_weak"]
    counts = found["facets"]["category"]
    assert found["total_weak"] > 0
    assert sum(counts.values()) == n_listed
    for value in sorted(counts, key=counts.get)[:3]:
        chosen = searched(client, "sourdough bread", filter=f"category:{value}", **asked, k=100)
        assert len(chosen["hits"]) == counts[value], value


def test_a_column_of_numbers_says_its_own_ends_whatever_is_found(hostile):
    for asked in ({}, {"filter": "price:10..20"}):
        columns = hostile.get("/api/v1/facets", params=asked).json()["columns"]
        ends = {column["name"]: (column["least"], column["most"]) for column in columns}
        assert ends["price"] == (0, 59.25)
        assert ends["kind"] == (None, None)


def test_no_hits_name_the_filters_as_they_were_asked(hostile):
    asked = {"filter": ["price:1000..2000", "sold:yes"], "where": "price > 1"}
    found = searched(hostile, "coat", **asked)
    n = searched(hostile, "coat", k=0)["total"]
    assert found["no_hits"] == {"reason": "filtered_out", "total": n, **asked}
    found = searched(hostile, "coat", filter="price:1000..2000")
    assert found["no_hits"]["filter"] == ["price:1000..2000"]
    assert "where" not in found["no_hits"]
    found = searched(hostile, "xqzvw", filter="price:1000..2000")
    assert found["no_hits"] == {"reason": "unknown_words", "words": ["xqzvw"]}
    assert searched(hostile, "coat")["no_hits"] is None


@pytest.mark.parametrize(
    ("asked", "stored"),
    [
        ("price:3,25", "price:3.25"),
        ("price:$5.25..7,25", "price:5.25..7.25"),
        ("added:2010/3/1", "added:2010-03-01"),
        ("added:01.03.2010..2.3.2011", "added:2010-03-01..2011-03-02"),
        ("sold:是", "sold:yes"),
        ("sold:FALSE", "sold:no"),
    ],
)
def test_a_filter_may_be_written_as_in_the_file(hostile, asked, stored):
    assert total(hostile, asked) == total(hostile, stored) > 0


@pytest.mark.parametrize(
    ("asked", "turned"),
    [
        ("price:30..10", "price:10..30"),
        ("price:30..=10", "price:10..=30"),
        ("added:2030..1990", "added:1990..2030"),
    ],
)
def test_a_filter_with_its_larger_end_first_is_turned_and_a_note_says_so(hostile, asked, turned):
    found = hostile.get("/api/v1/items", params={"filter": asked}).json()
    assert found["total"] == total(hostile, turned) > 0
    of_similar = {"items": found["rows"][0]["id"], "filter": asked}
    similar = hostile.get("/api/v1/similar", params=of_similar).json()
    for answer in (found, similar, searched(hostile, "coat", filter=asked)):
        assert f"{asked} was read as {turned}: the smaller end comes first." in answer["notes"]
    assert not searched(hostile, "coat", filter=turned)["notes"]


def test_values_of_a_column_are_alternatives_and_columns_conditions(hostile):
    kinds = hostile.get("/api/v1/facets?columns=kind").json()["facets"]["kind"]
    one, other, _ = (f"kind:{kind}" for kind in kinds)
    assert total(hostile, one, other) == 40
    assert total(hostile, one, other, "sold:yes") == 20
    assert total(hostile, one, where="price < 6 OR price > 57") == 3
    assert total(hostile, "price:..10", "added:2010..2011") == 4
    assert total(hostile, "price:1.25") == 1
    # A range of a facet ends before the next one begins; one that people type has its end in it.
    assert total(hostile, "price:0..1.25") == 1
    assert total(hostile, "price:0..=1.25") == 2
    assert total(hostile, "price:..10", "added:2010..=2011") == 4
    assert total(hostile, 'id:" OR 1=1 --') == 0


@pytest.mark.parametrize(
    ("asked", "status", "said"),
    [
        ({"filter": "channel"}, 400, "`filter`"),
        ({"filter": "colour:red"}, 400, "`filter`: no column 'colour'"),
        ({"filter": "price:dear"}, 400, "price is a number"),
        ({"filter": "price:.."}, 400, "has no end"),
        ({"filter": "sold:perhaps"}, 400, "yes or no"),
        ({"filter": "sold:yes", "where": "1=1) OR (1=1"}, 400, "`where`"),
        ({"filter": "sold:yes", "where": "price > 1 -- all"}, 200, ""),
    ],
)
def test_a_filter_that_cannot_be_used_is_named(hostile, asked, status, said):
    answer = hostile.get("/api/v1/items", params=asked)
    assert answer.status_code == status, answer.text
    assert said in answer.text


def test_a_filtered_column_counts_its_other_values_too(client):
    asked = {"q": "bread", "facets": "category,channel", "filter": "category:Cooking"}
    alone = client.get("/api/v1/search", params={**asked, "filter": []}).json()["facets"]
    found = client.get("/api/v1/search", params=asked).json()
    assert found["facets"]["category"] == alone["category"]
    assert len(alone["category"]) > 1
    assert sum(found["facets"]["channel"].values()) == alone["category"]["Cooking"]
    listed = client.get("/api/v1/facets", params={"filter": "category:Cooking"}).json()["facets"]
    assert len(listed["category"]) > 1


@pytest.mark.parametrize("rank", [1, 2, 15, 40])
def test_an_explanation_is_of_the_hit_that_the_search_gives(client, assert_adds_up, rank):
    asked = {"q": "sourdogh bread", "filter": "category:Cooking", "prefix": True}
    hits = client.get("/api/v1/search", params={**asked, "k": 50}).json()["hits"]
    answer = client.get("/api/v1/explain/search", params={**asked, "rank": rank})
    if rank > len(hits):
        assert answer.status_code == 404
        return
    hit = answer.json()["hit"]
    assert {name: hit[name] for name in ("id", "rank", "score", "weight")} == {
        name: hits[rank - 1][name] for name in ("id", "rank", "score", "weight")
    }
    made = hit["map"]
    for place, head in enumerate(made["heads"]):
        values = [*np.ravel(made["values"][place]), made["constant"][place], made["other"][place]]
        assert_adds_up(values, hit["heads"][head])
    assert_adds_up([reason["value"] for reason in hit["reasons"]], hit["score"])


def test_an_explanation_with_a_taste_and_one_of_a_neighbour(client, assert_adds_up):
    for path, asked in (
        ("search", {"q": "bread", "user": "w001"}),
        ("similar", {"items": "v018", "rank": 3}),
    ):
        hit = client.get(f"/api/v1/explain/{path}", params=asked).json()["hit"]
        made = hit["map"]
        values = [*np.ravel(made["values"]), *made["constant"], *made["other"]]
        assert_adds_up(values, hit["score"])
        assert made["other"][made["heads"].index("collaborative")] != 0


def test_a_map_of_many_words_adds_up_those_that_it_does_not_name():
    rng = np.random.default_rng(0)
    parts = [
        ScoreComponent("static", f"q{i}", f"k{j}", float(rng.normal()))
        for i in range(30)
        for j in range(50)
    ]
    found = word_table(Components.of(parts))
    assert found["cut"] == {"query": 30 - MAX_QUERY, "keys": 50 - MAX_KEYS}
    values = np.array(found["values"])
    assert values.shape == (1, MAX_QUERY + 1, MAX_KEYS + 1)
    assert values.sum() == pytest.approx(sum(part.value for part in parts))
    table = np.array([part.value for part in parts]).reshape(30, 50)
    rows, columns = ([int(label[1:]) for label in found[name]] for name in ("query", "keys"))
    np.testing.assert_array_equal(values[0, :-1, :-1], table[np.ix_(rows, columns)])
    sizes = np.abs(table)
    assert sorted(rows) == sorted(np.argsort(-sizes.sum(axis=1))[:MAX_QUERY])
    assert sorted(columns) == sorted(np.argsort(-sizes.sum(axis=0))[:MAX_KEYS])


def test_punctuation_has_no_row_of_its_own_and_still_counts():
    parts = [
        ScoreComponent("minilm", "rain", "jacket", 1.0),
        ScoreComponent("minilm", "rain", ".", 5.0),
        ScoreComponent("minilm", "?", "[SEP]", 0.5),
        ScoreComponent("minilm", "?", ",", 0.25),
    ]
    found = word_table(Components.of(parts))
    assert (found["query"], found["keys"]) == (["rain"], ["jacket", "[SEP]"])
    assert found["cut"] == {"query": 1, "keys": 2}
    assert found["values"] == [[[1.0, 0.0, 5.0], [0.0, 0.5, 0.25]]]


def test_matches_come_without_the_parts(client):
    hit = client.get("/api/v1/search?q=bread&k=1&matches=true").json()["hits"][0]
    assert hit["matches"]
    assert "parts" not in hit


def test_units_come_from_names_and_cells_and_are_never_guessed(tmp_path):
    items = pd.DataFrame(
        {
            "id": range(20),
            "title": [f"lamp {i}" for i in range(20)],
            "price": [f"{i},50 €" for i in range(20)],
            "Preis": [f"{i}.50" for i in range(20)],
            "price_usd": range(20),
            "rent": ["$5", "5 €"] * 10,
            "top": range(20),
            "fee": ["$3", *("4" for _ in range(19))],
            "runtime_min": range(20),
            "price_min": range(20),
            "seconds": [60 * i for i in range(20)],
        }
    )
    engine = qkvsearch.build(tmp_path / "w", items=items, encoder="corpus")
    units = {name: engine.items.unit(name) for name in items.columns[2:]}
    assert units == {
        "price": "EUR", "Preis": "", "price_usd": "USD", "rent": "", "top": "", "fee": "",
        "runtime_min": "minutes", "price_min": "", "seconds": "seconds",
    }  # fmt: skip
    ends = [
        int(end)
        for range_ in engine.items.facets("seconds")["seconds"]
        for end in range_.split("..")
    ]
    assert all(
        low % 60 == 0 and (high + 1) % 60 == 0
        for low, high in zip(ends[::2], ends[1::2], strict=True)
    )


def test_images_of_others_may_be_loaded_where_a_column_has_them(asking, tmp_path):
    columns = {"id": [1, 2], "title": ["red lamp", "blue lamp"]}
    for name, cell, allowed in (
        ("poster", "https://images.example/poster?id=1", True),
        ("site", "https://shop.example/a.jpg", True),
        ("site", "https://shop.example/a", False),
        ("image", "javascript:alert(1)", False),
    ):
        path = tmp_path / f"{name}{len(cell)}"
        qkvsearch.build(path, items=pd.DataFrame({**columns, name: cell}), encoder="corpus").close()
        with asking(path) as client:
            policies = {
                page: client.get(page).headers["content-security-policy"]
                for page in ("/", "/recommend", "/map", "/attend")
            }
        for page in ("/", "/recommend", "/map"):
            assert ("img-src 'self' data: https: http:" in policies[page]) == allowed, page
        assert "http" not in policies["/attend"]


def test_the_words_that_would_have_to_be_gone_are_those_of_python(client, videos):
    asked = {"q": "bank of the river", "k": 3, "explain": "smallest"}
    expected = videos.search("bank of the river", k=3, explain="smallest")
    hits = client.get("/api/v1/search", params=asked).json()["hits"]
    assert [hit["smallest"] for hit in hits] == [hit.smallest for hit in expected]
    hit = client.get("/api/v1/explain/search", params={**asked, "rank": 2}).json()["hit"]
    assert hit["smallest"] == expected[1].smallest
    assert hit["id"] == expected[1].id

"""`map` over HTTP: the engine's positions, colours of a column, a query or a user among them."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest

import qkvsearch
from qkvsearch.rank.answerable import NEAREST
from qkvsearch.web.api.map_routes import MAX_COLOURS

MARKUP = "<img src=x onerror=alert(1)> bread flour"


@pytest.fixture(scope="module")
def films(asking, movies_path):
    """A client of the movies' app."""
    with asking(movies_path) as found:
        yield found


@pytest.fixture
def asked(films):
    def ask(status=200, **parameters):
        answer = films.get("/api/v1/map", params=parameters)
        assert answer.status_code == status, answer.text
        return answer.json()

    return ask


@pytest.mark.parametrize("head", [None, "collaborative"])
def test_items_are_where_the_engine_puts_them(asked, movies, head):
    found = asked(**({} if head is None else {"head": head}))
    wanted = movies.map(head)
    positions = np.stack([found["items"]["x"], found["items"]["y"]], axis=1)
    np.testing.assert_allclose(positions, wanted.positions, atol=6e-5)
    ids, titles = movies.catalog.names(wanted.items)
    assert (found["items"]["ids"], found["items"]["titles"]) == (ids, titles)
    assert (found["head"], found["n"]) == (wanted.head, len(wanted.items))
    assert found["neighbours_kept"] == wanted.neighbours_kept
    assert [tuple(label.values()) for label in found["labels"]] == list(wanted.labels)
    assert found["heads"] == ["lsa", "contrastive", "collaborative"]
    assert found["notes"] == list(wanted.notes)
    assert found["point"] is None


def test_colours_are_the_most_frequent_values(asked, movies):
    found = asked()
    colour, cells = found["colour"], movies.items.to_frame().set_index("id")["genres"]
    assert colour["column"] == found["columns"][0] == "genres"
    lists = [str(cells[id_]).split("|") for id_ in found["items"]["ids"]]
    total = Counter(entry for entries in lists for entry in entries)
    ranked = sorted(total, key=lambda value: (-total[value], value))[:MAX_COLOURS]
    assert (colour["kind"], colour["labels"]) == ("values", ranked)
    assert colour["codes"] == [
        min((ranked.index(entry) for entry in entries if entry in ranked), default=-1)
        for entries in lists
    ]


def test_numbers_are_in_ranges_of_about_as_many(asked, movies):
    colour = asked(colour="year")["colour"]
    years = movies.items.to_frame()["year"].to_numpy()
    assert colour["kind"] == "ranges"
    codes = np.array(colour["codes"])
    for code, label in enumerate(colour["labels"]):
        least, _, most = label.partition(" – ")
        inside = years[codes == code]
        assert (inside.min(), inside.max()) == (int(least), int(most or least))
    counts = np.bincount(codes)
    assert counts.min() > 0.6 * counts.max()
    ends = [years[codes == code].max() for code in range(len(counts))]
    assert ends == sorted(ends)


def test_no_colour_and_no_such_colour(asked):
    assert asked(colour="-")["colour"] is None
    assert "no column 'mood'" in asked(400, colour="mood")["detail"]


def test_a_query_and_a_user_have_a_place_and_lines_to_their_best(asked, movies):
    for of in ({"query": "space adventure"}, {"user": "u001"}):
        found = asked(items="false", k=4, **of)
        wanted = movies.map(k=4, **of).point
        assert (found["items"], found["colour"]) == (None, None)
        point = found["point"]
        np.testing.assert_allclose([point["x"], point["y"]], wanted.position, atol=6e-5)
        records = wanted.hits.to_records()
        assert [
            {k: hit[k] for k in record} for hit, record in zip(point["hits"], records, strict=True)
        ] == records
        places = [[hit["x"], hit["y"]] for hit in point["hits"]]
        np.testing.assert_allclose(places, wanted.hit_positions, atol=6e-5)


def test_the_best_have_the_cells_that_are_asked_for(asked, movies):
    found = asked(query="space adventure", items="false", fields="year,genres")
    years = movies.items.to_frame().set_index("id")["year"]
    hits = found["point"]["hits"]
    assert [hit["year"] for hit in hits] == [years[hit["id"]] for hit in hits]
    assert all("genres" in hit for hit in hits)
    detail = asked(400, query="space", fields="mood")["detail"]
    assert "`fields`" in detail
    assert "mood" in detail


def test_a_wrong_field_is_told_where_nothing_is_placed_too(asked):
    assert "`fields`" in asked(400, fields="mood")["detail"]


@pytest.mark.parametrize(
    ("asks", "status", "says"),
    [
        ({"query": "a", "user": "u001"}, 400, "leave out"),
        ({"query": "a", "head": "collaborative"}, 400, "choose another"),
        ({"user": "nobody"}, 404, "nobody"),
        ({"head": "none"}, 400, "no head 'none'"),
        ({"k": 101}, 400, "`k`"),
    ],
)
def test_what_cannot_be_asked(asked, asks, status, says):
    assert says in asked(status, **asks)["detail"]


@pytest.fixture(scope="module")
def hostile(asking, tmp_path_factory):
    """Titles of markup and of a megabyte, cells of all kinds, some blank, ids that are numbers."""
    n = 60
    items = pd.DataFrame(
        {
            "id": range(n),
            "title": [MARKUP, "bread flour " * 90_000, "\u202ebread flour"]
            + [f"bread {i} flour" for i in range(n - 3)],
            "kind": ["<b>bold</b>", "plain", None] * (n // 3),
            "sold": ["yes", "no"] * (n // 2),
            "made": [f"2024-0{1 + i % 6}-01" for i in range(n)],
            "x": [f"shelf {i}" for i in range(n)],
        }
    )
    path = tmp_path_factory.mktemp("hostile") / "ws"
    qkvsearch.build(path, items=items, encoder="corpus")
    with asking(path) as client:
        yield client


def test_titles_are_cut_and_nothing_else_is_changed(hostile):
    answer = hostile.get("/api/v1/map").json()
    by_id = dict(zip(answer["items"]["ids"], answer["items"]["titles"], strict=True))
    for i in (0, 2):  # as it was built, which takes markup out
        assert by_id[i] == hostile.get(f"/api/v1/items/{i}").json()["title"]
    assert by_id[1] == ("bread flour " * 90_000)[:99] + "…"
    point = hostile.get("/api/v1/map?query=bread&items=false&k=60").json()["point"]
    assert all(len(hit["title"]) <= 100 for hit in point["hits"])


def test_a_column_named_like_a_place_keeps_its_cells(hostile):
    question = {"query": "bread", "items": "false", "fields": "x"}
    hits = hostile.get("/api/v1/map", params=question).json()["point"]["hits"]
    assert all(hit["items.x"] == f"shelf {hit['id']}" for hit in hits)
    assert all(isinstance(hit["x"], float) for hit in hits)


def test_colours_of_every_type(hostile):
    for column, kind, n_labels in (
        ("kind", "values", 2),
        ("sold", "values", 2),
        ("made", "ranges", 6),
    ):
        colour = hostile.get(f"/api/v1/map?colour={column}").json()["colour"]
        assert (colour["kind"], len(colour["labels"])) == (kind, n_labels)
        assert len(set(colour["codes"])) == n_labels + (column == "kind")


def test_a_query_without_an_answer_is_told_so(asking, tmp_path):
    titles = [f"{kind} tent {n}" for n in range(20) for kind in ("red", "blue")]
    items = pd.DataFrame({"id": range(len(titles)), "title": titles})
    qkvsearch.build(tmp_path / "ws", items=items, encoder="static").close()
    with asking(tmp_path / "ws") as shop:
        for query, notes in (("red tent", []), ("passport", [NEAREST])):
            parameters = {"query": query, "items": "false"}
            found = shop.get("/api/v1/map", params=parameters).json()
            assert found["point"] is not None
            assert found["notes"] == notes

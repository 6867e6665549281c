"""The main path on real films and talks. Needs QKVSEARCH_DATA, a folder of both sets."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import pytest

import qkvsearch
from qkvsearch.data.columns import Columns
from qkvsearch.data.judgements import read_judgements, read_queries
from qkvsearch.evaluation.search_protocol import evaluate_search

DATA = os.environ.get("QKVSEARCH_DATA")
pytestmark = [
    pytest.mark.skipif(
        not DATA, reason="QKVSEARCH_DATA names no folder with ml-latest-small and ted"
    ),
    pytest.mark.xdist_group("builds of real data"),  # each is built once, by one process
]


def rows(*names):
    with Path(DATA, *names).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def films(tmp_path_factory):
    return qkvsearch.build(tmp_path_factory.mktemp("ml") / "ws", Path(DATA, "ml-latest-small"))


@pytest.fixture(scope="module")
def talks(tmp_path_factory):
    return qkvsearch.build(
        tmp_path_factory.mktemp("ted") / "ws",
        items=Path(DATA, "ted", "talks.csv"),
        columns=Columns(id="id", title="title", text=["title", "tags"]),
    )


@pytest.fixture(scope="module")
def genres():
    return {
        int(row["movieId"]): set(row["genres"].split("|"))
        for row in rows("ml-latest-small", "movies.csv")
    }


def test_nothing_that_a_user_met_is_recommended(films):
    met: dict[int, set[int]] = {}
    for row in rows("ml-latest-small", "ratings.csv"):
        met.setdefault(int(row["userId"]), set()).add(int(row["movieId"]))
    users = sorted(met)[::12][:50]
    assert len(users) == 50
    for user in users:
        ranking = films.recommend(user=user, k=500)
        assert len(ranking) == 500
        assert not met[user] & {hit.id for hit in ranking}


def test_who_likes_toy_stories_is_recommended_family_films(films, genres):
    likes = ["Toy Story (1995)", "Toy Story 2 (1999)"]
    ranking = films.recommend(likes=likes, k=10)
    family = [hit for hit in ranking if genres[hit.id] & {"Animation", "Children"}]
    assert len(ranking) == 10
    assert len(family) >= 5
    assert not set(likes) & {hit.title for hit in ranking}


def test_neighbours_of_the_matrix_are_action_or_science_fiction(films, genres):
    ranking = films.similar("Matrix, The (1999)", k=10)
    assert len([hit for hit in ranking if genres[hit.id] & {"Action", "Sci-Fi"}]) >= 6


def test_reasons_of_recommendations_add_up(films, assert_adds_up):
    for user in range(1, 611, 30)[:20]:
        ranking = films.recommend(user=user, k=3, explain=True)
        assert len(ranking) == 3
        for hit in ranking:
            assert_adds_up([reason["contribution"] for reason in hit.because], hit.score)
            assert 0.5 <= hit.predicted_rating <= 5


def test_the_talk_on_schools_and_creativity_is_found(talks):
    found = talks.search("schools that kill creativity", k=3)
    assert "t0000" in [hit.id for hit in found]


def test_parts_of_search_scores_add_up(talks, assert_adds_up):
    titles = [row["title"] for row in rows("ted", "talks.csv")[::100]][:20]
    assert len(titles) == 20
    for title in titles:
        ranking = talks.search(title, k=3)
        assert len(ranking) == 3
        for i, hit in enumerate(ranking):
            assert_adds_up([part.value for part in ranking.explain(i)], hit.score)


def test_a_title_typed_in_full_finds_its_talk_first(talks):
    sampled = rows("ted", "talks.csv")[::50]
    found = [talks.search(row["title"], k=1)[0].id == row["id"] for row in sampled]
    assert sum(found) >= 0.95 * len(sampled)


def test_talks_are_found_by_their_words(talks):
    found = evaluate_search(
        lambda text, k: [hit.id for hit in talks.search(text, k=k, heads="lexical")],
        read_queries(Path(DATA, "ted", "queries_dev.tsv")),
        read_judgements(Path(DATA, "ted", "qrels_dev.tsv")),
        catalog=talks.catalog.ids("items"),
    )
    assert found.facts["items_not_in_catalog"] == []
    assert found.metrics["mrr@10"] >= 0.36

"""The main path on real films and talks. Needs QKVSEARCH_DATA, a folder of both sets."""

import csv
import os
from pathlib import Path

import pytest

import qkvsearch
from qkvsearch.evaluation.search_protocol import evaluate_search
from qkvsearch.tables.columns import Columns
from qkvsearch.tables.judgements import read_judgements, read_queries

DATA = os.environ.get("QKVSEARCH_DATA")
pytestmark = [
    pytest.mark.slow,
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

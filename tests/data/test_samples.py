"""The bundled data: there, whole, and known by a fingerprint."""

import shutil

import pytest

from qkvsearch.data import samples
from qkvsearch.data.files.tables import read_table
from qkvsearch.data.judgements import read_judgements, read_queries
from qkvsearch.data.samples import SAMPLES, sample
from qkvsearch.data.sources import read_source
from qkvsearch.text.analysis import Analyzer


@pytest.mark.parametrize("name", SAMPLES)
def test_every_row_of_a_sample_is_kept(name):
    dataset = read_source(f"sample:{name}")
    assert len(dataset.catalog) > 100
    for report in dataset.reports:
        assert report.kept == report.read > 100
        assert report.repaired == 0


@pytest.mark.parametrize("name", SAMPLES)
def test_sample_ids_are_unique_and_every_item_has_a_title(name):
    frame, _ = read_table(sample(name).path(sample(name).items))
    assert frame["id"].is_unique
    assert frame[["id", "title"]].notna().all(axis=None)


def test_every_rated_film_is_in_the_catalog():
    dataset = read_source("sample:movies")
    ratings, _ = read_table(sample("movies").path("ratings.csv"))
    assert set(ratings["movie"]) <= set(dataset.catalog.ids.texts)
    assert dataset.interactions.ratings.min() >= 0.5
    assert dataset.interactions.ratings.max() <= 5


def test_every_watched_video_is_in_the_catalog():
    dataset = read_source("sample:videos")
    watches, _ = read_table(sample("videos").path("watches.csv"))
    assert set(watches["video"]) == set(dataset.catalog.ids.texts)


def test_the_samples_are_as_large_as_promised():
    assert len(read_source("sample:movies").catalog) >= 300
    videos = read_source("sample:videos").catalog
    assert len(videos) >= 300
    assert videos.frame["title"].str.contains("[\u4e00-\u9fff]").sum() >= 40


def test_ambiguous_words_occur_in_several_categories():
    frame = read_source("sample:videos").catalog.frame
    texts = frame["title"] + " " + frame["tags"]
    for word in ("transformer", "python", "bank", "java", "mercury", "attention", "saw"):
        categories = frame["category"][texts.str.contains(rf"(?i)\b{word}", regex=True)]
        assert categories.nunique() >= 2, word


def test_every_query_is_judged_by_items_that_are_there():
    folder = sample("videos").path("queries.tsv").parent
    queries = read_queries(folder / "queries.tsv")
    judgements = read_judgements(folder / "qrels.tsv")
    known = read_source("sample:videos").catalog.ids
    assert len(queries) >= 40
    assert set(judgements) == set(queries)
    for grades in judgements.values():
        assert all(item in known for item in grades)
        assert max(grades.values()) == 3
        assert min(grades.values()) == 0


def test_in_many_queries_the_matching_words_lose():
    """An item that was judged irrelevant shares more words with the query than the best ones do."""
    folder = sample("videos").path("queries.tsv").parent
    queries = read_queries(folder / "queries.tsv")
    judgements = read_judgements(folder / "qrels.tsv")
    catalog, analyzer = read_source("sample:videos").catalog, Analyzer()
    words = dict(zip(catalog.ids, map(set, map(analyzer.terms, catalog.texts())), strict=True))
    losing = 0
    for query, grades in judgements.items():
        asked = set(analyzer.terms(queries[query]))
        shared = {item: len(asked & words[item]) for item in grades}
        best = max(shared[item] for item, grade in grades.items() if grade == 3)
        losing += any(shared[item] > best for item, grade in grades.items() if grade == 0)
    assert losing >= 10


@pytest.mark.parametrize("file", ["movies.csv", "ratings.csv"])
def test_the_fingerprint_changes_with_either_file(tmp_path, monkeypatch, file):
    before = sample("movies").fingerprint()
    for name in ("movies.csv", "ratings.csv"):
        shutil.copy(sample("movies").path(name), tmp_path / name)
    monkeypatch.setattr(samples, "datasets_folder", lambda: tmp_path)
    assert sample("movies").fingerprint() == before
    with (tmp_path / file).open("a") as text:
        text.write("\n")
    assert sample("movies").fingerprint() != before

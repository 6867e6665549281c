"""The bundled data: there, whole, and known by a fingerprint."""

import shutil

import pytest

from qkvsearch.tables import samples
from qkvsearch.tables.judgements import read_judgements, read_queries
from qkvsearch.tables.samples import SAMPLES, sample
from qkvsearch.tables.sources import read_source


@pytest.mark.parametrize("name", SAMPLES)
def test_every_row_of_a_sample_is_kept(name):
    dataset = read_source(f"sample:{name}")
    assert len(dataset.catalog) > 100
    for report in dataset.reports:
        assert report.kept == report.read > 100
        assert report.repaired == 0


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

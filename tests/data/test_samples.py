"""The bundled data: there, whole, and known by a fingerprint."""

from __future__ import annotations

import shutil

import pytest

from qkvsearch.data import samples
from qkvsearch.data.samples import SAMPLES, sample
from qkvsearch.data.sources import read_source
from qkvsearch.data.tables import read_table


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


def test_every_rated_film_is_in_the_catalogue():
    dataset = read_source("sample:movies")
    ratings, _ = read_table(sample("movies").path("ratings.csv"))
    assert set(ratings["movie"]) <= set(dataset.catalog.ids.texts)
    assert dataset.interactions.ratings.min() >= 0.5
    assert dataset.interactions.ratings.max() <= 5


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

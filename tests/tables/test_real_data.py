"""The published data sets, where QKVSEARCH_DATA names a folder that holds them."""

import os
from pathlib import Path

import pytest

from qkvsearch.tables.sources import read_source


@pytest.fixture(scope="module")
def data():
    folder = os.environ.get("QKVSEARCH_DATA")
    if not folder:
        pytest.skip("QKVSEARCH_DATA is not set: it names a folder with the published data sets")
    return Path(folder)


@pytest.mark.parametrize(
    ("name", "films", "ratings", "users"),
    [
        ("ml-latest-small", 9_742, 100_836, 610),
        ("ml-100k", 1_682, 100_000, 943),
        ("ml-1m", 3_883, 1_000_209, 6_040),
    ],
)
@pytest.mark.slow
def test_movielens_is_read_with_the_published_counts(data, name, films, ratings, users):
    dataset = read_source(data / name)
    log = dataset.interactions
    assert (len(dataset.catalog), len(log), len(log.user_ids)) == (films, ratings, users)
    assert [dataset.reports[i].kept for i in (0, -1)] == [films, ratings]
    assert dataset.catalog.frame["genres"].notna().all()
    assert log.times_comparable == (name != "ml-1m")


def test_every_talk_is_read(data):
    dataset = read_source(data / "ted" / "talks.csv")
    assert len(dataset.catalog) == dataset.reports[0].read == 2_550
    assert dataset.catalog.text_columns == ("title", "event", "speaker", "tags")


def test_messy_videos_are_merged_and_every_row_accounted_for(data):
    dataset = read_source(data / "youtube" / "USvideos_2017.csv")
    report = dataset.reports[0]
    assert (report.read, report.kept) == (7_998, 2_334)
    assert report.kept == len(dataset.catalog)
    assert report.read == report.kept + report.merged + report.skipped.total()

"""What every source gives: one content, one catalog and one log, and every row accounted for.

The content is two films with awkward titles, watched by two people, and a row that nobody can use.
"""

import csv
import json

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkvsearch.tables.dataset import read_dataset
from qkvsearch.tables.files.tables import read_table
from qkvsearch.tables.frames import as_text
from qkvsearch.tables.samples import SAMPLES, sample
from qkvsearch.tables.sources import GENRES, read_source

FILMS = [
    {"movieId": 12, "title": "Teapot, The (1995)", "genres": "Animation|Comedy"},
    {"movieId": 7, "title": 'Été "bleu" (1980)', "genres": "War"},
]
RATINGS = [
    {"userId": 6, "movieId": 7, "rating": 1, "timestamp": 90},
    {"userId": 5, "movieId": 12, "rating": 4, "timestamp": 100},
    {"userId": 6, "movieId": 99, "rating": 3, "timestamp": 90},
]
UNKNOWN = "with an item that is not in the catalog"


def delimited(delimiter, suffix, encoding="utf-8"):
    def write(folder):
        paths = []
        for name, rows in (("items", FILMS), ("log", RATINGS)):
            paths.append(folder / f"{name}{suffix}")
            with paths[-1].open("w", encoding=encoding, newline="") as file:
                writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
                writer.writeheader()
                writer.writerows(rows)
        return read_dataset(*paths)

    return write


def json_lines(folder):
    for name, rows in (("items", FILMS), ("log", RATINGS)):
        lines = [json.dumps(row, ensure_ascii=False) for row in rows]
        (folder / f"{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return read_dataset(folder / "items.jsonl", folder / "log.jsonl")


def json_arrays(folder):
    (folder / "items.json").write_text(json.dumps(FILMS), encoding="utf-8")
    (folder / "log.json").write_text(json.dumps(RATINGS, indent=2), encoding="utf-8")
    return read_dataset(folder / "items.json", folder / "log.json")


def parquet(folder):
    pytest.importorskip("pyarrow", reason="Parquet needs the extra [parquet]")
    pd.DataFrame(FILMS).to_parquet(folder / "items.parquet")
    pd.DataFrame(RATINGS).to_parquet(folder / "log.parquet")
    return read_dataset(folder / "items.parquet", folder / "log.parquet")


def frames(folder):
    return read_dataset(pd.DataFrame(FILMS), pd.DataFrame(RATINGS))


def movielens_csv(folder):
    delimited(",", ".csv")(folder)
    (folder / "items.csv").rename(folder / "movies.csv")
    (folder / "log.csv").rename(folder / "ratings.csv")
    return read_source(folder)


def movielens_dat(folder):
    for name, rows in (("movies.dat", FILMS), ("ratings.dat", RATINGS)):
        lines = ["::".join(map(str, row.values())) for row in rows]
        (folder / name).write_text("\n".join(lines) + "\n", encoding="latin-1")
    return read_source(folder)


def movielens_100k(folder):
    films = []
    for film in FILMS:
        flags = ["1" if genre in film["genres"].split("|") else "0" for genre in GENRES]
        films.append("|".join([str(film["movieId"]), film["title"], "", "", "", *flags]))
    ratings = ["\t".join(map(str, row.values())) for row in RATINGS]
    for name, lines in (("u.item", films), ("u.data", ratings)):
        (folder / name).write_text("\n".join(lines) + "\n", encoding="latin-1")
    return read_source(folder)


def movielens_ranked(folder):
    """`::` for the films, and a CSV that ranks each user's ratings in place of times."""
    movielens_dat(folder)
    (folder / "ratings.dat").unlink()
    ranked = pd.DataFrame(RATINGS)
    ranked.columns = ["user", "item", "rating", "time_rank_in_user"]
    ranked.to_csv(folder / "ratings.csv", index=False)
    return read_source(folder)


SOURCES = {
    "CSV": delimited(",", ".csv"),
    "CSV with semicolons": delimited(";", ".csv"),
    "CSV with bars": delimited("|", ".csv"),
    "CSV with a mark": delimited(",", ".csv", "utf-8-sig"),
    "CSV in UTF-16": delimited(",", ".csv", "utf-16"),
    "CSV in Windows-1252": delimited(",", ".csv", "cp1252"),
    "TSV": delimited("\t", ".tsv"),
    "JSON Lines": json_lines,
    "JSON arrays": json_arrays,
    "Parquet": parquet,
    "frames": frames,
    "MovieLens CSV": movielens_csv,
    "MovieLens 1M": movielens_dat,
    "MovieLens 100K": movielens_100k,
    "MovieLens, ranked": movielens_ranked,
}


@pytest.fixture(params=SOURCES)
def dataset(request, tmp_path):
    return SOURCES[request.param](tmp_path)


class TestEverySource:
    def test_the_catalog_is_the_same(self, dataset):
        frame = dataset.catalog.frame
        assert list(dataset.catalog.ids) == [7, 12]
        assert frame["id"].tolist() == ["7", "12"]
        assert frame["title"].tolist() == ['Été "bleu" (1980)', "Teapot, The (1995)"]
        assert frame["genres"].tolist() == ["War", "Animation|Comedy"]
        assert frame["year"].tolist() == [1980, 1995]
        assert set(dataset.catalog.text_columns) == {"title", "genres"}

    def test_the_log_is_the_same(self, dataset):
        log = dataset.interactions
        assert (list(log.user_ids), list(log.item_ids)) == ([5, 6], [7, 12])
        assert (log.users.tolist(), log.items.tolist()) == ([0, 1], [1, 0])
        assert log.ratings.tolist() == [4, 1]
        assert log.times.tolist() == [100, 90]

    def test_every_row_is_kept_merged_or_skipped_for_a_reason(self, dataset):
        items, log = dataset.reports
        assert (items.read, items.kept) == (2, 2)
        assert (log.read, log.kept, log.merged, log.skipped) == (3, 2, 0, {UNKNOWN: 1})


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_gives_its_ids_back_as_they_are_in_its_file(name):
    dataset = read_source(f"sample:{name}")
    with sample(name).path(sample(name).items).open(encoding="utf-8", newline="") as file:
        written = sorted(row["id"] for row in csv.DictReader(file))
    assert list(dataset.catalog.ids) == written
    for report in dataset.reports:
        assert_accounted_for(report)


@pytest.mark.parametrize("ids", [["007", "7"], ["a b", "é"], [2**63 - 1, -1], ["1.0", "1.1"]])
@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_ids_come_back_as_given(tmp_path, ids, suffix):
    path = tmp_path / f"items{suffix}"
    frame = pd.DataFrame({"id": ids, "title": ["a", "b"]})
    if suffix == ".parquet":
        pytest.importorskip("pyarrow", reason="Parquet needs the extra [parquet]")
        frame.to_parquet(path)
    elif suffix == ".jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_csv(path, index=False, sep="\t" if suffix == ".tsv" else ",")
    assert set(read_dataset(path, None).catalog.ids) == set(ids)


cell = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
cell = cell | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.booleans()
rows_of_cells = st.lists(st.fixed_dictionaries({"a": cell, "b": cell}), min_size=1, max_size=5)


@given(rows_of_cells)
def test_any_objects_survive_json_lines_as_a_frame_of_them_does(tmp_path_factory, rows):
    path = tmp_path_factory.getbasetemp() / "round_trip.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    frame, report = read_table(path)
    expected = as_text(pd.DataFrame(rows, dtype=object))
    pd.testing.assert_frame_equal(frame.reset_index(drop=True), expected)
    assert report.read == len(rows)


@given(st.lists(st.tuples(st.text(max_size=6), st.integers(-(2**63), 2**63 - 1))))
def test_any_texts_and_numbers_survive_parquet(tmp_path_factory, rows):
    pytest.importorskip("pyarrow", reason="Parquet needs the extra [parquet]")
    rows = [(text.encode(errors="replace").decode(), number) for text, number in rows]
    frame = pd.DataFrame(rows, columns=["text", "number"]).astype({"number": "Int64"})
    path = tmp_path_factory.getbasetemp() / "round_trip.parquet"
    frame.to_parquet(path)
    back, report = read_table(path)
    assert report.read == len(rows)
    assert back["text"].fillna("").tolist() == [text for text, _ in rows]
    assert back["number"].tolist() == [str(number) for _, number in rows]


messy_id = st.sampled_from(["1", "2", " 1", "", "#NAME?", "x"])
messy_row = st.tuples(messy_id, messy_id, st.sampled_from(["1", "5", "-2", "nan", "inf"]))


@given(st.lists(messy_row, min_size=1, max_size=12))
def test_the_counts_of_any_messy_log_add_up(rows):
    """Kept is what the log holds, counted apart from the report's own sum."""
    frame = pd.DataFrame([*rows, ("9", "1", "5")], columns=["user", "item", "rating"])
    items = pd.DataFrame({"id": ["1", "2"], "title": ["a", "b"]})
    dataset = read_dataset(items, frame)
    report = dataset.reports[1]
    assert report.kept == len(dataset.interactions)
    assert_accounted_for(report)
    usable = [row for row in [*rows, ("9", "1", "5")] if is_usable(*row)]
    assert report.skipped.total() == len(frame) - len(usable)
    assert report.merged == len(usable) - len({(u.strip(), i.strip()) for u, i, _ in usable})


def is_usable(user, item, rating):
    return bool(user.strip()) and item.strip() in ("1", "2") and rating in ("1", "5", "-2", "nan")


def assert_accounted_for(report):
    assert report.kept >= 0
    assert report.read == report.kept + report.merged + report.skipped.total()

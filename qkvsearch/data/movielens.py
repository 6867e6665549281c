"""MovieLens folders in the layouts GroupLens has published: CSV, `u.data` and `::`-separated."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from qkvsearch.data.catalog import catalog_from_frame
from qkvsearch.data.columns import Columns, require_column
from qkvsearch.data.files.tables import read_table
from qkvsearch.data.log import interactions_from_frame
from qkvsearch.data.readers import Dataset
from qkvsearch.data.report import ReadReport
from qkvsearch.errors import DataError, listed_names

RATING_FILES = ("ratings.csv", "ratings.dat", "u.data")
MOVIE_FILES = ("movies.csv", "movies.dat", "u.item")
RATING_NAMES = ["user", "item", "rating", "timestamp"]
# The 19 flags at the end of each line of u.item, in the order of u.genre.
GENRES = (
    "unknown Action Adventure Animation Children's Comedy Crime Documentary Drama Fantasy "
    "Film-Noir Horror Musical Mystery Romance Sci-Fi Thriller War Western"
).split()


def read_movielens(folder: str | Path) -> Dataset:
    """Ratings and films from files of any of the layouts; the tags of `tags.csv` become text.

    Raises `DataError` naming the files it looked for.
    """
    folder = Path(folder)
    ratings, movies = _first(folder, RATING_FILES), _first(folder, MOVIE_FILES)
    frame, report = _read_movies(movies)
    reports = [report]
    if movies.suffix == ".csv" and (folder / "tags.csv").is_file():
        frame, tag_report = _with_tags(frame, folder / "tags.csv")
        reports.append(tag_report)
    catalog = catalog_from_frame(frame, Columns(), report)
    rows, rating_report = _read_ratings(ratings)
    log = interactions_from_frame(rows, Columns(), rating_report, catalog.ids)
    reports.append(rating_report)
    for each in reports:
        each.conclude(strict=False)
    return Dataset(catalog, log, reports)


def _first(folder: Path, names: tuple[str, ...]) -> Path:
    found = next((folder / name for name in names if (folder / name).is_file()), None)
    if found is None:
        raise DataError(
            f"{folder}: none of {', '.join(names)} is here; a folder must be a MovieLens data "
            "set. For files of your own use `items` and `interactions`"
        )
    return found


def _read_ratings(path: Path) -> tuple[pd.DataFrame, ReadReport]:
    if path.suffix == ".csv":
        return read_table(path)
    return read_table(path, delimiter="::" if path.suffix == ".dat" else "\t", names=RATING_NAMES)


def _read_movies(path: Path) -> tuple[pd.DataFrame, ReadReport]:
    if path.suffix == ".csv":
        return read_table(path)
    if path.suffix == ".dat":
        names = ["id", "title", "genres"]
        return read_table(path, delimiter="::", names=names, encoding="latin-1")
    names = ["id", "title", "released", "video_released", "url", *GENRES]
    frame, report = read_table(path, delimiter="|", names=names, encoding="latin-1")
    flags = frame[GENRES].eq("1")
    frame["genres"] = ["|".join(flags.columns[row]) for row in flags.to_numpy()]
    return frame[["id", "title", "genres", "released"]], report


def _with_tags(frame: pd.DataFrame, path: Path) -> tuple[pd.DataFrame, ReadReport]:
    """Each film's distinct tags, the most used first, as one more column."""
    tags, report = read_table(path)
    names = list(tags.columns)
    item = require_column("item", None, names, report.file)
    film = require_column("id", None, list(frame.columns), report.file)
    if "tag" not in names:
        raise DataError(f"{path}: no column 'tag' (columns: {listed_names(names)})")
    used = tags[tags[item].isin(frame[film]) & tags["tag"].notna()]
    report.skip("without a tag or of no film in the catalog", tags.index.difference(used.index))
    counted = used.assign(tag=used["tag"].str.casefold()).value_counts([item, "tag"])
    joined = counted.reset_index().groupby(item, sort=False)["tag"].agg("|".join)
    return frame.assign(tags=frame[film].map(joined)), report

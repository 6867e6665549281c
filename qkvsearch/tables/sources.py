"""The sources that a build reads: a bundled sample, a MovieLens folder, one file, or two."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd

from qkvsearch._utils.freed_memory import release_freed_memory
from qkvsearch._utils.limits import ROWS
from qkvsearch.errors import DataError, listed_names
from qkvsearch.tables.catalog import catalog_from_frame
from qkvsearch.tables.columns import Columns, find_column, require_column
from qkvsearch.tables.dataset import (
    ALL_SHEETS,
    SOURCE,
    Dataset,
    Source,
    dataset_of,
    load,
    load_details,
    load_items,
    read_dataset,
    rows_of_items,
    rows_of_log,
)
from qkvsearch.tables.documents.document_files import documents_of
from qkvsearch.tables.files.tables import read_encoded, read_table
from qkvsearch.tables.log import interactions_from_table
from qkvsearch.tables.report import ReadReport
from qkvsearch.tables.role_choice import LOG_TYPES, users_column
from qkvsearch.tables.samples import sample
from qkvsearch.tables.table import Table

SAMPLE = "sample:"
# MovieLens in the layouts that GroupLens has published: CSV, `::` between cells, and `u.data`.
RATING_FILES = ("ratings.csv", "ratings.dat", "u.data")
MOVIE_FILES = ("movies.csv", "movies.dat", "u.item")
RATING_NAMES = ["user", "item", "rating", "timestamp"]
# The 19 flags at the end of each line of u.item, in the order of u.genre.
GENRES = (
    "unknown Action Adventure Animation Children's Comedy Crime Documentary Drama Fantasy "
    "Film-Noir Horror Musical Mystery Romance Sci-Fi Thriller War Western"
).split()


def read_source(
    source: Source | None = None,
    items: Source | None = None,
    interactions: Source | None = None,
    columns: Columns | None = None,
    join: Source | None = None,
) -> Dataset:
    """Read `source`: `sample:NAME`, a MovieLens folder, or one file, which is a log if it has
    users, else a catalog; or read `items` and `interactions`. join: tables that add columns to the
    items, by id. Raises `DataError`.
    """
    dataset = _read(source, items, interactions, columns, join)
    release_freed_memory()
    return dataset


def _read(
    source: Source | None,
    items: Source | None,
    interactions: Source | None,
    columns: Columns | None,
    join: Source | None,
) -> Dataset:
    is_sample = isinstance(source, str) and source.startswith(SAMPLE)
    if is_sample or (isinstance(source, str | Path) and _is_data_set(source)):
        others = (items, interactions, join)
        if any(each is not None for each in others) or columns not in (None, Columns()):
            raise DataError(
                f"{source} is known: leave out `items`, `interactions`, `join` and the columns"
            )
        if not is_sample:
            return read_movielens(Path(str(source)))
        bundled = sample(str(source).removeprefix(SAMPLE))
        return read_dataset(bundled.path(bundled.items), bundled.path(bundled.interactions))
    columns = columns or Columns()
    is_book = isinstance(source, str | Path) and str(source).endswith(ALL_SHEETS)
    if is_book and items is None:
        source, items = None, source
    if source is None:
        return read_dataset(items, interactions, columns, join)
    table, report = load(source, SOURCE, columns)
    of_source = columns if interactions is None else replace(columns, user=None, item=None)
    is_log = _is_log(table, of_source)
    if is_log and items is None and columns.texts is not None:
        raise DataError("`texts` are the texts of `items`, which were not given")
    if is_log and interactions is None:
        of_items, details = load_items(items, columns, join)
        return dataset_of(of_items, rows_of_log(table, report, columns), columns, details)
    if items is None and not is_log:
        ROWS.check(len(table), report.file)
        catalog = rows_of_items(table, report, columns)
        details = load_details(join, columns)
        if interactions is None:
            columns.refuse([*LOG_TYPES], "interactions")
            return dataset_of(catalog, None, columns, details)
        log = load(interactions, "interactions", columns)
        return dataset_of(catalog, log, columns, details)
    raise DataError(
        f"{report.file}: give a SOURCE, or `items` and `interactions`; write a pattern of "
        "files in quotes: --interactions 'logs/*.csv'"
    )


def _is_data_set(source: str | Path) -> bool:
    """Return whether a folder is that of a data set, or at least has no documents."""
    try:
        folder = Path(source)
        if not folder.is_dir():
            return False
        has_known = any((folder / name).is_file() for name in (*RATING_FILES, *MOVIE_FILES))
        return has_known or documents_of(folder) is None
    except DataError:  # it has no documents
        return True
    except (OSError, ValueError):  # too long for a path, such as a query
        return False


def _is_log(table: Table, columns: Columns) -> bool:
    """Return whether a file is a log: it has users.

    With titles and distinct ids it is a catalog, and the users are authors; unless it has items
    and times as well, so that the ids are of orders.
    """
    names = list(table.columns)
    if columns.user is not None or columns.item is not None:
        return True
    if columns.id is not None or not users_column(table):
        return False
    title = find_column("title", columns.title, names, "")
    id_ = find_column("id", None, [name for name in names if name != title], "")
    if title is None or id_ is None or not table.is_unique(id_):
        return True
    others = [name for name in names if name not in (title, id_)]
    return all(find_column(role, None, others, "") for role in ("item", "time"))


# --- MovieLens ---


def read_movielens(folder: str | Path) -> Dataset:
    """Read ratings and films in any of the layouts; the tags of `tags.csv` become text.

    Raises `DataError` that names the files it looked for.
    """
    folder = Path(folder)
    ratings, movies = _first_file(folder, RATING_FILES), _first_file(folder, MOVIE_FILES)
    frame, report = _read_movies(movies)
    reports = [report]
    if movies.suffix == ".csv" and (folder / "tags.csv").is_file():
        frame, tag_report = _with_tags(frame, folder / "tags.csv")
        reports.append(tag_report)
    catalog = catalog_from_frame(frame, Columns(), report)
    table, rating_report = _read_ratings(ratings)
    log = interactions_from_table(table, Columns(), rating_report, catalog.ids)
    reports.append(rating_report)
    for each in reports:
        each.conclude(strict=False)
    return Dataset(catalog, log, reports)


def _first_file(folder: Path, names: tuple[str, ...]) -> Path:
    path = next((folder / name for name in names if (folder / name).is_file()), None)
    if path is None:
        raise DataError(
            f"{folder}: none of {', '.join(names)} is here; a folder must be a MovieLens data "
            "set, or have documents (.srt, .vtt, .txt, .md, .html). For other files of your own "
            "use `items` and `interactions`"
        )
    return path


def _read_ratings(path: Path) -> tuple[Table, ReadReport]:
    if path.suffix == ".csv":
        return read_encoded(path)
    return read_encoded(path, delimiter="::" if path.suffix == ".dat" else "\t", names=RATING_NAMES)


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
    """Add a column of each film's distinct tags, the most used first."""
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

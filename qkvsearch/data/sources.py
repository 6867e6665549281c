"""The sources that a build can read: a bundled sample, a MovieLens folder, one file, two files."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from qkvsearch.data.columns import Columns, find_column
from qkvsearch.data.movielens import read_movielens
from qkvsearch.data.readers import Dataset, Source, load, read_dataset
from qkvsearch.data.samples import sample
from qkvsearch.errors import DataError

SAMPLE = "sample:"


def read_source(
    source: Source | None = None,
    items: Source | None = None,
    interactions: Source | None = None,
    columns: Columns | None = None,
) -> Dataset:
    """`source`: `sample:NAME`, a MovieLens folder, or one file, a log where it has users, else a
    catalog. Raises `DataError`.
    """
    is_sample = isinstance(source, str) and source.startswith(SAMPLE)
    if is_sample or (isinstance(source, str | Path) and Path(source).is_dir()):
        if items is not None or interactions is not None or columns not in (None, Columns()):
            raise DataError(f"{source} is known: leave out `items`, `interactions` and the columns")
        if not is_sample:
            return read_movielens(Path(str(source)))
        bundled = sample(str(source).removeprefix(SAMPLE))
        return read_dataset(bundled.path(bundled.items), bundled.path(bundled.interactions))
    if source is not None:
        table = load(source, "source")
        if interactions is None and _is_log(table[0], columns or Columns()):
            interactions = table
        elif items is None:
            items = table
        else:
            raise DataError("give a SOURCE, or `items` and `interactions`, not all three")
    return read_dataset(items, interactions, columns)


def _is_log(frame: pd.DataFrame, columns: Columns) -> bool:
    """A file with users is a log. With titles and distinct ids it is not: the users are authors."""
    names = list(frame.columns)
    if columns.user is not None or columns.item is not None:
        return True
    if find_column("user", None, names, "") is None or columns.id is not None:
        return False
    title = find_column("title", columns.title, names, "")
    item = find_column("id", None, [name for name in names if name != title], "")
    return title is None or item is None or not frame[item].is_unique

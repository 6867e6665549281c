"""The sources that a build can read: a bundled sample, a MovieLens folder, one file, two files."""

from __future__ import annotations

from pathlib import Path

from qkvsearch._utils.limits import ROWS
from qkvsearch.data.columns import Columns, find_column
from qkvsearch.data.columns.choice import has_users
from qkvsearch.data.files.encoded import EncodedTable
from qkvsearch.data.movielens import read_movielens
from qkvsearch.data.readers import Dataset, Source, load_encoded, read_dataset
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
    if is_sample or (isinstance(source, str | Path) and _is_folder(source)):
        if items is not None or interactions is not None or columns not in (None, Columns()):
            raise DataError(f"{source} is known: leave out `items`, `interactions` and the columns")
        if not is_sample:
            return read_movielens(Path(str(source)))
        bundled = sample(str(source).removeprefix(SAMPLE))
        return read_dataset(bundled.path(bundled.items), bundled.path(bundled.interactions))
    columns = columns or Columns()
    if source is not None:
        table, report = load_encoded(source, "source", columns.delimiter)
        if interactions is None and _is_log(table, columns):
            interactions = table, report
        elif items is None:
            ROWS.check(len(table), report.file)
            items = table.frame(), report
        else:
            raise DataError("give a SOURCE, or `items` and `interactions`, not all three")
    return read_dataset(items, interactions, columns)


def _is_folder(source: str | Path) -> bool:
    try:
        return Path(source).is_dir()
    except (OSError, ValueError):  # too long for a path, such as a query
        return False


def _is_log(table: EncodedTable, columns: Columns) -> bool:
    """A file with users is a log. With titles and distinct ids it is not: the users are authors;
    but for one whose items have a column beside the id, such as an order's.
    """
    names = list(table.columns)
    if columns.user is not None or columns.item is not None:
        return True
    if columns.id is not None or not has_users(table):
        return False
    title = find_column("title", columns.title, names, "")
    id_ = find_column("id", None, [name for name in names if name != title], "")
    if title is None or id_ is None or not table.is_unique(id_):
        return True
    others = [name for name in names if name not in (title, id_)]
    return all(find_column(role, None, others, "") for role in ("item", "time"))

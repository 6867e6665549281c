"""What a person can name as a source: a bundled sample, a known folder, a file, two files."""

from __future__ import annotations

from pathlib import Path

from qkvsearch.data.columns import Columns, find_column
from qkvsearch.data.movielens import read_movielens
from qkvsearch.data.readers import Dataset, Source, read_dataset
from qkvsearch.data.samples import sample
from qkvsearch.data.tables import read_table

SAMPLE = "sample:"


def read_source(
    source: Source | None = None,
    items: Source | None = None,
    interactions: Source | None = None,
    columns: Columns | None = None,
) -> Dataset:
    """`source` is `sample:NAME`, a MovieLens folder, or one file, which is taken for a log where it
    has a user and no title, and for a catalogue otherwise. Raises `DataError`.
    """
    if isinstance(source, str) and source.startswith(SAMPLE):
        bundled = sample(source.removeprefix(SAMPLE))
        log = bundled.path(bundled.interactions) if bundled.interactions else None
        return read_dataset(bundled.path(bundled.items), log)
    if isinstance(source, str | Path) and Path(source).is_dir():
        return read_movielens(source)
    if source is not None and items is None and not _is_log(source):
        items = source
    elif source is not None:
        interactions = interactions if interactions is not None else source
    return read_dataset(items, interactions, columns)


def _is_log(source: Source) -> bool:
    frame = read_table(source)[0] if isinstance(source, str | Path) else source
    names = [str(name) for name in frame.columns]
    return (
        find_column("user", None, names, "") is not None
        and find_column("title", None, names, "") is None
    )

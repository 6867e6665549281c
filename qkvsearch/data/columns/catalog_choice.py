"""Which column of a catalog plays which role, and which columns search reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import pandas as pd

from qkvsearch.data.columns import (
    Columns,
    find_text_columns,
    named,
    named_as_text,
    require_column,
)
from qkvsearch.data.columns.choice import MIN_SHARE, Choice, are_among, sample
from qkvsearch.data.columns.dates import are_times
from qkvsearch.data.files.encoded import EncodedTable
from qkvsearch.data.ids import id_texts
from qkvsearch.data.report import ReadReport
from qkvsearch.errors import listed_names

# Neither prose nor a price.
LIKE_AN_ID = r"(?!\d+[.,]\d+$)\S{1,64}"
# Several words, and no sentences of prose.
LIKE_A_TITLE = r"(?=.{3,120}$)(?=.*[^\W\d_]{2})\S+(\s+\S+)+"
BY_LOG = "by the items of the interactions"


@dataclass(frozen=True)
class CatalogChoice:
    """The columns of a catalog. The title may be the id; text: those that search reads."""

    id: str
    title: str
    text: list[str]


def choose_catalog_columns(
    frame: pd.DataFrame, columns: Columns, report: ReadReport, log: EncodedTable | None = None
) -> CatalogChoice:
    """Choose the columns of a catalog, and describe the choice in `report`.

    log: the interactions with these items, if any. Raises `DataError` where no column can be the
    id.
    """
    choice = Choice(frame, columns, report)
    choice.by_caller("id", "title")
    if log is not None and "id" not in choice.roles and (column := _id_in_log(choice, frame, log)):
        choice.assign("id", column, BY_LOG)
    choice.by_name("id")
    choice.by_name("title")
    if len(choice.names) > 1:
        choice.by_cells("id", partial(_are_ids, frame))
    if "id" not in choice.roles:
        require_column("id", None, choice.free(), report.file, choice.names)
    if columns.text is None:
        prose = named_as_text(choice.names)
        choice.by_cells("title", partial(_are_titles, prose))
        choice.by_cells("title", partial(_are_titles, ()))
    choice.warn_of_no_header()
    id_ = choice.roles["id"]
    title = choice.roles.get("title", id_)
    text = find_text_columns(columns.text, title, choice.names, report.file)
    choice.describe(searched=listed_names(text))
    return CatalogChoice(id_, title, text)


def _id_in_log(choice: Choice, frame: pd.DataFrame, log: EncodedTable) -> str | None:
    """Return the first column whose values a column of the log names items by, if there is one.

    A catalog may have several ids, such as a SKU and an EAN. Columns named as ids come first.
    """
    item = choice.columns.item
    items = [item] if item in log else named("item", list(log.columns))
    samples = [sample(log, str(name)) for name in items]
    ids = named("id", choice.free())
    for name in [*ids, *(name for name in choice.free() if name not in ids)]:
        values = set(id_texts(frame[name].dropna()).str.casefold())
        if any(len(cells) and are_among(values, cells).mean() > MIN_SHARE for cells in samples):
            return name
    return None


def _are_ids(frame: pd.DataFrame, cells: pd.Series) -> pd.Series:
    """Return which cells look like ids; none where two rows have the same or one is a date."""
    column = frame[cells.name]
    if len(column) < 2 or column.hasnans or not column.is_unique or are_times(cells).any():
        return pd.Series(False, index=cells.index)
    return cells.str.strip().str.fullmatch(LIKE_AN_ID).astype(bool)


def _are_titles(prose: Sequence[str], cells: pd.Series) -> pd.Series:
    """Return which cells have a few words; none in a column of `prose`, or of repeated cells."""
    if cells.name in prose or cells.nunique() <= MIN_SHARE * len(cells) or are_times(cells).any():
        return pd.Series(False, index=cells.index)
    return cells.str.strip().str.fullmatch(LIKE_A_TITLE).astype(bool)

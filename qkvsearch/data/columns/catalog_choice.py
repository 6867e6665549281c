"""Which column of a catalog plays which role."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pandas as pd

from qkvsearch.data.columns import Columns, named, require_column
from qkvsearch.data.columns.choice import BY_CELLS, MIN_SHARE, Choice, are_among, sample, spread
from qkvsearch.data.columns.column_types import typed
from qkvsearch.data.columns.dates import are_times
from qkvsearch.data.columns.searched import holds_codes, why_unsearched
from qkvsearch.data.files.encoded import EncodedTable
from qkvsearch.data.ids import id_texts
from qkvsearch.data.report import ReadReport

# What the name of a single column has where cells are separated by another sign than expected.
DELIMITER = re.compile(r"[,;|\t:^~/]")
# A short text with a word in it.
LIKE_A_TITLE = re.compile(r"(?=.*[^\W\d_]{2}).{2,120}")
BY_LOG = "by the items of the interactions"


@dataclass(frozen=True)
class CatalogChoice:
    """The columns of a catalog. id: None where the numbers of the rows are the ids. title: the id,
    None included, where no column is the title.
    """

    id: str | None
    title: str | None


def choose_catalog_columns(
    frame: pd.DataFrame, columns: Columns, report: ReadReport, log: EncodedTable | None = None
) -> CatalogChoice:
    """Choose the columns of a catalog, and describe the choice in `report`.

    log: the interactions with these items, if any. Raises `DataError` where no column can be the
    id of the items of a log.
    """
    choice = Choice(frame, columns, report)
    choice.by_caller("id", "title")
    if log is not None and "id" not in choice.roles and (column := _id_in_log(choice, frame, log)):
        choice.assign("id", column, BY_LOG)
    choice.by_name("id")
    choice.by_name("title")
    if "id" not in choice.roles:
        codes = [name for name in choice.free() if _are_ids(frame[name])]
        if codes and len(choice.names) > 1:
            choice.assign("id", codes[0], BY_CELLS)
    is_one = len(choice.names) == 1 and DELIMITER.search(choice.names[0])
    if "id" not in choice.roles and (log is not None or is_one):
        require_column("id", None, choice.free(), report.file, choice.names)
    if "title" not in choice.roles:
        titles = [name for name in choice.free() if _are_titles(frame[name])]
        if titles:
            choice.assign("title", titles[0], BY_CELLS)
    choice.warn_of_no_header()
    id_ = choice.roles.get("id")
    choice.describe(id="" if id_ else "the number of the row (`id_column` names a column)")
    return CatalogChoice(id_, choice.roles.get("title", id_))


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


def _are_ids(column: pd.Series) -> bool:
    """Return whether a column has a code of its own in every row."""
    if len(column) < 2 or column.hasnans or not column.is_unique:
        return False
    cells = spread(column)
    return not are_times(cells).any() and holds_codes(typed(cells).cells)


def _are_titles(column: pd.Series) -> bool:
    """Return whether a column has short texts that search reads, most of which differ."""
    cells = spread(column.dropna())
    if cells.empty or cells.nunique() <= MIN_SHARE * len(cells) or are_times(cells).any():
        return False
    texts = typed(cells)
    is_title = cells.str.strip().str.fullmatch(LIKE_A_TITLE)
    return texts.type == "text" and not why_unsearched(texts.cells) and is_title.mean() > MIN_SHARE

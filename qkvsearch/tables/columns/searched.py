"""Which columns search reads: texts and lists, but no codes, links, paths, addresses or numbers."""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING

from qkvsearch.tables.column_facts import LIST_SEPARATOR
from qkvsearch.tables.columns import EMAIL, words_of
from qkvsearch.tables.columns.number_codes import LIKE_A_NUMBER, are_number_codes
from qkvsearch.tables.ids import id_text

if TYPE_CHECKING:
    import pandas as pd

# A word with a digit, but no year, count or other small number, and not as short as "4k" or "mp3".
CODE = re.compile(r"(?=\S*\d)(?!(?:0|[1-9]\d{0,4})$)\S{4,64}")
# As YouTube gives them: PT1H2M, PT40M10S.
LENGTH_OF_TIME = r"P(?:\d+D)?T(?:\d+(?:\.\d+)?[HMS])+"
# Dates, times, prices and percentages are no codes, though they are distinct too. A number with
# several dots is one, unless they separate thousands.
NO_CODE = re.compile(
    rf"{LENGTH_OF_TIME}|"
    r"\d{4}-\d\d-\d\d.*|\d{1,3}:\d\d(:\d\d)?"
    r"|\W*\d{1,6}[.,]\d{1,3}\D{0,4}|\W*\d{1,3}([.,]\d{3})+([.,]\d{1,2})?\D{0,4}"
)
# Whole numbers are codes from this on: bar codes have 8 to 14 digits. Smaller ones are amounts.
MIN_NUMBER = 10_000_000
# The minimal shares of codes and of distinct values among the cells of a column of codes.
MIN_CODE_SHARE, MIN_DISTINCT_SHARE = 0.9, 0.5
# What more than this share of a column's entries is, the column is.
MIN_SHARE = 0.9
SAMPLE = 1_000
# The last word of the name of a column of ids.
NAMES_OF_IDS = frozenset(("id", "ids", "uuid", "guid"))
LINK = r"((https?|ftp|file|data|mailto|tel|blob|s3|gs):|www\.)\S+"
KINDS = {
    "links": re.compile(rf"\s*{LINK}(\s+{LINK})*\s*", re.I),
    "file paths": re.compile(
        r"([a-z]:|\.{0,2}|~)?[\\/]\S.*\.\w{1,5}|\S*[\\/]\S*\.[a-z]\w{1,4}|"
        r"\S+\.(jpe?g|png|gif|webp|svg|bmp|tiff?|pdf|mp[34]|mov|wav|html?|xml|zip|csv|docx?|xlsx?)",
        re.I,
    ),
    "e-mail addresses": re.compile(rf"\s*{EMAIL}\s*"),
    "lengths of time": re.compile(rf"\s*{LENGTH_OF_TIME}\s*"),
    "numbers": re.compile(r"[\W\d_]*"),
    "encoded data": re.compile(r"(?=\S*[\d+/=])[\w+/=.-]{65,}|[\da-fA-F]{24,}", re.A),
}


def why_unsearched(cells: pd.Series, name: str = "") -> str:
    """Return why search does not read a column of texts or lists; "" where it does.

    name: of the column. Ids of something else, such as artists, recur and so are no `codes`.

    >>> import pandas as pd
    >>> why_unsearched(pd.Series(["https://a.example/1", None])), why_unsearched(pd.Series(["Red"]))
    ('links', '')
    >>> why_unsearched(pd.Series(["a/17f3", "a/17f3", "a/90"]), "creator.artist_id")
    'ids'
    """
    filled = cells.dropna()
    if filled.empty:
        return "empty"
    entries = entries_of(filled.iloc[:: max(1, len(filled) // SAMPLE)])
    kinds = (kind for kind, form in KINDS.items() if _share(entries, form) > MIN_SHARE)
    kind = next(kinds, "")
    are_ids = not NAMES_OF_IDS.isdisjoint(words_of(name)[-1:])
    if not kind and are_ids and are_codes(entries).mean() >= MIN_CODE_SHARE:
        return "ids"
    return "codes" if kind in ("", "numbers") and holds_codes(filled) else kind


def holds_codes(cells: pd.Series) -> bool:
    """Return whether nearly all entries of a column are codes, and most are distinct."""
    cells = cells.dropna()
    if cells.dtype.kind == "f" or cells.empty:
        return False
    if cells.dtype.kind in "iu" and cells.min() < MIN_NUMBER:
        return False
    entries = entries_of(cells)
    if hold_number_codes(entries):
        return True
    return bool(
        are_codes(entries).mean() >= MIN_CODE_SHARE
        and entries.nunique() > MIN_DISTINCT_SHARE * len(entries)
    )


def hold_number_codes(entries: pd.Series) -> bool:
    """Return whether nearly all entries are like numbers, and some tell that all are codes.

    >>> import pandas as pd
    >>> hold_number_codes(pd.Series(["3.1", "3.10", "4.2"])), hold_number_codes(pd.Series(["3.1"]))
    (True, False)
    """
    if are_like_numbers(entries).mean() < MIN_CODE_SHARE:
        return False
    return are_number_codes(entries)


def entries_of(column: pd.Series) -> pd.Series:
    """Return the cells' entries as text, under their rows; whole numbers have no point."""
    cells = column.dropna()
    if cells.dtype.kind == "f":
        return cells.map(id_text).astype(object)
    import pandas as pd

    lists = [str(cell).split(LIST_SEPARATOR) for cell in cells]
    rows = cells.index.repeat(list(map(len, lists)))
    # As objects: Arrow would copy long texts.
    return pd.Series(list(chain.from_iterable(lists)), rows, dtype=object)


def are_codes(entries: pd.Series) -> pd.Series:
    is_code: pd.Series = entries.str.fullmatch(CODE) & ~entries.str.fullmatch(NO_CODE)
    return is_code.astype(bool)


def are_like_numbers(entries: pd.Series) -> pd.Series:
    return entries.str.fullmatch(LIKE_A_NUMBER).astype(bool)


def _share(entries: pd.Series, form: re.Pattern[str]) -> float:
    return float(entries.str.fullmatch(form).astype(bool).mean())

"""Limits on the size of inputs: each limit, what happens beyond it, and how to raise it.

`python docs/generate.py` writes them as a table to docs/trust.md.
"""

import os
from dataclasses import dataclass

from qkvsearch.errors import DataError, QkvError


@dataclass(frozen=True)
class Limit:
    """A limit of `default` `what`, or of the value of the environment variable `raised_by`.

    >>> Limit("rows of a table", 3).check(4, "items.csv")
    Traceback (most recent call last):
    qkvsearch.errors.DataError: items.csv: more than 3 rows of a table are refused
    """

    what: str
    default: int
    beyond: str = "refused"
    raised_by: str = ""

    @property
    def value(self) -> int:
        """The limit in force. Raises `DataError` if the environment variable is no whole number."""
        text = os.environ.get(self.raised_by, "")
        if not text:
            return self.default
        if not text.replace("_", "").isdecimal():
            raise DataError(f"{self.raised_by}={text!r}: write a whole number")
        return int(text.replace("_", ""))

    def check(self, size: int, where: str, error: type[QkvError] = DataError) -> None:
        """Raise `error`, which names `where`, for a size above the limit."""
        if size > self.value:
            how = f" ({self.raised_by}=N in the environment raises that)" if self.raised_by else ""
            raise error(f"{where}: more than {self.value:,} {self.what} are refused{how}")


# --- inputs of a build ---

ROWS = Limit("rows of a table", 50_000_000, raised_by="QKVSEARCH_MAX_ROWS")
# A log is read in pieces and never is in memory as a whole.
LOG_ROWS = Limit("rows of interactions", 1_000_000_000, raised_by="QKVSEARCH_MAX_LOG_ROWS")
# A workspace stores a table in SQLite, which allows 2,000 columns, and adds a few.
COLUMNS = Limit("columns of a table", 1_990)
# More characters than a book. A longer cell is the rest of a file after a stray quote.
CELL = Limit("characters of a cell", 10_000_000, "row skipped and counted")
JSON_DEPTH = Limit("levels of JSON nesting", 100)
# The unpacked size may be this many bytes, or this many times the size of the file, whichever is
# more: few tables shrink to a hundredth, but a file made to fill the disk shrinks to a thousandth.
UNPACKED = Limit(
    "bytes unpacked (or 200 times those of the file)",
    100_000_000,
    raised_by="QKVSEARCH_MAX_UNPACKED",
)
UNPACKED_TIMES = 200
# The memory of a table: bytes for each cell, even an empty one, and one more for each character.
CELL_BYTES = 8
NAME = Limit("characters of a column's name", 1_000)
# A request names an item or a user in its address, which has at most 16 kB.
ID = Limit("characters of an id", 1_000, "row skipped and counted")
PACKED_FILES = Limit("files in an archive", 10_000, raised_by="QKVSEARCH_MAX_FILES")
# A packed file in a packed file, such as `orders.csv.gz` in an archive, but no deeper.
PACKED_LAYERS = Limit("layers of compression", 3)

# More than the 1,048,576 of Excel. A row may have any number, and those before it are blank.
SHEET_ROWS = Limit("rows of a sheet, blank ones included", 1_100_000)
LINES = Limit("bytes of a file of queries, judgements, ids or synonyms", 200_000_000)
# The least memory that an element of a spreadsheet's XML takes, in bytes.
ELEMENT_BYTES = 100
# Styles and the like, which are read as a whole and take 50 times as much memory.
WORKBOOK_PARTS = Limit("bytes of a spreadsheet besides its cells", 10_000_000)

# --- downloads and models ---

DOWNLOAD = Limit("bytes of a download", 1_000_000_000, raised_by="QKVSEARCH_MAX_DOWNLOAD")
MODEL_JSON = Limit("bytes of a JSON file of a model", 100_000_000)
# About 20,000 abstracts or 100,000 titles of MiniLM.
CACHE = Limit(
    "bytes of cached encoded texts; 0 for none",
    1_000_000_000,
    "oldest removed",
    "QKVSEARCH_MAX_CACHE",
)

# --- queries ---

QUERY = Limit("characters of a query or a name", 200_000)
# The weights between 512 words are a quarter of a million numbers, more than anyone reads.
ATTENDED = Limit("words that attend to each other", 512)
EXPRESSION = Limit("characters of a condition", 100_000)
EXPRESSION_DEPTH = Limit("levels of a nested condition", 250)
EXPRESSION_SECONDS = Limit("seconds of a condition", 2, "stopped", "QKVSEARCH_MAX_WHERE_SECONDS")
EXPRESSION_TEXT = Limit("characters of a text made by a condition", 1_000_000)

ALL = {name: limit for name, limit in list(globals().items()) if isinstance(limit, Limit)}


def check_unpacked(size: int, packed: int, where: str) -> None:
    """Raise `DataError` where a file of `packed` bytes becomes `size` bytes, too many of them."""
    if size > UNPACKED_TIMES * packed:
        UNPACKED.check(size, where)

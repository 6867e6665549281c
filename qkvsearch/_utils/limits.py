"""What is refused for its size: every limit, what is done beyond it, and how it is raised.

docs/trust.md has them as a table, which `python docs/generate.py` writes.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from qkvsearch.errors import DataError, QkvError


@dataclass(frozen=True)
class Limit:
    """At most `default` of `what`, or what the environment variable `raised_by` says.

    >>> Limit("rows of a table", 3).check(4, "items.csv")
    Traceback (most recent call last):
    qkvsearch.errors.DataError: items.csv: more than 3 rows of a table are refused
    """

    what: str
    default: int
    beyond: str = "refused"
    raised_by: str = ""

    @property
    def most(self) -> int:
        """Raises `DataError` where the environment variable is no whole number."""
        found = os.environ.get(self.raised_by, "") if self.raised_by.isupper() else ""
        if not found:
            return self.default
        if not found.replace("_", "").isdecimal():
            raise DataError(f"{self.raised_by}={found!r}: write a whole number")
        return int(found.replace("_", ""))

    def check(self, found: int, where: str, error: type[QkvError] = DataError) -> None:
        """Raise `error`, which names `where`, for more than the most."""
        if found > self.most:
            how = f" ({self.raised_by}=N in the environment raises that)" if self.raised_by else ""
            raise error(f"{where}: more than {self.most:,} {self.what} are refused{how}")


# --- what a build reads ---

ROWS = Limit("rows of a table", 50_000_000, raised_by="QKVSEARCH_MAX_ROWS")
# A log is read in pieces, and never is all of it in memory.
LOG_ROWS = Limit("rows of interactions", 1_000_000_000, raised_by="QKVSEARCH_MAX_LOG_ROWS")
# A workspace keeps a table in SQLite, which has 2,000 columns at most; it adds some of its own.
COLUMNS = Limit("columns of a table", 1_990)
# More characters than a book has. A longer cell is the rest of a file after a stray quote.
CELL = Limit("characters of a cell", 10_000_000, "skipped, its row, and counted")
JSON_DEPTH = Limit("levels of JSON in one another", 100)
# What a file unpacks to, and the table in it, may take so many bytes, or so many times those of the
# file, whichever is more: few tables shrink to a hundredth, and a file made to fill the memory or
# the disk shrinks to a thousandth.
UNPACKED = Limit(
    "bytes unpacked (or 200 times those of the file)",
    100_000_000,
    raised_by="QKVSEARCH_MAX_UNPACKED",
)
UNPACKED_TIMES = 200
# Of a table each cell takes so many bytes, even an empty one, and one more for each character.
CELL_BYTES = 8
NAME = Limit("characters of a column's name", 1_000)
PACKED_FILES = Limit("files in an archive", 10_000, raised_by="QKVSEARCH_MAX_FILES")
# A packed file in a packed file, as `orders.csv.gz` in an archive, but no further.
PACKED_LAYERS = Limit("times that a file is packed", 3)

# A query of a SQLite file may sort and group, in memory: a hostile view would fill the disk.
QUERY_SECONDS = Limit(
    "seconds without a row of a SQLite file", 60, "stopped", "QKVSEARCH_MAX_QUERY_SECONDS"
)
QUERY_MEMORY = Limit("bytes of memory that a query of a SQLite file takes", 500_000_000, "stopped")
QUERY_TEXT = Limit("bytes of a text in a query of a SQLite file that computes", 1_000_000)
# Styles and the like, which are read as a whole, and take 50 times as much memory.
WORKBOOK_PARTS = Limit("bytes of a spreadsheet beside its cells", 10_000_000)

# --- what is fetched, and models ---

DOWNLOAD = Limit("bytes of a download", 1_000_000_000, raised_by="QKVSEARCH_MAX_DOWNLOAD")
MODEL_JSON = Limit("bytes of a JSON file of a model", 100_000_000)

# --- what is asked ---

QUERY = Limit("characters of a text that is asked or named", 200_000)
# The weights of 512 words are a quarter of a million numbers, more than anyone reads.
ATTENDED = Limit("words that attend to each other", 512)
EXPRESSION = Limit("characters of a condition", 100_000)
EXPRESSION_DEPTH = Limit("parts of a condition in one another", 250)
EXPRESSION_SECONDS = Limit("seconds that a condition takes", 2, "stopped", "--where-seconds")
EXPRESSION_TEXT = Limit("characters of a text made by a condition", 1_000_000)

ALL = {name: limit for name, limit in list(globals().items()) if isinstance(limit, Limit)}


def check_unpacked(size: int, packed: int, where: str) -> None:
    """Raise `DataError` where a file of `packed` bytes becomes `size` bytes, too many of them."""
    if size > UNPACKED_TIMES * packed:
        UNPACKED.check(size, where)

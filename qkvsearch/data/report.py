"""What happened to every row that was read: the counts add up to the rows of the file."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from qkvsearch.data.columns.facts import ColumnFacts
from qkvsearch.errors import DataError


@dataclass
class ReadReport:
    """Rows of one file: each is kept, merged into another one, or skipped.

    `repaired` counts lines whose encoding was repaired, whether their rows were kept or not.

    >>> report = ReadReport("watches.csv", read=10, merged=2, repaired=1)
    >>> report.skip("without a user", 3)
    >>> report.kept, str(report)
    (5, 'watches.csv: 10 rows read = 5 kept + 2 merged + 3 skipped (3 without a user); 1 repaired')
    """

    file: str
    read: int = 0
    merged: int = 0
    repaired: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    columns: list[ColumnFacts] = field(default_factory=list)

    @property
    def kept(self) -> int:
        return self.read - self.merged - self.skipped.total()

    def skip(self, reason: str, rows: int) -> None:
        if rows:
            self.skipped[reason] += rows

    def note(self, count: int, sentence: str) -> None:
        """A note on `{n}` rows, where there are any."""
        if count:
            self.notes.append(sentence.format(n=f"{count:,}"))

    def require_rows(self) -> None:
        if not self.read:
            raise DataError(f"{self.file}: there are no rows in it, or only a header")

    def __str__(self) -> str:
        """All counts, even those that are 0."""
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.skipped.items())
        text = (
            f"{self.file}: {self.read:,} rows read = {self.kept:,} kept + {self.merged:,} merged + "
            f"{self.skipped.total():,} skipped" + (f" ({reasons})" if reasons else "")
        )
        return "; ".join([text, f"{self.repaired:,} repaired", *self.notes])

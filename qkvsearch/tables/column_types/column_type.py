"""What every type of column has: `ColumnType`, with what is usual as the default."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from qkvsearch._utils.folding import fold
from qkvsearch.errors import QkvError

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from qkvsearch.tables.column_facts import ParsedCells

# At most this share of the filled cells may be emptied because they do not fit the type.
MAX_UNFIT = 0.05
# The values that a facet lists of a column, the most frequent first.
MAX_VALUES = 20


class ColumnType(ABC):
    """A type of column. It has no state, and importing it imports no pandas."""

    # As options and workspaces spell it.
    name: ClassVar[str]
    # The type in a sentence: "a number".
    noun: ClassVar[str]
    # The place of its facets among those of other types, 0 for the type that says most of an item.
    facet_rank: ClassVar[int]
    # Search reads it, and conditions compare it with other types of text.
    is_text: ClassVar[bool] = False
    # Search reads the cells as they were in the file, if it reads the column.
    loses_words: ClassVar[bool] = False
    # Conditions compare it with other types of numbers.
    is_numeric: ClassVar[bool] = False
    # Facets and the map show it in ranges, and the page sorts by it.
    is_ordered: ClassVar[bool] = False
    # In a condition the beginning of a cell stands for all cells with it, as '2024' for its days.
    equals_beginnings: ClassVar[bool] = False
    # Words such as "none" stand for an empty cell, as signs such as "-" do.
    word_is_missing: ClassVar[bool] = True
    # The report says which cells keep a column text that nearly has the type.
    explains_misfits: ClassVar[bool] = True
    # How the page writes a cell: "number" (with its unit), "date", "yes/no", "entries" or "text".
    shown_as: ClassVar[str] = "text"

    def for_pages(self) -> dict[str, Any]:
        """Return what a page needs to know of a column of this type."""
        return {
            "type": self.name,
            "shown_as": self.shown_as,
            "is_text": self.is_text,
            "is_ordered": self.is_ordered,
        }

    # --- from a file ---

    def may_be(self, text: str) -> bool:
        """Return False for a text that surely is no cell of this type. It takes a moment: `read`
        takes milliseconds even for a few cells.
        """
        return True

    @abstractmethod
    def read(self, texts: pd.Series, counts: np.ndarray, convention: str = "") -> ParsedCells:
        """Read the distinct cells `texts`, objects (m,), of which there are `counts` (m,) each.

        convention: how ambiguous cells of the column were read before.
        """

    def read_requested(
        self, texts: pd.Series, counts: np.ndarray, convention: str = ""
    ) -> ParsedCells:
        """Read the cells of a column that the caller says has this type."""
        return self.read(texts, counts, convention)

    # --- stored cells, never None ---

    def is_as_written(self, text: str, cell: Any) -> bool:
        """Return whether a cell is shown as it was in the file, where it was `text`, which has no
        spaces around it. Otherwise that text is kept, for `show`.
        """
        return text == str(cell)

    def searched(self, cell: Any) -> str:
        """Return what search reads of a cell."""
        return str(cell)

    def has_lost_words(self, cell: Any, original: str) -> bool:
        """Return whether a cell, which may be None, was `original` in the file, with words that say
        more than the cell. Asked of types that lose words alone.
        """
        return False

    def entries(self, cell: Any) -> list[str]:
        """Return the values of a cell, as facets and the map name them."""
        return [str(cell)]

    def place(self, cell: Any) -> Any:
        """Return what a cell of an ordered type is ordered by on the map."""
        return cell

    def counted(
        self, counts: Mapping[Any, int], distinct: Sequence[Any], unit: str
    ) -> dict[str, int]:
        """Return how many items have each value, or range of values, for a facet.

        counts: how many items have each cell, without empty ones. distinct: all cells of the
        column, also those that no counted item has. unit: of a number.
        """
        entries = ((entry, n) for cell, n in counts.items() for entry in self.entries(cell))
        return most_frequent(entries)

    def test(self, text: str, is_prefix: bool) -> Callable[[Any], bool] | None:
        """Return the test of whether a cell is what `field:text` asks for, or with `is_prefix`
        `field:text*`; None where the words of the cell decide.
        """
        return None

    def compares_with(self, literal: Any) -> bool:
        """Return whether a condition may compare cells with a value of a type like this one; None
        for the cells of a column.
        """
        return True

    def is_beginning(self, text: str, uncertain: bool = False) -> bool:
        """Return whether a text is a cell or the beginning of one, if the type
        `equals_beginnings`. A condition compares no other text with cells of such a type.

        uncertain: the column has uncertain dates, which are compared with such dates as well.
        """
        return False

    def as_stored(self, value: str, convention: str) -> str:
        """Return a value or a range that is written as in the file the way cells are stored, so
        that they compare; any other text as it is. convention: of the column.
        """
        return value

    def in_order(self, value: str) -> str:
        """Return a range whose larger end stands first with its ends in order; any other text as it
        is. People who type one mean the same range.
        """
        return value

    def order(self, cell: Any) -> Any:
        """Return what a listing orders the cells of a column by."""
        return fold(cell) if isinstance(cell, str) else cell

    def condition(self, name: str, value: str, distinct: Sequence[Any]) -> tuple[str, list[Any]]:
        """Return the SQL of a value of a facet, with placeholders, and their values.

        name: the column in SQL. distinct: all cells of the column. Raises `QkvError` for a value
        that the type does not have.
        """
        return f"{name} = ?", [value]


def most_frequent(counted: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Return the most frequent values, equal ones by alphabet. A value may occur several times.

    >>> most_frequent([("b", 1), ("a", 1), ("c", 1), ("c", 2)])
    {'c': 3, 'a': 1, 'b': 1}
    """
    total: Counter[str] = Counter()
    for value, n in counted:
        total[value] += n
    return dict(sorted(total.items(), key=lambda pair: (-pair[1], pair[0]))[:MAX_VALUES])


class Range(NamedTuple):
    """LEAST..MOST as it was asked for; an end that was left out is empty."""

    least: str
    most: str
    # Whether MOST is asked for with a sign, as in LEAST..=MOST.
    has_sign: bool = False

    @classmethod
    def of(cls, value: str) -> Range | None:
        """Read a range; None for a text that is none.

        >>> Range.of("900..=100"), Range.of("900")
        (Range(least='900', most='100', has_sign=True), None)
        """
        least, dots, most = value.partition("..")
        if not dots:
            return None
        return cls(least, most.removeprefix("="), most.startswith("="))

    def turned(self) -> str:
        """Return the range with its ends exchanged.

        >>> Range("900", "100", True).turned()
        '100..=900'
        """
        return str(self._replace(least=self.most, most=self.least))

    def __str__(self) -> str:
        """The range as it is asked for."""
        return f"{self.least}..{'=' if self.has_sign else ''}{self.most}"


def range_condition(
    name: str, value: str, until: str, read: Callable[[str], Any]
) -> tuple[str, list[Any]]:
    """Return the SQL of LEAST..MOST, either of which may be left out, or of one value.

    until: "<" or "<=", whether MOST is in the range; LEAST..=MOST has it in any case, as people
    mean it. Raises `QkvError` where both are left out.

    >>> range_condition("year", "1990..1999", "<=", int)
    ('(year >= ? AND year <= ?)', [1990, 1999])
    >>> range_condition("price", "..=49.9", "<", float)
    ('(price <= ?)', [49.9])
    """
    asked = Range.of(value)
    if asked is None:
        return f"{name} = ?", [read(value)]
    if asked.has_sign:
        until = "<="
    ends = [(sign, end) for sign, end in ((">=", asked.least), (until, asked.most)) if end]
    if not ends:
        raise QkvError(f"`filter`: {value!r} has no end; LEAST..MOST, of which one may be left")
    expression = " AND ".join(f"{name} {sign} ?" for sign, _ in ends)
    return f"({expression})", [read(end) for _, end in ends]

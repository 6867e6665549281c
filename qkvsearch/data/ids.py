"""Users and items by the ids of the data, and the row numbers that arrays need."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

from qkvsearch.errors import UnknownIdError, suggest
from qkvsearch.terminal import shorten

Id = int | str
WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,18}")
# A whole number as pandas and spreadsheets write it next to gaps.
WITH_POINT = re.compile(r"(0|-?[1-9][0-9]{0,18})\.0+")
# White space, and marks that are as invisible.
BLANK = " \t\n\r\v\f\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, [*range(0x2000, 0x2010), 0x2060, 0xFEFF])
)


def id_text(value: Any, whole: bool = False) -> str:
    """The one spelling of an id, so that 7, 7.0 and "7 " from three files are the same user.

    whole: the ids are whole numbers, so that a text "7.0" is 7 as well; among others it may be a
    version, beside 7.1.

    >>> id_text(7), id_text(7.0), id_text(" 7 "), id_text("007"), id_text("1E5"), id_text(None)
    ('7', '7', '7', '007', '1E5', '')
    >>> id_text("7.0"), id_text("7.0", whole=True), id_text("007.0", whole=True)
    ('7.0', '7', '007.0')
    """
    if value is None:
        return ""
    if isinstance(value, float | np.floating):
        if math.isnan(value):
            return ""
        if float(value).is_integer():
            return str(int(value))
    text = str(value).strip(BLANK)
    found = WITH_POINT.fullmatch(text) if whole else None
    return found[1] if found else text


def id_texts(column: Any) -> Any:
    """A column of ids (a pandas Series) in their one spelling.

    Where all are whole numbers, be some of them written as 7.0, they are without the point.
    Version numbers, 1.0 beside 1.1, stay as they are.
    """
    texts = column.map(id_text).astype(object)
    if not texts.str.endswith(".0").any():
        return texts
    whole = texts.map(lambda text: id_text(text, whole=True))
    return whole if are_integers(whole[whole != ""]) else texts


def one_case(column: Any, counts: np.ndarray | None = None) -> Any:
    """A column of ids (a pandas Series) in which those that differ in case alone are one, in the
    spelling that is the most common, of equally common ones the first. counts (n,): how often each
    counts, once by default.

    >>> import pandas as pd
    >>> one_case(pd.Series(["Ann", "ANN", "bob", "ANN"])).tolist()
    ['ANN', 'ANN', 'bob', 'ANN']
    """
    import pandas as pd

    folded = column.str.casefold()
    if folded.nunique() == column.nunique():
        return column
    ones = np.ones(len(column), np.int64) if counts is None else counts
    found = pd.Series(ones, column.index).groupby([folded, column], sort=False).sum()
    most = found.rename_axis(["key", "id"]).reset_index(name="n")
    most = most.sort_values("n", ascending=False, kind="stable")
    return folded.map(most.drop_duplicates("key").set_index("key")["id"])


def case_note(texts: Iterable[str], kind: str, n_joined: int | None = None) -> str:
    """What is said where ids differ in case alone; "" where none do. n_joined: how many would join
    others, if these are not all.

    >>> case_note(["ann", "Ann", "ANN", "bob"], "users")
    'ann and Ann differ in case alone: 2 users would join others with `fold_ids`'
    """
    distinct = dict.fromkeys(text for text in texts if text)
    first: dict[str, str] = {}
    pairs = [
        (before, text)
        for text in distinct
        if (before := first.setdefault(text.casefold(), text)) != text
    ]
    if not pairs:
        return ""
    one, other = pairs[0]
    return (
        f"{shorten(one)} and {shorten(other)} differ in case alone: "
        f"{n_joined or len(pairs):,} {kind} would join others with `fold_ids`"
    )


def are_integers(texts: Iterable[str]) -> bool:
    """True where every id is a whole number written the usual way ("7", not "007") in 64 bits."""
    return all(
        WHOLE_NUMBER.fullmatch(text) and (len(text) < 19 or -(2**63) <= int(text) < 2**63)
        for text in texts
    )


class Ids(Sequence[Id]):
    """Distinct ids in a fixed order: position to id by indexing, id to position by `positions`.

    Whole numbers come back as `int`, anything else as `str`; either spelling finds them. integer:
    whether they are whole numbers, None to look.

    >>> ids = Ids(["30", "4"])
    >>> ids[0], ids.positions([4, "30"]).tolist()
    (30, [1, 0])
    """

    def __init__(
        self, texts: Iterable[str], fold: bool = False, integer: bool | None = None
    ) -> None:
        self.texts = list(texts)
        self.integer = are_integers(self.texts) if integer is None else integer
        self.fold = fold

    @classmethod
    def sorted(cls, texts: Iterable[str], fold: bool = False) -> Ids:
        """In natural order: by number where all are whole numbers, else by text."""
        texts = list(texts)
        return cls(sorted(texts, key=int) if are_integers(texts) else sorted(texts), fold)

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, position: Any) -> Any:
        text = self.texts[position]
        return int(text) if self.integer else text

    def key(self, value: Any) -> str:
        """What is equal for all spellings of one id."""
        text = id_text(value, whole=self.integer)
        return text.casefold() if self.fold else text

    @cached_property
    def _position(self) -> dict[str, int]:
        keys = (text.casefold() for text in self.texts) if self.fold else self.texts
        return {key: position for position, key in enumerate(keys)}

    def __contains__(self, value: object) -> bool:
        return self.key(value) in self._position

    def find(self, value: Any) -> int:
        """The row number of an id, −1 for one that is not there."""
        return self._position.get(self.key(value), -1)

    def find_text(self, text: str, as_given: Any) -> int:
        """The row number of an id by its text, or else as it was given, −1 for one that is not
        there.
        """
        found = -1 if self.fold else self._position.get(text, -1)
        return found if found >= 0 else self.find(text if text in self else as_given)

    def positions(self, values: Iterable[Any], kind: str = "id") -> np.ndarray:
        """Row numbers (int64) of ids. Raises `UnknownIdError` with near matches."""
        values = list(values)
        found = [self.find(value) for value in values]
        if -1 in found:
            unknown = id_text(values[found.index(-1)])
            raise UnknownIdError(f"no {kind} {unknown!r}{suggest(unknown, self.texts)}")
        return np.asarray(found, dtype=np.int64)


def factorize(values: Any, known: Ids | None = None, fold: bool = False) -> tuple[np.ndarray, Ids]:
    """Codes (int32, −1 where an id is missing) and the ids: those `known`, of which others are
    missing, or else the distinct ones in natural order. fold: upper and lower case are equal.

    >>> codes, ids = factorize(["b", "a", None, "b"])
    >>> codes.tolist(), list(ids)
    ([1, 0, -1, 1], ['a', 'b'])
    """
    import pandas as pd

    # A list with a gap would turn into floats, which merge long numbers.
    dtype = None if hasattr(values, "dtype") else object
    codes, distinct = pd.factorize(pd.Series(values, dtype=dtype))
    counts = np.bincount(codes[codes >= 0], minlength=len(distinct))
    found, ids = identified(distinct, counts, known, fold)
    return np.append(found, np.int32(-1))[codes], ids


def identified(
    distinct: Any,
    counts: np.ndarray,
    known: Ids | None = None,
    fold: bool = False,
    whole: bool | None = None,
) -> tuple[np.ndarray, Ids]:
    """The same of distinct values (m,), in the order in which they occur first, and how often each
    does (m,): the number of each, int32 (m,), and the ids. whole: as in `id_text`, None to look.
    """
    import pandas as pd

    column = pd.Series(distinct, dtype=object)
    texts = id_texts(column) if whole is None else column.map(partial(id_text, whole=whole))
    if known is None:
        known = Ids.sorted(_spellings(texts, counts, fold), fold)
    found = [
        known.find_text(text, as_given) for as_given, text in zip(distinct, texts, strict=True)
    ]
    return np.array(found, dtype=np.int32), known


def _spellings(texts: Any, counts: np.ndarray, fold: bool) -> set[str]:
    """The distinct ids of a column that are there, each as it is shown."""
    there = texts != ""
    if not fold:
        return set(texts[there])
    return set(one_case(texts[there], counts[there.to_numpy(bool)]))


def row_numbers(names: Any, ids: Ids | None, count: int, kind: str) -> np.ndarray:
    """Row numbers (n,) of ids; where the model knows no ids, of row numbers, which are checked.

    >>> row_numbers([2, 0], None, 3, "item").tolist()
    [2, 0]
    >>> row_numbers("b", Ids("abc"), 3, "item").tolist()
    [1]
    """
    names = [names] if np.ndim(names) == 0 else names
    if ids is not None:
        return ids.positions(names, kind)
    rows = np.asarray(names)
    if rows.size and rows.dtype.kind not in "iu":
        raise UnknownIdError(
            f"no {kind} {names[0]!r}: the model was fitted on a matrix and knows row numbers only; "
            f"fit it on Interactions to use your own ids"
        )
    outside = (rows < 0) | (rows >= count)
    if outside.any():
        raise UnknownIdError(
            f"no {kind} in row {rows[outside][0]}: the model was fitted on {count} {kind}s, "
            f"rows 0 to {count - 1}"
        )
    return rows.astype(np.int64)

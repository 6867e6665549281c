"""Users and items by the ids of the data, and the row numbers that arrays need."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch._utils.folding import composed
from qkvsearch._utils.limits import ID
from qkvsearch.errors import DataError, UnknownIdError, quantity, suggest
from qkvsearch.terminal import shorten

Id = int | str
WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,18}")
# A whole number as pandas and spreadsheets write it next to gaps.
WITH_POINT = re.compile(r"(0|-?[1-9][0-9]{0,18})\.0+")
# White space, and marks that are as invisible.
BLANK = " \t\n\r\v\f\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, [*range(0x2000, 0x2010), 0x2060, 0xFEFF])
)
# Ids that no address of a request can name: browsers and proxies take . and .. for folders, and
# cannot send the others. What has no encoding, a lone surrogate, is one of them.
UNUSABLE = re.compile(
    rf"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]|\A\.{{1,2}}\Z|\A[\s\S]{{{ID.default + 1}}}"
)
UNUSABLE_REASON = "with an id that no address can contain"


def is_usable_id(text: str) -> bool:
    """Return whether a text, in the spelling of `id_text`, can be the id of an item or a user.

    >>> is_usable_id("a b/ü"), is_usable_id("a\\nb"), is_usable_id(".."), is_usable_id("")
    (True, False, False, False)
    """
    return text != "" and UNUSABLE.search(text) is None


def check_new_id(kind: str, text: str) -> None:
    """Raise `DataError` for a text that cannot be the id of an item or a user."""
    if not is_usable_id(text):
        raise DataError(
            f"`{kind}` {shorten(text)!r}: an id has 1 to {ID.default:,} characters, none of them a "
            "line break or another control character, and is not . or .."
        )


def id_text(value: Any, whole: bool = False) -> str:
    """Return the one spelling of an id, so that 7, 7.0 and "7 " of three files are the same user.

    whole: all ids are whole numbers, so that a text "7.0" is 7 as well; otherwise it may be a
    version.

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
    text = composed(str(value).strip(BLANK))
    match = WITH_POINT.fullmatch(text) if whole else None
    return match[1] if match else text


def id_texts(column: Any) -> Any:
    """Return a column of ids (a pandas Series) in their one spelling.

    Where all are whole numbers, 7.0 becomes 7. Version numbers, such as 1.0 and 1.1, stay.
    """
    texts = column.map(id_text).astype(object)
    if not texts.str.endswith(".0").any():
        return texts
    whole = texts.map(lambda text: id_text(text, whole=True))
    return whole if are_integers(whole[whole != ""]) else texts


def one_case(column: Any, counts: np.ndarray | None = None) -> Any:
    """Return a column of ids (a pandas Series) with one spelling for those that differ in case.

    It is the most common one, the first of several. counts (n,): how often each id counts.

    >>> import pandas as pd
    >>> one_case(pd.Series(["Ann", "ANN", "bob", "ANN"])).tolist()
    ['ANN', 'ANN', 'bob', 'ANN']
    """
    import pandas as pd

    folded = column.str.casefold()
    if folded.nunique() == column.nunique():
        return column
    ones = np.ones(len(column), np.int64) if counts is None else counts
    totals = pd.Series(ones, column.index).groupby([folded, column], sort=False).sum()
    totals = totals.rename_axis(["key", "id"]).reset_index(name="n")
    totals = totals.sort_values("n", ascending=False, kind="stable")
    return folded.map(totals.drop_duplicates("key").set_index("key")["id"])


def case_note(texts: Iterable[str], kind: str) -> str:
    """Return a note on ids that differ in case alone, or "". A build stores it: no user is named.

    >>> case_note(["ann", "Ann", "ANN", "bob"], "users")
    'ids differ in case alone: 2 users would join others with `fold_ids`'
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
    names = "ids" if kind == "users" else " and ".join(map(shorten, pairs[0]))
    joining = quantity(len(pairs), kind.removesuffix("s"))
    return f"{names} differ in case alone: {joining} would join others with `fold_ids`"


def are_integers(texts: Iterable[str]) -> bool:
    """Return whether all ids are whole numbers of 64 bits in the usual form ("7", not "007")."""
    return all(
        WHOLE_NUMBER.fullmatch(text) and (len(text) < 19 or -(2**63) <= int(text) < 2**63)
        for text in texts
    )


class Ids(Sequence[Id]):
    """Distinct ids in a fixed order: position to id by indexing, id to position by `positions`.

    If all are whole numbers, they come back as `int`, otherwise as `str`; either spelling finds
    them. integer: whether they are, if known.

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
        """Make ids in natural order: by number where all are whole numbers, else by text."""
        texts = list(texts)
        return cls(sorted(texts, key=int) if are_integers(texts) else sorted(texts), fold)

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, position: Any) -> Any:
        text = self.texts[position]
        return int(text) if self.integer else text

    def key(self, value: Any) -> str:
        """Return a text that all spellings of an id share."""
        text = id_text(value, whole=self.integer)
        return text.casefold() if self.fold else text

    @cached_property
    def _position(self) -> dict[str, int]:
        keys = (text.casefold() for text in self.texts) if self.fold else self.texts
        return {key: position for position, key in enumerate(keys)}

    def __contains__(self, value: object) -> bool:
        return self.key(value) in self._position

    def find(self, value: Any) -> int:
        """Return the row number of an id, −1 for an unknown one."""
        return self._position.get(self.key(value), -1)

    def find_text(self, text: str, original: Any) -> int:
        """Return the row of an id by its text, or else by its original value; −1 if unknown."""
        row = -1 if self.fold else self._position.get(text, -1)
        return row if row >= 0 else self.find(text if text in self else original)

    def positions(self, values: Iterable[Any], kind: str = "id") -> np.ndarray:
        """Return row numbers (int64) of ids. Raises `UnknownIdError`, which suggests no users."""
        values = list(values)
        rows = [self.find(value) for value in values]
        if -1 in rows:
            unknown = id_text(values[rows.index(-1)])
            near = "" if kind == "user" else suggest(unknown, self.texts)
            raise UnknownIdError(f"no {kind} {unknown!r}{near}")
        return np.asarray(rows, dtype=np.int64)


def factorize(values: Any, known: Ids | None = None, fold: bool = False) -> tuple[np.ndarray, Ids]:
    """Return codes (int32, −1 where an id is missing or not among the `known` ones), and the ids:
    the `known` ones, or the distinct ones in natural order. fold: case does not matter.

    >>> codes, ids = factorize(["b", "a", None, "b"])
    >>> codes.tolist(), list(ids)
    ([1, 0, -1, 1], ['a', 'b'])
    """
    import pandas as pd

    # A list with a gap would turn into floats, which merge long numbers.
    dtype = None if hasattr(values, "dtype") else object
    codes, distinct = pd.factorize(pd.Series(values, dtype=dtype))
    counts = np.bincount(codes[codes >= 0], minlength=len(distinct))
    rows, ids = identified(distinct, counts, known, fold)
    return np.append(rows, np.int32(-1))[codes], ids


def identified(
    distinct: Any, counts: np.ndarray, known: Ids | None = None, fold: bool = False
) -> tuple[np.ndarray, Ids]:
    """Return the row number of each of the distinct values (m,), int32 (m,), and the ids, as
    `factorize` does.

    The values are in the order in which they occur first. counts (m,): how often each occurs.
    """
    import pandas as pd

    texts = id_texts(pd.Series(distinct, dtype=object))
    if known is None:
        known = Ids.sorted(_spellings(texts, counts, fold), fold)
    rows = [known.find_text(text, value) for value, text in zip(distinct, texts, strict=True)]
    return np.array(rows, dtype=np.int32), known


def _spellings(texts: Any, counts: np.ndarray, fold: bool) -> set[str]:
    """Return the distinct ids of a column that are not blank, each in its one spelling."""
    filled = texts != ""
    if not fold:
        return set(texts[filled])
    return set(one_case(texts[filled], counts[filled.to_numpy(bool)]))


def row_numbers(names: Any, ids: Ids | None, count: int, kind: str) -> np.ndarray:
    """Return row numbers (n,) of ids, or checked row numbers where a model has no ids.

    >>> row_numbers([2, 0], None, 3, "item").tolist()
    [2, 0]
    >>> row_numbers("b", Ids("abc"), 3, "item").tolist()
    [1]
    """
    n_axes = names.ndim if hasattr(names, "ndim") else np.ndim(np.asarray(names, dtype=object))
    if n_axes > 1:
        raise DataError(f"{kind}s are named by one id or by a list of them, not by {n_axes} axes")
    names = [names] if n_axes == 0 else names
    if ids is not None:
        return ids.positions(names, kind)
    try:
        rows = np.asarray(names)
    except ValueError:
        raise DataError(f"{kind}s are named by one id or by a list of them, not by lists") from None
    if rows.size and rows.dtype.kind not in "iu":
        first = rows.tolist()[0]
        raise UnknownIdError(
            f"no {kind} {first!r}: the model was fitted on a matrix and knows row numbers only; "
            f"fit it on Interactions to use your own ids"
        )
    outside = (rows < 0) | (rows >= count)
    if outside.any():
        raise UnknownIdError(
            f"no {kind} in row {rows[outside][0]}: the model was fitted on {count} {kind}s, "
            f"rows 0 to {count - 1}"
        )
    return rows.astype(np.int64)

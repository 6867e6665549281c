"""Users and items by the ids of the data, and the row numbers that arrays need."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from qkvsearch.errors import UnknownIdError, suggest

Id = int | str
WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,18}")


def id_text(value: Any) -> str:
    """The one spelling of an id, so that 7, 7.0 and "7 " from three files are the same user.

    >>> id_text(7), id_text(7.0), id_text(" 7 "), id_text("007"), id_text(None)
    ('7', '7', '7', '007', '')
    """
    if value is None:
        return ""
    if isinstance(value, float | np.floating):
        if math.isnan(value):
            return ""
        if float(value).is_integer():
            return str(int(value))
    return str(value).strip()


def id_texts(column: Any) -> Any:
    """A column of ids (a pandas Series) in their one spelling.

    Where pandas wrote whole numbers next to gaps, a file holds 7.0 throughout: those become 7.
    Version numbers, 1.0 beside 1.1, stay as they are.
    """
    texts = column.map(id_text).astype(object)
    present = texts[texts != ""]
    if present.str.fullmatch(r"-?\d+\.0").all():
        texts = texts.str.removesuffix(".0")
    return texts


def are_integers(texts: Iterable[str]) -> bool:
    """True where every id is a whole number written the usual way ("7", not "007") in 64 bits."""
    return all(
        WHOLE_NUMBER.fullmatch(text) and (len(text) < 19 or -(2**63) <= int(text) < 2**63)
        for text in texts
    )


class Ids(Sequence[Id]):
    """Distinct ids in a fixed order: position to id by indexing, id to position by `positions`.

    Whole numbers come back as `int`, anything else as `str`; either spelling finds them.

    >>> ids = Ids(["30", "4"])
    >>> ids[0], ids.positions([4, "30"]).tolist()
    (30, [1, 0])
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts = list(texts)
        self.integer = are_integers(self.texts)

    @classmethod
    def sorted(cls, texts: Iterable[str]) -> Ids:
        """In natural order: by number where all are whole numbers, else by text."""
        texts = list(texts)
        return cls(sorted(texts, key=int) if are_integers(texts) else sorted(texts))

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, position: Any) -> Any:
        text = self.texts[position]
        return int(text) if self.integer else text

    @cached_property
    def _position(self) -> dict[str, int]:
        return {text: position for position, text in enumerate(self.texts)}

    def __contains__(self, value: object) -> bool:
        return id_text(value) in self._position

    def positions(self, values: Iterable[Any], kind: str = "id") -> np.ndarray:
        """Row numbers (int64) of ids. Raises `UnknownIdError` with near matches."""
        try:
            found = [self._position[id_text(value)] for value in values]
        except KeyError as error:
            unknown = error.args[0]
            raise UnknownIdError(f"no {kind} {unknown!r}{suggest(unknown, self.texts)}") from None
        return np.asarray(found, dtype=np.int64)


def factorize(values: Any) -> tuple[np.ndarray, Ids]:
    """Codes (int32, −1 where an id is missing) and the distinct ids, in natural order.

    >>> codes, ids = factorize(["b", "a", None, "b"])
    >>> codes.tolist(), list(ids)
    ([1, 0, -1, 1], ['a', 'b'])
    """
    import pandas as pd

    # A list with a gap would turn into floats, which merge long numbers.
    dtype = None if hasattr(values, "dtype") else object
    codes, distinct = pd.factorize(pd.Series(values, dtype=dtype))
    texts = id_texts(pd.Series(distinct, dtype=object)).tolist()
    ids = Ids.sorted({text for text in texts if text})
    to_position = np.array([ids._position.get(text, -1) for text in texts] + [-1], dtype=np.int32)
    return to_position[codes], ids


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

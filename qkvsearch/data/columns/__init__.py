"""The roles of columns: id, title, user and so on, as given or by their names in many languages."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from qkvsearch.errors import DataError, listed_names, suggest

# whole: for each role, whole names as `folded` writes them, in order of preference. words: for each
# role, words that tell it within a longer name. text: names of columns that search reads beside the
# title, in order. text_ends: last words of such names (Book-Author, long_description).
NAMES = json.loads(Path(__file__).with_name("names.json").read_text(encoding="utf-8"))
WORDS: dict[str, list[str]] = NAMES["words"]
NUMBERS, DEEDS, TEXT_ENDS = set(NAMES["numbers"]), set(NAMES["deeds"]), set(NAMES["text_ends"])
# A name of several words plays a role where one of them is in WORDS and all others are in BESIDE:
# customer_email, product_sku, ordered_at, minutes_watched.
THINGS, PEOPLE = WORDS["item"], WORDS["user"]
BESIDE = {
    "user": NUMBERS | {"email", "mail", "e", "address", "name", "login", "unique", "external"},
    "item": NUMBERS
    | {"external", "unique", "parent", "ordered", "purchased", "title", "name", "line", "lineitem"}
    | {"variant"},
    "title": {*THINGS, "original", "full", "display", "line", "lineitem"},
    "rating": {*THINGS, *PEOPLE, "review", "star", "value", "overall"},
    "weight": DEEDS
    | {"total", "sum", "item", "product", "line", "lineitem", "of", "in", "forever", "count"},
    "time": DEEDS
    | {"start", "end", "of", "in", "utc", "local", "unix", "epoch", "date", "time", "added", "and"},
}
LETTERS = str.maketrans({"ł": "l", "Ł": "L", "ø": "o", "Ø": "O", "đ": "d", "ı": "i"})


def words_of(name: str) -> list[str]:
    """The words of a name without accents and case.

    >>> words_of("customerEmail"), words_of("Qualität (max.)"), words_of("商品ID")
    (['customer', 'email'], ['qualitat', 'max'], ['商品id'])
    """
    split = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name.translate(LETTERS))
    plain = unicodedata.normalize("NFKD", split)
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
    return re.findall(r"[^\W_]+", plain.casefold())


def folded(name: str) -> str:
    """A name without accents, case and all that is between its words.

    >>> folded("Artikel-Nr.")
    'artikelnr'
    """
    return "".join(words_of(name))


def named(role: str, names: Sequence[str]) -> list[str]:
    """The columns whose names tell that they play `role`, the surest first.

    >>> named("user", ["price", "customer_email", "User ID"])
    ['User ID', 'customer_email']
    """
    common = {name: place for place, name in enumerate(map(folded, NAMES["whole"][role]))}
    whole = {name: common[folded(name)] for name in names if folded(name) in common}
    found = sorted(whole, key=lambda name: whole[name])
    if role in WORDS:
        found += [name for name in names if name not in whole and _tells(role, words_of(name))]
    return found


def _tells(role: str, words: Sequence[str]) -> bool:
    telling = WORDS[role]
    return (
        len(words) > 1
        and any(word in telling for word in words)
        and all(word in telling or word in BESIDE[role] for word in words)
    )


def named_as_text(names: Sequence[str]) -> list[str]:
    """The columns whose names tell that search reads them, those it weighs most first.

    >>> named_as_text(["price", "long_description", "Tags"])
    ['Tags', 'long_description']
    """
    places = {name: place for place, name in enumerate(NAMES["text"])}
    whole = {name: places[folded(name)] for name in names if folded(name) in places}
    ends = [name for name in names if name not in whole and {*words_of(name)[-1:]} & TEXT_ENDS]
    return sorted(whole, key=lambda name: whole[name]) + ends


A_NUMBER = r"[+-]?\d+([.,]\d+)*"


@dataclass(frozen=True)
class Columns:
    """Column names as the caller gives them, None is guessed; and how the columns are read.

    types: of columns by name, "number", "date", "yes/no", "list" or "text", instead of inferred.
    rating_scale: the lowest and the highest rating that can be given, instead of inferred.
    fold_ids: ids that differ in case alone are one. strict: what would be a warning is an error.
    delimiter: what is between the cells of a text file, instead of inferred.
    """

    id: str | None = None
    title: str | None = None
    text: Sequence[str] | None = None
    user: str | None = None
    item: str | None = None
    rating: str | None = None
    time: str | None = None
    weight: str | None = None
    types: Mapping[str, str] = field(default_factory=dict)
    rating_scale: tuple[float, float] | None = None
    fold_ids: bool = False
    strict: bool = False
    delimiter: str | None = None

    def refuse(self, roles: Sequence[str], file: str) -> None:
        """Raise `DataError` for a column of a file that was not given."""
        for role in roles:
            if getattr(self, role) is not None:
                column = "text_columns" if role == "text" else f"{role}_column"
                raise DataError(f"`{column}` is a column of `{file}`, which were not given")


def find_column(role: str, given: str | None, names: Sequence[str], file: str) -> str | None:
    """The column that plays `role`, or None. Raises `DataError` where the given one does not exist.

    >>> find_column("user", None, ["movieId", "userId", "rating"], "ratings.csv")
    'userId'
    """
    if given is not None:
        return check_column(given, names, file, f"`{role}_column`")
    return next(iter(named(role, names)), None)


def require_column(
    role: str, given: str | None, names: Sequence[str], file: str, listed: Sequence[str] = ()
) -> str:
    """As `find_column`, but a column that cannot be guessed is an error that lists the columns,
    or those of `listed`.
    """
    found = find_column(role, given, names, file)
    if found is None:
        raise DataError(
            f"{file}: cannot tell which column is the {role}; name it with `{role}_column` "
            f"{_listing(listed or names)}"
        )
    return found


def find_text_columns(
    given: Sequence[str] | None, title: str, names: Sequence[str], file: str
) -> list[str]:
    """The columns that search reads: as given, else the title and usual columns of prose."""
    if given is not None:
        return [check_column(name, names, file, "`text_columns`") for name in given]
    return [title, *named_as_text([name for name in names if name != title])]


def check_column(given: str, names: Sequence[str], file: str, option: str) -> str:
    """`given` as the file spells it; upper and lower case count as equal."""
    if given in names:
        return given
    for name in names:
        if name.casefold() == given.strip().casefold():
            return name
    raise DataError(
        f"{file}: no column {given!r} ({option}){suggest(given, list(names))} {_listing(names)}"
    )


def _listing(names: Sequence[str]) -> str:
    listed = f"(columns: {listed_names(names)})"
    if any(re.fullmatch(A_NUMBER, name) for name in names):
        listed += ". The first row looks like data: add a row of names above it"
    if len(names) > 1:
        return listed
    return f"{listed}. With one column the delimiter may be another one: `delimiter` says which"

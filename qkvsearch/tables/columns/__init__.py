"""The roles of columns, such as id, title and user: as the caller says, or by their names."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from qkvsearch._utils.folding import composed
from qkvsearch._utils.validation import check_names
from qkvsearch.errors import DataError, listed_names, suggest
from qkvsearch.tables.advice import about_documents
from qkvsearch.tables.column_facts import ROLES

# whole: for each role, whole names as `folded` writes them, in order of preference. words, beside:
# for each role, words of longer names, of which one is in `words` and all others are in `beside`:
# customer_email, ordered_at, minutes_watched.
NAMES = json.loads(Path(__file__).with_name("names.json").read_text(encoding="utf-8"))
WORDS: dict[str, list[str]] = NAMES["words"]
NUMBERS = set(NAMES["numbers"])
LETTERS = str.maketrans({"ł": "l", "Ł": "L", "ø": "o", "Ø": "O", "đ": "d", "ı": "i"})


def words_of(name: str) -> list[str]:
    """Return the words of a name without accents and case.

    >>> words_of("customerEmail"), words_of("Qualität (max.)"), words_of("商品ID")
    (['customer', 'email'], ['qualitat', 'max'], ['商品id'])
    """
    split = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name.translate(LETTERS))
    plain = unicodedata.normalize("NFKD", split)
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
    return re.findall(r"[^\W_]+", plain.casefold())


def folded(name: str) -> str:
    """Return a name without accents, case and all that is between its words.

    >>> folded("Artikel-Nr.")
    'artikelnr'
    """
    return "".join(words_of(name))


def named(role: str, names: Sequence[str]) -> list[str]:
    """Return the columns whose names tell that they play `role`, the surest first.

    >>> named("user", ["price", "customer_email", "User ID"])
    ['User ID', 'customer_email']
    """
    rank = {name: index for index, name in enumerate(map(folded, NAMES["whole"][role]))}
    whole = {name: rank[folded(name)] for name in names if folded(name) in rank}
    columns = sorted(whole, key=lambda name: whole[name])
    if role in WORDS:
        columns += [name for name in names if name not in whole and _tells(role, words_of(name))]
    return columns


def _tells(role: str, words: Sequence[str]) -> bool:
    telling = WORDS[role]
    return (
        len(words) > 1
        and any(word in telling for word in words)
        and all(word in telling or word in NAMES["beside"][role] for word in words)
    )


A_NUMBER = r"[+-]?\d+([.,]\d+)*"
EMAIL = r"[^@\s]+@[^@\s]+\.[^@\s.]+"


@dataclass(frozen=True)
class Columns:
    """The columns that a caller names, and how they are read. None is inferred from the file.

    >>> Columns(id="SKU", title="Name", types={"Price": "number"}).title
    'Name'
    """

    # Of a catalog.
    id: str | None = None
    title: str | None = None
    # The columns that search reads.
    text: Sequence[str] | None = None
    # Of a log.
    user: str | None = None
    item: str | None = None
    rating: str | None = None
    time: str | None = None
    weight: str | None = None
    # The types of columns of a catalog, by their names: "number", "date" and so on.
    types: Mapping[str, str] = field(default_factory=dict)
    # The lowest and the highest rating that can be given.
    rating_scale: tuple[float, float] | None = None
    # Ids that differ in case alone are one.
    fold_ids: bool = False
    # A warning is an error.
    strict: bool = False
    # The text between the cells of a text file.
    delimiter: str | None = None
    # Of text files, such as "cp850".
    encoding: str | None = None
    # Columns that are not read.
    ignore: Sequence[str] = ()
    # The column that says what a row of a log is.
    event: str | None = None
    # What each event counts: {"view": 1, "purchase": 5, "refund": -1}. 0 is ignored.
    event_weights: Mapping[str, float] = field(default_factory=dict)
    # Of a catalog: the files with the texts of its items, such as "talks/{id}.vtt".
    texts: str | None = None
    # Of a log: "rows" (a row is an interaction; the default), "lists" (a line has a user, then
    # items) or "matrix" (a row is a user, a column an item).
    layout: str | None = None

    def __post_init__(self) -> None:
        if self.text is not None:
            check_names("text_columns", self.text)
        check_names("ignore", self.ignore)
        # The names of a table are composed as well.
        for role in ("id", "title", *ROLES):
            name = getattr(self, role)
            if isinstance(name, str):
                object.__setattr__(self, role, composed(name))

    def not_ignored(self, names: Iterable[str]) -> list[str]:
        """Return those columns of a file that are read. Case does not matter where no column has
        the exact name.
        """
        names = list(names)
        stripped = {composed(name.strip()) for name in self.ignore}
        exact = stripped.intersection(names)
        in_any_case = {name.casefold() for name in stripped - exact}
        return [name for name in names if name not in exact and name.casefold() not in in_any_case]

    def options_of_log(self) -> dict[str, Any]:
        """Return what a build stores, because it holds for files that are recorded as well."""
        names = ("ignore", *(("layout", "user", "delimiter") if self.layout else ()))
        return {name: getattr(self, name) for name in names if getattr(self, name)}

    def with_options(self, options: Mapping[str, Any]) -> Columns:
        """Return the columns with the stored options of a build where none are chosen."""
        chosen = {name.casefold() for role in ROLES if (name := getattr(self, role))}
        ignore = [name for name in options.get("ignore", ()) if name.casefold() not in chosen]
        others = {} if self.layout else {n: v for n, v in options.items() if not getattr(self, n)}
        return replace(self, **others | {"ignore": (*self.ignore, *ignore)})

    def refuse(self, roles: Sequence[str], file: str) -> None:
        """Raise `DataError` if a column is named for a file that was not given."""
        for role in roles:
            if getattr(self, role) is not None:
                column = "text_columns" if role == "text" else f"{role}_column"
                raise DataError(f"`{column}` is a column of `{file}`, which were not given")


def find_column(role: str, requested: str | None, names: Sequence[str], file: str) -> str | None:
    """Return the column that plays `role`, or None.

    Raises `DataError` where the requested column does not exist.

    >>> find_column("user", None, ["movieId", "userId", "rating"], "ratings.csv")
    'userId'
    """
    if requested is not None:
        return check_column(requested, names, file, f"`{role}_column`")
    return next(iter(named(role, names)), None)


def require_column(
    role: str, requested: str | None, names: Sequence[str], file: str, listed: Sequence[str] = ()
) -> str:
    """Return the column that plays `role`. Raises `DataError` that lists the columns."""
    column = find_column(role, requested, names, file)
    if column is None:
        is_text = role == "id" and len(names) == 1
        raise DataError(
            f"{file}: cannot tell which column is the {role}; name it with `{role}_column` "
            f"{_listing(listed or names)}{about_documents(file) if is_text else ''}"
        )
    return column


def check_column(requested: str, names: Sequence[str], file: str, option: str) -> str:
    """Return a column as the file spells it; case does not matter. Raises `DataError`."""
    requested = composed(requested)
    if requested in names:
        return requested
    for name in names:
        if name.casefold() == requested.strip().casefold():
            return name
    raise DataError(
        f"{file}: no column {requested!r} ({option}){suggest(requested, list(names))} "
        f"{_listing(names)}"
    )


def _listing(names: Sequence[str]) -> str:
    listed = f"(columns: {listed_names(names)})"
    if any(re.fullmatch(A_NUMBER, name) for name in names):
        listed += ". The first row looks like data: add a row of names above it"
    if len(names) > 1:
        return listed
    return f"{listed}. With one column the delimiter may be another one: `delimiter` says which"

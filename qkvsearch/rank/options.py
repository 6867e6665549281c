"""One option of a question: its kind, its help, its default and its limits.

Python, the command line and the web API read options from here. The command line does so before it
needs NumPy, which is why nothing here imports it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import isfinite, nan
from typing import TYPE_CHECKING, Any, Literal

from qkvsearch._utils.validation import (
    check_flag,
    check_id,
    check_names,
    check_text,
    is_number,
    is_whole,
    require,
)
from qkvsearch.errors import QkvError, suggest

if TYPE_CHECKING:
    from qkvsearch.tables.ids import Id

# The kinds of values that an option takes:
#   flag       True or False
#   reasons    True or False, or one of the choices
#   whole      a whole number
#   number     any number
#   text       one text
#   choice     one of a few texts
#   names      names of columns: one text or several; a text may have commas between them
#   heads      names of heads, in the same way
#   id         the id of a user
#   ids        ids or titles of items, one or several
#   ratings    a mapping from items to ratings
#   condition  an SQL expression, or one with its values; the catalog checks it
OptionKind = Literal[
    "flag",
    "reasons",
    "whole",
    "number",
    "text",
    "choice",
    "names",
    "heads",
    "id",
    "ids",
    "ratings",
    "condition",
]


@dataclass(frozen=True)
class Option:
    """One option of a question."""

    kind: OptionKind
    help: str
    # None where the option may be left out, `dataclasses.MISSING` where it must be given.
    default: Any = None
    # The limits of a number.
    minimum: float | None = None
    maximum: float | None = None
    # Whether a number must be above the minimum, not only at least that.
    is_open: bool = False
    # What a choice may be.
    choices: tuple[str, ...] = ()

    def check(self, name: str, value: Any) -> None:
        """Raise `DataError`, which names the option, for a value of another kind or beyond a limit,
        and `QkvError` for an unknown choice.

        >>> Option("whole", "How many to show.", 10, minimum=0).check("k", -1)
        Traceback (most recent call last):
        qkvsearch.errors.DataError: `k` must be a whole number, at least 0, not -1
        """
        if value is None and self.default is None:
            return
        match self.kind:
            case "flag":
                check_flag(name, value)
            case "reasons":
                self._check_reasons(name, value)
            case "whole" | "number":
                self._check_number(name, value)
            case "text":
                check_text(name, value)
            case "choice":
                self._check_choice(name, value)
            case "id":
                check_id(name, value)
            case "ratings":
                is_mapping = isinstance(value, Mapping)
                require(is_mapping, name, value, "a mapping from items to ratings")
            case "names" | "heads" | "ids":
                # Checked one by one where they were made a list: there may be a million ids.
                pass
            case "condition":
                # The catalog checks it, which knows the columns.
                pass

    def _check_number(self, name: str, value: Any) -> None:
        is_valid = is_whole(value) if self.kind == "whole" else is_number(value)
        if is_valid and self.minimum is not None:
            is_valid = value > self.minimum if self.is_open else value >= self.minimum
        if is_valid and self.maximum is not None:
            is_valid = value <= self.maximum
        require(is_valid, name, value, self._expected)

    @property
    def _expected(self) -> str:
        """What a number has to be, for an error."""
        kind = "a whole number" if self.kind == "whole" else "a number"
        if self.minimum is None:
            return kind
        if self.maximum is not None:
            return f"{kind} from {self.minimum:,.12g} to {self.maximum:,.12g}"
        limit = " above" if self.is_open else ", at least"
        return f"{kind}{limit} {self.minimum:,.12g}"

    def _check_reasons(self, name: str, value: Any) -> None:
        if isinstance(value, str):
            self._check_choice(name, value)
        else:
            check_flag(name, value)

    def _check_choice(self, name: str, value: Any) -> None:
        check_text(name, value)
        if value not in self.choices:
            raise QkvError(f"`{name}`: there is no {value!r}{suggest(value, list(self.choices))}")


def option(kind: OptionKind, help: str, default: Any = None, **limits: Any) -> Any:
    """Return the field of a question that has this option. limits: other fields of `Option`."""
    metadata = {"option": Option(kind, help, default, **limits)}
    return field(default=default, metadata=metadata)


def as_list(names: Id | Iterable[Id]) -> list[Any]:
    """Return the names as a list; one name alone is a list of one."""
    return list(names) if isinstance(names, Iterable) and not isinstance(names, str) else [names]


def head_names(heads: str | Iterable[str] | None, parameter: str = "heads") -> list[str] | None:
    """Return the names of heads: of one, of several, or of a text with commas between them.

    >>> head_names("lexical, semantic"), head_names(["lexical"]), head_names(None)
    (['lexical', 'semantic'], ['lexical'], None)
    """
    if isinstance(heads, str):
        return [name.strip() for name in heads.split(",")]
    return None if heads is None else check_names(parameter, heads)


def id_list(parameter: str, ids: Id | Iterable[Id]) -> list[Any]:
    """Return ids or titles as a list; one alone is a list of one. Raises `DataError`, which names
    the parameter, for a value that cannot be an id.
    """
    is_single = isinstance(ids, bytes | Mapping) or getattr(ids, "ndim", 1) == 0
    return [check_id(parameter, id_) for id_ in ([ids] if is_single else as_list(ids))]


def parse_ratings(pairs: Iterable[str], option: str = "rate") -> dict[str, float]:
    """Parse ITEM=RATING; an item may contain = itself. Raises `QkvError`, which names the option.

    >>> parse_ratings(["m042=4.5", "a=b=1"])
    {'m042': 4.5, 'a=b': 1.0}
    """
    ratings: dict[str, float] = {}
    for pair in pairs:
        item, _, text = pair.rpartition("=")
        try:
            rating = float(text)
        except ValueError:
            rating = nan
        if not item or item in ratings or not isfinite(rating):
            raise QkvError(f"`{option}` {pair!r}: write each item once, as Heat=4.5 (ITEM=RATING)")
        ratings[item] = rating
    return ratings

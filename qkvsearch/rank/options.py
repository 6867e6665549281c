"""Options of questions: defaults, limits and help, shared by Python, command line and web API."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite, nan
from typing import Any

from qkvsearch._utils.validation import is_number, is_whole, require
from qkvsearch.errors import QkvError, suggest

PREFERENCES, NEXT_ITEM = MODELS = ("preferences", "next-item")


@dataclass(frozen=True)
class Option:
    """One keyword of a question. `default` is None where it may be left out; a number is from
    `minimum`, which `is_open` excludes, to `maximum`.
    """

    kind: type
    help: str
    default: Any = None
    minimum: float | None = None
    maximum: float | None = None
    is_open: bool = False
    choices: tuple[str, ...] = ()

    @property
    def expected(self) -> str:
        """What a number has to be, for an error."""
        kind = "a whole number" if self.kind is int else "a number"
        if self.maximum is not None:
            return f"{kind} from {self.minimum:g} to {self.maximum:g}"
        limit = " above" if self.is_open else ", at least"
        return f"{kind}{limit} {self.minimum:g}"

    def check(self, name: str, value: Any) -> None:
        """Raise `DataError`, which names the option, for a value outside its limits."""
        if value is None and self.default is None:
            return
        valid = is_whole(value) if self.kind is int else is_number(value)
        if valid and self.minimum is not None:
            valid = value > self.minimum if self.is_open else value >= self.minimum
        if valid and self.maximum is not None:
            valid = value <= self.maximum
        require(valid, name, value, self.expected)


OPTIONS = {
    "user": Option(str, "An existing user."),
    "strict_user": Option(bool, "An unknown user is an error.", False),
    "likes": Option(list, "An id or title that they like.", ()),
    "ratings": Option(dict, "Count this rating, as if it were recorded now."),
    "without": Option(list, "Pretend that this item is not in the history.", ()),
    "exclude": Option(list, "An id or title to leave out.", ()),
    "where": Option(
        str,
        "Only items for which this SQL expression over the catalog's columns holds, such as "
        "year >= 2000.",
    ),
    "fields": Option(str, "Columns of the catalog to show as well, such as price,url.", ()),
    "heads": Option(
        str,
        "Which heads to use: lexical, semantic, token (a second pass, word by word), collaborative "
        "(with a user), or one by its name. By default all.",
    ),
    "recommend_heads": Option(
        str,
        "Which heads to use: collaborative, neighbours. By default both, in the shares that the "
        "build learned.",
    ),
    "facets": Option(
        str, "Columns whose values to count among all matching items, such as genre,year.", ()
    ),
    "seen": Option(bool, "Whether items of the history may be among the hits.", False),
    "k": Option(int, "How many to show.", 10, minimum=0),
    "offset": Option(int, "Skip the first N.", 0, minimum=0),
    "distinct": Option(
        str,
        "List only the best hit for each value of this column, such as family. Items with an empty "
        "cell all stay.",
    ),
    "temperature": Option(
        float,
        "Divides the scores before the softmax: the lower, the more weight on the first. By "
        "default their standard deviation.",
        minimum=0,
        is_open=True,
    ),
    "prefix": Option(bool, "The user is still typing the last word: search as you type.", False),
    "snippet": Option(
        bool, "Show the passage of the longest text that matches the query best.", False
    ),
    "anyway": Option(bool, "Show the nearest items where nothing answers the query.", False),
    "model": Option(
        str,
        "Score by preferences from all of the history, or by what comes next after it (built with "
        "next-item).",
        PREFERENCES,
        choices=MODELS,
    ),
    "recent": Option(
        float,
        "Weigh recent interactions more: one counts half as much after N later ones.",
        minimum=1,
    ),
    "damping": Option(
        float,
        "Rank popular items lower: subtract X standard deviations of the scores for each standard "
        "deviation of the logarithm of an item's number of users.",
        0.0,
        minimum=0,
        maximum=1e9,
    ),
    "diversity": Option(
        float,
        "How much a hit should differ from the hits above it, from 0 to 1.",
        0.0,
        minimum=0,
        maximum=1,
    ),
    "because": Option(
        int,
        "How many items of the history each hit's `because` lists, those that add most; the others "
        "are one entry.",
        minimum=1,
    ),
    "trials": Option(
        int,
        "How many random settings of the embeddings to try, and a third as many of the neighbours.",
        minimum=1,
    ),
    "minutes": Option(float, "Stop after this many minutes.", minimum=0, is_open=True),
    "users": Option(int, "How many users to evaluate, 0 for all.", minimum=0),
    "random_state": Option(int, "Random seed.", 0, minimum=0),
}


def check(**options: Any) -> None:
    """Raise `DataError`, which names the option, for the first value outside its limits.

    >>> check(k=10, recent=None)
    >>> check(k=10, damping=float("nan"))
    Traceback (most recent call last):
    qkvsearch.errors.DataError: `damping` must be a number from 0 to 1e+09, not nan
    """
    for name, value in options.items():
        OPTIONS[name].check(name, value)


def check_model(model: str, recent: float | None) -> None:
    """Raise `QkvError` for an unknown model, and for `recent` with the next-item model."""
    if model not in MODELS:
        raise QkvError(f"`model`: there is no {model!r}{suggest(model, list(MODELS))}")
    check(recent=recent)
    if model == NEXT_ITEM and recent is not None:
        raise QkvError(
            "the next-item model uses the order of the history already: leave `recent` out"
        )


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

"""Columns without a role that may say what a row of a log means: a like, a dislike, a refund.

What a row means is never guessed. `RULES` tell which columns may say it, and such a column stops
the build. docs/formats.md shows the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from shlex import quote
from typing import NamedTuple

import numpy as np
import pandas as pd

from qkvsearch._utils.caching import cached_property
from qkvsearch._utils.folding import fold
from qkvsearch._utils.scratch import counts_of, filtered
from qkvsearch.errors import DataError
from qkvsearch.tables.column_facts import are_missing, no_words, yes_words
from qkvsearch.tables.columns import EMAIL, NAMES, Columns, folded, named, words_of
from qkvsearch.tables.columns.events import counted, named_as_taking_back
from qkvsearch.tables.columns.log_words import LOG_WORDS
from qkvsearch.tables.columns.rating_cells import DISLIKES, LIKES, out_of
from qkvsearch.tables.table import Coded, Table
from qkvsearch.terminal import shorten

# Words of names and of cells: of events (cart, like), of dislikes (hidden, skipped), of numbers
# that are no feedback (id, day, price), and of ratings (note, vote).
OF_EVENTS = frozenset(LOG_WORDS["telling"])
OF_DISLIKES = frozenset(LOG_WORDS["disliking"])
OF_OTHER_NUMBERS = frozenset([*LOG_WORDS["not_feedback"], *NAMES["numbers"]])
OF_RATINGS = frozenset([*NAMES["whole"]["rating"], *LOG_WORDS["rated"]])
OTHER_ROLES = ("title", "user", "item", "time")
# A column with more different cells says something else than what a row is.
MAX_VALUES = 20
# An event is a text of at most so many words.
MAX_WORDS = 5
# The highest number that a scale has if the column is not named as of ratings.
HIGHEST = 10
# Cells that are looked at to decide quickly.
SAMPLE_CELLS = 1000
# A column of which more than this share of the cells are numbers can be ratings.
MIN_NUMBERS = 0.5
# Rows of items, or of users, that are enough to see that a column does not vary within them.
MIN_REPEATED = 20
# Texts of one or two such characters may be codes: NO is Norway, and F a size.
SHORT = "[ -~]{1,2}"


class FreeColumn:
    """A column of a log without a role, and what the rules ask of it.

    user, item: the columns of users and items. has_feedback: whether ratings, or events that the
    caller names, already say what a row means. Each property is computed when a rule asks for it,
    because some of them read the whole column.
    """

    def __init__(
        self, table: Table, name: str, user: str, item: str, *, has_feedback: bool
    ) -> None:
        self.table = table
        self.name = name
        self.user = user
        self.item = item
        self.has_feedback = has_feedback
        self.words = frozenset(words_of(name))
        self.sample = table.sample(name, SAMPLE_CELLS)

    # What the name says.

    @cached_property
    def is_named_as_other_role(self) -> bool:
        return any(named(role, [self.name]) for role in OTHER_ROLES)

    @cached_property
    def is_named_as_refunds(self) -> bool:
        return named_as_taking_back(self.name)

    @cached_property
    def is_named_as_dislikes(self) -> bool:
        return not OF_DISLIKES.isdisjoint(self.words)

    @cached_property
    def is_named_as_events(self) -> bool:
        return not OF_EVENTS.isdisjoint(self.words)

    @cached_property
    def holds_named_ratings(self) -> bool:
        """Whether the column is named as of ratings, and most of its cells are numbers."""
        if OF_RATINGS.isdisjoint(self.words):
            return False
        return bool(as_numbers(self.sample).notna().mean() > MIN_NUMBERS)

    @property
    def is_suspect_by_name(self) -> bool:
        return self.is_named_as_refunds or self.holds_named_ratings

    # What the cells are.

    @cached_property
    def coded(self) -> Coded:
        return self.table.columns[self.name].coded()

    @property
    def texts(self) -> pd.Series:
        """The distinct cells (m,)."""
        return self.coded.texts

    @cached_property
    def counts(self) -> np.ndarray:
        """How many rows have each of the distinct cells (m,)."""
        return counts_of(self.coded.codes, len(self.texts))

    @cached_property
    def n_empty(self) -> int:
        return len(self.table) - int(self.counts.sum())

    @cached_property
    def are_all_equal(self) -> bool:
        """Whether all rows have the same cell. An empty cell is another one."""
        n_different = len(self.texts) + (1 if self.n_empty else 0)
        return n_different < 2

    @cached_property
    def repeats_few_cells(self) -> bool:
        """Whether there are at most `MAX_VALUES` cells, each in two rows on average."""
        return bool(len(self.texts) <= min(MAX_VALUES, self.counts.sum() / 2))

    @cached_property
    def cells(self) -> pd.Series:
        """The distinct cells in lower case, without those that stand for an empty one."""
        return self.texts.str.strip().str.casefold()[~are_missing(self.texts)]

    @cached_property
    def numbers(self) -> pd.Series:
        """`cells` as numbers, NaN for others."""
        return as_numbers(self.cells)

    @cached_property
    def answers(self) -> pd.Series:
        """`cells` as words of yes, no, like and dislike are spelled."""
        return self.cells.map(fold)

    @cached_property
    def are_answers(self) -> bool:
        """Whether all cells are likes and dislikes, yes or no, and not only numbers."""
        is_answer = self.answers.isin(LIKES | DISLIKES)
        return bool(self.numbers.isna().any() and is_answer.all())

    @cached_property
    def has_long_answer(self) -> bool:
        """Whether a cell is a like or a dislike that is too long to be a code."""
        is_answer = self.answers.isin(LIKES | DISLIKES)
        return bool((is_answer & ~self.cells.str.fullmatch(SHORT)).any())

    @cached_property
    def has_events(self) -> bool:
        return any(map(tells_event, self.cells))

    @cached_property
    def has_refund_or_dislike(self) -> bool:
        """Whether a cell is a refund or a dislike, which say something even in every row."""
        is_no = self.answers.isin(no_words())
        is_refund = self.cells.map(named_as_taking_back).astype(bool)
        if self.is_named_as_refunds or self.is_named_as_dislikes:
            is_refund |= self.answers.isin(yes_words())
        is_dislike = self.answers.isin(DISLIKES)
        if not self.is_named_as_events:
            is_dislike &= ~is_no  # newsletter: no
        return bool((is_refund | is_dislike).any())

    @cached_property
    def are_numbers(self) -> bool:
        return bool(self.numbers.notna().all()) or self.holds_named_ratings

    @cached_property
    def are_on_a_scale(self) -> bool:
        """Whether the numbers can be ratings: whole or half ones up to ±10, or named as ratings."""
        if self.holds_named_ratings:
            return True
        are_halves = bool((self.numbers * 2 % 1 == 0).all())
        return are_halves and bool(self.numbers.abs().max() <= HIGHEST)

    @cached_property
    def is_one_number(self) -> bool:
        """Whether there is nothing but one number. One dislike beside empty cells is more."""
        return len(self.numbers) + (1 if self.is_named_as_dislikes else 0) < 2

    @cached_property
    def is_one_code(self) -> bool:
        """Whether there is one cell, of at most two letters."""
        return len(self.texts) < 2 and self.cells.str.len().max() < 3

    @cached_property
    def are_answers_or_likes(self) -> bool:
        return self.are_answers or (self.has_long_answer and not self.has_events)


def as_numbers(cells: pd.Series) -> pd.Series:
    """Return cells such as 3,5 and 4/5 as numbers, NaN for others."""
    numbers = pd.to_numeric(cells.str.replace(",", "."), errors="coerce")
    return numbers.fillna(cells.map(_rating_of_fraction))


def _rating_of_fraction(cell: str) -> float:
    rating = out_of(cell)
    return np.nan if rating is None else rating[0]


def tells_event(text: str) -> bool:
    """Return whether a cell is an event: it has few words, one of which is such as cart or refund.

    >>> tells_event("Added to cart"), tells_event("Ask me about the cart of my uncle")
    (True, False)
    """
    words = words_of(text)
    is_short = len(words) <= MAX_WORDS
    if is_short and (not OF_EVENTS.isdisjoint(words) or folded(text) in OF_EVENTS):
        return True
    return any(sign in text for sign in LOG_WORDS["telling_signs"])


# --- what to do about a column ---


def _as_events(column: FreeColumn) -> str:
    name = quote(column.name)
    if not column.is_named_as_dislikes:
        return f"Use `event_column` {name} with `event_weights`, or"
    if column.n_empty:
        return "Leave its rows out, or use"
    weights = [
        f"{text}={1 if fold(text) in no_words() else -1}"
        for text in sorted(column.cells)[:MAX_VALUES]
    ]
    return f"Use `event_column` {name} with `event_weights` {quote(','.join(weights))}, or"


def _as_ratings(column: FreeColumn) -> str:
    if column.is_named_as_dislikes:  # a high number, or yes, is no like
        return _as_events(column)
    return f"Use `rating_column` {quote(column.name)}, or"


def _as_refunds(column: FreeColumn) -> str:
    """Amounts and dates, or empty cells, cannot be listed as events."""
    can_be_listed = column.numbers.isna().all() or len(column.texts) == 2
    if column.repeats_few_cells and not column.n_empty and can_be_listed:
        return _as_events(column)
    return "Leave these rows out, or use"


class Meaning(NamedTuple):
    """What a column may say, and the options that decide.

    what: as a message says it. advice: the beginning of the sentence on what to do. A column says
    nothing of its rows where all rows of an item have the same cell; varies_within_user: nor where
    all rows of a user have.
    """

    what: str
    advice: Callable[[FreeColumn], str]
    varies_within_user: bool


REFUNDS = Meaning("which rows were taken back", _as_refunds, varies_within_user=False)
RATINGS = Meaning("how much an item is liked", _as_ratings, varies_within_user=True)
LIKED = Meaning("whether a row is a like", _as_ratings, varies_within_user=True)
EVENTS = Meaning("what a row is", _as_events, varies_within_user=False)


class MeaningRule(NamedTuple):
    """A rule on columns without a role.

    condition: in words, for the documentation. meaning: what such a column may say, None for a
    column that says nothing. example: a column's name and cells to which the rule applies.
    """

    name: str
    condition: str
    holds: Callable[[FreeColumn], bool]
    meaning: Meaning | None
    example: tuple[str, Sequence[str]]


# The first rule that holds decides. A column to which none applies says nothing.
RULES = (
    MeaningRule(
        "empty",
        "All cells are empty.",
        lambda column: column.sample.empty,
        None,
        ("returned", ["", ""]),
    ),
    MeaningRule(
        "other role",
        "It is named as a title, a user, an item or a time.",
        lambda column: column.is_named_as_other_role,
        None,
        ("product name", ["like", "refund"]),
    ),
    MeaningRule(
        "many cells",
        f"It has more than {MAX_VALUES} different cells, and is not named as of refunds, nor as of "
        "ratings with numbers in it.",
        lambda column: not column.is_suspect_by_name and column.sample.nunique() > MAX_VALUES,
        None,
        ("order", [str(number) for number in range(1, 31)]),
    ),
    MeaningRule(
        "always the same",
        "All rows have the same cell, and it is neither a refund nor a dislike.",
        lambda column: column.are_all_equal and not column.has_refund_or_dislike,
        None,
        ("newsletter", ["no", "no"]),
    ),
    MeaningRule(
        "seldom repeated",
        "Its cells occur fewer than two times on average, are not all yes or no, and it is not "
        "named as of refunds or ratings.",
        lambda column: (
            not column.are_all_equal
            and not column.is_suspect_by_name
            and not column.repeats_few_cells
            and not column.are_answers
        ),
        None,
        ("comment", ["what a return", "watched twice"]),
    ),
    MeaningRule(
        "nothing taken back",
        "It is named as of refunds, returns or cancellations, and all cells are empty, 0 or no.",
        lambda column: (
            column.is_named_as_refunds
            and bool((column.answers.isin(no_words()) | column.numbers.eq(0)).all())
        ),
        None,
        ("returns", ["0", ""]),
    ),
    MeaningRule(
        "refunds",
        "It is named as of refunds, returns or cancellations.",
        lambda column: column.is_named_as_refunds,
        REFUNDS,
        ("Refunded Amount", ["0.00", "12.50", "7"]),
    ),
    MeaningRule(
        "numbers beside feedback",
        "All cells are numbers, and there are ratings, or events that an option names.",
        lambda column: column.are_numbers and column.has_feedback,
        None,
        ("stars", ["1", "5", "1", "5"]),
    ),
    MeaningRule(
        "one number",
        "All cells are the same number, or empty, and it is not named as of dislikes.",
        lambda column: column.are_numbers and column.is_one_number,
        None,
        ("page", ["1", "1", ""]),
    ),
    MeaningRule(
        "no scale",
        f"All cells are numbers, some are not whole or half numbers from −{HIGHEST} to {HIGHEST}, "
        "and it is not named as of ratings, such as note, vote or Bewertung.",
        lambda column: column.are_numbers and not column.are_on_a_scale,
        None,
        ("tax", ["7", "19", "7", "19"]),
    ),
    MeaningRule(
        "other numbers",
        "All cells are numbers, and it is named as an id or a part of a date.",
        lambda column: column.are_numbers and not OF_OTHER_NUMBERS.isdisjoint(column.words),
        None,
        ("weekday", ["1", "7", "1", "7"]),
    ),
    MeaningRule(
        "ratings",
        "All cells are numbers, fractions such as 4/5, or stars; most of them, if it is named as "
        "of ratings.",
        lambda column: column.are_numbers,
        RATINGS,
        ("note", ["3,5", "4/5", "3,5", "4/5"]),
    ),
    MeaningRule(
        "yes and no beside feedback",
        "All cells are yes and no, or some are likes and none is another event; and there are "
        "ratings, or events that an option names.",
        lambda column: column.are_answers_or_likes and column.has_feedback,
        None,
        ("verified", ["yes", "no"]),
    ),
    MeaningRule(
        "one code",
        "All cells are the same yes or no of at most two letters, or empty.",
        lambda column: column.are_answers_or_likes and column.is_one_code,
        None,
        ("country", ["NO", "NO", ""]),
    ),
    MeaningRule(
        "likes",
        "All cells are yes and no, or some are likes or dislikes and none is another event.",
        lambda column: column.are_answers_or_likes,
        LIKED,
        ("reaction", ["👍", "👎", "😐", "👍", "👎", "😐"]),
    ),
    MeaningRule(
        "events",
        f"A cell is a text of at most {MAX_WORDS} words with one such as like, refund, cart or "
        "purchase in it, or the column's name has one and there is no other feedback.",
        lambda column: column.has_events or (column.is_named_as_events and not column.has_feedback),
        EVENTS,
        ("Financial Status", ["paid", "refunded", "paid", "refunded"]),
    ),
)


def rule_for(column: FreeColumn) -> MeaningRule | None:
    """Return the first rule that holds, None where a column says nothing by any of them."""
    return next((rule for rule in RULES if rule.holds(column)), None)


def check_meaning(
    table: Table, free: Sequence[str], roles: Mapping[str, str], columns: Columns, file: str
) -> None:
    """Raise `DataError` where a column without a role may say what a row means.

    free: the columns without a role. roles: the columns with one, by their roles.
    """
    has_ratings = "rating" in roles and table.columns[roles["rating"]].n_filled > 0
    has_feedback = columns.event is not None or has_ratings
    doubts = []
    for name in free:
        column = FreeColumn(table, name, roles["user"], roles["item"], has_feedback=has_feedback)
        rule = rule_for(column)
        if rule is not None and rule.meaning is not None and _varies(column, rule.meaning):
            doubts.append(_message(column, rule.meaning))
    if doubts:
        raise DataError(f"{file}: {' Also '.join(doubts)}")


def _varies(column: FreeColumn, meaning: Meaning) -> bool:
    """Return whether the cells differ within the rows of an item, and of a user if it matters."""
    ids = [column.item, column.user] if meaning.varies_within_user else [column.item]
    return not is_constant_within(column.table, column.name, ids)


def _message(column: FreeColumn, meaning: Meaning) -> str:
    """Return what a column may say, with its most common cells, and what to do about it."""
    users = column.table.columns[column.user].coded().texts
    hidden = are_users(column.texts, users)
    shown = dict(zip(column.texts[~hidden], column.counts[~hidden].tolist(), strict=True))
    shown["users"] = int(column.counts[hidden].sum())
    shown["empty"] = column.n_empty
    return (
        f"column {shorten(column.name)} ({counted(shown)}) may say {meaning.what}. "
        f"{meaning.advice(column)} `ignore` {quote(column.name)}."
    )


def are_users(texts: pd.Series, users: pd.Series) -> np.ndarray:
    """Return which cells no message quotes: users of the log, and e-mail addresses."""
    return (texts.isin(users) | texts.str.strip().str.fullmatch(EMAIL)).to_numpy(bool)


def is_constant_within(table: Table, name: str, ids: Collection[str]) -> bool:
    """Return whether all rows of an item, or of a user, have the same cell in a column.

    ids: the columns of items and users. Only items (users) with several rows show it. They must
    have half of the filled rows, and `MIN_REPEATED` or more. They must differ from one another: a
    column with one cell alone tells nothing of items.
    """
    codes, _ = table.columns[name].coded()
    for id_ in ids:
        of_row, all_ids = table.columns[id_].coded()
        filled = (of_row >= 0) & (codes >= 0)
        rows, cells = filtered(of_row, filled), filtered(codes, filled)
        last = np.full(len(all_ids), -1, np.int32)
        last[rows] = cells
        counts = counts_of(rows, len(all_ids))
        repeated = counts > 1
        are_enough = counts[repeated].sum() >= max(MIN_REPEATED, len(rows) / 2)
        if not are_enough:
            continue
        are_the_same_within = (last[rows] == cells).all()
        if are_the_same_within and len(np.unique(last[repeated])) > 1:
            return True
    return False

"""Columns of a log that say what a row means: a like, a dislike, a purchase, a refund."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from shlex import quote

import numpy as np
import pandas as pd

from qkvsearch._utils.folding import fold
from qkvsearch._utils.scratch import counts_of, filtered
from qkvsearch._utils.validation import is_number, require
from qkvsearch.errors import DataError, listed_names
from qkvsearch.tables.columns import EMAIL, NAMES, Columns, folded, named, words_of
from qkvsearch.tables.columns.facts import NO, YES, are_missing
from qkvsearch.tables.columns.rating_cells import DISLIKES, LIKES, LOG_WORDS, out_of
from qkvsearch.tables.files.encoded import EncodedTable
from qkvsearch.tables.ratings import LARGEST
from qkvsearch.tables.report import ReadReport
from qkvsearch.terminal import shorten

COMMON_EVENTS = {
    folded(event): float(weight)
    for weight, events in LOG_WORDS["events"].items()
    for event in events
}
TELLING, TAKING_BACK = {*LOG_WORDS["telling"]}, {*LOG_WORDS["taking_back"]}
DISLIKING = {*LOG_WORDS["disliking"]}
NOT_FEEDBACK = {*LOG_WORDS["not_feedback"], *NAMES["numbers"]}
RATED = {*NAMES["whole"]["rating"], *LOG_WORDS["rated"]}
OTHER_ROLES = ("title", "user", "item", "time")
# A column with more different cells says something else than what a row is.
MAX_VALUES, MAX_WORDS, MIN_NUMBERS = 20, 5, 0.5
HIGHEST, LISTED, SAMPLE_CELLS, MIN_REPEATED = 10, 4, 1000, 20


# --- events ---


def event_name(text: str) -> str:
    """Return an event without accents, case and all that is between its words.

    >>> event_name("Add_To-Cart"), event_name("addToCart")
    ('addtocart', 'addtocart')
    """
    return folded(text) or text.strip()


def event_weights(
    texts: Sequence[str], counts: np.ndarray, name: str, columns: Columns, report: ReadReport
) -> np.ndarray:
    """Return the weights of distinct events (m,), and write them into the report; stated ones hold
    for files that are recorded later as well. counts (m,): in how many usable rows each is. Raises
    `DataError` for an event without a weight.
    """
    stated: dict[str, float] = {}
    for event, weight in columns.event_weights.items():
        is_usable = is_number(weight) and abs(weight) <= LARGEST
        require(is_usable, f"event_weights[{event!r}]", weight, f"a number within ±{LARGEST:g}")
        first = stated.setdefault(event_name(event), weight)
        expected = f"{first:g}, the weight of its other spelling"
        require(first == weight, f"event_weights[{event!r}]", weight, expected)
    weights = stated or COMMON_EVENTS
    cells = dict(zip(texts, counts.tolist(), strict=True))
    unknown = {text: n for text, n in cells.items() if n and event_name(text) not in weights}
    if unknown:
        why = "`event_weights` does not have" if stated else "are not among the common ones"
        usual = COMMON_EVENTS | weights
        once = {event_name(text): text.strip() for text in reversed(cells)}
        back = {name: -5.0 for name, text in once.items() if named_as_taking_back(text)}
        proposed = ",".join(f"{text}={(back | usual).get(e, 1):g}" for e, text in once.items())
        raise DataError(
            f"{report.file}: column {name} has events that {why}: {_counted(unknown)}. Use "
            f"`event_weights` {quote(shorten(proposed, 200))} with the weights you want (0: not "
            f"counted, negative: taken back), or `ignore` {quote(name)}"
        )
    events = [event_name(text) for text in texts]
    listed = sorted(
        f"{shorten(text)}={weights[event]:g} ({cells[text]:,})"
        for text, event in zip(texts, events, strict=True)
        if cells[text]
    )
    report.notes.append(
        f"events of column {name} count {', '.join(listed)}; `event_weights` decides"
    )
    absent = stated.keys() - {event for event, n in zip(events, counts, strict=True) if n}
    report.note(len(absent), "no row has {events}", events=listed_names(sorted(absent), LISTED))
    convention = json.dumps(stated) if stated else ""
    report.columns = [
        replace(column, convention=convention) if column.role == "event" else column
        for column in report.columns
    ]
    return np.array([weights.get(event, np.nan) for event in events], np.float64)


# --- columns that no option names ---


def named_as_taking_back(name: str) -> bool:
    """Return whether a column is named as of refunds, returns or cancellations."""
    return bool(TAKING_BACK & {*words_of(name)})


def says_nothing(table: EncodedTable, name: str, ids: Collection[str]) -> bool:
    """Return whether all rows of an item, or of a user, have the same cell in a column.

    ids: the columns of items and users. Of those with several rows, with half of all rows and 20
    or more together, some must differ.
    """
    codes, _ = table.columns[name].coded()
    for id_ in ids:
        of_row, all_ids = table.columns[id_].coded()
        filled = (of_row >= 0) & (codes >= 0)
        rows, cells = filtered(of_row, filled), filtered(codes, filled)
        last = np.full(len(all_ids), -1, np.int32)
        last[rows] = cells
        repeated = (counts := counts_of(rows, len(all_ids))) > 1
        is_enough = counts[repeated].sum() >= max(MIN_REPEATED, len(rows) / 2)
        if is_enough and (last[rows] == cells).all() and len(np.unique(last[repeated])) > 1:
            return True
    return False


def check_meaning(
    table: EncodedTable, free: Sequence[str], roles: Mapping[str, str], columns: Columns, file: str
) -> None:
    """Raise `DataError` where a column without a role may say what a row means.

    free: the columns without a role. Yes/no and numbers say nothing new beside ratings, nor beside
    events that the caller names.
    """
    has_meaning = columns.event is not None or (
        "rating" in roles and table.columns[roles["rating"]].n_filled > 0
    )
    doubts = [*filter(None, (_doubt(table, name, roles, has_meaning) for name in free))]
    if doubts:
        raise DataError(f"{file}: {' Also '.join(doubts)}")


def _doubt(table: EncodedTable, name: str, roles: Mapping[str, str], has_meaning: bool) -> str:
    """Return why a column may say what a row means, and what to do; "" for other columns."""
    words, is_named = {*words_of(name)}, any(named(role, [name]) for role in OTHER_ROLES)
    takes_back = named_as_taking_back(name)
    sample = table.sample(name, SAMPLE_CELLS)
    is_rated = bool(RATED & words) and bool(_numbers(sample).notna().mean() > MIN_NUMBERS)
    is_asked = takes_back or is_rated
    if sample.empty or is_named or (not is_asked and sample.nunique() > MAX_VALUES):
        return ""
    codes, texts = table.columns[name].coded()
    counts = counts_of(codes, len(texts))
    n_empty = len(table) - int(counts.sum())
    are_few = len(texts) <= min(MAX_VALUES, counts.sum() / 2)
    cells = texts.str.strip().str.casefold()[~are_missing(texts)]
    answers = cells.map(fold)
    numbers = _numbers(cells)
    column, ids = quote(name), [roles["item"]]
    by_event = f"Use `event_column` {column} with `event_weights`, or"
    by_rating = f"Use `rating_column` {column}, or"
    is_answer = answers.isin(LIKES | DISLIKES)
    are_answers = numbers.isna().any() and is_answer.all()
    is_answer &= ~cells.str.fullmatch("[ -~]{1,2}")  # NO may be Norway, and F a size
    is_disliking = bool(DISLIKING & words)
    if is_disliking:
        signs = ",".join(
            f"{text}={1 if fold(text) in NO else -1}" for text in sorted(cells)[:MAX_VALUES]
        )
        by_event = f"Use `event_column` {column} with `event_weights` {quote(signs)}, or"
        by_rating = by_event = "Leave its rows out, or use" if n_empty else by_event
    if len(texts) + bool(n_empty) < 2:  # all the same: only refunds and dislikes say something
        is_dislike = answers.isin(DISLIKES) & ~(answers.isin(NO) & (not TELLING & words))
        is_refund = answers.isin(YES) & (takes_back or is_disliking)
        is_refund |= cells.map(named_as_taking_back)
        if not (is_dislike | is_refund).any():
            return ""
    elif not (is_asked or are_few or are_answers):
        return ""
    if takes_back:
        if (answers.isin(NO) | numbers.eq(0)).all():
            return ""
        what, use = "which rows were taken back", "Leave these rows out, or use"
        if are_few and not n_empty and (numbers.isna().all() or len(texts) == 2):
            use = by_event
    elif numbers.notna().all() or is_rated:
        is_scale = is_rated or bool((numbers * 2 % 1 == 0).all() and numbers.abs().max() <= HIGHEST)
        if has_meaning or len(numbers) + is_disliking < 2 or not is_scale or NOT_FEEDBACK & words:
            return ""
        what, use = "how much an item is liked", by_rating
        ids.append(roles["user"])
    elif are_answers or (is_answer.any() and not any(map(_tells, cells))):
        if has_meaning or (len(texts) < 2 and cells.str.len().max() < 3):
            return ""
        what, use = "whether a row is a like", by_rating
        ids.append(roles["user"])
    elif any(map(_tells, cells)) or (TELLING & words and not has_meaning):
        what, use = "what a row is", by_event
    else:
        return ""
    if says_nothing(table, name, ids):
        return ""
    hidden = are_users(texts, table.columns[roles["user"]].coded().texts)
    listed = dict(zip(texts[~hidden], counts[~hidden].tolist(), strict=True))
    listed |= {"users": int(counts[hidden].sum()), "empty": n_empty}
    return f"column {shorten(name)} ({_counted(listed)}) may say {what}. {use} `ignore` {column}."


def _numbers(cells: pd.Series) -> pd.Series:
    """Return cells such as 3,5 and 4/5 as numbers, NaN for others."""
    numbers = pd.to_numeric(cells.str.replace(",", "."), errors="coerce")
    return numbers.fillna(cells.map(lambda cell: (out_of(cell) or [np.nan])[0]))


def are_users(texts: pd.Series, users: pd.Series) -> np.ndarray:
    """Return which cells no message quotes: users of the log, and e-mail addresses."""
    return (texts.isin(users) | texts.str.strip().str.fullmatch(EMAIL)).to_numpy(bool)


def _tells(text: str) -> bool:
    words = words_of(text)
    is_event = len(words) <= MAX_WORDS and (TELLING & {*words} or folded(text) in TELLING)
    return bool(is_event) or any(sign in text for sign in LOG_WORDS["telling_signs"])


def _counted(cells: Mapping[str, int]) -> str:
    """List the most common cells with how often each occurs."""
    ordered = sorted(cells.items(), key=lambda cell: -cell[1])
    return listed_names([f"{shorten(text, 30)} {n:,}" for text, n in ordered if n], LISTED)

"""What the events of a log count: view=1, purchase=5, refund=-5."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from shlex import quote
from typing import Any

import numpy as np

from qkvsearch._utils.validation import is_number, require
from qkvsearch.errors import DataError, listed_names
from qkvsearch.tables.columns import Columns, folded, words_of
from qkvsearch.tables.columns.log_words import LOG_WORDS
from qkvsearch.tables.ratings import LARGEST
from qkvsearch.tables.report import ReadReport
from qkvsearch.terminal import shorten

# What an event counts where no option says so, by its name as `event_name` writes it.
COMMON_EVENTS = {
    folded(event): float(weight)
    for weight, events in LOG_WORDS["events"].items()
    for event in events
}
TAKING_BACK = frozenset(LOG_WORDS["taking_back"])
# What an unknown event that is named as a refund counts in the proposal of a message.
REFUND = -5.0
# Cells, or events, that a message names.
MAX_LISTED = 4


def event_name(text: str) -> str:
    """Return an event without accents, case and all that is between its words.

    >>> event_name("Add_To-Cart"), event_name("addToCart")
    ('addtocart', 'addtocart')
    """
    return folded(text) or text.strip()


def named_as_taking_back(name: str) -> bool:
    """Return whether a column or an event is named as of refunds, returns or cancellations."""
    return not TAKING_BACK.isdisjoint(words_of(name))


def counted(cells: Mapping[str, int]) -> str:
    """List the most common cells with how often each occurs.

    >>> counted({"yes": 1200, "no": 3400, "maybe": 0})
    'no 3,400, yes 1,200'
    """
    most_common_first = sorted(cells.items(), key=lambda cell: -cell[1])
    occurring = [f"{shorten(text, 30)} {count:,}" for text, count in most_common_first if count]
    return listed_names(occurring, MAX_LISTED)


def event_weights(
    texts: Sequence[str], counts: np.ndarray, name: str, columns: Columns, report: ReadReport
) -> np.ndarray:
    """Return the weights of the distinct events of a column, float64 (m,), and report them.

    counts (m,): in how many usable rows each event is. An event that is in none may have no weight:
    NaN. Weights that an option states are stored with the column, because they hold for files that
    are recorded later as well. Raises `DataError` for an event without a weight.
    """
    stated = _stated_weights(columns)
    weights = stated or COMMON_EVENTS
    count_of = dict(zip(texts, counts.tolist(), strict=True))
    unknown = {
        text: count for text, count in count_of.items() if count and event_name(text) not in weights
    }
    if unknown:
        why = "`event_weights` does not have" if stated else "are not among the common ones"
        proposed = _proposed_weights(texts, weights)
        raise DataError(
            f"{report.file}: column {name} has events that {why}: {counted(unknown)}. Use "
            f"`event_weights` {quote(shorten(proposed, 200))} with the weights you want (0: not "
            f"counted, negative: taken back), or `ignore` {quote(name)}"
        )
    occurring = [text for text, count in count_of.items() if count]
    listed = sorted(
        f"{shorten(text)}={weights[event_name(text)]:g} ({count_of[text]:,})" for text in occurring
    )
    report.notes.append(
        f"events of column {name} count {', '.join(listed)}; `event_weights` decides"
    )
    absent = stated.keys() - set(map(event_name, occurring))
    report.note(len(absent), "no row has {events}", events=listed_names(sorted(absent), MAX_LISTED))
    convention = json.dumps(stated) if stated else ""
    report.columns = [
        replace(column, convention=convention) if column.role == "event" else column
        for column in report.columns
    ]
    return np.array([weights.get(event_name(text), np.nan) for text in texts], np.float64)


def weight_of_event(event: str, log_columns: Sequence[Mapping[str, Any]]) -> float:
    """Return what an event counts in a log. log_columns: the facts about the columns of the log.

    Raises `DataError`, which names the event, where the log has no events, or none with this name.
    """
    named_event = repr(shorten(event))
    of_events = [column for column in log_columns if column["role"] == "event"]
    if not of_events:
        raise DataError(
            f"`event`: {named_event} has no weight here, since the log of this workspace has no "
            "column of events (`event_column`): leave it out"
        )
    convention = of_events[0]["convention"]
    weights: Mapping[str, float] = json.loads(convention) if convention else COMMON_EVENTS
    weight = weights.get(event_name(event))
    if weight is None and convention:
        known = listed_names([f"{name}={known:g}" for name, known in weights.items()])
        raise DataError(f"`event`: {named_event} has no weight here (events: {known})")
    if weight is None:
        raise DataError(
            f"`event`: {named_event} has no weight here: it is none of the common ones, such as "
            f"{listed_names(list(COMMON_EVENTS), 3)}, and the build has no `event_weights`"
        )
    return weight


def times_events(amounts: Any, weights: Any) -> Any:
    """Return amounts, numbers or arrays, times the weights of their events. Where either is
    negative, the interaction is taken back.

    >>> float(times_events(3, 5)), float(times_events(-1, -5))
    (15.0, -5.0)
    """
    is_back = (amounts < 0) | (weights < 0)
    return np.abs(amounts * weights) * np.where(is_back, -1, 1)


def _stated_weights(columns: Columns) -> dict[str, float]:
    """Return the weights that an option states, by the events' names. Raises `DataError` for a
    weight that is no number, and for two spellings of an event with different weights.
    """
    stated: dict[str, float] = {}
    for event, weight in columns.event_weights.items():
        is_usable = is_number(weight) and abs(weight) <= LARGEST
        require(is_usable, f"event_weights[{event!r}]", weight, f"a number within ±{LARGEST:g}")
        first = stated.setdefault(event_name(event), weight)
        expected = f"{first:g}, the weight of its other spelling"
        require(first == weight, f"event_weights[{event!r}]", weight, expected)
    return stated


def _proposed_weights(texts: Sequence[str], known: Mapping[str, float]) -> str:
    """Return weights for all events of a column, as the option `event_weights` takes them.

    An event counts what is known of it, otherwise what is common, otherwise `REFUND` if it is named
    as a refund, otherwise 1. Of several spellings of an event the first one is shown.
    """
    spellings: dict[str, str] = {}
    for text in reversed(texts):
        spellings[event_name(text)] = text.strip()
    proposed = []
    for event, text in spellings.items():
        unusual = REFUND if named_as_taking_back(text) else 1
        weight = known.get(event, COMMON_EVENTS.get(event, unusual))
        proposed.append(f"{text}={weight:g}")
    return ",".join(proposed)

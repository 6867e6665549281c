"""What is in a log of searches: each search, and the clicks on its hits."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from qkvsearch._utils.files import write_synced
from qkvsearch.errors import Count, WorkspaceError
from qkvsearch.store.search_log import lines_of, log_files, log_folder
from qkvsearch.tables.ids import Id, id_text


class LoggedSearch(NamedTuple):
    """One search, as it was answered."""

    id: str
    # Who searched: the same for all searches of one day, and no name.
    visitor: str
    # Seconds since 1970.
    time: float
    query: str
    # How many hits there were.
    total: int
    # The first hits as texts of their ids, the best first. None of a search for a user: they would
    # say something of that user.
    shown: tuple[str, ...]
    # The rank before the first of them: further pages begin behind 0.
    offset: int
    # Whether the last word may have been unfinished.
    is_typing: bool
    # Whether there was more than words: a filter, a user, a sort or a choice of heads.
    has_options: bool
    # Why there were no hits, as the answer said it.
    no_hits: Mapping[str, Any] | None


@dataclass(frozen=True)
class LoggedSearches:
    """The searches of a log, the oldest first, and their clicks."""

    searches: list[LoggedSearch] = field(default_factory=list)
    # By the id of a search: the position of each item that was clicked on, when it first was.
    clicks: dict[str, dict[str, int]] = field(default_factory=dict)
    # Lines that are neither a search nor a click, such as one that a full disk cut short.
    n_unreadable: int = 0

    def notes(self) -> list[str]:
        """Return what the reader should know about the log."""
        if not self.n_unreadable:
            return []
        n = Count(self.n_unreadable)
        return [f"{n} {n:line|lines} of the log cannot be read and {n:is|are} left out."]


def read_log(workspace: Path) -> LoggedSearches:
    """Read the log of a workspace. One that is not there is empty. A click counts once for a search
    and an item, and only where the log has its search. Raises `WorkspaceError`.
    """
    try:
        return _read(log_folder(workspace))
    except OSError as error:
        raise _unreadable(workspace, error) from None


def _unreadable(workspace: Path, error: OSError) -> WorkspaceError:
    path = error.filename or log_folder(workspace)
    return WorkspaceError(
        f"{path}: cannot read or change the log of searches: {error.strerror or error}"
    )


def _read(folder: Path) -> LoggedSearches:
    searches: list[LoggedSearch] = []
    clicks: dict[str, dict[str, int]] = {}
    n_unreadable = 0
    for file in log_files(folder):
        for line in lines_of(file):
            try:
                record = json.loads(line)
                if "click" in record:
                    query_id, item, position = _click(record)
                    if query_id in clicks:
                        clicks[query_id].setdefault(item, position)
                else:
                    search = _search(record)
                    searches.append(search)
                    clicks[search.id] = {}
            except (ValueError, TypeError, LookupError):
                n_unreadable += 1
    return LoggedSearches(searches, clicks, n_unreadable)


def _search(record: dict[str, Any]) -> LoggedSearch:
    """Return a search of the log. Raises `ValueError`, `TypeError` and `LookupError`."""
    return LoggedSearch(
        _text(record["search"]),
        _text(record["visitor"]),
        datetime.fromisoformat(record["time"]).timestamp(),
        _text(record["query"]),
        _whole(record["total"]),
        tuple(map(id_text, record["shown"])),
        _whole(record.get("offset", 0)),
        record.get("typing", False) is True,
        record.get("options", False) is True,
        _reasons(record.get("no_hits")),
    )


def _click(record: dict[str, Any]) -> tuple[str, str, int]:
    item = record["item"]
    if not isinstance(item, str | int | float):
        raise TypeError("no id")
    return _text(record["click"]), id_text(item), _whole(record["position"])


def _reasons(value: Any) -> Mapping[str, Any] | None:
    """Return why there were no hits. Raises `TypeError` for anything else."""
    if value is not None and not isinstance(value, dict):
        raise TypeError("no object")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("no text")
    return value


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError("no count")
    return value


def forget_in_log(workspace: Path, user: Id, *, dry_run: bool = False) -> int:
    """Delete the searches whose text contains the id of a user as a word, and their clicks. Return
    how many searches that is. The log says of no search whose it is, so that these are all that can
    be found. Raises `WorkspaceError`.
    """
    try:
        return _forget(log_folder(workspace), user, dry_run)
    except OSError as error:
        raise _unreadable(workspace, error) from None


def _forget(folder: Path, user: Id, dry_run: bool) -> int:
    """Delete the searches of a log that name a user. Raises `OSError`."""
    name = _as_word(id_text(user))
    files = log_files(folder)
    ids = {
        str(record["search"])
        for file in files
        for record in filter(None, map(_record, lines_of(file)))
        if "search" in record and _has_name(record, name)
    }
    if not dry_run:
        for file in files:
            _leave_out(file, ids)
    return len(ids)


def _as_word(name: str) -> re.Pattern[str]:
    """Return what finds a name as a word, in any case. Where it begins or ends with a letter that
    has no case, as in Chinese, another one may be beside it: there are no spaces between words.

    >>> [bool(_as_word(name).search("Hi Ann, 给张三的信")) for name in ("ann", "an", "张三")]
    [True, False, True]
    """
    before, after = (
        "" if letter.isalpha() and letter.upper() == letter.lower() else boundary
        for letter, boundary in ((name[:1], r"(?<!\w)"), (name[-1:], r"(?!\w)"))
    )
    return re.compile(f"{before}{re.escape(name)}{after}", re.IGNORECASE)


def _record(line: bytes) -> dict[str, Any] | None:
    """Return a line of the log; None for one that cannot be read."""
    with suppress(ValueError):
        record = json.loads(line)
        if isinstance(record, dict):
            return record
    return None


def _has_name(record: dict[str, Any], name: re.Pattern[str]) -> bool:
    """Return whether a name is in the text of a search, or in why there was no hit."""
    reasons = record.get("no_hits")
    words = dict(reasons) if isinstance(reasons, dict) else {}
    words.pop("reason", None)  # a word of the log, not of the search
    return any(name.search(text) for text in _texts_in([record.get("query"), words]))


def _texts_in(value: Any) -> Iterator[str]:
    """Yield the texts of a value of JSON, without the names of fields."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _texts_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts_in(each)


def _leave_out(file: Path, ids: set[str]) -> None:
    """Leave these searches and their clicks out of a file, and lines that cannot be read, which may
    have the id in them. A line that a server appends at the same moment may be lost.
    """
    lines = list(lines_of(file))
    kept = []
    for line in lines:
        record = _record(line)
        if record is not None:
            its_search = str(record.get("search", record.get("click")))
            if its_search not in ids:
                kept.append(line)
    if len(kept) < len(lines):
        write_synced(file, b"".join(b"\n" + line for line in kept), 0o600)

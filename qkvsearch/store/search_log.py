"""The log of searches: files beside a workspace, to which servers append what people searched for.

```
SHOP.searches/2026-11-29-1.jsonl   a line for each search, and for each click on a hit
SHOP.searches/key                  a secret, by which a server knows the ids that it gave
```

A line is one object of JSON. A line is appended by one call of the system, without a lock, so that
several processes may write and none waits for another. A line begins with a line feed: one that a
full disk cut short does not spoil the next one. A day (UTC) has a file of its own, and another one
wherever that has grown to `MAX_FILE` bytes.

A log never breaks a search: what cannot be written is left out, and that is said once.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from qkvsearch._utils.files import real_path
from qkvsearch.tables.ids import Id

# What the name of the folder has after the workspace's.
SUFFIX = ".searches"
KEY = "key"
# A day and a number.
FILE_NAME = re.compile(r"(\d{4}-\d\d-\d\d)-(\d{1,9})\.jsonl")
# Bytes of a file, after which another one begins, and of all files, beyond which the oldest go.
MAX_FILE, MAX_ALL = 8_000_000, 64_000_000
# How many of an answer's first hits are logged.
N_SHOWN = 10
# Bytes of a secret, and hexadecimal digits of both halves of an id.
SECRET, DIGITS = 32, 16
# How long another process may take to write a secret.
SECONDS_TO_WRITE = 1.0
QUERY_ID = re.compile(rf"(\d{{8}})-([0-9a-f]{{{DIGITS}}})([0-9a-f]{{{DIGITS}}})")
# For how many days after its search a click counts.
CLICK_DAYS = 1
# Clicks that a process remembers, so that one that is sent again needs no line.
MAX_REMEMBERED = 10_000
APPENDING = (
    os.O_WRONLY
    | os.O_APPEND
    # A link may lead anywhere, and a pipe would wait for a reader.
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
)


def log_folder(workspace: Path) -> Path:
    """Return the folder of a workspace's log, whether or not there is one.

    >>> log_folder(Path("/data/shop")).name
    'shop.searches'
    """
    path = real_path(workspace)
    return path.with_name(path.name + SUFFIX)


def log_files(folder: Path) -> list[Path]:
    """Return the files of a log, the oldest first. A folder that is not there has none. Raises
    `OSError`.
    """
    found = []
    with suppress(FileNotFoundError, NotADirectoryError):
        for path in folder.iterdir():
            match = FILE_NAME.fullmatch(path.name)
            if match is not None:
                found.append((match[1], int(match[2]), path))
    return [path for _, _, path in sorted(found)]


def day_of(file: Path) -> date | None:
    """Return the day of a file of the log; None where its name has none, such as February 30."""
    match = FILE_NAME.fullmatch(file.name)
    try:
        return None if match is None else date.fromisoformat(match[1])
    except ValueError:
        return None


def today() -> date:
    """Return the day (UTC)."""
    return datetime.now(UTC).date()


class SearchLog:
    """Appends searches and clicks to the log of a workspace.

    days: how many days, today included, the log goes back. notify: told once what cannot be
    written, and why.
    """

    def __init__(self, workspace: Path, days: int, notify: Callable[[str], None]) -> None:
        self.folder = log_folder(workspace)
        self.days = days
        self._notify = notify
        self._has_failed = False
        # The day and the number of the file that was written last.
        self._day, self._number = date.min, 1
        # The ids and items of clicks that have a line.
        self._clicked: set[tuple[str, Id]] = set()

    def prepare(self) -> None:
        """Make the folder and delete what is too old. Where that fails, say so."""
        try:
            self._key()
        except OSError as error:
            self._failed(error)
        self.tidy()

    def tidy(self) -> None:
        """Delete what is too old, or say that it cannot be deleted."""
        try:
            self.expire()
        except OSError as error:
            self._failed(error)

    def add_search(
        self,
        visitor: str,
        query: str,
        *,
        total: int,
        shown: Sequence[Id],
        offset: int = 0,
        is_typing: bool = False,
        has_options: bool = False,
        no_hits: dict[str, Any] | None = None,
    ) -> str | None:
        """Append a search, and return its id for clicks; None where it could not be written.

        visitor: who searches, without a name. total: how many hits there are. shown: the items of
        the answer, the best first. offset: the rank before the first of them. is_typing: the last
        word may be unfinished. no_hits: why there are none, as the answer says it.
        """
        try:
            query_id = self._new_id()
            line: dict[str, Any] = {
                "search": query_id,
                "time": _now(),
                "visitor": visitor,
                "query": query,
                "total": total,
                "shown": list(shown[:N_SHOWN]),
            }
            more = {
                "offset": offset,
                "typing": is_typing,
                "options": has_options,
                "no_hits": no_hits,
            }
            line |= {name: value for name, value in more.items() if value}
            self._append(line)
        except OSError as error:
            self._failed(error)
            return None
        return query_id

    def add_click(self, query_id: str, item: Id, position: int) -> bool:
        """Append a click on an item. Return whether it is in the log. A second click on the same
        hit, which would not count, has no line where this process remembers the first one.
        """
        click = (query_id, item)
        if click in self._clicked:
            return True
        try:
            self._append({"click": query_id, "time": _now(), "item": item, "position": position})
        except OSError as error:
            self._failed(error)
            return False
        if len(self._clicked) >= MAX_REMEMBERED:
            self._clicked.clear()
        self._clicked.add(click)
        return True

    def is_known(self, query_id: str) -> bool:
        """Return whether a server gave this id to a search, today or yesterday."""
        match = QUERY_ID.fullmatch(query_id)
        if match is None:
            return False
        day, number, signature = match.groups()
        try:
            age = today() - date.fromisoformat(day)
            expected = self._signature(day, number)
        except (OSError, ValueError):
            return False
        is_recent = timedelta(0) <= age <= timedelta(CLICK_DAYS)
        return is_recent and hmac.compare_digest(signature, expected)

    def expire(self) -> None:
        """Delete the files that are older than `days`, and the oldest ones that are too much.

        Raises `OSError`.
        """
        files = log_files(self.folder)
        first_day = today() - timedelta(self.days - 1)
        sizes = {}
        for path in files:
            day = day_of(path)
            if day is None or day < first_day:
                path.unlink(missing_ok=True)
            else:
                with suppress(FileNotFoundError):  # another process may have deleted it
                    sizes[path] = path.stat().st_size
        n_bytes = sum(sizes.values())
        for path, size in sizes.items():
            if n_bytes <= MAX_ALL:
                break
            path.unlink(missing_ok=True)
            n_bytes -= size

    def _new_id(self) -> str:
        day, number = f"{today():%Y%m%d}", secrets.token_hex(DIGITS // 2)
        return f"{day}-{number}{self._signature(day, number)}"

    def _signature(self, day: str, number: str) -> str:
        signed = hmac.new(self._key(), f"{day}-{number}".encode(), hashlib.sha256)
        return signed.hexdigest()[:DIGITS]

    def _key(self) -> bytes:
        """Return the secret that the processes share. Raises `OSError`.

        It is read each time: the owner may delete the folder while servers run, and all of them
        must go on with the same one.
        """
        self.folder.mkdir(0o700, exist_ok=True)
        return shared_secret(self.folder / KEY)

    def _append(self, line: dict[str, Any]) -> None:
        """Append a line. Raises `OSError`."""
        text = json.dumps(line, ensure_ascii=False, separators=(",", ":"))
        content = b"\n" + text.encode("utf-8", "replace")
        file = self._open()
        try:
            n_written = os.write(file, content)
        finally:
            os.close(file)
        if n_written < len(content):
            raise OSError("there is no room for a whole line")

    def _open(self) -> int:
        """Open the file of the day to append to it. Another file deletes what is too much."""
        day = today()
        if day != self._day:
            self._day, self._number = day, 1
        while True:
            try:
                file = os.open(self._file(), APPENDING)
            except FileNotFoundError:
                # It may have been deleted as the oldest one: made anew it would be deleted first.
                self._number = max(self._number, self._last_number())
                file = os.open(self._file(), APPENDING | os.O_CREAT, 0o600)
            if os.fstat(file).st_size < MAX_FILE:
                return file
            os.close(file)
            self._number += 1
            self.tidy()

    def _file(self) -> Path:
        return self.folder / f"{self._day}-{self._number}.jsonl"

    def _last_number(self) -> int:
        """Return the number of the newest file of the day; 0 where it has none."""
        matches = (FILE_NAME.fullmatch(file.name) for file in log_files(self.folder))
        numbers = [int(match[2]) for match in matches if match and match[1] == str(self._day)]
        return max(numbers, default=0)

    def _failed(self, error: OSError) -> None:
        if not self._has_failed:
            self._has_failed = True
            why = error.strerror or str(error)
            self._notify(
                f"{error.filename or self.folder}: the log of searches: {why}. Searches are "
                "answered all the same; what cannot be written is missing in the log"
            )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def shared_secret(path: Path) -> bytes:
    """Return the secret in a file, which whoever comes first makes. Several processes that come at
    once get the same one. Raises `OSError`.
    """
    with suppress(FileNotFoundError):
        return _read_secret(path)
    unfinished = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
    with suppress(FileExistsError):  # another process was faster
        try:
            _write_secret(unfinished)
            os.link(unfinished, path)
        except FileExistsError:
            raise
        except OSError:  # this file system may have no hard links
            _write_secret(path)
        finally:
            unfinished.unlink(missing_ok=True)
    return _read_secret(path)


def _write_secret(path: Path) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(secrets.token_bytes(SECRET))


def _read_secret(path: Path) -> bytes:
    until = time.monotonic() + SECONDS_TO_WRITE
    while True:
        with path.open("rb") as file:
            secret = file.read(SECRET + 1)
        if len(secret) == SECRET:
            return secret
        if len(secret) > SECRET or time.monotonic() > until:
            raise OSError(None, "it is no key: delete it, and a new one is made", str(path))
        time.sleep(0.01)  # another process may be writing it


def lines_of(file: Path) -> Iterator[bytes]:
    """Yield the lines of a file of the log. One that was deleted meanwhile has none. Raises
    `OSError`.
    """
    with suppress(FileNotFoundError), file.open("rb") as opened:
        for line in opened:
            if line := line.strip(b"\n"):
                yield line

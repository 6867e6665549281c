"""Encoded texts on disk, so that a transformer encodes each text once, whichever build asks for it.

A SQLite file in the user's folder for caches. It has no texts, but a text can be guessed from the
vectors of its tokens: entries of removed items are deleted, and overwritten in the file.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xxhash

from qkvsearch._utils.forks import inside_sqlite
from qkvsearch._utils.limits import CACHE
from qkvsearch._utils.sqlite import connect
from qkvsearch._utils.user_files import cache_folder
from qkvsearch.errors import QkvError

log = logging.getLogger("qkvsearch.cache")
# Another meaning of the entries gets another number.
VERSION = 2
# Hashes in one statement, of which SQLite allows 32,766.
AT_ONCE = 1000
# Where the file is too large, this share of its entries is removed.
SHARE = 0.1
# Seconds to wait for another process that writes the file.
WAIT = 5.0
CHECKSUM_BYTES = 8
TABLE = (
    "CREATE TABLE encoded "
    "(id INTEGER PRIMARY KEY, text BLOB, model BLOB, longest INTEGER, is_cut INTEGER, vectors BLOB)"
)
INDEX = "CREATE UNIQUE INDEX by_text ON encoded (text, model)"
# Errors of SQLite that are no fault of the file: the disk, the permissions, other processes.
CIRCUMSTANCES = frozenset(
    (
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_INTERRUPT,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
    )
)
WHERE = "the cache of encoded texts"
HEALED = f"{WHERE} was damaged and was removed; texts are encoded again when they are needed"
# The reasons for which a warning was logged: one for each kind is enough for a process.
_warned: set[str] = set()


class CachedText(NamedTuple):
    """An encoded text: its embedding, float32 (d,), its first tokens, int8 (n, d), and whether it
    was longer than the encoder reads.
    """

    embedding: np.ndarray
    tokens: np.ndarray
    is_cut: bool


class DamagedCacheError(Exception):
    """The file, or an entry of it, is not what was written."""


# A `RuntimeError` is that of a user without a home.
FAILURES = (OSError, RuntimeError, sqlite3.Error, DamagedCacheError)


def path() -> Path:
    """Return the path of the file."""
    return cache_folder() / f"encoded-{VERSION}.db"


def model_key(*facts: str | bytes) -> bytes:
    """Return a hash of what identifies a model and its runtime."""
    return text_key("\0".join(fact if isinstance(fact, str) else fact.hex() for fact in facts))


def text_key(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


class EncodingCache:
    """The entries of a model. Where the file cannot be read or written, there are none: texts are
    encoded again, and a warning says so once. A damaged file is removed.
    """

    def __init__(self, model: bytes) -> None:
        self.model = model

    def entries(self, texts: Sequence[str], longest: int) -> dict[str, CachedText]:
        """Return the entries with at least `longest` tokens, or all of a text's."""
        by_key = {text_key(text): text for text in texts}
        entries: dict[str, CachedText] = {}
        try:
            if not _is_there():
                return entries
            with _opened() as db:
                for key, n_stored, is_cut, content in self._rows(db, list(by_key), longest):
                    vectors = _checked(content, key, self.model, n_stored, is_cut)
                    if vectors is None:  # encoded again, and then replaced
                        _warn(DamagedCacheError("an entry is damaged and is encoded again"))
                        continue
                    embedding, tokens = vectors
                    entries[by_key[key]] = CachedText(embedding, tokens[:longest], bool(is_cut))
        except FAILURES as error:
            _heal_or_warn(error)
        return entries

    def _rows(
        self, db: sqlite3.Connection, keys: Sequence[bytes], longest: int
    ) -> Iterator[tuple[Any, ...]]:
        for start in range(0, len(keys), AT_ONCE):
            some = keys[start : start + AT_ONCE]
            marks = ",".join("?" * len(some))
            yield from db.execute(
                "SELECT text, longest, is_cut, vectors FROM encoded "
                f"WHERE model = ? AND longest >= ? AND text IN ({marks})",
                [self.model, longest, *some],
            )

    def add(self, entries: dict[str, CachedText], longest: int) -> None:
        """Store entries with their first `longest` tokens, and remove the oldest ones."""
        rows = []
        for text, entry in entries.items():
            key, is_cut = text_key(text), int(entry.is_cut)
            content = _content(entry, key, self.model, longest, is_cut)
            rows.append((key, self.model, longest, is_cut, content))
        try:
            _create_file()
            with _opened() as db:
                db.executemany(
                    "INSERT OR REPLACE INTO encoded (text, model, longest, is_cut, vectors) "
                    "VALUES (?, ?, ?, ?, ?)",
                    rows,
                )
                _remove_oldest(db)
        except FAILURES as error:
            _heal_or_warn(error)


def is_on() -> bool:
    """Return whether texts are cached: not where the limit is 0."""
    return CACHE.value > 0


def forget_texts(texts: Iterable[str]) -> list[str]:
    """Delete the entries of texts, of every model, and the files of other versions, in which no
    entry can be found. Return notes on what went wrong: the items are changed already, so that
    nothing here may fail. The notes have no path.
    """
    keys = [(text_key(text),) for text in texts]
    if not keys:
        return []
    others = _without_other_versions()
    try:
        if not _is_there():
            return others
        with _opened() as db:
            db.executemany("DELETE FROM encoded WHERE text = ?", keys)
    except FAILURES as error:
        if _is_damaged(error) and _remove_file():
            return [*others, HEALED]
        return [_stays(error)]
    return others


def _without_other_versions() -> list[str]:
    """Remove the files of other versions. Return a note if that is not possible."""
    try:
        own = _files()
        _remove(file for file in _files_of_all_versions() if file not in own)
    except OSError as error:
        return [_stays(error)]
    except RuntimeError:  # a user without a home has no caches
        return []
    return []


def _stays(error: Exception) -> str:
    stays = f"what was encoded of these texts is still in {WHERE} ({_reason(error)})"
    return f"{stays}: `qkvsearch model cache --clear` removes it"


def size() -> tuple[int, int]:
    """Return the number of encoded texts, and of bytes on disk."""
    n = n_bytes = 0
    try:
        if _is_there():
            n_bytes = path().stat().st_size
            with _opened() as db:
                (n,) = db.execute("SELECT count(*) FROM encoded").fetchone()
    except FAILURES as error:
        _warn(error)
    return n, n_bytes


def clear() -> None:
    """Remove all entries, those of other versions too. Raises `QkvError`."""
    try:
        _remove(_files_of_all_versions())
    except OSError as error:
        raise QkvError(f"{path()}: cannot remove: {error.strerror or error}") from None


# --- the file ---


def _is_there() -> bool:
    """Return whether there is a file. Raises `OSError` where the folder may not be looked into."""
    try:
        return stat.S_ISREG(path().stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except RuntimeError:  # a user without a home has no caches
        return False


def _create_file() -> None:
    """Create an empty file that only its owner may read. Raises `OSError`, and `RuntimeError` for a
    user without a home.
    """
    file = path()
    if not _is_there():
        file.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(file, os.O_CREAT | os.O_RDWR, 0o600))


@contextmanager
def _opened() -> Iterator[sqlite3.Connection]:
    """Open the file for a transaction. Raises `DamagedCacheError` for tables that are not ours."""
    address = f"{path().absolute().as_uri()}?mode=rw"
    # In one block: in a pause of it, another thread could wait inside SQLite for this transaction,
    # and a fork for that thread.
    with inside_sqlite(), closing(connect(address, uri=True, timeout=WAIT)) as db:
        # Deleted content is overwritten with zeros.
        db.execute("PRAGMA secure_delete = ON")
        with db:
            tables = [sql for (sql,) in db.execute("SELECT sql FROM sqlite_master ORDER BY rowid")]
            if not tables:
                db.execute("BEGIN IMMEDIATE")  # two processes may find it empty
                tables = _created(db)
            if tables != [TABLE, INDEX]:
                raise DamagedCacheError("its tables are not those of this cache")
            yield db


def _created(db: sqlite3.Connection) -> list[str]:
    """Create the tables, unless another process did so meanwhile, and return their SQL."""
    if not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        db.execute(TABLE)
        db.execute(INDEX)
    return [sql for (sql,) in db.execute("SELECT sql FROM sqlite_master ORDER BY rowid")]


def _remove_oldest(db: sqlite3.Connection) -> None:
    """Remove the oldest entries until the rest is within the limit."""
    oldest = "SELECT id FROM encoded ORDER BY id LIMIT ?"
    while _used_bytes(db) > CACHE.value:
        (n,) = db.execute("SELECT count(*) FROM encoded").fetchone()
        if not n:
            return
        db.execute(f"DELETE FROM encoded WHERE id IN ({oldest})", [max(1, int(n * SHARE))])


def _used_bytes(db: sqlite3.Connection) -> int:
    names = ("page_count", "freelist_count", "page_size")
    n, n_free, page_size = (db.execute(f"PRAGMA {name}").fetchone()[0] for name in names)
    return int((n - n_free) * page_size)


def _files() -> list[Path]:
    """Return the file and the journal that SQLite writes beside it."""
    file = path()
    return [file, file.with_name(f"{file.name}-journal")]


def _files_of_all_versions() -> list[Path]:
    """Return the files of this version, and those that other versions have left in the folder."""
    found = [*cache_folder().glob("encoded-*.db"), *cache_folder().glob("encoded-*.db-journal")]
    return [*_files(), *found]


def _remove(files: Iterable[Path]) -> None:
    for file in files:
        file.unlink(missing_ok=True)


def _remove_file() -> bool:
    """Remove the file, so that a new one is begun. Return whether that was possible."""
    try:
        _remove(_files())
    except OSError:
        return False
    return True


# --- what goes wrong ---


def _is_damaged(error: Exception) -> bool:
    """Return whether an error is the fault of the file: then another one is begun."""
    if isinstance(error, OSError | RuntimeError):
        return False
    code = getattr(error, "sqlite_errorcode", None)
    if code is None or code == sqlite3.SQLITE_IOERR_SHORT_READ:
        return True
    return code & 0xFF not in CIRCUMSTANCES


def _heal_or_warn(error: Exception) -> None:
    """Remove a damaged file, and say so; of another error, say that texts are encoded again."""
    if _is_damaged(error) and _remove_file():
        log.warning("%s: %s", path(), HEALED)
    else:
        _warn(error)


def _warn(error: Exception) -> None:
    """Log a warning, once for each reason."""
    reason = _reason(error)
    if reason not in _warned:
        _warned.add(reason)
        log.warning("%s: %s", WHERE, reason)


def _reason(error: Exception) -> str:
    """Return what went wrong, without a path."""
    return str(getattr(error, "strerror", None) or error)


# --- the content of an entry ---


def _content(entry: CachedText, key: bytes, model: bytes, longest: int, is_cut: int) -> bytes:
    """Return the checksum of the whole row, the length d of the embedding, and the vectors."""
    content = np.int32(len(entry.embedding)).tobytes()
    content += entry.embedding.astype("<f4").tobytes() + entry.tokens.astype(np.int8).tobytes()
    return _row_checksum(content, key, model, longest, is_cut) + content


def _row_checksum(content: bytes, key: bytes, model: bytes, longest: int, is_cut: int) -> bytes:
    """Return the checksum of a row. It covers the key too: another text's vectors are wrong."""
    digest = xxhash.xxh3_64(key)
    digest.update(model)
    digest.update(f"{longest} {is_cut}".encode())
    digest.update(content)
    return digest.digest()


def _checked(
    content: Any, key: bytes, model: bytes, longest: int, is_cut: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return embedding and tokens; None where any part of the row is not what was written."""
    if not isinstance(content, bytes):
        return None
    checksum, content = content[:CHECKSUM_BYTES], content[CHECKSUM_BYTES:]
    if _row_checksum(content, key, model, longest, is_cut) != checksum:
        return None
    d = int(np.frombuffer(content, np.int32, 1)[0])
    embedding = np.frombuffer(content, "<f4", d, offset=4)
    return embedding, np.frombuffer(content, np.int8, offset=4 + 4 * d).reshape(-1, d)

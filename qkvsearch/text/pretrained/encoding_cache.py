"""Encoded texts on disk, so that a transformer encodes each text once, whichever build asks for it.

A SQLite file in the user's folder for caches. It has no texts, but a text can be guessed from the
vectors of its tokens: entries of removed items are deleted, and overwritten in the file.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import numpy as np
import xxhash

from qkvsearch._utils.limits import CACHE
from qkvsearch._utils.user_files import cache_folder
from qkvsearch.errors import QkvError

# Another meaning of the entries gets another number.
VERSION = 1
# Hashes in one statement, of which SQLite allows 32,766.
AT_ONCE = 1000
# Where the file is too large, this share of its entries is removed.
SHARE = 0.1
CHECKSUM_BYTES = 8
TABLE = """
CREATE TABLE IF NOT EXISTS encoded (
    id INTEGER PRIMARY KEY, text BLOB, model BLOB, longest INTEGER, is_cut INTEGER, vectors BLOB
);
CREATE UNIQUE INDEX IF NOT EXISTS by_text ON encoded (text, model);
"""
CLEAR = "`qkvsearch model cache --clear` removes the file"


class Entry(NamedTuple):
    """An encoded text: its embedding, float32 (d,), its first tokens, int8 (n, d), and whether it
    was longer than the encoder reads.
    """

    embedding: np.ndarray
    tokens: np.ndarray
    is_cut: bool


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
    encoded again.
    """

    def __init__(self, model: bytes) -> None:
        self.model = model

    def entries(self, texts: Sequence[str], longest: int) -> dict[str, Entry]:
        """Return the entries with at least `longest` tokens, or all of a text's."""
        by_key = {text_key(text): text for text in texts}
        keys, entries = list(by_key), {}
        try:
            with _opened(create=False) as db:
                for start in range(0, len(keys), AT_ONCE):
                    some = keys[start : start + AT_ONCE]
                    marks = ",".join("?" * len(some))
                    rows = db.execute(
                        "SELECT text, is_cut, vectors FROM encoded WHERE model = ? "
                        f"AND longest >= ? AND text IN ({marks})",
                        [self.model, longest, *some],
                    )
                    for key, is_cut, content in rows:
                        vectors = _checked(content)
                        if vectors is not None:
                            embedding, tokens = vectors
                            entries[by_key[key]] = Entry(embedding, tokens[:longest], bool(is_cut))
        except (OSError, sqlite3.Error):
            _remove_damaged()
        return entries

    def add(self, entries: dict[str, Entry], longest: int) -> None:
        """Store entries with their first `longest` tokens, and remove the oldest ones."""
        rows = [
            (text_key(text), self.model, longest, entry.is_cut, _content(entry))
            for text, entry in entries.items()
        ]
        try:
            with _opened(create=True) as db:
                db.executemany(
                    "INSERT OR REPLACE INTO encoded (text, model, longest, is_cut, vectors) "
                    "VALUES (?, ?, ?, ?, ?)",
                    rows,
                )
                while _used_bytes(db) > CACHE.value:
                    (n,) = db.execute("SELECT count(*) FROM encoded").fetchone()
                    db.execute(
                        "DELETE FROM encoded WHERE id IN (SELECT id FROM encoded ORDER BY id "
                        "LIMIT ?)",
                        [max(1, int(n * SHARE))],
                    )
        except (OSError, sqlite3.Error):
            _remove_damaged()


def is_on() -> bool:
    """Return whether texts are cached: not where the limit is 0."""
    return CACHE.value > 0


def forget_texts(texts: Iterable[str]) -> None:
    """Delete the entries of texts, of every model. Raises `QkvError` where that is not possible."""
    if not path().is_file():
        return
    try:
        with _opened(create=False) as db:
            db.executemany("DELETE FROM encoded WHERE text = ?", [(text_key(t),) for t in texts])
    except (OSError, sqlite3.Error) as error:
        raise QkvError(
            f"{path()}: the items are changed, but what was encoded of their texts is still there: "
            f"{error}; {CLEAR}"
        ) from None


def size() -> tuple[int, int]:
    """Return the number of encoded texts, and of bytes on disk."""
    try:
        with _opened(create=False) as db:
            (n,) = db.execute("SELECT count(*) FROM encoded").fetchone()
        return n, path().stat().st_size
    except (OSError, sqlite3.Error):
        return 0, path().stat().st_size if path().is_file() else 0


def clear() -> None:
    """Remove all entries. Raises `QkvError`."""
    try:
        path().unlink(missing_ok=True)
    except OSError as error:
        raise QkvError(f"{path()}: cannot remove: {error.strerror}") from None


@contextmanager
def _opened(create: bool) -> Iterator[sqlite3.Connection]:
    """Open the file for a transaction. Only its owner may read it."""
    file = path()
    if create and not file.is_file():
        file.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(file, os.O_CREAT | os.O_RDWR, 0o600))
    mode = "rw" if file.is_file() else "ro"
    with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode={mode}", uri=True)) as db:
        # Deleted content is overwritten with zeros.
        db.execute("PRAGMA secure_delete = ON")
        db.executescript(TABLE)
        with db:
            yield db


def _used_bytes(db: sqlite3.Connection) -> int:
    names = ("page_count", "freelist_count", "page_size")
    n, n_free, page_size = (db.execute(f"PRAGMA {name}").fetchone()[0] for name in names)
    return int((n - n_free) * page_size)


def _remove_damaged() -> None:
    """Remove a file that is no database, so that the next build starts a new one."""
    try:
        with path().open("rb") as file:
            is_database = file.read(16) in (b"", b"SQLite format 3\0")
        if not is_database:
            path().unlink()
    except OSError:
        pass


def _content(entry: Entry) -> bytes:
    """Return the checksum, the length d of the embedding, and the vectors."""
    content = np.int32(len(entry.embedding)).tobytes()
    content += entry.embedding.astype("<f4").tobytes() + entry.tokens.astype(np.int8).tobytes()
    return xxhash.xxh3_64_digest(content) + content


def _checked(content: bytes) -> tuple[np.ndarray, np.ndarray] | None:
    """Return embedding and tokens; None where the content is damaged."""
    checksum, content = content[:CHECKSUM_BYTES], content[CHECKSUM_BYTES:]
    if xxhash.xxh3_64_digest(content) != checksum:
        return None
    d = int(np.frombuffer(content, np.int32, 1)[0])
    embedding = np.frombuffer(content, "<f4", d, offset=4)
    return embedding, np.frombuffer(content, np.int8, offset=4 + 4 * d).reshape(-1, d)
